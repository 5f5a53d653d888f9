//! A node's JSON of a block, turned back into the exact protobuf bytes of `protocol.Block`, and checked against itself: the
//! header must give the block's id, the transactions must give the header's Merkle root.
//!
//! java-tron prints a message's set fields by name and drops those it does not know (`JsonFormat.java`, `print`), so the
//! way back is to write the known fields by number, and to refuse a name that has none: a field left out would show as a
//! wrong hash without saying why. What lies inside `raw_data` comes as hex, unknown fields included.

use prost::Message as _;
use serde_json::{Map, Value};
use sluice_core::block::{MAX_BLOCK_BYTES, Receipt, block_id, merkle_root};
use sluice_core::chain::ChainTime;
use sluice_core::envelope::Txid;
use sluice_core::proto::{
    AmountEntry, Block, BlockHeader, BlockHeaderRaw, MarketOrderDetail, Transaction,
    TransactionResult,
};

/// A block whose bytes give its id and its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedBlock {
    /// Height above block 0.
    pub number: i64,
    /// As the header's bytes give it.
    pub id: [u8; 32],
    /// As the header names it.
    pub parent_id: [u8; 32],
    /// The block's own time.
    pub timestamp: ChainTime,
    /// `protocol.Block`.
    pub bytes: Vec<u8>,
    /// How many transactions it holds.
    pub transactions: usize,
}

/// Why JSON is no block, or not the one it says it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockJsonError {
    /// A field that every block has is not there.
    #[error("{0} is missing")]
    Missing(String),
    /// A field holds something else than it must.
    #[error("{path} is not {wanted}")]
    Form {
        /// Where.
        path: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A field of the header or of a result whose number is not known here, so that its bytes cannot be written.
    #[error("block {number}: {path} has a field \"{key}\" that this version does not know")]
    UnknownField {
        /// The block, as its header says.
        number: i64,
        /// In which message.
        path: String,
        /// The field.
        key: String,
    },
    /// A named value whose number is not known here.
    #[error("block {number}: {path} is \"{name}\", which this version does not know")]
    UnknownName {
        /// The block, as its header says.
        number: i64,
        /// Where.
        path: String,
        /// The name.
        name: String,
    },
    /// A transaction that is not the one its txID says.
    #[error("block {number}: transaction {index} has the txid {computed}, its txID says {claimed}")]
    Txid {
        /// The block, as its header says.
        number: i64,
        /// Which transaction, counted from 0.
        index: usize,
        /// As the JSON says.
        claimed: String,
        /// SHA-256 of its `raw_data_hex`.
        computed: Txid,
    },
    /// The header does not give the id.
    #[error("block {number}: its header gives the id {computed}, its blockID says {claimed}")]
    Id {
        /// The block, as its header says.
        number: i64,
        /// As the JSON says.
        claimed: String,
        /// As the header's bytes give it.
        computed: String,
    },
    /// The transactions do not give the header's root.
    #[error(
        "block {number} ({id}): its {transactions} transactions give the Merkle root {computed}, its header says {claimed}{unread}"
    )]
    Root {
        /// The block.
        number: i64,
        /// Its id, which its header does give.
        id: String,
        /// How many transactions the JSON lists.
        transactions: usize,
        /// As the header says.
        claimed: String,
        /// As the transactions give it.
        computed: String,
        /// Fields of transactions that were passed over, if there are any.
        unread: String,
    },
    /// Beyond what any block has.
    #[error(
        "block {number} has {bytes} bytes, more than the {MAX_BLOCK_BYTES} that a block may have"
    )]
    TooLong {
        /// The block.
        number: i64,
        /// How many bytes.
        bytes: usize,
    },
}

impl BlockJsonError {
    /// Whether this is the JSON of a block that contradicts itself, which a person must look at, rather than an answer that
    /// is none.
    #[must_use]
    pub const fn contradicts_itself(&self) -> bool {
        match self {
            Self::UnknownField { .. }
            | Self::UnknownName { .. }
            | Self::Txid { .. }
            | Self::Id { .. }
            | Self::Root { .. }
            | Self::TooLong { .. } => true,
            Self::Missing(_) | Self::Form { .. } => false,
        }
    }

