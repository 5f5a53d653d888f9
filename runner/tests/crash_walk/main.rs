//! The crash walk: a runner is killed, and another stopped for ten minutes, at each of its crash points in turn, and at each
//! the nodes do each of their worst. Whatever comes together, every withdrawal is confirmed and paid once.
//!
//! Many walks share a server and a network, each with a withdrawal of its own: what befalls it is told by `POINT/FAULT`, which
//! is also the name of the runner that is struck.

mod fault;
mod ground;
mod kills;
mod leg;
mod pauses;
mod terminations;
