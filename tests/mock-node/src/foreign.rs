//! Other people's transactions, to fill blocks with: the shapes that a follower meets on TRON's main network and must
//! carry through unharmed, and none of which pays for us.

use std::sync::Arc;

use prost::Message;
use sluice_core::address::Address;
use sluice_core::proto::{
    AmountEntry, Any, Contract, MarketOrderDetail, TRANSFER_CONTRACT, TRIGGER_SMART_CONTRACT,
    TYPE_URL_PREFIX, TransactionRaw, TransactionResult, TransferContract, TriggerSmartContract,
};
use sluice_core::signature::SecretKey;

use crate::block::{Block, Included, sha256};
use crate::outcome::Outcome;
use crate::transaction::Tx;

/// The contract of USDT on TRON's main network, `TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t`.
const TOKEN: [u8; 21] = [
    0x41, 0xa6, 0x14, 0xf8, 0x03, 0xb6, 0xfd, 0x78, 0x09, 0x86, 0xa4, 0x2c, 0x78, 0xec, 0x9c, 0x7f,
    0x77, 0xe6, 0xde, 0xd1, 0x3c,
];

/// How many shapes there are.
const SHAPES: u64 = 8;

/// The transactions that nobody sent, of the block after `parent`. Equal seeds give equal blocks.
#[must_use]
pub fn transactions(seed: u64, parent: &Block, interval_ms: i64, count: usize) -> Vec<Included> {
    (0..count as u64)
        .map(|index| {
            let serial = (parent.number as u64)
                .wrapping_mul(count as u64)
                .wrapping_add(index);
            transaction(seed, parent, interval_ms, serial)
        })
        .collect()
}

fn transaction(seed: u64, parent: &Block, interval_ms: i64, serial: u64) -> Included {
    let random = sha256(
        &[
            b"foreign".as_slice(),
            &seed.to_be_bytes(),
            &serial.to_be_bytes(),
        ]
        .concat(),
    );
    // 64 people, so that keys are few.
    let key = key(seed, &format!("foreign {}", random[0] % 64));
    let owner = key.address();
    let amount = i64::from(u32::from_be_bytes([
        random[4], random[5], random[6], random[7],
    ])) + 1;
    let to = Address::from_body(random[8..28].try_into().expect("20 of 32 bytes"));

    let shape = serial % SHAPES;
    let (contract, fee_limit) = match shape {
        0 => (transfer(owner, to, amount), 0),
        // About half of the transfers on the main network carry the byte 41 in the padding of the recipient.
        1 => (trigger(owner, calldata(to, amount, 0x41)), 100_000_000),
        2 | 3 => (trigger(owner, calldata(to, amount, 0)), 30_000_000),
        4 => (trigger(owner, random[..4].to_vec()), 225_000_000),
        5 => (transfer(owner, to, amount), 0),
        // A type that this node prints no parameter of.
        _ => (other(owner), 0),
    };
    let mut raw = TransactionRaw {
        ref_block_bytes: parent.number.to_be_bytes()[6..].to_vec(),
        ref_block_hash: parent.id[8..16].to_vec(),
        expiration: parent.timestamp + interval_ms + 60_000,
        contract: vec![contract],
        timestamp: parent.timestamp + (serial % 1000) as i64,
        fee_limit,
        ..Default::default()
    };
    if shape == 5 {
        raw.data = "a memo, ünicode".as_bytes().to_vec();
    }
    let mut tx =
        Tx::new(&raw.encode_to_vec(), Vec::new()).expect("a message that was just encoded decodes");
    tx.signatures.push(key.sign(&tx.txid).to_vec());
    if shape == 3 {
        // Bytes after the 65th are ignored, and are part of the Merkle leaf.
        tx.signatures[0].extend_from_slice(&[0xab, 0xcd]);
    }
    if shape == 5 {
        tx.signatures
            .push(self::key(seed, "second signer").sign(&tx.txid).to_vec());
    }

    let (outcome, ret) = match shape {
        2 => (Outcome::Code(10), Outcome::Code(10).ret()),
        4 => (Outcome::Code(2), Outcome::Code(2).ret()),
        6 => (Outcome::SUCCESS, vec![full_result(&random).encode_to_vec()]),
        7 => (Outcome::Absent, Outcome::Absent.ret()),
        _ => (Outcome::SUCCESS, Outcome::SUCCESS.ret()),
    };
    let signatures = tx.signatures.clone();
    Included {
        tx: Arc::new(tx),
        signatures,
        ret,
        outcome,
        foreign: true,
    }
}