    /// The block it is about, where the JSON says so.
    #[must_use]
    pub const fn number(&self) -> Option<i64> {
        match self {
            Self::UnknownField { number, .. }
            | Self::UnknownName { number, .. }
            | Self::Txid { number, .. }
            | Self::Id { number, .. }
            | Self::Root { number, .. }
            | Self::TooLong { number, .. } => Some(*number),
            Self::Missing(_) | Self::Form { .. } => None,
        }
    }
}

/// The block that this JSON shows. `{}` and the like are errors.
pub fn checked_block(json: &Value) -> Result<CheckedBlock, BlockJsonError> {
    let top = Fields::of(json, "the block")?;
    let claimed_id = top.required_bytes("blockID")?;
    let header = Fields::of(top.required("block_header")?, "block_header")?;
    let raw = Fields::of(header.required("raw_data")?, "block_header.raw_data")?;
    let raw = header_raw(&raw)?;
    let number = raw.number;
    header.only_known(number, &["raw_data", "witness_signature"])?;

    let header_bytes = raw.encode_to_vec();
    let id = block_id(&header_bytes).map_err(|_| BlockJsonError::Form {
        path: "block_header.raw_data.number".to_owned(),
        wanted: "a number from 0 up",
    })?;
    if claimed_id != id {
        return Err(BlockJsonError::Id {
            number,
            claimed: shown(&hex::encode(claimed_id)),
            computed: hex::encode(id),
        });
    }

    let mut unread = vec![];
    let transactions = match top.object.get("transactions") {
        None => vec![],
        Some(list) => array(list, "transactions")?
            .iter()
            .enumerate()
            .map(|(index, json)| transaction(json, index, number, &mut unread))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let computed = merkle_root(&transactions);
    if raw.tx_trie_root != computed {
        return Err(BlockJsonError::Root {
            number,
            id: hex::encode(id),
            transactions: transactions.len(),
            claimed: shown(&hex::encode(&raw.tx_trie_root)),
            computed: hex::encode(computed),
            unread: match unread.as_slice() {
                [] => String::new(),
                names => format!("; passed over: {}", names.join(", ")),
            },
        });
    }

    let header = BlockHeader {
        raw_data: header_bytes,
        witness_signature: header.bytes("witness_signature")?,
    };
    let count = transactions.len();
    let bytes = Block {
        transactions,
        block_header: header.encode_to_vec(),
    }
    .encode_to_vec();
    if bytes.len() > MAX_BLOCK_BYTES {
        return Err(BlockJsonError::TooLong {
            number,
            bytes: bytes.len(),
        });
    }
    Ok(CheckedBlock {
        number,
        id,
        parent_id: digest(&raw.parent_hash, "block_header.raw_data.parentHash")?,
        timestamp: ChainTime(raw.timestamp),
        bytes,
        transactions: count,
    })
}

fn header_raw(raw: &Fields<'_>) -> Result<BlockHeaderRaw, BlockJsonError> {
    let number = raw.int64("number")?;
    raw.only_known(
        number,
        &[
            "timestamp",
            "txTrieRoot",
            "parentHash",
            "number",
            "witness_id",
            "witness_address",
            "version",
            "accountStateRoot",
        ],
    )?;
    Ok(BlockHeaderRaw {
        timestamp: raw.int64("timestamp")?,
        tx_trie_root: raw.required_bytes("txTrieRoot")?,
        parent_hash: raw.required_bytes("parentHash")?,
        number,
        witness_id: raw.int64("witness_id")?,
        witness_address: raw.bytes("witness_address")?,
        version: raw.int32("version")?,
        account_state_root: raw.bytes("accountStateRoot")?,
    })
}

/// The bytes of `protocol.Transaction`. Fields beside the three of the message are the node's comments (`Util.java`,
/// `printTransactionToJSON`) and go unread.
fn transaction(
    json: &Value,
    index: usize,
    number: i64,
    unread: &mut Vec<String>,
) -> Result<Vec<u8>, BlockJsonError> {
    const COMMENTS: [&str; 4] = ["txID", "raw_data", "visible", "contract_address"];
    let path = format!("transactions[{index}]");
    let fields = Fields::of(json, &path)?;
    for key in fields.object.keys() {
        let known = ["raw_data_hex", "signature", "ret"].contains(&key.as_str());
        if !known && !COMMENTS.contains(&key.as_str()) && unread.len() < 8 {
            unread.push(format!("{path}.{}", shown(key)));
        }
    }
    let raw_data = fields.required_bytes("raw_data_hex")?;
    if let Some(claimed) = fields.object.get("txID") {
        let claimed = bytes(claimed, || format!("{path}.txID"))?;
        let computed = Txid::of(&raw_data);
        if claimed != computed.as_bytes() {
            return Err(BlockJsonError::Txid {
                number,
                index,
                claimed: shown(&hex::encode(claimed)),
                computed,
            });
        }
    }
    let signature = fields
        .list("signature")?
        .iter()
        .map(|one| bytes(one, || format!("{path}.signature")))
        .collect::<Result<_, _>>()?;
    let ret = fields
        .list("ret")?
        .iter()
        .map(|one| Ok(result(&Fields::of(one, &format!("{path}.ret"))?, number)?.encode_to_vec()))
        .collect::<Result<_, _>>()?;
    Ok(Transaction {
        raw_data,
        signature,
        ret,
    }
    .encode_to_vec())
}

/// `protocol.Transaction.Result`, every field of it (`Tron.proto`).
fn result(fields: &Fields<'_>, number: i64) -> Result<TransactionResult, BlockJsonError> {
    fields.only_known(
        number,
        &[
            "fee",
            "ret",
            "contractRet",
            "assetIssueID",
            "withdraw_amount",
            "unfreeze_amount",
            "exchange_received_amount",
            "exchange_inject_another_amount",
            "exchange_withdraw_another_amount",
            "exchange_id",
            "shielded_transaction_fee",
            "orderId",
            "orderDetails",
            "withdraw_expire_amount",
            "cancel_unfreezeV2_amount",
        ],
    )?;
    let path = &fields.path;
    Ok(TransactionResult {
        fee: fields.int64("fee")?,
        ret: fields.named_int32(number, "ret", "code", |name| match name {
            "SUCESS" => Some(0),
            "FAILED" => Some(1),
            _ => None,
        })?,
        contract_ret: fields.named_int32(number, "contractRet", "contractResult", |name| {
            Receipt::LISTED
                .iter()
                .find(|receipt| receipt.name() == name)
                .and_then(|receipt| receipt.code())
        })?,
        asset_issue_id: fields.text("assetIssueID")?,
        withdraw_amount: fields.int64("withdraw_amount")?,
        unfreeze_amount: fields.int64("unfreeze_amount")?,
        exchange_received_amount: fields.int64("exchange_received_amount")?,
        exchange_inject_another_amount: fields.int64("exchange_inject_another_amount")?,
        exchange_withdraw_another_amount: fields.int64("exchange_withdraw_another_amount")?,
        exchange_id: fields.int64("exchange_id")?,
        shielded_transaction_fee: fields.int64("shielded_transaction_fee")?,
        order_id: fields.bytes("orderId")?,
        order_details: fields
            .list("orderDetails")?
            .iter()
            .map(|one| order_detail(&Fields::of(one, &format!("{path}.orderDetails"))?, number))
            .collect::<Result<_, _>>()?,
        withdraw_expire_amount: fields.int64("withdraw_expire_amount")?,
        cancel_unfreeze_v2_amount: fields
            .list("cancel_unfreezeV2_amount")?
            .iter()
            .map(|one| {
                amount_entry(
                    &Fields::of(one, &format!("{path}.cancel_unfreezeV2_amount"))?,
                    number,
                )
            })
            .collect::<Result<_, _>>()?,
    })
}

fn order_detail(fields: &Fields<'_>, number: i64) -> Result<MarketOrderDetail, BlockJsonError> {
    fields.only_known(
        number,
        &[
            "makerOrderId",
            "takerOrderId",
            "fillSellQuantity",
            "fillBuyQuantity",
        ],
    )?;
    Ok(MarketOrderDetail {
        maker_order_id: fields.bytes("makerOrderId")?,
        taker_order_id: fields.bytes("takerOrderId")?,
        fill_sell_quantity: fields.int64("fillSellQuantity")?,
        fill_buy_quantity: fields.int64("fillBuyQuantity")?,
    })
}

/// An entry of a map. java-tron prints a map as a list of its entries, and its protobuf library writes both halves of each,
/// zeros included (`MapEntry.java`).
fn amount_entry(fields: &Fields<'_>, number: i64) -> Result<AmountEntry, BlockJsonError> {
    fields.only_known(number, &["key", "value"])?;
    Ok(AmountEntry {
        key: Some(fields.text("key")?),
        value: Some(fields.int64("value")?),
    })
}

/// An object of the JSON and where it stands. A field that is not there has its type's default value, as in proto3.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    fn of(json: &'a Value, path: &str) -> Result<Self, BlockJsonError> {
        match json.as_object() {
            Some(object) => Ok(Self {
                object,
                path: path.to_owned(),
            }),
            None => Err(BlockJsonError::Form {
                path: path.to_owned(),
                wanted: "a JSON object",
            }),
        }
    }

    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    fn required(&self, key: &str) -> Result<&'a Value, BlockJsonError> {
        self.object
            .get(key)
            .ok_or_else(|| BlockJsonError::Missing(self.at(key)))
    }

    fn required_bytes(&self, key: &str) -> Result<Vec<u8>, BlockJsonError> {
        bytes(self.required(key)?, || self.at(key))
    }

    fn bytes(&self, key: &str) -> Result<Vec<u8>, BlockJsonError> {
        self.object
            .get(key)
            .map_or(Ok(vec![]), |json| bytes(json, || self.at(key)))
    }

    fn list(&self, key: &str) -> Result<&'a [Value], BlockJsonError> {
        self.object
            .get(key)
            .map_or(Ok(&[]), |json| array(json, &self.at(key)))
    }

    fn int64(&self, key: &str) -> Result<i64, BlockJsonError> {
        let wanted = "a 64-bit integer";
        match self.object.get(key) {
            None => Ok(0),
            Some(json) => json.as_i64().ok_or_else(|| BlockJsonError::Form {
                path: self.at(key),
                wanted,
            }),
        }
    }

    fn int32(&self, key: &str) -> Result<i32, BlockJsonError> {
        i32::try_from(self.int64(key)?).map_err(|_| BlockJsonError::Form {
            path: self.at(key),
            wanted: "a 32-bit integer",
        })
    }

    fn text(&self, key: &str) -> Result<String, BlockJsonError> {
        match self.object.get(key) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(BlockJsonError::Form {
                path: self.at(key),
                wanted: "a text",
            }),
        }
    }

    /// An enum value, which java-tron prints by name; one without a name by protobuf's stand-in (`Descriptors.java`).
    fn named_int32(
        &self,
        number: i64,
        key: &str,
        enum_name: &str,
        code_of: impl Fn(&str) -> Option<i32>,
    ) -> Result<i32, BlockJsonError> {
        let name = self.text(key)?;
        if name.is_empty() {
            return Ok(0);
        }
        let unlisted = || {
            let number = name
                .strip_prefix("UNKNOWN_ENUM_VALUE_")?
                .strip_prefix(enum_name)?;
            number.strip_prefix('_')?.parse().ok()
        };
        code_of(&name)
            .or_else(unlisted)
            .ok_or_else(|| BlockJsonError::UnknownName {
                number,
                path: self.at(key),
                name: shown(&name),
            })
    }

    fn only_known(&self, number: i64, known: &[&str]) -> Result<(), BlockJsonError> {
        match self
            .object
            .keys()
            .find(|key| !known.contains(&key.as_str()))
        {
            None => Ok(()),
            Some(key) => Err(BlockJsonError::UnknownField {
                number,
                path: self.path.clone(),
                key: shown(key),
            }),
        }
    }
}

/// What a node wrote, as an error shows it: as much of it as a digest has hex digits.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

fn array<'a>(json: &'a Value, path: &str) -> Result<&'a [Value], BlockJsonError> {
    json.as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| BlockJsonError::Form {
            path: path.to_owned(),
            wanted: "a list",
        })
}

fn bytes(json: &Value, path: impl Fn() -> String) -> Result<Vec<u8>, BlockJsonError> {
    json.as_str()
        .and_then(|text| hex::decode(text).ok())
        .ok_or_else(|| BlockJsonError::Form {
            path: path(),
            wanted: "hex",
        })
}

fn digest(bytes: &[u8], path: &str) -> Result<[u8; 32], BlockJsonError> {
    bytes.try_into().map_err(|_| BlockJsonError::Form {
        path: path.to_owned(),
        wanted: "32 bytes in hex",
    })
}
