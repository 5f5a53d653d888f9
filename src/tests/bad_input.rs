//! Bad input at intake: each is refused with its SQLSTATE by a message that names the argument, by every way in, and nothing
//! is written. What is refused of the runner's calls is in `bad_reports.rs`, of an operator's in `setup.rs`.

use super::scene::*;
use super::vectors::{integer, section, text};
use pgrx::prelude::*;
use serde_json::{Value, json};

/// The ways in, for one withdrawal: `submit` with arguments and with a payload, INSERT with and without ON CONFLICT.
fn ways(to: &str, amount: &str, asset: &str) -> [String; 4] {
    let id = id(1);
    let values = format!(
        "'{id}', {}, {}, {}",
        quoted(to),
        quoted(amount),
        quoted(asset)
    );
    let payload =
        json!({"operation_id": id, "to_address": to, "amount": amount, "asset": asset}).to_string();
    let insert = format!(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset) values ({values})"
    );
    [
        format!("select sluice.submit({values})"),
        format!("select sluice.submit({}::jsonb)", quoted(&payload)),
        format!("{insert} on conflict (operation_id) do nothing"),
        insert,
    ]
}

fn refuses_by_every_way(to: &str, amount: &str, asset: &str, state: &str, fault: &str) {
    for way in ways(to, amount, asset) {
        refuses(&way, state, fault);
    }
}

/// Whether every way in takes it; nothing of it stays.
fn taken_by_every_way(to: &str, amount: &str, asset: &str) {
    for way in ways(to, amount, asset) {
        assert_eq!(tried_as(&superuser(), &way).0, "", "{way}");
    }
}

/// `submit` with a payload that is this JSON text.
fn submit_json(payload: &str) -> String {
    format!("select sluice.submit({}::jsonb)", quoted(payload))
}

