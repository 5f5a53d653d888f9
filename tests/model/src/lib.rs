//! The model: every order of crashes, lies, forks and late signatures within bounds, under the decisions of `sluice-core`
//! themselves. `docs/model.md` says what is modelled, what is left out and why that is sound.
//!
//! `world` is a state; `network` is TRON; `database` and `guard` are the SQL around the decisions, which `rules` calls; `model` is
//! what can happen and what must hold; `drain` is the schedule that ends everything; `canonical` is why it is finite.

pub mod canonical;
pub mod check;
pub mod config;
pub mod database;
pub mod drain;
pub mod guard;
pub mod model;
pub mod mutations;
pub mod network;
pub mod rules;
pub mod scenes;
pub mod tell;
pub mod world;
