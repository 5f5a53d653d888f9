//! Blocks, from their bytes. Whatever is said of a block here is computed from what it holds: its id from its header, its
//! Merkle root from its transactions.

use std::borrow::Cow;

use prost::Message;
use sha2::{Digest, Sha256};

use crate::chain::ChainTime;
use crate::envelope::Txid;
use crate::proto::BlockHeaderRaw;
pub use crate::wire::WireError;
use crate::wire::{Field, fields};

/// The most bytes a block may have here. java-tron's nodes refuse blocks beyond 2,001,000 (`Parameter.java`, `BLOCK_SIZE`;
/// `BlockMsgHandler.java`); this is twice that. A limit, because each transaction of a few bytes becomes a hundred.
pub const MAX_BLOCK_BYTES: usize = 4_002_000;

/// The length of an inner node of the Merkle tree before it is hashed: two hashes. The tree does not tell nodes from leaves, so
/// a transaction of this length is refused. None exists: a signature alone has 65 bytes, and a shielded transfer, which may do
/// without, is longer (`TransactionCapsule.java`, `validateSignature`).
const FOLDED_BYTES: usize = 64;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Height above block 0.
    pub number: i64,
    /// SHA-256 of the header, its first 8 bytes replaced by the number.
    pub id: [u8; 32],
    /// The id of the block before, as the header names it.
    pub parent_id: [u8; 32],
    /// The block's own time.
    pub timestamp: ChainTime,
    /// The Merkle root, as the header names it.
    pub root: [u8; 32],
    /// Whether the transactions give that root. Where not, this is no block: transactions are missing, or not the ones.
    pub root_holds: bool,
    /// In the block's order.
    pub transactions: Vec<BlockTransaction>,
}

/// A transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockTransaction {
    /// SHA-256 of `raw_data`.
    pub txid: Txid,
    /// The bytes of `protocol.Transaction.raw`.
    pub raw_data: Vec<u8>,
    /// As they are in the block; not always as they were sent.
    pub signatures: Vec<Vec<u8>>,
    /// How its contract's run ended.
    pub receipt: Receipt,
}

/// Why bytes are no block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// More bytes than any block has.
    #[error("{found} bytes are more than a block may have ({MAX_BLOCK_BYTES})")]
    TooLong {
        /// How many there are.
        found: usize,
    },
    /// The bytes, or those of a part, are no protobuf.
    #[error("the {part} is no protobuf: {source}")]
    Wire {
        /// Which part.
        part: &'static str,
        /// What is wrong.
        source: WireError,
    },
    /// A transaction's bytes are no protobuf.
    #[error("transaction {index} is no protobuf: {source}")]
    Transaction {
        /// Which one, counted from 0.
        index: usize,
        /// What is wrong.
        source: WireError,
    },
    /// Nothing is paid by a transaction without `raw_data`, and no node writes one; nor one with two.
    #[error("transaction {index} has {found} raw_data: it must have one")]
    RawData {
        /// Which one, counted from 0.
        index: usize,
        /// How many it has.
        found: usize,
    },
    /// As many bytes as two hashes, which in a Merkle tree stand for all that is below them: a block that shows such a pair in
    /// place of its transactions has the same root.
    #[error(
        "transaction {index} has {FOLDED_BYTES} bytes: it may be two hashes of the tree, in place of what they stand for"
    )]
    Folded {
        /// Which one, counted from 0.
        index: usize,
    },
    /// A part that must be there once.
    #[error("the block has {found} {part}: it must have one")]
    Part {
        /// Which part.
        part: &'static str,
        /// How many there are.
        found: usize,
    },
    /// The header's bytes are not those of one.
    #[error("the block header's raw_data is no protocol.BlockHeader.raw: {0}")]
    Header(#[from] prost::DecodeError),
    /// A digest in the header that is none.
    #[error("the block header's {field} has {found} bytes: it must have 32")]
    Digest {
        /// Which one.
        field: &'static str,
        /// How many bytes it has.
        found: usize,
    },
    /// A number below 0.
    #[error("the block's number is {0}: it cannot be negative")]
    Number(i64),
    /// A time before 1970.
    #[error("the block's time is {0} ms: it cannot be negative")]
    Time(i64),
}

