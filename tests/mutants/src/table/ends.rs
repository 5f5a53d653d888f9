//! How an envelope ends, and what follows: proof of death by coverage, receipts, depth, attempts.

use crate::mutant::{Mutant, by, edit};

const OBSERVE: &str = "sql/observe.sql";
const ENVELOPES: &str = "sql/guard_envelopes.sql";
const DECISION: &str = "src/core/decision.rs";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "sweep_before_match",
        breaks: "Match first, then sweep; an envelope with an inclusion on file is never swept.",
        edits: &[
            edit(
                OBSERVE,
                "  -- Match: what a followed block holds.\n",
                "  update sluice.envelopes e set
    fate = 'dead', first_block = e.ref_block_number, last_block = c.closing
    from sluice.envelopes v
   cross join lateral sluice.coverage_of(v.ref_block_number, v.expiration_ms) c
   where e.txid = v.txid
     and v.operation_id = any (settle.ids) and v.fate is null and v.expiration_ms <= v_tip.timestamp_ms;

",
            ),
            edit(
                ENVELOPES,
                "                    and (select count(*) from sluice.payments p where p.txid = n.txid) = 0\n",
                "",
            ),
        ],
        killer: by(
            "rules",
            "proofs::whoever_reads_block_by_block_sees_the_payment_in_the_last_block_that_may_hold_it",
        ),
    },
    Mutant {
        name: "death_one_block_early",
        breaks: "It is dead once the first block stamped at or past its expiration was read, that one included.",
        edits: &[
            edit(DECISION, "if time >= expiration\n", "if time.0 + 3000 >= expiration.0\n"),
            edit(
                ENVELOPES,
                "where timestamp_ms >= coverage_of.expiration_ms\n",
                "where timestamp_ms + 3000 >= coverage_of.expiration_ms\n",
            ),
            edit(
                OBSERVE,
                "v.fate is null and v.expiration_ms <= v_tip.timestamp_ms",
                "v.fate is null and v.expiration_ms <= v_tip.timestamp_ms + 3000",
            ),
            edit(
                OBSERVE,
                "e.expiration_ms <= (select max(b.timestamp_ms) from sluice.blocks b)",
                "e.expiration_ms <= (select max(b.timestamp_ms) from sluice.blocks b) + 3000",
            ),
        ],
        killer: by(
            "rules",
            "proofs::whoever_reads_block_by_block_sees_the_payment_in_the_last_block_that_may_hold_it",
        ),
    },
    Mutant {
        name: "death_without_the_margin",
        breaks: "margin_blocks more must be followed before a death counts.",
        edits: &[edit(
            DECISION,
            "closing.saturating_add(coverage.margin) <= coverage.last",
            "closing <= coverage.last",
        )],
        killer: by(
            "rules",
            "proofs::a_death_counts_at_the_block_that_closes_its_time_and_the_margin_beyond_it_and_no_sooner",
        ),
    },
    Mutant {
        name: "death_by_one_observer",
        breaks: "observers logins must file the same blocks before a death counts.",
        edits: &[edit(ENVELOPES, "offset s.observers - 1", "offset 0")],
        killer: by(
            "rules",
            "proofs::where_two_observers_are_asked_for_a_death_counts_once_both_have_read_every_block_of_it",
        ),
    },
    Mutant {
        name: "death_with_a_gap",
        breaks: "An observer counts if it has read every block from the reference on.",
        edits: &[edit(
            ENVELOPES,
            "where o.first_number <= coverage_of.reference + 1",
            "where o.first_number is not null",
        )],
        killer: by(
            "rules",
            "proofs::where_two_observers_are_asked_for_a_death_counts_once_both_have_read_every_block_of_it",
        ),
    },
    Mutant {
        name: "observers_gap_bridged",
        breaks: "Only what a login read without a gap counts.",
        edits: &[edit(
            OBSERVE,
            "then least(o.first_number, v_first) else v_first end",
            "then least(o.first_number, v_first) else least(o.first_number, v_first) end",
        )],
        killer: by(
            "rules",
            "proofs::where_two_observers_are_asked_for_a_death_counts_once_both_have_read_every_block_of_it",
        ),
    },
    Mutant {
        name: "depth_ignored",
        breaks: "A success confirms at the asset's depth.",
        edits: &[
            edit(
                DECISION,
                "if progress.tip.saturating_sub(inclusion.block) >= progress.depth =>",
                "if progress.tip >= inclusion.block =>",
            ),
            edit(
                "sql/guard.sql",
                ">= v.block_number + coalesce(w.depth, (select",
                ">= v.block_number + 0 * coalesce(w.depth, (select",
            ),
        ],
        killer: by(
            "rules",
            "proofs::a_success_confirms_at_its_depth_and_not_a_block_sooner",
        ),
    },
    Mutant {
        name: "rebuilt_in_the_same_slot",
        breaks: "A rebuild waits for a later slot: equal bytes are the same transaction.",
        edits: &[
            edit(DECISION, "tip.slot() <= last", "tip.slot() < last"),
            edit(
                ENVELOPES,
                "when f.slot <= (select max(v.slot)",
                "when f.slot < (select max(v.slot)",
            ),
        ],
        killer: by(
            "rules",
            "proofs::what_ran_out_of_energy_is_built_anew_in_a_later_slot_since_equal_bytes_would_be_the_same_transaction",
        ),
    },
    Mutant {
        name: "settling_waits_for_ever",
        breaks: "Whoever locks in another order finds settling give way, and following goes on.",
        edits: &[edit(OBSERVE, " set lock_timeout = '800ms'", "")],
        killer: by(
            "database",
            "contention::blocks_that_would_end_in_a_deadlock_give_way_before_and_settle_what_nobody_holds",
        ),
    },
