//! What a node keeps of transactions that are in no block of its branch yet, and what it remembers of those that it has
//! seen (java-tron: `Manager.pendingTransactions` and the re-push queue, `AdvService`, `Manager.transactionIdCache`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use sluice_core::envelope::Txid;

use crate::transaction::Tx;

/// A transaction that waits for a block.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The transaction.
    pub tx: Arc<Tx>,
    /// When it came to this node, in chain time.
    pub arrived: i64,
    /// When a fault takes it out, in chain time.
    pub evict_at: Option<i64>,
}

/// The transactions that wait, in the order they came.
#[derive(Debug, Default)]
pub struct Pool {
    entries: BTreeMap<u64, Pending>,
    order: HashMap<Txid, u64>,
    next: u64,
    held_before: HashSet<Txid>,
    /// Ids that came over the network or were taken from a client: a second delivery is ignored.
    pub seen: IdCache,
    /// Ids that this node has told its peers of: it does not tell them again.
    pub announced: IdCache,
    /// Ids that clients offered, whatever came of it, where `node.rpc.trxCacheEnable` is on.
    pub offered: IdCache,
}

impl Pool {
    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether this one waits.
    #[must_use]
    pub fn contains(&self, txid: &Txid) -> bool {
        self.order.contains_key(txid)
    }

    /// The transaction, if it waits.
    #[must_use]
    pub fn get(&self, txid: &Txid) -> Option<&Pending> {
        self.order
            .get(txid)
            .and_then(|order| self.entries.get(order))
    }

    /// All that wait, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.entries.values()
    }

    /// Takes it in, unless it waits already. True when this pool never held it before.
    pub fn insert(&mut self, pending: Pending) -> bool {
        let txid = pending.tx.txid;
        if self.contains(&txid) {
            return false;
        }
        self.order.insert(txid, self.next);
        self.entries.insert(self.next, pending);
        self.next += 1;
        self.held_before.insert(txid)
    }

    /// Takes it out.
    pub fn remove(&mut self, txid: &Txid) -> Option<Pending> {
        let order = self.order.remove(txid)?;
        self.entries.remove(&order)
    }

    /// Marks it to be taken out at this moment.
    pub fn evict_at(&mut self, txid: &Txid, at: i64) {
        if let Some(pending) = self
            .order
            .get(txid)
            .and_then(|order| self.entries.get_mut(order))
        {
            pending.evict_at = Some(at);
        }
    }
}

/// Ids that are remembered for a while.
#[derive(Debug, Default)]
pub struct IdCache {
    since: HashMap<Txid, i64>,
}

impl IdCache {
    /// Whether the id came within the last `keep_ms`.
    #[must_use]
    pub fn holds(&self, txid: &Txid, now: i64, keep_ms: i64) -> bool {
        self.since
            .get(txid)
            .is_some_and(|since| now - since < keep_ms)
    }

    /// Remembers it from now on.
    pub fn put(&mut self, txid: Txid, now: i64) {
        self.since.insert(txid, now);
    }
}
