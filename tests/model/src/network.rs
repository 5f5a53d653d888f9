//! TRON, as its source has it: what a block may hold, when it is irreversible, how forks undo what is not, and nodes that
//! keep, drop, pass on and answer what they like.

use crate::world::{Inclusion, MOST_BLOCKS, Outcome, Transaction, World};

/// How many nodes there are. Each has a pool of its own, and makes blocks.
pub const NODES: u8 = 2;

/// A transaction that a block takes in: of which withdrawal, which one, and how it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Of which withdrawal.
    pub withdrawal: u8,
    /// Which of its transactions.
    pub transaction: u8,
    /// How it runs.
    pub outcome: Outcome,
}

impl World {
    /// Whether the next block may hold the transaction. `pools`: whether somebody who makes blocks must have it in a pool, or
    /// may have got it from anybody just now.
    ///
    /// The *parent's* time counts and never the block's own (`Manager.java`, `validateCommon`); the block referred to must be on
    /// this chain (`validateTapos`); a txid is on a chain once (`validateDup`).
    #[must_use]
    pub fn may_be_next(&self, transaction: &Transaction, pools: bool) -> bool {
        let held = if pools {
            transaction.pools != 0
        } else {
            transaction.wire
        };
        held && !transaction.void
            && transaction.included.is_none()
            && transaction.reference <= self.head()
            && self.tick(self.head()) < transaction.expiration
    }

    /// A block, `gap` ticks after its parent, and what it takes in. Blocks with `confirmations` more on top are irreversible.
    /// `None` where the model has no place for it.
    #[must_use]
    pub fn produce(&self, gap: u8, taken: &[Taken], confirmations: u8) -> Option<Self> {
        if self.blocks.len() == MOST_BLOCKS {
            return None;
        }
        let mut next = self.clone();
        next.blocks.push(self.tick(self.head()) + gap);
        let height = next.head();
        for take in taken {
            let transaction = &mut next.withdrawals[usize::from(take.withdrawal)].transactions
                [usize::from(take.transaction)];
            transaction.pools = 0;
            transaction.included = Some(Inclusion {
                height,
                outcome: take.outcome,
            });
        }
        next.solid = next.solid.max(height.saturating_sub(confirmations));
        Some(next)
    }

    /// A fork: the newest block is gone, and what it held is in the pools again (`Manager.java`, `eraseBlock`). `None` where it is
    /// irreversible. `pools`: whether there are any.
    ///
    /// What was built on it has no reference any more. The database reads the other branch from where they part; what it
    /// concluded before stays (sound rules never read so far).
    #[must_use]
    pub fn fork(&self, pools: bool) -> Option<Self> {
        let height = self.head();
        if height == self.solid {
            return None;
        }
        let mut next = self.clone();
        next.blocks.pop();
        next.followed = next.followed.min(next.head());
        for transaction in next
            .withdrawals
            .iter_mut()
            .flat_map(|withdrawal| &mut withdrawal.transactions)
        {
            if transaction.reference >= height && !transaction.is_remains() {
                transaction.void = true;
            }
            if transaction
                .included
                .is_some_and(|inclusion| inclusion.height == height)
            {
                transaction.included = None;
                transaction.wire = true;
                transaction.pools = if pools { (1 << NODES) - 1 } else { 0 };
            }
        }
        Some(next)
    }
}
