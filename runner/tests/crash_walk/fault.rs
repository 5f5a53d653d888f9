//! What the nodes do to a withdrawal while its runners come to grief.

use std::ops::RangeInclusive;

use sluice_mock_node::{Fault, Rule, Silence};
use uuid::Uuid;

/// A misfortune of one withdrawal's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFault {
    /// None: the nodes do as they should.
    Honest,
    /// The first send is taken, and no answer comes.
    AcceptedInSilence,
    /// The first send is not looked at, and no answer comes.
    DroppedInSilence,
    /// The first two sends are refused.
    Refused,
    /// The first send is refused in words, and taken in fact.
    RefusedAndKept,
    /// The first send is taken with SUCCESS, and every pool loses it before a block has it.
    Evicted,
    /// The first send is answered DUP by a node that never had it.
    FalseDuplicate,
    /// The first send is answered with a code that nobody knows, and not looked at.
    UnknownCode,
    /// No block ever takes the first transaction: it dies, and another is built.
    NeverIncluded,
    /// The node that shows the blocks, and takes every second send, is some blocks behind the other.
    Lagging,
}

impl NodeFault {
    pub const ALL: [Self; 10] = [
        Self::Honest,
        Self::AcceptedInSilence,
        Self::DroppedInSilence,
        Self::Refused,
        Self::RefusedAndKept,
        Self::Evicted,
        Self::FalseDuplicate,
        Self::UnknownCode,
        Self::NeverIncluded,
        Self::Lagging,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::AcceptedInSilence => "accepted-in-silence",
            Self::DroppedInSilence => "dropped-in-silence",
            Self::Refused => "refused",
            Self::RefusedAndKept => "refused-and-kept",
            Self::Evicted => "evicted",
            Self::FalseDuplicate => "false-duplicate",
            Self::UnknownCode => "unknown-code",
            Self::NeverIncluded => "never-included",
            Self::Lagging => "lagging",
        }
    }

    /// What strikes the withdrawal's sends, for those faults that do.
    pub fn rule(self, operation_id: Uuid) -> Option<Rule> {
        let (fault, times) = match self {
            Self::Honest | Self::NeverIncluded | Self::Lagging => return None,
            Self::AcceptedInSilence => (Fault::AcceptThenTimeout { how: Silence::Hold }, 1),
            Self::DroppedInSilence => (
                Fault::DropThenTimeout {
                    how: Silence::Close,
                },
                1,
            ),
            Self::Refused => (answer("SIGERROR", false), 2),
            Self::RefusedAndKept => (answer("OTHER_ERROR", true), 1),
            Self::Evicted => (Fault::Evict { after_ms: 0 }, 1),
            Self::FalseDuplicate => (answer("DUP_TRANSACTION_ERROR", false), 1),
            Self::UnknownCode => (answer("A_CODE_OF_TOMORROW", false), 1),
        };
        Some(Rule::new(fault).operation(operation_id).times(times))
    }

    /// How many transactions it takes to pay.
    pub const fn transactions(self) -> RangeInclusive<usize> {
        match self {
            Self::NeverIncluded => 2..=2,
            Self::Honest
            | Self::AcceptedInSilence
            | Self::DroppedInSilence
            | Self::Refused
            | Self::RefusedAndKept
            | Self::Evicted
            | Self::FalseDuplicate
            | Self::UnknownCode
            | Self::Lagging => 1..=1,
        }
    }
}

fn answer(code: &str, keep: bool) -> Fault {
    Fault::Answer {
        code: code.to_owned(),
        message: String::new(),
        keep,
        result: None,
    }
}
