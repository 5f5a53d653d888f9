//! Lies on schedule: what can go wrong. When, and how often, is a rule's matter.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::endpoint::Scope;

/// How a call ends that gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// The connection stays open, and nothing comes.
    #[default]
    Hold,
    /// The connection is reset (RST).
    Reset,
    /// The connection is closed (FIN).
    Close,
}

/// Another form of a signature of the same transaction: other bytes, the same txid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureForm {
    /// (r, n − s, v ^ 1).
    HighS,
    /// v written as 0 or 1 where it was 27 or 28, and the other way round.
    OtherV,
    /// Bytes after the 65th.
    Trailing,
}

/// A fault. Those on a call that was understood say with `keep` whether the node does its work before it lies: takes the
/// transaction into its pool if it is good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The node does its work, and no answer comes.
    AcceptThenTimeout {
        /// Default: hold.
        #[serde(default)]
        how: Silence,
    },
    /// The node never looks at it, and no answer comes.
    DropThenTimeout {
        /// Default: hold.
        #[serde(default)]
        how: Silence,
    },
    /// The answer, or the work, comes late: so many milliseconds of real time.
    Delay {
        /// Real time.
        ms: u64,
        /// The work waits as well, and not the answer alone.
        #[serde(default)]
        before: bool,
    },
    /// A broadcast is answered so, whatever is true.
    Answer {
        /// Any text; unknown codes too.
        code: String,
        /// Default: none.
        #[serde(default)]
        message: String,
        /// Whether the node does its work first.
        #[serde(default)]
        keep: bool,
        /// `result`; default: true for SUCCESS alone.
        #[serde(default)]
        result: Option<bool>,
    },
    /// Another body.
    Body {
        /// Default 200.
        #[serde(default = "ok_status")]
        status: u16,
        /// A JSON body.
        #[serde(default)]
        json: Option<Value>,
        /// A plain body, where `json` is not given.
        #[serde(default)]
        text: String,
        /// Whether the node does its work first.
        #[serde(default)]
        keep: bool,
    },
    /// `{}` with 200.
    Empty {
        /// Whether the node does its work first.
        #[serde(default)]
        keep: bool,
    },
    /// `{"Error": …}` with 200.
    Error {
        /// Default: what a busy java-tron says.
        #[serde(default = "lack_of_resources")]
        message: String,
        /// Whether the node does its work first.
        #[serde(default)]
        keep: bool,
    },
    /// An HTTP error of a gateway (403, 429, 503) or of a closed API (404), with the body seen in the wild.
    Status {
        /// The HTTP status.
        status: u16,
        /// Whether the node does its work first.
        #[serde(default)]
        keep: bool,
    },
    /// The bare text of a lite full node, with 200.
    Lite {},
    /// A JSON merge patch (RFC 7396) over the true answer: null takes a key away.
    Patch {
        /// The patch.
        merge: Value,
    },
    /// The answer names another transaction.
    WrongTxid {},
    /// These keys are not in the answer.
    Missing {
        /// Top-level keys.
        fields: Vec<String>,
    },
    /// The body stops half way.
    Truncated {},
    /// The transaction is taken, and no peer learns of it.
    LocalOnly {},
    /// The transaction is taken, and later every pool loses it, after so much chain time.
    Evict {
        /// Chain time.
        after_ms: i64,
    },
    /// Another node's view answers: two backends behind one address.
    Backend {
        /// From 0.
        node: usize,
    },
    /// Producers leave the transaction out.
    NeverInclude {},
    /// Producers hold it back for so many blocks, past any pool's time-out.
    DelayInclusion {
        /// From the first block that could have held it.
        blocks: i64,
    },
    /// Producers hold it back until the first block stamped at or past its expiration.
    IncludeAtExpiration {},
    /// It is included with this result.
    Receipt {
        /// A name of `contractResult`, any number, or `ABSENT`.
        result: String,
    },
    /// It is included with another form of its signature.
    Resign {
        /// Which.
        form: SignatureForm,
    },
    /// A block is answered without its transactions; its header is left as it was.
    StripTransactions {},
    /// A block is answered with this `contractRet` in its first transaction's `ret`; its header is left as it was.
    AlterRet {
        /// A name of `contractResult`, any number, or `ABSENT`.
        result: String,
    },
    /// A list lacks the block; where it is asked for alone, the one after it is answered.
    Gap {},
    /// A block is answered that has another parent and is sound in itself: one of another chain.
    ForeignParent {},
    /// The view that answers is so many blocks behind.
    Behind {
        /// Blocks.
        blocks: i64,
    },
    /// /walletsolidity/getblockbylimitnext answers up to the head.
    LeakUnsolid {},
}

