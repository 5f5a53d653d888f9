//! Intake: an id means one thing, for ever.

use crate::mutant::{Mutant, by, edit};

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "intake_conflict_not_compared",
        breaks: "The same id with another meaning is an error, in races too.",
        edits: &[edit(
            "sql/guard.sql",
            "where d.differs <> ''",
            "where d.differs = 'nothing'",
        )],
        killer: by(
            "clients",
            "twins::a_twin_waits_for_the_first_and_is_its_replay_its_heir_or_its_conflict",
        ),
    },
    Mutant {
        name: "intake_looks_before_it_waits",
        breaks: "What was proposed is compared after every wait for a concurrent insert is over.",
        edits: &[edit(
            "src/pg/intake.rs",
            "        if stored.remove(&proposal.operation_id) {\n",
            "        if stored.remove(&proposal.operation_id) || proposal.account.is_none() {\n",
        )],
        killer: by(
            "clients",
            "twins::a_twin_waits_for_the_first_and_is_its_replay_its_heir_or_its_conflict",
        ),
    },
];
