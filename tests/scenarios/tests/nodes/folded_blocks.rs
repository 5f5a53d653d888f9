//! A block that keeps its root and hides what it pays: a Merkle tree does not tell its nodes from its leaves, so the two hashes
//! of two transactions, shown as if they were one transaction, give the same root (`MerkleTree.java` has no prefix for either).

use serde_json::{Value, json};
use sluice_core::block::{decode_block, merkle_root};
use sluice_core::envelope::{Txid, signed_transaction};
use sluice_mock_node::{Fault, Rule, Scope};

use crate::stage::{SOLID_AFTER_S, Stage, TIME_TO_LIVE_S, answer};

/// How the 64 bytes begin that a node's JSON can show as a transaction: `raw_data`, the 62 bytes after.
const READS_AS_RAW_DATA: [u8; 2] = [0x0a, 62];

/// What a block holds of a successful transaction, after what was sent: `ret`, with SUCCESS for its contract.
const RET_SUCCESS: [u8; 4] = [0x2a, 0x02, 0x18, 0x01];

/// The transaction as its signer would send it.
fn as_sent(stage: &Stage, txid: &Txid) -> Vec<u8> {
    let row = stage.scene.database.superuser().query_one(
        "select raw_data, signature from sluice.envelopes where txid = $1",
        &[&txid.as_bytes().as_slice()],
    );
    let row = row.expect("the envelope is on file");
    let (raw_data, signature): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
    signed_transaction(&raw_data, &signature)
}

/// The leaf of a transaction that succeeded.
fn leaf(sent: &[u8]) -> [u8; 32] {
    merkle_root(&[[sent, &RET_SUCCESS].concat()])
}

/// The transaction with a second signature, which is no part of its txid, such that the hashes of both read as one transaction
/// in a node's JSON; and those two hashes. One in 65536 does.
fn folding(first: &[u8], second: &[u8]) -> (Vec<u8>, [u8; 64]) {
    let right = leaf(second);
    let found = (0_u32..4_000_000)
        .map(|nonce| [first, &[0x12, 4], &nonce.to_be_bytes()].concat())
        .find_map(|candidate| {
            let left = leaf(&candidate);
            left.starts_with(&READS_AS_RAW_DATA)
                .then_some((candidate, left))
        });
    let (candidate, left) = found.expect("four million are enough");
    let mut node = [0; 64];
    node[..32].copy_from_slice(&left);
    node[32..].copy_from_slice(&right);
    (candidate, node)
}

/// The two hashes as the only transaction of a block, in java-tron's JSON.
fn as_one_transaction(node: &[u8; 64]) -> Value {
    let raw_data: String = node[2..].iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "transactions": [{ "raw_data_hex": raw_data, "txID": Txid::of(&node[2..]).to_string() }] })
}

#[test]
fn a_block_that_shows_two_hashes_of_its_tree_in_place_of_two_payments_is_never_taken_though_its_root_holds()
 {
    let mut stage = Stage::new();
    // Whoever holds the bytes may bring them in, with one more signature: the node that lies brings them to the producers.
    for _ in 0..2 {
        stage.submit_that_meets(answer("SUCCESS", "", false));
    }
    stage.work_off();
    let txids: Vec<Txid> = stage
        .submitted()
        .iter()
        .map(|id| stage.envelope(*id))
        .collect();
    let [first, second] = [0, 1].map(|place: usize| as_sent(&stage, &txids[place]));
    let (first, node) = folding(&first, &second);
    for (transaction, txid) in [&first, &second].into_iter().zip(&txids) {
        let brought = stage.scene.network.inject(transaction);
        assert_eq!(brought.as_ref(), Ok(txid));
    }
    stage.scene.advance(3);
    let block = stage.on_chain(&txids[0]).block.expect("it is in a block");
    assert_eq!(stage.on_chain(&txids[1]).block, Some(block));

    let bytes = stage.scene.network.block_bytes(block);
    let whole = decode_block(&bytes.expect("the block is there")).expect("it is a block");
    assert_eq!(merkle_root(&[node]), whole.root, "the lie keeps the root");

    // All blocks before it are read; it is the next, and solid.
    for number in [block - 1, block] {
        let solid = stage.scene.network.produce_until_solid(number);
        solid.expect("blocks become solid");
        stage.scene.show_chain_time();
        if number < block {
            stage.work_off();
        }
    }
    assert_eq!(stage.scene.followed(), block - 1);
    let shown = as_one_transaction(&node);
    let lie = stage.fault(Rule::new(Fault::Patch { merge: shown }).at(Scope::Blocks));
    // The runner sees nothing wrong: the root is the header's. The database does.
    stage.look_in_vain("it may be two hashes of the tree, in place of what they stand for");
    assert_eq!(stage.scene.followed(), block - 1);
    for operation_id in stage.submitted() {
        assert_eq!(stage.scene.state(*operation_id), "broadcast");
    }

    // Had it been taken, both would now look dead, and be paid again.
    stage.mend(lie);
    stage.pass(SOLID_AFTER_S);
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}
