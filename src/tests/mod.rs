//! The in-database tier: what `cargo pgrx test` runs inside a real server, a transaction a test.

mod bad_input;
mod bad_reports;
mod blocks;
mod clock;
mod envelopes;
mod events;
mod garbage;
mod guard;
mod intake;
mod lifecycle;
mod matrix;
mod pure;
mod scene;
mod setup;
mod vectors;
