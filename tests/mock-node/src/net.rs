//! The network: one chain, its producers, and nodes that follow it each in their own way. Everything here happens in chain
//! time and at once; HTTP, real time and threads are elsewhere.

use std::sync::Arc;

use sluice_core::envelope::Txid;

use crate::block::{Block, Draft, Included, Witness, sha256};
use crate::chain::Branch;
use crate::clock::{Clock, ClockMode};
use crate::config::{Config, NodeSettings};
use crate::foreign;
use crate::log::{Happened, Holder, Log};
use crate::pool::{Pending, Pool};
use crate::producer::Producers;
use crate::rules::Faults;
use crate::transaction::Tx;
use crate::wallets::Wallets;

/// The witnesses that take turns (`MAX_ACTIVE_WITNESS_NUM`).
const WITNESSES: i64 = 27;

/// A node: its view of the chain and its pool.
#[derive(Debug)]
pub struct Node {
    /// Blocks that it has applied.
    pub view: Branch,
    /// Transactions that it holds.
    pub pool: Pool,
    /// Its choices and misfortunes.
    pub settings: NodeSettings,
}

/// The whole network.
#[derive(Debug)]
pub struct Net {
    /// How it was set up.
    pub config: Config,
    /// Chain time.
    pub clock: Clock,
    /// The chain that the producers build on.
    pub trunk: Branch,
    /// The nodes, from 0.
    pub nodes: Vec<Node>,
    /// Those who make blocks.
    pub producers: Producers,
    /// Whose signature is taken.
    pub wallets: Wallets,
    /// Lies on schedule.
    pub faults: Faults,
    /// What happened.
    pub log: Log,
    /// Whether blocks become solid.
    pub stalled: bool,
    /// Blocks on top of a block that make it solid.
    pub solidity_lag: i64,
    /// Slots from the head that will have no block.
    pub missed_slots: i64,
    witnesses: Vec<Arc<Witness>>,
    forks: i64,
}

impl Net {
    /// A network with its history, at its start time.
    pub fn new(config: Config, machine_ms: i64) -> Result<Self, String> {
        let config = Config {
            start_ms: Some(config.start_ms.unwrap_or(machine_ms)),
            ..config
        };
        config.check()?;
        let start_ms = config.start_ms.unwrap_or(machine_ms);
        let witnesses: Vec<_> = (0..WITNESSES)
            .map(|index| {
                Arc::new(Witness::new(foreign::key(
                    config.seed,
                    &format!("witness {index}"),
                )))
            })
            .collect();
        let salt = sha256(
            &[
                b"sluice mock genesis".as_slice(),
                &config.seed.to_be_bytes(),
            ]
            .concat(),
        );
        let genesis = Arc::new(Block::genesis(salt, witnesses[0].address()));

        let mut faults = Faults::new(config.seed);
        for rule in &config.faults {
            faults.add(rule.clone())?;
        }
        let mut wallets = Wallets::default();
        for (owner, signer) in &config.wallets {
            wallets.register(*owner, signer.clone());
        }
        let mut net = Self {
            clock: Clock::new(config.clock, start_ms),
            trunk: Branch::new(Arc::clone(&genesis)),
            nodes: (0..config.nodes)
                .map(|_| Node {
                    view: Branch::new(Arc::clone(&genesis)),
                    pool: Pool::default(),
                    settings: config.node.clone(),
                })
                .collect(),
            producers: Producers::default(),
            wallets,
            faults,
            log: Log::default(),
            stalled: false,
            solidity_lag: config.solidity_lag,
            missed_slots: 0,
            witnesses,
            forks: 0,
            config,
        };
        net.write_history(start_ms);
        Ok(net)
    }

    fn write_history(&mut self, start_ms: i64) {
        let interval = self.config.block_interval_ms;
        let last = start_ms - start_ms.rem_euclid(interval);
        for back in (0..self.config.history).rev() {
            let block = self.seal(last - back * interval, Vec::new());
            self.trunk.push(Arc::new(block));
        }
        for node in 0..self.nodes.len() {
            self.sync(node);
        }
    }

