//! What is solid, and what /walletsolidity shows of it.

use serde_json::{Value, json};
use sluice_mock_node::{Config, NodeSettings};

use crate::scene::{Scene, number_of, stepped};

async fn solid_head(scene: &Scene, node: usize) -> i64 {
    number_of(
        &scene
            .post(node, "/walletsolidity/getnowblock", &json!({}))
            .await,
    )
}

fn numbers(answer: &Value) -> Vec<i64> {
    answer["block"]
        .as_array()
        .expect("a list")
        .iter()
        .map(number_of)
        .collect()
}

#[tokio::test]
async fn a_block_is_solid_once_the_lag_lies_on_top_of_it() {
    let scene = Scene::with(Config {
        solidity_lag: 3,
        ..stepped()
    })
    .await;
    assert_eq!(solid_head(&scene, 0).await, 27);
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    let ask = json!({ "value": envelope.id() });
    for _ in 0..3 {
        scene.net.produce(1);
        for endpoint in ["gettransactionbyid", "gettransactioninfobyid"] {
            let path = format!("/walletsolidity/{endpoint}");
            assert_eq!(scene.post(0, &path, &ask).await, json!({}));
        }
        let ask_block = json!({ "num": 31 });
        assert_eq!(
            scene
                .post(0, "/walletsolidity/getblockbynum", &ask_block)
                .await,
            json!({})
        );
        assert!(!scene.report(&envelope).solid);
    }
    scene.net.produce(1);
    assert_eq!(solid_head(&scene, 0).await, 31);
    let info = scene
        .post(0, "/walletsolidity/gettransactioninfobyid", &ask)
        .await;
    assert_eq!(info["blockNumber"], 31);
    assert!(scene.report(&envelope).solid);
}

#[tokio::test]
async fn solidity_can_stall_while_blocks_are_made_and_go_on_later() {
    let scene = Scene::new().await;
    scene.net.stall_solidity(true);
    scene.net.produce(60);
    assert_eq!((scene.head(0).await, solid_head(&scene, 0).await), (90, 11));
    assert!(scene.net.produce_until_solid(12).is_err());
    scene.net.stall_solidity(false);
    assert_eq!(solid_head(&scene, 0).await, 11);
    scene.net.produce(1);
    assert_eq!(solid_head(&scene, 0).await, 72);
    scene.net.produce_until_solid(80).expect("not stalled");
    assert_eq!(solid_head(&scene, 0).await, 80);
}

#[tokio::test]
async fn a_longer_lag_takes_nothing_back() {
    let scene = Scene::with(Config {
        solidity_lag: 3,
        ..stepped()
    })
    .await;
    scene.net.set_solidity_lag(19);
    scene.net.produce(5);
    assert_eq!(solid_head(&scene, 0).await, 27);
    scene.net.produce(12);
    assert_eq!(solid_head(&scene, 0).await, 28);
}

#[tokio::test]
async fn the_solid_view_may_be_a_block_behind_what_nodeinfo_says() {
    let node = NodeSettings {
        solid_behind: 1,
        ..NodeSettings::default()
    };
    let scene = Scene::with(Config { node, ..stepped() }).await;
    let info = scene.get(0, "/wallet/getnodeinfo").await;
    assert!(
        info["solidityBlock"]
            .as_str()
            .is_some_and(|text| text.starts_with("Num:11,"))
    );
    assert_eq!(solid_head(&scene, 0).await, 10);
    assert_eq!(
        scene
            .post(0, "/walletsolidity/getblockbynum", &json!({ "num": 11 }))
            .await,
        json!({})
    );
}

#[tokio::test]
async fn a_node_that_lags_has_an_older_solid_block_too() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .change_node(1, |node| node.lag = 5)
        .expect("there is a node 1");
    scene.net.produce(10);
    assert_eq!(solid_head(&scene, 0).await, 21);
    assert_eq!((scene.head(1).await, solid_head(&scene, 1).await), (35, 16));
}

#[tokio::test]
async fn a_solid_list_stops_at_the_solid_block_unless_the_node_leaks() {
    let scene = Scene::new().await;
    let ask = json!({ "startNum": 9, "endNum": 40 });
    let path = "/walletsolidity/getblockbylimitnext";
    assert_eq!(numbers(&scene.post(0, path, &ask).await), [9, 10, 11]);
    scene
        .net
        .change_node(0, |node| node.leaks_unsolid = true)
        .expect("there is a node 0");
    assert_eq!(numbers(&scene.post(0, path, &ask).await).last(), Some(&30));
    // One at a time it does not leak.
    assert_eq!(
        scene
            .post(0, "/walletsolidity/getblockbynum", &json!({ "num": 12 }))
            .await,
        json!({})
    );
    assert_eq!(solid_head(&scene, 0).await, 11);
}
