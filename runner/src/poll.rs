//! When to look again: at once while there is plenty, seldom while there is nothing, and never in step with other runners.

use std::time::Duration;

/// The pace of a poll: the shortest pause after something was found, growing to the longest while nothing is.
#[derive(Debug, Clone)]
pub struct Pace {
    shortest: Duration,
    longest: Duration,
    pause: Duration,
}

impl Pace {
    /// A pace between these two pauses.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self {
            shortest,
            longest: longest.max(shortest),
            pause: shortest,
        }
    }

    /// Something was found or somebody rang: the next pause is the shortest.
    pub fn quicken(&mut self) {
        self.pause = self.shortest;
    }

    /// The pause to make now; the next one is twice as long unless [`Self::quicken`] comes between.
    pub fn next_pause(&mut self) -> Duration {
        let pause = jittered(self.pause);
        self.pause = (self.pause * 2).min(self.longest);
        pause
    }
}

/// The pauses before the next try after failures: from a fifth of a second, doubling to ten.
#[must_use]
pub fn retry_pace() -> Pace {
    Pace::new(Duration::from_millis(200), Duration::from_secs(10))
}

/// Between three and five quarters of `pause`: runners that were started together drift apart.
#[must_use]
pub fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_the_longest_and_begin_anew_when_something_is_found() {
        let mut pace = Pace::new(Duration::from_millis(100), Duration::from_millis(350));
        let roughly = |pause: Duration, milliseconds: f64| {
            let share = pause.as_secs_f64() * 1000.0 / milliseconds;
            assert!(
                (0.75..=1.25).contains(&share),
                "{pause:?} for {milliseconds} ms"
            );
        };
        for expected in [100.0, 200.0, 350.0, 350.0] {
            roughly(pace.next_pause(), expected);
        }
        pace.quicken();
        roughly(pace.next_pause(), 100.0);
    }

    #[test]
    fn no_two_runners_keep_step() {
        let pauses: std::collections::HashSet<_> =
            (0..50).map(|_| jittered(Duration::from_secs(1))).collect();
        assert!(pauses.len() > 40);
    }
}
