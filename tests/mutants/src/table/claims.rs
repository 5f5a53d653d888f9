//! Claims: who may work on what, and what is built.

use crate::mutant::{Mutant, by, edit};

const CLAIM: &str = "sql/claim.sql";
const DECISION: &str = "src/core/decision.rs";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "no_skip_locked",
        breaks: "A claim passes over rows that somebody holds.",
        edits: &[edit(
            CLAIM,
            "order by w.due_at limit least(v_room, claim_batch.batch_size - cardinality(v_ids)) for update skip locked);\n    v_ids := v_ids || v_more;",
            "order by w.due_at limit least(v_room, claim_batch.batch_size - cardinality(v_ids)) for update);\n    v_ids := v_ids || v_more;",
        )],
        killer: by(
            "database",
            "open_transactions::a_row_that_stays_locked_before_its_claim_is_passed_over_and_paid_later",
        ),
    },
    Mutant {
        name: "far_lease_strands",
        breaks: "A lease that ends further ahead than its longest legal value counts as over.",
        edits: &[edit(
            CLAIM,
            "w.attempt > 0 and w.due_at > v_far\n",
            "w.attempt > 0 and w.due_at is null\n",
        )],
        killer: by(
            "database",
            "clock::a_clock_that_jumps_a_day_back_and_ahead_builds_nothing_anew_and_strands_nothing",
        ),
    },
    Mutant {
        name: "far_due_strands",
        breaks: "A due time further ahead than its longest legal value counts as passed.",
        edits: &[edit(
            CLAIM,
            "w.attempt = 0 and w.due_at > v_far and",
            "w.attempt = 0 and w.due_at is null and",
        )],
        killer: by(
            "database",
            "clock::a_clock_that_jumps_a_day_back_and_ahead_builds_nothing_anew_and_strands_nothing",
        ),
    },
    Mutant {
        name: "built_on_a_stale_chain",
        breaks: "Nothing is built while the followed chain is stale.",
        edits: &[edit(
            DECISION,
            "if tip.0 < facts.now_ms.saturating_sub(facts.freshness_ms) {",
            "if tip.0 < i64::MIN.saturating_sub(facts.freshness_ms) {",
        )],
        killer: by(
            "database",
            "clock::a_clock_that_stays_a_day_off_pays_all_the_same_or_waits",
        ),
    },
    Mutant {
        name: "never_offered_again",
        breaks: "A withdrawal claimed again in signing is offered the same digest again.",
        edits: &[edit(
            DECISION,
            "if envelope.live && !paused && !is_over(envelope, tip) => NextStep::Sign,",
            "if envelope.live && !paused && !is_over(envelope, tip) => NextStep::Build,",
        )],
        killer: by(
            "database",
            "lost_commits::a_claim_whose_commit_is_lost_hands_out_no_digest_and_the_same_one_is_offered_later",
        ),
    },
];
