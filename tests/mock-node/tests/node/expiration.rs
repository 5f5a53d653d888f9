//! When a transaction is too old: at a broadcast the next slot decides, in a block the parent's time, and never the time
//! of the block that holds it.

use sluice_mock_node::{Became, Config, Fault, Rule};

use crate::scene::{INTERVAL_MS, START_MS, Scene, stepped, time_of, txids_of};

#[tokio::test]
async fn a_transaction_may_be_in_the_first_block_stamped_at_its_expiration() {
    let scene = Scene::new().await;
    let envelope = scene.envelope_until(1, START_MS + INTERVAL_MS);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.produce(1);
    let block = scene.block(0, 31).await;
    assert_eq!(time_of(&block), START_MS + INTERVAL_MS);
    assert_eq!(txids_of(&block), [envelope.id()]);
}

#[tokio::test]
async fn after_missed_slots_it_may_be_in_a_block_stamped_long_past_its_expiration() {
    let scene = Scene::new().await;
    let envelope = scene.envelope_until(1, START_MS + INTERVAL_MS);
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.miss(99);
    scene.net.produce(1);
    let block = scene.block(0, 31).await;
    assert_eq!(time_of(&block), START_MS + 100 * INTERVAL_MS);
    assert_eq!(txids_of(&block), [envelope.id()]);
}

#[tokio::test]
async fn it_is_in_no_block_after_the_first_one_at_or_past_its_expiration() {
    let scene = Scene::new().await;
    let envelope = scene.envelope_until(1, START_MS + INTERVAL_MS);
    // Held back by one block too many.
    let rule = Rule::new(Fault::DelayInclusion { blocks: 1 }).txid(envelope.txid);
    scene.net.add_fault(rule).expect("a rule");
    assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
    scene.net.produce(3);
    let report = scene.report(&envelope);
    assert_eq!(report.became, Became::Expired);
    assert_eq!(report.block, None);
    // Injected, past every node, it fares no better.
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.produce(3);
    assert_eq!(scene.report(&envelope).became, Became::Expired);
}

#[tokio::test]
async fn held_back_to_the_last_moment_it_is_in_the_first_block_at_or_past_its_expiration() {
    for missed in [0, 2] {
        let scene = Scene::new().await;
        // Between two slots, and longer than any pool keeps it.
        let envelope = scene.envelope_until(1, START_MS + 300_001);
        scene
            .net
            .add_fault(Rule::new(Fault::IncludeAtExpiration {}))
            .expect("a rule");
        assert_eq!(scene.code_of(0, &envelope).await, "SUCCESS");
        scene.net.produce(100);
        assert_eq!(
            scene.report(&envelope).became,
            Became::Waiting,
            "{missed} missed"
        );
        scene.net.miss(missed);
        scene.net.produce(1);
        let report = scene.report(&envelope);
        assert_eq!(report.block, Some(131), "{missed} missed");
        let stamp = START_MS + 300_000 + INTERVAL_MS * (1 + i64::from(missed));
        assert_eq!(report.block_ms, Some(stamp), "{missed} missed");
        assert!(report.block_ms > Some(report.expiration_ms));
    }
}

/// The block after `START_MS` comes `slots` later than it might, and is offered a transaction that expires then.
async fn included_at(parameter_88: bool, expiration_ms: i64, missed: u32) -> Option<i64> {
    let config = Config {
        consensus_logic_optimization: parameter_88,
        ..stepped()
    };
    let scene = Scene::with(config).await;
    let envelope = scene.envelope_until(1, expiration_ms);
    scene.net.inject(&envelope.bytes()).expect("a transaction");
    scene.net.miss(missed);
    scene.net.produce(2);
    scene.report(&envelope).block_ms
}

#[tokio::test]
async fn with_chain_parameter_88_the_next_slot_must_be_reached() {
    let next = START_MS + INTERVAL_MS;
    for on in [false, true] {
        assert_eq!(
            included_at(on, START_MS, 0).await,
            None,
            "{on}: the parent's own time"
        );
        assert_eq!(
            included_at(on, next, 0).await,
            Some(next),
            "{on}: the next slot"
        );
        // Past its expiration even so: only missed slots do that with the parameter on.
        assert_eq!(
            included_at(on, next, 3).await,
            Some(next + 3 * INTERVAL_MS),
            "{on}"
        );
    }
    assert_eq!(included_at(false, START_MS + 1, 0).await, Some(next));
    assert_eq!(included_at(true, START_MS + 1, 0).await, None);
}

#[tokio::test]
async fn a_node_that_lags_takes_what_the_network_holds_for_expired() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    scene
        .net
        .change_node(1, |node| node.frozen = true)
        .expect("there is a node 1");
    let envelope = scene.envelope_until(1, START_MS + 2 * INTERVAL_MS);
    scene.net.produce(10);
    assert_eq!(
        scene.code_of(0, &envelope).await,
        "TRANSACTION_EXPIRATION_ERROR"
    );
    assert_eq!(scene.code_of(1, &envelope).await, "SUCCESS");
    scene.net.produce(10);
    assert_eq!(scene.report(&envelope).block, None);
}

#[tokio::test]
async fn the_timestamp_of_a_transaction_is_checked_by_nobody() {
    let scene = Scene::new().await;
    let mut spec = scene.spec(1);
    spec.timestamp = sluice_core::chain::ChainTime(1);
    assert_eq!(scene.code_of(0, &scene.sign(1, &spec)).await, "SUCCESS");
}
