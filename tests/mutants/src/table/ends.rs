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
            "database",
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
            "database",
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
            "database",
            "proofs::a_death_counts_at_the_block_that_closes_its_time_and_the_margin_beyond_it_and_no_sooner",
        ),
    },
    Mutant {
        name: "death_by_one_observer",
        breaks: "observers logins must file the same blocks before a death counts.",
        edits: &[edit(ENVELOPES, "offset s.observers - 1", "offset 0")],
        killer: by(
            "database",
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
            "database",
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
            "database",
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
            edit("sql/guard.sql", ">= v.block_number + a.depth", ">= v.block_number"),
        ],
        killer: by(
            "database",
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
            "database",
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
];
