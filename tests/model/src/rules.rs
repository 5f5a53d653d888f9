//! The rules: the decisions of sluice-core, called as SQL calls them, and for each mutation the one call that it replaces.
//! Without a mutation every function here is the call itself.

use sluice_core::block::ReceiptVerdict;
use sluice_core::broadcast::BroadcastVerdict;
use sluice_core::chain::ChainTime;
use sluice_core::decision::{
    self, Brake, BuildFacts, Coverage, EnvelopeFacts, Fate, Hold, Inclusion, NextStep, Progress,
    Settlement,
};
use sluice_core::state::State;

use crate::world::{Answer, TICK_MS};

/// One rule broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// An envelope is taken for dead once the database's clock has passed its expiration.
    RebuildOnWallClock,
    /// An envelope is taken for dead when a node calls it expired.
    RebuildOnANodesWord,
    /// An envelope is taken for dead as soon as the next block could only be stamped at or past its expiration: as if the block's
    /// own time counted.
    JudgeByTheBlocksOwnTime,
    /// What the first block at or past the expiration holds is passed over: the same error on the side of the match.
    ClosingBlockUnread,
    /// In `signing` an envelope without a signature is taken for one that nobody signed.
    RebuildWhileLiveInSigning,
    /// What no node was seen to take is taken for never sent.
    NeverAcceptedIsNeverSent,
    /// A refusal fails the withdrawal.
    FailOnARefusal,
    /// DUP confirms the withdrawal.
    DupIsPaid,
    /// The sweep comes before the match.
    SweepBeforeMatch,
    /// The envelope is filed with its signature, and not before its digest is handed out.
    SkipTheWriteAhead,
    /// Bytes are sent before the intent is on file.
    SendBeforeTheIntent,
    /// The token is not compared. (A lease in its place is the same: its end, by whatever clock, is at any time.)
    IgnoreTheToken,
    /// A success that is not deep enough is no inclusion yet.
    ShallowIsNotIncluded,
    /// A success confirms at whatever depth.
    ConfirmAtAnyDepth,
    /// The follower reads up to the head.
    FollowTheHead,
    /// A person may cancel while an envelope is live.
    CancelWhileLive,
    /// A receipt that says nothing is taken for a failure.
    UndecidedIsFailed,
    /// A failed receipt is taken for a death like any other: built anew at once, in the same slot.
    RebuildInTheSameSlot,
    /// A success that waits for its depth is not looked at again.
    ForgetTheDepth,
    /// Only what was signed is swept.
    SweepOnlyWhatWasSigned,
    /// A cancellation while an envelope is live is taken in, and forgotten.
    ForgetTheWish,
}

/// The decisions, one of them perhaps broken.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Which.
    pub mutation: Option<Mutation>,
    /// Whether the guard stands behind what SQL does. It judges by sluice-core alone.
    pub guard: bool,
}

impl Rules {
    /// As shipped.
    #[must_use]
    pub const fn shipped() -> Self {
        Self {
            mutation: None,
            guard: true,
        }
    }

