//! A TRON network for tests: one chain, and nodes that speak java-tron's HTTP API over it, each with its own pool and view.
//!
//! It knows what java-tron knows of a transaction before it is run: protobuf, txid, signature, TAPOS, expiration,
//! duplicates, pools, gossip, forks, solidity. Balances it does not keep: how a transaction ends is a fault among others
//! (success, if none strikes). All its times are chain time, which passes in real time, faster, or by hand.
//!
//! [`MockNet::start`] gives a handle; the binary gives the same abilities under `/control/…` on a port of its own. What
//! java-tron does is taken from its source, named where it is followed.
//!
//! - the chain: [`chain`], [`block`], [`transaction`], [`wire`], [`outcome`], [`foreign`]
//! - the network: [`net`], [`pool`], [`broadcast`], [`producer`], [`fork`], [`wallets`], [`clock`]
//! - the API: [`endpoint`], [`params`], [`pack`], [`query`], [`json`], [`info`], [`call`], [`http`]
//! - the test's side: [`config`], [`faults`], [`rules`], [`log`], [`report`], [`ledger`], [`control`], [`handle`]

pub mod block;
pub mod broadcast;
pub mod call;
pub mod chain;
pub mod clock;
pub mod config;
pub mod control;
pub mod decimal;
pub mod endpoint;
pub mod faults;
pub mod foreign;
pub mod fork;
pub mod handle;
pub mod http;
pub mod info;
pub mod json;
pub mod ledger;
pub mod log;
pub mod net;
pub mod outcome;
pub mod pack;
pub mod params;
pub mod pool;
pub mod producer;
pub mod query;
pub mod report;
pub mod rules;
pub mod text;
pub mod transaction;
pub mod wallets;
pub mod wire;

pub use clock::ClockMode;
pub use config::{Config, Connection, NodeSettings};
pub use endpoint::{Endpoint, Scope};
pub use faults::{Fault, SignatureForm, Silence};
pub use fork::{ForkPlan, ForkReport};
pub use handle::{Hand, MockNet, StartError};
pub use ledger::BlockRecord;
pub use outcome::Outcome;
pub use report::{Became, LogFilter, Status, TagReport, Total, TxReport};
pub use rules::{Rule, RuleStatus, When};
pub use text::Tag;
pub use wallets::Signer;
