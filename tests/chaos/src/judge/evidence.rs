//! The evidence: whatever retired an envelope is computed again against the network's own blocks. A death names its first and
//! last block; a failure on chain names the block that holds it.

use prost::Message;
use sha2::{Digest, Sha256};
use sluice_core::envelope::Txid;
use sluice_core::proto::TransactionRaw;
use sluice_core::state::State;
use sluice_mock_node::BlockRecord;
use uuid::Uuid;

use super::materials::{Envelope, Event, Materials};
use super::{Findings, in_the_networks_words, says_nothing};

/// I6.
pub fn holds(materials: &Materials, findings: &mut Findings) {
    followed_is_the_chain(materials, findings);
    for row in &materials.rows {
        let id = row.operation_id;
        let envelopes = materials.envelopes_of(id);
        for (envelope, attempt) in envelopes.iter().zip(1..) {
            if let Some(fault) = fault_of(materials, envelope, attempt) {
                findings.of(
                    id,
                    format!("envelope {attempt} ({}): {fault}", envelope.txid),
                );
            }
        }
        // Whoever is over, or built anew, has nothing that could still pay.
        let last = envelopes.len().checked_sub(1);
        for (index, envelope) in envelopes.iter().enumerate() {
            let must_be_spent =
                Some(index) != last || matches!(row.state, State::Failed | State::Rejected);
            if must_be_spent && !is_spent(envelope) {
                findings.of(
                    id,
                    format!(
                        "{} and envelope {} is {:?}",
                        row.state, envelope.txid, envelope.fate
                    ),
                );
            }
        }
        let events = materials.events.get(&id).map_or(&[][..], Vec::as_slice);
        told(materials, id, events, envelopes, findings);
    }
}

fn is_spent(envelope: &Envelope) -> bool {
    match (envelope.fate.as_deref(), envelope.receipt.as_deref()) {
        (Some("dead"), _) => true,
        (Some("included"), Some(receipt)) => {
            receipt != "SUCCESS" && !says_nothing(in_the_networks_words(receipt))
        }
        _ => false,
    }
}

/// What was followed is what the network made.
fn followed_is_the_chain(materials: &Materials, findings: &mut Findings) {
    for (number, id, timestamp_ms) in &materials.followed {
        let made = materials
            .block(*number)
            .map(|block| (block.id.as_slice(), block.timestamp_ms));
        if made != Some((id.as_slice(), *timestamp_ms)) {
            findings.whole(format!(
                "block {number} was followed as {}",
                hex::encode(id)
            ));
        }
    }
}

/// What is wrong with what is on file of an envelope.
fn fault_of(materials: &Materials, envelope: &Envelope, attempt: i32) -> Option<String> {
    if envelope.attempt != attempt {
        return Some(format!("is on file as attempt {}", envelope.attempt));
    }
    let digest: [u8; 32] = Sha256::digest(&envelope.raw_data).into();
    if digest != *envelope.txid.as_bytes() {
        return Some("its bytes have another id".to_owned());
    }
    let holder = holder_of(materials, &envelope.txid);
    match envelope.fate.as_deref() {
        None => holder.map(|(block, _)| format!("live, and block {} holds it", block.number)),
        Some("included") => {
            let said = (
                envelope.block_number,
                envelope.receipt.as_deref().map(in_the_networks_words),
            );
            let is = (
                holder.map(|(block, _)| block.number),
                holder.map(|(_, result)| result),
            );
            (said != is).then(|| format!("on file as included {said:?}, the chain says {is:?}"))
        }
        Some("dead") => {
            let (Some(first), Some(last)) = (envelope.first_block, envelope.last_block) else {
                return Some("dead, and names no blocks".to_owned());
            };
            if first != envelope.ref_block_number {
                return Some(format!(
                    "its coverage begins at {first}, its reference is {}",
                    envelope.ref_block_number
                ));
            }
            death_fault(materials, envelope, first, last)
        }
        Some(other) => Some(format!("has the fate {other:?}")),
    }
}

fn holder_of<'a>(materials: &'a Materials, txid: &Txid) -> Option<(&'a BlockRecord, &'a str)> {
    let block = materials.transactions.get(txid)?.block?;
    let block = materials.block(block)?;
    let (_, result) = block.transactions.iter().find(|(held, _)| held == txid)?;
    Some((block, result))
}

