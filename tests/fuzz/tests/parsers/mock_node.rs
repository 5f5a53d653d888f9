//! The mock network itself: tests rest on it, so whatever it is sent, over a node's API or the control path, it answers, and goes
//! on.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value, json};
use sluice_fuzz::chain::{any_bytes, transaction};
use sluice_fuzz::fuzz;
use sluice_fuzz::http::{PATIENCE, ask, status};
use sluice_fuzz::json::{any_value, changed, changes, edge_number, no_json};
use sluice_fuzz::text::any_text;
use sluice_mock_node::endpoint::Endpoint;
use sluice_mock_node::{ClockMode, Config, MockNet};

/// For calls that a fault may leave without an answer.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// A request, and whether it is one that HTTP knows.
#[derive(Clone)]
struct Request {
    bytes: Vec<u8>,
    sound: bool,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beginning = &self.bytes[..self.bytes.len().min(3000)];
        fmt::Debug::fmt(&String::from_utf8_lossy(beginning), f)
    }
}

fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Request {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    Request {
        bytes: [head.as_bytes(), body].concat(),
        sound: true,
    }
}

/// Text as a part of a path or a query may hold it.
fn in_a_url(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'=' | b'&' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02x}"),
        })
        .collect()
}

/// What an endpoint is asked for, with something else somewhere.
fn parameters() -> BoxedStrategy<Value> {
    let hex_of =
        |bytes: BoxedStrategy<Vec<u8>>| bytes.prop_map(|bytes| json!(hex::encode(bytes))).boxed();
    let field = prop_oneof![
        (Just("transaction"), hex_of(transaction().boxed())),
        (Just("transaction"), hex_of(any_bytes().boxed())),
        (Just("value"), hex_of(vec(any::<u8>(), 30..34).boxed())),
        (Just("num"), edge_number().boxed()),
        (
            Just("num"),
            (0..40_i64).prop_map(|number| json!(number)).boxed()
        ),
        (Just("startNum"), edge_number().boxed()),
        (Just("endNum"), edge_number().boxed()),
        (
            Just("startNum"),
            (0..40_i64).prop_map(|number| json!(number)).boxed()
        ),
        (
            Just("endNum"),
            (0..200_i64).prop_map(|number| json!(number)).boxed()
        ),
        (
            Just("id_or_num"),
            "-?[0-9]{1,20}|[0-9a-f]{64}"
                .prop_map(|text| json!(text))
                .boxed()
        ),
        (Just("detail"), any_value()),
        (
            Just("visible"),
            any::<bool>().prop_map(|flag| json!(flag)).boxed()
        ),
        (Just("raw_data"), raw_data_json().boxed()),
        (Just("signature"), any_value()),
    ];
    (vec(field, 0..5), changes())
        .prop_map(|(fields, changes)| changed(fields.into_iter().collect(), &changes))
        .boxed()
}

/// The JSON of a transaction as /wallet/broadcasttransaction takes it.
fn raw_data_json() -> impl Strategy<Value = Value> {
    let good = json!({
        "contract": [{
            "type": "TriggerSmartContract",
            "parameter": {
                "type_url": "type.googleapis.com/protocol.TriggerSmartContract",
                "value": {
                    "owner_address": "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
                    "contract_address": "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
                    "data": "a9059cbb",
                },
            },
            "Permission_id": 2,
        }],
        "ref_block_bytes": "0001", "ref_block_hash": "0011223344556677", "expiration": 1, "timestamp": 1, "fee_limit": 1,
    });
    changes().prop_map(move |changes| changed(good.clone(), &changes))
}

