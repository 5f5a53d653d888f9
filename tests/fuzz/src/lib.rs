//! Fuzzing: generated input for all that parses bytes from outside, and for every SQL function.
//!
//! - [`session`]: seeds, how long, and the loop around a property
//! - [`bytes`], [`text`], [`json`], [`chain`]: input that nobody meant, some of it nearly right
//! - [`http`]: both ends of a connection, byte by byte
//! - [`sql`]: values, calls and statements for a database, and who judges the answers

pub mod bytes;
pub mod chain;
pub mod http;
pub mod json;
pub mod session;
pub mod sql;
pub mod text;

pub use session::fuzz;
