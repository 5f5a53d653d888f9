//! What an operator sets up: settings and their bounds, assets and wallets; and that each change is
//! on file.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::{Value, json};

/// The contract of the token that is there from the start.
pub const TOKEN: &str = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";

fn set(name: &str, value: &str) -> String {
    format!(
        "select sluice.set_setting({}, {}, 'a test')",
        quoted(name),
        quoted(value)
    )
}

/// The call that sets a token up.
pub fn set_asset(
    name: &str,
    contract: &str,
    decimals: i32,
    minimum: &str,
    maximum: &str,
) -> String {
    format!(
        "select sluice.set_asset('{name}', '{contract}', {decimals}, '{minimum}', '{maximum}', 100000000, 0, true)"
    )
}

/// The rows of a query, as JSON.
pub fn rows(sql: &str) -> Vec<Value> {
    let text = one(&format!(
        "select coalesce(jsonb_agg(t), '[]') from ({sql}) t"
    ));
    serde_json::from_str(&text.unwrap_or_default()).expect("jsonb is JSON")
}

/// The changes filed so far, but for what was changed before the test, and without their ids.
pub fn changes() -> Vec<Value> {
    rows("select what, by, before, after, reason from sluice.changes order by at, what")
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn settings_begin_with_the_published_defaults() {
        assert_eq!(
            rows(
                "select time_to_live, freshness, margin_blocks, lease, resend, attempts, observers from sluice.settings"
            ),
            [json!({
                "time_to_live": "00:05:00", "freshness": "00:01:30", "margin_blocks": 0, "lease": "00:00:30",
                "resend": "00:01:15", "attempts": 5, "observers": 1,
            })]
        );
        assert!(changes().is_empty(), "installing is no change");
    }

    #[pg_test]
    fn a_setting_keeps_within_its_bounds_and_says_so() {
        alone();
        for (name, taken, refused_values) in [
            (
                "time_to_live",
                &["180 seconds", "600 seconds", "00:05:00"][..],
                &["179.999 seconds", "600.001 seconds", "0", "-1 day"][..],
            ),
            (
                "freshness",
                &["3 seconds", "210 seconds", "90 seconds"],
                &["2.999 seconds", "210.001 seconds", "1 month"],
            ),
            ("margin_blocks", &["0", "10000", " 7 "], &["-1", "10001"]),
            (
                "lease",
                &["1 second", "1 hour", "30"],
                &["0.999 seconds", "1 hour 1 millisecond", "-30 seconds"],
            ),
            (
                "resend",
                &["3 seconds", "1 hour"],
                &["2.999 seconds", "1 hour 1 millisecond"],
            ),
            ("attempts", &["1", "100"], &["0", "101", "-5"]),
            ("observers", &["1", "100"], &["0", "101"]),
        ] {
            for value in taken {
                run(&set(name, value));
                let is_set = one(&format!(
                    "select {name} = trim('{value}')::{} from sluice.settings",
                    if name.ends_with('s') && name != "freshness" {
                        "int"
                    } else {
                        "interval"
                    }
                ));
                assert_eq!(is_set.as_deref(), Some("true"), "{name} = {value}");
            }
            let before = contents();
            for value in refused_values {
                let (state, message) = refused(&set(name, value));
                assert_eq!(state, "SL005", "{name} = {value}: {message}");
                assert!(
                    message.starts_with("value: ") && message.contains(name),
                    "{name} = {value}: {message}"
                );
                assert_eq!(contents(), before, "{name} = {value}");
            }
        }
    }

    #[pg_test]
    fn freshness_leaves_an_envelope_ninety_seconds_at_least() {
        alone();
        run(&set("time_to_live", "600 seconds"));
        run(&set("freshness", "510 seconds"));
        assert_eq!(sqlstate(&set("freshness", "511 seconds")), "SL005");
        assert_eq!(sqlstate(&set("time_to_live", "599 seconds")), "SL005");
        run(&set("freshness", "3 seconds"));
        run(&set("time_to_live", "93 seconds"));
        assert_eq!(sqlstate(&set("time_to_live", "92 seconds")), "SL005");
    }

    #[pg_test]
    fn what_is_no_setting_or_no_value_of_its_type_is_refused() {
        alone();
        let before = contents();
        for name in [
            "only_row",
            "changed_by",
            "change_reason",
            "ctid",
            "xmin",
            "tableoid",
            "Lease",
            "lease ",
            "no_such",
            "lease = lease --",
            "\"lease\"",
            "lease\n",
        ] {
            let (state, message) = refused(&set(name, "1"));
            assert_eq!(state, "SL005", "{name}: {message}");
            assert!(message.starts_with("name: "), "{name}: {message}");
        }
        for (name, value) in [
            ("lease", "soon"),
            ("lease", "NaN"),
            ("lease", "1e"),
            ("attempts", "five"),
            ("attempts", "1.5"),
            ("attempts", "99999999999"),
            ("attempts", "0x10"),
            ("time_to_live", "300 parsecs"),
            ("observers", "'1'"),
            ("lease", "9999999999 years"),
        ] {
            let (state, message) = refused(&set(name, value));
            assert_eq!(state, "SL005", "{name} = {value}: {message}");
            assert!(
                message.starts_with("value: "),
                "{name} = {value}: {message}"
            );
        }
        for (call, argument) in [
            ("set_setting(null, '1', 'r')", "name"),
            ("set_setting('lease', null, 'r')", "value"),
            ("set_setting('lease', ' ', 'r')", "value"),
            ("set_setting('lease', '1 minute', null)", "reason"),
            ("set_setting('lease', '1 minute', E' \\t\\n')", "reason"),
            (
                "set_setting('lease', '1 minute', repeat('r', 1001))",
                "reason",
            ),
        ] {
            let (state, message) = refused(&format!("select sluice.{call}"));
            assert_eq!(state, "SL005", "{call}: {message}");
            assert!(
                message.starts_with(&format!("{argument}: ")),
                "{call}: {message}"
            );
        }
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn every_change_of_a_setting_is_on_file_with_its_reason_whoever_makes_it() {
        alone();
        run("select sluice.set_setting('attempts', '7', 'the network is slow')");
        run_as_owner("update sluice.settings set lease = '45 seconds', change_reason = 'by hand'");
        let filed = changes();
        assert_eq!(filed.len(), 2);
        for (change, column, before, after, reason) in [
            (
                &filed[0],
                "attempts",
                json!(5),
                json!(7),
                "the network is slow",
            ),
            (
                &filed[1],
                "lease",
                json!("00:00:30"),
                json!("00:00:45"),
                "by hand",
            ),
        ] {
            assert_eq!(change["what"], "settings");
            assert_eq!(change["before"][column], before);
            assert_eq!(change["after"][column], after);
            assert_eq!(change["reason"], reason);
            assert_eq!(
                Some(change["by"].to_string()),
                one("to_json(session_user::text)")
            );
        }
    }

    #[pg_test]
    fn the_token_of_the_day_is_there_from_the_start() {
        assert_eq!(
            rows(
                "select asset, contract, decimals, minimum_units, maximum_units, fee_limit_sun, depth, reverts_on_failure, version from sluice.assets"
            ),
            [json!({
                "asset": "USDT-TRC20", "contract": TOKEN, "decimals": 6, "minimum_units": 1,
                "maximum_units": 1_000_000_000_000_i64, "fee_limit_sun": 100_000_000, "depth": 0,
                "reverts_on_failure": true, "version": 1,
            })]
        );
        assert_eq!(
            one("sluice.format_amount(1, 6) || ' ' || sluice.format_amount(1000000000000, 6)")
                .as_deref(),
            Some("0.000001 1000000")
        );
    }

    #[pg_test]
    fn an_asset_is_set_up_changed_and_each_change_on_file() {
        alone();
        let contract = "417e5f4552091a69125d5dfcb7b8c2659029395bdf";
        run(&set_asset(
            "NEW",
            &format!(" 0x{contract} "),
            2,
            "0.5",
            "10",
        ));
        let asset = || {
            rows("select contract, decimals, minimum_units, maximum_units, depth, version from sluice.assets where asset = 'NEW'")
                .remove(0)
        };
        assert_eq!(
            asset(),
            json!({"contract": MOCK_WALLET, "decimals": 2, "minimum_units": 50, "maximum_units": 1000, "depth": 0, "version": 1})
        );
        // Limits are no new meaning; decimals and contract are.
        run(&set_asset("NEW", MOCK_WALLET, 2, "1", "100"));
        assert_eq!(asset()["version"], 1);
        run(&set_asset("NEW", MOCK_WALLET, 3, "1", "100"));
        assert_eq!(
            (&asset()["version"], &asset()["minimum_units"]),
            (&json!(2), &json!(1000))
        );
        run(&set_asset("NEW", THEIRS, 3, "1", "100"));
        assert_eq!(asset()["version"], 3);
        run(&set_asset("NEW", MOCK_WALLET, 2, "1", "100"));
        assert_eq!(asset()["version"], 4, "going back is new again");
        let filed = changes();
        assert_eq!(filed.len(), 5);
        assert!(filed.iter().all(|change| change["what"] == "assets"));
        assert_eq!(filed[0]["before"], Value::Null);
        assert_eq!(filed[1]["before"]["maximum_units"], 1000);
        assert_eq!(filed[1]["after"]["maximum_units"], 10_000);
    }

    #[pg_test]
    fn an_asset_that_makes_no_sense_is_refused_by_the_argument_at_fault() {
        alone();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac')"
        ));
        let before = contents();
        let good = [
            "'NEW'",
            "'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'",
            "6",
            "'1'",
            "'10'",
            "100",
            "0",
            "true",
        ];
        let names = [
            "asset",
            "contract",
            "decimals",
            "minimum",
            "maximum",
            "fee_limit_sun",
            "depth",
            "reverts_on_failure",
        ];
        let long = format!("'{}'", "9".repeat(60));
        let second = format!("'{SECOND_WALLET}'");
        let forty_one = format!("'{}'", "A".repeat(41));
        for (position, values, state) in [
            (
                0,
                &[
                    "''",
                    "' '",
                    "' A'",
                    "'A '",
                    "E'A\\nB'",
                    "'Téther'",
                    &forty_one,
                ][..],
                "SL005",
            ),
            (
                1,
                &[
                    "'nonsense'",
                    "'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T'",
                    "'0x7e5f4552091a69125d5dfcb7b8c2659029395bdf'",
                ],
                "SL002",
            ),
            (
                1,
                &["'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'", &second],
                "SL008",
            ),
            (2, &["-1", "39", "256", "2147483647"], "SL005"),
            (
                3,
                &[
                    "'-1'",
                    "'1e0'",
                    "'1.0000001'",
                    "'NaN'",
                    "'1 '",
                    "' 1'",
                    "'one'",
                ],
                "SL003",
            ),
            (3, &["'0'", "'0.000000'"], "SL005"),
            (
                4,
                &["'-1'", "'1e5'", "'10.0000001'", "'Infinity'", "E'10\\n'"],
                "SL003",
            ),
            (4, &["'0.999999'", "'0'", &long], "SL005"),
            (5, &["0", "-1", "15000000001"], "SL005"),
            (6, &["-1", "100001"], "SL005"),
            (7, &["false", "null"], "SL005"),
            (0, &["null"], "SL005"),
            (1, &["null"], "SL005"),
            (2, &["null"], "SL005"),
            (3, &["null"], "SL005"),
            (4, &["null"], "SL005"),
            (5, &["null"], "SL005"),
            (6, &["null"], "SL005"),
        ] {
            for value in values {
                let mut arguments = good.map(str::to_owned);
                arguments[position] = (*value).to_owned();
                let call = format!("select sluice.set_asset({})", arguments.join(", "));
                let (found, message) = refused(&call);
                assert_eq!(found, state, "{call}: {message}");
                let named = message.starts_with(&format!("{}: ", names[position]));
                assert!(named, "{call}: {message}");
            }
        }
        let defaults = "select sluice.set_asset('NEW', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, '1', '10', 100)";
        assert!(refused(defaults).1.starts_with("reverts_on_failure: "));
        assert_eq!(contents(), before);
        run(&format!("select sluice.set_asset({})", good.join(", ")));
    }

    #[pg_test]
    fn a_wallet_is_added_once_in_one_form_and_on_file() {
        alone();
        run("select sluice.add_wallet(' 0x417E5F4552091A69125D5DFCB7B8C2659029395BDF', 'hmac')");
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'secp256k1', '417e5f4552091a69125d5dfcb7b8c2659029395bdf', 2, 40)"
        ));
        let wallets = rows(
            "select address, signer, signer_address, permission_id, live_window from sluice.wallets order by address",
        );
        assert_eq!(
            wallets,
            [
                json!({"address": MOCK_WALLET, "signer": "hmac", "signer_address": MOCK_WALLET, "permission_id": 0, "live_window": 6000}),
                json!({"address": SECOND_WALLET, "signer": "secp256k1", "signer_address": MOCK_WALLET, "permission_id": 2, "live_window": 40}),
            ]
        );
        let filed = changes();
        assert_eq!(filed.len(), 2);
        assert!(
            filed
                .iter()
                .all(|change| change["what"] == "wallets" && change["before"].is_null())
        );
        let before = contents();
        for form in [MOCK_WALLET, "417e5f4552091a69125d5dfcb7b8c2659029395bdf"] {
            for signer in ["hmac", "secp256k1"] {
                let (state, message) =
                    refused(&format!("select sluice.add_wallet('{form}', '{signer}')"));
                assert_eq!(state, "SL011", "{message}");
                assert!(message.starts_with("address: "), "{message}");
            }
        }
        assert_eq!(contents(), before);
    }

    #[pg_test]
    fn a_wallet_that_makes_no_sense_is_refused_by_the_argument_at_fault() {
        alone();
        let before = contents();
        let (good, names) = (
            [
                quoted(MOCK_WALLET),
                "'hmac'".to_owned(),
                "null".to_owned(),
                "0".to_owned(),
                "6000".to_owned(),
            ],
            [
                "address",
                "signer",
                "signer_address",
                "permission_id",
                "live_window",
            ],
        );
        for (position, values, state) in [
            (0, &["null", "''", "'  '"][..], "SL005"),
            (
                0,
                &[
                    "'nonsense'",
                    "'0x7e5f4552091a69125d5dfcb7b8c2659029395bdf'",
                    "'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HD'",
                ],
                "SL002",
            ),
            (
                0,
                &[
                    "'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'",
                    "'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'",
                ],
                "SL008",
            ),
            (
                1,
                &["null", "''", "'HMAC'", "'ed25519'", "'hmac '"],
                "SL005",
            ),
            (2, &["'nonsense'", "''"], "SL002"),
            (2, &["'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'"], "SL008"),
            (3, &["null", "1", "-1", "10", "2147483647"], "SL005"),
            (4, &["null", "0", "-1", "1000001"], "SL005"),
        ] {
            for value in values {
                let mut arguments = good.clone();
                arguments[position] = (*value).to_owned();
                let call = format!("select sluice.add_wallet({})", arguments.join(", "));
                let (found, message) = refused(&call);
                assert_eq!(found, state, "{call}: {message}");
                let named = message.starts_with(&format!("{}: ", names[position]));
                assert!(named, "{call}: {message}");
            }
        }
        assert_eq!(contents(), before);
        run(&format!("select sluice.add_wallet({})", good.join(", ")));
    }

    #[pg_test]
    fn an_operator_sets_up_by_function_and_writes_no_table() {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        for call in [
            "sluice.set_setting('attempts', '7', 'r')".to_owned(),
            format!("sluice.add_wallet('{MOCK_WALLET}', 'hmac')"),
            set_asset("NEW", TOKEN, 6, "1", "2").replacen("select ", "", 1),
            format!(
                "sluice.follow_from({}, '\\x{GENESIS}')",
                literal(&first.bytes)
            ),
            "sluice.pause('r')".to_owned(),
            "(sluice.pause('r'), sluice.resume('r'))".to_owned(),
        ] {
            let call = format!("select {call}");
            assert_eq!(tried_as("sluice_operator", &call).0, "", "{call}");
            for role in [
                "sluice_app",
                "sluice_runner",
                "sluice_approver",
                "sluice_voucher",
                "sluice_auditor",
            ] {
                assert_eq!(tried_as(role, &call).0, "42501", "{role}: {call}");
            }
        }
        for table in [
            "settings", "assets", "wallets", "pauses", "changes", "chain",
        ] {
            assert_eq!(
                tried_as("sluice_operator", &format!("select from sluice.{table}")).0,
                ""
            );
            for write in ["delete from sluice.", "truncate sluice."] {
                let write = format!("{write}{table}");
                assert_eq!(tried_as("sluice_operator", &write).0, "42501", "{write}");
                assert_eq!(as_owner(&write), "SL013", "{write}");
            }
        }
        for table in ["wallets", "chain", "changes"] {
            let column = one(&format!(
                "select attname from pg_attribute where attrelid = 'sluice.{table}'::regclass and attnum = 1"
            ));
            let column = column.unwrap_or_default();
            let write = format!("update sluice.{table} set {column} = {column}");
            assert_eq!(as_owner(&write), "SL013", "{write}");
        }
    }
}
