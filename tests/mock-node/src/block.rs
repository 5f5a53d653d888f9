//! Blocks as this chain makes them. Block id and Merkle root are computed here from java-tron's rules, and not with the
//! code that sluice checks blocks with: a mistake in either shows as a block refused.

use std::sync::{Arc, OnceLock};

use prost::Message;
use sha2::{Digest, Sha256};
use sluice_core::address::Address;
use sluice_core::envelope::Txid;
use sluice_core::proto;
use sluice_core::signature::SecretKey;

use crate::outcome::Outcome;
use crate::transaction::Tx;

/// `BlockHeader.raw.version` of java-tron 4.8.
const BLOCK_VERSION: i32 = 32;

/// A transaction as a block holds it.
#[derive(Debug, Clone)]
pub struct Included {
    /// What was sent.
    pub tx: Arc<Tx>,
    /// As the block carries them; a fault may have put them into another form than was sent.
    pub signatures: Vec<Vec<u8>>,
    /// `ret` entries, each a `Transaction.Result`.
    pub ret: Vec<Vec<u8>>,
    /// What `ret` says.
    pub outcome: Outcome,
    /// Made by the network to fill its blocks, and none of the transactions that anyone sent.
    pub foreign: bool,
}

impl Included {
    /// The whole transaction: a leaf of the Merkle tree.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.tx.encode(&self.signatures, &self.ret)
    }
}

/// A block. Its id commits to everything but the witness's signature.
#[derive(Debug)]
pub struct Block {
    /// Height.
    pub number: i64,
    /// Milliseconds of chain time.
    pub timestamp: i64,
    /// SHA-256 of the header, its first 8 bytes replaced by the number.
    pub id: [u8; 32],
    /// The parent's id.
    pub parent: [u8; 32],
    /// Root over the whole transactions.
    pub root: [u8; 32],
    /// `BlockHeader.raw`, serialized.
    pub header_raw: Vec<u8>,
    /// Who produced it.
    pub witness: Address,
    /// In their order.
    pub transactions: Vec<Included>,
    /// The highest solid block once this block is the head.
    pub solid: i64,
    signer: Option<Arc<Witness>>,
    witness_signature: OnceLock<Vec<u8>>,
}

/// A producer of blocks.
#[derive(Debug)]
pub struct Witness {
    key: SecretKey,
    address: Address,
}

impl Witness {
    /// The witness with this key.
    #[must_use]
    pub fn new(key: SecretKey) -> Self {
        let address = key.address();
        Self { key, address }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }
}

/// What a block is made from.
pub struct Draft {
    /// Height.
    pub number: i64,
    /// Milliseconds of chain time.
    pub timestamp: i64,
    /// The parent's id.
    pub parent: [u8; 32],
    /// The transactions, in their order.
    pub transactions: Vec<Included>,
    /// The highest solid block once this block is the head.
    pub solid: i64,
}

impl Block {
    /// A block that this witness signs.
    #[must_use]
    pub fn produce(draft: Draft, witness: Arc<Witness>) -> Self {
        Self::new(draft, witness.address(), BLOCK_VERSION, Some(witness))
    }

    /// Block 0: no witness signs it, and its number and time are 0, so that neither is printed.
    #[must_use]
    pub fn genesis(parent: [u8; 32], witness: Address) -> Self {
        let draft = Draft {
            number: 0,
            timestamp: 0,
            parent,
            transactions: Vec::new(),
            solid: 0,
        };
        Self::new(draft, witness, 0, None)
    }

    fn new(draft: Draft, witness: Address, version: i32, signer: Option<Arc<Witness>>) -> Self {
        let leaves: Vec<_> = draft
            .transactions
            .iter()
            .map(|tx| sha256(&tx.bytes()))
            .collect();
        let root = merkle_root(&leaves);
        let header_raw = proto::BlockHeaderRaw {
            timestamp: draft.timestamp,
            tx_trie_root: root.to_vec(),
            parent_hash: draft.parent.to_vec(),
            number: draft.number,
            witness_address: witness.as_bytes().to_vec(),
            version,
            ..Default::default()
        }
        .encode_to_vec();
        Self {
            number: draft.number,
            timestamp: draft.timestamp,
            id: block_id(draft.number, &header_raw),
            parent: draft.parent,
            root,
            header_raw,
            witness,
            transactions: draft.transactions,
            solid: draft.solid,
            signer,
            witness_signature: OnceLock::new(),
        }
    }

