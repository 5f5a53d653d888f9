//! Life in the pools: who learns of a transaction, how long it is kept, and how hard it is to bring one back.

use serde_json::json;
use sluice_mock_node::{Became, Config, Fault, Rule};

use crate::scene::{Scene, stepped, text};

fn three_nodes() -> Config {
    Config {
        nodes: 3,
        ..stepped()
    }
}

async fn pending_at(scene: &Scene, node: usize, txid: &str) -> bool {
    let ask = json!({ "value": txid });
    scene
        .post(node, "/wallet/gettransactionfrompending", &ask)
        .await
        != json!({})
}

#[tokio::test]
async fn gossip_brings_a_transaction_into_every_pool_and_accepts_it_once() {
    let scene = Scene::with(three_nodes()).await;
    let envelope = scene.envelope(1);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    for node in 0..3 {
        assert!(
            pending_at(&scene, node, &envelope.id()).await,
            "node {node}"
        );
    }
    assert_eq!(
        scene.said_of(2, &envelope).await,
        "DUP_TRANSACTION_ERROR: Dup transaction."
    );
    let report = scene.report(&envelope);
    assert_eq!((report.sends, report.accepts, report.kept), (2, 1, 1));
    scene.net.produce(1);
    for node in 0..3 {
        assert!(
            !pending_at(&scene, node, &envelope.id()).await,
            "node {node}"
        );
    }
}

#[tokio::test]
async fn a_pending_transaction_shows_success_by_id_and_has_no_receipt() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    let ask = json!({ "value": envelope.id() });
    let shown = scene.post(0, "/wallet/gettransactionbyid", &ask).await;
    assert_eq!(shown["ret"], json!([{ "contractRet": "SUCCESS" }]));
    assert_eq!(
        scene
            .post(0, "/wallet/gettransactionfrompending", &ask)
            .await,
        shown
    );
    assert_eq!(
        scene.post(0, "/wallet/gettransactioninfobyid", &ask).await,
        json!({})
    );
    assert_eq!(
        scene
            .post(0, "/walletsolidity/gettransactionbyid", &ask)
            .await,
        json!({})
    );
    let list = scene
        .post(0, "/wallet/gettransactionlistfrompending", &json!({}))
        .await;
    assert_eq!(list, json!({ "txId": [envelope.id()] }));
    assert_eq!(
        scene.get(0, "/wallet/getpendingsize").await,
        json!({ "pendingSize": 1 })
    );
}

#[tokio::test]
async fn after_60_seconds_without_a_block_for_it_a_pool_drops_a_transaction() {
    let scene = Scene::with(three_nodes()).await;
    scene
        .net
        .add_fault(Rule::new(Fault::NeverInclude {}))
        .expect("a rule");
    let envelope = scene.envelope_until(1, scene.net.now_ms() + 300_000);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.step(60_000);
    assert_eq!(scene.report(&envelope).became, Became::Waiting);
    scene.net.step(3_000);
    assert_eq!(scene.report(&envelope).became, Became::Dropped);
    let ask = json!({ "value": envelope.id() });
    assert_eq!(
        scene.post(0, "/wallet/gettransactionbyid", &ask).await,
        json!({})
    );
}

#[tokio::test]
async fn no_block_no_time_out_and_the_first_block_after_a_stall_takes_it() {
    let scene = Scene::new().await;
    let envelope = scene.envelope_until(1, scene.net.now_ms() + 600_000);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.miss(100);
    scene.net.step(301_000);
    assert_eq!(scene.head(0).await, 30);
    assert_eq!(scene.report(&envelope).became, Became::Waiting);
    scene.net.step(3_000);
    assert_eq!(scene.report(&envelope).block, Some(31));
}

