//! The request's hash.

use crate::file::{address, array, vectors};
use sluice_core::request::{canonical_json, request_hash};
use sluice_core::units::parse_amount;

const TO: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";

#[test]
fn a_request_has_the_json_and_the_hash_of_the_vectors() {
    for request in &vectors().request_hashes {
        let to = address(&request.to_address);
        let (units, asset) = (&request.amount_units, &request.asset);
        let json = canonical_json(&to, units, asset, None);
        assert_eq!(json, request.canonical_json, "{}", request.id);
        let hash = request_hash(&to, units, asset, None);
        assert_eq!(hash, array::<32>(&request.sha256), "{}", request.id);
    }
}

#[test]
fn an_amount_typed_in_two_ways_is_one_request() {
    let to = address(TO);
    let hash = |text| {
        let units = parse_amount(text, 6).expect("an amount");
        request_hash(&to, &units, "USDT-TRC20", None)
    };
    assert_eq!(hash("58014.5"), hash("0058014.500000"));
    assert_ne!(hash("58014.5"), hash("58014.500001"));
}

/// Expected values are Python's: `json.dumps(d, sort_keys=True, separators=(',', ':'))` and `hashlib.sha256`.
#[test]
fn an_account_is_part_of_the_meaning_and_comes_first() {
    let to = address(TO);
    let json = canonical_json(&to, "1500000", "USDT-TRC20", Some("user-7"));
    assert_eq!(
        json,
        r#"{"account":"user-7","amount_units":1500000,"asset":"USDT-TRC20","to_address":"TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC"}"#
    );
    for (account, hash) in [
        (
            "user-7",
            "ff1181068314cd34da2a8a0e4d379595acd3bdcea35d7744afeb7e3560b8414c",
        ),
        (
            "",
            "ccf6edc88072831ac217a367dd5ab589fbdb6752e3016580a39fcc77123f14cd",
        ),
    ] {
        let ours = request_hash(&to, "1500000", "USDT-TRC20", Some(account));
        assert_eq!(ours, array::<32>(hash), "{account:?}");
    }
}

#[test]
fn every_control_character_is_escaped_as_python_does() {
    let asset: String = ('\0'..=' ')
        .take(32)
        .chain(['\u{7f}', '\u{80}', '\u{2028}', '\u{ffff}'])
        .collect();
    let hash = request_hash(&address(TO), "1", &asset, Some("\u{10ffff}"));
    let expected = "43b1996c3e9690ef106827df7871e9bd54aaba639b13b730823cf5fbdd3ce2e1";
    assert_eq!(hash, array::<32>(expected));
}
