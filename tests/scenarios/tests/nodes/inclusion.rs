//! The end of an envelope's time: the last block that may hold it, the proof that none did, a success that is long shallow, and
//! forks of what is not solid yet.

use std::collections::{HashMap, HashSet};

use sluice_mock_node::{Fault, ForkPlan, Outcome, Rule};
use sluice_scenarios::Scene;

use crate::stage::{SOLID_AFTER_S, Stage, TIME_TO_LIVE_S, answer};

/// In blocks: twenty minutes, four times as long as an envelope lives.
const DEPTH: i64 = 400;

fn time_of(scene: &Scene, block: i64) -> i64 {
    let row = scene.database.superuser().query_one(
        "select timestamp_ms from sluice.blocks where number = $1",
        &[&block],
    );
    row.expect("the block is followed").get(0)
}

/// A withdrawal whose only transaction comes in the first block stamped at or past its expiration, after so many missed slots;
/// under the rule that java-tron has had since the beginning, or the one that chain parameter 88 adds (`Manager.java`,
/// `validateCommon`).
fn included_at_the_last_moment(missed_slots: u32, parameter_88: bool) {
    let mut stage = Stage::with(|config| config.consensus_logic_optimization = parameter_88);
    stage.fault(Rule::new(Fault::IncludeAtExpiration {}));
    let operation_id = stage.submit();
    stage.work_off();
    let txid = stage.envelope(operation_id);

    let expiration_ms = stage.on_chain(&txid).expiration_ms;
    let left_ms = expiration_ms - stage.scene.network.now_ms();
    let left_s = u64::try_from(left_ms).expect("it lives") / 1000;
    stage.pass(left_s - 3);
    stage.scene.network.miss(missed_slots);
    stage.scene.advance(3 * u64::from(missed_slots));
    stage.scene.advance(3);

    let report = stage.on_chain(&txid);
    let behind_ms = report.block_ms.expect("it is in a block") - expiration_ms;
    assert_eq!(behind_ms, i64::from(missed_slots) * 3000);
    // A follower that has read all but this block has no proof, whatever its clock says.
    let block = report.block.expect("it is in a block");
    let solid = stage.scene.network.produce_until_solid(block - 1);
    solid.expect("it becomes solid");
    stage.scene.show_chain_time();
    stage.work_off();
    assert_eq!(stage.scene.followed(), block - 1);
    assert_eq!(stage.envelope(operation_id), txid);
    assert_eq!(stage.scene.state(operation_id), "broadcast");
    stage.pass(3);
    stage.assert_each_paid_by_its_only_transaction();
    // Far beyond, nothing more is built.
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn a_payment_in_the_block_stamped_exactly_at_its_expiration_is_confirmed_and_not_rebuilt() {
    included_at_the_last_moment(0, false);
}

#[test]
fn a_payment_in_the_first_block_stamped_past_its_expiration_is_confirmed_and_not_rebuilt() {
    included_at_the_last_moment(2, false);
}

#[test]
fn a_payment_in_the_first_block_after_a_long_stop_of_the_whole_network_is_confirmed_and_not_rebuilt()
 {
    included_at_the_last_moment(1200, true);
}

#[test]
fn an_envelope_that_no_block_held_is_rebuilt_with_evidence_that_names_its_first_and_last_block() {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    stage.fault(Rule::new(Fault::NeverInclude {}).operation(operation_id));
    stage.work_off();
    stage.scene.network.clear_faults();
    let first = stage.envelope(operation_id);
    stage.fault(Rule::new(Fault::NeverInclude {}).txid(first));

    let expiration_ms = stage.on_chain(&first).expiration_ms;
    stage.pass(TIME_TO_LIVE_S + 3);
    stage.pass(SOLID_AFTER_S);
    stage.assert_paid_by_the_second_after_a_proof(operation_id);

    let proof = &stage.deaths(operation_id)[0];
    assert_eq!(proof["fate"].as_str(), Some("dead"));
    let [first_block, last_block] =
        ["first_block", "last_block"].map(|name| proof[name].as_i64().expect("a block number"));
    assert_eq!(
        time_of(&stage.scene, first_block) + 1000 * TIME_TO_LIVE_S as i64,
        expiration_ms,
        "the first is the reference"
    );
    assert!(
        time_of(&stage.scene, last_block) >= expiration_ms
            && time_of(&stage.scene, last_block - 1) < expiration_ms
    );
    stage.scene.assert_books_agree();
}

#[test]
fn what_expires_while_all_workers_are_dead_is_rebuilt_after_the_proof_and_what_was_paid_meanwhile_is_not()
 {
    let mut stage = Stage::new();
    // One is taken by the node before everybody dies, one never leaves its worker, one is with its signer.
    let [paid, at_the_last_moment, dropped] = [(); 3].map(|()| stage.submit());
    let last = Rule::new(Fault::IncludeAtExpiration {}).operation(at_the_last_moment);
    stage.fault(last);
    stage.fault(
        Rule::new(answer("SUCCESS", "", false))
            .operation(dropped)
            .times(1),
    );
    stage.work_off();
    let mut killed = vec![];
    for point in ["send.before", "sign.before"] {
        killed.push(stage.submit());
        let mut runner = stage.runner().killed_at(point).start(&["run"]);
        assert!(!runner.wait().success(), "{point}");
    }
    let firsts: Vec<_> = stage
        .submitted()
        .iter()
        .map(|id| stage.envelope(*id))
        .collect();

    // Whoever wakes up long after finds that no block has become solid: there is no proof of anything.
    stage.scene.network.stall_solidity(true);
    stage.scene.advance(2 * TIME_TO_LIVE_S);
    stage.work_off();
    let still: Vec<_> = stage
        .submitted()
        .iter()
        .map(|id| stage.envelope(*id))
        .collect();
    assert_eq!(firsts, still);

    stage.scene.network.stall_solidity(false);
    stage.pass(3);
    for operation_id in [paid, at_the_last_moment] {
        stage.scene.assert_paid_once(operation_id);
    }
    // What no node ever took is rebuilt later than what one took, or said that it did.
    stage.pass(2 * TIME_TO_LIVE_S);
    for operation_id in killed.into_iter().chain([dropped]) {
        stage.assert_paid_by_the_second_after_a_proof(operation_id);
    }
    // Each of the five was sent, the unproven ones in vain when somebody woke up; and a second of three.
    assert_eq!(stage.scene.network.transactions().len(), 8);
    stage.scene.assert_books_agree();
}

#[test]
fn a_payment_that_is_shallow_long_after_its_expiration_is_never_swept_and_confirms_at_its_depth() {
    let mut stage = Stage::new();
    stage.operate(&format!(
        "select sluice.set_asset(asset, contract, decimals, '0.000001', '1000000', fee_limit_sun, {DEPTH}, true) from sluice.assets"
    ));
    let operation_ids = stage.submit_many(2);
    stage.fault(Rule::new(Fault::IncludeAtExpiration {}).operation(operation_ids[1]));
    stage.work_off();
    let txids = [0, 1].map(|place| stage.envelope(operation_ids[place]));
    // Both are on chain, solid, and long past their expiration.
    stage.pass(2 * TIME_TO_LIVE_S);
    for (operation_id, txid) in operation_ids.iter().zip(txids) {
        let sent = stage.on_chain(&txid);
        assert!(
            sent.solid && sent.expiration_ms + 240_000 < stage.scene.network.now_ms(),
            "{sent:?}"
        );
        assert_eq!(stage.envelope(*operation_id), txid);
        assert_eq!(stage.scene.state(*operation_id), "broadcast");
    }
    for (operation_id, txid) in operation_ids.iter().zip(txids) {
        let deep_at = stage.on_chain(&txid).block.expect("it is in a block") + DEPTH;
        stage
            .scene
            .network
            .produce_until_solid(deep_at - 1)
            .expect("it becomes solid");
        stage.scene.show_chain_time();
        stage.work_off();
        assert_eq!(
            stage.scene.state(*operation_id),
            "broadcast",
            "not a block sooner"
        );
        stage.pass(3);
        assert_eq!(stage.scene.state(*operation_id), "confirmed");
    }
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn a_fork_below_solid_that_moves_loses_or_ends_otherwise_what_it_erases_is_what_counts() {
    let mut stage = Stage::new();
    let [stays, moves, lost, succeeds_no_more, fails_no_more] = [(); 5].map(|()| stage.submit());
    let revert = Fault::Receipt {
        result: "REVERT".to_owned(),
    };
    stage.fault(Rule::new(revert).operation(fails_no_more).times(1));
    stage.work_off();
    // All are in a block that is not solid, and a runner has looked.
    stage.pass(12);
    let txid = |operation_id| stage.envelope(operation_id);
    for operation_id in stage.submitted() {
        let sent = stage.on_chain(&txid(*operation_id));
        assert!(sent.block.is_some() && !sent.solid, "{sent:?}");
        assert_eq!(stage.scene.state(*operation_id), "broadcast");
    }

    let erased = stage.on_chain(&txid(moves)).block;
    let plan = ForkPlan {
        drop: HashSet::from([txid(lost)]),
        place: HashMap::from([(txid(moves), 5)]),
        results: HashMap::from([
            (
                txid(succeeds_no_more),
                Outcome::parse("REVERT").expect("a result"),
            ),
            (txid(fails_no_more), Outcome::SUCCESS),
        ]),
    };
    let forked = stage.scene.network.fork(8, 9, 1, plan, &[]);
    forked.expect("what is not solid can be erased");
    assert!(stage.on_chain(&txid(moves)).block > erased, "another block");
    let firsts = [stays, moves, succeeds_no_more, fails_no_more].map(|id| (id, txid(id)));
    stage.scene.show_chain_time();
    stage.pass(SOLID_AFTER_S);
    stage.pass(TIME_TO_LIVE_S);
    stage.pass(SOLID_AFTER_S);

    for (operation_id, first) in firsts {
        let wanted = if operation_id == succeeds_no_more {
            ("REVERT", "failed")
        } else {
            ("SUCCESS", "confirmed")
        };
        let sent = stage.on_chain(&first);
        assert_eq!((sent.result.as_deref(), sent.solid), (Some(wanted.0), true));
        assert_eq!(
            stage.envelope(operation_id),
            first,
            "nothing else was built"
        );
        assert_eq!(stage.scene.state(operation_id), wanted.1);
    }
    stage.assert_paid_by_the_second_after_a_proof(lost);
    stage.scene.assert_books_agree();
}
