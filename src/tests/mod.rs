//! The in-database tier: what `cargo pgrx test` runs inside a real server, a transaction a test.

mod amounts;
mod bad_blocks;
mod bad_input;
mod bad_reports;
mod blocks;
mod building;
mod claims;
mod clock;
mod envelopes;
mod events;
mod following;
mod garbage;
mod grants;
mod guard;
mod intake;
mod leases;
mod lifecycle;
mod matrix;
mod pauses;
mod people;
mod pure;
mod records;
mod scene;
mod settling;
mod setup;
mod vectors;
