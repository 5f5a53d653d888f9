//! The whole chain as somebody reads it who judges afterwards: each block's links and which transactions it holds, taken from
//! the network's own blocks and not from any answer of a node.

use sluice_core::envelope::Txid;

use crate::net::Net;

/// A block of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRecord {
    /// Height.
    pub number: i64,
    /// Its id.
    pub id: [u8; 32],
    /// Its parent's id.
    pub parent: [u8; 32],
    /// Chain time.
    pub timestamp_ms: i64,
    /// Whether it is solid.
    pub solid: bool,
    /// What it holds, with each one's result.
    pub transactions: Vec<(Txid, String)>,
}

impl Net {
    /// Every block, block 0 first.
    #[must_use]
    pub fn block_records(&self) -> Vec<BlockRecord> {
        let solid = self.trunk.solid();
        self.trunk
            .blocks()
            .map(|block| BlockRecord {
                number: block.number,
                id: block.id,
                parent: block.parent,
                timestamp_ms: block.timestamp,
                solid: block.number <= solid,
                transactions: block
                    .transactions
                    .iter()
                    .map(|included| (included.tx.txid, included.outcome.name()))
                    .collect(),
            })
            .collect()
    }
}
