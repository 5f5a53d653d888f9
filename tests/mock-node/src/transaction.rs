//! A transaction as a node reads it out of the bytes that a client sent: decoded, hashed, and asked what it would pay.

use prost::Message;
use sha2::{Digest, Sha256};
use sluice_core::address::Address;
use sluice_core::envelope::Txid;
use sluice_core::proto::{
    self, TRANSFER_CONTRACT, TRIGGER_SMART_CONTRACT, TransactionRaw, TransferContract,
    TriggerSmartContract,
};

use crate::decimal;
use crate::wire::{self, WireError};

/// What all of TRON's contract messages begin with.
#[derive(Clone, PartialEq, Eq, Message)]
struct Owned {
    #[prost(bytes = "vec", tag = "1")]
    owner_address: Vec<u8>,
}

/// Selector of `transfer(address,uint256)`.
const TRANSFER_SELECTOR: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];
/// Selector and two words.
const TRANSFER_CALLDATA_LEN: usize = 68;
/// A tag in `raw_data.scripts` is this long; anything else there is somebody else's.
const TAG_LEN: usize = 16;

/// What a transaction's single contract entry asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A contract call.
    Trigger(TriggerSmartContract),
    /// A transfer of TRX.
    Transfer(TransferContract),
    /// One of TRON's other contract types, by its number.
    Other(i32),
    /// No contract entry, more than one, or one whose parameter is no such message.
    Unreadable,
}

/// A transfer of tokens or of TRX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The token's contract; none for TRX.
    pub contract: Option<Address>,
    /// The recipient.
    pub to: Address,
    /// Base units or sun, decimal.
    pub units: String,
}

/// A transaction a node has parsed. `raw_data` is the node's own serialization of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tx {
    /// What the txid is taken over.
    pub raw_data: Vec<u8>,
    /// SHA-256 of `raw_data`.
    pub txid: Txid,
    /// As sent.
    pub signatures: Vec<Vec<u8>>,
    /// `raw_data`, parsed.
    pub raw: TransactionRaw,
    /// The single contract entry, parsed.
    pub call: Call,
    /// Who pays; none where the contract entry does not say.
    pub owner: Option<Address>,
}

impl Tx {
    /// Parses `protocol.Transaction`. What the client wrote into `ret` is not looked at: a node drops it on broadcast
    /// (`Wallet.broadcastTransaction`, `resetResult`).
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let transaction = proto::Transaction::decode(bytes)?;
        Self::new(&transaction.raw_data, transaction.signature)
    }

    /// A transaction from its two parts.
    pub fn new(raw_data: &[u8], signatures: Vec<Vec<u8>>) -> Result<Self, WireError> {
        let raw_data = wire::canonical_raw_data(raw_data)?;
        let raw = TransactionRaw::decode(raw_data.as_slice())?;
        let call = call_of(&raw);
        let owner = owner_of(&raw);
        Ok(Self {
            txid: txid(&raw_data),
            raw_data,
            signatures,
            raw,
            call,
            owner,
        })
    }

    /// The operation's tag, where the transaction carries one.
    #[must_use]
    pub fn tag(&self) -> Option<[u8; TAG_LEN]> {
        self.raw.scripts.as_slice().try_into().ok()
    }

    /// Permission_id of the contract entry.
    #[must_use]
    pub fn permission_id(&self) -> i32 {
        self.raw
            .contract
            .first()
            .map_or(0, |contract| contract.permission_id)
    }

    /// What it pays if it succeeds: a token call of `transfer(address,uint256)`, or TRX. The 12 bytes before the recipient
    /// are not looked at, as Solidity does not, and bytes after the two words neither.
    #[must_use]
    pub fn payment(&self) -> Option<Payment> {
        match &self.call {
            Call::Trigger(trigger) => {
                let data = trigger.data.get(..TRANSFER_CALLDATA_LEN)?;
                if data[..4] != TRANSFER_SELECTOR {
                    return None;
                }
                let body: [u8; 20] = data[16..36].try_into().ok()?;
                Some(Payment {
                    contract: Some(Address::from_bytes(&trigger.contract_address).ok()?),
                    to: Address::from_body(body),
                    units: decimal::of_be_bytes(&data[36..68]),
                })
            }
            Call::Transfer(transfer) => Some(Payment {
                contract: None,
                to: Address::from_bytes(&transfer.to_address).ok()?,
                units: u64::try_from(transfer.amount).ok()?.to_string(),
            }),
            Call::Other(_) | Call::Unreadable => None,
        }
    }

    /// The whole transaction with these signatures and results: a leaf of a block's Merkle tree.
    #[must_use]
    pub fn encode(&self, signatures: &[Vec<u8>], ret: &[Vec<u8>]) -> Vec<u8> {
        proto::Transaction {
            raw_data: self.raw_data.clone(),
            signature: signatures.to_vec(),
            ret: ret.to_vec(),
        }
        .encode_to_vec()
    }
}

fn txid(raw_data: &[u8]) -> Txid {
    let digest: [u8; 32] = Sha256::digest(raw_data).into();
    Txid::from_bytes(&digest).expect("SHA-256 gives the 32 bytes that a txid has")
}

/// Who pays: the owner in the first contract entry, even where there are more (`TransactionCapsule.getOwner`).
fn owner_of(raw: &TransactionRaw) -> Option<Address> {
    let parameter = raw.contract.first()?.parameter.as_ref()?;
    let owned = Owned::decode(parameter.value.as_slice()).ok()?;
    Address::from_bytes(&owned.owner_address).ok()
}

fn call_of(raw: &TransactionRaw) -> Call {
    let [contract] = raw.contract.as_slice() else {
        return Call::Unreadable;
    };
    let Some(parameter) = &contract.parameter else {
        return Call::Unreadable;
    };
    let value = parameter.value.as_slice();
    match contract.r#type {
        TRIGGER_SMART_CONTRACT => {
            TriggerSmartContract::decode(value).map_or(Call::Unreadable, Call::Trigger)
        }
        TRANSFER_CONTRACT => {
            TransferContract::decode(value).map_or(Call::Unreadable, Call::Transfer)
        }
        other => Call::Other(other),
    }
}
