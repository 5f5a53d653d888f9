//! The control path, over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_core::signature::hmac_sign;
use sluice_mock_node::{ClockMode, Config};

use crate::scene::{INTERVAL_MS, START_MS, Scene, stepped, text};

async fn call(
    scene: &Scene,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let mut request = scene.client.request(
        method,
        format!("{}/control/{path}", scene.net.control_url()),
    );
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let response = request.send().await.expect("an answer");
    (response.status(), response.json().await.expect("JSON"))
}

async fn post(scene: &Scene, path: &str, body: Value) -> Value {
    let (status, answer) = call(scene, Method::POST, path, Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    answer
}

async fn get(scene: &Scene, path: &str) -> Value {
    let (status, answer) = call(scene, Method::GET, path, None).await;
    assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    answer
}

async fn refused(scene: &Scene, method: Method, path: &str, body: Value) -> String {
    let (status, answer) = call(scene, method, path, Some(body)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {answer}");
    text(&answer["error"])
}

#[tokio::test]
async fn blocks_and_time_are_moved_by_hand() {
    let scene = Scene::new().await;
    let status = get(&scene, "status").await;
    assert_eq!(
        (&status["head"], &status["solid"]),
        (&json!(30), &json!(11))
    );
    assert_eq!(status["genesis"], hex::encode(scene.net.genesis()));
    assert_eq!(status["clock"], json!({ "mode": "stepped" }));
    assert_eq!(post(&scene, "produce", json!({})).await["head"], 31);
    assert_eq!(
        post(&scene, "produce", json!({ "blocks": 4 })).await["head"],
        35
    );
    let status = post(&scene, "step", json!({ "ms": 7_000 })).await;
    assert_eq!(status["head"], 37);
    assert_eq!(status["now_ms"], START_MS + 5 * INTERVAL_MS + 7_000);
    post(&scene, "miss", json!({ "slots": 2 })).await;
    let status = post(&scene, "produce", json!({ "blocks": 1 })).await;
    assert_eq!(status["head_ms"], START_MS + 10 * INTERVAL_MS);
    let status = post(&scene, "solidity", json!({ "stalled": true })).await;
    assert_eq!(status["stalled"], true);
    let before = status["solid"].clone();
    assert_eq!(
        post(&scene, "produce", json!({ "blocks": 9 })).await["solid"],
        before
    );
    let status = post(&scene, "solidity", json!({ "stalled": false, "lag": 2 })).await;
    assert_eq!(status["solidity_lag"], 2);
    let block = get(&scene, "blocks/37").await;
    assert_eq!(
        hex::decode(text(&block["bytes"])).ok(),
        scene.net.block_bytes(37)
    );
}

#[tokio::test]
async fn faults_wallets_and_nodes_are_set_over_the_control_path() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    let rules = json!([
        { "do": "accept_then_timeout", "count": 1, "when": { "worker": "one" }, "label": "first" },
        { "do": { "answer": { "code": "SERVER_BUSY" } }, "count": 1 },
    ]);
    let added = post(&scene, "faults", rules).await;
    assert_eq!(added, json!({ "ids": [1, 2] }));
    let one = post(
        &scene,
        "faults",
        json!({ "do": "strip_transactions", "when": { "block": 3 } }),
    )
    .await;
    assert_eq!(one, json!({ "ids": [3] }));
    assert_eq!(scene.code_of(0, &scene.envelope(1)).await, "SERVER_BUSY");
    let listed = get(&scene, "faults").await;
    assert_eq!(listed["struck"], json!({ "answer": 1 }));
    assert_eq!(listed["rules"][1]["struck"], 1);
    assert_eq!(listed["rules"][0]["label"], "first");
    let (status, _) = call(&scene, Method::DELETE, "faults/1", None).await;
    assert_eq!(status, StatusCode::OK);
    refused(&scene, Method::DELETE, "faults/1", json!({})).await;
    let (_, _) = call(&scene, Method::DELETE, "faults", None).await;
    assert_eq!(get(&scene, "faults").await["rules"], json!([]));

    let owner = scene.owner().to_string();
    post(
        &scene,
        "wallets",
        json!({ "kind": "hmac", "owner": owner, "key": "0102" }),
    )
    .await;
    let mut envelope = scene.envelope(2);
    assert_eq!(scene.code_of(0, &envelope).await, "SIGERROR");
    envelope.signature = hmac_sign(&[1, 2], &envelope.txid).to_vec();
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    post(
        &scene,
        "wallets",
        json!({ "kind": "secp256k1", "owner": owner, "signer": owner }),
    )
    .await;
    assert_eq!(scene.code_of(0, &scene.envelope(3)).await, "SUCCESS");

    let status = post(&scene, "nodes/1", json!({ "lag": 3, "gossip": false })).await;
    assert_eq!(status["nodes"][1]["settings"]["lag"], 3);
    let status = post(&scene, "nodes/1", json!({ "connection": "alone" })).await;
    assert_eq!(
        status["nodes"][1]["settings"]["lag"], 3,
        "what is not named stays"
    );
    assert_eq!(scene.code_of(1, &scene.envelope(4)).await, "NO_CONNECTION");
}

#[tokio::test]
async fn forks_injections_and_evictions_are_made_over_the_control_path() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    assert_eq!(
        post(&scene, "evict", json!({ "txid": envelope.id() })).await,
        json!({ "pools": 2 })
    );
    let bytes = hex::encode(envelope.bytes());
    let injected = post(&scene, "inject", json!({ "transaction": bytes })).await;
    assert_eq!(injected, json!({ "txid": envelope.id() }));
    scene.net.produce(2);
    let id = envelope.id();
    let plan = json!({ "depth": 2, "place": { &id: 1 }, "results": { &id: "OUT_OF_TIME" } });
    let report = post(&scene, "fork", plan).await;
    assert_eq!(report["common"], 30);
    assert_eq!(
        report["added"].as_array().map(Vec::len),
        Some(3),
        "one more than were erased"
    );
    let transaction = get(&scene, &format!("transactions/{id}")).await;
    assert_eq!(transaction["block"], 32);
    assert_eq!(transaction["result"], "OUT_OF_TIME");
    assert_eq!(get(&scene, "tags").await[envelope.tag()]["included"], 1);
    assert_eq!(get(&scene, "totals").await, json!([]));
    assert_eq!(get(&scene, "transactions").await[0]["txid"], id);
    let log = get(&scene, &format!("log?txid={id}&node=0&after=0")).await;
    assert_eq!(log[0]["answered"], "SUCCESS");
    assert_eq!(get(&scene, "log?worker=nobody").await, json!([]));
    let requests = get(&scene, "requests").await;
    assert_eq!(
        requests[0],
        json!({ "node": 0, "path": "/wallet/broadcasthex", "worker": null, "count": 1 })
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_its_reason() {
    let scene = Scene::new().await;
    let post = |path: &'static str, body| refused(&scene, Method::POST, path, body);
    assert!(post("fork", json!({ "depth": 25 })).await.contains("solid"));
    assert!(
        post("produce", json!({ "block": 1 }))
            .await
            .contains("unknown field")
    );
    assert!(
        post("faults", json!({ "do": "no_such" }))
            .await
            .contains("no_such")
    );
    let bad = json!({ "do": { "receipt": { "result": "FINE" } } });
    assert!(post("faults", bad).await.contains("FINE"));
    assert!(
        post(
            "faults",
            json!({ "do": "lite", "when": { "endpoint": "nowhere" } })
        )
        .await
        .contains("nowhere")
    );
    assert!(post("nodes/7", json!({})).await.contains("no node 7"));
    assert!(post("nodes/0", json!({ "lags": 1 })).await.contains("lags"));
    assert!(
        post("clock", json!({ "mode": "factor", "factor": 0.0 }))
            .await
            .contains("a factor of 0 is not from")
    );
    let bad = json!({ "kind": "hmac", "owner": "T", "key": "00" });
    assert!(post("wallets", bad).await.contains("address"));
    assert!(
        post("inject", json!({ "transaction": "0a05" }))
            .await
            .contains("no transaction")
    );
    assert!(
        refused(&scene, Method::GET, "transactions/00", json!({}))
            .await
            .contains("no txid")
    );
    // A list with one bad rule adds none.
    let rules = json!([{ "do": "lite" }, { "do": "lite", "when": { "node": 9 } }]);
    post("faults", rules).await;
    assert_eq!(get(&scene, "faults").await["rules"], json!([]));
}

#[tokio::test]
async fn time_can_pass_by_itself_at_any_pace() {
    let config = Config {
        clock: ClockMode::Factor { factor: 300.0 },
        ..stepped()
    };
    let scene = Scene::with(config).await;
    // A block every 10 ms.
    wait_for(&scene, 40).await;
    post(&scene, "clock", json!({ "mode": "stepped" })).await;
    let before = get(&scene, "status").await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let after = get(&scene, "status").await;
    assert_eq!(
        (&before["head"], &before["now_ms"]),
        (&after["head"], &after["now_ms"])
    );
    let head = before["head"].as_i64().expect("a number");
    post(
        &scene,
        "clock",
        json!({ "mode": "factor", "factor": 1000.0 }),
    )
    .await;
    wait_for(&scene, head + 10).await;
}

#[tokio::test]
async fn in_real_time_a_block_a_second_comes_every_second() {
    let config = Config {
        clock: ClockMode::Real,
        start_ms: None,
        block_interval_ms: 1_000,
        ..stepped()
    };
    let scene = Scene::with(config).await;
    let status = scene.net.status();
    let machine = sluice_mock_node::call::wall_ms();
    assert!(
        (status.now_ms - machine).abs() < 1_000,
        "the machine's time"
    );
    assert!(status.head_ms <= status.now_ms && status.now_ms - status.head_ms <= 1_000);
    wait_for(&scene, 32).await;
    let status = scene.net.status();
    assert!(status.head_ms <= status.now_ms);
    assert_eq!(status.head_ms % 1_000, 0);
}

async fn wait_for(scene: &Scene, head: i64) {
    let patience = std::time::Duration::from_secs(20);
    let waiting = async {
        while scene.net.status().head < head {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(patience, waiting)
        .await
        .expect("blocks come");
}
