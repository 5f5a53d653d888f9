//! What is explored. Each configuration is explored to its end: every state that its bounds allow, for a chain of any length.
//! One that had all of it would be too large, so each looks closely at one side.

use crate::world::{Answer, Outcome};

/// The bounds of one exploration.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// What it is called.
    pub name: &'static str,
    /// How many withdrawals.
    pub withdrawals: u8,
    /// How many claims may be under way at once, stale ones included.
    pub workers: u8,
    /// Two nodes with a pool each; else the next block may hold whatever has left.
    pub pools: bool,
    /// How many blocks on top make one irreversible: so many may be forked away.
    pub confirmations: u8,
    /// How many solid blocks the follower may be behind.
    pub lag: u8,
    /// Ticks between blocks: 1 is none missed.
    pub gaps: &'static [u8],
    /// What nodes answer, whatever they do.
    pub answers: &'static [Answer],
    /// How transactions run.
    pub outcomes: &'static [Outcome],
    /// Followed blocks on top before a success confirms.
    pub depth: u8,
    /// Followed blocks on top of the closing one before a death counts.
    pub margin: u8,
    /// Envelopes that may be spent on a withdrawal.
    pub attempts: u8,
    /// Whether people cancel.
    pub cancels: bool,
    /// Whether workers lie about what they did. Only where the guard is there to be lied to.
    pub lies: bool,
}

const EVERY_ANSWER: &[Answer] = &[
    Answer::Success,
    Answer::Dup,
    Answer::Expired,
    Answer::Busy,
    Answer::Nothing,
];

const EVERY_OUTCOME: &[Outcome] = &[
    Outcome::Success,
    Outcome::OutOfEnergy,
    Outcome::Revert,
    Outcome::Unknown,
];

/// One withdrawal, and all that nodes and the chain can do to it.
const NODES: Config = Config {
    name: "nodes",
    withdrawals: 1,
    workers: 2,
    pools: true,
    confirmations: 2,
    lag: 1,
    gaps: &[1, 2],
    answers: EVERY_ANSWER,
    outcomes: EVERY_OUTCOME,
    depth: 0,
    margin: 0,
    attempts: 2,
    cancels: true,
    lies: true,
};

/// Two withdrawals that share the workers.
const PAIR: Config = Config {
    name: "pair",
    withdrawals: 2,
    pools: false,
    confirmations: 1,
    answers: &[Answer::Success, Answer::Expired],
    outcomes: &[Outcome::Success, Outcome::OutOfEnergy],
    cancels: false,
    lies: false,
    ..NODES
};

/// A success that confirms only after its envelope is past its time, and deaths that count late.
const DEPTH: Config = Config {
    name: "depth",
    confirmations: 1,
    depth: 3,
    margin: 1,
    ..NODES
};

/// For `make test`.
pub const SHORT: [Config; 3] = [NODES, PAIR, DEPTH];

/// For `make model`: the same with more of everything.
pub const LONG: [Config; 4] = [
    Config {
        name: "nodes, longer gaps and lags",
        gaps: &[1, 2, 3],
        confirmations: 1,
        lag: 2,
        attempts: 3,
        ..NODES
    },
    Config {
        name: "nodes, deeper forks",
        confirmations: 3,
        ..NODES
    },
    Config {
        name: "pair, with liars and people",
        outcomes: &[Outcome::Success, Outcome::OutOfEnergy, Outcome::Revert],
        cancels: true,
        lies: true,
        ..PAIR
    },
    Config {
        name: "depth, deeper forks",
        confirmations: 2,
        attempts: 3,
        ..DEPTH
    },
];

/// The smallest in which everything can be seen, for what is run once for each mutation.
pub const SMALL: Config = Config {
    name: "small",
    confirmations: 1,
    answers: &[Answer::Success, Answer::Dup, Answer::Expired],
    ..NODES
};

/// The same, with a depth that is reached after an envelope's time.
pub const SMALL_AND_DEEP: Config = Config {
    name: "small and deep",
    depth: 3,
    ..SMALL
};