/// A request to a node.
fn node_request() -> BoxedStrategy<Request> {
    let path =
        (prop::sample::select(&Endpoint::ALL), any::<bool>()).prop_map(|(endpoint, solid)| {
            format!(
                "/{}/{}",
                if solid { "walletsolidity" } else { "wallet" },
                endpoint.name()
            )
        });
    let path = prop_oneof![12 => path, 1 => any_text().prop_map(|text| format!("/wallet/{}", in_a_url(&text)))];
    let body = prop_oneof![
        6 => parameters().prop_map(|json| json.to_string().into_bytes()),
        1 => any_value().prop_map(|json| json.to_string().into_bytes()),
        2 => no_json(),
        1 => Just(vec![]),
    ];
    let headers = prop_oneof![
        4 => Just(String::new()),
        1 => Just("content-type: application/x-www-form-urlencoded\r\n".to_owned()),
        1 => "user-agent: [ -~]{0,60}\r\n",
    ];
    let post = (path.clone(), headers, body)
        .prop_map(|(path, headers, body)| request("POST", &path, &headers, &body));
    let query = (parameters(), any_text()).prop_map(|(json, text)| {
        let pairs = json.as_object().into_iter().flatten().map(|(key, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{key}={}", in_a_url(&value))
        });
        pairs.chain([in_a_url(&text)]).collect::<Vec<_>>().join("&")
    });
    let get =
        (path, query).prop_map(|(path, query)| request("GET", &format!("{path}?{query}"), "", b""));
    let sound = prop_oneof![4 => post, 1 => get].boxed();
    let broken =
        (sound.clone(), sluice_fuzz::bytes::damages()).prop_map(|(request, damages)| Request {
            bytes: sluice_fuzz::bytes::damaged(request.bytes, &damages),
            sound: false,
        });
    prop_oneof![6 => sound, 1 => broken].boxed()
}

/// One of every kind of fault.
fn rule() -> BoxedStrategy<Value> {
    let faults = vec![
        json!("accept_then_timeout"),
        json!({ "drop_then_timeout": { "how": "reset" } }),
        json!({ "delay": { "ms": 5, "before": true } }),
        json!({ "answer": { "code": "SIGERROR", "message": "m", "keep": true, "result": null } }),
        json!({ "body": { "status": 503, "json": { "a": [1] }, "text": "t", "keep": false } }),
        json!("empty"),
        json!("error"),
        json!({ "status": { "status": 429, "keep": true } }),
        json!("lite"),
        json!({ "patch": { "merge": { "txid": null, "code": 7 } } }),
        json!("wrong_txid"),
        json!({ "missing": { "fields": ["txid"] } }),
        json!("truncated"),
        json!("local_only"),
        json!({ "evict": { "after_ms": 3000 } }),
        json!({ "backend": { "node": 1 } }),
        json!("never_include"),
        json!({ "delay_inclusion": { "blocks": 3 } }),
        json!("include_at_expiration"),
        json!({ "receipt": { "result": "REVERT" } }),
        json!({ "resign": { "form": "high_s" } }),
        json!("strip_transactions"),
        json!({ "alter_ret": { "result": "77" } }),
        json!("gap"),
        json!("foreign_parent"),
        json!({ "behind": { "blocks": 2 } }),
        json!("leak_unsolid"),
    ];
    let whens = vec![
        json!({}),
        json!({ "node": 0 }),
        json!({ "endpoint": "blocks", "block": 3 }),
        json!({ "endpoint": "broadcast", "worker": "w" }),
        json!({ "endpoint": "walletsolidity/getnowblock" }),
    ];
    let frame = (
        prop::sample::select(faults),
        prop::sample::select(whens),
        0..3_u64,
        any::<bool>(),
    );
    (frame, numbers())
        .prop_map(|((fault, when, skip, once), numbers)| {
            let count = if once { json!(1) } else { Value::Null };
            let rule = json!({ "when": when, "do": fault, "skip": skip, "count": count });
            with_numbers(rule, &numbers)
        })
        .boxed()
}

/// Numbers to put in place of those in a request.
fn numbers() -> impl Strategy<Value = Vec<Option<Value>>> {
    let number = prop_oneof![3 => Just(None), 1 => edge_number().prop_map(Some)];
    vec(number, 8)
}