#[tokio::test]
async fn a_dropped_transaction_sent_again_is_pooled_and_reaches_nobody_for_an_hour() {
    let scene = Scene::with(three_nodes()).await;
    let rule = scene
        .net
        .add_fault(Rule::new(Fault::NeverInclude {}))
        .expect("a rule");
    let envelope = scene.envelope_until(1, scene.net.now_ms() + 5_400_000);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.step(63_000);
    assert!(scene.net.remove_fault(rule));
    for node in 0..3 {
        let said = scene.said_of(node, &envelope).await;
        assert_eq!(
            said, "NOT_ENOUGH_EFFECTIVE_CONNECTION: P2P broadcast failed.",
            "node {node}"
        );
        assert!(
            pending_at(&scene, node, &envelope.id()).await,
            "pooled all the same"
        );
    }
    scene.net.produce(1);
    assert_eq!(
        scene.report(&envelope).block,
        None,
        "the producers have seen it and do not ask"
    );
    assert_eq!(scene.report(&envelope).accepts, 1);
    scene.net.step(3_600_000);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.produce(1);
    assert!(scene.report(&envelope).block.is_some());
}

#[tokio::test]
async fn any_holder_of_the_bytes_can_bring_a_dropped_transaction_in_while_it_lives() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    assert_eq!(scene.net.evict(&envelope.txid), 2);
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).became, Became::Dropped);
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).block, Some(32));
}

#[tokio::test]
async fn a_node_that_is_cut_off_answers_success_and_tells_nobody() {
    let scene = Scene::with(three_nodes()).await;
    scene
        .net
        .change_node(1, |node| node.gossip = false)
        .expect("there is a node 1");
    let envelope = scene.envelope(1);
    assert_eq!(scene.code_of(1, &envelope).await, "SUCCESS");
    assert!(!pending_at(&scene, 0, &envelope.id()).await);
    scene.net.produce(1);
    assert_eq!(scene.report(&envelope).block, None);
    // Elsewhere it is new: accepted a second time, and paid once.
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.produce(1);
    let report = scene.report(&envelope);
    assert_eq!((report.accepts, report.block), (2, Some(32)));
    // Nor does it hear of others'.
    let other = scene.envelope(2);
    scene.send_to(0, &other).await;
    assert!(!pending_at(&scene, 1, &other.id()).await);
}

#[tokio::test]
async fn more_than_the_limit_in_a_pool_is_server_busy_and_says_nothing_of_the_transaction() {
    let scene = Scene::with(Config {
        pool_limit: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .add_fault(Rule::new(Fault::NeverInclude {}))
        .expect("a rule");
    let mut first = None;
    for number in 1..=3 {
        let envelope = scene.envelope(number);
        assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
        first.get_or_insert(envelope);
    }
    assert_eq!(scene.code_of(0, &scene.envelope(4)).await, "SERVER_BUSY");
    let first = first.expect("three were sent");
    assert_eq!(scene.said_of(0, &first).await, "SERVER_BUSY: Server busy.");
}

#[tokio::test]
async fn a_pool_forgets_what_a_block_made_impossible() {
    let scene = Scene::with(three_nodes()).await;
    scene
        .net
        .add_fault(Rule::new(Fault::NeverInclude {}))
        .expect("a rule");
    let envelope = scene.envelope_until(1, scene.net.now_ms() + 6_000);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.produce(2);
    let report = scene.report(&envelope);
    assert_eq!(report.became, Became::Expired);
    let dropped = serde_json::to_string(&report.steps).expect("JSON");
    assert!(
        dropped.contains("TRANSACTION_EXPIRATION_ERROR"),
        "{dropped}"
    );
}

#[tokio::test]
async fn a_frozen_node_keeps_its_pool_and_its_view() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .change_node(1, |node| node.frozen = true)
        .expect("there is a node 1");
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(5);
    assert_eq!((scene.head(0).await, scene.head(1).await), (35, 30));
    let ask = json!({ "value": envelope.id() });
    assert_eq!(
        scene.post(1, "/wallet/gettransactioninfobyid", &ask).await,
        json!({})
    );
    assert!(pending_at(&scene, 1, &envelope.id()).await);
    scene
        .net
        .change_node(1, |node| node.frozen = false)
        .expect("there is a node 1");
    assert_eq!(scene.head(1).await, 35);
    let info = scene.post(1, "/wallet/gettransactioninfobyid", &ask).await;
    assert_eq!(text(&info["id"]), envelope.id());
    assert!(!pending_at(&scene, 1, &envelope.id()).await);
}
