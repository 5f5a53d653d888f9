//! What a withdrawal asks for, as one hash: two requests with the same meaning have the same one, however their amounts
//! and addresses were typed.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::address::Address;

/// ASCII JSON of the request: keys sorted, no spaces, the address in base58, the amount as a plain integer, `account` only
/// when given; all else than printable ASCII is escaped as Python's `json.dumps` does.
///
/// `units` is written as it is: digits without zeros in front, as [`crate::units::parse_amount`] returns and
/// [`crate::units::Units`] shows them.
#[must_use]
pub fn canonical_json(to: &Address, units: &str, asset: &str, account: Option<&str>) -> String {
    let mut json = String::from("{");
    if let Some(account) = account {
        json.push_str("\"account\":");
        push_string(&mut json, account);
        json.push(',');
    }
    json.push_str("\"amount_units\":");
    json.push_str(units);
    json.push_str(",\"asset\":");
    push_string(&mut json, asset);
    json.push_str(",\"to_address\":");
    push_string(&mut json, &to.to_string());
    json.push('}');
    json
}

/// SHA-256 of [`canonical_json`].
#[must_use]
pub fn request_hash(to: &Address, units: &str, asset: &str, account: Option<&str>) -> [u8; 32] {
    Sha256::digest(canonical_json(to, units, asset, account)).into()
}

/// Python's `py_encode_basestring_ascii` (`json/encoder.py`): short escapes where JSON has them, lower-case `\u` escapes
/// for all else outside space to tilde, a surrogate pair beyond the basic plane.
fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            ' '..='~' => json.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    write!(json, "\\u{unit:04x}").expect("writing to a String cannot fail");
                }
            }
        }
    }
    json.push('"');
}
