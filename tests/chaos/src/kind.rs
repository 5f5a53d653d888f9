//! The kinds of faults: what each is called, which runs it belongs to, and how often it strikes.

use std::fmt;

/// Which run a fault belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every run.
    Short,
    /// Only a run that may stop the server, fill its disk or turn its clock.
    ServerWide,
}

/// Makes the enum and its table from one list: name, reach, steps in which it strikes once.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $name:literal, $reach:ident, $every:literal;)*) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// What it is called, in counts and as the label of the network's rules.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Which runs it belongs to.
            #[must_use]
            pub const fn reach(self) -> Reach {
                match self { $(Self::$kind => Reach::$reach,)* }
            }

            /// It strikes once in so many steps; 0: it follows from others, and is only counted.
            #[must_use]
            pub const fn every(self) -> u64 {
                match self { $(Self::$kind => $every,)* }
            }
        }
    };
}

kinds! {
    // Runners.
    /// SIGKILL, and a new process a little later.
    Killed = "runner killed", Short, 9;
    /// SIGSTOP, and SIGCONT some steps later: past its leases, and at times past its envelopes.
    Frozen = "runner frozen", Short, 8;
    /// SIGTERM, and a new process at once.
    Terminated = "runner terminated", Short, 30;
    /// SIGKILL of itself at a crash point.
    CrashPoint = "runner killed at a crash point", Short, 12;
    // What nodes answer.
    /// The node takes the transaction and does not answer.
    AcceptedInSilence = "accepted, no answer", Short, 3;
    /// The node drops the transaction and does not answer.
    DroppedInSilence = "dropped, no answer", Short, 3;
    /// A refusal, and the node does not have it.
    Refused = "refused", Short, 2;
    /// A refusal, and the node has it.
    RefusedAndKept = "refused, and kept", Short, 3;
    /// SUCCESS or DUP for what the node does not have, or a code that nobody knows.
    FalseWelcome = "accepted by word only", Short, 6;
    /// No answer of java-tron's: HTTP errors, `{}`, another txid, half a body.
    OddAnswer = "odd answer", Short, 4;
    /// An answer that takes its time.
    Slow = "slow answer", Short, 6;
    // What becomes of transactions.
    /// Taken, and later lost by every pool.
    Evicted = "lost by every pool", Short, 5;
    /// Taken, and no peer learns of it.
    LocalOnly = "kept from peers", Short, 6;
    /// Producers leave it out.
    NeverIncluded = "left out by producers", Short, 5;
    /// Producers hold it back.
    Delayed = "held back by producers", Short, 6;
    /// It comes in the last block that may hold it.
    AtExpiration = "included at expiration", Short, 12;
    /// It fails on chain for want of energy or time.
    RanOut = "failed receipt, transient", Short, 6;
    /// It fails on chain for good.
    Reverted = "failed receipt", Short, 12;
    /// The chain does not say what became of it.
    Undecided = "receipt that says nothing", Short, 40;
    /// Included with another form of its signature.
    Resigned = "other signature on chain", Short, 12;
    // What nodes show of the chain.
    /// A block whose bytes do not hold.
    BadBlock = "bad block", Short, 6;
    /// A node behind the others.
    Behind = "node behind", Short, 8;
    /// Another node's view behind the same address.
    OtherBackend = "other backend", Short, 8;
    /// Blocks above the solid head.
    Leaked = "unsolid blocks shown", Short, 5;
    /// A node without peers, or without gossip.
    CutOff = "node cut off", Short, 14;
    // The chain.
    /// A reorganisation below the solid head, with transactions moved, lost or ended otherwise.
    Reorganised = "reorganisation", Short, 7;
    /// Slots without a block.
    MissedSlots = "missed slots", Short, 6;
    /// Nothing becomes solid for a while.
    Stalled = "solidity stalled", Short, 33;
    // The database, one session at a time.
    /// COMMIT sent, connection cut before it or before its answer, or the answer held back.
    CutCommit = "COMMIT without an answer", Short, 3;
    /// A backend terminated.
    BackendTerminated = "backend terminated", Short, 6;
    // People.
    /// The same submit again, also at the same time.
    DuplicateSubmit = "duplicate submit", Short, 0;
    /// The same id with another meaning.
    ConflictingSubmit = "conflicting submit", Short, 0;
    /// Paused, and resumed some steps later.
    Paused = "paused and resumed", Short, 16;
    /// Another number of blocks to wait for beyond an envelope's end.
    MarginChanged = "margin changed", Short, 20;
    /// A withdrawal cancelled, as far as the database lets it.
    Cancelled = "cancel tried", Short, 10;
    // What follows.
    /// A lease ran out under its worker.
    LeaseExpired = "lease expired", Short, 0;
    /// An envelope died.
    EnvelopeExpired = "envelope expired", Short, 0;
    /// The follower that reads one node only stopped with an alarm, and was started on another node.
    FollowerAlarmed = "follower alarmed", Short, 0;
    // The whole server.
    /// Stopped with `immediate`, and started again.
    ServerStopped = "server stopped", ServerWide, 60;
    /// Not a byte left under the database.
    DiskFull = "disk full", ServerWide, 70;
    /// A wait for synchronous replication cancelled.
    ReplicationCancelled = "replication wait cancelled", ServerWide, 35;
    /// The database's clock a day ahead, or behind.
    ClockJumped = "clock jumped", ServerWide, 30;
    /// A session that holds locks until others' time-outs strike.
    TimedOut = "statement or lock timed out", ServerWide, 28;
    /// A session that locks in the wrong order.
    Deadlocked = "deadlock", ServerWide, 10;
    /// One observer, then two, then one.
    ObserversSwitched = "observers switched", ServerWide, 40;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