/// What is wrong with a death that is said to be proved by these blocks.
fn death_fault(
    materials: &Materials,
    envelope: &Envelope,
    first: i64,
    last: i64,
) -> Option<String> {
    let Ok(raw) = TransactionRaw::decode(envelope.raw_data.as_slice()) else {
        return Some("its bytes are no transaction".to_owned());
    };
    let mut before: Option<&BlockRecord> = None;
    for number in first..=last {
        let Some(block) = materials.block(number).filter(|block| block.solid) else {
            return Some(format!("dead by block {number}, which is not solid"));
        };
        if before.is_some_and(|before| before.id != block.parent) {
            return Some(format!(
                "block {number} does not follow from the one before"
            ));
        }
        if block
            .transactions
            .iter()
            .any(|(txid, _)| *txid == envelope.txid)
        {
            return Some(format!("dead, and block {number} holds it"));
        }
        let is_last = number == last;
        if is_last != (block.timestamp_ms >= raw.expiration) {
            return Some(format!(
                "dead by blocks {first} to {last}, and block {number} is of {}, its expiration {}",
                block.timestamp_ms, raw.expiration
            ));
        }
        before = Some(block);
    }
    holder_of(materials, &envelope.txid)
        .map(|(block, _)| format!("dead, and block {} holds it", block.number))
}

/// What the log tells with each rebuild and each failure of what was built.
fn told(
    materials: &Materials,
    id: Uuid,
    events: &[Event],
    envelopes: &[Envelope],
    findings: &mut Findings,
) {
    let mut retired = 0;
    let mut remade = 0;
    for event in events {
        let was_built = matches!(
            event.from,
            Some(State::Signing | State::Signed | State::Broadcasting | State::Broadcast)
        );
        // A rebuild is two entries in signing: the end of one envelope, and the making of the next.
        let ends = was_built && matches!(event.to, State::Signing | State::Failed);
        if !ends {
            continue;
        }
        // Cancelled when all of its envelopes were retired already: what it tells was told before.
        if event.detail["reason_code"] == "cancelled" && retired == envelopes.len() {
            continue;
        }
        let Some(fate) = event.detail["fate"].as_str() else {
            remade += usize::from(event.to == State::Signing);
            if event.to == State::Failed {
                findings.of(id, format!("entry {} fails it without evidence", event.seq));
            }
            continue;
        };
        let Some(envelope) = envelopes.get(retired) else {
            findings.of(
                id,
                format!("entry {} retires an envelope that is not there", event.seq),
            );
            return;
        };
        retired += 1;
        if let Some(fault) = telling_fault(materials, envelope, fate, event) {
            findings.of(id, format!("entry {}: {fault}", event.seq));
        }
    }
    // Each envelope after the first was made where one before it had ended.
    if remade + 1 != envelopes.len() && !envelopes.is_empty() {
        findings.of(
            id,
            format!(
                "{} envelopes, and the log tells of {remade} made anew",
                envelopes.len()
            ),
        );
    }
    if retired < remade {
        findings.of(id, format!("{remade} made anew, and {retired} retired"));
    }
}

fn telling_fault(
    materials: &Materials,
    envelope: &Envelope,
    fate: &str,
    event: &Event,
) -> Option<String> {
    let detail = &event.detail;
    if detail["txid"].as_str() != Some(&envelope.txid.to_string()) {
        return Some(format!(
            "is about {}, and {} ended",
            detail["txid"], envelope.txid
        ));
    }
    let id_of = |number: Option<i64>| {
        number
            .and_then(|number| materials.block(number))
            .map(|block| hex::encode(block.id))
    };
    let named = |number: &str, id: &str| {
        let wanted = id_of(detail[number].as_i64());
        wanted.is_some() && wanted.as_deref() == detail[id].as_str()
    };
    match fate {
        "dead" => {
            if !named("first_block", "first_block_id") || !named("last_block", "last_block_id") {
                return Some(format!("names blocks that are not: {detail}"));
            }
            let (first, last) = (
                detail["first_block"].as_i64()?,
                detail["last_block"].as_i64()?,
            );
            let margin = detail["margin_blocks"].as_i64().unwrap_or(0);
            let tip = detail["tip"].as_i64().unwrap_or(0);
            if tip < last + margin {
                return Some(format!(
                    "was settled at block {tip}, before {last} + {margin}"
                ));
            }
            death_fault(materials, envelope, first, last)
        }
        "included" => {
            if !named("block_number", "block_id") {
                return Some(format!("names a block that is not: {detail}"));
            }
            let holder = holder_of(materials, &envelope.txid);
            let is = holder.map(|(block, result)| (block.number, result));
            let receipt = detail["receipt"].as_str().map(in_the_networks_words);
            let said = detail["block_number"].as_i64().zip(receipt);
            (is != said).then(|| format!("says {said:?}, the chain {is:?}"))
        }
        other => Some(format!("tells of the fate {other:?}")),
    }
}
