//! Does the failure matrix notice? Each mutant is sluice with one rule broken: a changed line of the shipped SQL, or of the Rust
//! that it calls, put into a copy of the private PostgreSQL. The test that the mutant names must then fail. A mutant that lives
//! through it shows a rule that no test holds.

pub mod compile;
pub mod installation;
pub mod judge;
pub mod matrix;
pub mod mutant;
pub mod place;
pub mod run;
pub mod table;

pub use crate::mutant::{Edit, Killer, Mutant};
