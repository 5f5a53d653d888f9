//! Blocks: Merkle roots, ids, and whole blocks from their bytes.

use crate::file::{Block, Merkle, array, bytes, vectors};
use prost::Message;
use sluice_core::block::{Receipt, block_id, decode_block, merkle_root};
use sluice_core::envelope::{Txid, ref_block_bytes, ref_block_hash};
use sluice_core::proto;

fn transactions_of(block: &Block) -> Option<&'static Merkle> {
    let id = block.merkle_id.as_ref()?;
    let found = vectors().merkle.iter().find(|merkle| merkle.id == *id);
    Some(found.expect(id))
}

fn whole(block: &Block, transactions: Vec<Vec<u8>>) -> Vec<u8> {
    let header = proto::BlockHeader {
        raw_data: bytes(&block.raw),
        witness_signature: vec![7; 65],
    };
    let block = proto::Block {
        transactions,
        block_header: header.encode_to_vec(),
    };
    block.encode_to_vec()
}

/// The vectors' results hold nothing but `contractRet`: field 5, two bytes, field 3, the number.
fn receipt_at_the_end_of(transaction: &[u8]) -> Receipt {
    match transaction {
        [.., 0x2a, 2, 0x18, 1] => Receipt::Success,
        [.., 0x2a, 2, 0x18, 2] => Receipt::Revert,
        [.., 0x2a, 2, 0x18, 10] => Receipt::OutOfEnergy,
        other => panic!("no result that this test knows at the end of {other:02x?}"),
    }
}

#[test]
fn transactions_give_the_root_of_the_vectors_and_none_of_the_wrong_ones() {
    let mut wrong = 0;
    for merkle in &vectors().merkle {
        let transactions = merkle.transaction_bytes();
        assert_eq!(transactions.len(), merkle.n, "{}", merkle.id);
        let root = hex::encode(merkle_root(&transactions));
        assert_eq!(root, merkle.root, "{}", merkle.id);
        for (mistake, other) in &merkle.wrong_roots {
            assert_ne!(root, *other, "{} {mistake}", merkle.id);
            wrong += 1;
        }
    }
    assert_eq!(wrong, 8);
}

#[test]
fn a_header_gives_the_block_id_and_the_reference() {
    for block in &vectors().blocks {
        let id = block_id(&bytes(&block.raw)).expect(&block.id);
        assert_eq!(hex::encode(id), block.block_id, "{}", block.id);
        let reference = hex::encode(ref_block_bytes(block.header.number));
        assert_eq!(reference, block.ref_block_bytes, "{}", block.id);
        let reference = hex::encode(ref_block_hash(&id));
        assert_eq!(reference, block.ref_block_hash, "{}", block.id);
    }
}

#[test]
fn a_header_is_written_with_exactly_the_bytes_of_the_vectors() {
    for block in &vectors().blocks {
        let header = &block.header;
        let raw = proto::BlockHeaderRaw {
            timestamp: header.timestamp,
            tx_trie_root: bytes(&header.tx_trie_root),
            parent_hash: bytes(&header.parent_hash),
            number: header.number,
            witness_id: header.witness_id,
            witness_address: bytes(&header.witness_address),
            version: header.version,
            account_state_root: bytes(&header.account_state_root),
        };
        assert_eq!(hex::encode(raw.encode_to_vec()), block.raw, "{}", block.id);
    }
}

#[test]
fn a_whole_block_decodes_to_what_it_holds_and_its_root_holds() {
    let mut with_transactions = 0;
    for block in &vectors().blocks {
        let merkle = transactions_of(block);
        let transactions = merkle.map(Merkle::transaction_bytes).unwrap_or_default();
        let decoded = decode_block(&whole(block, transactions.clone())).expect(&block.id);
        assert_eq!(decoded.number, block.header.number, "{}", block.id);
        assert_eq!(hex::encode(decoded.id), block.block_id, "{}", block.id);
        assert_eq!(hex::encode(decoded.parent_id), block.header.parent_hash);
        assert_eq!(decoded.timestamp.0, block.header.timestamp, "{}", block.id);
        assert_eq!(hex::encode(decoded.root), block.header.tx_trie_root);
        // Two of the headers name the root of transactions that are not among the vectors.
        let complete = merkle.is_some() || decoded.root == [0; 32];
        assert_eq!(decoded.root_holds, complete, "{}", block.id);
        assert_eq!(decoded.transactions.len(), transactions.len());
        let Some(merkle) = merkle else { continue };
        with_transactions += 1;
        for (place, transaction) in decoded.transactions.iter().enumerate() {
            assert_eq!(transaction.txid.to_string(), merkle.txids[place]);
            assert_eq!(Txid::of(&transaction.raw_data), transaction.txid);
            let wire = proto::Transaction::decode(&transactions[place][..]).expect("a transaction");
            assert_eq!(transaction.raw_data, wire.raw_data);
            assert_eq!(transaction.signatures, wire.signature);
            assert_eq!(
                transaction.receipt,
                receipt_at_the_end_of(&transactions[place])
            );
        }
    }
    assert_eq!(with_transactions, 3);
}

#[test]
fn each_transaction_has_the_receipt_that_its_last_bytes_name() {
    let mut receipts = vec![];
    for merkle in &vectors().merkle {
        let header = proto::BlockHeaderRaw {
            tx_trie_root: array::<32>(&merkle.root).to_vec(),
            parent_hash: vec![1; 32],
            ..proto::BlockHeaderRaw::default()
        };
        let block = proto::Block {
            transactions: merkle.transaction_bytes(),
            block_header: proto::BlockHeader {
                raw_data: header.encode_to_vec(),
                witness_signature: vec![],
            }
            .encode_to_vec(),
        };
        let decoded = decode_block(&block.encode_to_vec()).expect(&merkle.id);
        assert!(decoded.root_holds, "{}", merkle.id);
        for (place, transaction) in decoded.transactions.iter().enumerate() {
            let expected = match merkle.transactions_carry_ret {
                true => receipt_at_the_end_of(&merkle.transaction_bytes()[place]),
                false => Receipt::Absent,
            };
            assert_eq!(transaction.receipt, expected, "{} {place}", merkle.id);
            receipts.push(expected);
        }
    }
    for (receipt, times) in [
        (Receipt::Success, 7),
        (Receipt::OutOfEnergy, 3),
        (Receipt::Revert, 1),
        (Receipt::Absent, 3),
    ] {
        let found = receipts.iter().filter(|found| **found == receipt).count();
        assert_eq!(found, times, "{receipt:?}");
    }
}

#[test]
fn a_block_stripped_of_a_transaction_or_shuffled_does_not_hold_its_root() {
    let mut tried = 0;
    for block in &vectors().blocks {
        let Some(merkle) = transactions_of(block) else {
            continue;
        };
        let transactions = merkle.transaction_bytes();
        let mut others = vec![];
        for place in 0..transactions.len() {
            let mut fewer = transactions.clone();
            fewer.remove(place);
            others.push(fewer);
            let mut doubled = transactions.clone();
            doubled.insert(place, transactions[place].clone());
            others.push(doubled);
        }
        if transactions.len() > 1 {
            others.push(vec![]);
            others.push(transactions.iter().rev().cloned().collect());
        }
        for other in others {
            let decoded = decode_block(&whole(block, other)).expect(&block.id);
            assert!(!decoded.root_holds, "{}", block.id);
            tried += 1;
        }
    }
    assert_eq!(tried, 8);
}
