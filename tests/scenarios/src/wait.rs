//! Waiting for something to show: asked again and again until a deadline, with no fixed pause in between that a slow machine
//! would make too short and a fast one too long.

use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything in a scenario may take before it counts as never, in seconds.
const PATIENCE_S: u64 = 60;

const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// How long anything in a scenario may take before it counts as never. `SLUICE_PATIENCE` shortens it for whoever expects a
/// scenario to fail.
#[must_use]
pub fn patience() -> Duration {
    let seconds = env::var("SLUICE_PATIENCE").map_or(PATIENCE_S, |seconds| {
        seconds
            .parse()
            .unwrap_or_else(|_| panic!("SLUICE_PATIENCE={seconds} is no number of seconds"))
    });
    Duration::from_secs(seconds)
}

/// Asks until there is an answer, and panics with `what` when the [`patience`] is at its end.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    let patience = patience();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            start.elapsed() < patience,
            "waited {patience:?} in vain until {what}"
        );
        sleep(BETWEEN_LOOKS);
    }
}