    /// The same block under another parent, signed by the same witness: a block of a chain that is not this one.
    #[must_use]
    pub fn with_parent(&self, parent: [u8; 32]) -> Self {
        let draft = Draft {
            number: self.number,
            timestamp: self.timestamp,
            parent,
            transactions: self.transactions.clone(),
            solid: self.solid,
        };
        Self::new(draft, self.witness, BLOCK_VERSION, self.signer.clone())
    }

    /// The witness's signature over the plain SHA-256 of the header (`BlockCapsule.sign`), v as java-tron writes it (0 or
    /// 1); empty for block 0. Signed when first asked for: histories may be long.
    #[must_use]
    pub fn witness_signature(&self) -> &[u8] {
        self.witness_signature.get_or_init(|| {
            let Some(witness) = &self.signer else {
                return Vec::new();
            };
            let digest = Txid::from_bytes(&sha256(&self.header_raw))
                .expect("SHA-256 gives the 32 bytes that are signed");
            let mut signature = witness.key.sign(&digest).to_vec();
            signature[64] -= 27;
            signature
        })
    }

    /// `protocol.Block`, serialized.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        proto::Block {
            transactions: self.transactions.iter().map(Included::bytes).collect(),
            block_header: proto::BlockHeader {
                raw_data: self.header_raw.clone(),
                witness_signature: self.witness_signature().to_vec(),
            }
            .encode_to_vec(),
        }
        .encode_to_vec()
    }
}

/// The block's id (`Sha256Hash.generateBlockId`).
fn block_id(number: i64, header_raw: &[u8]) -> [u8; 32] {
    let mut id = sha256(header_raw);
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

/// The root over leaves that are hashed already (`MerkleTree.createTree`): a full pair is hashed, left before right; a
/// last one without a partner goes up as it is; no leaves give 32 zero bytes.
///
/// Written from the top: in that tree the left half of n nodes is a full tree over the largest power of two below n.
fn merkle_root(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => [0; 32],
        [leaf] => *leaf,
        _ => {
            let half = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(half);
            let mut hasher = Sha256::new();
            hasher.update(merkle_root(left));
            hasher.update(merkle_root(right));
            hasher.finalize().into()
        }
    }
}

/// SHA-256.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn vectors() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/public.json");
        let text = std::fs::read_to_string(path).expect("the vectors lie beside this crate");
        serde_json::from_str(&text).expect("the vectors are JSON")
    }

    #[test]
    fn roots_are_those_of_the_vectors() {
        let vectors = vectors();
        let entries = vectors["merkle"].as_array().expect("a list");
        assert!(entries.len() >= 6);
        for entry in entries {
            let leaves: Vec<_> = entry["transactions"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|tx| sha256(&hex::decode(tx.as_str().expect("hex")).expect("hex")))
                .collect();
            assert_eq!(
                hex::encode(merkle_root(&leaves)),
                entry["root"],
                "{}",
                entry["id"]
            );
        }
    }

    #[test]
    fn roots_equal_those_of_core_for_every_count_up_to_70() {
        for count in 0..70_u8 {
            let transactions: Vec<_> = (0..count).map(|byte| vec![byte; 3]).collect();
            let leaves: Vec<_> = transactions.iter().map(|tx| sha256(tx)).collect();
            assert_eq!(
                merkle_root(&leaves),
                sluice_core::block::merkle_root(&transactions),
                "{count} transactions"
            );
        }
    }

    #[test]
    fn block_ids_are_those_of_the_vectors() {
        let vectors = vectors();
        let entries = vectors["blocks"].as_array().expect("a list");
        assert!(entries.len() >= 6);
        for entry in entries {
            let raw = hex::decode(entry["raw"].as_str().expect("hex")).expect("hex");
            let number = entry["header"]["number"].as_i64().expect("a number");
            assert_eq!(
                hex::encode(block_id(number, &raw)),
                entry["block_id"],
                "{}",
                entry["id"]
            );
        }
    }
}
