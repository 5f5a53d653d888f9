//! The in-database tier: what `cargo pgrx test` runs inside a real server, a transaction a test.

mod guard;
mod intake;
mod lifecycle;
mod matrix;
mod scene;
mod vectors;
