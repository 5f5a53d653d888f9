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
            "rules",
            "calls::what_somebody_holds_is_passed_over_by_a_claim_that_hands_out_all_else",
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
            "rules",
            "calls::a_time_further_ahead_than_any_legal_one_was_written_by_a_clock_that_jumped_and_counts_as_passed",
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
            "rules",
            "calls::a_time_further_ahead_than_any_legal_one_was_written_by_a_clock_that_jumped_and_counts_as_passed",
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
            "rules",
            "calls::nothing_is_built_while_the_newest_followed_block_is_old",
        ),
    },
    Mutant {
        name: "never_offered_again",
        breaks: "A withdrawal claimed again in signing is offered the same digest again.",
        edits: &[edit(
            DECISION,
            "!is_over(envelope, tip) => {\n                NextStep::Sign",
            "!is_over(envelope, tip) => {\n                NextStep::Build",
        )],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "lease_ignored",
        breaks: "What is leased is nobody else's until the lease is over.",
        edits: &[edit(
            CLAIM,
            "w.attempt > 0 and w.due_at <= v_now\n",
            "w.attempt > 0 and w.due_at <= v_now + interval '1 hour'\n",
        )],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "lease_by_the_chains_clock",
        breaks: "Leases use the database's own clock.",
        edits: &[edit(
            CLAIM,
            "then v_now + claim_rows.lease\n",
            "then to_timestamp(v_tip.timestamp_ms / 1000.0) + claim_rows.lease\n",
        )],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "token_not_raised",
        breaks: "Each claim raises the fencing token: it tells who really owns the row.",
        edits: &[edit(
            CLAIM,
            "fencing_token = w.fencing_token + case when o.step in ('build', 'sign', 'send') then 1 else 0 end",
            "fencing_token = w.fencing_token + case when o.step = 'build' then 1 else 0 end",
        )],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "built_anew_while_one_is_live",
        breaks: "No second envelope while one is live, in signing too, whatever anyone believes was signed.",
        edits: &[
            edit(
                DECISION,
                "Some(envelope) if envelope.spent => NextStep::Build,",
                "Some(envelope) if envelope.spent || !envelope.signed => NextStep::Build,",
            ),
            edit(
                CLAIM,
                "e.txid is null or sluice.is_spent(e.fate, e.receipt) as spent,",
                "true as spent,",
            ),
            edit(
                "sql/guard.sql",
                "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 0",
                "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 1",
            ),
            edit(
                "sql/guard_envelopes.sql",
                "and not sluice.is_spent(v.fate, v.receipt))\n             then 'another envelope",
                "and v.fate is not null and not sluice.is_spent(v.fate, v.receipt))\n             then 'another envelope",
            ),
            edit(
                "sql/tables.sql",
                "create unique index envelopes_one_live",
                "create index envelopes_one_live",
            ),
        ],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "a_bad_row_stops_all",
        breaks: "One bad row stops itself.",
        edits: &[edit(
            CLAIM,
            "        perform sluice.set_aside(v_ids[i], v_code || ' ' || v_message);\n",
            "        raise;\n",
        )],
        killer: by(
            "rules",
            "calls::a_row_that_raises_is_put_off_and_all_others_in_its_batch_go_on",
        ),
    },
    Mutant {
        name: "a_bad_row_is_not_put_off",
        breaks: "One bad row gets its error and a back-off.",
        edits: &[edit(
            CLAIM,
            "        perform sluice.set_aside(v_ids[i], v_code || ' ' || v_message);\n",
            "        null;\n",
        )],
        killer: by(
            "rules",
            "calls::a_row_that_raises_is_put_off_and_all_others_in_its_batch_go_on",
        ),
    },
    Mutant {
        name: "sent_without_intent",
        breaks: "broadcasting is committed before a byte leaves, by a claim too.",
        edits: &[edit(
            CLAIM,
            "             when o.step = 'send' and o.was = 'signed' then array['broadcasting']\n",
            "",
        )],
        killer: by(
            "rules",
            "calls::a_pause_holds_signing_and_first_sends_and_a_resumption_commits_to_sending_before_it_sends",
        ),
    },
    Mutant {
        name: "wallets_pause_ignored",
        breaks: "A pause of a wallet holds what it pays.",
        edits: &[edit(
            "sql/setup.sql",
            "and (p.wallet is null or p.wallet = is_paused.wallet)",
            "and p.wallet is null",
        )],
        killer: by(
            "rules",
            "calls::a_pause_holds_signing_and_first_sends_and_a_resumption_commits_to_sending_before_it_sends",
        ),
    },
    Mutant {
        name: "offered_past_its_time",
        breaks: "An envelope at or past its expiration is neither signed nor sent.",
        edits: &[edit(
            DECISION,
            "tip.is_some_and(|tip| tip >= envelope.expiration)",
            "tip.is_some_and(|tip| tip.0 == i64::MAX && tip >= envelope.expiration)",
        )],
        killer: by(
            "rules",
            "calls::what_is_past_its_time_is_neither_signed_nor_sent_while_its_death_is_not_proven",
        ),
    },
    Mutant {
        name: "never_sent_again",
        breaks: "The same bytes are sent again, in broadcast too, until included or dead.",
        edits: &[
            edit(
                DECISION,
                "State::Signed | State::Broadcasting | State::Broadcast => match envelope {",
                "State::Signed | State::Broadcasting => match envelope {",
            ),
            edit(
                DECISION,
                "State::Confirmed | State::Failed | State::Rejected => NextStep::Wait,",
                "State::Broadcast | State::Confirmed | State::Failed | State::Rejected => NextStep::Wait,",
            ),
        ],
        killer: by(
            "rules",
            "calls::what_a_node_took_is_sent_again_after_the_interval_and_no_sooner",
        ),
    },
    Mutant {
        name: "cancelled_while_one_is_live",
        breaks: "A cancellation while an envelope is live is a wish.",
        edits: &[
            edit(
                "sql/ending.sql",
                "and not sluice.is_spent(e.fate, e.receipt)) then w.state",
                "and not sluice.is_spent(e.fate, e.receipt) and e.attempt = 0) then w.state",
            ),
            edit(
                "sql/guard.sql",
                "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 0",
                "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 1",
            ),
        ],
        killer: by(
            "rules",
            "calls::what_an_envelope_can_still_pay_is_cancelled_by_its_death_and_no_sooner",
        ),
    },
    Mutant {
        name: "no_skip_locked_under_way",
        breaks: "A claim passes over rows that somebody holds, those under way too.",
        edits: &[edit(
            CLAIM,
            "     order by w.due_at limit claim_batch.batch_size for update skip locked);",
            "     order by w.due_at limit claim_batch.batch_size for update);",
        )],
        killer: by(
            "rules",
            "calls::what_somebody_holds_is_passed_over_by_a_claim_that_hands_out_all_else",
        ),
    },
];
