//! How each kind of fault is done, by whom it strikes.

mod chain;
mod database;
mod nodes;
mod people;
mod runners;
mod server;

pub use database::count_expired_leases;
pub use server::logged;

use crate::kind::Kind;
use crate::schedule::Strike;
use crate::stage::{Stage, Undo};

impl Stage {
    /// Does what the schedule says for this step.
    pub fn strike(&mut self, step: u64, strike: Strike) {
        let Strike { kind, draw } = strike;
        match kind {
            Kind::Killed | Kind::Frozen | Kind::Terminated | Kind::CrashPoint => {
                runners::strike(self, step, kind, draw);
            }
            Kind::AcceptedInSilence
            | Kind::DroppedInSilence
            | Kind::Refused
            | Kind::RefusedAndKept
            | Kind::FalseWelcome
            | Kind::OddAnswer
            | Kind::Slow
            | Kind::Evicted
            | Kind::LocalOnly
            | Kind::NeverIncluded
            | Kind::Delayed
            | Kind::AtExpiration
            | Kind::RanOut
            | Kind::Reverted
            | Kind::Undecided
            | Kind::Resigned
            | Kind::BadBlock
            | Kind::Behind
            | Kind::OtherBackend
            | Kind::Leaked => nodes::strike(self, kind, draw),
            Kind::CutOff | Kind::Reorganised | Kind::MissedSlots | Kind::Stalled => {
                chain::strike(self, step, kind, draw);
            }
            Kind::CutCommit | Kind::BackendTerminated => database::strike(self, kind, draw),
            Kind::Paused | Kind::MarginChanged | Kind::Cancelled => {
                people::strike(self, step, kind, draw)
            }
            Kind::ServerStopped
            | Kind::DiskFull
            | Kind::ReplicationCancelled
            | Kind::ClockJumped
            | Kind::TimedOut
            | Kind::Deadlocked
            | Kind::ObserversSwitched => server::strike(self, step, kind, draw),
            Kind::DuplicateSubmit
            | Kind::ConflictingSubmit
            | Kind::LeaseExpired
            | Kind::EnvelopeExpired
            | Kind::FollowerAlarmed => {
                unreachable!("{kind} follows from others, and is never scheduled")
            }
        }
    }

    /// Puts back what is due at this step; everything, at `u64::MAX`.
    pub fn put_back(&mut self, step: u64) {
        let (mut due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.undo)
            .into_iter()
            .partition(|(at, _)| *at <= step);
        self.undo = rest;
        // The rest needs a server that answers.
        due.sort_by_key(|(_, undo)| match undo {
            Undo::Disk => 0,
            Undo::Server => 1,
            Undo::Replication => 2,
            Undo::Hostile => 3,
            _ => 4,
        });
        for (_, undo) in due {
            match undo {
                Undo::Thaw(worker) => self.workers[worker].thaw(),
                Undo::Start(worker) => self.start(worker),
                Undo::Node(_) | Undo::Solidity => chain::put_back(self, &undo),
                Undo::Resume { .. } => people::put_back(self, step, undo),
                Undo::Clock
                | Undo::Hostile
                | Undo::Replication
                | Undo::Observers
                | Undo::Server
                | Undo::Disk => server::put_back(self, step, undo),
            }
        }
    }

    /// What follows from faults by itself: processes that have ended, leases that ran out, wallets that paused themselves.
    pub fn look_around(&mut self, step: u64) {
        runners::look(self, step);
        people::look(self, step);
        server::cancel_waits(self);
    }
}
