//! Chaos: many withdrawals, several runners, and a seeded schedule of every fault; then the faults stop, the rest drains, and
//! a judge looks at what is left. `make chaos SEED=… OPS=… WORKERS=… MINUTES=…`; a short run is a test.
//!
//! The seed fixes the schedule: which fault strikes at which step, and the numbers that say against whom. What the machine
//! makes of it inside and between processes is the machine's.
//!
//! - the schedule: [`draw`], [`kind`], [`schedule`], [`orders`], [`accounts`]
//! - what is struck: [`stage`], [`workers`], [`clients`], [`link`], [`clock`], [`hostile`]
//! - the strikes: [`strikes`]
//! - the run: [`config`], [`drive`], [`progress`], [`report`]
//! - the verdict: [`judge`]

pub mod accounts;
pub mod clients;
pub mod clock;
pub mod config;
pub mod draw;
pub mod drive;
pub mod hostile;
pub mod judge;
pub mod kind;
pub mod link;
pub mod orders;
pub mod progress;
pub mod report;
pub mod schedule;
pub mod stage;
pub mod strikes;
pub mod workers;

pub use config::Config;
pub use drive::{Outcome, run};
