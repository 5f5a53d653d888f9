//! `TransactionInfo`: the receipt of a transaction in a block, as `TransactionUtil.buildTransactionInfoInstance` makes it
//! and the HTTP API prints it. Fees are plausible figures; nobody pays them.

use serde_json::{Value, json};

use crate::block::{Block, Included};
use crate::json::{self, Fields};
use crate::outcome::{self, Outcome};
use crate::transaction::{Call, Tx};

/// Of a transfer to an account that holds the token already, at the main network's present price.
const ENERGY_USED: i64 = 64_285;
const SUN_PER_ENERGY: i64 = 100;
/// keccak256 of `Transfer(address,address,uint256)`.
const TRANSFER_TOPIC: &str = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// Selector of `Error(string)` and the reason `insufficient balance`, as a contract reverts.
const REVERT_REASON: &str = "08c379a000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000014696e73756666696369656e742062616c616e6365000000000000000000000000";

/// The receipt of the transaction at this place of the block.
#[must_use]
pub fn transaction_info(block: &Block, included: &Included, visible: bool) -> Value {
    let tx = &included.tx;
    let code = match included.outcome {
        Outcome::Code(code) => code,
        Outcome::Absent => 0,
    };
    let failed = !matches!(included.outcome, Outcome::Absent | Outcome::Code(0 | 1));
    let is_call = matches!(tx.call, Call::Trigger(_));
    let fee = if is_call {
        energy_fee(tx, included.outcome)
    } else {
        0
    };

    let mut receipt = Fields::default().integer("net_usage", included.bytes().len() as i64 + 60);
    if is_call {
        receipt = receipt
            .integer("energy_fee", fee)
            .integer("energy_usage_total", fee / SUN_PER_ENERGY);
        if code != 0 {
            receipt = receipt.text("result", &outcome::json_name(code));
        }
    }
    let mut info = Fields::default()
        .always("id", tx.txid.to_string())
        .integer("fee", fee)
        .integer("blockNumber", block.number)
        .integer("blockTimeStamp", block.timestamp)
        .always(
            "contractResult",
            json!([contract_result(tx, included.outcome)]),
        )
        .always("receipt", receipt.build());
    if let Call::Trigger(trigger) = &tx.call {
        info = info.address("contract_address", &trigger.contract_address, visible);
    }
    if failed {
        info = info
            .text("result", "FAILED")
            .text("resMessage", &json::text(message(code), visible));
    } else if let Some(log) = transfer_log(tx, visible) {
        info = info.list("log", vec![log]);
    }
    info.build()
}

/// A revert burns what it used; running out, or out of time, burns all that the fee limit allows (`ReceiptCapsule`).
fn energy_fee(tx: &Tx, outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Code(0..=2) | Outcome::Absent => ENERGY_USED * SUN_PER_ENERGY,
        Outcome::Code(_) => tx.raw.fee_limit,
    }
}

/// What the call returned. USDT's `transfer` lacks its return statement: 32 zero bytes are a success.
fn contract_result(tx: &Tx, outcome: Outcome) -> String {
    match (&tx.call, outcome) {
        (Call::Trigger(_), Outcome::SUCCESS) => "00".repeat(32),
        (Call::Trigger(_), Outcome::Code(2)) => REVERT_REASON.to_owned(),
        _ => String::new(),
    }
}

fn message(code: i32) -> &'static str {
    match code {
        2 => "REVERT opcode executed",
        10 => "Not enough energy for 'SSTORE' operation executing",
        11 => "CPU timeout for 'SLOAD' operation executing",
        _ => "the transaction failed",
    }
}

/// The token's event. Its address has 20 bytes; java-tron puts the 41 back with `visible` alone
/// (`Util.convertLogAddressToTronAddress`).
fn transfer_log(tx: &Tx, visible: bool) -> Option<Value> {
    let (Call::Trigger(trigger), Some(payment), Some(owner)) = (&tx.call, tx.payment(), tx.owner)
    else {
        return None;
    };
    let contract = payment.contract?;
    let address = if visible {
        contract.to_string()
    } else {
        hex::encode(contract.body())
    };
    let topic = |body: &[u8]| format!("{}{}", "00".repeat(12), hex::encode(body));
    Some(json!({
        "address": address,
        "topics": [TRANSFER_TOPIC, topic(owner.body()), topic(payment.to.body())],
        "data": hex::encode(&trigger.data[36..68]),
    }))
}
