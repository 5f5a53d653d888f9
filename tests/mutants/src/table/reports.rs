//! What workers report: intent before wire, every write a compare-and-swap, and nothing that a node says decides.

use crate::mutant::{Mutant, by, edit};

const RECORD: &str = "sql/record.sql";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "intent_not_on_file",
        breaks: "broadcasting is committed before a byte leaves.",
        edits: &[
            edit(
                RECORD,
                "when f.to_be_sent then 'broadcasting' else 'signed' end,",
                "else 'signed' end,",
            ),
            edit(
                RECORD,
                "when f.to_be_sent then '{signed,broadcasting}'\n",
                "",
            ),
            edit(
                RECORD,
                "         case when r.state = 'broadcasting' then 'broadcast'::sluice.action end,\n",
                "         case when f.to_be_sent then 'broadcast'::sluice.action end,\n",
            ),
            edit(
                RECORD,
                "         case when r.state = 'broadcasting' then f.raw_data end,\n         case when r.state = 'broadcasting' then f.signature end,\n",
                "         f.raw_data, f.signature,\n",
            ),
        ],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "commits_asynchronous",
        breaks: "Both commits are synchronous whatever the caller set.",
        edits: &[edit(
            "sql/commit.sql",
            "in ('off', 'local') then",
            "in ('remote_write') then",
        )],
        killer: by(
            "database",
            "durability::the_commits_that_matter_wait_for_the_log_whatever_role_database_and_session_say",
        ),
    },
    Mutant {
        name: "any_isolation_level",
        breaks: "The runner's functions refuse any isolation level but READ COMMITTED.",
        edits: &[edit(
            "sql/worker.sql",
            "if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then",
            "if pg_catalog.current_setting('transaction_isolation') = '' then",
        )],
        killer: by(
            "database",
            "isolation::the_runners_calls_refuse_another_isolation_level_by_name",
        ),
    },
    Mutant {
        name: "owns_ignores_the_token",
        breaks: "Every worker write is a compare-and-swap on the fencing token.",
        edits: &[edit(
            "src/core/decision.rs",
            "token == row_token && expected == row_state",
            "(token == row_token || token > 0) && expected == row_state",
        )],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "owns_ignores_the_state",
        breaks: "Every worker write is a compare-and-swap on the state.",
        edits: &[edit(
            "src/core/decision.rs",
            "token == row_token && expected == row_state",
            "token == row_token && (expected == row_state || !row_state.is_terminal())",
        )],
        killer: by(
            "rules",
            "calls::an_answer_for_what_was_never_signed_is_nobodys",
        ),
    },
    Mutant {
        name: "release_without_its_token",
        breaks: "A release gives back what is still its own.",
        edits: &[edit(
            RECORD,
            "where w.operation_id = g.operation_id and w.fencing_token = g.fencing_token\n",
            "where w.operation_id = g.operation_id\n",
        )],
        killer: by(
            "rules",
            "calls::a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone",
        ),
    },
    Mutant {
        name: "signature_not_checked",
        breaks: "A signature that is not the wallet's is refused, and the same digest is offered again.",
        edits: &[
            edit(
                RECORD,
                "sluice.signature_fault(l.signer, l.signer_address, g.txid, g.signature) as fault",
                "null::text as fault",
            ),
            edit(
                "sql/guard_envelopes.sql",
                "and sluice.signature_fault(l.signer, l.signer_address, n.txid, n.signature) is not null",
                "and n.signature is null",
            ),
        ],
        killer: by(
            "rules",
            "calls::a_signature_that_is_not_the_wallets_is_filed_nowhere_and_the_same_digest_is_offered_again",
        ),
    },
    Mutant {
        name: "paused_is_sent",
        breaks: "A pause stops first sends.",
        edits: &[edit(
            RECORD,
            "v_tip_ms < e.expiration_ms and not sluice.is_paused(w.wallet, w.asset) as to_be_sent",
            "v_tip_ms < e.expiration_ms as to_be_sent",
        )],
        killer: by(
            "rules",
            "calls::a_pause_holds_signing_and_first_sends_and_a_resumption_commits_to_sending_before_it_sends",
        ),
    },
    Mutant {
        name: "sent_past_its_time",
        breaks: "What is signed at or past its expiration is not sent.",
        edits: &[edit(
            RECORD,
            "v_tip_ms < e.expiration_ms and not sluice.is_paused(w.wallet, w.asset) as to_be_sent",
            "not sluice.is_paused(w.wallet, w.asset) as to_be_sent",
        )],
        killer: by(
            "rules",
            "calls::what_is_past_its_time_is_neither_signed_nor_sent_while_its_death_is_not_proven",
        ),
    },
    Mutant {
        name: "a_refusal_fails",
        breaks: "Nothing a node says fails a withdrawal: an earlier copy may be in another pool.",
        edits: &[
            edit(
                RECORD,
                "state = case when f.moves then 'broadcast' else w.state end,",
                "state = case when f.moves then 'broadcast' when f.verdict = 'refused' then 'failed' else w.state end,\n      failure_reason = case when f.verdict = 'refused' then f.answer end,",
            ),
            edit(
                RECORD,
                "step_path = case when f.moves then '{broadcast}' when f.remarks",
                "step_path = case when f.moves then '{broadcast}' when f.verdict = 'refused' then '{failed}' when f.remarks",
            ),
            edit(
                "sql/guard.sql",
                "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 0",
                "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 1",
            ),
        ],
        killer: by(
            "rules",
            "calls::nothing_that_a_node_says_ends_a_withdrawal_and_what_it_says_of_another_transaction_is_nobodys",
        ),
    },
    Mutant {
        name: "an_acceptance_confirms",
        breaks: "SUCCESS and DUP move it to broadcast, no more.",
        edits: &[
            edit(
                RECORD,
                "state = case when f.moves then 'broadcast' else w.state end,",
                "state = case when f.moves then 'confirmed' else w.state end,\n      block_number = case when f.moves then (select max(b.number) from sluice.blocks b) end,\n      confirmed_at = case when f.moves then v_now end,",
            ),
            edit(
                RECORD,
                "step_path = case when f.moves then '{broadcast}' when",
                "step_path = case when f.moves then '{broadcast,confirmed}' when",
            ),
            edit(
                "sql/guard.sql",
                "where w.operation_id = v.operation_id)) = 0",
                "where w.operation_id = v.operation_id)) < 0",
            ),
        ],
        killer: by(
            "rules",
            "calls::nothing_that_a_node_says_ends_a_withdrawal_and_what_it_says_of_another_transaction_is_nobodys",
        ),
    },
    Mutant {
        name: "a_refusal_counts_as_taken",
        breaks: "Only SUCCESS and DUP say that a node took it.",
        edits: &[
            edit(
                "src/core/broadcast.rs",
                "Self::Success | Self::DupTransactionError => BroadcastVerdict::Accepted,",
                "Self::Success | Self::DupTransactionError | Self::TaposError => BroadcastVerdict::Accepted,",
            ),
            edit(
                "src/core/broadcast.rs",
                "            | Self::TaposError\n            | Self::TooBigTransactionError\n            | Self::TransactionExpirationError\n            | Self::OtherError => BroadcastVerdict::Refused,",
                "            | Self::TooBigTransactionError\n            | Self::TransactionExpirationError\n            | Self::OtherError => BroadcastVerdict::Refused,",
            ),
        ],
        killer: by(
            "rules",
            "calls::nothing_that_a_node_says_ends_a_withdrawal_and_what_it_says_of_another_transaction_is_nobodys",
        ),
    },
    Mutant {
        name: "another_transactions_answer",
        breaks: "An answer is about the transaction that it names.",
        edits: &[edit(
            RECORD,
            "join sluice.envelopes e on e.txid = g.txid and e.operation_id = g.operation_id and e.attempt = w.attempt",
            "join sluice.envelopes e on e.operation_id = g.operation_id and e.attempt = w.attempt",
        )],
        killer: by(
            "rules",
            "calls::nothing_that_a_node_says_ends_a_withdrawal_and_what_it_says_of_another_transaction_is_nobodys",
        ),
    },
    Mutant {
        name: "a_bad_report_stops_all",
        breaks: "One bad row stops itself, in a report too.",
        edits: &[edit(
            RECORD,
            "    if v_code = 'SL005' or not sluice.is_a_rows_fault(v_code) then\n",
            "    if v_code <> '00000' then\n",
        )],
        killer: by(
            "rules",
            "calls::a_report_that_raises_puts_its_own_row_off_and_the_others_of_its_batch_are_filed",
        ),
    },
];
