//! Messages as java-tron's HTTP API prints them (`JsonFormat`, `Util.printTransactionToJSON`, `Util.printBlockToJSON`):
//! fields at their default are left out, bytes are hex, and with `visible` the address fields are base58check.

use prost::Message;
use serde_json::{Map, Value, json};
use sluice_core::address::Address;
use sluice_core::proto::{
    BlockHeaderRaw, Contract, TransactionResult, TransferContract, TriggerSmartContract,
};

use crate::block::{Block, Included};
use crate::outcome;
use crate::transaction::{Call, Tx};

/// Names of `Transaction.Contract.ContractType` that this network meets; the number is in Tron.proto.
pub const CONTRACT_TYPES: [(i32, &str); 3] = [
    (1, "TransferContract"),
    (31, "TriggerSmartContract"),
    (56, "WithdrawExpireUnfreezeContract"),
];

/// An object under construction: what is at its default is not put in.
#[derive(Default)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// An integer, unless 0.
    #[must_use]
    pub fn integer(mut self, name: &str, value: i64) -> Self {
        if value != 0 {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Bytes as hex, unless empty.
    #[must_use]
    pub fn bytes(mut self, name: &str, value: &[u8]) -> Self {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), hex::encode(value).into());
        }
        self
    }

    /// An address, unless empty.
    #[must_use]
    pub fn address(mut self, name: &str, value: &[u8], visible: bool) -> Self {
        if !value.is_empty() {
            self.0
                .insert(name.to_owned(), address(value, visible).into());
        }
        self
    }

    /// Text, unless empty.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// A list, unless empty.
    #[must_use]
    pub fn list(mut self, name: &str, value: Vec<Value>) -> Self {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Anything, always.
    #[must_use]
    pub fn always(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// The object.
    #[must_use]
    pub fn build(self) -> Value {
        Value::Object(self.0)
    }
}

/// An address field: hex, or base58check with `visible`.
#[must_use]
pub fn address(bytes: &[u8], visible: bool) -> String {
    match Address::from_bytes(bytes) {
        Ok(address) if visible => address.to_string(),
        Ok(_) | Err(_) => hex::encode(bytes),
    }
}

/// A listed text field: hex of UTF-8, or the text with `visible`.
#[must_use]
pub fn text(text: &str, visible: bool) -> String {
    if visible {
        text.to_owned()
    } else {
        hex::encode(text)
    }
}

/// A block. `Util.printBlock`.
#[must_use]
pub fn block(block: &Block, visible: bool, with_transactions: bool) -> Value {
    let transactions = if with_transactions {
        block.transactions.as_slice()
    } else {
        &[]
    };
    shown_block(block, transactions, visible)
}

/// A block with other transactions than it has, its header as it is: for faults.
#[must_use]
pub fn shown_block(block: &Block, transactions: &[Included], visible: bool) -> Value {
    let header = BlockHeaderRaw::decode(block.header_raw.as_slice())
        .expect("a header that this crate has encoded decodes");
    let raw = Fields::default()
        .integer("timestamp", header.timestamp)
        .bytes("txTrieRoot", &header.tx_trie_root)
        .bytes("parentHash", &header.parent_hash)
        .integer("number", header.number)
        .integer("witness_id", header.witness_id)
        .address("witness_address", &header.witness_address, visible)
        .integer("version", header.version.into())
        .bytes("accountStateRoot", &header.account_state_root)
        .build();
    let header = Fields::default()
        .always("raw_data", raw)
        .bytes("witness_signature", block.witness_signature())
        .build();
    Fields::default()
        .always("blockID", hex::encode(block.id))
        .always("block_header", header)
        .list(
            "transactions",
            transactions
                .iter()
                .map(|included| {
                    transaction(&included.tx, &included.signatures, &included.ret, visible)
                })
                .collect(),
        )
        .build()
}

/// A transaction. `Util.printTransactionToJSON`.
#[must_use]
pub fn transaction(tx: &Tx, signatures: &[Vec<u8>], ret: &[Vec<u8>], visible: bool) -> Value {
    let contracts = tx
        .raw
        .contract
        .iter()
        .map(|entry| contract(entry, &tx.call, visible))
        .collect();
    Fields::default()
        .list("ret", ret.iter().map(|entry| result(entry)).collect())
        .list(
            "signature",
            signatures
                .iter()
                .map(|entry| hex::encode(entry).into())
                .collect(),
        )
        .always("txID", tx.txid.to_string())
        .always("raw_data", raw_data(tx, contracts))
        .always("raw_data_hex", hex::encode(&tx.raw_data))
        .build()
}

/// A transaction as `JsonFormat.printToString` alone prints it, its contract's parameter left as bytes: what
/// `broadcasthex` answers under `transaction`.
#[must_use]
pub fn bare_transaction(tx: &Tx) -> Value {
    let contracts = tx
        .raw
        .contract
        .iter()
        .map(|entry| {
            let any = entry.parameter.clone().unwrap_or_default();
            let parameter = Fields::default()
                .text("type_url", &any.type_url)
                .bytes("value", &any.value)
                .build();
            Fields::default()
                .text("type", &type_name(entry.r#type))
                .always("parameter", parameter)
                .address("provider", &entry.provider, true)
                .bytes("ContractName", &entry.contract_name)
                .integer("Permission_id", entry.permission_id.into())
                .build()
        })
        .collect();
    Fields::default()
        .always("raw_data", raw_data(tx, contracts))
        .list(
            "signature",
            tx.signatures
                .iter()
                .map(|entry| hex::encode(entry).into())
                .collect(),
        )
        .build()
}

fn raw_data(tx: &Tx, contracts: Vec<Value>) -> Value {
    let raw = &tx.raw;
    Fields::default()
        .bytes("ref_block_bytes", &raw.ref_block_bytes)
        .integer("ref_block_num", raw.ref_block_num)
        .bytes("ref_block_hash", &raw.ref_block_hash)
        .integer("expiration", raw.expiration)
        .bytes("data", &raw.data)
        .always("contract", contracts)
        .bytes("scripts", &raw.scripts)
        .integer("timestamp", raw.timestamp)
        .integer("fee_limit", raw.fee_limit)
        .build()
}

fn contract(entry: &Contract, call: &Call, visible: bool) -> Value {
    let type_url = entry
        .parameter
        .as_ref()
        .map_or("", |any| any.type_url.as_str());
    let value = match call {
        Call::Trigger(message) => trigger(message, visible),
        Call::Transfer(message) => transfer(message, visible),
        Call::Other(_) | Call::Unreadable => json!({}),
    };
    Fields::default()
        .always("parameter", json!({ "value": value, "type_url": type_url }))
        .always("type", type_name(entry.r#type))
        .integer("Permission_id", entry.permission_id.max(0).into())
        .build()
}

fn type_name(number: i32) -> String {
    CONTRACT_TYPES
        .iter()
        .find(|(known, _)| *known == number)
        .map_or_else(
            || format!("UNKNOWN_ENUM_VALUE_ContractType_{number}"),
            |(_, name)| (*name).to_owned(),
        )
}

fn trigger(message: &TriggerSmartContract, visible: bool) -> Value {
    Fields::default()
        .address("owner_address", &message.owner_address, visible)
        .address("contract_address", &message.contract_address, visible)
        .integer("call_value", message.call_value)
        .bytes("data", &message.data)
        .integer("call_token_value", message.call_token_value)
        .integer("token_id", message.token_id)
        .build()
}

fn transfer(message: &TransferContract, visible: bool) -> Value {
    Fields::default()
        .address("owner_address", &message.owner_address, visible)
        .address("to_address", &message.to_address, visible)
        .integer("amount", message.amount)
        .build()
}

/// A `Transaction.Result`; bytes that are none print as an empty one.
fn result(bytes: &[u8]) -> Value {
    let result = TransactionResult::decode(bytes).unwrap_or_default();
    let mut fields = Fields::default().integer("fee", result.fee);
    fields = match result.ret {
        0 => fields,
        1 => fields.text("ret", "FAILED"),
        other => fields.text("ret", &format!("UNKNOWN_ENUM_VALUE_code_{other}")),
    };
    if result.contract_ret != 0 {
        fields = fields.text("contractRet", &outcome::json_name(result.contract_ret));
    }
    let details = result.order_details.iter().map(|detail| {
        Fields::default()
            .bytes("makerOrderId", &detail.maker_order_id)
            .bytes("takerOrderId", &detail.taker_order_id)
            .integer("fillSellQuantity", detail.fill_sell_quantity)
            .integer("fillBuyQuantity", detail.fill_buy_quantity)
            .build()
    });
    // A map is printed as the list of its entries, each with key and value, whatever these are.
    let amounts = result.cancel_unfreeze_v2_amount.iter().map(|entry| {
        json!({
            "key": entry.key.clone().unwrap_or_default(),
            "value": entry.value.unwrap_or_default(),
        })
    });
    fields
        .text("assetIssueID", &result.asset_issue_id)
        .integer("withdraw_amount", result.withdraw_amount)
        .integer("unfreeze_amount", result.unfreeze_amount)
        .integer("exchange_received_amount", result.exchange_received_amount)
        .integer(
            "exchange_inject_another_amount",
            result.exchange_inject_another_amount,
        )
        .integer(
            "exchange_withdraw_another_amount",
            result.exchange_withdraw_another_amount,
        )
        .integer("exchange_id", result.exchange_id)
        .integer("shielded_transaction_fee", result.shielded_transaction_fee)
        .bytes("orderId", &result.order_id)
        .list("orderDetails", details.collect())
        .integer("withdraw_expire_amount", result.withdraw_expire_amount)
        .list("cancel_unfreezeV2_amount", amounts.collect())
        .build()
}
