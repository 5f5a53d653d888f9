//! Addresses, envelopes, request hashes and signatures, as SQL sees them. The pure functions encode whatever has an
//! encoding; what a policy forbids is refused elsewhere.

use crate::pg::errors::{Code, OrRaise, raise};
use pgrx::prelude::*;
use sluice_core::address::Address;
use sluice_core::broadcast::{BroadcastCode, BroadcastVerdict};
use sluice_core::chain::{ChainTime, Network};
use sluice_core::envelope::{self, EnvelopeSpec, Txid};
use sluice_core::request;
use sluice_core::signature::{self, SignerKind};
use sluice_core::units::Units;

/// An address argument, or an error that names it.
pub fn address_of(text: &str, argument: &str) -> Address {
    Address::parse(text).or_raise(Code::BadAddress, argument)
}

/// A 32-byte argument, or an error that names it.
pub fn bytes32(bytes: &[u8], argument: &str) -> [u8; 32] {
    bytes.try_into().unwrap_or_else(|_| {
        raise(
            Code::BadArgument,
            format!("{argument}: {} bytes where there must be 32", bytes.len()),
            "",
        )
    })
}

fn units_of(value: &AnyNumeric, argument: &str) -> Units {
    // By value: zeros after a point are no fraction.
    sluice_core::units::shortest(&value.to_string())
        .and_then(|digits| digits.parse::<Units>())
        .or_raise(Code::BadArgument, argument)
}

/// Whether the text is an address that sluice takes.
#[pg_extern(immutable, strict, parallel_safe)]
fn address_is_valid(address: &str) -> bool {
    Address::parse(address).is_ok()
}

/// The 21 bytes of an address.
#[pg_extern(immutable, strict, parallel_safe)]
fn address_bytes(address: &str) -> Vec<u8> {
    address_of(address, "address").as_bytes().to_vec()
}

/// The base58 form of an argument that is an address, or an error that names the argument.
#[pg_extern(immutable, strict, parallel_safe)]
fn address_argument(address: &str, argument: &str) -> String {
    address_of(address, argument).to_string()
}

/// The address that nobody has the key of.
#[pg_extern(immutable, parallel_safe)]
fn zero_address() -> String {
    Address::from_body([0; 20]).to_string()
}

/// The base58 form of 21 bytes.
#[pg_extern(immutable, strict, parallel_safe)]
fn address_text(address: &[u8]) -> String {
    Address::from_bytes(address)
        .or_raise(Code::BadAddress, "address")
        .to_string()
}

/// The hash that two requests share exactly when they ask for the same.
#[pg_extern(immutable, parallel_safe)]
fn request_hash(
    to_address: Option<&str>,
    amount_units: Option<AnyNumeric>,
    asset: Option<&str>,
    account: default!(Option<&str>, "NULL"),
) -> Option<Vec<u8>> {
    let (to, units, asset) = (to_address?, amount_units?, asset?);
    let to = address_of(to, "to_address");
    let units = sluice_core::units::shortest(&units.to_string())
        .or_raise(Code::BadArgument, "amount_units");
    Some(request::request_hash(&to, &units, asset, account).to_vec())
}

/// The exact protobuf bytes of `Transaction.raw` for one transfer.
#[expect(clippy::too_many_arguments, reason = "the SQL contract fixes them")]
#[pg_extern(immutable, parallel_safe)]
fn raw_data(
    owner: Option<&str>,
    contract: Option<&str>,
    to_address: Option<&str>,
    amount_units: Option<AnyNumeric>,
    ref_block_number: Option<i64>,
    ref_block_id: Option<&[u8]>,
    expiration_ms: Option<i64>,
    timestamp_ms: Option<i64>,
    fee_limit_sun: Option<i64>,
    operation_id: default!(Option<pgrx::Uuid>, "NULL"),
    permission_id: default!(Option<i32>, "0"),
) -> Option<Vec<u8>> {
    let spec = EnvelopeSpec {
        owner: address_of(owner?, "owner"),
        contract: address_of(contract?, "contract"),
        to: address_of(to_address?, "to_address"),
        units: units_of(&amount_units?, "amount_units"),
        ref_block_number: ref_block_number?,
        ref_block_id: bytes32(ref_block_id?, "ref_block_id"),
        expiration: ChainTime(expiration_ms?),
        timestamp: ChainTime(timestamp_ms?),
        fee_limit_sun: fee_limit_sun?,
        tag: operation_id.map(|id| envelope::tag(*id.as_bytes())),
        permission_id: permission_id?,
    };
    Some(spec.raw_data())
}

/// The 16 bytes that name a withdrawal in its envelopes.
#[pg_extern(immutable, strict, parallel_safe)]
fn tag(operation_id: pgrx::Uuid) -> Vec<u8> {
    envelope::tag(*operation_id.as_bytes()).to_vec()
}

/// The transaction's id: the sha256 of its raw_data.
#[pg_extern(immutable, strict, parallel_safe)]
fn txid(raw_data: &[u8]) -> Vec<u8> {
    Txid::of(raw_data).as_bytes().to_vec()
}

/// What the bytes of `Transaction.raw` say.
#[pg_extern(immutable, strict, parallel_safe)]
fn decode_raw_data(raw_data: &[u8]) -> pgrx::JsonB {
    let shown = envelope::decode_raw_data(raw_data).or_raise(Code::BadArgument, "raw_data");
    // The one text in it that is not made here. jsonb cannot hold the character.
    if shown["type_url"]
        .as_str()
        .is_some_and(|text| text.contains('\0'))
    {
        raise(
            Code::BadArgument,
            "raw_data: its type_url has a zero byte",
            "No contract's type has one: these bytes are no transaction.",
        );
    }
    pgrx::JsonB(shown)
}

/// The whole transaction, as /wallet/broadcasthex takes it in hex.
#[pg_extern(immutable, strict, parallel_safe)]
fn signed_transaction(raw_data: &[u8], signature: &[u8]) -> Vec<u8> {
    envelope::signed_transaction(raw_data, signature)
}

fn signer_kind(signer: &str) -> SignerKind {
    signer.parse().or_raise(Code::BadArgument, "signer")
}

/// Why this signature is not the signer's over this txid, or NULL if it is.
#[pg_extern(immutable, strict, parallel_safe)]
fn signature_fault(
    signer: &str,
    signer_address: &str,
    txid: &[u8],
    signature: &[u8],
) -> Option<String> {
    let kind = signer_kind(signer);
    let signer = address_of(signer_address, "signer_address");
    let txid = Txid::from_bytes(txid).or_raise(Code::BadArgument, "txid");
    signature::verify(kind, &signer, &txid, signature)
        .err()
        .map(|fault| fault.to_string())
}

/// Whether the chain with this block 0 takes a mock's signatures.
#[pg_extern(immutable, strict, parallel_safe)]
fn takes_mock_signatures(genesis_id: &[u8]) -> bool {
    Network::of_genesis(&bytes32(genesis_id, "genesis_id")).takes_mock_signatures()
}

/// What a node's answer to a broadcast says: `accepted`, `refused`, `busy` or `no_answer`.
#[pg_extern(immutable, strict, parallel_safe)]
fn broadcast_verdict(code: &str) -> &'static str {
    match BroadcastCode::from_name(code).verdict() {
        BroadcastVerdict::Accepted => "accepted",
        BroadcastVerdict::Refused => "refused",
        BroadcastVerdict::Busy => "busy",
        BroadcastVerdict::NoAnswer => "no_answer",
    }
}
