//! The wire format: java-tron's protobuf messages as `prost` types (field numbers of `Tron.proto`,
//! `smart_contract.proto`, `balance_contract.proto` and protobuf's own `any.proto`).
//!
//! A message whose exact bytes are hashed is a `bytes` field of the message around it, and never a nested type: what was
//! received is what is hashed, and nothing is ever encoded anew to find out what it might have been. On the wire the two
//! are the same.

/// `protocol.Block`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Block {
    /// Each a whole [`Transaction`]: the leaves of the block's Merkle tree.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub transactions: Vec<Vec<u8>>,
    /// A [`BlockHeader`].
    #[prost(bytes = "vec", tag = "2")]
    pub block_header: Vec<u8>,
}

/// `protocol.BlockHeader`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BlockHeader {
    /// A [`BlockHeaderRaw`]: what the block's id is made of.
    #[prost(bytes = "vec", tag = "1")]
    pub raw_data: Vec<u8>,
    /// The producer's signature over the plain SHA-256 of `raw_data`.
    #[prost(bytes = "vec", tag = "2")]
    pub witness_signature: Vec<u8>,
}

/// `protocol.BlockHeader.raw`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BlockHeaderRaw {
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// The Merkle root over the whole transactions; 32 zero bytes for none.
    #[prost(bytes = "vec", tag = "2")]
    pub tx_trie_root: Vec<u8>,
    /// The id of the block before.
    #[prost(bytes = "vec", tag = "3")]
    pub parent_hash: Vec<u8>,
    /// Height above block 0.
    #[prost(int64, tag = "7")]
    pub number: i64,
    /// Unused by today's nodes.
    #[prost(int64, tag = "8")]
    pub witness_id: i64,
    /// The producer, 21 bytes.
    #[prost(bytes = "vec", tag = "9")]
    pub witness_address: Vec<u8>,
    /// The version of the block's rules.
    #[prost(int32, tag = "10")]
    pub version: i32,
    /// Set where the chain keeps account state roots.
    #[prost(bytes = "vec", tag = "11")]
    pub account_state_root: Vec<u8>,
}

/// `protocol.Transaction`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Transaction {
    /// A [`TransactionRaw`]: what the txid is made of.
    #[prost(bytes = "vec", tag = "1")]
    pub raw_data: Vec<u8>,
    /// 65 bytes each, or more: java-tron ignores what follows the 65th.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub signature: Vec<Vec<u8>>,
    /// Each a [`TransactionResult`]; present once a node has run the transaction.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub ret: Vec<Vec<u8>>,
}

/// `protocol.Transaction.Result`, with every field that the JSON of a block can show.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransactionResult {
    /// In sun.
    #[prost(int64, tag = "1")]
    pub fee: i64,
    /// 0 (spelt `SUCESS`) or 1 (`FAILED`).
    #[prost(int32, tag = "2")]
    pub ret: i32,
    /// How the contract's run ended: see `block::Receipt`.
    #[prost(int32, tag = "3")]
    pub contract_ret: i32,
    /// `assetIssueID`.
    #[prost(string, tag = "14")]
    pub asset_issue_id: String,
    /// In sun.
    #[prost(int64, tag = "15")]
    pub withdraw_amount: i64,
    /// In sun.
    #[prost(int64, tag = "16")]
    pub unfreeze_amount: i64,
    /// Of an exchange transaction.
    #[prost(int64, tag = "18")]
    pub exchange_received_amount: i64,
    /// Of an exchange injection.
    #[prost(int64, tag = "19")]
    pub exchange_inject_another_amount: i64,
    /// Of an exchange withdrawal.
    #[prost(int64, tag = "20")]
    pub exchange_withdraw_another_amount: i64,
    /// Of a new exchange.
    #[prost(int64, tag = "21")]
    pub exchange_id: i64,
    /// In sun.
    #[prost(int64, tag = "22")]
    pub shielded_transaction_fee: i64,
    /// `orderId`, of a market order.
    #[prost(bytes = "vec", tag = "25")]
    pub order_id: Vec<u8>,
    /// `orderDetails`, of a market order.
    #[prost(message, repeated, tag = "26")]
    pub order_details: Vec<MarketOrderDetail>,
    /// In sun.
    #[prost(int64, tag = "27")]
    pub withdraw_expire_amount: i64,
    /// `cancel_unfreezeV2_amount`, a map: its entries, in the order given. A map type of ours would sort them, and the
    /// block's root is taken over the bytes as they were.
    #[prost(message, repeated, tag = "28")]
    pub cancel_unfreeze_v2_amount: Vec<AmountEntry>,
}

