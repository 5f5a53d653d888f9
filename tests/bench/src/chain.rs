//! A chain for measurements without a network: each block holds what it is given, and follows from the one before.

use prost::Message as _;
use sluice_core::block::{block_id, merkle_root};
use sluice_core::proto::{Block, BlockHeader, BlockHeaderRaw, Transaction, TransactionResult};

/// Block 0 of a chain of no value.
pub const GENESIS: [u8; 32] = [0xaa; 32];

/// From one block to the next.
const INTERVAL_MS: i64 = 3000;

/// `contractRet` SUCCESS.
const SUCCESS: i32 = 1;

/// The newest block.
pub struct Chain {
    number: i64,
    id: [u8; 32],
    /// In milliseconds since the Unix epoch.
    pub time: i64,
}

impl Chain {
    /// Begins a chain, and returns its first block.
    pub fn begin() -> (Self, Vec<u8>) {
        let mut chain = Self {
            number: 999,
            id: [0; 32],
            // The beginning of a slot.
            time: 1_767_225_600_000 - INTERVAL_MS,
        };
        let first = chain.next(&[]);
        (chain, first)
    }

    /// The next block: it holds these transactions, each of which succeeds. Returns its bytes.
    pub fn next<'a>(&mut self, sent: impl IntoIterator<Item = &'a (Vec<u8>, Vec<u8>)>) -> Vec<u8> {
        let transactions: Vec<Vec<u8>> = sent
            .into_iter()
            .map(|(raw_data, signature)| in_block(raw_data, signature))
            .collect();
        self.number += 1;
        self.time += INTERVAL_MS;
        let raw = BlockHeaderRaw {
            timestamp: self.time,
            tx_trie_root: merkle_root(&transactions).to_vec(),
            parent_hash: self.id.to_vec(),
            number: self.number,
            witness_id: 0,
            witness_address: vec![0x41; 21],
            version: 32,
            account_state_root: vec![],
        }
        .encode_to_vec();
        self.id = block_id(&raw).expect("the header has a number");
        Block {
            transactions,
            block_header: BlockHeader {
                raw_data: raw,
                witness_signature: vec![7; 65],
            }
            .encode_to_vec(),
        }
        .encode_to_vec()
    }
}

fn in_block(raw_data: &[u8], signature: &[u8]) -> Vec<u8> {
    let result = TransactionResult {
        contract_ret: SUCCESS,
        ..TransactionResult::default()
    };
    Transaction {
        raw_data: raw_data.to_vec(),
        signature: vec![signature.to_vec()],
        ret: vec![result.encode_to_vec()],
    }
    .encode_to_vec()
}
