//! References to blocks: 65,536 slots, each with the newest block that falls into it.

use sluice_core::envelope::{ref_block_bytes, ref_block_hash};
use sluice_mock_node::{Config, ForkPlan};

use crate::scene::{Envelope, Scene, stepped};

/// An envelope that refers to this block of the chain.
async fn referring_to(scene: &Scene, number: u8, block: i64) -> Envelope {
    let shown = scene.block(0, block).await;
    let mut spec = scene.spec(number);
    spec.ref_block_number = block;
    hex::decode_to_slice(
        shown["blockID"].as_str().expect("an id"),
        &mut spec.ref_block_id,
    )
    .expect("hex");
    scene.sign(number, &spec)
}

#[tokio::test]
async fn any_block_up_to_the_head_can_be_referred_to() {
    let scene = Scene::new().await;
    for (number, block) in [(1, 0), (2, 1), (3, 11), (4, 30)] {
        let envelope = referring_to(&scene, number, block).await;
        assert_eq!(
            scene.code_of(0, &envelope).await,
            "SUCCESS",
            "block {block}"
        );
    }
    scene.net.produce(1);
    assert_eq!(
        scene.block(0, 31).await["transactions"]
            .as_array()
            .map(Vec::len),
        Some(4)
    );
}

#[tokio::test]
async fn the_right_number_with_another_hash_is_a_tapos_error() {
    let scene = Scene::new().await;
    let mut spec = scene.spec(1);
    spec.ref_block_id[15] ^= 1;
    assert_eq!(
        scene.said_of(0, &scene.sign(1, &spec)).await,
        "TAPOS_ERROR: Tapos check error."
    );
    // The bytes outside of the middle eight do not count.
    let mut spec = scene.spec(2);
    spec.ref_block_id[16] ^= 1;
    assert_eq!(scene.code_of(0, &scene.sign(2, &spec)).await, "SUCCESS");
}

#[tokio::test]
async fn a_node_that_lags_does_not_know_the_newest_reference() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .change_node(1, |node| node.lag = 2)
        .expect("there is a node 1");
    scene.net.produce(3);
    assert_eq!((scene.head(0).await, scene.head(1).await), (33, 31));
    let envelope = referring_to(&scene, 1, 33).await;
    assert_eq!(scene.code_of(1, &envelope).await, "TAPOS_ERROR");
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    // When it has the block it takes it: refused once says nothing for ever. (Its peers have it from the other node.)
    scene.net.produce(2);
    assert_eq!(scene.head(1).await, 33);
    let said = scene.said_of(1, &envelope).await;
    assert_eq!(
        said,
        "NOT_ENOUGH_EFFECTIVE_CONNECTION: P2P broadcast failed."
    );
    assert_eq!(scene.net.status().nodes[1].pool, 1);
}

#[tokio::test]
async fn a_reference_to_an_erased_block_is_worth_nothing_any_more() {
    let scene = Scene::new().await;
    let envelope = referring_to(&scene, 1, 30).await;
    scene
        .net
        .fork(1, 2, 0, ForkPlan::default(), &[])
        .expect("a fork");
    assert_eq!(scene.code_of(0, &envelope).await, "TAPOS_ERROR");
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.produce(2);
    assert_eq!(scene.report(&envelope).block, None);
}

#[tokio::test]
async fn a_reference_is_good_for_65535_blocks_at_a_broadcast_and_one_more_in_a_block() {
    let scene = Scene::with(Config {
        history: 65_540,
        ..stepped()
    })
    .await;
    let too_old = referring_to(&scene, 1, 4).await;
    let oldest = referring_to(&scene, 2, 5).await;
    assert_eq!(ref_block_bytes(4), ref_block_bytes(65_540));
    assert_ne!(ref_block_bytes(4), ref_block_bytes(5));
    assert_eq!(ref_block_hash(&[7; 32]), [7; 8]);
    assert_eq!(scene.code_of(0, &too_old).await, "TAPOS_ERROR");
    assert_eq!(scene.code_of(0, &oldest).await, "SUCCESS");
    // Block 65541 takes the slot of block 5 only after its transactions have run.
    scene.net.produce(1);
    assert_eq!(scene.report(&oldest).block, Some(65_541));
    let late = referring_to(&scene, 3, 5).await;
    assert_eq!(scene.code_of(0, &late).await, "TAPOS_ERROR");
}
