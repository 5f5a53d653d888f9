//! How a network is set up: the choices of the whole chain, and those of a node, which can be changed while it runs.

use serde::{Deserialize, Serialize};
use sluice_core::address::Address;

use crate::clock::ClockMode;
use crate::rules::Rule;
use crate::wallets::Signer;

/// The network. `Config::default()` is java-tron's own figures, one node on a free port, and real time from now on.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many nodes.
    pub nodes: usize,
    /// Port of node 0, the others following; 0: each a free one.
    pub port: u16,
    /// Port of the control path; 0: a free one.
    pub control_port: u16,
    /// Between blocks (`BLOCK_PRODUCED_INTERVAL`).
    pub block_interval_ms: i64,
    /// Blocks on top of a block that make it solid.
    pub solidity_lag: i64,
    /// Blocks there are at the start, block 0 aside; the last is stamped at or before the start.
    pub history: i64,
    /// Foreign transactions in each block.
    pub foreign_per_block: usize,
    /// How chain time passes.
    pub clock: ClockMode,
    /// What the chain's clock shows at the start; none: the machine's time.
    pub start_ms: Option<i64>,
    /// Of everything that is drawn: keys, foreign transactions, probabilities.
    pub seed: u64,
    /// Registered accounts.
    pub wallets: Vec<(Address, Signer)>,
    /// Faults from the start.
    pub faults: Vec<Rule>,
    /// How each node starts.
    pub node: NodeSettings,
    /// Chain parameter 88: packing also asks for expiration ≥ the next slot.
    pub consensus_logic_optimization: bool,
    /// `node.pendingTransactionTimeout`.
    pub pool_timeout_ms: i64,
    /// `node.blockCacheTimeout`: how long ids that came over the network are remembered.
    pub seen_cache_ms: i64,
    /// `node.maxTransactionPendingSize`.
    pub pool_limit: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: 1,
            port: 0,
            control_port: 0,
            block_interval_ms: 3_000,
            solidity_lag: 19,
            history: 30,
            foreign_per_block: 0,
            clock: ClockMode::Real,
            start_ms: None,
            seed: 1,
            wallets: Vec::new(),
            faults: Vec::new(),
            node: NodeSettings::default(),
            consensus_logic_optimization: false,
            pool_timeout_ms: 60_000,
            seen_cache_ms: 3_600_000,
            pool_limit: 2_000,
        }
    }
}

impl Config {
    /// What is wrong with it, in words.
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("nodes", i64::try_from(self.nodes).unwrap_or(i64::MAX)),
            ("block_interval_ms", self.block_interval_ms),
            ("pool_timeout_ms", self.pool_timeout_ms),
        ];
        for (name, value) in positive {
            if value < 1 {
                return Err(format!("{name} must be at least 1, and is {value}"));
            }
        }
        let natural = [
            ("solidity_lag", self.solidity_lag),
            ("history", self.history),
            ("seen_cache_ms", self.seen_cache_ms),
        ];
        for (name, value) in natural {
            if value < 0 {
                return Err(format!("{name} must not be below 0, and is {value}"));
            }
        }
        if let Some(start) = self.start_ms
            && start / self.block_interval_ms <= self.history
        {
            return Err(format!(
                "start_ms {start} leaves no room for {} blocks before it",
                self.history
            ));
        }
        Ok(())
    }
}

/// Whether a node has peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// Peers in sync.
    #[default]
    Synced,
    /// Peers, none of them in sync with it: NOT_ENOUGH_EFFECTIVE_CONNECTION.
    Unsynced,
    /// No peers: NO_CONNECTION.
    Alone,
}

/// A node's own choices and misfortunes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeSettings {
    /// Its head is so many blocks behind the network's.
    pub lag: i64,
    /// It takes no further block until this is false again.
    pub frozen: bool,
    /// Whether pool gossip reaches it and leaves it. A node that is cut off answers SUCCESS all the same: it has told
    /// peers that never ask.
    pub gossip: bool,
    /// Its peers.
    pub connection: Connection,
    /// `node.rpc.trxCacheEnable`: ids offered within the hour are DUP "Transaction already exists.".
    pub trx_cache: bool,
    /// `node.unsolidifiedBlockCheck` with this many blocks (java-tron: 54); none: off.
    pub max_unsolidified: Option<i64>,
    /// /walletsolidity shows so many blocks less than `solidityBlock`.
    pub solid_behind: i64,
    /// /walletsolidity/getblockbylimitnext answers blocks that are not solid.
    pub leaks_unsolid: bool,
    /// A lite full node: history queries are closed.
    pub lite: bool,
    /// `storage.transHistory.switch`: off, and gettransactioninfobyid is always `{}`.
    pub history_switch: bool,
    /// `node.disabledApi`: names of endpoints that answer 404.
    pub disabled: Vec<String>,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            lag: 0,
            frozen: false,
            gossip: true,
            connection: Connection::Synced,
            trx_cache: false,
            max_unsolidified: None,
            solid_behind: 0,
            leaks_unsolid: false,
            lite: false,
            history_switch: true,
            disabled: Vec::new(),
        }
    }
}
