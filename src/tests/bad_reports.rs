//! Bad input from a runner: reports of another shape, tokens that are not its own, blocks that do not follow or do not hold
//! together. An argument at fault is an error that names it, and nothing of the batch is filed; a row that is not the
//! reporter's is passed over; and no order or shape of blocks hides a payment.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::{Value, json};

const WORKER_CALLS: [&str; 4] = [
    "claim_batch({w})",
    "record_signatures({w}, '[]')",
    "record_broadcasts({w}, '[]')",
    "release({w}, '{}', '{}')",
];

/// A report's element that is right in shape.
fn element() -> Value {
    json!({"operation_id": id(1), "fencing_token": 1, "txid": "00".repeat(32)})
}

/// The two kinds of report, with one element of this kind made from another.
fn reports(change: &dyn Fn(&mut Value)) -> [String; 2] {
    let mut signature = element();
    signature["signature"] = json!("01".repeat(65));
    let mut answer = element();
    answer["node"] = json!("node");
    answer["code"] = json!("SUCCESS");
    change(&mut signature);
    change(&mut answer);
    [
        report("record_signatures", &json!([signature]).to_string()),
        report("record_broadcasts", &json!([answer]).to_string()),
    ]
}

fn report(function: &str, results: &str) -> String {
    format!(
        "select * from sluice.{function}('w', {}::jsonb)",
        quoted(results)
    )
}

