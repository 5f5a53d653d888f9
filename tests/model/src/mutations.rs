//! Every mutation with what it breaks. The checker finds each of these counterexamples, or the test fails.

use crate::config::{Config, SMALL, SMALL_AND_DEEP};
use crate::model::promise::{
    ANNOUNCED_FIRST, CONFIRMED_IS_PAID, ENDED_IS_UNPAID, ENDS, FENCED, FILED_FIRST,
    NOTHING_REFUSED, ONE_AT_A_TIME, PAID_ONCE, WISH_IS_KEPT,
};
use crate::rules::{Mutation, Rules};

/// A mutation, where it is looked for, and what is found.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The rule broken.
    pub mutation: Mutation,
    /// Where.
    pub config: Config,
    /// What no longer holds.
    pub breaks: &'static [&'static str],
    /// Whether all else still holds, in every state: another rule stands behind this one.
    pub nothing_else: bool,
    /// Whether the guard alone, with this rule of the functions broken, still keeps the money.
    pub guard_holds: bool,
}

/// The promises that money hangs on.
pub const MONEY: [&str; 4] = [PAID_ONCE, ONE_AT_A_TIME, CONFIRMED_IS_PAID, ENDED_IS_UNPAID];

const fn pays_twice(mutation: Mutation) -> Case {
    Case {
        mutation,
        config: SMALL,
        breaks: &[PAID_ONCE, ONE_AT_A_TIME, ENDED_IS_UNPAID],
        nothing_else: false,
        guard_holds: true,
    }
}

const fn lies_about(mutation: Mutation, breaks: &'static [&'static str]) -> Case {
    Case {
        breaks,
        ..pays_twice(mutation)
    }
}

const fn only_breaks(mutation: Mutation, breaks: &'static [&'static str]) -> Case {
    Case {
        breaks,
        nothing_else: true,
        guard_holds: false,
        ..pays_twice(mutation)
    }
}

/// Where the guard is blind: it reads the same file.
const fn blinds_the_guard(case: Case) -> Case {
    Case {
        guard_holds: false,
        ..case
    }
}

const fn deep(case: Case) -> Case {
    Case {
        config: SMALL_AND_DEEP,
        ..case
    }
}

/// All of them.
pub const CASES: [Case; 21] = [
    pays_twice(Mutation::RebuildOnWallClock),
    pays_twice(Mutation::RebuildOnANodesWord),
    pays_twice(Mutation::JudgeByTheBlocksOwnTime),
    blinds_the_guard(pays_twice(Mutation::ClosingBlockUnread)),
    pays_twice(Mutation::RebuildWhileLiveInSigning),
    pays_twice(Mutation::NeverAcceptedIsNeverSent),
    lies_about(Mutation::FailOnARefusal, &[ENDED_IS_UNPAID]),
    lies_about(Mutation::DupIsPaid, &[CONFIRMED_IS_PAID]),
    pays_twice(Mutation::SweepBeforeMatch),
    blinds_the_guard(lies_about(
        Mutation::SkipTheWriteAhead,
        &[PAID_ONCE, ONE_AT_A_TIME, ENDED_IS_UNPAID, FILED_FIRST],
    )),
    only_breaks(Mutation::SendBeforeTheIntent, &[ANNOUNCED_FIRST]),
    only_breaks(Mutation::IgnoreTheToken, &[FENCED]),
    deep(pays_twice(Mutation::ShallowIsNotIncluded)),
    deep(lies_about(
        Mutation::ConfirmAtAnyDepth,
        &[CONFIRMED_IS_PAID],
    )),
    blinds_the_guard(lies_about(
        Mutation::FollowTheHead,
        &[PAID_ONCE, ONE_AT_A_TIME, CONFIRMED_IS_PAID, ENDED_IS_UNPAID],
    )),
    lies_about(Mutation::CancelWhileLive, &[ENDED_IS_UNPAID]),
    lies_about(Mutation::UndecidedIsFailed, &[ENDED_IS_UNPAID]),
    only_breaks(Mutation::RebuildInTheSameSlot, &[NOTHING_REFUSED]),
    deep(only_breaks(Mutation::ForgetTheDepth, &[ENDS])),
    only_breaks(Mutation::SweepOnlyWhatWasSigned, &[ENDS]),
    only_breaks(Mutation::ForgetTheWish, &[WISH_IS_KEPT]),
];

impl Case {
    /// The rules with this one broken, and the guard's share of it.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        Rules::broken(self.mutation)
    }
}
