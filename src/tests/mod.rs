//! The in-database tier: what `cargo pgrx test` runs inside a real server, a transaction a test.

mod envelopes;
mod events;
mod guard;
mod intake;
mod lifecycle;
mod matrix;
mod scene;
mod vectors;
