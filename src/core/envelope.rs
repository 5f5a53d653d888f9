//! An envelope: one TRON transaction that pays one withdrawal, built as a pure function of what it is to pay and of one
//! block. Equal inputs give equal bytes, so two builders that know nothing of each other build one payment, not two.

use std::fmt;
use std::str::FromStr;

use prost::Message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::chain::ChainTime;
use crate::proto::{
    Any, Contract, TRANSFER_CONTRACT, TRIGGER_SMART_CONTRACT, TYPE_URL_PREFIX, Transaction,
    TransactionRaw, TransferContract, TriggerSmartContract,
};
use crate::units::Units;

/// The most bytes a transaction may have (`Constant.java`, `TRANSACTION_MAX_BYTE_SIZE`). Longer ones are not looked into:
/// a repeated field of two bytes becomes a struct of a hundred.
pub const MAX_TRANSACTION_BYTES: usize = 500 * 1024;

/// `transfer(address,uint256)`.
const TRANSFER_SELECTOR: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];

/// A transaction's id: SHA-256 of its `raw_data`. Signatures and results are outside it. Shown in lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txid([u8; 32]);

/// Why bytes are no envelope, or no part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Bytes that are not the message they should be.
    #[error("these bytes are no {message}: {source}")]
    Protobuf {
        /// The message's name.
        message: &'static str,
        /// What protobuf says.
        source: prost::DecodeError,
    },
    /// More bytes than any node takes.
    #[error("{found} bytes are more than a transaction may have ({MAX_TRANSACTION_BYTES})")]
    TooLong {
        /// How many there are.
        found: usize,
    },
    /// Nodes take a transaction with exactly one contract entry.
    #[error("these bytes hold {found} contract entries: a transaction's raw_data has exactly one")]
    Contracts {
        /// How many there are.
        found: usize,
    },
    /// A txid of another length.
    #[error("a txid has 32 bytes, these are {found}")]
    TxidLength {
        /// How many there are.
        found: usize,
    },
    /// A txid in another form.
    #[error("a txid is 64 hex digits, without a prefix")]
    TxidText,
}

impl Txid {
    /// The id of the transaction with this `raw_data`.
    #[must_use]
    pub fn of(raw_data: &[u8]) -> Self {
        Self(Sha256::digest(raw_data).into())
    }

    /// The id with these 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        bytes
            .try_into()
            .map(Self)
            .map_err(|_| EnvelopeError::TxidLength { found: bytes.len() })
    }

    /// The 32 bytes: also the digest that is signed.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Txid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Txid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Txid {
    type Err = EnvelopeError;

    /// 64 hex digits in either case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| EnvelopeError::TxidText)?;
        Ok(Self(bytes))
    }
}

/// All that an envelope's bytes depend on. Nothing is checked here: whatever has an encoding is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvelopeSpec {
    /// The wallet that pays.
    pub owner: Address,
    /// The token.
    pub contract: Address,
    /// The recipient.
    pub to: Address,
    /// How much, in the token's base units.
    pub units: Units,
    /// The number of the block referred to.
    pub ref_block_number: i64,
    /// That block's id.
    pub ref_block_id: [u8; 32],
    /// After the first block stamped at or past this, no block can hold the transaction.
    pub expiration: ChainTime,
    /// Checked by no node; part of the txid.
    pub timestamp: ChainTime,
    /// The most the call may burn.
    pub fee_limit_sun: i64,
    /// Names the withdrawal: see [`tag`].
    pub tag: Option<[u8; 16]>,
    /// 0 for the owner's permission, 2 and more for an active one.
    pub permission_id: i32,
}

impl EnvelopeSpec {
    /// The bytes of `protocol.Transaction.raw`, as java-tron itself would write them: fields in ascending number, zeros and
    /// empty bytes left out.
    #[must_use]
    pub fn raw_data(&self) -> Vec<u8> {
        let call = TriggerSmartContract {
            owner_address: self.owner.as_bytes().to_vec(),
            contract_address: self.contract.as_bytes().to_vec(),
            data: calldata(&self.to, self.units).to_vec(),
            ..TriggerSmartContract::default()
        };
        let entry = Contract {
            r#type: TRIGGER_SMART_CONTRACT,
            parameter: Some(Any {
                type_url: format!("{TYPE_URL_PREFIX}TriggerSmartContract"),
                value: call.encode_to_vec(),
            }),
            permission_id: self.permission_id,
            ..Contract::default()
        };
        let raw = TransactionRaw {
            ref_block_bytes: ref_block_bytes(self.ref_block_number).to_vec(),
            ref_block_hash: ref_block_hash(&self.ref_block_id).to_vec(),
            expiration: self.expiration.0,
            contract: vec![entry],
            scripts: self.tag.map(|tag| tag.to_vec()).unwrap_or_default(),
            timestamp: self.timestamp.0,
            fee_limit: self.fee_limit_sun,
            ..TransactionRaw::default()
        };
        raw.encode_to_vec()
    }
}

