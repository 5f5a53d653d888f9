//! Forks: the newest blocks that are not solid are erased, others take their place, and the transactions of the erased
//! ones move, end otherwise, or are lost (`Manager.switchFork`, `Manager.eraseBlock`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use sluice_core::envelope::Txid;

use crate::block::Block;
use crate::log::{Happened, Holder};
use crate::net::Net;
use crate::outcome::Outcome;
use crate::producer::Until;

/// What a fork does with the transactions of the blocks that it erases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkPlan {
    /// They are lost: no producer has them any more.
    pub drop: HashSet<Txid>,
    /// They come into the new block of this place, from 0, or later.
    pub place: HashMap<Txid, i64>,
    /// They end so this time.
    pub results: HashMap<Txid, Outcome>,
}

/// What a fork did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForkReport {
    /// The block that both branches share.
    pub common: i64,
    /// Ids of the erased blocks, the lowest first.
    pub erased: Vec<String>,
    /// Ids of the new ones, the lowest first.
    pub added: Vec<String>,
}

impl Net {
    /// Erases the newest `depth` blocks and builds `blocks` in their place, the first after `missed` empty slots. Nodes in
    /// `stay` do not hear of it: they keep their branch, frozen.
    ///
    /// On TRON the longer branch wins, so `blocks` is at least `depth`; one more is what really makes a node switch.
    pub fn fork(
        &mut self,
        depth: i64,
        blocks: i64,
        missed: i64,
        plan: ForkPlan,
        stay: &[usize],
    ) -> Result<ForkReport, String> {
        let head = self.trunk.head().number;
        let solid = self.trunk.solid();
        if depth < 1 || depth > head - solid {
            return Err(format!(
                "depth {depth} is not from 1 to {}: block {solid} is solid, {head} is the head",
                head - solid
            ));
        }
        if blocks < depth {
            return Err(format!(
                "{blocks} blocks cannot replace {depth}: the longer branch wins"
            ));
        }
        if let Some(node) = stay.iter().find(|node| **node >= self.nodes.len()) {
            return Err(format!("there is no node {node}"));
        }
        if let Some(txid) = plan
            .place
            .iter()
            .find(|(_, place)| **place >= blocks)
            .map(|(id, _)| id)
        {
            return Err(format!("there is no new block to place {txid} in"));
        }
        for node in stay {
            self.nodes[*node].settings.frozen = true;
        }

        let erased = self.erase(depth);
        let common = self.trunk.head().number;
        self.put_back(&erased, common, &plan);
        self.begin_fork();

        let interval = self.config.block_interval_ms;
        self.missed_slots = missed.max(0);
        let first = self.next_slot();
        self.missed_slots = 0;
        let mut added = Vec::new();
        for place in 0..blocks {
            let timestamp = first + place * interval;
            self.clock.at_least(timestamp);
            self.produce_at(timestamp);
            added.push(hex::encode(self.trunk.head().id));
        }
        for node in 0..self.nodes.len() {
            self.sync(node);
        }
        let erased = erased.iter().map(|block| hex::encode(block.id)).collect();
        Ok(ForkReport {
            common,
            erased,
            added,
        })
    }

    /// The lowest first.
    fn erase(&mut self, depth: i64) -> Vec<Arc<Block>> {
        let now = self.clock.now();
        let mut erased = Vec::new();
        for _ in 0..depth {
            let Some(block) = self.trunk.pop() else {
                break;
            };
            for included in &block.transactions {
                self.log.step(
                    &included.tx.txid,
                    now,
                    Happened::Erased {
                        block: block.number,
                    },
                );
            }
            erased.push(block);
        }
        erased.reverse();
        erased
    }

    /// Gives the producers back what stood in erased blocks. Foreign transactions are made anew with each block.
    fn put_back(&mut self, erased: &[Arc<Block>], common: i64, plan: &ForkPlan) {
        for included in erased.iter().flat_map(|block| &block.transactions) {
            if included.foreign {
                continue;
            }
            let txid = included.tx.txid;
            if plan.drop.contains(&txid) {
                continue;
            }
            if let Some(outcome) = plan.results.get(&txid) {
                self.producers.results.insert(txid, *outcome);
            }
            match plan.place.get(&txid) {
                Some(place) => {
                    self.hold(Arc::clone(&included.tx), Until::Height(common + 1 + place));
                }
                None => {
                    self.take_in(Holder::Producers, Arc::clone(&included.tx), "fork");
                }
            }
        }
    }
}
