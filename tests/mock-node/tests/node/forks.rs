//! Forks: blocks that are not solid are erased, and their transactions move, end otherwise, or are lost.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use sluice_mock_node::{Became, Config, ForkPlan, Outcome};

use crate::scene::{Scene, number_of, stepped, text, time_of};

#[tokio::test]
async fn a_fork_replaces_blocks_above_the_solid_one_by_others_and_one_more() {
    let scene = Scene::new().await;
    let mut before = Vec::new();
    for number in 28..=30 {
        before.push(scene.block(0, number).await);
    }
    let report = scene
        .net
        .fork(2, 3, 0, ForkPlan::default(), &[])
        .expect("a fork");
    assert_eq!(report.common, 28);
    assert_eq!(
        report.erased,
        [text(&before[1]["blockID"]), text(&before[2]["blockID"])]
    );
    assert_eq!(scene.head(0).await, 31);
    let mut parent = before[0].clone();
    for (number, id) in (29..=31).zip(&report.added) {
        let block = scene.block(0, number).await;
        assert_eq!(text(&block["blockID"]), *id);
        assert!(!report.erased.contains(id));
        assert_eq!(
            block["block_header"]["raw_data"]["parentHash"],
            parent["blockID"]
        );
        assert!(time_of(&block) > time_of(&parent));
        parent = block;
    }
    assert_eq!(scene.net.status().solid, 12);
}

#[tokio::test]
async fn what_is_solid_cannot_be_erased() {
    let scene = Scene::new().await;
    let refused = scene
        .net
        .fork(20, 21, 0, ForkPlan::default(), &[])
        .expect_err("too deep");
    assert!(refused.contains("block 11 is solid"), "{refused}");
    assert!(scene.net.fork(0, 1, 0, ForkPlan::default(), &[]).is_err());
    assert!(scene.net.fork(3, 2, 0, ForkPlan::default(), &[]).is_err());
    scene
        .net
        .fork(19, 20, 0, ForkPlan::default(), &[])
        .expect("down to the solid block");
    assert_eq!(
        number_of(
            &scene
                .post(0, "/walletsolidity/getnowblock", &json!({}))
                .await
        ),
        12
    );
}

#[tokio::test]
async fn the_transactions_of_erased_blocks_come_into_the_new_ones() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(3);
    assert_eq!(scene.report(&envelope).block, Some(31));
    scene
        .net
        .fork(2, 3, 0, ForkPlan::default(), &[])
        .expect("a fork above it");
    assert_eq!(scene.report(&envelope).block, Some(31));
    scene
        .net
        .fork(5, 6, 0, ForkPlan::default(), &[])
        .expect("a fork below it");
    assert_eq!(scene.report(&envelope).block, Some(30));
}

#[tokio::test]
async fn a_transaction_may_move_end_otherwise_or_be_lost() {
    let scene = Scene::new().await;
    let [moved, failed, lost] = [1, 2, 3].map(|number| scene.envelope(number));
    for envelope in [&moved, &failed, &lost] {
        scene.send_to(0, envelope).await;
    }
    scene.net.produce(4);
    let plan = ForkPlan {
        drop: HashSet::from([lost.txid]),
        place: HashMap::from([(moved.txid, 2)]),
        results: HashMap::from([(failed.txid, Outcome::parse("REVERT").expect("a result"))]),
    };
    scene.net.fork(4, 5, 0, plan, &[]).expect("a fork");

    assert_eq!(scene.report(&moved).block, Some(33));
    assert_eq!(scene.report(&moved).result.as_deref(), Some("SUCCESS"));
    assert_eq!(scene.report(&failed).block, Some(31));
    assert_eq!(scene.report(&failed).result.as_deref(), Some("REVERT"));
    assert_eq!(scene.report(&lost).block, None);
    // The node that had it in a block has it in its pool again; nobody asks it for the bytes.
    assert_eq!(scene.report(&lost).became, Became::Waiting);
    scene.net.step(63_000);
    assert_eq!(scene.report(&lost).became, Became::Expired);
}

#[tokio::test]
async fn a_fork_may_begin_with_missed_slots_and_leave_a_transaction_behind() {
    let scene = Scene::new().await;
    let envelope = scene.envelope_until(1, scene.net.now_ms() + 6_000);
    scene.send_to(0, &envelope).await;
    scene.net.produce(2);
    assert_eq!(scene.report(&envelope).block, Some(31));
    let plan = ForkPlan {
        place: HashMap::from([(envelope.txid, 1)]),
        ..ForkPlan::default()
    };
    scene.net.fork(2, 3, 1, plan, &[]).expect("a fork");
    let report = scene.report(&envelope);
    assert_eq!((report.block, report.became), (None, Became::Expired));
}

#[tokio::test]
async fn a_node_that_does_not_hear_of_a_fork_stays_on_its_branch() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(2);
    let plan = ForkPlan {
        drop: HashSet::from([envelope.txid]),
        ..ForkPlan::default()
    };
    scene.net.fork(2, 3, 0, plan, &[1]).expect("a fork");
    let ask = json!({ "value": envelope.id() });
    assert_eq!(
        scene.post(0, "/wallet/gettransactioninfobyid", &ask).await,
        json!({})
    );
    let info = scene.post(1, "/wallet/gettransactioninfobyid", &ask).await;
    assert_eq!(info["blockNumber"], 31);
    assert_ne!(
        scene.block(0, 31).await["blockID"],
        scene.block(1, 31).await["blockID"]
    );
    scene
        .net
        .change_node(1, |node| node.frozen = false)
        .expect("there is a node 1");
    assert_eq!(scene.block(0, 31).await, scene.block(1, 31).await);
    assert_eq!(scene.head(1).await, 33);
    assert_eq!(
        scene.post(1, "/wallet/gettransactioninfobyid", &ask).await,
        json!({})
    );
}

#[tokio::test]
async fn foreign_transactions_survive_a_fork_without_twins() {
    let scene = Scene::with(Config {
        foreign_per_block: 3,
        ..stepped()
    })
    .await;
    scene
        .net
        .fork(10, 11, 0, ForkPlan::default(), &[])
        .expect("a fork");
    for number in 21..=31 {
        let block = scene.block(0, number).await;
        assert_eq!(
            block["transactions"].as_array().map(Vec::len),
            Some(3),
            "block {number}"
        );
    }
}
