//! A database under fire: what there is to call, with what, by whom, and what may come of it.
//!
//! - [`catalog`]: functions, types and tables, as the database itself lists them: a new one is covered by itself
//! - [`values`]: a value of any type, as SQL writes it
//! - [`statements`]: calls, and statements over the tables
//! - [`session`]: who calls, and the judge of each answer
//! - [`stage`]: withdrawals in every state, honest work in between, and the judge at the end

pub mod catalog;
pub mod session;
pub mod stage;
pub mod statements;
pub mod values;