fn with_numbers(mut value: Value, numbers: &[Option<Value>]) -> Value {
    fn walk(value: &mut Value, numbers: &mut dyn Iterator<Item = &Option<Value>>) {
        match value {
            Value::Number(_) => {
                if let Some(Some(other)) = numbers.next() {
                    *value = other.clone();
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|inner| walk(inner, numbers)),
            Value::Object(fields) => fields.values_mut().for_each(|inner| walk(inner, numbers)),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    walk(&mut value, &mut numbers.iter());
    value
}

/// A request to the control path.
fn control_request() -> BoxedStrategy<Request> {
    let bodies = vec![
        ("produce", json!({ "blocks": 2 })),
        ("step", json!({ "ms": 6000 })),
        ("miss", json!({ "slots": 2 })),
        ("clock", json!({ "mode": "factor", "factor": 20.0 })),
        ("clock", json!({ "mode": "stepped" })),
        ("solidity", json!({ "stalled": false, "lag": 19 })),
        (
            "fork",
            json!({ "depth": 2, "blocks": 3, "missed": 1, "stay": [1] }),
        ),
        (
            "reorg",
            json!({ "depth": 1, "place": { "00".repeat(32): 1 }, "results": { "11".repeat(32): "REVERT" } }),
        ),
        (
            "wallets",
            json!({ "kind": "hmac", "owner": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "key": "00ff" }),
        ),
        (
            "wallets",
            json!({ "kind": "secp256k1", "owner": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
                "signer": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "permission_id": 2 }),
        ),
        (
            "nodes/0",
            json!({ "lag": 1, "gossip": false, "solid_behind": 2, "max_unsolidified": 54 }),
        ),
        (
            "nodes/1",
            json!({ "frozen": true, "connection": "unsynced", "lite": true, "disabled": ["getblock"] }),
        ),
        (
            "nodes/1",
            json!({ "frozen": false, "trx_cache": true, "leaks_unsolid": true, "history_switch": false }),
        ),
        ("evict", json!({ "txid": "22".repeat(32) })),
    ];
    let known = (
        prop::sample::select(bodies),
        numbers(),
        prop_oneof![2 => Just(vec![]), 1 => changes()],
    )
        .prop_map(|((path, body), numbers, changes)| {
            (
                path.to_owned(),
                changed(with_numbers(body, &numbers), &changes),
            )
        })
        .boxed();
    let inject = any_bytes()
        .prop_map(|bytes| {
            (
                "inject".to_owned(),
                json!({ "transaction": hex::encode(bytes) }),
            )
        })
        .boxed();
    let faults = vec(rule(), 1..4).prop_map(|rules| ("faults".to_owned(), Value::Array(rules)));
    let posted = prop_oneof![6 => known, 2 => inject, 3 => faults]
        .prop_map(|(path, body)| {
            request(
                "POST",
                &format!("/control/{path}"),
                "",
                body.to_string().as_bytes(),
            )
        })
        .boxed();
    let odd = (any_text(), no_json()).prop_map(|(path, body)| {
        request("POST", &format!("/control/{}", in_a_url(&path)), "", &body)
    });
    let looks = prop::sample::select(&[
        "status",
        "faults",
        "transactions",
        "tags",
        "totals",
        "requests",
        "blocks/3",
        "blocks/-1",
        "blocks/9223372036854775807",
        "log",
        "log?after=18446744073709551615&node=7",
        "log?txid=zz",
        "transactions/00",
        "nodes/0",
    ]);
    let looks = prop_oneof![
        looks.prop_map(str::to_owned),
        any_text().prop_map(|text| format!("log?tag={}", in_a_url(&text)))
    ]
    .prop_map(|path| request("GET", &format!("/control/{path}"), "", b""));
    let gone =
        (0..20_u64).prop_map(|id| request("DELETE", &format!("/control/faults/{id}"), "", b""));
    prop_oneof![8 => posted, 1 => odd, 2 => looks, 1 => gone].boxed()
}

fn network() -> MockNet {
    let config = Config {
        nodes: 2,
        clock: ClockMode::Stepped,
        foreign_per_block: 1,
        ..Config::default()
    };
    MockNet::start_blocking(config).expect("a network")
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://")
        .and_then(|address| address.parse().ok())
        .expect("a mock's address")
}

/// The answer to a request that HTTP knows: there is one, and it is not that something inside has broken.
fn answered(at: SocketAddr, request: &Request) -> Result<u16, TestCaseError> {
    let answer = ask(at, &request.bytes, PATIENCE);
    let status = answer
        .as_ref()
        .ok()
        .and_then(|answer| status(answer.as_deref()?));
    match status {
        Some(status) if status != 500 => Ok(status),
        other => Err(TestCaseError::fail(format!("{other:?} to {request:?}"))),
    }
}

#[test]
fn a_mock_node_answers_whatever_it_is_asked() {
    let network = network();
    let at = address(&network.url(0));
    let requests = vec(node_request(), 1..4);
    fuzz("mock_node_api", 150, requests, |requests| {
        for request in requests {
            if request.sound {
                answered(at, &request)?;
            } else {
                // What is no request, or only the beginning of one, may be left without an answer.
                let _ = ask(at, &request.bytes, IMPATIENCE);
            }
        }
        let now = request("POST", "/wallet/getnowblock", "", b"");
        prop_assert_eq!(answered(at, &now)?, 200);
        network.produce(1);
        Ok(())
    });
}

#[test]
fn a_mock_network_goes_on_whatever_its_control_path_is_told() {
    let network = network();
    let (at, control) = (address(&network.url(0)), address(&network.control_url()));
    let requests = vec(
        (
            control_request(),
            proptest::option::weighted(0.3, node_request()),
        ),
        1..6,
    );
    let stepped = json!({ "mode": "stepped" }).to_string();
    fuzz("mock_control", 150, requests, |requests| {
        for (to_control, to_node) in requests {
            answered(control, &to_control)?;
            if let Some(request) = to_node {
                // A fault may leave it without an answer.
                let _ = ask(at, &request.bytes, IMPATIENCE);
            }
        }
        prop_assert_eq!(
            answered(
                control,
                &request("POST", "/control/clock", "", stepped.as_bytes())
            )?,
            200
        );
        prop_assert_eq!(
            answered(control, &request("DELETE", "/control/faults", "", b""))?,
            200
        );
        prop_assert_eq!(
            answered(control, &request("GET", "/control/status", "", b""))?,
            200
        );
        answered(at, &request("POST", "/wallet/getnowblock", "", b""))?;
        let before = network.status().head;
        prop_assert_eq!(
            answered(control, &request("POST", "/control/produce", "", b""))?,
            200
        );
        prop_assert_eq!(network.status().head, before + 1);
        Ok(())
    });
}

#[test]
fn a_transaction_that_a_mock_node_is_given_comes_back_as_it_was() {
    let network = network();
    let control = address(&network.control_url());
    fuzz("mock_inject", 100, transaction(), |bytes| {
        let body = json!({ "transaction": hex::encode(&bytes) }).to_string();
        answered(
            control,
            &request("POST", "/control/inject", "", body.as_bytes()),
        )?;
        network.produce(1);
        let head = network.status().head;
        let block = network.block_bytes(head).expect("the head is there");
        let read =
            sluice_core::block::decode_block(&block).expect("the network's blocks are blocks");
        prop_assert!(read.root_holds);
        let given = sluice_core::proto::Transaction::decode(&bytes[..]).expect("our own bytes");
        for transaction in &read.transactions {
            let ours = transaction.raw_data == given.raw_data;
            prop_assert!(!ours || transaction.signatures == given.signature);
        }
        Ok(())
    });
}

#[test]
fn the_control_path_refuses_what_would_never_end_or_leaves_what_numbers_hold() {
    let network = network();
    let control = address(&network.control_url());
    for (path, body) in [
        ("produce", json!({ "blocks": i64::MAX })),
        ("step", json!({ "ms": u64::MAX })),
        ("fork", json!({ "depth": 1, "blocks": u32::MAX })),
        ("clock", json!({ "mode": "factor", "factor": 1e300 })),
        ("clock", json!({ "mode": "factor", "factor": 1e-300 })),
        (
            "faults",
            json!({ "do": { "behind": { "blocks": i64::MIN } } }),
        ),
    ] {
        let request = request(
            "POST",
            &format!("/control/{path}"),
            "",
            body.to_string().as_bytes(),
        );
        assert_eq!(
            answered(control, &request).expect("an answer"),
            400,
            "{path} {body}"
        );
    }
    let settings = json!({ "solid_behind": i64::MIN }).to_string();
    let request = request("POST", "/control/nodes/0", "", settings.as_bytes());
    assert_eq!(answered(control, &request).expect("an answer"), 200);
    network.produce(1);
}
