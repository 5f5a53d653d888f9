//! How long a task is ours, by a clock that nobody sets: from before the call that claimed it, for the length of the lease.
//! The database counts from a later moment (inside that call), so ours never outlives its.

use std::time::Duration;

/// A moment on a clock that never goes back and that also counts while the machine sleeps: a suspended laptop or a paused
/// virtual machine wakes up with its leases over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        // CLOCK_MONOTONIC stands still while Linux is suspended, CLOCK_BOOTTIME does not (clock_gettime(2)).
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        let read = rustix::time::clock_gettime(clock);
        let seconds = u64::try_from(read.tv_sec).expect("time since boot is not negative");
        let nanos =
            u32::try_from(read.tv_nsec).expect("a timespec's nanoseconds are below a billion");
        Self(Duration::new(seconds, nanos))
    }

    /// The moment this much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// How long until this moment; zero once it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }

    /// How long ago this moment was; zero while it lies ahead.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// The time in which a claimed task may be worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    until: Moment,
    length: Duration,
}

impl Lease {
    /// A lease of this length whose claim began at `start`.
    #[must_use]
    pub fn starting(start: Moment, length: Duration) -> Self {
        Self {
            until: start.plus(length),
            length,
        }
    }

    /// What is left of it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.remaining()
    }

    /// Whether the task is still ours.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Whether enough is left to begin sending: a request that the lease's end would cut off at once tells nothing.
    #[must_use]
    pub fn has_time_to_send(&self) -> bool {
        self.remaining() > (self.length / 10).min(Duration::from_secs(1))
    }

    /// How long it was to begin with.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_over_when_its_length_has_passed_since_the_claim_began() {
        let begun = Moment::now();
        let fresh = Lease::starting(begun, Duration::from_secs(60));
        assert!(fresh.holds() && fresh.has_time_to_send());
        assert!(fresh.remaining() <= Duration::from_secs(60));
        let over = Lease::starting(begun, Duration::ZERO);
        assert!(!over.holds() && !over.has_time_to_send());
    }

    #[test]
    fn the_last_tenth_of_a_lease_is_no_time_to_begin_a_send() {
        let lease = Lease {
            until: Moment::now().plus(Duration::from_millis(900)),
            length: Duration::from_secs(30),
        };
        assert!(lease.holds() && !lease.has_time_to_send());
    }
}
