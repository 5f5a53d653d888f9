//! The sidecar of sluice: it carries, and decides nothing.
//!
//! - [`cli`], [`commands`]: what may be asked, and who does it
//! - [`settings`], [`config`], [`database_url`], [`secret`]: what it is told, from where
//! - [`cycle`]: withdrawals: claim, sign, record, send, record
//! - [`follower`]: solid blocks into the database
//! - [`db`], [`calls`], [`tls`]: the database, and the rule about commits
//! - [`node`], [`nodes`], [`block_json`]: TRON nodes, and blocks back from JSON to bytes
//! - [`signer`]: who holds keys
//! - [`lease`], [`poll`]: time
//! - [`crash`]: where tests strike
//! - [`logging`]: what it says

pub mod block_json;
pub mod calls;
pub mod cli;
pub mod commands;
pub mod config;
pub mod crash;
pub mod cycle;
pub mod database_url;
pub mod db;
pub mod follower;
pub mod lease;
pub mod logging;
pub mod node;
pub mod nodes;
pub mod poll;
pub mod secret;
pub mod settings;
pub mod signer;
pub mod tls;
