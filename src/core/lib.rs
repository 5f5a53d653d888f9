//! The decisions of sluice and the formats of TRON: pure Rust, without SQL, clock or I/O. What is decided here is decided
//! by the arguments alone, so the database, the runner and a test get the same answer.
//!
//! The decisions:
//! - [`state`]: the states of a withdrawal and the one table of steps
//! - [`decision`]: what may be built, what is due next, an envelope's fate, who owns a row
//! - [`event`]: the hash chain over a withdrawal's events
//! - [`request`]: what a withdrawal asks for, as one hash
//! - [`route`]: which way its money goes, and when it is settled
//! - [`funds`]: which withdrawals an account can cover
//!
//! The formats:
//! - [`address`], [`units`]: what people type
//! - [`chain`]: block time, slots, networks
//! - [`envelope`], [`signature`]: a transaction that pays a withdrawal
//! - [`broadcast`]: what nodes answer
//! - [`block`]: what solid blocks hold
//! - [`proto`]: the messages on the wire

pub mod address;
pub mod block;
pub mod broadcast;
pub mod chain;
pub mod decision;
pub mod envelope;
pub mod event;
pub mod funds;
pub mod proto;
pub mod request;
pub mod route;
pub mod signature;
pub mod state;
pub mod units;
mod wire;
