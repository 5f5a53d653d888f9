//! The network's own record: who sent which transaction to which node and when, what was answered, and what became of the
//! transaction in pools and blocks. Only what is written here counts as seen on the wire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_core::address::Address;
use sluice_core::envelope::Txid;

use crate::text::{self, Tag};
use crate::transaction::Tx;

/// What is written as answered where nothing was.
pub const NO_ANSWER: &str = "NO_ANSWER";

/// One call that brought a transaction, in the order they came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// From 1.
    pub seq: u64,
    /// Chain time.
    pub at_ms: i64,
    /// Real time, milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// The node, from 0.
    pub node: usize,
    /// `broadcasthex` or `broadcasttransaction`.
    pub endpoint: String,
    /// The worker that the User-Agent names.
    pub worker: Option<String>,
    /// None where the bytes were no transaction.
    #[serde(with = "text::option")]
    pub txid: Option<Txid>,
    /// The operation's tag.
    #[serde(with = "text::option")]
    pub tag: Option<Tag>,
    /// Who pays.
    #[serde(with = "text::option")]
    pub owner: Option<Address>,
    /// The code answered, `NO_ANSWER`, `HTTP 503`, `{}`, `Error`, …
    pub answered: String,
    /// The message answered.
    pub message: String,
    /// What the node found when it looked; none where a fault kept it from looking.
    pub judged: Option<String>,
    /// By this call the transaction came into the node's pool.
    pub kept: bool,
    /// And this node never had it in its pool before.
    pub accepted: bool,
    /// The faults that struck.
    pub faults: Vec<String>,
}

/// Something that happened to a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Chain time.
    pub at_ms: i64,
    /// What.
    #[serde(flatten)]
    pub what: Happened,
}

/// Where a pool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// At a node, from 0.
    Node(usize),
    /// At the block producers.
    Producers,
}

/// What can happen to a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Happened {
    /// It came into a pool.
    Pooled {
        /// Whose.
        by: Holder,
        /// `call`, `gossip`, `fork` (put back from an erased block), `injected`.
        from: String,
    },
    /// It left a pool, and not for a block.
    Dropped {
        /// Whose.
        by: Holder,
        /// `timeout`, `evicted`, or the code of the check that it failed.
        why: String,
    },
    /// Producers hold it back.
    HeldBack {},
    /// It came into a block.
    Included {
        /// Height.
        block: i64,
        /// The block's time.
        block_ms: i64,
        /// Its result.
        result: String,
    },
    /// Its block was erased by a fork.
    Erased {
        /// Height.
        block: i64,
    },
}

/// What became of a transaction that somebody sent.
#[derive(Debug, Clone)]
pub struct Trail {
    /// The transaction, as first seen.
    pub tx: Arc<Tx>,
    /// In order.
    pub steps: Vec<Step>,
}

/// The whole record.
#[derive(Debug, Default)]
pub struct Log {
    sent: Vec<Sent>,
    trails: HashMap<Txid, Trail>,
    first_seen: Vec<Txid>,
    requests: BTreeMap<Request, u64>,
}

/// A kind of request, for counting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// From 0.
    pub node: usize,
    /// `/wallet/…` or `/walletsolidity/…`.
    pub path: String,
    /// The worker that the User-Agent names.
    pub worker: Option<String>,
}

impl Log {
    /// Writes a call down; `seq` is set here.
    pub fn sent(&mut self, mut sent: Sent) {
        sent.seq = self.sent.len() as u64 + 1;
        self.sent.push(sent);
    }

    /// Opens the trail of a transaction, if it has none.
    pub fn open(&mut self, tx: &Arc<Tx>) {
        self.trails.entry(tx.txid).or_insert_with(|| {
            self.first_seen.push(tx.txid);
            Trail {
                tx: Arc::clone(tx),
                steps: Vec::new(),
            }
        });
    }

    /// Writes down what happened to a transaction; those that nobody sent have no trail.
    pub fn step(&mut self, txid: &Txid, at_ms: i64, what: Happened) {
        if let Some(trail) = self.trails.get_mut(txid) {
            trail.steps.push(Step { at_ms, what });
        }
    }

    /// Counts a request.
    pub fn request(&mut self, request: Request) {
        *self.requests.entry(request).or_default() += 1;
    }

    /// All calls that brought a transaction.
    #[must_use]
    pub fn all_sent(&self) -> &[Sent] {
        &self.sent
    }

    /// The trails, in the order in which their transactions were first seen.
    pub fn trails(&self) -> impl Iterator<Item = &Trail> {
        self.first_seen
            .iter()
            .filter_map(|txid| self.trails.get(txid))
    }

    /// The trail of one.
    #[must_use]
    pub fn trail(&self, txid: &Txid) -> Option<&Trail> {
        self.trails.get(txid)
    }

    /// How often each kind of request came.
    #[must_use]
    pub fn requests(&self) -> &BTreeMap<Request, u64> {
        &self.requests
    }
}

/// The worker in `sluice-runner/<version> (<worker_id>)`.
#[must_use]
pub fn worker_of(user_agent: &str) -> Option<String> {
    let (_, rest) = user_agent
        .strip_prefix("sluice-runner/")?
        .split_once(" (")?;
    rest.strip_suffix(')')
        .filter(|worker| !worker.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_is_what_stands_in_brackets() {
        assert_eq!(
            worker_of("sluice-runner/0.1.0 (host-1 (a))"),
            Some("host-1 (a)".to_owned())
        );
        assert_eq!(worker_of("sluice-runner/0.1.0 ()"), None);
        assert_eq!(worker_of("sluice-runner/0.1.0"), None);
        assert_eq!(worker_of("curl/8"), None);
    }
}
