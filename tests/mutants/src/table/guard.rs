//! The guard, against whoever writes by hand: what never changes, what never leaves, and what asks for a proof.

use crate::mutant::{Mutant, by, edit};

const GUARD: &str = "sql/guard.sql";
const ENVELOPES: &str = "sql/guard_envelopes.sql";
const CHAIN: &str = "sql/guard_chain.sql";
const ROW: &str = "src/pg/guard.rs";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "events_may_be_deleted",
        breaks: "Nothing leaves the log.",
        edits: &[edit(
            GUARD,
            "create trigger never_changed before update or delete or truncate on sluice.events",
            "create trigger never_changed before update or truncate on sluice.events",
        )],
        killer: by(
            "rules",
            "by_hand::nothing_that_is_on_file_is_removed_by_hand_and_no_log_is_rewritten",
        ),
    },
    Mutant {
        name: "events_may_be_rewritten",
        breaks: "Nothing leaves the log.",
        edits: &[edit(
            GUARD,
            "create trigger never_changed before update or delete or truncate on sluice.events",
            "create trigger never_changed before delete or truncate on sluice.events",
        )],
        killer: by(
            "rules",
            "by_hand::nothing_that_is_on_file_is_removed_by_hand_and_no_log_is_rewritten",
        ),
    },
    Mutant {
        name: "withdrawals_may_be_deleted",
        breaks: "One row per operation_id, for ever.",
        edits: &[edit(
            GUARD,
            "create trigger never_removed before delete or truncate on sluice.withdrawals",
            "create trigger never_removed before truncate on sluice.withdrawals",
        )],
        killer: by(
            "rules",
            "by_hand::nothing_that_is_on_file_is_removed_by_hand_and_no_log_is_rewritten",
        ),
    },
    Mutant {
        name: "blocks_may_be_rewritten",
        breaks: "Followed blocks are irreversible.",
        edits: &[edit(
            CHAIN,
            "create trigger never_changed before update or delete or truncate on sluice.blocks",
            "create trigger never_changed before delete or truncate on sluice.blocks",
        )],
        killer: by(
            "rules",
            "by_hand::nothing_that_is_on_file_is_removed_by_hand_and_no_log_is_rewritten",
        ),
    },
    Mutant {
        name: "terminal_rows_may_change",
        breaks: "confirmed, failed, rejected: terminal, immutable.",
        edits: &[edit(
            "src/core/state.rs",
            "    if from.is_terminal() {\n        return Err(PathError::Terminal(from));",
            "    if from.is_terminal() && from != to {\n        return Err(PathError::Terminal(from));",
        )],
        killer: by(
            "rules",
            "by_hand::a_withdrawal_that_is_over_is_not_written_over_by_hand",
        ),
    },
    Mutant {
        name: "amount_units_may_change",
        breaks: "What intake wrote never changes.",
        edits: &[edit(ROW, "    \"amount_units\",\n", "    \"amount\",\n")],
        killer: by(
            "rules",
            "by_hand::what_was_asked_for_and_what_is_decided_once_stays_as_it_is_by_hand",
        ),
    },
    Mutant {
        name: "wallet_may_change",
        breaks: "The wallet is chosen once, and stored.",
        edits: &[edit(ROW, "    \"wallet\",\n", "    \"rail\",\n")],
        killer: by(
            "rules",
            "by_hand::what_was_asked_for_and_what_is_decided_once_stays_as_it_is_by_hand",
        ),
    },
    Mutant {
        name: "token_may_fall",
        breaks: "A fencing token never falls: whoever held it before would own the row again.",
        edits: &[edit(
            ROW,
            "if token(&new) < token(&old) {",
            "if token(&new) < 0 {",
        )],
        killer: by(
            "rules",
            "by_hand::what_was_asked_for_and_what_is_decided_once_stays_as_it_is_by_hand",
        ),
    },
    Mutant {
        name: "chart_fails_what_is_live",
        breaks: "No failure while an envelope is live.",
        edits: &[edit(
            "src/core/state.rs",
            "step(Signing, Failed, AllSpent)",
            "step(Signing, Failed, None)",
        )],
        killer: by(
            "rules",
            "by_hand::no_step_is_taken_by_hand_that_the_chart_or_the_chain_does_not_allow",
        ),
    },
    Mutant {
        name: "ends_need_no_spent_envelopes",
        breaks: "A starred step asks that every envelope is dead, or included with a failed result.",
        edits: &[edit(
            GUARD,
            "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 0",
            "where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 1",
        )],
        killer: by(
            "rules",
            "by_hand::no_step_is_taken_by_hand_that_the_chart_or_the_chain_does_not_allow",
        ),
    },
    Mutant {
        name: "confirmed_without_a_payment",
        breaks: "confirmed asks for a SUCCESS inclusion of one of its envelopes.",
        edits: &[edit(
            GUARD,
            "where w.operation_id = v.operation_id)) = 0",
            "where w.operation_id = v.operation_id)) < 0",
        )],
        killer: by(
            "rules",
            "by_hand::no_step_is_taken_by_hand_that_the_chart_or_the_chain_does_not_allow",
        ),
    },
    Mutant {
        name: "guard_ignores_depth",
        breaks: "confirmed asks for the asset's depth.",
        edits: &[edit(
            GUARD,
            ">= v.block_number + coalesce(w.depth, (select",
            ">= v.block_number + 0 * coalesce(w.depth, (select",
        )],
        killer: by(
            "rules",
            "by_hand::no_step_is_taken_by_hand_that_the_chart_or_the_chain_does_not_allow",
        ),
    },
    Mutant {
        name: "signed_without_a_signature",
        breaks: "signed asks for a signature of the envelope that is to be sent.",
        edits: &[edit(GUARD, "limit 1) is not true", "limit 1) is null")],
        killer: by(
            "rules",
            "by_hand::no_step_is_taken_by_hand_that_the_chart_or_the_chain_does_not_allow",
        ),
    },
    Mutant {
        name: "bytes_not_compared",
        breaks: "The bytes pay what the row says: the guard rebuilds them and demands equal ones.",
        edits: &[edit(
            ENVELOPES,
            "when f.raw_data is distinct from sluice.raw_data(",
            "when f.raw_data is null and f.raw_data is distinct from sluice.raw_data(",
        )],
        killer: by(
            "rules",
            "by_hand::an_envelope_by_hand_pays_what_its_withdrawal_says_or_is_refused",
        ),
    },
    Mutant {
        name: "reference_anywhere_in_the_slot",
        breaks: "Reference is the first followed block of a slot: twins build the same bytes.",
        edits: &[edit(
            ENVELOPES,
            " or prior.timestamp_ms >= sluice.slot_begins_ms(f.slot)",
            "",
        )],
        killer: by(
            "rules",
            "by_hand::an_envelope_by_hand_pays_what_its_withdrawal_says_or_is_refused",
        ),
    },
    Mutant {
        name: "two_live_envelopes",
        breaks: "At most one live envelope a withdrawal.",
        edits: &[
            edit(
                "sql/tables.sql",
                "create unique index envelopes_one_live",
                "create index envelopes_one_live",
            ),
            edit(
                ENVELOPES,
                "and not sluice.is_spent(v.fate, v.receipt))\n             then 'another envelope",
                "and v.fate = 'included' and not sluice.is_spent(v.fate, v.receipt))\n             then 'another envelope",
            ),
        ],
        killer: by(
            "rules",
            "by_hand::a_second_envelope_by_hand_is_refused_as_long_as_the_first_can_pay_and_in_its_slot",
        ),
    },
    Mutant {
        name: "second_envelope_for_what_is_paid",
        breaks: "No second envelope once one has paid.",
        edits: &[edit(
            ENVELOPES,
            "and not sluice.is_spent(v.fate, v.receipt))\n             then 'another envelope",
            "and v.fate is null)\n             then 'another envelope",
        )],
        killer: by(
            "rules",
            "by_hand::a_second_envelope_by_hand_is_refused_as_long_as_the_first_can_pay_and_in_its_slot",
        ),
    },
    Mutant {
        name: "second_envelope_in_the_same_slot",
        breaks: "A rebuild waits for a later slot than the withdrawal's last envelope.",
        edits: &[edit(
            ENVELOPES,
            "when f.slot <= (select max(v.slot)",
            "when f.slot < (select max(v.slot)",
        )],
        killer: by(
            "rules",
            "by_hand::a_second_envelope_by_hand_is_refused_as_long_as_the_first_can_pay_and_in_its_slot",
        ),
    },
    Mutant {
        name: "guard_takes_any_signature",
        breaks: "The guard recovers every signature and demands the wallet's signer.",
        edits: &[edit(
            ENVELOPES,
            "and sluice.signature_fault(l.signer, l.signer_address, n.txid, n.signature) is not null",
            "and n.signature is null",
        )],
        killer: by(
            "rules",
            "by_hand::a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once",
        ),
    },
    Mutant {
        name: "signature_rewritten",
        breaks: "A signature is written once.",
        edits: &[edit(
            ENVELOPES,
            "where o.signature is not null and n.signature is distinct from o.signature",
            "where o.signature is not null and n.signature is null",
        )],
        killer: by(
            "rules",
            "by_hand::a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once",
        ),
    },
    Mutant {
        name: "fate_rewritten",
        breaks: "A fate is written once.",
        edits: &[edit(
            ENVELOPES,
            "          where o.fate is not null\n",
            "          where o.fate = 'included'\n",
        )],
        killer: by(
            "rules",
            "by_hand::a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once",
        ),
    },
    Mutant {
        name: "envelopes_may_change",
        breaks: "What an envelope was built from never changes.",
        edits: &[edit(
            ENVELOPES,
            "o.fee_limit_sun,\n                 o.permission_id, o.expiration_ms,",
            "o.fee_limit_sun,\n                 o.permission_id, n.expiration_ms,",
        )],
        killer: by(
            "rules",
            "by_hand::a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once",
        ),
    },
    Mutant {
        name: "death_without_a_proof",
        breaks: "Proof of death is coverage: the guard computes it again.",
        edits: &[edit(
            ENVELOPES,
            "where n.first_block = n.ref_block_number and n.last_block = c.closing",
            "where true or n.last_block = c.closing",
        )],
        killer: by(
            "rules",
            "by_hand::a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once",
        ),
    },
    Mutant {
        name: "inclusion_without_a_payment",
        breaks: "included names a followed block that holds the txid.",
        edits: &[edit(
            ENVELOPES,
            "where p.txid = n.txid and p.block_number = n.block_number and p.receipt = n.receipt) = 0",
            "where p.txid = n.txid and p.block_number = n.block_number and p.receipt = n.receipt) < 0",
        )],
        killer: by(
            "rules",
            "by_hand::a_signature_by_hand_is_the_wallets_and_a_fate_the_chains_and_each_is_written_once",
        ),
    },
    Mutant {
        name: "payment_of_any_transaction",
        breaks: "A payment is an inclusion of a txid that we know, after its reference.",
        edits: &[edit(
            CHAIN,
            "and (v.txid is null or b.number is null or f.operation_id is distinct from v.operation_id or f.wallet <> v.wallet",
            "and (b.number is null",
        )],
        killer: by(
            "rules",
            "by_hand::a_payment_or_a_block_by_hand_is_one_of_the_followed_chain",
        ),
    },
    Mutant {
        name: "time_does_not_rise",
        breaks: "Blocks are checked: rising time.",
        edits: &[edit(
            CHAIN,
            "if new.timestamp_ms <= parent.timestamp_ms then",
            "if new.timestamp_ms < parent.timestamp_ms then",
        )],
        killer: by(
            "rules",
            "by_hand::a_payment_or_a_block_by_hand_is_one_of_the_followed_chain",
        ),
    },
    Mutant {
        name: "a_runner_may_write_withdrawals",
        breaks: "No role writes a table directly, INSERT of intake columns aside.",
        edits: &[edit(
            "sql/grants.sql",
            "grant execute on function\n  sluice.claim_batch,",
            "grant update on sluice.withdrawals to sluice_runner;\ngrant execute on function\n  sluice.claim_batch,",
        )],
        killer: by(
            "rules",
            "by_hand::no_login_of_a_role_writes_a_table_by_itself",
        ),
    },
];