/// A key of the network's own, the same for the same seed and name.
#[must_use]
pub fn key(seed: u64, name: &str) -> SecretKey {
    let bytes = sha256(&[b"key".as_slice(), &seed.to_be_bytes(), name.as_bytes()].concat());
    SecretKey::from_bytes(&bytes).expect("all but one in 2^127 hashes are secp256k1 keys")
}

fn contract(r#type: i32, message: &str, value: Vec<u8>) -> Contract {
    Contract {
        r#type,
        parameter: Some(Any {
            type_url: format!("{TYPE_URL_PREFIX}{message}"),
            value,
        }),
        ..Default::default()
    }
}

fn transfer(owner: Address, to: Address, amount: i64) -> Contract {
    let message = TransferContract {
        owner_address: owner.as_bytes().to_vec(),
        to_address: to.as_bytes().to_vec(),
        amount,
    };
    contract(
        TRANSFER_CONTRACT,
        "TransferContract",
        message.encode_to_vec(),
    )
}

fn trigger(owner: Address, data: Vec<u8>) -> Contract {
    let message = TriggerSmartContract {
        owner_address: owner.as_bytes().to_vec(),
        contract_address: TOKEN.to_vec(),
        data,
        ..Default::default()
    };
    contract(
        TRIGGER_SMART_CONTRACT,
        "TriggerSmartContract",
        message.encode_to_vec(),
    )
}

/// WithdrawExpireUnfreezeContract: its message has the owner alone.
fn other(owner: Address) -> Contract {
    let message = TransferContract {
        owner_address: owner.as_bytes().to_vec(),
        ..Default::default()
    };
    contract(
        56,
        "WithdrawExpireUnfreezeContract",
        message.encode_to_vec(),
    )
}

fn calldata(to: Address, amount: i64, padding: u8) -> Vec<u8> {
    let mut data = vec![0xa9, 0x05, 0x9c, 0xbb];
    data.extend_from_slice(&[0; 11]);
    data.push(padding);
    data.extend_from_slice(to.body());
    data.extend_from_slice(&[0; 24]);
    data.extend_from_slice(&amount.to_be_bytes());
    data
}

/// A `Transaction.Result` with every field that JSON can show, so that whoever rebuilds a block from JSON must know all.
fn full_result(random: &[u8; 32]) -> TransactionResult {
    let number = i64::from(random[28]) + 1;
    TransactionResult {
        fee: number,
        ret: 1,
        contract_ret: 1,
        asset_issue_id: "1000001".to_owned(),
        withdraw_amount: number * 2,
        unfreeze_amount: number * 3,
        exchange_received_amount: number * 5,
        exchange_inject_another_amount: number * 7,
        exchange_withdraw_another_amount: number * 11,
        exchange_id: number * 13,
        shielded_transaction_fee: number * 17,
        order_id: random[..16].to_vec(),
        order_details: vec![
            MarketOrderDetail {
                maker_order_id: random[..4].to_vec(),
                taker_order_id: random[4..8].to_vec(),
                fill_sell_quantity: number,
                fill_buy_quantity: 0,
            },
            MarketOrderDetail::default(),
        ],
        withdraw_expire_amount: number * 19,
        cancel_unfreeze_v2_amount: vec![
            AmountEntry {
                key: Some("TRON_POWER".to_owned()),
                value: Some(0),
            },
            AmountEntry {
                key: Some("BANDWIDTH".to_owned()),
                value: Some(number * 23),
            },
        ],
    }
}
