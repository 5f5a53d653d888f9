//! Builds that are refused for as long as it takes: a chain that stands still, an asset that has become another, nodes that
//! refuse whatever they are sent. Nothing is burnt meanwhile, an operator can see why, and it ends when the cause does.

use sluice_mock_node::{Fault, Rule};
use uuid::Uuid;

use crate::stage::{DEATH_S, SOLID_AFTER_S, Stage};

fn reason_of(stage: &Stage, operation_id: Uuid) -> Option<String> {
    let row = stage.scene.database.superuser().query_one(
        "select failure_reason from sluice.withdrawals where operation_id = $1",
        &[&operation_id],
    );
    row.expect("the withdrawal is there").get(0)
}

#[test]
fn while_the_chain_stands_still_nothing_is_built_and_it_shows_and_all_is_paid_when_it_goes_on() {
    let mut stage = Stage::new();
    stage.scene.network.stall_solidity(true);
    stage.scene.advance(600);
    let operation_ids = stage.submit_many(3);
    for _ in 0..4 {
        stage.work_off();
        stage.scene.advance(600);
    }
    assert_eq!(stage.scene.network.transactions(), []);
    for operation_id in &operation_ids {
        assert_eq!(stage.envelopes(*operation_id), []);
        assert_eq!(stage.scene.state(*operation_id), "requested");
        let held_by = stage.held_by(*operation_id).expect("something holds it");
        assert!(
            held_by.starts_with("the newest followed block is from"),
            "{held_by}"
        );
        let why = stage.stuck(*operation_id).expect("it needs a look");
        assert!(why.starts_with("nothing has happened for"), "{why}");
    }
    stage.scene.network.stall_solidity(false);
    stage.scene.advance(3);
    stage.work_off();
    stage.finish();
}

#[test]
fn an_asset_whose_contract_changed_ends_what_is_not_built_fails_what_is_dead_and_lets_what_is_in_flight_pay()
 {
    let mut stage = Stage::new();
    let dies = stage.submit();
    let never = stage
        .scene
        .network
        .add_fault(Rule::new(Fault::NeverInclude {}).operation(dies));
    never.expect("a fault");
    stage.work_off();
    stage.scene.advance(60);
    let in_flight = stage.submit();
    stage.work_off();
    assert_eq!(stage.scene.sends_of(in_flight), 1);
    let not_built = stage.submit();
    stage.operate(
        "select from sluice.set_asset('USDT-TRC20', $1, 6, '0.000001', '1000000', 100000000, 0, true)",
        "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf",
    );
    stage.work_off();
    stage.scene.advance(SOLID_AFTER_S);
    stage.work_off();
    stage.scene.advance(DEATH_S);
    stage.work_off();

    stage.scene.assert_paid_once(in_flight);
    let transactions = stage.scene.transactions_of(dies);
    assert_eq!(transactions.len(), 1, "{transactions:?}");
    assert_eq!(transactions[0].block, None);
    assert_eq!(stage.scene.sends_of(not_built), 0);
    for (operation_id, state) in [(dies, "failed"), (not_built, "rejected")] {
        assert_eq!(stage.scene.state(operation_id), state);
        let reason = reason_of(&stage, operation_id).expect("it says why");
        assert!(reason.contains("contract or decimals changed"), "{reason}");
    }
    // Whoever asks now means the new one, and is paid with it.
    let anew = stage.submit();
    stage.scene.advance(3);
    stage.work_off();
    stage.scene.advance(SOLID_AFTER_S);
    stage.work_off();
    stage.scene.assert_paid_once(anew);
}

#[test]
fn while_every_node_refuses_every_build_no_attempt_is_used_up_and_it_shows_and_ends_when_they_take_one()
 {
    let mut stage = Stage::new();
    stage.operate(
        "select from sluice.set_setting('attempts', $1, 'fewer than will die')",
        "1",
    );
    let operation_id = stage.submit();
    let refusal = Fault::Answer {
        code: "CONTRACT_VALIDATE_ERROR".to_owned(),
        message: "feeLimit must be >= 0 and <= 1".to_owned(),
        keep: false,
        result: None,
    };
    let refusal = stage.scene.network.add_fault(Rule::new(refusal));
    let refusal = refusal.expect("a fault");
    stage.work_off();
    while stage.envelopes(operation_id).len() < 3 {
        stage.scene.advance(200);
        stage.work_off();
    }
    let built = stage.envelopes(operation_id);
    let transactions = stage.scene.transactions_of(operation_id);
    assert!(
        transactions.iter().all(|refused| refused.block.is_none()),
        "{transactions:#?}"
    );
    assert_eq!(stage.scene.state(operation_id), "broadcasting");
    let why = stage.stuck(operation_id).expect("it needs a look");
    assert!(
        why.starts_with("2 envelope(s) died and no node ever took one")
            && why.contains("CONTRACT_VALIDATE_ERROR"),
        "{why}"
    );

    assert!(stage.scene.network.remove_fault(refusal));
    let runner = stage.runner("heir").start(&["run"]);
    stage.scene.let_time_pass_until_confirmed(&[operation_id]);
    drop(runner);
    let paid: Vec<_> = stage
        .scene
        .transactions_of(operation_id)
        .into_iter()
        .filter(|transaction| transaction.block.is_some())
        .collect();
    let [paid] = paid.as_slice() else {
        panic!("one payment: {paid:#?}")
    };
    assert_eq!(paid.result.as_deref(), Some("SUCCESS"));
    assert_eq!(paid.txid, built[2], "nothing more was built");
}
