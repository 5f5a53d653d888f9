//! The shape of `public.json`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use sluice_core::address::Address;
use sluice_core::chain::ChainTime;
use sluice_core::envelope::EnvelopeSpec;

#[derive(Deserialize)]
pub struct Vectors {
    pub addresses: Addresses,
    pub envelopes: Vec<Envelope>,
    pub signatures: Vec<Signature>,
    pub amounts: Vec<Amount>,
    pub request_hashes: Vec<Request>,
    pub merkle: Vec<Merkle>,
    pub blocks: Vec<Block>,
}

#[derive(Deserialize)]
pub struct Addresses {
    pub keys: Vec<Key>,
    pub strings: Vec<AddressString>,
}

#[derive(Deserialize)]
pub struct Key {
    pub id: String,
    pub private_key: String,
    pub address: String,
    pub hex21: String,
    pub evm20: String,
}

#[derive(Deserialize)]
pub struct AddressString {
    pub id: String,
    pub text: String,
    pub kind: String,
    pub reason: String,
    pub denotes: Option<String>,
}

#[derive(Deserialize)]
pub struct Envelope {
    pub id: String,
    pub inputs: Inputs,
    pub outputs: Outputs,
    pub with_tag: Tagged,
    pub with_tag_and_permission: Option<Tagged>,
}

#[derive(Deserialize)]
pub struct Inputs {
    pub owner: String,
    pub contract: String,
    pub to: String,
    pub amount_units: String,
    pub ref_block_num: i64,
    pub ref_block_id: String,
    pub expiration_ms: i64,
    pub timestamp_ms: i64,
    pub fee_limit_sun: i64,
}

#[derive(Deserialize)]
pub struct Outputs {
    pub ref_block_bytes: String,
    pub ref_block_hash: String,
    pub calldata: String,
    pub raw_data: String,
    pub txid: String,
}

#[derive(Deserialize)]
pub struct Tagged {
    pub id: String,
    pub uuid: String,
    pub tag: String,
    #[serde(default)]
    pub permission_id: i32,
    pub outputs: TaggedOutputs,
}

#[derive(Deserialize)]
pub struct TaggedOutputs {
    pub raw_data: String,
    pub txid: String,
}

#[derive(Deserialize)]
pub struct Signature {
    pub id: String,
    pub envelope_id: String,
    pub private_key: String,
    pub signer: String,
    pub txid: String,
    pub signature: String,
    pub r: String,
    pub s: String,
    pub recovery_id: u8,
    pub signed_tx: String,
}

#[derive(Deserialize)]
pub struct Amount {
    pub id: String,
    pub text: String,
    pub decimals: u32,
    pub accepted: bool,
    pub units: Option<String>,
    pub fits_numeric_38_0: Option<bool>,
    pub why: String,
}

#[derive(Deserialize)]
pub struct Request {
    pub id: String,
    pub to_address: String,
    pub amount_units: String,
    pub asset: String,
    pub canonical_json: String,
    pub sha256: String,
}

#[derive(Deserialize)]
pub struct Merkle {
    pub id: String,
    pub n: usize,
    pub transactions_carry_ret: bool,
    pub transactions: Vec<String>,
    pub txids: Vec<String>,
    pub root: String,
    pub wrong_roots: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub struct Block {
    pub id: String,
    pub header: Header,
    pub raw: String,
    pub block_id: String,
    pub ref_block_bytes: String,
    pub ref_block_hash: String,
    pub merkle_id: Option<String>,
}

#[derive(Deserialize)]
pub struct Header {
    pub timestamp: i64,
    pub tx_trie_root: String,
    pub parent_hash: String,
    pub number: i64,
    pub witness_id: i64,
    pub witness_address: String,
    pub version: i32,
    pub account_state_root: String,
}

pub fn vectors() -> &'static Vectors {
    static VECTORS: OnceLock<Vectors> = OnceLock::new();
    VECTORS.get_or_init(|| {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/vectors/public.json"
        );
        let text = std::fs::read_to_string(path).expect("the vectors lie in the repository");
        serde_json::from_str(&text).expect("the vectors have this shape")
    })
}

impl Merkle {
    pub fn transaction_bytes(&self) -> Vec<Vec<u8>> {
        self.transactions.iter().map(|text| bytes(text)).collect()
    }
}

impl Inputs {
    pub fn spec(&self) -> EnvelopeSpec {
        EnvelopeSpec {
            owner: address(&self.owner),
            contract: address(&self.contract),
            to: address(&self.to),
            units: self.amount_units.parse().expect("an amount of ours"),
            ref_block_number: self.ref_block_num,
            ref_block_id: array(&self.ref_block_id),
            expiration: ChainTime(self.expiration_ms),
            timestamp: ChainTime(self.timestamp_ms),
            fee_limit_sun: self.fee_limit_sun,
            tag: None,
            permission_id: 0,
        }
    }
}

impl Tagged {
    pub fn operation_id(&self) -> [u8; 16] {
        array(&self.uuid.replace('-', ""))
    }
}

pub fn address(text: &str) -> Address {
    Address::parse(text).expect("a valid address")
}

pub fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect("hex")
}

pub fn array<const N: usize>(text: &str) -> [u8; N] {
    bytes(text).try_into().expect("this many bytes")
}