/// The Merkle root over whole transactions as a block holds them, signatures and results included.
///
/// A leaf is SHA-256 of a transaction; a parent is SHA-256 of its two children; an odd last node moves up as it is. No
/// transactions: 32 zero bytes (`MerkleTree.java`, `BlockCapsule.java` `calcMerkleRoot`).
#[must_use]
pub fn merkle_root<T: AsRef<[u8]>>(transactions: &[T]) -> [u8; 32] {
    root_over(transactions.iter().map(sha256).collect())
}

fn root_over(mut level: Vec<[u8; 32]>) -> [u8; 32] {
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => Sha256::new_with_prefix(left)
                    .chain_update(right)
                    .finalize()
                    .into(),
                odd => odd[0],
            })
            .collect();
    }
    level.first().copied().unwrap_or_default()
}

fn sha256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The id of the block whose header has this `raw_data` (`BlockCapsule.java`, `getBlockId`).
pub fn block_id(header_raw: &[u8]) -> Result<[u8; 32], BlockError> {
    let header = BlockHeaderRaw::decode(header_raw)?;
    id_of(header.number, header_raw)
}

fn id_of(number: i64, header_raw: &[u8]) -> Result<[u8; 32], BlockError> {
    if number < 0 {
        return Err(BlockError::Number(number));
    }
    let mut id = sha256(header_raw);
    id[..8].copy_from_slice(&number.to_be_bytes());
    Ok(id)
}

/// Reads a whole `protocol.Block`. A root that does not fit the transactions is no error here: see [`Block::root_holds`].
///
/// Unknown fields are passed over, as a node would. A message that comes in two pieces, which protobuf would have merged,
/// is refused: no node writes one, and its hash would be a matter of opinion.
pub fn decode_block(bytes: &[u8]) -> Result<Block, BlockError> {
    if bytes.len() > MAX_BLOCK_BYTES {
        return Err(BlockError::TooLong { found: bytes.len() });
    }
    let mut leaves = vec![];
    let mut transactions = vec![];
    let mut headers = vec![];
    for field in fields(bytes) {
        match field.map_err(in_part("block"))? {
            (1, Field::Bytes(transaction)) => {
                leaves.push(sha256(transaction));
                transactions.push(decode_transaction(transactions.len(), transaction)?);
            }
            (2, Field::Bytes(header)) => headers.push(header),
            _ => {}
        }
    }
    let header_raw = header_raw_of(only("block header", &headers)?)?;
    let header = BlockHeaderRaw::decode(header_raw)?;
    if header.timestamp < 0 {
        return Err(BlockError::Time(header.timestamp));
    }
    let root = digest("txTrieRoot", &header.tx_trie_root)?;
    Ok(Block {
        number: header.number,
        id: id_of(header.number, header_raw)?,
        parent_id: digest("parentHash", &header.parent_hash)?,
        timestamp: ChainTime(header.timestamp),
        root,
        root_holds: root == root_over(leaves),
        transactions,
    })
}

fn header_raw_of(header: &[u8]) -> Result<&[u8], BlockError> {
    let mut raws = vec![];
    for field in fields(header) {
        if let (1, Field::Bytes(raw)) = field.map_err(in_part("block header"))? {
            raws.push(raw);
        }
    }
    only("block header raw_data", &raws)
}

