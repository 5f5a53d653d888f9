//! Blocks: checked, not believed; and what they hold is ours only by its txid.

use crate::mutant::{Mutant, by, edit};

const OBSERVE: &str = "sql/observe.sql";
const CHAIN: &str = "sql/guard_chain.sql";

/// The mutants.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "root_not_asked",
        breaks: "A truncated list is no block: the root of its transactions must equal the header's.",
        edits: &[edit(
            OBSERVE,
            "from unnest(v_headers) h where not h.root_holds order by",
            "from unnest(v_headers) h where h.root_holds is null order by",
        )],
        killer: by(
            "rules",
            "false_blocks::blocks_that_are_none_or_of_another_chain_are_refused_and_hide_no_payment",
        ),
    },
    Mutant {
        name: "root_not_computed",
        breaks: "Everything of a block is derived from its bytes, its root too.",
        edits: &[edit(
            "src/core/block.rs",
            "root_holds: root == root_over(leaves),",
            "root_holds: root != [0; 32] || root == root_over(leaves),",
        )],
        killer: by(
            "rules",
            "false_blocks::blocks_that_are_none_or_of_another_chain_are_refused_and_hide_no_payment",
        ),
    },
    Mutant {
        name: "parent_not_checked",
        breaks: "Each block names its predecessor.",
        edits: &[edit(
            CHAIN,
            "if new.parent_id <> parent.id then",
            "if new.parent_id is null then",
        )],
        killer: by(
            "rules",
            "false_blocks::blocks_that_are_none_or_of_another_chain_are_refused_and_hide_no_payment",
        ),
    },
    Mutant {
        name: "gap_accepted",
        breaks: "The follower reads solid blocks in order, without a gap.",
        edits: &[
            edit(
                OBSERVE,
                "if v_first > v_tip.number + 1 then",
                "if v_first > v_tip.number + 1000 then",
            ),
            edit(
                CHAIN,
                "if new.number <> parent.number + 1 then",
                "if new.number <= parent.number then",
            ),
            edit(
                CHAIN,
                "if new.parent_id <> parent.id then",
                "if new.number = parent.number + 1 and new.parent_id <> parent.id then",
            ),
        ],
        killer: by(
            "rules",
            "false_blocks::blocks_that_are_none_or_of_another_chain_are_refused_and_hide_no_payment",
        ),
    },
    Mutant {
        name: "another_block_of_the_same_number",
        breaks: "A solid block never changes: a copy of one on file is that one.",
        edits: &[edit(
            OBSERVE,
            "   where b.id <> h.id\n",
            "   where b.id is null\n",
        )],
        killer: by(
            "rules",
            "false_blocks::blocks_that_are_none_or_of_another_chain_are_refused_and_hide_no_payment",
        ),
    },
    Mutant {
        name: "payments_matched_by_the_tag",
        breaks: "payments holds the inclusions of txids that we know: a tag alone is nobody's payment.",
        edits: &[
            edit(
                OBSERVE,
                "      join sluice.envelopes e on e.txid = t.txid\n",
                "      join sluice.envelopes e on sluice.tag(e.operation_id) = t.tag\n",
            ),
            edit(
                OBSERVE,
                "and e.fate is null and p.txid = e.txid;",
                "and e.fate is null and p.operation_id = e.operation_id;",
            ),
            edit(
                CHAIN,
                "and (v.txid is null or b.number is null or f.operation_id is distinct from v.operation_id or f.wallet <> v.wallet",
                "and (b.number is null",
            ),
            edit(
                "sql/guard_envelopes.sql",
                "where p.txid = n.txid and p.block_number = n.block_number and p.receipt = n.receipt) = 0",
                "where p.operation_id = n.operation_id and p.block_number = n.block_number and p.receipt = n.receipt) = 0",
            ),
            edit(
                "sql/guard.sql",
                "from sluice.payments p where p.txid = v.txid)",
                "from sluice.payments p where p.operation_id = v.operation_id)",
            ),
        ],
        killer: by(
            "rules",
            "proofs::a_transaction_that_only_bears_the_withdrawals_tag_settles_nothing",
        ),
    },
];
