//! Every other text that a stranger may write: amounts, ids, keys, names of states, of receipts, of answers.

use proptest::prelude::*;
use sluice_core::address::Address;
use sluice_core::block::Receipt;
use sluice_core::broadcast::{BroadcastCode, LONGEST_CODE};
use sluice_core::envelope::Txid;
use sluice_core::request::canonical_json;
use sluice_core::signature::{SecretKey, SignerKind};
use sluice_core::state::State;
use sluice_core::units::{Units, check_amount_form, format_amount, parse_amount, shortest};
use sluice_fuzz::fuzz;
use sluice_fuzz::text::{address, any_text};

/// Digits, and what people put between them.
fn nearly_an_amount() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[0-9]{1,50}(\\.[0-9]{1,50})?",
        2 => "[0-9.]{0,12}[-+eE ,_]?[0-9]{0,3}",
        1 => any_text(),
    ]
}

/// Second reading of an amount's form: digits, then perhaps a point and digits.
fn is_formed(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        None => digits(text),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
    }
}

#[test]
fn an_amount_is_read_exactly_or_refused() {
    let given = (
        nearly_an_amount(),
        prop_oneof![5 => 0..40_u32, 1 => any::<u32>()],
    );
    fuzz("amounts", 2000, given, |(text, decimals)| {
        let formed = is_formed(&text);
        prop_assert_eq!(check_amount_form(&text).is_ok(), formed);
        prop_assert_eq!(shortest(&text).is_ok(), formed);
        prop_assert!(formed || format_amount(&text, decimals).is_err());
        let fraction = text
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        let parsed = parse_amount(&text, decimals);
        let fits = formed && decimals <= 255 && fraction <= decimals as usize;
        prop_assert_eq!(parsed.is_ok(), fits, "{:?}", parsed);
        if let Ok(units) = parsed {
            prop_assert!(units.len() <= text.len() + decimals as usize);
            let shown = format_amount(&units, decimals);
            prop_assert_eq!(&shown, &shortest(&text));
            prop_assert_eq!(
                parse_amount(&shown.expect("an amount"), decimals),
                Ok(units.clone())
            );
            prop_assert_eq!(units.parse::<Units>().is_ok(), units.len() <= 38);
        }
        Ok(())
    });
}

#[test]
fn no_text_brings_a_reader_down() {
    fuzz("texts", 2000, any_text(), |text| {
        if let Ok(txid) = text.parse::<Txid>() {
            prop_assert_eq!(txid.to_string(), text.to_ascii_lowercase());
        }
        if let Ok(units) = text.parse::<Units>() {
            prop_assert!(text.ends_with(&units.to_string()) || units.get() == 0);
        }
        if let Ok(state) = text.parse::<State>() {
            prop_assert_eq!(state.name(), &text);
        }
        if let Some(receipt) = Receipt::from_name(&text) {
            prop_assert_eq!(Receipt::from_name(&receipt.name()), Some(receipt));
        }
        if let Ok(kind) = text.parse::<SignerKind>() {
            prop_assert_eq!(kind.name(), &text);
        }
        let code = BroadcastCode::from_name(&text);
        prop_assert!(code.name().chars().count() <= LONGEST_CODE);
        prop_assert!(text.starts_with(&*code.name()));
        let _ = SecretKey::from_hex(&text).map(|key| key.address());
        Ok(())
    });
}

#[test]
fn what_is_asked_for_has_one_canonical_json() {
    let given = (
        address(),
        "[0-9]{1,38}",
        any_text(),
        proptest::option::of(any_text()),
    );
    fuzz(
        "requests",
        1000,
        given,
        |(to, units, asset, account): (Address, _, String, Option<String>)| {
            let json = canonical_json(&to, &units, &asset, account.as_deref());
            prop_assert!(json.is_ascii() && !json.contains(char::is_control));
            let read: serde_json::Value = serde_json::from_str(&json.replace(
                &format!("\"amount_units\":{units}"),
                &format!("\"amount_units\":\"{units}\""),
            ))
            .expect("JSON");
            prop_assert_eq!(&read["asset"], &asset);
            prop_assert_eq!(
                read.get("account").and_then(|account| account.as_str()),
                account.as_deref()
            );
            prop_assert_eq!(&read["to_address"], &to.to_string());
            Ok(())
        },
    );
}
