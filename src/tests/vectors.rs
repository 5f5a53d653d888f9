//! The public test vectors through the SQL functions: what passes here is what an application or an auditor gets who asks the
//! database. The crate of the pure part tests the same sections against its own functions; here it is the way in and out of
//! SQL that is under test, and that the numbers of entries are those that were published.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::Value;
use std::sync::OnceLock;

fn vectors() -> &'static Value {
    static VECTORS: OnceLock<Value> = OnceLock::new();
    VECTORS.get_or_init(|| {
        serde_json::from_str(include_str!("../../tests/vectors/public.json"))
            .expect("the vectors are JSON")
    })
}

/// A section of the vectors, with as many entries as were published.
pub fn section(path: &str, entries: usize) -> &'static [Value] {
    let section = vectors().pointer(path).and_then(Value::as_array);
    let section = section.expect("the section is an array");
    assert_eq!(section.len(), entries, "{path}");
    section
}

/// A text of an entry.
pub fn text<'a>(entry: &'a Value, path: &str) -> &'a str {
    entry
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{path} is a string in {entry}"))
}

/// An integer of an entry.
pub fn integer(entry: &Value, path: &str) -> i64 {
    entry
        .pointer(path)
        .and_then(Value::as_i64)
        .unwrap_or_else(|| panic!("{path} is an integer in {entry}"))
}

fn from_hex(text: &str) -> Vec<u8> {
    hex::decode(text).expect("the vectors' bytes are hex")
}

/// Hex of the vectors as a bytea literal.
fn bytea(text: &str) -> String {
    format!("'\\x{text}'::bytea")
}

/// What an expression that returns bytea gives, in hex.
fn in_hex(expression: &str) -> String {
    one(&format!("encode({expression}, 'hex')")).unwrap_or_default()
}

/// The call of sluice.raw_data for an envelope of the vectors, with a tag and a permission where they are given.
fn raw_data(envelope: &Value, operation_id: Option<&str>, permission_id: i64) -> String {
    let inputs = &envelope["inputs"];
    format!(
        "sluice.raw_data({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {permission_id})",
        quoted(text(inputs, "/owner")),
        quoted(text(inputs, "/contract")),
        quoted(text(inputs, "/to")),
        text(inputs, "/amount_units"),
        integer(inputs, "/ref_block_num"),
        bytea(text(inputs, "/ref_block_id")),
        integer(inputs, "/expiration_ms"),
        integer(inputs, "/timestamp_ms"),
        integer(inputs, "/fee_limit_sun"),
        operation_id.map_or("null".to_owned(), |id| format!("{}::uuid", quoted(id))),
    )
}

/// What sluice.decode_raw_data says of bytes in hex.
fn decoded(raw_data: &str) -> Value {
    let shown = one(&format!("sluice.decode_raw_data({})", bytea(raw_data)));
    serde_json::from_str(&shown.unwrap_or_default()).expect("jsonb is JSON")
}

/// A block's bytes over whole transactions, under a header's bytes.
fn block_under(header: &[u8], transactions: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = transactions
        .iter()
        .flat_map(|transaction| wire::bytes(1, transaction))
        .collect();
    let signed = [wire::bytes(1, header), wire::bytes(2, &[7; 65])].concat();
    bytes.extend(wire::bytes(2, &signed));
    bytes
}

fn decode_block(bytes: &[u8]) -> Value {
    let shown = one(&format!("sluice.decode_block({})", literal(bytes)));
    serde_json::from_str(&shown.unwrap_or_default()).expect("jsonb is JSON")
}

fn transactions_of(merkle: &Value) -> Vec<Vec<u8>> {
    let list = merkle["transactions"].as_array().expect("a list");
    list.iter()
        .map(|transaction| from_hex(transaction.as_str().expect("hex")))
        .collect()
}

/// What decode_block is to show of these transactions: the vectors' results hold nothing but contractRet.
fn expected_transactions(merkle: &Value) -> Value {
    let txids = merkle["txids"].as_array().expect("a list");
    let shown = txids.iter().zip(transactions_of(merkle));
    shown
        .map(|(txid, bytes)| {
            let result = match (merkle["transactions_carry_ret"].as_bool(), &bytes[..]) {
                (Some(false), _) => "ABSENT",
                (_, [.., 0x2a, 2, 0x18, 1]) => "SUCCESS",
                (_, [.., 0x2a, 2, 0x18, 2]) => "REVERT",
                (_, [.., 0x2a, 2, 0x18, 10]) => "OUT_OF_ENERGY",
                (_, other) => panic!("no result that this test knows ends {other:02x?}"),
            };
            serde_json::json!({ "txid": txid, "result": result })
        })
        .collect()
}