/// Bytes 6 and 7 of a block's number: the first half of a reference to it (`TransactionCapsule.java`, `setReference`).
#[must_use]
pub const fn ref_block_bytes(number: i64) -> [u8; 2] {
    let [.., sixth, seventh] = number.to_be_bytes();
    [sixth, seventh]
}

/// Bytes 8 to 15 of a block's id: the second half of a reference to it.
#[must_use]
pub fn ref_block_hash(id: &[u8; 32]) -> [u8; 8] {
    std::array::from_fn(|i| id[8 + i])
}

/// The calldata of `transfer(to, units)`: selector, recipient without 0x41 and left-padded, amount. Nothing follows:
/// receivers' scanners expect these 68 bytes.
#[must_use]
pub fn calldata(to: &Address, units: Units) -> [u8; 68] {
    let mut data = [0; 68];
    data[..4].copy_from_slice(&TRANSFER_SELECTOR);
    data[16..36].copy_from_slice(to.body());
    data[52..].copy_from_slice(&units.get().to_be_bytes());
    data
}

/// What an envelope carries to name its withdrawal: the first 16 bytes of SHA-256 over the operation id's 16 bytes.
///
/// It lies in `raw_data.scripts`, which java-tron reads nowhere but hashes into the txid, so that two equal payments are
/// two transactions and the chain itself says which withdrawal each one paid.
#[must_use]
pub fn tag(operation_id: [u8; 16]) -> [u8; 16] {
    let digest = Sha256::digest(operation_id);
    std::array::from_fn(|i| digest[i])
}

/// The whole `protocol.Transaction` with one signature: what `/wallet/broadcasthex` takes.
#[must_use]
pub fn signed_transaction(raw_data: &[u8], signature: &[u8]) -> Vec<u8> {
    let transaction = Transaction {
        raw_data: raw_data.to_vec(),
        signature: vec![signature.to_vec()],
        ret: vec![],
    };
    transaction.encode_to_vec()
}

/// A token transfer, as the bytes of a transaction ask for it. Whether it took place is for the block's receipt to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Who pays.
    pub owner: Address,
    /// The token.
    pub contract: Address,
    /// Who is paid.
    pub to: Address,
    /// How much.
    pub units: Units,
    /// The 16 bytes of `scripts`, if there are exactly 16.
    pub tag: Option<[u8; 16]>,
}

/// The transfer in a transaction that calls `transfer(address,uint256)` and nothing else; `None` for every other
/// transaction, for bytes that are none, and for an amount beyond [`Units::MAX`].
///
/// Read as the token reads it: the 12 bytes before the recipient are masked (in half of the transfers on the main network
/// the last of them is 41), bytes after the 68th are ignored.
#[must_use]
pub fn transfer_of(raw_data: &[u8]) -> Option<Transfer> {
    let (raw, entry) = decode(raw_data).ok()?;
    let Call::Trigger(call) = call_of(&entry).ok()? else {
        return None;
    };
    let (to, amount) = transfer_arguments(&call.data)?;
    let (high, low) = amount.split_first_chunk::<16>()?;
    if *high != [0; 16] {
        return None;
    }
    Some(Transfer {
        owner: Address::from_bytes(&call.owner_address).ok()?,
        contract: Address::from_bytes(&call.contract_address).ok()?,
        to,
        units: Units::new(u128::from_be_bytes(low.try_into().ok()?)).ok()?,
        tag: raw.scripts.try_into().ok(),
    })
}

/// Every field of a transaction's `raw_data` as JSON: integers as numbers, bytes in hex, addresses in base58 (in hex where
/// they are none), amounts as decimal strings, `null` for what is absent.
///
/// Of a TRC-20 transfer it shows `owner`, `contract`, `to`, `amount_units`; of a transfer of TRX the same with `contract`
/// `null`; of any other contract `type_url` and the `parameter`. `canonical` is false where java-tron would write the same
/// message in other bytes, or where there are fields that this function does not know.
pub fn decode_raw_data(raw_data: &[u8]) -> Result<Value, EnvelopeError> {
    let (raw, entry) = decode(raw_data)?;
    let mut shown = json!({
        "ref_block_bytes": hex::encode(&raw.ref_block_bytes),
        "ref_block_num": raw.ref_block_num,
        "ref_block_hash": hex::encode(&raw.ref_block_hash),
        "expiration_ms": raw.expiration,
        "timestamp_ms": raw.timestamp,
        "fee_limit_sun": raw.fee_limit,
        "auths": raw.auths.iter().map(hex::encode).collect::<Vec<_>>(),
        "memo": hex_or_null(&raw.data),
        "scripts": hex_or_null(&raw.scripts),
        "tag": if raw.scripts.len() == 16 { hex_or_null(&raw.scripts) } else { Value::Null },
        "contract_type": entry.r#type,
        "type_url": entry.parameter.as_ref().map(|any| any.type_url.as_str()),
        "provider": hex_or_null(&entry.provider),
        "contract_name": hex_or_null(&entry.contract_name),
        "permission_id": entry.permission_id,
        "owner": null,
        "contract": null,
        "to": null,
        "amount_units": null,
        "data": null,
        "parameter": null,
        "canonical": is_canonical(raw_data, &raw, &entry),
    });
    match call_of(&entry)? {
        Call::Trigger(call) => {
            shown["contract_type"] = json!("TriggerSmartContract");
            shown["owner"] = address(&call.owner_address);
            shown["contract"] = address(&call.contract_address);
            shown["data"] = json!(hex::encode(&call.data));
            shown["call_value_sun"] = json!(call.call_value);
            shown["call_token_value"] = json!(call.call_token_value);
            shown["token_id"] = json!(call.token_id);
            if let Some((to, amount)) = transfer_arguments(&call.data) {
                shown["to"] = json!(to.to_string());
                shown["amount_units"] = json!(decimal(amount));
            }
        }
        Call::Transfer(transfer) => {
            shown["contract_type"] = json!("TransferContract");
            shown["owner"] = address(&transfer.owner_address);
            shown["to"] = address(&transfer.to_address);
            shown["amount_units"] = json!(transfer.amount.to_string());
        }
        Call::Other(parameter) => shown["parameter"] = json!(hex::encode(parameter)),
    }
    Ok(shown)
}

