//! One row for each id that a client ever used, with the meaning that was first acknowledged, and no other row.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Findings;
use super::materials::{Materials, Row};

/// I4.
pub fn one_row(materials: &Materials, findings: &mut Findings) {
    let mut rows: BTreeMap<Uuid, Vec<&Row>> = BTreeMap::new();
    for row in &materials.rows {
        rows.entry(row.operation_id).or_default().push(row);
    }
    for (id, acknowledged) in &materials.ledger.ids {
        let (Some(meaning), Some([row])) = (acknowledged, rows.get(id).map(Vec::as_slice)) else {
            let count = rows.get(id).map_or(0, Vec::len);
            findings.of(
                *id,
                format!("{count} rows; acknowledged was {acknowledged:?}"),
            );
            continue;
        };
        let stands = (&row.to_address, &row.amount, &row.asset, &row.account);
        let told = (
            &meaning.to_address,
            &meaning.amount,
            &meaning.asset,
            &meaning.account,
        );
        if stands != told {
            findings.of(
                *id,
                format!("acknowledged as {told:?}, stands as {stands:?}"),
            );
        }
        let decimals = materials.assets.get(&row.asset).map(|asset| asset.decimals);
        if decimals
            .and_then(|decimals| units_of(&row.amount, decimals))
            .as_deref()
            != Some(row.amount_units.as_str())
        {
            findings.of(
                *id,
                format!("{} is not {} base units", row.amount, row.amount_units),
            );
        }
    }
    for id in rows.keys() {
        if !materials.ledger.ids.contains_key(id) {
            findings.of(*id, "a row that no client asked for");
        }
    }
    for (id, what) in &materials.ledger.contradictions {
        findings.of(*id, what.clone());
    }
}

/// The base units of a decimal, by moving its point.
fn units_of(amount: &str, decimals: i32) -> Option<String> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let missing = usize::try_from(decimals)
        .ok()?
        .checked_sub(fraction.len())?;
    let digits = format!("{whole}{fraction}{}", "0".repeat(missing));
    Some(digits.trim_start_matches('0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::units_of;

    #[test]
    fn a_decimal_becomes_base_units_by_moving_its_point() {
        assert_eq!(units_of("12.5", 6).as_deref(), Some("12500000"));
        assert_eq!(units_of("0.000001", 6).as_deref(), Some("1"));
        assert_eq!(units_of("0.0000001", 6), None);
    }
}