    /// One rule broken, and the guard's share of it with it.
    #[must_use]
    pub const fn broken(mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            guard: false,
        }
    }

    /// One rule of the functions broken, and the guard whole, so that workers may lie.
    #[must_use]
    pub const fn guarded(mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            guard: true,
        }
    }

    /// Whether this rule is broken.
    #[must_use]
    pub fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// `may_build`.
    pub fn may_build(&self, facts: &BuildFacts) -> Result<(), Hold> {
        let facts = BuildFacts {
            last_slot: facts
                .last_slot
                .filter(|_| !self.breaks(Mutation::RebuildInTheSameSlot)),
            ..*facts
        };
        decision::may_build(&facts).map(|_| ())
    }

    /// `next_step`. The chain time between two sends is a tick. What mutations believe over never gets here.
    #[must_use]
    pub fn next_step(
        self,
        state: State,
        built: i32,
        envelope: Option<&EnvelopeFacts>,
        tip: ChainTime,
        brake: Brake,
    ) -> NextStep {
        let brake = if brake == Brake::Cancelled && self.breaks(Mutation::ForgetTheWish) {
            Brake::Free
        } else {
            brake
        };
        decision::next_step(state, built, envelope, Some(tip), TICK_MS, brake)
    }

    /// `is_spent`, of a newest envelope as it stands on file. `looks_over` says what else might be believed of it.
    #[must_use]
    pub fn is_spent(&self, fate: &Fate, looks_over: &LooksOver) -> bool {
        decision::is_spent(fate)
            || self.breaks(Mutation::RebuildOnWallClock) && looks_over.by_the_clock
            || self.breaks(Mutation::RebuildWhileLiveInSigning) && looks_over.unsigned
            || self.breaks(Mutation::NeverAcceptedIsNeverSent) && looks_over.never_accepted
            || self.breaks(Mutation::UndecidedIsFailed)
                && matches!(fate, Fate::Included(inclusion) if inclusion.receipt.verdict() == ReceiptVerdict::Undecided)
    }

    /// `fate`, for the sweep.
    #[must_use]
    pub fn fate(
        &self,
        expiration: ChainTime,
        coverage: &Coverage,
        tip: ChainTime,
        inclusion: Option<Inclusion>,
    ) -> Fate {
        match decision::fate(expiration, coverage, inclusion) {
            Fate::InFlight
                if self.breaks(Mutation::JudgeByTheBlocksOwnTime)
                    && tip.0 + TICK_MS >= expiration.0
                    && coverage.last > coverage.reference =>
            {
                Fate::Dead {
                    first: coverage.reference,
                    last: coverage.last,
                }
            }
            fate => fate,
        }
    }

    /// `settle`.
    #[must_use]
    pub fn settle(&self, fate: &Fate, progress: &Progress) -> Settlement {
        let progress = if self.breaks(Mutation::ConfirmAtAnyDepth) {
            Progress {
                depth: 0,
                ..*progress
            }
        } else {
            *progress
        };
        let progress = Progress {
            cancelled: progress.cancelled && !self.breaks(Mutation::ForgetTheWish),
            ..progress
        };
        match decision::settle(fate, &progress) {
            Settlement::Park if self.breaks(Mutation::UndecidedIsFailed) => Settlement::Fail,
            settlement => settlement,
        }
    }

    /// `owns`. A current token is written 1, a stale one 0.
    #[must_use]
    pub fn owns(&self, current: bool, expected: State, state: State) -> bool {
        let token = i64::from(current || self.breaks(Mutation::IgnoreTheToken));
        decision::owns(token, expected, 1, state)
    }

    /// What a node's answer moves a withdrawal to that is being sent.
    #[must_use]
    pub fn moved_by(&self, state: State, answer: Answer) -> Option<State> {
        let verdict = answer.code().verdict();
        match (verdict, answer) {
            (BroadcastVerdict::Refused, _) if self.breaks(Mutation::FailOnARefusal) => {
                Some(State::Failed)
            }
            (_, Answer::Expired) if self.breaks(Mutation::RebuildOnANodesWord) => {
                Some(State::Signing)
            }
            (_, Answer::Dup) if self.breaks(Mutation::DupIsPaid) => Some(State::Confirmed),
            (BroadcastVerdict::Accepted, _) if state == State::Broadcasting => {
                Some(State::Broadcast)
            }
            _ => None,
        }
    }
}

/// What might be believed of an envelope that no block has decided.
#[derive(Debug, Clone, Copy)]
pub struct LooksOver {
    /// The database's clock is past its expiration.
    pub by_the_clock: bool,
    /// The withdrawal is in `signing`: no signature is on file.
    pub unsigned: bool,
    /// No node was seen to take it.
    pub never_accepted: bool,
}