Mutant {
name: "a_revert_is_built_anew",
breaks: "Every named failure but two fails the withdrawal.",
edits: &[edit("src/core/block.rs", "Self::OutOfEnergy | Self::OutOfTime => ReceiptVerdict::Transient,", "Self::OutOfEnergy | Self::OutOfTime | Self::Revert => ReceiptVerdict::Transient,"),
edit("src/core/block.rs", "            Self::Revert\n            | Self::BadJumpDestination\n            | Self::OutOfMemory\n            | Self::PrecompiledContract\n            | Self::StackTooSmall\n            | Self::StackTooLarge\n            | Self::IllegalOperation\n            | Self::StackOverflow\n            | Self::JvmStackOverFlow\n            | Self::TransferFailed", "            Self::BadJumpDestination\n            | Self::OutOfMemory\n            | Self::PrecompiledContract\n            | Self::StackTooSmall\n            | Self::StackTooLarge\n            | Self::IllegalOperation\n            | Self::StackOverflow\n            | Self::JvmStackOverFlow\n            | Self::TransferFailed"),
],
killer: by("rules", "receipts::each_receipt_pays_fails_is_tried_again_or_waits_for_a_person"),
},
Mutant {
name: "out_of_energy_fails_at_once",
breaks: "OUT_OF_ENERGY and OUT_OF_TIME are rebuilt.",
edits: &[edit(DECISION, "ReceiptVerdict::Transient => another,", "ReceiptVerdict::Transient => Settlement::Fail,"),
],
killer: by("rules", "receipts::each_receipt_pays_fails_is_tried_again_or_waits_for_a_person"),
},
Mutant {
name: "out_of_energy_never_ends",
breaks: "5 attempts, then failed.",
edits: &[edit(DECISION, "ReceiptVerdict::Transient => another,", "ReceiptVerdict::Transient => Settlement::Rebuild,"),
],
killer: by("rules", "receipts::what_runs_out_of_energy_is_tried_five_times_and_three_failures_in_a_row_pause_its_wallet"),
},
Mutant {
name: "an_undecided_receipt_fails",
breaks: "No result, DEFAULT, UNKNOWN or an unknown number decides nothing.",
edits: &[edit("src/core/block.rs", "                ReceiptVerdict::Undecided\n", "                ReceiptVerdict::Failed\n"),
],
killer: by("rules", "receipts::each_receipt_pays_fails_is_tried_again_or_waits_for_a_person"),
},
Mutant {
name: "an_undecided_receipt_pays",
breaks: "No result, DEFAULT, UNKNOWN or an unknown number decides nothing.",
edits: &[edit("src/core/block.rs", "            Self::Success => ReceiptVerdict::Success,\n", "            Self::Success | Self::Default => ReceiptVerdict::Success,\n"),
edit("src/core/block.rs", "            Self::Default | Self::Unknown | Self::Absent | Self::Unlisted(_) => {\n", "            Self::Unknown | Self::Absent | Self::Unlisted(_) => {\n"),
],
killer: by("rules", "receipts::each_receipt_pays_fails_is_tried_again_or_waits_for_a_person"),
},
Mutant {
name: "what_nobody_took_counts",
breaks: "An envelope that died and that no node ever accepted does not count as an attempt.",
edits: &[edit(DECISION, "Fate::Dead { .. } if !progress.accepted && !progress.cancelled => Settlement::RebuildLater,", "Fate::Dead { .. } if !progress.accepted && progress.tip < 0 => Settlement::RebuildLater,"),
],
killer: by("rules", "receipts::an_envelope_that_no_node_took_and_that_died_is_built_anew_later_and_does_not_count"),
},
Mutant {
name: "a_failing_wallet_goes_on",
breaks: "Three failed receipts in a row pause the wallet.",
edits: &[edit(OBSERVE, "having count(*) = 3 and bool_and", "having count(*) = 4 and bool_and"),
],
killer: by("rules", "receipts::what_runs_out_of_energy_is_tried_five_times_and_three_failures_in_a_row_pause_its_wallet"),
},
Mutant {
name: "what_cannot_be_settled_stops_all",
breaks: "What cannot be settled stops nobody.",
edits: &[edit(OBSERVE, "        insert into sluice.unsettled as s (operation_id, error) values (settle_all.ids[i], left(v_code || ' ' || v_message, 500))\n        on conflict (operation_id) do update set error = excluded.error, at = excluded.at;\n", "        raise;\n"),
],
killer: by("rules", "receipts::what_cannot_be_settled_stops_nobody_and_is_settled_by_a_later_block"),
},
Mutant {
name: "what_cannot_be_settled_is_forgotten",
breaks: "What cannot be settled is tried again with every block.",
edits: &[edit(OBSERVE, "        union all\n        select s.operation_id from sluice.unsettled s\n", ""),
],
killer: by("rules", "receipts::what_cannot_be_settled_stops_nobody_and_is_settled_by_a_later_block"),
},
];
