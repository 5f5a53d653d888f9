//! What a run is told: its seed, its size, and what it may do to the server.

use std::path::PathBuf;

/// Steps for each minute of faults that is asked for: what two cores do, with some room.
const STEPS_A_MINUTE: u64 = 120;

/// A run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Of the schedule, the withdrawals and the network.
    pub seed: u64,
    /// How many withdrawals.
    pub withdrawals: usize,
    /// How many runners.
    pub workers: usize,
    /// How many steps have faults.
    pub steps: u64,
    /// Whether the whole server may be struck: stopped, filled up, turned back.
    pub server_wide: bool,
    /// Where logs are kept; taken away after a run that found nothing.
    pub keep: PathBuf,
}

impl Config {
    /// The steps of so many minutes.
    #[must_use]
    pub const fn steps_of(minutes: u64) -> u64 {
        minutes * STEPS_A_MINUTE
    }
}
