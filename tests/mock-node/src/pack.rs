//! A transaction out of JSON, as `broadcasttransaction` takes it (`Util.packTransaction`): the node builds `raw_data` anew
//! from its fields and looks at neither `txID` nor `raw_data_hex`.

use prost::Message;
use serde_json::{Map, Value};
use sluice_core::address::Address;
use sluice_core::proto::{
    Any, Contract, TRANSFER_CONTRACT, TRIGGER_SMART_CONTRACT, TYPE_URL_PREFIX, TransactionRaw,
    TransferContract, TriggerSmartContract,
};

use crate::transaction::Tx;

/// Nothing that a transaction could be made of. java-tron passes a null on and fails there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unparsable;

/// Builds the transaction. A contract entry that does not parse is left out without a word: what is built then has another
/// txid and no contract.
pub fn transaction(body: &Value, visible: bool) -> Result<Tx, Unparsable> {
    let raw = body
        .get("raw_data")
        .and_then(Value::as_object)
        .ok_or(Unparsable)?;
    let entries = raw
        .get("contract")
        .and_then(Value::as_array)
        .ok_or(Unparsable)?;
    let message = TransactionRaw {
        ref_block_bytes: bytes(raw, "ref_block_bytes")?,
        ref_block_num: integer(raw, "ref_block_num")?,
        ref_block_hash: bytes(raw, "ref_block_hash")?,
        expiration: integer(raw, "expiration")?,
        auths: Vec::new(),
        data: bytes(raw, "data")?,
        contract: entries
            .iter()
            .filter_map(|entry| contract(entry, visible).ok())
            .collect(),
        scripts: bytes(raw, "scripts")?,
        timestamp: integer(raw, "timestamp")?,
        fee_limit: integer(raw, "fee_limit")?,
    };
    let signatures = match body.get("signature") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| hex_bytes(entry.as_str().ok_or(Unparsable)?))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(Unparsable),
    };
    Tx::new(&message.encode_to_vec(), signatures).map_err(|_| Unparsable)
}

fn contract(entry: &Value, visible: bool) -> Result<Contract, Unparsable> {
    let entry = entry.as_object().ok_or(Unparsable)?;
    let name = entry
        .get("type")
        .and_then(Value::as_str)
        .ok_or(Unparsable)?;
    let value = entry
        .get("parameter")
        .and_then(|parameter| parameter.get("value"))
        .and_then(Value::as_object)
        .ok_or(Unparsable)?;
    let (r#type, value) = match name {
        "TriggerSmartContract" => (
            TRIGGER_SMART_CONTRACT,
            TriggerSmartContract {
                owner_address: address(value, "owner_address", visible)?,
                contract_address: address(value, "contract_address", visible)?,
                call_value: integer(value, "call_value")?,
                data: bytes(value, "data")?,
                call_token_value: integer(value, "call_token_value")?,
                token_id: integer(value, "token_id")?,
            }
            .encode_to_vec(),
        ),
        "TransferContract" => (
            TRANSFER_CONTRACT,
            TransferContract {
                owner_address: address(value, "owner_address", visible)?,
                to_address: address(value, "to_address", visible)?,
                amount: integer(value, "amount")?,
            }
            .encode_to_vec(),
        ),
        _ => return Err(Unparsable),
    };
    Ok(Contract {
        r#type,
        parameter: Some(Any {
            type_url: format!("{TYPE_URL_PREFIX}{name}"),
            value,
        }),
        provider: address(entry, "provider", visible)?,
        contract_name: bytes(entry, "ContractName")?,
        permission_id: i32::try_from(integer(entry, "Permission_id")?).map_err(|_| Unparsable)?,
    })
}

/// Numbers may be given as text.
fn integer(fields: &Map<String, Value>, name: &str) -> Result<i64, Unparsable> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::Number(number)) => number.as_i64().ok_or(Unparsable),
        Some(Value::String(text)) => text.parse().map_err(|_| Unparsable),
        Some(_) => Err(Unparsable),
    }
}

fn bytes(fields: &Map<String, Value>, name: &str) -> Result<Vec<u8>, Unparsable> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => hex_bytes(text),
        Some(_) => Err(Unparsable),
    }
}

fn address(fields: &Map<String, Value>, name: &str, visible: bool) -> Result<Vec<u8>, Unparsable> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) if visible && !text.is_empty() => Address::parse(text)
            .map(|address| address.as_bytes().to_vec())
            .map_err(|_| Unparsable),
        Some(Value::String(text)) => hex_bytes(text),
        Some(_) => Err(Unparsable),
    }
}

/// `ByteArray.fromHexString`: `0x` is skipped, and an odd number of digits gets a 0 in front.
pub fn hex_bytes(text: &str) -> Result<Vec<u8>, Unparsable> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let padded = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    hex::decode(padded).map_err(|_| Unparsable)
}