/// The order of secp256k1's group less this number: what makes a low s high.
fn negated(s: &[u8]) -> Vec<u8> {
    let order = from_hex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    let mut borrow = 0;
    let mut difference: Vec<u8> = order
        .iter()
        .zip(s)
        .rev()
        .map(|(a, b)| {
            let digit = i16::from(*a) - i16::from(*b) - borrow;
            borrow = i16::from(digit < 0);
            digit.rem_euclid(256) as u8
        })
        .collect();
    difference.reverse();
    difference
}

/// Why sluice.signature_fault refuses these 65 bytes, or None where it takes them.
fn signature_fault(vector: &Value, signer: &str, signature: &[u8]) -> Option<String> {
    one(&format!(
        "sluice.signature_fault('secp256k1', {}, {}, {})",
        quoted(signer),
        bytea(text(vector, "/txid")),
        literal(signature)
    ))
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn every_key_of_the_vectors_has_its_address_in_text_and_bytes() {
        for key in section("/addresses/keys", 12) {
            let (id, base58, hex21) =
                (text(key, "/id"), text(key, "/address"), text(key, "/hex21"));
            assert_eq!(
                in_hex(&format!("sluice.address_bytes({})", quoted(base58))),
                hex21,
                "{id}"
            );
            assert_eq!(
                in_hex(&format!("sluice.address_bytes({})", quoted(hex21))),
                hex21,
                "{id}"
            );
            let shown = one(&format!("sluice.address_text({})", bytea(hex21)));
            assert_eq!(shown.as_deref(), Some(base58), "{id}");
            let refused = sqlstate(&format!(
                "select sluice.address_text({})",
                bytea(text(key, "/evm20"))
            ));
            assert_eq!(refused, "SL002", "{id}: 20 bytes");
        }
    }

    #[pg_test]
    fn sql_takes_a_text_as_an_address_in_the_forms_of_the_readme_and_in_no_other() {
        let mut accepted = 0;
        for string in section("/addresses/strings", 55) {
            let (given, reason) = (text(string, "/text"), text(string, "/reason"));
            let digits = given.strip_prefix("0x").unwrap_or(given);
            let evm_form = digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let padded = ["leading space", "trailing space", "trailing newline"].contains(&reason);
            let ours = match text(string, "/kind") {
                "valid" => true,
                "valid_other_representation" => !evm_form,
                "ambiguous" => false,
                "invalid" => padded,
                other => panic!("a kind that this test does not know: {other}"),
            };
            let why = format!("{} ({reason})", text(string, "/id"));
            let valid = one(&format!("sluice.address_is_valid({})", quoted(given)));
            assert_eq!(
                valid.as_deref(),
                Some(if ours { "true" } else { "false" }),
                "{why}"
            );
            let bytes = format!("sluice.address_bytes({})", quoted(given));
            if ours {
                accepted += 1;
                let denoted = string["denotes"].as_str();
                let denoted = denoted.unwrap_or("TBuEjd8JnPL7azKYVGuVrCV3aRQLHAdfEi");
                let shown = one(&format!("sluice.address_text({bytes})"));
                assert_eq!(shown.as_deref(), Some(denoted), "{why}");
                continue;
            }
            let (state, message) = refused(&format!("select {bytes}"));
            assert_eq!(state, "SL002", "{why}: {message}");
            assert!(message.starts_with("address: "), "{why}: {message}");
            assert_eq!(message.contains("EVM"), evm_form, "{why}: {message}");
        }
        assert_eq!(
            accepted, 7,
            "the address itself, three hex forms, three padded"
        );
    }

    #[pg_test]
    fn every_envelope_of_the_vectors_has_its_exact_bytes_and_txid() {
        let mut built = [0; 3];
        for envelope in section("/envelopes", 24) {
            let forms = [
                (0, Some(&envelope["outputs"]), None),
                (
                    1,
                    envelope.pointer("/with_tag/outputs"),
                    envelope.get("with_tag"),
                ),
                (
                    2,
                    envelope.pointer("/with_tag_and_permission/outputs"),
                    envelope.get("with_tag_and_permission"),
                ),
            ];
            for (form, outputs, tagged) in forms {
                let Some(outputs) = outputs else { continue };
                let operation_id = tagged.map(|tagged| text(tagged, "/uuid"));
                let permission = tagged.and_then(|tagged| tagged["permission_id"].as_i64());
                let call = raw_data(envelope, operation_id, permission.unwrap_or_default());
                let why = format!("{} form {form}", text(envelope, "/id"));
                assert_eq!(in_hex(&call), text(outputs, "/raw_data"), "{why}");
                assert_eq!(
                    in_hex(&format!("sluice.txid({call})")),
                    text(outputs, "/txid"),
                    "{why}"
                );
                if let Some(tagged) = tagged {
                    let tag = format!("sluice.tag('{}')", text(tagged, "/uuid"));
                    assert_eq!(in_hex(&tag), text(tagged, "/tag"), "{why}");
                }
                built[form] += 1;
            }
        }
        assert_eq!(built, [24, 24, 6]);
    }

    #[pg_test]
    fn what_an_envelope_says_is_read_back_from_its_bytes() {
        let mut read = 0;
        for envelope in section("/envelopes", 24) {
            let inputs = &envelope["inputs"];
            let forms = [
                Some(envelope),
                envelope.get("with_tag"),
                envelope.get("with_tag_and_permission"),
            ];
            for form in forms.into_iter().flatten() {
                let shown = decoded(text(form, "/outputs/raw_data"));
                let why = format!("{}: {shown}", text(form, "/id"));
                for (key, field) in [
                    ("owner", "owner"),
                    ("contract", "contract"),
                    ("to", "to"),
                    ("amount_units", "amount_units"),
                    ("expiration_ms", "expiration_ms"),
                    ("timestamp_ms", "timestamp_ms"),
                    ("fee_limit_sun", "fee_limit_sun"),
                ] {
                    assert_eq!(shown[key], inputs[field], "{key} of {why}");
                }
                for (key, field) in [
                    ("ref_block_bytes", "ref_block_bytes"),
                    ("ref_block_hash", "ref_block_hash"),
                    ("data", "calldata"),
                ] {
                    assert_eq!(shown[key], envelope["outputs"][field], "{key} of {why}");
                }
                assert_eq!(shown["tag"], form["tag"], "tag of {why}");
                assert_eq!(
                    shown["permission_id"].as_i64(),
                    Some(form["permission_id"].as_i64().unwrap_or_default()),
                    "permission_id of {why}"
                );
                assert_eq!(shown["canonical"], true, "{why}");
                assert_eq!(shown["memo"], Value::Null, "{why}");
                read += 1;
            }
        }
        assert_eq!(read, 54);
    }

    #[pg_test]
    fn raw_data_and_signature_make_the_transaction_that_nodes_take() {
        let envelopes = section("/envelopes", 24);
        for vector in section("/signatures", 8) {
            let id = text(vector, "/envelope_id");
            let signed = envelopes
                .iter()
                .flat_map(|envelope| [envelope, &envelope["with_tag"]])
                .find(|form| form["id"] == id)
                .expect("a signature signs an envelope of the vectors");
            let call = format!(
                "sluice.signed_transaction({}, {})",
                bytea(text(signed, "/outputs/raw_data")),
                bytea(text(vector, "/signature"))
            );
            assert_eq!(in_hex(&call), text(vector, "/signed_tx"), "{id}");
            assert_eq!(signed["outputs"]["txid"], vector["txid"], "{id}");
        }
    }

    #[pg_test]
    fn a_wallets_signature_is_known_under_every_last_byte_and_either_s_and_no_other_is() {
        for vector in section("/signatures", 8) {
            let (id, signer) = (text(vector, "/id"), text(vector, "/signer"));
            let good = from_hex(text(vector, "/signature"));
            let recovery = integer(vector, "/recovery_id") as u8;
            let with = |s: &[u8], v: u8| [&good[..32], s, &[v]].concat();
            assert_eq!(signature_fault(vector, signer, &good), None, "{id}");
            let high = negated(&good[32..64]);
            assert!(high[..] > good[32..64], "{id}: the vectors' s are low");
            for base in [0, 4, 27, 31] {
                let same = with(&good[32..64], base + recovery);
                assert_eq!(signature_fault(vector, signer, &same), None, "{id} {base}");
                let negative = with(&high, base + (recovery ^ 1));
                assert_eq!(
                    signature_fault(vector, signer, &negative),
                    None,
                    "{id} {base}"
                );
                // The other half names another key.
                let flipped = with(&good[32..64], base + (recovery ^ 1));
                assert!(
                    signature_fault(vector, signer, &flipped).is_some(),
                    "{id} {base}"
                );
            }
            for v in [8, 26, 35, 255] {
                let fault = signature_fault(vector, signer, &with(&good[32..64], v));
                let fault = fault.expect("java-tron takes no such last byte");
                assert!(fault.contains(&v.to_string()), "{id}: {fault}");
            }
            let stranger = "TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ";
            let fault = signature_fault(vector, stranger, &good).expect("it is another's");
            assert!(
                fault.contains(signer) && fault.contains(stranger),
                "{id}: {fault}"
            );
            for length in [0, 64, 66] {
                let wrong = good
                    .iter()
                    .copied()
                    .chain([0])
                    .take(length)
                    .collect::<Vec<_>>();
                let fault = signature_fault(vector, signer, &wrong).expect("not 65 bytes");
                assert!(
                    fault.contains(&format!("these are {length}")),
                    "{id}: {fault}"
                );
            }
        }
    }

    #[pg_test]
    fn every_amount_of_the_vectors_is_accepted_or_refused_and_exact() {
        let mut accepted = 0;
        for amount in section("/amounts", 101) {
            let (given, decimals) = (text(amount, "/text"), integer(amount, "/decimals"));
            let why = format!("{} ({})", text(amount, "/id"), text(amount, "/why"));
            let call = format!("sluice.parse_amount({}, {decimals})", quoted(given));
            if amount["accepted"] == false {
                let (state, message) = refused(&format!("select {call}"));
                assert_eq!(state, "SL003", "{why}: {message}");
                assert!(message.starts_with("amount: "), "{why}: {message}");
                continue;
            }
            accepted += 1;
            let units = one(&call).unwrap_or_default();
            assert_eq!(units, text(amount, "/units"), "{why}");
            let shown = one(&format!("sluice.format_amount({units}, {decimals})"));
            let shown = shown.unwrap_or_default();
            assert!(
                shown.len() <= given.len(),
                "{why}: {shown} is the shortest form"
            );
            assert!(
                !shown.contains('.') || !shown.ends_with('0'),
                "{why}: {shown}"
            );
            let again = one(&format!("sluice.parse_amount('{shown}', {decimals})"));
            assert_eq!(again.as_deref(), Some(text(amount, "/units")), "{why}");
        }
        assert_eq!(accepted, 31);
    }

    #[pg_test]
    fn an_amount_of_sixty_digits_and_more_is_read_and_shown_exactly() {
        for digits in [60, 1_000, 100_000] {
            let whole = "7".repeat(digits);
            let units = one(&format!("sluice.parse_amount('{whole}.5', 6)"));
            assert_eq!(units, Some(format!("{whole}500000")), "{digits}");
            let shown = one(&format!("sluice.format_amount({whole}500000, 6)"));
            assert_eq!(shown, Some(format!("{whole}.5")), "{digits}");
        }
        // Beyond what numeric holds there is no value to return.
        let (state, message) = refused("select sluice.parse_amount(repeat('7', 200000), 6)");
        assert_eq!(state, "SL003", "{message}");
        assert!(message.starts_with("amount: "), "{message}");
    }

    #[pg_test]
    fn every_request_of_the_vectors_has_its_hash() {
        let mut typed = 0;
        for request in section("/request_hashes", 12) {
            let hash = |units: &str| {
                in_hex(&format!(
                    "sluice.request_hash({}, {units}, {})",
                    quoted(text(request, "/to_address")),
                    quoted(text(request, "/asset"))
                ))
            };
            let expected = text(request, "/sha256");
            assert_eq!(hash(text(request, "/amount_units")), expected, "{request}");
            let by_value = format!("{}.000", text(request, "/amount_units"));
            assert_eq!(hash(&by_value), expected, "{request}");
            if let Some(amount) = request["typed_amount"]["text"].as_str() {
                assert_eq!(
                    hash(&format!("sluice.parse_amount('{amount}', 6)")),
                    expected
                );
                typed += 1;
            }
        }
        assert_eq!(typed, 2);
    }

    /// Expected values are Python's: `json.dumps(d, sort_keys=True, separators=(',', ':'))` and `hashlib.sha256`.
    #[pg_test]
    fn an_account_is_part_of_a_requests_hash_and_no_account_is_none() {
        let hash = |account: &str| {
            in_hex(&format!(
                "sluice.request_hash('TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC', 1500000, 'USDT-TRC20'{account})"
            ))
        };
        assert_eq!(
            hash(", 'user-7'"),
            "ff1181068314cd34da2a8a0e4d379595acd3bdcea35d7744afeb7e3560b8414c"
        );
        assert_eq!(
            hash(", ''"),
            "ccf6edc88072831ac217a367dd5ab589fbdb6752e3016580a39fcc77123f14cd"
        );
        assert_eq!(
            hash(", 'Zoë 😀'"),
            "422ee0b640e8876adbf2684d01f8b7af81bf1c0a99e0feb5042aafc957c4a634"
        );
        assert_eq!(hash(", null"), hash(""));
    }

    #[pg_test]
    fn a_blocks_root_is_that_of_its_whole_transactions_and_no_other() {
        let mut wrong = 0;
        for merkle in section("/merkle", 6) {
            let id = text(merkle, "/id");
            let transactions = transactions_of(merkle);
            assert_eq!(transactions.len() as i64, integer(merkle, "/n"), "{id}");
            let header = |root: &str| {
                [
                    wire::number(1, START_MS),
                    wire::bytes(2, &from_hex(root)),
                    wire::bytes(3, &[1; 32]),
                    wire::number(7, FIRST),
                ]
                .concat()
            };
            let shown = |root: &str| decode_block(&block_under(&header(root), &transactions));
            let good = shown(text(merkle, "/root"));
            assert_eq!(good["root_holds"], true, "{id}: {good}");
            assert_eq!(good["root"], merkle["root"], "{id}");
            assert_eq!(good["transactions"], expected_transactions(merkle), "{id}");
            for (mistake, root) in merkle["wrong_roots"].as_object().expect("an object") {
                let bad = shown(root.as_str().expect("hex"));
                assert_eq!(bad["root_holds"], false, "{id}: {mistake}");
                wrong += 1;
            }
            if let Some((_, fewer)) = transactions.split_last() {
                let cut = decode_block(&block_under(&header(text(merkle, "/root")), fewer));
                assert_eq!(cut["root_holds"], false, "{id}: the last one is left out");
                wrong += 1;
            }
        }
        assert_eq!(wrong, 8 + 5);
    }

    #[pg_test]
    fn every_block_of_the_vectors_has_its_number_id_parent_and_time() {
        let merkles = section("/merkle", 6);
        let mut whole = 0;
        for block in section("/blocks", 6) {
            let id = text(block, "/id");
            let merkle = merkles
                .iter()
                .find(|merkle| merkle["id"] == block["merkle_id"]);
            let transactions = merkle.map(transactions_of).unwrap_or_default();
            let shown = decode_block(&block_under(&from_hex(text(block, "/raw")), &transactions));
            for (key, expected) in [
                ("number", &block["header"]["number"]),
                ("id", &block["block_id"]),
                ("parent_id", &block["header"]["parent_hash"]),
                ("timestamp_ms", &block["header"]["timestamp"]),
                ("root", &block["header"]["tx_trie_root"]),
            ] {
                assert_eq!(shown[key], *expected, "{key} of {id}");
            }
            let empty = text(block, "/header/tx_trie_root") == "0".repeat(64);
            assert_eq!(shown["root_holds"], merkle.is_some() || empty, "{id}");
            if let Some(merkle) = merkle {
                assert_eq!(shown["transactions"], expected_transactions(merkle), "{id}");
                whole += 1;
            }
        }
        assert_eq!(whole, 3);
    }
}
