//! Blocks as SQL sees them: a batch of protobuf bytes in, rows out, everything derived from the bytes.

use crate::pg::errors::{Code, OrRaise};
use pgrx::prelude::*;
use sluice_core::address::Address;
use sluice_core::block::{self, Block};
use sluice_core::envelope;
use std::collections::HashSet;

fn decode(bytes: &[u8], position: usize) -> Block {
    block::decode_block(bytes).or_raise(Code::BadBlock, &format!("blocks[{}]", position + 1))
}

/// What a block's bytes say: `number`, `id`, `parent_id`, `timestamp_ms`, `root`, `root_holds`, `transactions`.
#[pg_extern(immutable, strict, parallel_safe)]
fn decode_block(block: &[u8]) -> pgrx::JsonB {
    let block = block::decode_block(block).or_raise(Code::BadBlock, "block");
    let transactions: Vec<_> = block
        .transactions
        .iter()
        .map(|transaction| {
            serde_json::json!({
                "txid": transaction.txid.to_string(),
                "result": transaction.receipt.name(),
            })
        })
        .collect();
    pgrx::JsonB(serde_json::json!({
        "number": block.number,
        "id": hex::encode(block.id),
        "parent_id": hex::encode(block.parent_id),
        "timestamp_ms": block.timestamp.0,
        "root": hex::encode(block.root),
        "root_holds": block.root_holds,
        "transactions": transactions,
    }))
}

type Header = (
    name!(ord, i32),
    name!(number, i64),
    name!(id, Vec<u8>),
    name!(parent_id, Vec<u8>),
    name!(timestamp_ms, i64),
    name!(root, Vec<u8>),
    name!(root_holds, bool),
    name!(transactions, i32),
);

/// One row a block, in the order given.
#[pg_extern(immutable, strict, parallel_safe)]
fn read_headers(
    blocks: pgrx::Array<&[u8]>,
) -> TableIterator<
    'static,
    (
        name!(ord, i32),
        name!(number, i64),
        name!(id, Vec<u8>),
        name!(parent_id, Vec<u8>),
        name!(timestamp_ms, i64),
        name!(root, Vec<u8>),
        name!(root_holds, bool),
        name!(transactions, i32),
    ),
> {
    let rows: Vec<Header> = blocks
        .iter()
        .enumerate()
        .map(|(position, bytes)| {
            let block = decode(bytes.unwrap_or_default(), position);
            (
                i32::try_from(position + 1).unwrap_or(i32::MAX),
                block.number,
                block.id.to_vec(),
                block.parent_id.to_vec(),
                block.timestamp.0,
                block.root.to_vec(),
                block.root_holds,
                i32::try_from(block.transactions.len()).unwrap_or(i32::MAX),
            )
        })
        .collect();
    TableIterator::new(rows)
}

/// One row for each transaction whose owner is one of `owners`: what our wallets did in these blocks. What cannot be decoded is
/// passed over: it is not ours, since we built ours.
#[pg_extern(immutable, strict, parallel_safe)]
fn read_outflows(
    blocks: pgrx::Array<&[u8]>,
    owners: pgrx::Array<&str>,
) -> TableIterator<
    'static,
    (
        name!(block_number, i64),
        name!(position, i32),
        name!(txid, Vec<u8>),
        name!(receipt, String),
        name!(owner, String),
        name!(contract, String),
        name!(to_address, String),
        name!(amount_units, AnyNumeric),
        name!(tag, Option<Vec<u8>>),
    ),
> {
    let owners: HashSet<Address> = owners
        .iter()
        .flatten()
        .map(|owner| super::envelope::address_of(owner, "owners"))
        .collect();
    let mut rows = vec![];
    for (position, bytes) in blocks.iter().enumerate() {
        let block = decode(bytes.unwrap_or_default(), position);
        for (index, transaction) in block.transactions.into_iter().enumerate() {
            let Some(transfer) = envelope::transfer_of(&transaction.raw_data) else {
                continue;
            };
            if !owners.contains(&transfer.owner) {
                continue;
            }
            rows.push((
                block.number,
                i32::try_from(index).unwrap_or(i32::MAX),
                transaction.txid.as_bytes().to_vec(),
                transaction.receipt.name().to_string(),
                transfer.owner.to_string(),
                transfer.contract.to_string(),
                transfer.to.to_string(),
                AnyNumeric::try_from(transfer.units.to_string().as_str())
                    .or_raise(Code::BadBlock, "amount_units"),
                transfer.tag.map(|tag| tag.to_vec()),
            ));
        }
    }
    TableIterator::new(rows)
}
