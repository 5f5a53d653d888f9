//! What a test holds: the network with its servers, and everything that can be done to it. Dropped, it stops.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use serde_json::{Map, Value};
use sluice_core::address::Address;
use sluice_core::envelope::Txid;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::call::wall_ms;
use crate::clock::ClockMode;
use crate::config::{Config, NodeSettings};
use crate::control;
use crate::faults::Fault;
use crate::fork::{ForkPlan, ForkReport};
use crate::http::{self, Shared};
use crate::ledger::BlockRecord;
use crate::log::{Happened, Holder, Request, Sent};
use crate::net::Net;
use crate::producer::Until;
use crate::report::{LogFilter, Status, TagReport, Total, TxReport};
use crate::rules::{Rule, RuleStatus};
use crate::transaction::Tx;
use crate::wallets::Signer;

/// Blocks made at a time when the clock has run ahead: calls are answered in between.
const CATCH_UP: usize = 20;

/// Why a network did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration asks for what cannot be.
    #[error("{0}")]
    Config(String),
    /// No port, or no thread.
    #[error("cannot listen on port {port}: {source}")]
    Listen {
        /// The port asked for; 0 for any.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// No thread for the servers.
    #[error("cannot start the servers: {0}")]
    Threads(io::Error),
}

/// A running network. All its methods return at once and may be called from anywhere, inside or outside of a runtime.
pub struct MockNet {
    hand: Hand,
    nodes: Vec<SocketAddr>,
    control: SocketAddr,
    stop: watch::Sender<bool>,
    servers: Option<JoinHandle<()>>,
}

/// The abilities, for the handle and the control path alike.
#[derive(Clone)]
pub struct Hand {
    /// The network.
    pub(crate) net: Shared,
    /// Wakes whoever makes blocks when they are due: the clock or the slots have changed.
    pub(crate) wake: Arc<Notify>,
}

impl std::ops::Deref for MockNet {
    type Target = Hand;

    fn deref(&self) -> &Hand {
        &self.hand
    }
}

impl MockNet {
    /// Starts a network; its servers take calls when this returns.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_blocking(config)
    }

    /// The same, where there is no runtime.
    pub fn start_blocking(config: Config) -> Result<Self, StartError> {
        let (node_count, port, control_port) = (config.nodes, config.port, config.control_port);
        let net = Shared::new(Net::new(config, wall_ms()).map_err(StartError::Config)?);
        let mut listeners = Vec::with_capacity(node_count);
        for index in 0..node_count {
            let offset = u16::try_from(index)
                .map_err(|_| StartError::Config(format!("{node_count} nodes are too many")))?;
            let own = if port == 0 {
                Some(0)
            } else {
                port.checked_add(offset)
            };
            let own = own.ok_or_else(|| {
                StartError::Config(format!("there are not {node_count} ports from {port} on"))
            })?;
            listeners.push(listen(own)?);
        }
        let control_listener = listen(control_port)?;
        let address = |listener: &TcpListener, port| {
            listener
                .local_addr()
                .map_err(|source| StartError::Listen { port, source })
        };
        let nodes = listeners
            .iter()
            .map(|listener| address(listener, port))
            .collect::<Result<Vec<_>, _>>()?;
        let control = address(&control_listener, control_port)?;

        let hand = Hand {
            net,
            wake: Arc::new(Notify::new()),
        };
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let serving = serve(listeners, control_listener, hand.clone(), stopped);
        // A thread of its own, so that a test which blocks its runtime does not block the network, and so that the
        // handle can be dropped anywhere.
        let servers = thread::Builder::new()
            .name("mock-net".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(serving) {
                    eprintln!("the mock network stopped: {error}");
                }
                runtime.shutdown_timeout(Duration::from_millis(200));
            })
            .map_err(StartError::Threads)?;
        Ok(Self {
            hand,
            nodes,
            control,
            stop,
            servers: Some(servers),
        })
    }

    /// Base URL of a node, without a slash at its end.
    ///
    /// # Panics
    /// Where there is no such node.
    #[must_use]
    pub fn url(&self, node: usize) -> String {
        format!("http://{}", self.nodes[node])
    }

    /// Base URLs of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        (0..self.nodes.len()).map(|node| self.url(node)).collect()
    }

    /// Base URL of the control path.
    #[must_use]
    pub fn control_url(&self) -> String {
        format!("http://{}", self.control)
    }
}

impl Drop for MockNet {
    fn drop(&mut self) {
        // An error means that the servers have stopped already.
        let _ = self.stop.send(true);
        if let Some(servers) = self.servers.take()
            && servers.join().is_err()
        {
            eprintln!("the mock network's thread had panicked");
        }
    }
}

