//! What the network promises to whoever tests against it, over real HTTP: each quirk of java-tron that it has, each fault,
//! and its record.

mod scene;

mod blocks;
mod broadcast;
mod control;
mod expiration;
mod faults;
mod forks;
mod pools;
mod process;
mod producers;
mod receipts;
mod record;
mod shapes;
mod solidity;
mod tapos;
