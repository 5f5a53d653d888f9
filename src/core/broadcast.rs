//! A node's answers to a broadcast, and what each of them proves: never that a transaction will be, or can no longer be,
//! in a block. Only solid blocks say that. An earlier copy of the same bytes may lie in another node's pool, or in this
//! one's, whatever it answers now.

use std::borrow::Cow;

/// The answer's code (`api.proto`, `Return.response_code`), or that there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BroadcastCode {
    /// Pooled by this node and announced to at least one peer. Also what a repeat may get while the first copy waits to be
    /// pooled again.
    Success,
    /// The signature does not carry the permission's weight, as this node sees it. Asked before the chain is: a transaction
    /// that is in a block answers so too, after a change of permissions.
    Sigerror,
    /// The contract's own checks failed against this node's state; another node, or a later moment, may take it.
    ContractValidateError,
    /// The fee could not be paid, or the run failed outright; depends on this node's state like the one above.
    ContractExeError,
    /// `BANDWITH_ERROR` (sic): not enough bandwidth or TRX for it, as this node sees it.
    BandwithError,
    /// This node has seen the txid: in its chain, in its pool, or merely offered to it within the hour, even if it then
    /// refused it. Neither solid nor a success of the transfer.
    DupTransactionError,
    /// The reference block is not in this node's chain: it may lag or be on a fork. Asked before duplicates are.
    TaposError,
    /// Too many bytes.
    TooBigTransactionError,
    /// This node's head is past the expiration, or more than 24 hours before it. Asked before duplicates are: a transaction
    /// that is in a block answers so when it is sent again later.
    TransactionExpirationError,
    /// Too many transactions wait here; this one was not looked at.
    ServerBusy,
    /// This node has no peers; the transaction was not looked at.
    NoConnection,
    /// Too few peers in sync, and the transaction was not looked at; or `P2P broadcast failed.`: it was pooled, and no peer
    /// was left to tell, which is the usual answer to a repeat. The code alone does not say which.
    NotEnoughEffectiveConnection,
    /// The chain does not become solid; the transaction was not looked at.
    BlockUnsolidified,
    /// Anything may have happened, before or after the transaction was pooled.
    OtherError,
    /// An error of HTTP, a time-out, or a body that is no answer of a node's: nothing is known.
    NoAnswer,
    /// A code that java-tron's source, as we know it, does not name; at most [`LONGEST_CODE`] characters of it.
    Unlisted(String),
}

/// How much of a code that nobody knows is kept.
pub const LONGEST_CODE: usize = 64;

/// What an answer is good for. None of these fails, rebuilds or confirms a withdrawal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BroadcastVerdict {
    /// The node has, or had, the transaction: it may count as sent.
    Accepted,
    /// The node looked at it and said no, for now and for itself. Kept for people to see; the same bytes are sent again.
    Refused,
    /// As if nobody had been asked.
    NoAnswer,
    /// The node took no look (but see [`BroadcastCode::NotEnoughEffectiveConnection`]): ask again, or ask another.
    Busy,
}

impl BroadcastCode {
    /// All that have a name.
    pub const LISTED: [Self; 15] = [
        Self::Success,
        Self::Sigerror,
        Self::ContractValidateError,
        Self::ContractExeError,
        Self::BandwithError,
        Self::DupTransactionError,
        Self::TaposError,
        Self::TooBigTransactionError,
        Self::TransactionExpirationError,
        Self::ServerBusy,
        Self::NoConnection,
        Self::NotEnoughEffectiveConnection,
        Self::BlockUnsolidified,
        Self::OtherError,
        Self::NoAnswer,
    ];

    /// The code that a node spells so, or `NO_ANSWER`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::LISTED
            .into_iter()
            .find(|code| code.name() == name)
            .unwrap_or_else(|| Self::Unlisted(name.chars().take(LONGEST_CODE).collect()))
    }

    /// As a node spells it; `NO_ANSWER` where there was none.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Success => "SUCCESS",
            Self::Sigerror => "SIGERROR",
            Self::ContractValidateError => "CONTRACT_VALIDATE_ERROR",
            Self::ContractExeError => "CONTRACT_EXE_ERROR",
            Self::BandwithError => "BANDWITH_ERROR",
            Self::DupTransactionError => "DUP_TRANSACTION_ERROR",
            Self::TaposError => "TAPOS_ERROR",
            Self::TooBigTransactionError => "TOO_BIG_TRANSACTION_ERROR",
            Self::TransactionExpirationError => "TRANSACTION_EXPIRATION_ERROR",
            Self::ServerBusy => "SERVER_BUSY",
            Self::NoConnection => "NO_CONNECTION",
            Self::NotEnoughEffectiveConnection => "NOT_ENOUGH_EFFECTIVE_CONNECTION",
            Self::BlockUnsolidified => "BLOCK_UNSOLIDIFIED",
            Self::OtherError => "OTHER_ERROR",
            Self::NoAnswer => "NO_ANSWER",
            Self::Unlisted(name) => name,
        })
    }

    /// What it is good for.
    #[must_use]
    pub const fn verdict(&self) -> BroadcastVerdict {
        match self {
            Self::Success | Self::DupTransactionError => BroadcastVerdict::Accepted,
            Self::Sigerror
            | Self::ContractValidateError
            | Self::ContractExeError
            | Self::BandwithError
            | Self::TaposError
            | Self::TooBigTransactionError
            | Self::TransactionExpirationError
            | Self::OtherError => BroadcastVerdict::Refused,
            Self::ServerBusy
            | Self::NoConnection
            | Self::NotEnoughEffectiveConnection
            | Self::BlockUnsolidified => BroadcastVerdict::Busy,
            Self::NoAnswer | Self::Unlisted(_) => BroadcastVerdict::NoAnswer,
        }
    }
}
