//! The Rust that SQL calls: each file takes SQL's values in, asks `sluice-core`, and gives SQL's values back.

#![allow(
    clippy::type_complexity,
    reason = "pgrx reads a function's columns from its return type, and sees through no alias"
)]

pub mod amount;
pub mod block;
pub mod clock;
pub mod decision;
pub mod envelope;
pub mod errors;
pub mod fresh;
pub mod guard;
pub mod intake;
pub mod results;
pub mod route;
pub mod row;