fn decode_transaction(index: usize, bytes: &[u8]) -> Result<BlockTransaction, BlockError> {
    if bytes.len() == FOLDED_BYTES {
        return Err(BlockError::Folded { index });
    }
    let in_transaction = |source| BlockError::Transaction { index, source };
    let mut raws = vec![];
    let mut signatures = vec![];
    let mut receipt = None;
    for field in fields(bytes) {
        match field.map_err(in_transaction)? {
            (1, Field::Bytes(raw)) => raws.push(raw),
            (2, Field::Bytes(signature)) => signatures.push(signature.to_vec()),
            // Of several results java-tron asks the first (`TransactionCapsule.java`, `getContractRet`).
            (5, Field::Bytes(result)) if receipt.is_none() => {
                receipt = Some(receipt_of(result).map_err(in_transaction)?);
            }
            _ => {}
        }
    }
    let [raw_data] = raws[..] else {
        return Err(BlockError::RawData {
            index,
            found: raws.len(),
        });
    };
    Ok(BlockTransaction {
        txid: Txid::of(raw_data),
        raw_data: raw_data.to_vec(),
        signatures,
        receipt: receipt.unwrap_or(Receipt::Absent),
    })
}

/// `contractRet` of a `protocol.Transaction.Result`; absent is 0, as always in proto3. An enum is an int32 and comes as the
/// low half of its varint.
fn receipt_of(result: &[u8]) -> Result<Receipt, WireError> {
    let mut code = 0;
    for field in fields(result) {
        if let (3, Field::Varint(value)) = field? {
            code = value as i32;
        }
    }
    Ok(Receipt::from_code(code))
}

fn in_part(part: &'static str) -> impl Fn(WireError) -> BlockError {
    move |source| BlockError::Wire { part, source }
}

fn only<'a>(part: &'static str, found: &[&'a [u8]]) -> Result<&'a [u8], BlockError> {
    match found {
        [one] => Ok(one),
        _ => Err(BlockError::Part {
            part,
            found: found.len(),
        }),
    }
}

fn digest(field: &'static str, bytes: &[u8]) -> Result<[u8; 32], BlockError> {
    bytes.try_into().map_err(|_| BlockError::Digest {
        field,
        found: bytes.len(),
    })
}

/// How a contract's run ended, as the block holds it (`Tron.proto`, `Transaction.Result.contractResult`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Receipt {
    /// 0: also what an empty result says.
    Default,
    /// 1.
    Success,
    /// 2.
    Revert,
    /// 3.
    BadJumpDestination,
    /// 4.
    OutOfMemory,
    /// 5.
    PrecompiledContract,
    /// 6.
    StackTooSmall,
    /// 7.
    StackTooLarge,
    /// 8.
    IllegalOperation,
    /// 9.
    StackOverflow,
    /// 10.
    OutOfEnergy,
    /// 11.
    OutOfTime,
    /// 12.
    JvmStackOverFlow,
    /// 13.
    Unknown,
    /// 14.
    TransferFailed,
    /// 15.
    InvalidCode,
    /// The transaction has no result at all: some very old ones do not.
    Absent,
    /// A number that java-tron's source, as we know it, does not name.
    Unlisted(i32),
}

/// What a receipt in a solid block says about the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiptVerdict {
    /// The call went through.
    Success,
    /// Nothing moved, and the same call may succeed another time: the fee limit or the energy fell short, or the producer
    /// was slow.
    Transient,
    /// Nothing moved.
    Failed,
    /// It says nothing that money could rest on.
    Undecided,
}

impl Receipt {
    /// The receipts that java-tron names, each at the place of its number.
    pub const LISTED: [Self; 16] = [
        Self::Default,
        Self::Success,
        Self::Revert,
        Self::BadJumpDestination,
        Self::OutOfMemory,
        Self::PrecompiledContract,
        Self::StackTooSmall,
        Self::StackTooLarge,
        Self::IllegalOperation,
        Self::StackOverflow,
        Self::OutOfEnergy,
        Self::OutOfTime,
        Self::JvmStackOverFlow,
        Self::Unknown,
        Self::TransferFailed,
        Self::InvalidCode,
    ];

