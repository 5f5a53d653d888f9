//! Waiting for something to show: asked again and again until a deadline, with no fixed pause in between that a slow machine
//! would make too short and a fast one too long.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything in a scenario may take before it counts as never.
pub const PATIENCE: Duration = Duration::from_secs(60);

const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Asks until there is an answer, and panics with `what` when [`PATIENCE`] is at its end.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain until {what}"
        );
        sleep(BETWEEN_LOOKS);
    }
}