fn ok_status() -> u16 {
    200
}

fn lack_of_resources() -> String {
    "class java.lang.IllegalAccessException : lack of computing resources".to_owned()
}

/// What a fault decides. One call meets at most one fault of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// When work and answer come.
    Delay,
    /// Whether the work is done, and what is answered in place of the truth.
    Way,
    /// How the true answer is garbled.
    Shape,
    /// Whether peers learn of a transaction.
    Gossip,
    /// How long pools keep a transaction.
    Evict,
    /// Whose view answers.
    Backend,
    /// Whether and when a producer includes.
    Inclusion,
    /// With what result.
    Receipt,
    /// With what signature.
    Signature,
    /// How a block is shown.
    Block,
    /// How far behind the view is.
    Height,
    /// Whether blocks leak that are not solid.
    Leak,
}

/// The slots of a call by HTTP; [`Slot::Block`] is asked for each block that an answer shows.
pub const CALL_SLOTS: [Slot; 8] = [
    Slot::Delay,
    Slot::Way,
    Slot::Shape,
    Slot::Gossip,
    Slot::Evict,
    Slot::Backend,
    Slot::Height,
    Slot::Leak,
];

impl Fault {
    /// What it decides.
    #[must_use]
    pub fn slot(&self) -> Slot {
        match self {
            Self::Delay { .. } => Slot::Delay,
            Self::AcceptThenTimeout { .. }
            | Self::DropThenTimeout { .. }
            | Self::Answer { .. }
            | Self::Body { .. }
            | Self::Empty { .. }
            | Self::Error { .. }
            | Self::Status { .. }
            | Self::Lite {} => Slot::Way,
            Self::Patch { .. } | Self::WrongTxid {} | Self::Missing { .. } | Self::Truncated {} => {
                Slot::Shape
            }
            Self::LocalOnly {} => Slot::Gossip,
            Self::Evict { .. } => Slot::Evict,
            Self::Backend { .. } => Slot::Backend,
            Self::NeverInclude {} | Self::DelayInclusion { .. } | Self::IncludeAtExpiration {} => {
                Slot::Inclusion
            }
            Self::Receipt { .. } => Slot::Receipt,
            Self::Resign { .. } => Slot::Signature,
            Self::StripTransactions {}
            | Self::AlterRet { .. }
            | Self::Gap {}
            | Self::ForeignParent {} => Slot::Block,
            Self::Behind { .. } => Slot::Height,
            Self::LeakUnsolid {} => Slot::Leak,
        }
    }

    /// Its name in JSON: `accept_then_timeout`, …
    #[must_use]
    pub fn name(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
            Ok(Value::String(name)) => name,
            Ok(_) | Err(_) => unreachable!("an enum of plain data is one key with its fields"),
        }
    }

    /// The calls it strikes where its rule names no endpoint.
    pub(crate) fn default_scope(&self) -> Scope {
        match self.slot() {
            Slot::Block | Slot::Height => Scope::Blocks,
            Slot::Leak => Scope::Any,
            Slot::Gossip | Slot::Evict => Scope::Broadcasts,
            Slot::Inclusion | Slot::Receipt | Slot::Signature => Scope::Any,
            Slot::Delay | Slot::Backend => Scope::Any,
            Slot::Way | Slot::Shape => match self {
                Self::AcceptThenTimeout { .. }
                | Self::DropThenTimeout { .. }
                | Self::Answer { .. }
                | Self::WrongTxid {} => Scope::Broadcasts,
                _ => Scope::Any,
            },
        }
    }
}