    /// The receipt with this number.
    #[must_use]
    pub fn from_code(code: i32) -> Self {
        usize::try_from(code)
            .ok()
            .and_then(|place| Self::LISTED.get(place).copied())
            .unwrap_or(Self::Unlisted(code))
    }

    /// The number on the wire; `None` where the transaction has no result.
    #[must_use]
    pub const fn code(self) -> Option<i32> {
        Some(match self {
            Self::Default => 0,
            Self::Success => 1,
            Self::Revert => 2,
            Self::BadJumpDestination => 3,
            Self::OutOfMemory => 4,
            Self::PrecompiledContract => 5,
            Self::StackTooSmall => 6,
            Self::StackTooLarge => 7,
            Self::IllegalOperation => 8,
            Self::StackOverflow => 9,
            Self::OutOfEnergy => 10,
            Self::OutOfTime => 11,
            Self::JvmStackOverFlow => 12,
            Self::Unknown => 13,
            Self::TransferFailed => 14,
            Self::InvalidCode => 15,
            Self::Unlisted(code) => code,
            Self::Absent => return None,
        })
    }

    /// As a node's JSON spells it; `ABSENT` where there is none, `CODE_77` for a number without a name.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Default => "DEFAULT",
            Self::Success => "SUCCESS",
            Self::Revert => "REVERT",
            Self::BadJumpDestination => "BAD_JUMP_DESTINATION",
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::PrecompiledContract => "PRECOMPILED_CONTRACT",
            Self::StackTooSmall => "STACK_TOO_SMALL",
            Self::StackTooLarge => "STACK_TOO_LARGE",
            Self::IllegalOperation => "ILLEGAL_OPERATION",
            Self::StackOverflow => "STACK_OVERFLOW",
            Self::OutOfEnergy => "OUT_OF_ENERGY",
            Self::OutOfTime => "OUT_OF_TIME",
            Self::JvmStackOverFlow => "JVM_STACK_OVER_FLOW",
            Self::Unknown => "UNKNOWN",
            Self::TransferFailed => "TRANSFER_FAILED",
            Self::InvalidCode => "INVALID_CODE",
            Self::Absent => "ABSENT",
            Self::Unlisted(code) => return Cow::Owned(format!("CODE_{code}")),
        })
    }

    /// The receipt that [`Self::name`] or a node's JSON spells so; `None` for any other text. For a number without a name,
    /// the JSON has protobuf's own stand-in, `UNKNOWN_ENUM_VALUE_contractResult_77` (`Descriptors.java`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let unlisted = || {
            let code = name
                .strip_prefix("CODE_")
                .or_else(|| name.strip_prefix("UNKNOWN_ENUM_VALUE_contractResult_"))?;
            match Self::from_code(code.parse().ok()?) {
                receipt @ Self::Unlisted(number) if number.to_string() == code => Some(receipt),
                _ => None,
            }
        };
        Self::LISTED
            .into_iter()
            .chain([Self::Absent])
            .find(|receipt| receipt.name() == name)
            .or_else(unlisted)
    }

    /// What it says about the transfer.
    #[must_use]
    pub const fn verdict(self) -> ReceiptVerdict {
        match self {
            Self::Success => ReceiptVerdict::Success,
            Self::OutOfEnergy | Self::OutOfTime => ReceiptVerdict::Transient,
            Self::Revert
            | Self::BadJumpDestination
            | Self::OutOfMemory
            | Self::PrecompiledContract
            | Self::StackTooSmall
            | Self::StackTooLarge
            | Self::IllegalOperation
            | Self::StackOverflow
            | Self::JvmStackOverFlow
            | Self::TransferFailed
            | Self::InvalidCode => ReceiptVerdict::Failed,
            Self::Default | Self::Unknown | Self::Absent | Self::Unlisted(_) => {
                ReceiptVerdict::Undecided
            }
        }
    }
}