/// What is on file, but for who was seen last: a report of nothing is still one.
fn filed() -> String {
    let contents = contents();
    let lines = contents
        .lines()
        .filter(|line| !line.starts_with("sluice.workers "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The states that a report comes back with.
fn states(statement: &str) -> Vec<Option<String>> {
    let text = one(&format!(
        "select coalesce(jsonb_agg(r.state), '[]') from ({statement}) r"
    ));
    serde_json::from_str(&text.unwrap_or_default()).expect("jsonb is JSON")
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_worker_says_who_it_is() {
        let scene = Scene::open();
        let long = format!("'{}'", "w".repeat(201));
        for call in WORKER_CALLS {
            for worker in ["null", "''", "'  '", "E'\\t\\n'", &long] {
                let call = call.replace("{w}", worker);
                refuses(&format!("select sluice.{call}"), "SL005", "worker_id");
            }
            run(&format!("select sluice.{}", call.replace("{w}", "'w'")));
        }
        for worker in ["null", "''", &long] {
            refuses(
                &format!(
                    "select sluice.fenced_cas('{}', 1, 'signing', 'signed', {worker})",
                    id(1)
                ),
                "SL005",
                "worker_id",
            );
            let block = literal(&scene.tip.bytes);
            refuses(
                &format!("select sluice.observe_blocks({worker}, array[{block}])"),
                "SL005",
                "node",
            );
        }
    }

    #[pg_test]
    fn a_claim_keeps_within_its_bounds() {
        let scene = Scene::open();
        scene.submit(1);
        for size in ["null", "0", "-1", "10001", "2147483647"] {
            refuses(
                &format!("select sluice.claim_batch('w', {size})"),
                "SL005",
                "batch_size",
            );
        }
        for lease in [
            "0 seconds",
            "0.999 seconds",
            "-1 hour",
            "1 hour 1 microsecond",
            "1 month",
            "100000 years",
        ] {
            refuses(
                &format!("select sluice.claim_batch('w', 1, '{lease}')"),
                "SL005",
                "lease",
            );
        }
        for (size, lease) in [("10000", "'1 hour'"), ("1", "'1 second'"), ("100", "null")] {
            let claim = format!("select sluice.claim_batch('w', {size}, {lease})");
            assert_eq!(tried_as("sluice_runner", &claim).0, "", "{claim}");
        }
    }

    #[pg_test]
    fn a_report_of_another_shape_is_refused_by_the_element_and_key_at_fault() {
        let scene = Scene::open();
        scene.signing(1);
        for function in ["record_signatures", "record_broadcasts"] {
            refuses(
                &format!("select sluice.{function}('w', null)"),
                "SL005",
                "results",
            );
            for results in ["null", "{}", "\"a\"", "1", "true", "{\"results\": []}"] {
                refuses(&report(function, results), "SL005", "results");
            }
            for results in ["[null]", "[[]]", "[1]", "[\"a\"]", "[true]"] {
                refuses(&report(function, results), "SL005", "results[1]");
            }
            refuses(
                &report(function, "[{}]"),
                "SL005",
                "results[1].operation_id",
            );
            let many = format!("[{}]", vec!["{}"; 10_001].join(","));
            refuses(&report(function, &many), "SL005", "results");
            for depth in [126, 127, 128, 1_000] {
                let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
                for results in [deep.clone(), format!("[{{\"operation_id\": {deep}}}]")] {
                    let (state, message) = refused(&report(function, &results));
                    assert_eq!(state, "SL005", "{depth}: {message}");
                    assert!(message.starts_with("results"), "{depth}: {message}");
                }
            }
            for number in ["1e400", "-1e400", "123456789012345678901234567890"] {
                let results = format!(
                    "[{{\"operation_id\": \"{}\", \"fencing_token\": {number}}}]",
                    id(1)
                );
                let (state, message) = refused(&report(function, &results));
                assert_eq!(state, "SL005", "{number}: {message}");
                assert!(message.starts_with("results"), "{number}: {message}");
            }
        }
        for key in [
            "operation_id",
            "fencing_token",
            "txid",
            "signature",
            "node",
            "code",
        ] {
            let mut tried = 0;
            for value in [
                Value::Null,
                json!(true),
                json!([]),
                json!({}),
                json!(1.5),
                json!([1]),
            ] {
                for report in reports(&|element| {
                    if element.get(key).is_some() {
                        element[key] = value.clone();
                    }
                }) {
                    if !report.contains(key) {
                        continue;
                    }
                    refuses(&report, "SL005", &format!("results[1].{key}"));
                    tried += 1;
                }
            }
            assert!(tried >= 6, "{key}");
        }
        let wrong = [
            ("operation_id", json!("nobody")),
            (
                "operation_id",
                json!("{00000000-0000-4000-8000-000000000001}"),
            ),
            (
                "operation_id",
                json!("urn:uuid:00000000-0000-4000-8000-000000000001"),
            ),
            (
                "operation_id",
                json!(" 00000000-0000-4000-8000-000000000001"),
            ),
            ("fencing_token", json!("1")),
            ("fencing_token", json!(9_223_372_036_854_775_808_u64)),
            ("txid", json!("")),
            ("txid", json!("00")),
            ("txid", json!("0x".to_owned() + &"00".repeat(32))),
            ("txid", json!("zz".repeat(32))),
            ("txid", json!("00".repeat(33))),
        ];
        for (key, value) in &wrong {
            for report in reports(&|element| element[*key] = value.clone()) {
                refuses(&report, "SL005", &format!("results[1].{key}"));
            }
        }
        for signature in ["0", "0x00", "zz", " ", "00 00"] {
            let [report, _] = reports(&|element| element["signature"] = json!(signature));
            refuses(&report, "SL005", "results[1].signature");
        }
        for key in ["", "Txid", "state", "worker_id", "signature "] {
            for report in reports(&|element| element[key] = json!("x")) {
                refuses(&report, "SL005", "results[1]");
            }
        }
    }

    #[pg_test]
    fn one_element_at_fault_and_nothing_of_the_report_is_filed() {
        let scene = Scene::open();
        let good = scene.signing(1);
        let right = json!({
            "operation_id": good.operation_id, "fencing_token": good.fencing_token,
            "txid": hex::encode(&good.txid), "signature": "01".repeat(65),
        });
        let mut other = element();
        other["operation_id"] = json!(id(2));
        other["signature"] = json!("no hex");
        for (results, fault) in [
            (json!([right, other]), "results[2].signature"),
            (json!([other, right]), "results[1].signature"),
            (json!([right, right]), "results[2].operation_id"),
            (json!([right, null]), "results[2]"),
        ] {
            refuses(
                &report("record_signatures", &results.to_string()),
                "SL005",
                fault,
            );
        }
        let upper = good.operation_id.to_uppercase().replace('-', "");
        let mut same = right.clone();
        same["operation_id"] = json!(upper);
        refuses(
            &report("record_signatures", &json!([right, same]).to_string()),
            "SL005",
            "results[2].operation_id",
        );
        assert_eq!(
            states(&report("record_signatures", &json!([right]).to_string())),
            [Some("broadcasting".to_owned())]
        );
    }

    #[pg_test]
    fn a_row_that_is_not_the_reporters_comes_back_empty_and_stays_as_it_was() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let broadcasting = scene.broadcasting(2);
        let over = {
            let id = scene.submit(3);
            run(&format!("select sluice.cancel('{id}', 'a test')"));
            id
        };
        let token = task.fencing_token;
        let before = filed();
        let none = [None::<String>];
        for (operation_id, fencing_token, txid) in [
            (&task.operation_id, token - 1, &task.txid),
            (&task.operation_id, token + 1, &task.txid),
            (&task.operation_id, 0, &task.txid),
            (&task.operation_id, -1, &task.txid),
            (&task.operation_id, i64::MAX, &task.txid),
            (&task.operation_id, i64::MIN, &task.txid),
            (&task.operation_id, token, &broadcasting.txid),
            (&task.operation_id, token, &vec![0; 32]),
            (&id(99), token, &task.txid),
            (&over, 1, &task.txid),
            (
                &broadcasting.operation_id,
                broadcasting.fencing_token,
                &task.txid,
            ),
            // The right row in the wrong state: it is signed already.
            (
                &broadcasting.operation_id,
                broadcasting.fencing_token,
                &broadcasting.txid,
            ),
        ] {
            let signature = json!([{
                "operation_id": operation_id, "fencing_token": fencing_token, "txid": hex::encode(txid), "signature": "01".repeat(65),
            }]);
            let statement = report("record_signatures", &signature.to_string());
            assert_eq!(states(&statement), none, "{signature}");
            assert_eq!(filed(), before, "{signature}");
        }
        for (operation_id, fencing_token, txid) in [
            (
                &broadcasting.operation_id,
                broadcasting.fencing_token - 1,
                &broadcasting.txid,
            ),
            (
                &broadcasting.operation_id,
                broadcasting.fencing_token + 1,
                &broadcasting.txid,
            ),
            (
                &broadcasting.operation_id,
                broadcasting.fencing_token,
                &task.txid,
            ),
            (&task.operation_id, token, &task.txid),
            (&over, 1, &broadcasting.txid),
            (&id(99), 1, &broadcasting.txid),
        ] {
            for code in ["SUCCESS", "SIGERROR", "NO_ANSWER", "DUP_TRANSACTION_ERROR"] {
                let answer = json!([{
                    "operation_id": operation_id, "fencing_token": fencing_token, "txid": hex::encode(txid), "node": "n", "code": code,
                }]);
                let statement = report("record_broadcasts", &answer.to_string());
                assert_eq!(states(&statement), none, "{answer}");
                assert_eq!(filed(), before, "{answer}");
            }
        }
        for (operation_id, fencing_token, worker) in [
            (&task.operation_id, token + 1, "w"),
            (&task.operation_id, token, "another worker"),
            (&id(99), token, "w"),
            (&over, 0, "w"),
        ] {
            let release = format!(
                "sluice.release('{worker}', array['{operation_id}'::uuid], array[{fencing_token}::bigint])"
            );
            assert_eq!(one(&release).as_deref(), Some("0"), "{release}");
            assert_eq!(filed(), before, "{release}");
        }
        for (operation_id, fencing_token, from, to) in [
            (&task.operation_id, token + 1, "signing", "signing"),
            (&task.operation_id, token, "signed", "signed"),
            (&task.operation_id, token, "signed", "broadcasting"),
            (&id(99), 1, "signing", "signed"),
            (&over, 0, "requested", "requested"),
        ] {
            let cas = format!(
                "select * from sluice.fenced_cas('{operation_id}', {fencing_token}, '{from}', '{to}', 'w')"
            );
            assert_eq!(states(&cas), [], "{cas}");
            assert_eq!(filed(), before, "{cas}");
        }
        // All that is between those and an answer that counts is the token.
        assert_eq!(scene.sign("w", &[task])[0].state, "broadcasting");
    }

    #[pg_test]
    fn bytes_that_are_not_the_wallets_signature_are_stored_nowhere() {
        let scene = Scene::open();
        let task = scene.signing(1);
        for length in [0, 1, 64, 66, 100_000] {
            let results = json!([{
                "operation_id": task.operation_id, "fencing_token": task.fencing_token, "txid": hex::encode(&task.txid),
                "signature": "01".repeat(length),
            }]);
            let statement = report("record_signatures", &results.to_string());
            assert_eq!(states(&statement), [Some("signing".to_owned())], "{length}");
            assert_eq!(
                one("select count(signature) from sluice.envelopes").as_deref(),
                Some("0")
            );
            let said = scene.column(&task.operation_id, "last_error");
            assert!(said.contains("65 bytes") && said.len() < 500, "{said}");
        }
        assert_eq!(
            scene.log(&task.operation_id),
            ">requested requested>validated validated>signing"
        );
    }

    #[pg_test]
    fn a_single_step_asks_for_known_keys_and_a_step_of_the_chart() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let good = [
            format!("'{}'", task.operation_id),
            task.fencing_token.to_string(),
            "'signing'".to_owned(),
            "'signing'".to_owned(),
            "'w'".to_owned(),
            "'{}'".to_owned(),
            "'{}'".to_owned(),
        ];
        let long = format!("'{{\"note\": \"{}\"}}'", "x".repeat(10_000));
        for (position, values, state, fault) in [
            (0, &["null"][..], "SL005", "operation_id"),
            (1, &["null"], "SL005", "fencing_token"),
            (2, &["null"], "SL005", "from_state"),
            (3, &["null"], "SL005", "to_state"),
            (3, &["'rejected'"], "SL010", "to_state"),
            (4, &["null", "' '"], "SL005", "worker_id"),
            (
                5,
                &[
                    "null",
                    "'[]'",
                    "'null'",
                    "'1'",
                    "'\"a\"'",
                    "'{\"state\": 1}'",
                    "'{\"Due_in\": \"1 s\"}'",
                    "'{\"\": {}}'",
                ],
                "SL005",
                "sets",
            ),
            (
                5,
                &[
                    "'{\"due_in\": \"soon\"}'",
                    "'{\"due_in\": []}'",
                    "'{\"due_in\": \"-1 s\"}'",
                    "'{\"due_in\": \"61 minutes\"}'",
                    "'{\"due_in\": \"1 month\"}'",
                    "'{\"due_in\": \"1e400 s\"}'",
                ],
                "SL005",
                "sets.due_in",
            ),
            (
                6,
                &["null", "'[]'", "'\"a\"'", "'null'", &long],
                "SL005",
                "detail",
            ),
        ] {
            for value in values {
                let mut arguments = good.clone();
                arguments[position] = (*value).to_owned();
                let call = format!("select * from sluice.fenced_cas({})", arguments.join(", "));
                refuses(&call, state, fault);
            }
        }
        for (from, to) in [
            ("signing", "broadcast"),
            ("signing", "confirmed"),
            ("confirmed", "signing"),
            ("requested", "signing"),
        ] {
            let before = contents();
            let call = format!(
                "select * from sluice.fenced_cas({}, {}, '{from}', '{to}', 'w')",
                good[0], good[1]
            );
            assert_eq!(sqlstate(&call), "SL010", "{call}");
            assert_eq!(contents(), before);
        }
        let deep = format!("{{\"note\": {}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        for (sets, detail) in [
            ("{}", "{}"),
            (
                "{\"due_in\": \"1 hour\", \"last_error\": \"busy\"}",
                deep.as_str(),
            ),
            ("{\"due_in\": null}", "{}"),
        ] {
            let call = format!(
                "select * from sluice.fenced_cas({}, {}, 'signing', 'signing', 'w', '{sets}', '{detail}')",
                good[0], good[1]
            );
            assert_eq!(states(&call), [Some("signing".to_owned())], "{call}");
        }
        assert_eq!(
            scene.due_in(&task.operation_id),
            30,
            "the lease, where nothing else is asked for"
        );
    }

    #[pg_test]
    fn release_and_cancel_name_what_they_miss() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let id = &task.operation_id;
        for arguments in [
            "'w', null, '{1}'".to_owned(),
            format!("'w', array['{id}'::uuid], null"),
            format!("'w', array['{id}'::uuid], '{{}}'"),
            format!("'w', array['{id}'::uuid], '{{1,2}}'"),
        ] {
            let call = format!("select sluice.release({arguments})");
            refuses(&call, "SL005", "operation_ids, fencing_tokens");
        }
        assert_eq!(
            one(&format!(
                "sluice.release('w', array['{id}'::uuid, null], array[null, 1]::bigint[])"
            ))
            .as_deref(),
            Some("0")
        );
        for (arguments, state, fault) in [
            ("null, 'r'".to_owned(), "SL005", "operation_id"),
            (format!("'{id}', null"), "SL005", "reason"),
            (format!("'{id}', E' \\n'"), "SL005", "reason"),
            (format!("'{id}', repeat('r', 1001)"), "SL005", "reason"),
            (format!("'{}', 'r'", super::id(99)), "SL030", "operation_id"),
        ] {
            refuses(&format!("select sluice.cancel({arguments})"), state, fault);
        }
        refuses("select sluice.explain(null)", "SL030", "operation_id");
        for nothing in [
            "fate(null)",
            "fate('\\x00')",
            "withdrawal(null)",
            "timeline(null)",
        ] {
            assert_eq!(
                count(&format!("select count(*) from sluice.{nothing}")),
                0,
                "{nothing}"
            );
        }
    }

    #[pg_test]
    fn what_a_node_says_is_kept_within_bounds_and_moves_nothing_but_by_acceptance() {
        let scene = Scene::open();
        let task = scene.broadcasting(1);
        let long = "x".repeat(100_000);
        for (code, message) in [
            ("", ""),
            (long.as_str(), long.as_str()),
            ("success", "ok"),
            ("SUCCESS ", "ok"),
            ("NO_ANSWER", "timed out"),
            ("🦀", "\u{0}".trim_matches('\0')),
        ] {
            let results = json!([{
                "operation_id": task.operation_id, "fencing_token": task.fencing_token, "txid": hex::encode(&task.txid),
                "node": &long, "code": code, "message": message,
            }]);
            let statement = report("record_broadcasts", &results.to_string());
            assert_eq!(
                states(&statement),
                [Some("broadcasting".to_owned())],
                "{}",
                code.len()
            );
            assert!(scene.column(&task.operation_id, "last_error").len() <= 500);
        }
        assert_eq!(
            one("select max(length(detail::text)) < 2000 from sluice.events").as_deref(),
            Some("true")
        );
    }
}
