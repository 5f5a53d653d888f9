//! What the chain says a transaction did, and what follows: a success pays, a failure ends or is tried again a bounded number of
//! times, and a receipt that says nothing decides nothing.

use sluice_mock_node::{Fault, Rule};
use sluice_scenarios::{Role, Scene, Wallets};
use uuid::Uuid;

use crate::caller::Caller;

/// Every transaction of this withdrawal is included so.
fn included_with(scene: &Scene, operation_id: Uuid, result: &str) {
    let receipt = Fault::Receipt {
        result: result.to_owned(),
    };
    let rule = Rule::new(receipt).operation(operation_id);
    scene.network.add_fault(rule).expect("a fault");
}

/// Lets whatever is due be built, signed, sent and included.
fn carry(scene: &Scene, worker: &mut Caller) -> usize {
    let carried = worker.carry();
    for task in &carried {
        let sent = scene.network.inject(&task.transaction());
        sent.expect("the network takes it");
    }
    scene.advance(66);
    scene.follow();
    carried.len()
}

/// The state, whether a worker will look at it again, and how many envelopes were built.
fn stands(scene: &Scene, operation_id: Uuid) -> (String, bool, i32) {
    let row = scene.database.superuser().query_one(
        "select state::text, due_at is not null, attempt from sluice.withdrawals where operation_id = $1",
        &[&operation_id],
    );
    let row = row.expect("it is there");
    (row.get(0), row.get(1), row.get(2))
}

fn paused_wallets(scene: &Scene) -> Vec<String> {
    let rows = scene.database.superuser().query(
        "select wallet from sluice.pauses where resumed_at is null",
        &[],
    );
    let rows = rows.expect("pauses can be read");
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn each_receipt_pays_fails_is_tried_again_or_waits_for_a_person() {
    let scene = Scene::start();
    let receipts = [
        ("SUCCESS", ("confirmed", false)),
        ("REVERT", ("failed", false)),
        ("BAD_JUMP_DESTINATION", ("failed", false)),
        ("OUT_OF_MEMORY", ("failed", false)),
        ("PRECOMPILED_CONTRACT", ("failed", false)),
        ("STACK_TOO_SMALL", ("failed", false)),
        ("STACK_TOO_LARGE", ("failed", false)),
        ("ILLEGAL_OPERATION", ("failed", false)),
        ("STACK_OVERFLOW", ("failed", false)),
        ("JVM_STACK_OVER_FLOW", ("failed", false)),
        ("TRANSFER_FAILED", ("failed", false)),
        ("INVALID_CODE", ("failed", false)),
        ("OUT_OF_ENERGY", ("signing", true)),
        ("OUT_OF_TIME", ("signing", true)),
        ("DEFAULT", ("broadcast", false)),
        ("UNKNOWN", ("broadcast", false)),
        ("ABSENT", ("broadcast", false)),
        ("77", ("broadcast", false)),
    ];
    let withdrawals: Vec<Uuid> = receipts
        .iter()
        .zip(0..)
        .map(|((receipt, _), n)| {
            let operation_id = scene.submit(n, "25");
            included_with(&scene, operation_id, receipt);
            operation_id
        })
        .collect();
    let mut worker = Caller::new(&scene, "one");
    assert_eq!(carry(&scene, &mut worker), receipts.len());
    for (operation_id, (receipt, (state, is_due))) in withdrawals.iter().zip(receipts) {
        assert_eq!(
            stands(&scene, *operation_id),
            (state.to_owned(), is_due, 1),
            "{receipt}"
        );
    }
}

#[test]
fn what_runs_out_of_energy_is_tried_five_times_and_three_failures_in_a_row_pause_its_wallet() {
    let scene = Scene::start();
    let mock = Wallets::hmac();
    let mut operator = scene.database.as_role(Role::Operator);
    operator
        .batch_execute(&format!("select sluice.pause('lunch', wallet => '{mock}')"))
        .expect("a wallet can be paused");
    let local = Wallets::local().to_string();
    let operation_id = scene.submit(1, "25");
    included_with(&scene, operation_id, "OUT_OF_ENERGY");
    let mut worker = Caller::new(&scene, "one");
    for attempt in 1..=5 {
        assert_eq!(carry(&scene, &mut worker), 1, "attempt {attempt}");
        let state = if attempt < 5 { "signing" } else { "failed" };
        assert_eq!(
            stands(&scene, operation_id),
            (state.to_owned(), attempt < 5, attempt)
        );
        let is_paused = paused_wallets(&scene).contains(&local);
        assert_eq!(is_paused, attempt == 3, "after {attempt} failures");
        if is_paused {
            assert_eq!(carry(&scene, &mut worker), 0, "it is paused");
            operator
                .batch_execute(&format!(
                    "select sluice.resume('filled', wallet => '{local}')"
                ))
                .expect("a pause can end");
            scene.advance(6);
        }
    }
    assert_eq!(carry(&scene, &mut worker), 0);
}

#[test]
fn an_envelope_that_no_node_took_and_that_died_is_built_anew_later_and_does_not_count() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let mut worker = Caller::new(&scene, "one");
    let task = worker.claim_one();
    worker.sign(&task, &task.good_signature());
    worker.answer_one(&task, "CONTRACT_VALIDATE_ERROR");
    scene.advance(360);
    scene.follow();
    assert_eq!(
        stands(&scene, operation_id),
        ("signing".to_owned(), true, 1)
    );
    assert!(worker.claim().is_empty(), "not at once");
    let row = scene.database.superuser().query_one(
        "select uncounted, held_by from sluice.withdrawals where operation_id = $1",
        &[&operation_id],
    );
    let row = row.expect("it is there");
    assert_eq!(
        (row.get::<_, i32>(0), row.get::<_, Option<String>>(1)),
        (1, Some("never_accepted".to_owned()))
    );
    scene.advance(300);
    scene.follow();
    assert_ne!(worker.claim_one().txid, task.txid);
}

#[test]
fn what_cannot_be_settled_stops_nobody_and_is_settled_by_a_later_block() {
    let scene = Scene::start();
    let ids: Vec<Uuid> = (0..4).map(|n| scene.submit(n, "25")).collect();
    let poisoned = ids[1];
    let mut superuser = scene.database.superuser();
    let poison = format!(
        "alter table sluice.withdrawals add constraint poison
           check (operation_id <> '{poisoned}' or state <> 'confirmed')"
    );
    superuser
        .batch_execute(&poison)
        .expect("a constraint can be added");
    let mut worker = Caller::new(&scene, "one");
    assert_eq!(carry(&scene, &mut worker), ids.len());
    for operation_id in &ids {
        let expected = if *operation_id == poisoned {
            "broadcast"
        } else {
            "confirmed"
        };
        assert_eq!(scene.state(*operation_id), expected);
    }

    superuser
        .batch_execute("alter table sluice.withdrawals drop constraint poison")
        .expect("a constraint can be dropped");
    scene.advance(3);
    scene.follow();
    assert_eq!(scene.state(poisoned), "confirmed");
    assert_eq!(scene.network.transactions().len(), ids.len());
}
