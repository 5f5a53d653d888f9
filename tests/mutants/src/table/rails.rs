//! The ledger's rail: routes, holds, postings, approvals, and cancellations that wait for the chain.

use crate::mutant::{Mutant, by, edit};

const RAILS: &str = "sql/rails.sql";
const CLAIM: &str = "sql/claim.sql";
const GUARD: &str = "sql/guard.sql";
const LEDGER: &str = "sql/guard_ledger.sql";
const APPROVALS: &str = "sql/approvals.sql";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "funds_are_not_asked_for",
        breaks: "A withdrawal that its account cannot cover is rejected.",
        edits: &[
            edit(
                RAILS,
                "from unnest(v_place, v_covered) u (id, covered) where not u.covered);",
                "from unnest(v_place, v_covered) u (id, covered) where false);",
            ),
            edit(
                LEDGER,
                "where a.posted is null or a.posted < sluice.held_of(d.account, d.asset, '{}');",
                "where a.posted is null;",
            ),
            edit(
                LEDGER,
                "where a.posted < sluice.held_of(d.debit, d.asset, v_causes);",
                "where false;",
            ),
        ],
        killer: by(
            "rails",
            "crowd::of_a_thousand_withdrawals_from_one_account_at_once_exactly_those_that_it_covers_are_accepted",
        ),
    },
    Mutant {
        name: "funds_are_asked_for_without_the_lock",
        breaks: "Whoever decides about an account's funds locks the account first.",
        edits: &[edit(LEDGER, "      for no key update;\n", "      ;\n")],
        killer: by(
            "rails",
            "crowd::of_a_thousand_withdrawals_from_one_account_at_once_exactly_those_that_it_covers_are_accepted",
        ),
    },
    Mutant {
        name: "a_hold_is_not_placed",
        breaks: "A withdrawal that names an account holds its funds when it is validated.",
        edits: &[
            edit(CLAIM, "    perform sluice.place_holds(v_fresh);\n", ""),
            edit(
                GUARD,
                "then case when n.account is not null then 'hold' end",
                "then null",
            ),
        ],
        killer: by(
            "rails",
            "external::what_the_chain_paid_is_taken_from_the_account_what_it_refused_is_let_go_and_until_then_it_is_held",
        ),
    },
    Mutant {
        name: "what_was_paid_is_not_taken",
        breaks: "A hold is captured with the state that confirms.",
        edits: &[edit(
            GUARD,
            "(n.state = 'confirmed' or n.state = 'failed' or n.state = 'rejected'));\n  if cardinality(v_over) > 0 then",
            "(n.state = 'failed' or n.state = 'rejected'));\n  if cardinality(v_over) > 0 then",
        )],
        killer: by(
            "rails",
            "external::what_the_chain_paid_is_taken_from_the_account_what_it_refused_is_let_go_and_until_then_it_is_held",
        ),
    },
    Mutant {
        name: "what_failed_stays_held",
        breaks: "A hold is released with the state that fails or rejects.",
        edits: &[edit(
            GUARD,
            "(n.state = 'confirmed' or n.state = 'failed' or n.state = 'rejected'));\n  if cardinality(v_over) > 0 then",
            "n.state = 'confirmed');\n  if cardinality(v_over) > 0 then",
        )],
        killer: by(
            "rails",
            "external::what_the_chain_paid_is_taken_from_the_account_what_it_refused_is_let_go_and_until_then_it_is_held",
        ),
    },
    Mutant {
        name: "rules_are_not_measured_again",
        breaks: "The rule is measured again when a withdrawal is handed to its rail.",
        edits: &[
            edit(
                CLAIM,
                "from sluice.approvals_of(v_fresh) p where p.given < p.needed);",
                "from sluice.approvals_of(v_fresh) p where p.given = 0 and p.needed > 0);",
            ),
            edit(
                GUARD,
                "when 'approvals' then (select p.given < p.needed",
                "when 'approvals' then (select p.given = 0 and p.needed > 0",
            ),
        ],
        killer: by(
            "rails",
            "approvals::a_rule_raised_before_a_withdrawal_is_handed_over_stops_it_and_says_so_and_one_that_is_lowered_lets_it_go",
        ),
    },
    Mutant {
        name: "who_asked_may_approve",
        breaks: "Neither the login that submitted nor requested_by can approve.",
        edits: &[edit(
            APPROVALS,
            "if v_approver = w.requested_by or (not v_voucher and v_approver = w.submitted_by) then",
            "if false then",
        )],
        killer: by(
            "rails",
            "approvals::whoever_asked_for_a_withdrawal_does_not_approve_it_whichever_login_says_so",
        ),
    },
    Mutant {
        name: "sent_on_after_a_cancellation",
        breaks: "A cancellation is a wish that stops further sending.",
        edits: &[edit(
            CLAIM,
            "sluice.is_paused(w.wallet, w.asset), w.cancel_reason is not null) as step",
            "sluice.is_paused(w.wallet, w.asset), false) as step",
        )],
        killer: by(
            "rails",
            "external::what_is_cancelled_while_its_envelope_lives_is_sent_no_more_and_fails_and_is_let_go_after_the_proof",
        ),
    },
    Mutant {
        name: "built_anew_after_a_cancellation",
        breaks: "A cancellation takes effect when the envelope's fate is known.",
        edits: &[edit(
            "sql/observe.sql",
            "w.accepted, w.cancel_reason is not null) as outcome",
            "w.accepted, false) as outcome",
        )],
        killer: by(
            "rails",
            "external::what_is_cancelled_while_its_envelope_lives_is_sent_no_more_and_fails_and_is_let_go_after_the_proof",
        ),
    },
    Mutant {
        name: "a_deposit_is_booked_at_every_repeat",
        breaks: "A deposit is booked once a reference.",
        edits: &[
            edit(
                "sql/ledger.sql",
                "as $$ select sluice.posting_id('deposit', convert_to(reference, 'UTF8')) $$;",
                "as $$ select gen_random_uuid() $$;",
            ),
            edit(
                LEDGER,
                "case when f.posting_id <> sluice.deposit_id(f.reference) then 'it is not its reference''s' end",
                "null",
            ),
        ],
        killer: by(
            "rails",
            "crowd::a_deposit_that_a_crowd_repeats_is_booked_once_and_one_of_two_meanings_stands",
        ),
    },
    Mutant {
        name: "holds_leave_no_trace",
        breaks: "A transaction with an older snapshot gives nothing that was held since.",
        edits: &[edit(
            LEDGER,
            "   where a.account = d.account and a.asset = d.asset;\n",
            "   where false;\n",
        )],
        killer: by(
            "rails",
            "isolation::a_session_with_an_older_snapshot_does_not_give_what_was_held_since",
        ),
    },
    Mutant {
        name: "blocks_and_claims_wait_for_accounts",
        breaks: "What somebody holds is left to later, and stops nobody else.",
        edits: &[edit(
            LEDGER,
            "       for no key update skip locked);",
            "       for no key update);",
        )],
        killer: by(
            "rails",
            "isolation::an_account_that_a_forgotten_transaction_holds_stops_nobody_elses_withdrawals",
        ),
    },
];
