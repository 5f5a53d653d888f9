//! Protobuf: transactions, blocks, signatures. Core reads blocks where they lie and prost reads everything: they agree on what is
//! there, and neither is brought down.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;
use sluice_core::address::Address;
use sluice_core::block::{Block, block_id, decode_block, merkle_root};
use sluice_core::envelope::{Txid, decode_raw_data, signed_transaction, transfer_of};
use sluice_core::proto;
use sluice_core::signature::{SecretKey, SignerKind, recover, verify};
use sluice_fuzz::chain::{any_bytes, block, raw_data};
use sluice_fuzz::fuzz;

/// Everything that reads bytes from outside. What is asserted holds for any bytes at all.
fn read_in_every_way(bytes: &[u8]) -> Result<(), TestCaseError> {
    let shown = decode_raw_data(bytes);
    if let Some(transfer) = transfer_of(bytes) {
        let shown = shown.as_ref().expect("a transfer is a transaction");
        prop_assert_eq!(&shown["to"], &transfer.to.to_string());
        prop_assert_eq!(&shown["amount_units"], &transfer.units.to_string());
    }
    if let Ok(shown) = &shown {
        let printed = shown.to_string().len();
        prop_assert!(
            printed <= 1000 + 20 * bytes.len(),
            "{} bytes of {}",
            printed,
            bytes.len()
        );
    }
    if let Ok(block) = decode_block(bytes) {
        prop_assert_eq!(&block.id[..8], &block.number.to_be_bytes());
        for transaction in &block.transactions {
            prop_assert_eq!(Txid::of(&transaction.raw_data), transaction.txid);
        }
        agrees_with_prost(bytes, &block)?;
    }
    if let Ok(id) = block_id(bytes) {
        prop_assert!(id[0] < 0x80, "no negative number");
    }
    let txid = Txid::of(bytes);
    prop_assert!(recover(&txid, bytes).is_err() || bytes.len() == 65);
    let _ = Address::from_bytes(bytes).map(|address| address.to_string());
    let _ = Txid::from_bytes(bytes).map(|txid| txid.to_string());
    let _ = SecretKey::from_bytes(bytes).map(|key| key.address());
    Ok(())
}

/// Where prost takes the same bytes (it refuses a known field of another wire type, which java-tron passes over), it finds the
/// same in them.
fn agrees_with_prost(bytes: &[u8], block: &Block) -> Result<(), TestCaseError> {
    let Ok(whole) = proto::Block::decode(bytes) else {
        return Ok(());
    };
    prop_assert_eq!(whole.transactions.len(), block.transactions.len());
    prop_assert_eq!(
        merkle_root(&whole.transactions) == block.root,
        block.root_holds
    );
    for (bytes, read) in whole.transactions.iter().zip(&block.transactions) {
        let Ok(transaction) = proto::Transaction::decode(&bytes[..]) else {
            continue;
        };
        prop_assert_eq!(&transaction.raw_data, &read.raw_data);
        prop_assert_eq!(&transaction.signature, &read.signatures);
        let first = transaction
            .ret
            .first()
            .map(|ret| proto::TransactionResult::decode(&ret[..]));
        match first {
            None => prop_assert_eq!(read.receipt.code(), None),
            Some(Ok(result)) => prop_assert_eq!(read.receipt.code(), Some(result.contract_ret)),
            Some(Err(_)) => {}
        }
    }
    if let Ok(header) = proto::BlockHeader::decode(&whole.block_header[..]) {
        prop_assert_eq!(block_id(&header.raw_data), Ok(block.id));
    }
    Ok(())
}

#[test]
fn no_bytes_bring_a_decoder_down() {
    fuzz("messages", 2000, any_bytes(), |bytes| {
        read_in_every_way(&bytes)
    });
}

#[test]
fn a_good_block_is_read_by_both_and_alike() {
    fuzz("blocks", 500, block(), |block| {
        let bytes = block.encode_to_vec();
        // As long as two hashes: it is refused, whatever it holds.
        let folded = block
            .transactions
            .iter()
            .any(|transaction| transaction.len() == 64);
        let read = decode_block(&bytes);
        prop_assert_eq!(read.is_ok(), !folded, "{:?}", read);
        if let Ok(read) = read {
            prop_assert!(read.root_holds);
            agrees_with_prost(&bytes, &read)?;
        }
        Ok(())
    });
}

#[test]
fn a_transactions_fields_are_those_that_prost_finds_and_writes_again() {
    fuzz("transactions", 1000, raw_data(), |bytes| {
        let raw = proto::TransactionRaw::decode(&bytes[..]).expect("our own bytes");
        prop_assert_eq!(&raw.encode_to_vec(), &bytes);
        let shown = decode_raw_data(&bytes);
        let Ok(shown) = shown else {
            let call = raw.contract.first().map(|entry| entry.r#type);
            prop_assert!(
                raw.contract.len() != 1 || matches!(call, Some(1 | 31)),
                "{:?}",
                shown
            );
            return Ok(());
        };
        prop_assert_eq!(&shown["canonical"], true);
        prop_assert_eq!(&shown["expiration_ms"], raw.expiration);
        prop_assert_eq!(&shown["timestamp_ms"], raw.timestamp);
        prop_assert_eq!(&shown["fee_limit_sun"], raw.fee_limit);
        prop_assert_eq!(&shown["permission_id"], raw.contract[0].permission_id);
        let signed = signed_transaction(&bytes, &raw.scripts);
        let again = proto::Transaction::decode(&signed[..]).expect("our own bytes");
        prop_assert_eq!(again.raw_data, bytes);
        prop_assert_eq!(again.signature, vec![raw.scripts]);
        Ok(())
    });
}

#[test]
fn a_signature_counts_for_whoever_made_it_and_for_nobody_else() {
    let given = (
        1..u128::MAX,
        any::<[u8; 32]>(),
        vec(any::<u8>(), 60..70),
        any::<u8>(),
    );
    fuzz("signatures", 300, given, |(key, digest, noise, v)| {
        let mut secret = [0; 32];
        secret[16..].copy_from_slice(&key.to_be_bytes());
        let key = SecretKey::from_bytes(&secret).expect("above zero, below the order");
        let txid = Txid::of(&digest);
        let mut signature = key.sign(&txid);
        prop_assert_eq!(recover(&txid, &signature), Ok(key.address()));
        signature[64] = v;
        let own = verify(SignerKind::Secp256k1, &key.address(), &txid, &signature);
        prop_assert!(own.is_err() || matches!(v, 0..=7 | 27..=34));
        let noise = verify(SignerKind::Secp256k1, &key.address(), &txid, &noise);
        prop_assert!(noise.is_err());
        Ok(())
    });
}
