//! The record, summed up: for each transaction that somebody sent, for each operation, for each payer and token, and for
//! the network as it stands.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sluice_core::address::Address;
use sluice_core::envelope::Txid;

use crate::clock::ClockMode;
use crate::config::NodeSettings;
use crate::decimal;
use crate::log::{Happened, Sent, Step, Trail};
use crate::net::Net;
use crate::text::{self, Tag};

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// In a block of the chain.
    Included,
    /// In some pool, or held back by the producers.
    Waiting,
    /// In no pool any more, though it could still come into a block.
    Dropped,
    /// In no block, and none can take it any more.
    Expired,
    /// In no pool ever.
    NeverKept,
}

/// A transaction that somebody sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TxReport {
    /// Its id.
    #[serde(with = "text::value")]
    pub txid: Txid,
    /// The operation's tag.
    #[serde(with = "text::option")]
    pub tag: Option<Tag>,
    /// Who pays.
    #[serde(with = "text::option")]
    pub owner: Option<Address>,
    /// The token's contract.
    #[serde(with = "text::option")]
    pub contract: Option<Address>,
    /// Who is paid.
    #[serde(with = "text::option")]
    pub to: Option<Address>,
    /// Base units, decimal.
    pub units: Option<String>,
    /// Chain time.
    pub expiration_ms: i64,
    /// How many calls brought it.
    pub sends: u64,
    /// How many of those made a node take it that never had it before: one, unless a node was cut off from the others.
    pub accepts: u64,
    /// How many of those put it into a pool, nodes that had it before included.
    pub kept: u64,
    /// Who sent it.
    pub workers: BTreeSet<String>,
    /// What was answered, and how often.
    pub answers: BTreeMap<String, u64>,
    /// What became of it.
    pub became: Became,
    /// The block that holds it.
    pub block: Option<i64>,
    /// That block's time.
    pub block_ms: Option<i64>,
    /// Its result there.
    pub result: Option<String>,
    /// Whether that block is solid.
    pub solid: bool,
    /// Everything that happened to it.
    pub steps: Vec<Step>,
}

/// An operation, by its tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagReport {
    /// Its transactions, in the order they were first sent.
    pub txids: Vec<String>,
    /// How many of them the chain holds.
    pub included: u64,
    /// How many of those succeeded.
    pub successes: u64,
    /// What these paid, decimal.
    pub units: String,
}

/// What a payer's successful transfers of one token come to, on the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Who paid.
    #[serde(with = "text::value")]
    pub owner: Address,
    /// The token's contract; none for TRX.
    #[serde(with = "text::option")]
    pub contract: Option<Address>,
    /// How many.
    pub transfers: u64,
    /// Their sum, decimal.
    pub units: String,
    /// How many are solid.
    pub solid_transfers: u64,
    /// Their sum, decimal.
    pub solid_units: String,
}

/// A node as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The newest block of its view.
    pub head: i64,
    /// Its newest solid block.
    pub solid: i64,
    /// How many transactions wait.
    pub pool: usize,
    /// Its choices and misfortunes.
    pub settings: NodeSettings,
}

/// The network as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Chain time.
    pub now_ms: i64,
    /// How it passes.
    pub clock: ClockMode,
    /// Between blocks.
    pub block_interval_ms: i64,
    /// When the next block is due.
    pub next_slot_ms: i64,
    /// Id of block 0.
    pub genesis: String,
    /// Height of the newest block.
    pub head: i64,
    /// Its id.
    pub head_id: String,
    /// Its time.
    pub head_ms: i64,
    /// Height of the newest solid block.
    pub solid: i64,
    /// Its id.
    pub solid_id: String,
    /// Blocks become solid no more.
    pub stalled: bool,
    /// Blocks on top of a block that make it solid.
    pub solidity_lag: i64,
    /// How many transactions wait at the producers.
    pub producer_pool: usize,
    /// How many they hold back.
    pub held_back: usize,
    /// The nodes, from 0.
    pub nodes: Vec<NodeStatus>,
    /// How many calls brought a transaction.
    pub sends: usize,
    /// How often each kind of fault has struck.
    pub faults_struck: BTreeMap<String, u64>,
}

/// Which calls of the log are wanted. What is not given matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogFilter {
    /// The transaction.
    #[serde(with = "text::option")]
    pub txid: Option<Txid>,
    /// The operation's tag.
    #[serde(with = "text::option")]
    pub tag: Option<Tag>,
    /// The worker.
    pub worker: Option<String>,
    /// The node.
    pub node: Option<usize>,
    /// Only calls after this one.
    pub after: u64,
}

impl Net {
    /// The calls that brought transactions.
    #[must_use]
    pub fn sends(&self, filter: &LogFilter) -> Vec<Sent> {
        self.log
            .all_sent()
            .iter()
            .filter(|sent| sent.seq > filter.after)
            .filter(|sent| filter.txid.is_none() || filter.txid == sent.txid)
            .filter(|sent| filter.tag.is_none() || filter.tag == sent.tag)
            .filter(|sent| filter.worker.is_none() || filter.worker == sent.worker)
            .filter(|sent| filter.node.is_none_or(|node| node == sent.node))
            .cloned()
            .collect()
    }

    /// Every transaction that somebody sent, in the order they were first seen.
    #[must_use]
    pub fn tx_reports(&self) -> Vec<TxReport> {
        let mut sends: BTreeMap<Txid, Vec<&Sent>> = BTreeMap::new();
        for sent in self.log.all_sent() {
            if let Some(txid) = sent.txid {
                sends.entry(txid).or_default().push(sent);
            }
        }
        self.log
            .trails()
            .map(|trail| {
                let sends = sends.get(&trail.tx.txid).map_or(&[][..], Vec::as_slice);
                self.tx_report(trail, sends)
            })
            .collect()
    }

