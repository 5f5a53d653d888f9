//! The ledger, added up once more from what was deposited and what is confirmed: every account has what is left, none gave what it had
//! not, and what is held is held for what is under way.

use std::collections::BTreeMap;

use sluice_core::state::State;

use super::Findings;
use super::materials::{Materials, Row};
use crate::accounts::{PAYERS, funds, payer};

/// I7.
pub fn adds_up(materials: &Materials, findings: &mut Findings) {
    let mut expected: BTreeMap<(String, String), i128> = BTreeMap::new();
    for (name, asset) in &materials.assets {
        let decimals = u32::try_from(asset.decimals).expect("an asset has few decimals");
        for n in 0..PAYERS {
            let had = i128::from(funds(materials.ledger.ids.len())) * 10_i128.pow(decimals);
            expected.insert((payer(n), name.clone()), had);
        }
    }
    for row in materials
        .rows
        .iter()
        .filter(|row| row.state == State::Confirmed)
    {
        let units: i128 = row.amount_units.parse().expect("base units are a number");
        for (account, change) in [(&row.account, -units), (&row.credit_account, units)] {
            if let Some(account) = account {
                *expected
                    .entry((account.clone(), row.asset.clone()))
                    .or_default() += change;
            }
        }
    }
    for (account, units) in &expected {
        let has = materials.balances.get(account).map(String::as_str);
        if *units < 0 || has != Some(units.to_string().as_str()) {
            findings.whole(format!("{account:?} has {has:?}, and should have {units}"));
        }
    }
    for (account, has) in &materials.balances {
        if !expected.contains_key(account) && has != "0" {
            findings.whole(format!("{account:?} has {has}, and nobody credited it"));
        }
    }
    holds(materials, findings);
}

fn holds(materials: &Materials, findings: &mut Findings) {
    let rows: BTreeMap<_, &Row> = materials
        .rows
        .iter()
        .map(|row| (row.operation_id, row))
        .collect();
    for hold in &materials.holds {
        let Some(row) = rows.get(&hold.operation_id) else {
            findings.of(hold.operation_id, "funds are held for what is not there");
            continue;
        };
        let wanted = match row.state {
            State::Confirmed => Some("captured"),
            State::Failed | State::Rejected => Some("released"),
            _ => None,
        };
        let is = (hold.ended.as_deref(), Some(&hold.account), &hold.units);
        if is != (wanted, row.account.as_ref(), &row.amount_units) {
            findings.of(
                hold.operation_id,
                format!("it is {}, and its hold is {is:?}", row.state),
            );
        }
    }
    for row in materials
        .rows
        .iter()
        .filter(|row| row.state == State::Confirmed && row.account.is_some())
    {
        if !materials
            .holds
            .iter()
            .any(|hold| hold.operation_id == row.operation_id)
        {
            findings.of(row.operation_id, "confirmed, and its funds were never held");
        }
    }
}
