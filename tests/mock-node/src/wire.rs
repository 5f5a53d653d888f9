//! Protobuf's wire format, as far as a node has to look beneath its messages: java-tron hashes its own re-serialization
//! of what it parsed (`TransactionCapsule.getTransactionId`), and there known fields come in ascending order, defaults
//! are left out, and fields it does not know follow at the end.

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use sluice_core::proto::{Any, Contract, TransactionRaw};

/// Field numbers of `protocol.Transaction.raw` that this node's messages know, the contract list aside.
const RAW_FIELDS: [u32; 9] = [1, 3, 4, 8, 9, 10, 12, 14, 18];
const RAW_CONTRACT: u32 = 11;
/// Field numbers of `protocol.Transaction.Contract`, `parameter` aside.
const CONTRACT_FIELDS: [u32; 4] = [1, 3, 4, 5];
const CONTRACT_PARAMETER: u32 = 2;
const ANY_FIELDS: [u32; 2] = [1, 2];

/// One field as it stands in a message.
struct Field<'a> {
    number: u32,
    /// Key and value.
    whole: &'a [u8],
    /// The value of a length-delimited field, without its length.
    content: Option<&'a [u8]>,
}

/// Bytes that are no protobuf message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub String);

impl From<prost::DecodeError> for WireError {
    fn from(error: prost::DecodeError) -> Self {
        Self(error.to_string())
    }
}

fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
    let mut rest = message;
    let mut found = Vec::new();
    while rest.has_remaining() {
        let start = rest;
        let (number, wire_type) = decode_key(&mut rest)?;
        let content = if wire_type == WireType::LengthDelimited {
            let mut peek = rest;
            let length = usize::try_from(decode_varint(&mut peek)?)
                .ok()
                .filter(|length| *length <= peek.len())
                .ok_or_else(|| {
                    WireError("a length-delimited field runs past the end".to_owned())
                })?;
            Some(&peek[..length])
        } else {
            None
        };
        skip_field(wire_type, number, &mut rest, DecodeContext::default())?;
        found.push(Field {
            number,
            whole: &start[..start.len() - rest.len()],
            content,
        });
    }
    Ok(found)
}

fn put_message(out: &mut Vec<u8>, number: u32, message: &[u8]) {
    prost::encoding::encode_key(number, WireType::LengthDelimited, out);
    prost::encoding::encode_varint(message.len() as u64, out);
    out.extend_from_slice(message);
}

/// The fields of `message` whose numbers are not in `known`, ordered by number as Java's `UnknownFieldSet` keeps them.
fn unknown_fields(message: &[u8], known: &[u32]) -> Result<Vec<u8>, WireError> {
    let mut unknown: Vec<_> = fields(message)?
        .into_iter()
        .filter(|field| !known.contains(&field.number))
        .collect();
    unknown.sort_by_key(|field| field.number);
    Ok(unknown
        .iter()
        .flat_map(|field| field.whole.to_vec())
        .collect())
}

/// `raw_data` as java-tron would serialize it after parsing it: what its txid is taken over.
pub fn canonical_raw_data(raw_data: &[u8]) -> Result<Vec<u8>, WireError> {
    let parsed = TransactionRaw::decode(raw_data)?;
    let contracts = fields(raw_data)?
        .into_iter()
        .filter(|field| field.number == RAW_CONTRACT)
        .filter_map(|field| field.content)
        .map(canonical_contract)
        .collect::<Result<Vec<_>, _>>()?;

    let without_contracts = TransactionRaw {
        contract: Vec::new(),
        ..parsed
    }
    .encode_to_vec();
    let mut out = Vec::with_capacity(raw_data.len());
    let known = fields(&without_contracts)?;
    for field in known.iter().filter(|field| field.number < RAW_CONTRACT) {
        out.extend_from_slice(field.whole);
    }
    for contract in &contracts {
        put_message(&mut out, RAW_CONTRACT, contract);
    }
    for field in known.iter().filter(|field| field.number > RAW_CONTRACT) {
        out.extend_from_slice(field.whole);
    }
    let mut all = RAW_FIELDS.to_vec();
    all.push(RAW_CONTRACT);
    out.extend(unknown_fields(raw_data, &all)?);
    Ok(out)
}

fn canonical_contract(contract: &[u8]) -> Result<Vec<u8>, WireError> {
    let parsed = Contract::decode(contract)?;
    let parameter = match &parsed.parameter {
        None => None,
        Some(any) => {
            let unknown = fields(contract)?
                .into_iter()
                .filter(|field| field.number == CONTRACT_PARAMETER)
                .filter_map(|field| field.content)
                .map(|content| unknown_fields(content, &ANY_FIELDS))
                .collect::<Result<Vec<_>, _>>()?;
            Some([Any::encode_to_vec(any), unknown.concat()].concat())
        }
    };
    let without_parameter = Contract {
        parameter: None,
        ..parsed
    }
    .encode_to_vec();
    let known = fields(&without_parameter)?;
    let mut out = Vec::with_capacity(contract.len());
    for field in known
        .iter()
        .filter(|field| field.number < CONTRACT_PARAMETER)
    {
        out.extend_from_slice(field.whole);
    }
    if let Some(parameter) = parameter {
        put_message(&mut out, CONTRACT_PARAMETER, &parameter);
    }
    for field in known
        .iter()
        .filter(|field| field.number > CONTRACT_PARAMETER)
    {
        out.extend_from_slice(field.whole);
    }
    let mut all = CONTRACT_FIELDS.to_vec();
    all.push(CONTRACT_PARAMETER);
    out.extend(unknown_fields(contract, &all)?);
    Ok(out)
}
