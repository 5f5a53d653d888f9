//! A branch of the chain, from block 0 to a head: what the network agrees on, and each node's own view of it. With it the
//! rules that java-tron checks against a branch: TAPOS, expiration, duplicates.

use std::collections::HashMap;
use std::sync::Arc;

use sluice_core::envelope::Txid;

use crate::block::{Block, Included};
use crate::transaction::Tx;

/// The node's ring of recent blocks has a slot for each value of the two `ref_block_bytes` (`RecentBlockStore`).
const TAPOS_SLOTS: i64 = 65_536;
/// `Constant.MAXIMUM_TIME_UNTIL_EXPIRATION`.
pub const MAX_EXPIRATION_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;

/// Blocks 0 to head, each the parent of the next.
#[derive(Debug, Clone)]
pub struct Branch {
    blocks: Vec<Arc<Block>>,
    places: HashMap<Txid, Place>,
}

/// Where a transaction stands in a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Of its block.
    pub number: i64,
    /// In its block, from 0.
    pub index: usize,
}

impl Branch {
    /// A branch of block 0 alone.
    #[must_use]
    pub fn new(genesis: Arc<Block>) -> Self {
        Self {
            blocks: vec![genesis],
            places: HashMap::new(),
        }
    }

    /// The newest block.
    #[must_use]
    pub fn head(&self) -> &Arc<Block> {
        self.blocks.last().expect("block 0 is never taken off")
    }

    /// The block of this height.
    #[must_use]
    pub fn at(&self, number: i64) -> Option<&Arc<Block>> {
        usize::try_from(number)
            .ok()
            .and_then(|index| self.blocks.get(index))
    }

    /// The height of the newest solid block.
    #[must_use]
    pub fn solid(&self) -> i64 {
        self.head().solid
    }

    /// Puts a block on top.
    ///
    /// # Panics
    /// Where it does not follow from the head: that would be a mistake of this crate.
    pub fn push(&mut self, block: Arc<Block>) {
        assert_eq!(
            block.parent,
            self.head().id,
            "a block names its predecessor"
        );
        assert!(
            block.timestamp > self.head().timestamp,
            "times rise along a branch"
        );
        for (index, included) in block.transactions.iter().enumerate() {
            let place = Place {
                number: block.number,
                index,
            };
            let other = self.places.insert(included.tx.txid, place);
            assert!(other.is_none(), "a branch holds a txid at most once");
        }
        self.blocks.push(block);
    }

    /// Takes the head off, unless it is block 0.
    pub fn pop(&mut self) -> Option<Arc<Block>> {
        if self.blocks.len() == 1 {
            return None;
        }
        let block = self.blocks.pop()?;
        for included in &block.transactions {
            self.places.remove(&included.tx.txid);
        }
        Some(block)
    }

    /// Where the txid stands.
    #[must_use]
    pub fn place(&self, txid: &Txid) -> Option<Place> {
        self.places.get(txid).copied()
    }

    /// The transaction, and the block that holds it.
    #[must_use]
    pub fn find(&self, txid: &Txid) -> Option<(&Arc<Block>, &Included)> {
        let place = self.place(txid)?;
        let block = self.at(place.number)?;
        Some((block, block.transactions.get(place.index)?))
    }

    /// All blocks, block 0 first.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Arc<Block>> {
        self.blocks.iter()
    }

    /// Whether the reference is what this branch has in that slot (`Manager.validateTapos`): the newest block whose number
    /// ends in the two bytes, and the 8 bytes from the middle of its id.
    #[must_use]
    pub fn knows_reference(&self, tx: &Tx) -> bool {
        let Ok(slot) = <[u8; 2]>::try_from(tx.raw.ref_block_bytes.as_slice()) else {
            return false;
        };
        let slot = i64::from(u16::from_be_bytes(slot));
        let head = self.head().number;
        let number = head - (head - slot).rem_euclid(TAPOS_SLOTS);
        self.at(number)
            .is_some_and(|block| block.id[8..16] == tx.raw.ref_block_hash)
    }

    /// Whether a block on top of this branch may hold the transaction as far as its expiration goes
    /// (`Manager.validateCommon`): the head's time decides, and never that of the block being built. `next_slot` is given
    /// where chain parameter 88 is on.
    #[must_use]
    pub fn expiration_fits(&self, tx: &Tx, next_slot: Option<i64>) -> bool {
        let head = self.head().timestamp;
        let expiration = tx.raw.expiration;
        head < expiration
            && expiration <= head + MAX_EXPIRATION_AHEAD_MS
            && next_slot.is_none_or(|next_slot| expiration >= next_slot)
    }
}