/// `protocol.MarketOrderDetail`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MarketOrderDetail {
    /// `makerOrderId`.
    #[prost(bytes = "vec", tag = "1")]
    pub maker_order_id: Vec<u8>,
    /// `takerOrderId`.
    #[prost(bytes = "vec", tag = "2")]
    pub taker_order_id: Vec<u8>,
    /// `fillSellQuantity`.
    #[prost(int64, tag = "3")]
    pub fill_sell_quantity: i64,
    /// `fillBuyQuantity`.
    #[prost(int64, tag = "4")]
    pub fill_buy_quantity: i64,
}

/// An entry of a `map<string, int64>`. Key and value are optional because protobuf's Java code, which java-tron uses,
/// writes both into a map's entry even where they are empty or 0 (`MapEntry.java`): give `Some(0)` to write a zero.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AmountEntry {
    /// The entry's name.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The entry's amount.
    #[prost(int64, optional, tag = "2")]
    pub value: Option<i64>,
}

/// `protocol.Transaction.raw`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransactionRaw {
    /// Bytes 6 and 7 of the reference block's number.
    #[prost(bytes = "vec", tag = "1")]
    pub ref_block_bytes: Vec<u8>,
    /// Read by no node.
    #[prost(int64, tag = "3")]
    pub ref_block_num: i64,
    /// Bytes 8 to 15 of the reference block's id.
    #[prost(bytes = "vec", tag = "4")]
    pub ref_block_hash: Vec<u8>,
    /// Milliseconds of chain time.
    #[prost(int64, tag = "8")]
    pub expiration: i64,
    /// Read by no node.
    #[prost(bytes = "vec", repeated, tag = "9")]
    pub auths: Vec<Vec<u8>>,
    /// The memo, which costs a fee where it is not empty.
    #[prost(bytes = "vec", tag = "10")]
    pub data: Vec<u8>,
    /// Nodes take exactly one.
    #[prost(message, repeated, tag = "11")]
    pub contract: Vec<Contract>,
    /// Read by no node: where our tag lies.
    #[prost(bytes = "vec", tag = "12")]
    pub scripts: Vec<u8>,
    /// Milliseconds; checked by no node.
    #[prost(int64, tag = "14")]
    pub timestamp: i64,
    /// In sun.
    #[prost(int64, tag = "18")]
    pub fee_limit: i64,
}

/// `protocol.Transaction.Contract`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Contract {
    /// Which message `parameter` holds: [`TRANSFER_CONTRACT`], [`TRIGGER_SMART_CONTRACT`] or one of some forty others.
    #[prost(int32, tag = "1")]
    pub r#type: i32,
    /// The message itself.
    #[prost(message, optional, tag = "2")]
    pub parameter: Option<Any>,
    /// Read by no node.
    #[prost(bytes = "vec", tag = "3")]
    pub provider: Vec<u8>,
    /// Read by no node.
    #[prost(bytes = "vec", tag = "4")]
    pub contract_name: Vec<u8>,
    /// 0 for the owner's permission, 2 and more for an active one.
    #[prost(int32, tag = "5")]
    pub permission_id: i32,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Any {
    /// `type.googleapis.com/protocol.` and the message's name.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message's bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `protocol.TriggerSmartContract`: a call of a contract.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TriggerSmartContract {
    /// The caller, 21 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub owner_address: Vec<u8>,
    /// The contract called, 21 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub contract_address: Vec<u8>,
    /// In sun.
    #[prost(int64, tag = "3")]
    pub call_value: i64,
    /// The calldata.
    #[prost(bytes = "vec", tag = "4")]
    pub data: Vec<u8>,
    /// In units of the TRC-10 token `token_id`.
    #[prost(int64, tag = "5")]
    pub call_token_value: i64,
    /// A TRC-10 token.
    #[prost(int64, tag = "6")]
    pub token_id: i64,
}

/// `protocol.TransferContract`: a transfer of TRX.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransferContract {
    /// The payer, 21 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub owner_address: Vec<u8>,
    /// The recipient, 21 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub to_address: Vec<u8>,
    /// In sun.
    #[prost(int64, tag = "3")]
    pub amount: i64,
}

/// `Transaction.Contract.ContractType` of a [`TransferContract`].
pub const TRANSFER_CONTRACT: i32 = 1;
/// `Transaction.Contract.ContractType` of a [`TriggerSmartContract`].
pub const TRIGGER_SMART_CONTRACT: i32 = 31;

/// What java-tron writes before a message's name in [`Any::type_url`] (protobuf's `Any.pack`).
pub const TYPE_URL_PREFIX: &str = "type.googleapis.com/protocol.";
