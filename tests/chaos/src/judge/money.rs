//! The money: every withdrawal is over, none is paid twice, and what left the wallets is what was confirmed.

use std::collections::{BTreeMap, BTreeSet};

use sluice_core::envelope;
use sluice_core::state::State;

use super::materials::{Materials, Row};
use super::{Findings, says_nothing};

/// Results after which a transaction may be built anew.
const TRANSIENT: [&str; 2] = ["OUT_OF_ENERGY", "OUT_OF_TIME"];
fn tag_of(row: &Row) -> String {
    hex::encode(envelope::tag(row.operation_id.into_bytes()))
}

/// I1: over with a cause, or parked with one.
pub fn liveness(materials: &Materials, findings: &mut Findings) {
    for row in &materials.rows {
        let results: Vec<&str> = materials
            .envelopes_of(row.operation_id)
            .iter()
            .filter_map(|envelope| materials.transactions.get(&envelope.txid))
            .filter_map(|report| report.result.as_deref())
            .collect();
        let fault = match row.state {
            State::Confirmed => None,
            State::Rejected => (!materials.cancelled.contains(&row.operation_id)
                && !refused_by_its_account(row))
            .then_some("rejected, and nobody cancelled it".to_owned()),
            State::Failed => {
                let explained = materials.cancelled.contains(&row.operation_id)
                    || results
                        .iter()
                        .any(|result| !TRANSIENT.contains(result) && !says_nothing(result))
                    || row.attempt >= materials.attempts;
                (!explained).then(|| {
                    format!(
                        "failed ({:?}) after {} envelopes, and the chain says {results:?}",
                        row.failure_reason, row.attempt
                    )
                })
            }
            _ if row.due => Some(format!("still {}, and due", row.state)),
            _ => {
                let explained = results.last().is_some_and(|result| says_nothing(result));
                (!explained)
                    .then(|| format!("parked as {}, and the chain says {results:?}", row.state))
            }
        };
        if let Some(fault) = fault {
            findings.of(row.operation_id, fault);
        }
    }
}

/// Whether its account had not enough, or was never opened. That no account gave what it had not, the ledger's own check shows.
fn refused_by_its_account(row: &Row) -> bool {
    let (Some(account), Some(reason)) = (&row.account, &row.failure_reason) else {
        return false;
    };
    let said = reason.strip_prefix(&format!("account {account} "));
    said.is_some_and(|said| {
        said == "has insufficient available funds"
            || (!account.starts_with("payer ") && said.starts_with("is not open"))
    })
}

/// I2: by the tags in the chain's own transactions.
pub fn at_most_once(materials: &Materials, findings: &mut Findings) {
    let mut known = BTreeSet::new();
    for row in &materials.rows {
        let tag = tag_of(row);
        let successes = materials
            .tags
            .get(&tag)
            .map_or(0, |report| report.successes);
        known.insert(tag);
        let wanted = u64::from(row.state == State::Confirmed && !row.internal);
        if successes > 1 {
            findings.of(row.operation_id, format!("paid {successes} times"));
        } else if successes != wanted {
            findings.of(
                row.operation_id,
                format!("{}, and paid {successes} times", row.state),
            );
        }
    }
    for (tag, report) in &materials.tags {
        if !known.contains(tag) {
            findings.whole(format!("tag {tag} is nobody's: {:?}", report.txids));
        }
    }
    let built: BTreeSet<_> = materials
        .envelopes
        .values()
        .flatten()
        .map(|envelope| envelope.txid)
        .collect();
    for txid in materials.transactions.keys() {
        if !built.contains(txid) {
            findings.whole(format!("{txid} was sent, and is on file nowhere"));
        }
    }
}

/// I3: for each wallet and token, and for each withdrawal by itself.
pub fn totals(materials: &Materials, findings: &mut Findings) {
    let mut confirmed: BTreeMap<(String, String), (u64, u128)> = BTreeMap::new();
    for row in materials
        .rows
        .iter()
        .filter(|row| row.state == State::Confirmed && !row.internal)
    {
        let (Some(wallet), Some(asset)) = (&row.wallet, materials.assets.get(&row.asset)) else {
            findings.of(row.operation_id, "confirmed without a wallet or an asset");
            continue;
        };
        let sum = confirmed
            .entry((wallet.clone(), asset.contract.clone()))
            .or_default();
        sum.0 += 1;
        sum.1 += units(&row.amount_units);
        its_payment_pays_it(materials, row, &asset.contract, findings);
    }
    let mut paid: BTreeMap<(String, String), (u64, u128)> = BTreeMap::new();
    for total in &materials.totals {
        let contract = total
            .contract
            .map_or_else(String::new, |contract| contract.to_string());
        if total.transfers != total.solid_transfers {
            findings.whole(format!("not all transfers are solid: {total:?}"));
        }
        paid.insert(
            (total.owner.to_string(), contract),
            (total.transfers, units(&total.units)),
        );
    }
    if paid != confirmed {
        findings.whole(format!(
            "the chain paid {paid:?}, confirmed are {confirmed:?}"
        ));
    }
}

fn units(text: &str) -> u128 {
    text.parse().expect("base units are a number")
}

/// The one successful transaction of a confirmed withdrawal says what the row says, and stands where the row says.
fn its_payment_pays_it(materials: &Materials, row: &Row, contract: &str, findings: &mut Findings) {
    let payment = materials
        .envelopes_of(row.operation_id)
        .iter()
        .filter_map(|envelope| materials.transactions.get(&envelope.txid))
        .find(|report| report.result.as_deref() == Some("SUCCESS"));
    let Some(payment) = payment else {
        findings.of(
            row.operation_id,
            "confirmed, and no envelope of it succeeded",
        );
        return;
    };
    let says = (
        payment.owner.map(|address| address.to_string()),
        payment.contract.map(|address| address.to_string()),
        payment.to.map(|address| address.to_string()),
        payment.units.clone(),
        payment.block,
    );
    let wanted = (
        row.wallet.clone(),
        Some(contract.to_owned()),
        Some(row.to_address.clone()),
        Some(row.amount_units.clone()),
        row.block_number,
    );
    if says != wanted {
        findings.of(
            row.operation_id,
            format!("the row says {wanted:?}, the chain {says:?}"),
        );
    }
}
