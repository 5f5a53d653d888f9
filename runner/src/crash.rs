//! Crash points: the named places where a test may stop, pause or kill the runner. Without the feature `failpoints`, as in
//! every release build, a point is an empty function.
//!
//! With the feature, the environment variable `FAILPOINTS` says what happens where, in the words of the crate `fail`:
//! `FAILPOINTS="send.before=return(kill)"`. Besides that crate's own actions (`pause`, `sleep(ms)`, `panic`, counts such
//! as `3*off->return(kill)`) a point knows `return(kill)` (SIGKILL to ourselves: nothing is flushed, closed or unwound),
//! `return(abort)` and `return(stop)` (SIGSTOP to ourselves, until somebody sends SIGCONT). Each says on standard error
//! that it was reached, so that a test can wait for it.

#[cfg(feature = "failpoints")]
use rustix::process::{Signal, getpid, kill_process};

/// Makes the enum, the list of all its points and their names from one table.
macro_rules! points {
    ($($(#[doc = $doc:literal])* $point:ident = $name:literal,)*) => {
        /// A place where a test may strike.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Point {
            $($(#[doc = $doc])* $point,)*
        }

        impl Point {
            /// Every point, in the order in which a withdrawal meets them.
            pub const ALL: &[Self] = &[$(Self::$point,)*];

            /// The name that `FAILPOINTS` uses.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// Tasks were answered, their lease is not committed.
    ClaimBeforeCommit = "claim.before_commit",
    /// The lease is committed, nothing is known outside this process.
    ClaimAfterCommit = "claim.after_commit",
    /// A digest is about to be handed to a signer.
    SignBefore = "sign.before",
    /// The signer has answered, nothing is on file.
    SignAfter = "sign.after",
    /// Signatures are handed in, `broadcasting` is not committed.
    SignaturesBeforeCommit = "signatures.before_commit",
    /// `broadcasting` is committed, no byte has left.
    SignaturesAfterCommit = "signatures.after_commit",
    /// The last moment before the lease is looked at and a byte leaves.
    SendBefore = "send.before",
    /// The node has answered or not, nothing is on file.
    SendAfter = "send.after",
    /// Answers are handed in, not committed.
    AnswersBeforeCommit = "answers.before_commit",
    /// Answers are committed.
    AnswersAfterCommit = "answers.after_commit",
    /// A task that no signer could do is put off, not committed.
    PostponeBeforeCommit = "postpone.before_commit",
    /// A task that no signer could do is put off.
    PostponeAfterCommit = "postpone.after_commit",
    /// Blocks are in hand and checked, the database has not seen them.
    ObserveBefore = "observe.before",
    /// Blocks are handed in, not committed.
    ObserveBeforeCommit = "observe.before_commit",
    /// Blocks and all that they settled are committed.
    ObserveAfterCommit = "observe.after_commit",
    /// What is held is given back, not committed.
    ReleaseBeforeCommit = "release.before_commit",
    /// What was held is given back.
    ReleaseAfterCommit = "release.after_commit",
}

/// Does what `FAILPOINTS` says for this point, if anything.
#[cfg(feature = "failpoints")]
pub fn point(point: Point) {
    use std::io::Write as _;

    fail::fail_point!(point.name(), |action| {
        // A lock-free write: standard error is unbuffered, and the process may not live to flush anything.
        let mut stderr = std::io::stderr();
        let told = writeln!(
            stderr,
            "crash point {} reached by {}",
            point.name(),
            std::process::id()
        );
        let done = match action.as_deref() {
            Some("kill") => kill_process(getpid(), Signal::KILL).map_err(Into::into),
            Some("stop") => stop(),
            Some("abort") => std::process::abort(),
            other => panic!(
                "crash point {}: {other:?} is not kill, stop or abort",
                point.name()
            ),
        };
        if let (Err(error), _) | (_, Err(error)) = (told, done) {
            panic!("crash point {}: {error}", point.name());
        }
    });
}

/// Stands still here and not a little further: SIGSTOP is the process's, and this thread runs on until one of them, the first
/// as a rule, has taken it off the queue (Linux, `kernel/signal.c`, `complete_signal` and `do_signal_stop`).
#[cfg(feature = "failpoints")]
fn stop() -> std::io::Result<()> {
    const SIGSTOP_PENDING: u64 = 1 << (19 - 1);
    kill_process(getpid(), Signal::STOP)?;
    while cfg!(target_os = "linux") {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let pending = status
            .lines()
            .find_map(|line| line.strip_prefix("ShdPnd:"))
            .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        if pending.is_none_or(|bits| bits & SIGSTOP_PENDING == 0) {
            break;
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Nothing: this build has no crash points.
#[cfg(not(feature = "failpoints"))]
pub const fn point(_: Point) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_crash_point_has_a_name_of_its_own() {
        let names: HashSet<_> = Point::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), Point::ALL.len());
    }
}