    // Time

    /// When the next block is due.
    #[must_use]
    pub fn next_slot(&self) -> i64 {
        let head = self.trunk.head();
        let interval = self.config.block_interval_ms;
        let first = if head.number == 0 {
            // Block 0 is stamped 0; the chain begins at its start time.
            let start = self.config.start_ms.unwrap_or_default();
            start - start.rem_euclid(interval) + interval
        } else {
            head.timestamp + interval
        };
        first + self.missed_slots * interval
    }

    /// Produces the blocks that are due by the clock, at most so many, and answers how many those were.
    pub fn catch_up(&mut self, at_most: usize) -> usize {
        let mut produced = 0;
        while produced < at_most && self.next_slot() <= self.clock.now() {
            self.produce_next();
            produced += 1;
        }
        produced
    }

    /// Moves the clock on, and produces the blocks that become due on the way.
    pub fn step(&mut self, ms: i64) {
        let end = self.clock.now().saturating_add(ms.max(0));
        while self.next_slot() <= end {
            self.produce_next();
        }
        self.clock.at_least(end);
    }

    /// Produces so many blocks now; the clock moves on to the last of them.
    pub fn produce(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.produce_next();
        }
    }

    /// The next slots have no block.
    pub fn miss(&mut self, slots: i64) {
        self.missed_slots += slots.max(0);
    }

    /// Another pace of chain time.
    pub fn set_clock(&mut self, mode: ClockMode) {
        self.clock.set_mode(mode);
    }

    fn produce_next(&mut self) {
        let timestamp = self.next_slot();
        self.clock.at_least(timestamp);
        self.missed_slots = 0;
        self.produce_at(timestamp);
        for node in 0..self.nodes.len() {
            self.sync(node);
        }
    }

    // Blocks

    /// Packs and adds a block to the trunk.
    pub(crate) fn produce_at(&mut self, timestamp: i64) {
        let packed = self.pack(timestamp);
        let block = Arc::new(self.seal(timestamp, packed));
        self.trunk.push(Arc::clone(&block));
        for included in &block.transactions {
            self.log.step(
                &included.tx.txid,
                timestamp,
                Happened::Included {
                    block: block.number,
                    block_ms: timestamp,
                    result: included.outcome.name(),
                },
            );
        }
        self.tidy_producers();
    }

    /// A block on the trunk's head: foreign transactions first, then these.
    fn seal(&self, timestamp: i64, packed: Vec<Included>) -> Block {
        let head = self.trunk.head();
        let mut transactions = foreign::transactions(
            self.config.seed,
            head,
            self.config.block_interval_ms,
            self.config.foreign_per_block,
        );
        transactions.extend(packed);
        let number = head.number + 1;
        let solid = if self.stalled {
            head.solid
        } else {
            head.solid.max(number - self.solidity_lag)
        };
        let turn = timestamp / self.config.block_interval_ms + self.forks;
        let witness = &self.witnesses[turn.rem_euclid(WITNESSES) as usize];
        let draft = Draft {
            number,
            timestamp,
            parent: head.id,
            transactions,
            solid,
        };
        Block::produce(draft, Arc::clone(witness))
    }

    /// A fork's blocks are made by other witnesses, so that their ids differ even where nothing else does.
    pub(crate) fn begin_fork(&mut self) {
        self.forks += 1;
    }

    // Nodes

    /// Brings a node's view as far as its settings let it: blocks of another branch are taken off, the trunk's put on.
    pub fn sync(&mut self, index: usize) {
        let settings = &self.nodes[index].settings;
        if settings.frozen {
            return;
        }
        let target = (self.trunk.head().number - settings.lag).max(0);
        let now = self.clock.now();
        let mut erased = Vec::new();
        while !self.on_trunk(index) {
            let Some(block) = self.nodes[index].view.pop() else {
                break;
            };
            let ours = block
                .transactions
                .iter()
                .filter(|included| !included.foreign);
            erased.extend(ours.map(|included| Arc::clone(&included.tx)));
        }
        // Transactions of erased blocks go back into the pool with a fresh time-out (`Manager.eraseBlock`).
        for tx in erased {
            self.take_in(Holder::Node(index), tx, "fork");
        }
        while self.nodes[index].view.head().number < target {
            let number = self.nodes[index].view.head().number + 1;
            let Some(block) = self.trunk.at(number).cloned() else {
                break;
            };
            for included in &block.transactions {
                let pool = &mut self.nodes[index].pool;
                pool.remove(&included.tx.txid);
                if self.nodes[index].settings.trx_cache {
                    self.nodes[index].pool.offered.put(included.tx.txid, now);
                }
            }
            self.nodes[index].view.push(block);
            self.tidy_node(index);
        }
    }

    fn on_trunk(&self, index: usize) -> bool {
        let head = self.nodes[index].view.head();
        self.trunk
            .at(head.number)
            .is_some_and(|block| block.id == head.id)
    }

    /// Puts a transaction into a pool, with its time-out beginning now. True when that pool never held it before.
    pub(crate) fn take_in(&mut self, holder: Holder, tx: Arc<Tx>, from: &str) -> bool {
        let now = self.clock.now();
        let txid = tx.txid;
        let pool = self.pool_mut(holder);
        if pool.contains(&txid) {
            return false;
        }
        let fresh = pool.insert(Pending {
            tx,
            arrived: now,
            evict_at: None,
        });
        self.log.step(
            &txid,
            now,
            Happened::Pooled {
                by: holder,
                from: from.to_owned(),
            },
        );
        fresh
    }

    pub(crate) fn pool_mut(&mut self, holder: Holder) -> &mut Pool {
        match holder {
            Holder::Node(index) => &mut self.nodes[index].pool,
            Holder::Producers => &mut self.producers.pool,
        }
    }

    /// After each block a node runs all that it holds again, on top of it (`PendingManager.close`, `Manager.rePush`).
    fn tidy_node(&mut self, index: usize) {
        let node = &self.nodes[index];
        let lost = self.lost(&node.view, &node.pool);
        self.drop_all(Holder::Node(index), lost);
    }

    fn tidy_producers(&mut self) {
        let lost = self.lost(&self.trunk, &self.producers.pool);
        self.drop_all(Holder::Producers, lost);
    }

    fn lost(&self, view: &Branch, pool: &Pool) -> Vec<(Txid, String)> {
        let now = self.clock.now();
        pool.iter()
            .filter_map(|pending| {
                let why = if pending.evict_at.is_some_and(|at| at <= now) {
                    "evicted".to_owned()
                } else if now - pending.arrived > self.config.pool_timeout_ms {
                    "timeout".to_owned()
                } else {
                    self.check_against(view, &pending.tx).err()?.code.to_owned()
                };
                Some((pending.tx.txid, why))
            })
            .collect()
    }

    fn drop_all(&mut self, holder: Holder, lost: Vec<(Txid, String)>) {
        for (txid, why) in lost {
            self.drop_one(holder, &txid, &why);
        }
    }

    pub(crate) fn drop_one(&mut self, holder: Holder, txid: &Txid, why: &str) -> bool {
        let now = self.clock.now();
        let held = self.pool_mut(holder).remove(txid).is_some();
        if held {
            self.log.step(
                txid,
                now,
                Happened::Dropped {
                    by: holder,
                    why: why.to_owned(),
                },
            );
        }
        held
    }

    /// All pools.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        (0..self.nodes.len())
            .map(Holder::Node)
            .chain([Holder::Producers])
            .collect()
    }

    /// Takes a transaction out of every pool; answers out of how many.
    pub fn evict(&mut self, txid: &Txid) -> usize {
        self.producers.held.retain(|held| held.tx.txid != *txid);
        let holders = self.holders();
        holders
            .into_iter()
            .filter(|holder| self.drop_one(*holder, txid, "evicted"))
            .count()
    }

    /// What a node's /walletsolidity reads: up to this height.
    #[must_use]
    pub fn solid_height(&self, index: usize) -> i64 {
        let node = &self.nodes[index];
        (node.view.solid() - node.settings.solid_behind).max(0)
    }
}