fn listen(port: u16) -> Result<TcpListener, StartError> {
    let listen = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| StartError::Listen { port, source })
}

async fn serve(
    listeners: Vec<TcpListener>,
    control_listener: TcpListener,
    hand: Hand,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut servers = JoinSet::new();
    for (node, listener) in listeners.into_iter().enumerate() {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        servers.spawn(http::serve(listener, hand.net.clone(), node, stop.clone()));
    }
    servers.spawn(keep_time(hand.clone()));
    let control_listener = tokio::net::TcpListener::from_std(control_listener)?;
    control::serve(control_listener, hand.net, hand.wake, stop).await
}

/// Makes blocks when they are due.
async fn keep_time(hand: Hand) {
    loop {
        let wait = {
            let mut net = hand.net.lock();
            if net.clock.mode() != ClockMode::Stepped {
                net.catch_up(CATCH_UP);
            }
            net.clock.until(net.next_slot())
        };
        match wait {
            Some(wait) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = hand.wake.notified() => {}
                }
            }
            None => hand.wake.notified().await,
        }
    }
}

impl Hand {
    fn act<T>(&self, act: impl FnOnce(&mut Net) -> T) -> T {
        let result = act(&mut self.net.lock());
        self.wake.notify_one();
        result
    }

    // Time and blocks