    /// One transaction.
    #[must_use]
    pub fn report_of(&self, txid: &Txid) -> Option<TxReport> {
        let trail = self.log.trail(txid)?;
        let sends: Vec<_> = self
            .log
            .all_sent()
            .iter()
            .filter(|sent| sent.txid.as_ref() == Some(txid))
            .collect();
        Some(self.tx_report(trail, &sends))
    }

    fn tx_report(&self, trail: &Trail, sends: &[&Sent]) -> TxReport {
        let tx = &trail.tx;
        let payment = tx.payment();
        let found = self.trunk.find(&tx.txid);
        let mut answers = BTreeMap::new();
        for sent in sends {
            *answers.entry(sent.answered.clone()).or_default() += 1;
        }
        TxReport {
            txid: tx.txid,
            tag: tx.tag().map(Tag),
            owner: tx.owner,
            contract: payment.as_ref().and_then(|payment| payment.contract),
            to: payment.as_ref().map(|payment| payment.to),
            units: payment.map(|payment| payment.units),
            expiration_ms: tx.raw.expiration,
            sends: sends.len() as u64,
            accepts: sends.iter().filter(|sent| sent.accepted).count() as u64,
            kept: sends.iter().filter(|sent| sent.kept).count() as u64,
            workers: sends
                .iter()
                .filter_map(|sent| sent.worker.clone())
                .collect(),
            answers,
            became: self.became(trail),
            block: found.map(|(block, _)| block.number),
            block_ms: found.map(|(block, _)| block.timestamp),
            result: found.map(|(_, included)| included.outcome.name()),
            solid: found.is_some_and(|(block, _)| block.number <= self.trunk.solid()),
            steps: trail.steps.clone(),
        }
    }

    fn became(&self, trail: &Trail) -> Became {
        let txid = &trail.tx.txid;
        if self.trunk.place(txid).is_some() {
            return Became::Included;
        }
        let waits = self.producers.pool.contains(txid)
            || self.producers.held.iter().any(|held| held.tx.txid == *txid)
            || self.nodes.iter().any(|node| node.pool.contains(txid));
        if waits {
            return Became::Waiting;
        }
        let held = trail.steps.iter().any(|step| match step.what {
            Happened::Pooled { .. } | Happened::Included { .. } => true,
            Happened::Dropped { .. } | Happened::HeldBack {} | Happened::Erased { .. } => false,
        });
        if !held {
            return Became::NeverKept;
        }
        if self.trunk.head().timestamp >= trail.tx.raw.expiration {
            Became::Expired
        } else {
            Became::Dropped
        }
    }

    /// Every operation that somebody sent a transaction of, by its tag.
    #[must_use]
    pub fn tag_reports(&self) -> BTreeMap<String, TagReport> {
        let mut tags: BTreeMap<String, TagReport> = BTreeMap::new();
        for trail in self.log.trails() {
            let Some(tag) = trail.tx.tag() else {
                continue;
            };
            let report = tags
                .entry(Tag(tag).to_string())
                .or_insert_with(|| TagReport {
                    units: "0".to_owned(),
                    ..TagReport::default()
                });
            report.txids.push(trail.tx.txid.to_string());
            let Some((_, included)) = self.trunk.find(&trail.tx.txid) else {
                continue;
            };
            report.included += 1;
            if included.outcome.is_success() {
                report.successes += 1;
                if let Some(payment) = trail.tx.payment() {
                    report.units = decimal::sum(&report.units, &payment.units);
                }
            }
        }
        tags
    }

    /// What the chain's successful transfers come to, foreign ones aside.
    #[must_use]
    pub fn totals(&self) -> Vec<Total> {
        let mut totals: BTreeMap<(Address, Option<Address>), Total> = BTreeMap::new();
        for block in self.trunk.blocks() {
            let solid = block.number <= self.trunk.solid();
            for included in &block.transactions {
                if included.foreign || !included.outcome.is_success() {
                    continue;
                }
                let (Some(owner), Some(payment)) = (included.tx.owner, included.tx.payment())
                else {
                    continue;
                };
                let total = totals
                    .entry((owner, payment.contract))
                    .or_insert_with(|| Total {
                        owner,
                        contract: payment.contract,
                        transfers: 0,
                        units: "0".to_owned(),
                        solid_transfers: 0,
                        solid_units: "0".to_owned(),
                    });
                total.transfers += 1;
                total.units = decimal::sum(&total.units, &payment.units);
                if solid {
                    total.solid_transfers += 1;
                    total.solid_units = decimal::sum(&total.solid_units, &payment.units);
                }
            }
        }
        totals.into_values().collect()
    }

    /// The network as it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let id = |number: i64| {
            self.trunk
                .at(number)
                .map(|block| hex::encode(block.id))
                .unwrap_or_default()
        };
        let head = self.trunk.head();
        Status {
            now_ms: self.clock.now(),
            clock: self.clock.mode(),
            block_interval_ms: self.config.block_interval_ms,
            next_slot_ms: self.next_slot(),
            genesis: id(0),
            head: head.number,
            head_id: id(head.number),
            head_ms: head.timestamp,
            solid: head.solid,
            solid_id: id(head.solid),
            stalled: self.stalled,
            solidity_lag: self.solidity_lag,
            producer_pool: self.producers.pool.len(),
            held_back: self.producers.held.len(),
            nodes: self
                .nodes
                .iter()
                .map(|node| NodeStatus {
                    head: node.view.head().number,
                    solid: node.view.solid(),
                    pool: node.pool.len(),
                    settings: node.settings.clone(),
                })
                .collect(),
            sends: self.log.all_sent().len(),
            faults_struck: self.faults.struck().clone(),
        }
    }
}