/// A good payload with one key changed.
fn payload_with(key: &str, value: &Value) -> String {
    let mut payload = json!({"operation_id": id(1), "to_address": THEIRS, "amount": "1.5", "asset": "USDT-TRC20"});
    payload[key] = value.clone();
    payload.to_string()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn every_address_that_the_vectors_refuse_is_refused_at_intake() {
        alone();
        let (mut taken, mut turned_away) = (0, 0);
        for string in section("/addresses/strings", 55) {
            let given = text(string, "/text");
            let valid = one(&format!("sluice.address_is_valid({})", quoted(given)));
            if valid.as_deref() == Some("true") {
                taken_by_every_way(given, "1.5", "USDT-TRC20");
                taken += 1;
            } else {
                refuses_by_every_way(given, "1.5", "USDT-TRC20", "SL002", "to_address");
                turned_away += 1;
            }
        }
        assert_eq!((taken, turned_away), (7, 48));
    }

    #[pg_test]
    fn an_address_that_is_nearly_one_is_refused_with_what_is_wrong() {
        alone();
        for (given, reason) in [
            ("TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQR", "checksum"),
            ("TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQQ", "34 characters"),
            ("TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQ", "checksum"),
            ("TFAR54aGjHGLz1TeZLZRE", "34 characters"),
            ("tfar54agjhglz1tezlzregsc7u9msqggqq", "one case"),
            ("TFAR54AGJHGLZ1TEZLZREGSC7U9MSQGGQQ", "one case"),
            ("TFAR54aGjHGLz1TeZL ZREgsC7u9msqGgQQ", "white space"),
            ("TFAR54aGjHGLz1TeZL\u{200b}ZREgsC7u9msqGgQQ", "invisible"),
            ("TFAR54aGjHGLzlTeZLZREgsC7u9msqGgQQ", "'l'"),
            ("TFAR54aGjHGLzITeZLZREgsC7u9msqGgQQ", "'I'"),
            ("TFAR54aGjHGLz0TeZLZREgsC7u9msqGgQQ", "'0'"),
            ("TFAR54aGjHGLzOTeZLZREgsC7u9msqGgQQ", "'O'"),
            ("0x38f7477a811f3c6a45dfa690769a8fa0c6229c7b", "EVM"),
            ("38f7477a811f3c6a45dfa690769a8fa0c6229c7b", "EVM"),
            ("0X4138f7477a811f3c6a45dfa690769a8fa0c6229c7b", "'0'"),
            ("TanQLmo1QgcVmhWRBQgGUqXA2UG6r7pMtw", "0x42"),
            ("", "empty"),
            (" \t\n", "empty"),
            ("\u{a0}TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ", "U+00A0"),
        ] {
            refuses_by_every_way(given, "1.5", "USDT-TRC20", "SL002", "to_address");
            for way in ways(given, "1.5", "USDT-TRC20") {
                let message = refused(&way).1;
                assert!(message.contains(reason), "{given:?}: {message}");
            }
        }
        for length in [1_000, 1_000_000] {
            refuses_by_every_way(
                &"T".repeat(length),
                "1.5",
                "USDT-TRC20",
                "SL002",
                "to_address",
            );
        }
    }

    #[pg_test]
    fn a_destination_that_must_not_be_paid_is_refused_in_any_form() {
        alone();
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"
        ));
        for (base58, reason) in [
            ("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", "zero"),
            ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "contract"),
            (MOCK_WALLET, "wallets"),
        ] {
            let hex = one(&format!("encode(sluice.address_bytes('{base58}'), 'hex')"));
            let hex = hex.expect("an address has bytes");
            for form in [
                base58.to_owned(),
                format!(" {base58}\n"),
                hex.clone(),
                format!("0x{}", hex.to_uppercase()),
            ] {
                refuses_by_every_way(&form, "1.5", "USDT-TRC20", "SL008", "to_address");
                let message = refused(&ways(&form, "1.5", "USDT-TRC20")[0]).1;
                assert!(message.contains(reason), "{form}: {message}");
            }
        }
    }

    #[pg_test]
    fn every_amount_of_the_vectors_is_taken_or_refused_at_intake() {
        alone();
        for decimals in [0, 6, 8, 18] {
            let (whole, fraction) = ("9".repeat(38 - decimals), "9".repeat(decimals));
            let (maximum, minimum) = match decimals {
                0 => (whole, "1".to_owned()),
                _ => (
                    format!("{whole}.{fraction}"),
                    format!("0.{}1", "0".repeat(decimals - 1)),
                ),
            };
            run(&format!(
                "select sluice.set_asset('WIDE{decimals}', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', {decimals}, '{minimum}', '{maximum}', 1, 0, true)"
            ));
        }
        let (mut taken, mut form, mut bounds) = (0, 0, 0);
        for amount in section("/amounts", 101) {
            let (given, decimals) = (text(amount, "/text"), integer(amount, "/decimals"));
            let asset = format!("WIDE{decimals}");
            if amount["accepted"] == false {
                refuses_by_every_way(THEIRS, given, &asset, "SL003", "amount");
                form += 1;
            } else if amount["units"] == "0" || amount["fits_numeric_38_0"] == false {
                refuses_by_every_way(THEIRS, given, &asset, "SL007", "amount");
                bounds += 1;
            } else {
                taken_by_every_way(THEIRS, given, &asset);
                taken += 1;
            }
        }
        assert_eq!((taken, form, bounds), (22, 70, 9));
    }

    #[pg_test]
    fn an_amount_that_is_no_exact_decimal_within_bounds_is_refused_with_what_is_wrong() {
        alone();
        let sixty = "9".repeat(60);
        for (given, state, reason) in [
            ("1e3", "SL003", "'e'"),
            ("1E3", "SL003", "'E'"),
            ("0x10", "SL003", "'x'"),
            ("-1", "SL003", "'-'"),
            ("+1", "SL003", "'+'"),
            ("1.5e0", "SL003", "'e'"),
            ("NaN", "SL003", "'N'"),
            ("Infinity", "SL003", "'I'"),
            ("1,5", "SL003", "','"),
            ("1 000", "SL003", "' '"),
            ("1_000", "SL003", "'_'"),
            ("1.5\n", "SL003", "character 4"),
            ("1.5 ", "SL003", "character 4"),
            (" 1.5", "SL003", "character 1"),
            ("\u{661}", "SL003", "U+0661"),
            ("\u{ff11}", "SL003", "U+FF11"),
            ("", "SL003", "empty"),
            (".5", "SL003", "before"),
            ("5.", "SL003", "after"),
            ("1.2.3", "SL003", "second"),
            ("0.0000001", "SL003", "7 digits"),
            ("1.0000000", "SL003", "7 digits"),
            ("0", "SL007", "below the minimum of USDT-TRC20, 0.000001"),
            ("0.000000", "SL007", "below the minimum"),
            (
                "1000000.000001",
                "SL007",
                "above the maximum of USDT-TRC20, 1000000",
            ),
            (&sixty, "SL007", "38 digits"),
        ] {
            refuses_by_every_way(THEIRS, given, "USDT-TRC20", state, "amount");
            for way in ways(THEIRS, given, "USDT-TRC20") {
                let message = refused(&way).1;
                assert!(message.contains(reason), "{given:?}: {message}");
            }
        }
        refuses_by_every_way(
            THEIRS,
            &"9".repeat(1_000_000),
            "USDT-TRC20",
            "SL007",
            "amount",
        );
        for given in ["0.000001", "1000000", "1000000.000000", "0000001"] {
            taken_by_every_way(THEIRS, given, "USDT-TRC20");
        }
    }

    #[pg_test]
    fn an_asset_that_is_not_set_up_is_refused_by_its_name() {
        alone();
        let long = "A".repeat(100_000);
        for asset in [
            "",
            " ",
            "USDT",
            "usdt-trc20",
            "USDT-TRC20 ",
            " USDT-TRC20",
            "USDT\u{2010}TRC20",
            "'; drop table x; --",
            &long,
        ] {
            refuses_by_every_way(THEIRS, "1.5", asset, "SL004", "asset");
        }
    }

    #[pg_test]
    fn a_missing_argument_is_named() {
        alone();
        let good = [
            ("operation_id", format!("'{}'", id(1))),
            ("to_address", quoted(THEIRS)),
            ("amount", "'1.5'".to_owned()),
            ("asset", "'USDT-TRC20'".to_owned()),
        ];
        for (position, (name, _)) in good.iter().enumerate() {
            let mut values: Vec<&str> = good.iter().map(|(_, value)| value.as_str()).collect();
            values[position] = "null";
            let list = values.join(", ");
            refuses(&format!("select sluice.submit({list})"), "SL005", name);
            let insert = format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount, asset) values ({list})"
            );
            refuses(&insert, "SL005", name);
            refuses(&format!("{insert} on conflict do nothing"), "SL005", name);
        }
        for name in ["operation_id", "to_address", "amount"] {
            refuses(
                &submit_json(&payload_with(name, &Value::Null)),
                "SL005",
                name,
            );
            let columns: Vec<&str> = good
                .iter()
                .map(|(column, _)| *column)
                .filter(|column| column != &name)
                .collect();
            let values: Vec<&str> = good
                .iter()
                .filter(|(column, _)| column != &name)
                .map(|(_, value)| value.as_str())
                .collect();
            refuses(
                &format!(
                    "insert into sluice.withdrawals ({}) values ({})",
                    columns.join(", "),
                    values.join(", ")
                ),
                "SL005",
                name,
            );
        }
        refuses(
            "insert into sluice.withdrawals default values",
            "SL005",
            "operation_id",
        );
        refuses("select sluice.submit(null::jsonb)", "SL005", "payload");
        // What may be left out.
        run(&submit_json(&payload_with("asset", &Value::Null)));
        run(&submit_json(&payload_with("account", &Value::Null)));
    }

    #[pg_test]
    fn a_payload_of_another_shape_is_refused_by_the_key_at_fault() {
        alone();
        for payload in ["null", "[]", "\"a\"", "1", "true", "[{}]"] {
            refuses(&submit_json(payload), "SL005", "payload");
        }
        refuses(&submit_json("{}"), "SL005", "operation_id");
        for key in [
            "",
            "Amount",
            "amount ",
            "to",
            "state",
            "amount_units",
            "a\"b",
            "\u{0430}mount",
        ] {
            refuses(
                &submit_json(&payload_with(key, &json!("1"))),
                "SL005",
                "payload",
            );
        }
        for (key, state) in [
            ("operation_id", "SL005"),
            ("to_address", "SL002"),
            ("amount", "SL003"),
            ("asset", "SL005"),
            ("account", "SL005"),
            ("requested_by", "SL005"),
        ] {
            for value in [
                json!(true),
                json!([]),
                json!({}),
                json!(["1.5"]),
                json!({"value": "1.5"}),
                json!(1.5),
                json!(0),
            ] {
                refuses(&submit_json(&payload_with(key, &value)), state, key);
            }
        }
        for number in [
            "1",
            "1.5",
            "1.50",
            "1e3",
            "1e400",
            "-1",
            "0",
            &"9".repeat(60),
        ] {
            let payload = payload_with("amount", &Value::Null).replace("null", number);
            refuses(&submit_json(&payload), "SL003", "amount");
        }
        for operation_id in [
            "",
            "1",
            "not a uuid",
            "00000000-0000-4000-8000-00000000000",
            "00000000-0000-4000-8000-0000000000011",
            "00000000-0000-4000-8000-00000000000g",
            "{00000000-0000-4000-8000-000000000001}",
            "urn:uuid:00000000-0000-4000-8000-000000000001",
            " 00000000-0000-4000-8000-000000000001",
            "00000000-0000-4000-8000-000000000001\n",
            "00000000_0000_4000_8000_000000000001",
        ] {
            refuses(
                &submit_json(&payload_with("operation_id", &json!(operation_id))),
                "SL005",
                "operation_id",
            );
        }
        // Of a key twice, jsonb keeps the last.
        let twice = payload_with("amount", &json!("1.5")).replacen('{', "{\"amount\": 7, ", 1);
        assert_eq!(tried_as(&superuser(), &submit_json(&twice)).0, "");
    }

    #[pg_test]
    fn json_that_nests_deeply_or_is_none_is_refused_and_the_session_goes_on() {
        alone();
        for depth in [10, 127, 128, 200, 1_000] {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            refuses(&submit_json(&format!("{open}{close}")), "SL005", "payload");
            refuses(
                &submit_json(&format!("{{\"x\": {open}{close}}}")),
                "SL005",
                "payload",
            );
            let amount =
                payload_with("amount", &Value::Null).replace("null", &format!("{open}{close}"));
            refuses(&submit_json(&amount), "SL003", "amount");
        }
        let before = contents();
        // PostgreSQL's own refusals, before anything of ours is called.
        for (payload, state) in [
            ("", "22P02"),
            ("{", "22P02"),
            ("{\"amount\": 1.}", "22P02"),
            ("{\"amount\": NaN}", "22P02"),
            ("{'amount': '1'}", "22P02"),
            ("{\"amount\": \"\\ud800\"}", "22P02"),
            ("{\"amount\": \"\\u0000\"}", "22P05"),
        ] {
            assert_eq!(sqlstate(&submit_json(payload)), state, "{payload}");
        }
        let endless = submit_json(&"[".repeat(1_000_000));
        assert_eq!(
            sqlstate(&endless),
            "54001",
            "too deep for PostgreSQL's stack"
        );
        assert_eq!(contents(), before);
        run(&submit_json(&payload_with("account", &json!("user-7"))));
    }

    #[pg_test]
    fn what_a_caller_files_about_itself_is_neither_blank_nor_without_end() {
        alone();
        let (long, longest) = ("я".repeat(201), "я".repeat(200));
        for column in ["account", "requested_by"] {
            let all = |value: &str| {
                let insert = format!(
                    "insert into sluice.withdrawals (operation_id, to_address, amount, {column}) values ('{}', '{THEIRS}', '1.5', {})",
                    id(1),
                    quoted(value)
                );
                [
                    format!(
                        "select sluice.submit('{}', '{THEIRS}', '1.5', {column} => {})",
                        id(1),
                        quoted(value)
                    ),
                    submit_json(&payload_with(column, &json!(value))),
                    format!("{insert} on conflict do nothing"),
                    insert,
                ]
            };
            for value in ["", " ", "\t\r\n", "\u{a0}", &long, &"x".repeat(1_000_000)] {
                for way in all(value) {
                    refuses(&way, "SL005", column);
                }
            }
            for value in ["7", " 7 ", "'; drop table x; --", "👛", &longest] {
                for way in all(value) {
                    assert_eq!(tried_as(&superuser(), &way).0, "", "{way}");
                }
            }
        }
    }

    #[pg_test]
    fn a_withdrawal_cannot_begin_anywhere_but_at_its_beginning() {
        alone();
        let id = id(1);
        for state in [
            "validated",
            "signing",
            "signed",
            "broadcasting",
            "broadcast",
            "confirmed",
            "failed",
            "rejected",
        ] {
            let insert = format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount, state) values ('{id}', '{THEIRS}', '1.5', '{state}')"
            );
            let before = contents();
            let (found, message) = tried_as("sluice_owner", &insert);
            assert_eq!(found, "SL010", "{state}: {message}");
            assert!(
                message.contains(&id) && message.contains(state),
                "{message}"
            );
            assert_eq!(contents(), before);
        }
        // What is not the caller's to say is not what it said.
        run_as_owner(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount, fencing_token, attempt, wallet, block_number, amount_units, seq, due_at, created_at)
             values ('{id}', '{THEIRS}', '1.5', 7, 7, '{MOCK_WALLET}', 7, 7, 7, null, 'epoch')"
        ));
        assert_eq!(
            one(&format!(
                "select row(fencing_token, attempt, wallet, block_number, amount_units, seq, due_at is null, created_at = 'epoch')
                   from sluice.withdrawals where operation_id = '{id}'"
            ))
            .as_deref(),
            Some("(0,0,,,1500000,1,f,f)")
        );
    }
}
