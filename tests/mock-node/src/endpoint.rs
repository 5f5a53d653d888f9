//! The endpoints of java-tron's HTTP API that this node has, and sets of them.

use std::fmt;
use std::str::FromStr;

/// An endpoint, under /wallet and, where java-tron has a twin, under /walletsolidity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// `broadcasttransaction`
    BroadcastTransaction,
    /// `broadcasthex`
    BroadcastHex,
    /// `gettransactionbyid`
    TransactionById,
    /// `gettransactioninfobyid`
    TransactionInfoById,
    /// `gettransactioninfobyblocknum`
    TransactionInfoByBlockNum,
    /// `gettransactionfrompending`
    TransactionFromPending,
    /// `gettransactionlistfrompending`
    TransactionListFromPending,
    /// `getpendingsize`
    PendingSize,
    /// `getnowblock`
    NowBlock,
    /// `getblockbynum`
    BlockByNum,
    /// `getblock`
    Block,
    /// `getblockbylimitnext`
    BlockByLimitNext,
    /// `getnodeinfo`
    NodeInfo,
    /// `getchainparameters`
    ChainParameters,
}

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::BroadcastTransaction,
        Self::BroadcastHex,
        Self::TransactionById,
        Self::TransactionInfoById,
        Self::TransactionInfoByBlockNum,
        Self::TransactionFromPending,
        Self::TransactionListFromPending,
        Self::PendingSize,
        Self::NowBlock,
        Self::BlockByNum,
        Self::Block,
        Self::BlockByLimitNext,
        Self::NodeInfo,
        Self::ChainParameters,
    ];

    /// The last part of its path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BroadcastTransaction => "broadcasttransaction",
            Self::BroadcastHex => "broadcasthex",
            Self::TransactionById => "gettransactionbyid",
            Self::TransactionInfoById => "gettransactioninfobyid",
            Self::TransactionInfoByBlockNum => "gettransactioninfobyblocknum",
            Self::TransactionFromPending => "gettransactionfrompending",
            Self::TransactionListFromPending => "gettransactionlistfrompending",
            Self::PendingSize => "getpendingsize",
            Self::NowBlock => "getnowblock",
            Self::BlockByNum => "getblockbynum",
            Self::Block => "getblock",
            Self::BlockByLimitNext => "getblockbylimitnext",
            Self::NodeInfo => "getnodeinfo",
            Self::ChainParameters => "getchainparameters",
        }
    }

    /// The endpoint of this name, if java-tron has it under that root (`FullNodeHttpApiService`,
    /// `HttpApiOnSolidityService`).
    #[must_use]
    pub fn find(name: &str, solid: bool) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|endpoint| endpoint.name() == name && (!solid || endpoint.has_twin()))
    }

    /// Whether /walletsolidity has it too.
    fn has_twin(self) -> bool {
        match self {
            Self::BroadcastTransaction
            | Self::BroadcastHex
            | Self::TransactionFromPending
            | Self::TransactionListFromPending
            | Self::PendingSize
            | Self::ChainParameters => false,
            Self::TransactionById
            | Self::TransactionInfoById
            | Self::TransactionInfoByBlockNum
            | Self::NowBlock
            | Self::BlockByNum
            | Self::Block
            | Self::BlockByLimitNext
            | Self::NodeInfo => true,
        }
    }

    /// Whether it takes a transaction.
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        matches!(self, Self::BroadcastTransaction | Self::BroadcastHex)
    }

    /// Whether a lite full node has it closed (`LiteFnQueryHttpFilter`).
    #[must_use]
    pub fn is_history(self) -> bool {
        match self {
            Self::TransactionById
            | Self::TransactionInfoById
            | Self::TransactionInfoByBlockNum
            | Self::BlockByNum
            | Self::BlockByLimitNext => true,
            Self::BroadcastTransaction
            | Self::BroadcastHex
            | Self::TransactionFromPending
            | Self::TransactionListFromPending
            | Self::PendingSize
            | Self::NowBlock
            | Self::Block
            | Self::NodeInfo
            | Self::ChainParameters => false,
        }
    }

    fn answers_blocks(self) -> bool {
        matches!(
            self,
            Self::NowBlock | Self::BlockByNum | Self::Block | Self::BlockByLimitNext
        )
    }
}

/// A set of endpoints, as a rule names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every call: `any`.
    Any,
    /// The two that take a transaction: `broadcast`.
    Broadcasts,
    /// Those that answer blocks: `blocks`.
    Blocks,
    /// One, under either root: `getblockbynum`.
    Named(Endpoint),
    /// One, under /wallet: `wallet/getblockbynum`.
    Full(Endpoint),
    /// One, under /walletsolidity: `walletsolidity/getblockbynum`.
    Solid(Endpoint),
}

impl Scope {
    /// Whether the endpoint is one of them.
    #[must_use]
    pub fn holds(self, endpoint: Endpoint, solid: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Broadcasts => endpoint.is_broadcast(),
            Self::Blocks => endpoint.answers_blocks(),
            Self::Named(named) => endpoint == named,
            Self::Full(named) => endpoint == named && !solid,
            Self::Solid(named) => endpoint == named && solid,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Broadcasts => f.write_str("broadcast"),
            Self::Blocks => f.write_str("blocks"),
            Self::Named(endpoint) => f.write_str(endpoint.name()),
            Self::Full(endpoint) => write!(f, "wallet/{}", endpoint.name()),
            Self::Solid(endpoint) => write!(f, "walletsolidity/{}", endpoint.name()),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || format!("{text:?} is no endpoint of this node");
        let path = text.trim_start_matches('/');
        if let Some(name) = path.strip_prefix("walletsolidity/") {
            return Endpoint::find(name, true)
                .map(Self::Solid)
                .ok_or_else(unknown);
        }
        if let Some(name) = path.strip_prefix("wallet/") {
            return Endpoint::find(name, false)
                .map(Self::Full)
                .ok_or_else(unknown);
        }
        match path {
            "any" => Ok(Self::Any),
            "broadcast" => Ok(Self::Broadcasts),
            "blocks" => Ok(Self::Blocks),
            name => Endpoint::find(name, false)
                .map(Self::Named)
                .ok_or_else(unknown),
        }
    }
}