    /// The network as it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        self.net.lock().status()
    }

    /// Id of block 0.
    #[must_use]
    pub fn genesis(&self) -> [u8; 32] {
        let net = self.net.lock();
        net.trunk.at(0).map_or([0; 32], |block| block.id)
    }

    /// Chain time.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.net.lock().clock.now()
    }

    /// The block of this height, as `protocol.Block` bytes.
    #[must_use]
    pub fn block_bytes(&self, number: i64) -> Option<Vec<u8>> {
        self.net.lock().trunk.at(number).map(|block| block.bytes())
    }

    /// Makes so many blocks now, in the next slots; the clock moves on to the last of them.
    pub fn produce(&self, blocks: u64) {
        self.act(|net| net.produce(blocks));
    }

    /// Makes blocks until `number` is solid.
    pub fn produce_until_solid(&self, number: i64) -> Result<(), String> {
        self.act(|net| {
            if net.stalled {
                return Err("no block becomes solid: solidity is stalled".to_owned());
            }
            while net.trunk.solid() < number {
                net.produce(1);
            }
            Ok(())
        })
    }

    /// Moves the clock on, and makes the blocks that become due on the way.
    pub fn step(&self, ms: u64) {
        self.act(|net| net.step(i64::try_from(ms).unwrap_or(i64::MAX)));
    }

    /// How many blocks become due until the clock has moved on by so much.
    pub(crate) fn blocks_due_in(&self, ms: u64) -> u64 {
        let net = self.net.lock();
        let interval = u64::try_from(net.config.block_interval_ms).unwrap_or(1);
        ms / interval.max(1)
    }

    /// The next slots have no block.
    pub fn miss(&self, slots: u32) {
        self.act(|net| net.miss(slots.into()));
    }

    /// Another pace of chain time.
    pub fn set_clock(&self, mode: ClockMode) -> Result<(), String> {
        mode.check()?;
        self.act(|net| net.set_clock(mode));
        Ok(())
    }

    /// Blocks become solid no more, or again from the next block on.
    pub fn stall_solidity(&self, stalled: bool) {
        self.act(|net| net.stalled = stalled);
    }

    /// So many blocks on top of a block make it solid, from the next block on.
    pub fn set_solidity_lag(&self, lag: u32) {
        self.act(|net| net.solidity_lag = lag.into());
    }

    /// Erases the newest `depth` blocks, which must not be solid, and builds `blocks` in their place, the first after
    /// `missed` empty slots. The nodes in `stay` keep their branch and stand still until `frozen` is taken from them.
    pub fn fork(
        &self,
        depth: u32,
        blocks: u32,
        missed: u32,
        plan: ForkPlan,
        stay: &[usize],
    ) -> Result<ForkReport, String> {
        self.act(|net| net.fork(depth.into(), blocks.into(), missed.into(), plan, stay))
    }

    // Faults, wallets, nodes

    /// Adds a rule and answers its id.
    pub fn add_fault(&self, rule: Rule) -> Result<u64, String> {
        self.add_faults(vec![rule]).map(|ids| ids[0])
    }

    /// Adds rules, all or none, and answers their ids.
    pub fn add_faults(&self, rules: Vec<Rule>) -> Result<Vec<u64>, String> {
        self.act(|net| {
            for rule in &rules {
                net.check_rule(rule)?;
            }
            rules.into_iter().map(|rule| net.faults.add(rule)).collect()
        })
    }

    /// Takes a rule away; false where there is none.
    pub fn remove_fault(&self, id: u64) -> bool {
        self.act(|net| net.faults.remove(id))
    }

    /// Takes all rules away.
    pub fn clear_faults(&self) {
        self.act(|net| net.faults.clear());
    }

    /// The rules in force, and what they have done.
    #[must_use]
    pub fn faults(&self) -> Vec<RuleStatus> {
        self.net.lock().faults.rules().to_vec()
    }

    /// How often each kind of fault has struck, rules gone since included.
    #[must_use]
    pub fn faults_struck(&self) -> BTreeMap<String, u64> {
        self.net.lock().faults.struck().clone()
    }

    /// From now on this account's signatures are judged so.
    pub fn register(&self, owner: Address, signer: Signer) {
        self.act(|net| net.wallets.register(owner, signer));
    }

    /// Changes a node's settings; it catches up with what they let it see.
    pub fn change_node(
        &self,
        node: usize,
        change: impl FnOnce(&mut NodeSettings),
    ) -> Result<(), String> {
        self.act(|net| {
            let settings = &mut net
                .nodes
                .get_mut(node)
                .ok_or_else(|| format!("there is no node {node}"))?
                .settings;
            change(settings);
            settings.lag = settings.lag.max(0);
            settings.solid_behind = settings.solid_behind.max(0);
            net.sync(node);
            Ok(())
        })
    }

    /// The same, from JSON: what is not named stays as it is.
    pub(crate) fn change_node_json(
        &self,
        node: usize,
        changes: Map<String, Value>,
    ) -> Result<(), String> {
        let present = {
            let net = self.net.lock();
            let node = net
                .nodes
                .get(node)
                .ok_or_else(|| format!("there is no node {node}"))?;
            node.settings.clone()
        };
        let mut value = serde_json::to_value(present).map_err(|error| error.to_string())?;
        if let Value::Object(map) = &mut value {
            map.extend(changes);
        }
        let settings: NodeSettings =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        self.change_node(node, |present| *present = settings)
    }

    /// Gives the producers a transaction past every node and its signature check: somebody else had the bytes. It comes
    /// into the next block if the chain lets it.
    pub fn inject(&self, transaction: &[u8]) -> Result<Txid, String> {
        let tx = Tx::decode(transaction)
            .map_err(|error| format!("the bytes are no transaction: {error}"))?;
        let tx = Arc::new(tx);
        let txid = tx.txid;
        self.act(|net| {
            net.log.open(&tx);
            let what = Happened::Pooled {
                by: Holder::Producers,
                from: "injected".to_owned(),
            };
            net.log.step(&txid, net.clock.now(), what);
            net.hold(tx, Until::Height(0));
        });
        Ok(txid)
    }

    /// Takes a transaction out of every pool; answers out of how many.
    pub fn evict(&self, txid: &Txid) -> usize {
        self.act(|net| net.evict(txid))
    }

    // The record

    /// The calls that brought transactions, in the order they came.
    #[must_use]
    pub fn sends(&self, filter: &LogFilter) -> Vec<Sent> {
        self.net.lock().sends(filter)
    }

    /// Every transaction that somebody sent.
    #[must_use]
    pub fn transactions(&self) -> Vec<TxReport> {
        self.net.lock().tx_reports()
    }

    /// One transaction that somebody sent.
    #[must_use]
    pub fn transaction(&self, txid: &Txid) -> Option<TxReport> {
        self.net.lock().report_of(txid)
    }

    /// Every operation that somebody sent a transaction of, by its tag in hex.
    #[must_use]
    pub fn tags(&self) -> BTreeMap<String, TagReport> {
        self.net.lock().tag_reports()
    }

    /// What the chain's successful transfers come to, for each payer and token.
    #[must_use]
    pub fn totals(&self) -> Vec<Total> {
        self.net.lock().totals()
    }

    /// Every block of the chain, block 0 first.
    #[must_use]
    pub fn blocks(&self) -> Vec<BlockRecord> {
        self.net.lock().block_records()
    }

    /// How often each kind of request came.
    #[must_use]
    pub fn requests(&self) -> BTreeMap<Request, u64> {
        self.net.lock().log.requests().clone()
    }
}

impl Net {
    fn check_rule(&self, rule: &Rule) -> Result<(), String> {
        let named = match rule.fault {
            Fault::Backend { node } => Some(node),
            _ => None,
        };
        match named
            .into_iter()
            .chain(rule.when.node)
            .find(|node| *node >= self.nodes.len())
        {
            Some(node) => Err(format!("there is no node {node}")),
            None => Ok(()),
        }
    }
}