/// What a transaction does, as far as we read it.
enum Call<'a> {
    Trigger(TriggerSmartContract),
    Transfer(TransferContract),
    Other(&'a [u8]),
}

/// The contract entry comes out of the message, which keeps the rest.
fn decode(raw_data: &[u8]) -> Result<(TransactionRaw, Contract), EnvelopeError> {
    if raw_data.len() > MAX_TRANSACTION_BYTES {
        return Err(EnvelopeError::TooLong {
            found: raw_data.len(),
        });
    }
    let mut raw: TransactionRaw = message("protocol.Transaction.raw", raw_data)?;
    let found = raw.contract.len();
    match raw.contract.pop() {
        Some(entry) if found == 1 => Ok((raw, entry)),
        Some(_) | None => Err(EnvelopeError::Contracts { found }),
    }
}

fn message<M: Message + Default>(name: &'static str, bytes: &[u8]) -> Result<M, EnvelopeError> {
    M::decode(bytes).map_err(|source| EnvelopeError::Protobuf {
        message: name,
        source,
    })
}

/// As java-tron does, the number says which message is meant and the type's name must agree (protobuf's `Any.unpack`: what
/// follows the last slash); one without the other is nothing that we read.
fn call_of(entry: &Contract) -> Result<Call<'_>, EnvelopeError> {
    let Some(any) = &entry.parameter else {
        return Ok(Call::Other(&[]));
    };
    let name = any.type_url.rsplit_once('/').map(|(_, name)| name);
    match (entry.r#type, name) {
        (TRIGGER_SMART_CONTRACT, Some("protocol.TriggerSmartContract")) => Ok(Call::Trigger(
            message("protocol.TriggerSmartContract", &any.value)?,
        )),
        (TRANSFER_CONTRACT, Some("protocol.TransferContract")) => Ok(Call::Transfer(message(
            "protocol.TransferContract",
            &any.value,
        )?)),
        _ => Ok(Call::Other(&any.value)),
    }
}

/// Recipient and amount word of a call of `transfer(address,uint256)`.
fn transfer_arguments(data: &[u8]) -> Option<(Address, &[u8; 32])> {
    let (selector, arguments) = data.split_first_chunk::<4>()?;
    if *selector != TRANSFER_SELECTOR {
        return None;
    }
    let (recipient, rest) = arguments.split_first_chunk::<32>()?;
    let amount = rest.first_chunk::<32>()?;
    let body = recipient.last_chunk::<20>()?;
    Some((Address::from_body(*body), amount))
}

/// Whether the fields that we know, written in java-tron's way, give these bytes.
fn is_canonical(raw_data: &[u8], raw: &TransactionRaw, entry: &Contract) -> bool {
    let whole = TransactionRaw {
        contract: vec![entry.clone()],
        ..raw.clone()
    };
    whole.encode_to_vec() == raw_data
}

fn address(bytes: &[u8]) -> Value {
    match Address::from_bytes(bytes) {
        Ok(address) => json!(address.to_string()),
        Err(_) => hex_or_null(bytes),
    }
}

fn hex_or_null(bytes: &[u8]) -> Value {
    match bytes {
        [] => Value::Null,
        bytes => json!(hex::encode(bytes)),
    }
}

/// A 256-bit word in decimal: others' transactions may ask for more than any amount of ours.
fn decimal(word: &[u8; 32]) -> String {
    let mut digits = vec![];
    let mut rest = *word;
    while rest != [0; 32] {
        let mut remainder = 0_u16;
        for byte in &mut rest {
            let here = (remainder << 8) | u16::from(*byte);
            *byte = u8::try_from(here / 10).expect("here is below 10 * 256");
            remainder = here % 10;
        }
        digits.push(char::from_digit(remainder.into(), 10).expect("a remainder of 10 is a digit"));
    }
    match digits.is_empty() {
        true => "0".to_owned(),
        false => digits.into_iter().rev().collect(),
    }
}
