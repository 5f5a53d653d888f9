//! The runner against what it meets outside: nodes that misbehave, a database that does, signals, wrong settings.

mod block_json;
mod commit_rule;
mod cycle;
mod follower;
mod node;
mod program;
mod settings;
mod signers;
mod support;
mod tls;
