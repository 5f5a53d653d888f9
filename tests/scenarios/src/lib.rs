//! Scaffolding for the scenarios: a throwaway PostgreSQL with the extension, runners as real processes, and a TRON network.
//! Everything a scenario starts ends with it, whatever ends the scenario. A scaffold that cannot be put up panics: that is
//! a failed test.

pub mod books;
pub mod disk;
pub mod money;
pub mod place;
pub mod postgres;
pub mod proxy;
pub mod runner;
pub mod scene;
pub mod wait;
pub mod wallets;
pub mod worker;

pub use crate::postgres::{Database, Postgres, Role};
pub use crate::proxy::{CommitRule, Proxy, RuleId, Strike};
pub use crate::runner::{Runner, RunnerSetup};
pub use crate::scene::Scene;
pub use crate::wallets::{Wallets, destination};
pub use crate::worker::Worker;
