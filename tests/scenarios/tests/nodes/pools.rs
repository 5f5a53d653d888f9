//! Pools that lose what they took, and pools that know nothing of each other.

use sluice_mock_node::{Became, Fault, Rule};

use crate::stage::{RESEND_S, SOLID_AFTER_S, Stage, TIME_TO_LIVE_S, work_off_by};

/// Past the minute for which java-tron's pools keep a transaction (`node.pendingTransactionTimeout`).
const POOLS_DROP_AFTER_S: u64 = 66;

#[test]
fn what_every_pool_dropped_after_a_minute_is_sent_again_and_paid_by_the_same_bytes() {
    // Peers have forgotten the id by then, and take it again.
    let mut stage = Stage::with(|config| config.seen_cache_ms = 30_000);
    let operation_id = stage.submit();
    let left_out = stage.fault(Rule::new(Fault::NeverInclude {}));
    stage.work_off();
    let txid = stage.envelope(operation_id);
    assert_eq!(stage.scene.state(operation_id), "broadcast");
    stage.pass(POOLS_DROP_AFTER_S);
    let dropped = stage.on_chain(&txid);
    assert_eq!((dropped.became, dropped.sends), (Became::Dropped, 1));
    assert_eq!(stage.scene.state(operation_id), "broadcast");

    stage.mend(left_out);
    stage.pass(RESEND_S - POOLS_DROP_AFTER_S);
    assert_eq!(stage.on_chain(&txid).kept, 2, "the pool took it again");
    stage.pass(SOLID_AFTER_S);
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&[operation_id]);
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn what_was_accepted_and_dropped_for_good_waits_out_its_expiration_and_is_rebuilt_after_the_proof()
{
    // For an hour, peers ignore an id that they have seen, though their pools have lost it (`AdvService.java`).
    let mut stage = Stage::new();
    let [at_once, after_a_minute] = [stage.submit(), stage.submit()];
    let left_out = stage.fault(Rule::new(Fault::NeverInclude {}).operation(after_a_minute));
    stage.work_off();
    let evicted = stage.envelope(at_once);
    assert_eq!(stage.scene.network.evict(&evicted), 2, "out of each pool");
    stage.pass(POOLS_DROP_AFTER_S);
    stage.mend(left_out);

    let firsts = [at_once, after_a_minute].map(|operation_id| stage.envelope(operation_id));
    let last_expiration_ms = firsts.map(|txid| stage.on_chain(&txid).expiration_ms)[1];
    while stage.scene.network.now_ms() < last_expiration_ms {
        for operation_id in [at_once, after_a_minute] {
            assert_eq!(stage.envelopes(operation_id).len(), 1, "it may still come");
            assert_eq!(stage.scene.state(operation_id), "broadcast");
        }
        stage.pass(30);
    }
    for txid in firsts {
        let sent = stage.on_chain(&txid);
        assert!(
            sent.sends >= 3 && sent.block.is_none(),
            "sent in vain: {sent:?}"
        );
    }
    stage.pass(3 * SOLID_AFTER_S);
    for operation_id in [at_once, after_a_minute] {
        stage.assert_paid_by_the_second_after_a_proof(operation_id);
    }
    stage.scene.assert_books_agree();
}

#[test]
fn of_two_nodes_with_pools_of_their_own_either_may_have_it_and_it_is_paid_once() {
    let mut stage = Stage::with(|config| config.nodes = 2);
    // The first node says SUCCESS, and nobody ever asks it for the bytes.
    stage
        .scene
        .network
        .change_node(0, |node| node.gossip = false)
        .expect("a node");
    let first_to_the_lonely = stage.submit();
    work_off_by(stage.runner_at(0));
    let last_to_the_lonely = stage.submit();
    stage.fault(Rule::new(Fault::DelayInclusion { blocks: 40 }).operation(last_to_the_lonely));
    work_off_by(stage.runner_at(1));
    let pools: Vec<usize> = stage
        .scene
        .network
        .status()
        .nodes
        .iter()
        .map(|node| node.pool)
        .collect();
    assert_eq!(pools, [1, 1]);

    // Both are sent to the other node as well, and come into its pool.
    stage.scene.advance(RESEND_S);
    work_off_by(stage.runner_at(0));
    assert_eq!(
        stage.on_chain(&stage.envelope(last_to_the_lonely)).accepts,
        2
    );
    stage.scene.advance(RESEND_S);
    work_off_by(stage.runner_at(1));
    assert_eq!(
        stage.on_chain(&stage.envelope(first_to_the_lonely)).accepts,
        2
    );
    stage.pass(2 * SOLID_AFTER_S);
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}
