//! How a transaction ends in a solid block: paid, failed, tried again, or undecided; and a wallet that has run empty.

use postgres::types::FromSql;
use sluice_mock_node::{Fault, Rule};
use uuid::Uuid;

use crate::stage::{SOLID_AFTER_S, Stage, TIME_TO_LIVE_S};

/// What a new database allows: envelopes that may be spent on one withdrawal.
const ATTEMPTS: usize = 5;

/// Results that leave no doubt: nothing was transferred, and the same would happen again (`Tron.proto`, `contractResult`).
const FINAL: [&str; 11] = [
    "REVERT",
    "BAD_JUMP_DESTINATION",
    "OUT_OF_MEMORY",
    "PRECOMPILED_CONTRACT",
    "STACK_TOO_SMALL",
    "STACK_TOO_LARGE",
    "ILLEGAL_OPERATION",
    "STACK_OVERFLOW",
    "JVM_STACK_OVER_FLOW",
    "TRANSFER_FAILED",
    "INVALID_CODE",
];

/// Results that another try may not meet.
const TRANSIENT: [&str; 2] = ["OUT_OF_ENERGY", "OUT_OF_TIME"];

/// Results that say nothing, a number that no name has, and none at all.
const UNDECIDED: [&str; 5] = ["DEFAULT", "UNKNOWN", "16", "-1", "ABSENT"];

fn receipt(result: &str) -> Fault {
    Fault::Receipt {
        result: result.to_owned(),
    }
}

/// A withdrawal for each of these results, which meets it always.
fn with_each(stage: &mut Stage, results: &[&'static str]) -> Vec<(Uuid, &'static str)> {
    results
        .iter()
        .map(|result| {
            let operation_id = stage.submit();
            stage.fault(Rule::new(receipt(result)).operation(operation_id));
            (operation_id, *result)
        })
        .collect()
}

fn about<T: for<'a> FromSql<'a>>(stage: &Stage, operation_id: Uuid, expression: &str) -> T {
    let query = format!("select {expression} from sluice.withdrawals where operation_id = $1");
    let row = stage
        .scene
        .database
        .superuser()
        .query_one(&query, &[&operation_id]);
    row.expect("the withdrawal is there").get(0)
}

/// An operator goes on with every wallet that three failures in a row paused.
fn resume_wallets(stage: &Stage) -> usize {
    let mut superuser = stage.scene.database.superuser();
    let paused = superuser
        .query(
            "select wallet from sluice.pauses where resumed_at is null",
            &[],
        )
        .expect("pauses can be read");
    for row in &paused {
        let wallet: String = row.get(0);
        stage.operate(&format!(
            "select sluice.resume('looked at', wallet => '{wallet}')"
        ));
    }
    paused.len()
}

#[test]
fn each_result_that_a_solid_block_can_show_pays_fails_is_tried_again_or_waits_for_a_person() {
    let mut stage = Stage::new();
    let paid = with_each(&mut stage, &["SUCCESS"]);
    let failed = with_each(&mut stage, &FINAL);
    let tried_in_vain = with_each(&mut stage, &TRANSIENT);
    let tried_again: Vec<Uuid> = TRANSIENT
        .iter()
        .map(|result| stage.submit_that_meets(receipt(result)))
        .collect();
    let undecided = with_each(&mut stage, &UNDECIDED);
    stage.work_off();
    // Long enough for every attempt, and past the expiration of what was sent first.
    for _ in 0..=ATTEMPTS {
        stage.pass(SOLID_AFTER_S);
        resume_wallets(&stage);
        stage.work_off();
    }
    stage.pass(TIME_TO_LIVE_S);

    let results_of = |operation_id: Uuid| -> Vec<String> {
        let transactions = stage.scene.transactions_of(operation_id);
        assert_eq!(stage.envelopes(operation_id).len(), transactions.len());
        transactions
            .into_iter()
            .map(|sent| sent.result.expect("it is in a block"))
            .collect()
    };
    for (operation_id, result) in &paid {
        assert_eq!(results_of(*operation_id), [*result]);
        assert_eq!(stage.scene.state(*operation_id), "confirmed");
    }
    for (operation_id, result) in &failed {
        assert_eq!(results_of(*operation_id), [*result]);
        assert_eq!(stage.scene.state(*operation_id), "failed");
        let reason: String = about(&stage, *operation_id, "failure_reason");
        assert_eq!(reason, format!("the chain says {result}"));
    }
    for (operation_id, result) in &tried_in_vain {
        assert_eq!(results_of(*operation_id), [*result; ATTEMPTS]);
        assert_eq!(stage.scene.state(*operation_id), "failed");
    }
    for (operation_id, result) in tried_again.iter().zip(TRANSIENT) {
        assert_eq!(results_of(*operation_id), [result, "SUCCESS"]);
        assert_eq!(stage.scene.state(*operation_id), "confirmed");
    }
    for (operation_id, result) in &undecided {
        assert_eq!(results_of(*operation_id), [*result], "never built anew");
        assert_eq!(stage.scene.state(*operation_id), "broadcast", "{result}");
        let is_parked: bool = about(&stage, *operation_id, "due_at is null");
        let why = stage.stuck(*operation_id).expect("it needs a look");
        assert!(
            is_parked && why.starts_with("parked: block "),
            "{result}: {why}"
        );
    }
    stage.scene.assert_books_agree();
}

#[test]
fn a_withdrawal_whose_transfer_reverted_is_failed_for_good_and_nothing_is_ever_sent_for_it_again() {
    let mut stage = Stage::new();
    let operation_id = stage.submit_that_meets(receipt("REVERT"));
    stage.work_off();
    stage.pass(SOLID_AFTER_S);
    assert_eq!(stage.scene.state(operation_id), "failed");

    let hash: Vec<u8> = about(&stage, operation_id, "hash");
    for change in [
        "state = 'signing'",
        "state = 'confirmed'",
        "amount_units = amount_units + 1",
        "due_at = sluice.now()",
        "failure_reason = null",
    ] {
        let refused = stage.scene.database.superuser().batch_execute(&format!(
            "update sluice.withdrawals set {change} where operation_id = '{operation_id}'"
        ));
        let error = refused.expect_err(change);
        let code = error.code().map(|code| code.code().to_owned());
        assert!(
            code.as_deref().is_some_and(|code| code.starts_with("SL0")),
            "{change}: {error:?}"
        );
    }
    stage.pass(3 * TIME_TO_LIVE_S);
    assert_eq!(stage.scene.state(operation_id), "failed");
    assert_eq!(about::<Vec<u8>>(&stage, operation_id, "hash"), hash);
    assert_eq!(stage.scene.network.transactions().len(), 1);
    assert_eq!(stage.scene.sends_of(operation_id), 1);
    stage.scene.assert_books_agree();
}

#[test]
fn wallets_that_ran_empty_pause_and_of_many_withdrawals_none_is_failed_and_all_are_paid_when_they_are_filled()
 {
    let mut stage = Stage::new();
    let empty = stage.fault(Rule::new(receipt("OUT_OF_ENERGY")));
    let sent_in_vain = stage.submit_many(24);
    stage.work_off();
    stage.scene.advance(SOLID_AFTER_S);
    let late = stage.submit_many(12);
    // Hours in which a runner looks again and again: nothing more is burnt.
    stage.work_off();
    stage.pass(2 * TIME_TO_LIVE_S);
    assert_eq!(stage.scene.network.transactions().len(), sent_in_vain.len());
    for operation_id in sent_in_vain.iter().chain(&late) {
        let state = stage.scene.state(*operation_id);
        assert!(
            ["signing", "requested", "validated"].contains(&state.as_str()),
            "{state}"
        );
    }
    for operation_id in &late {
        assert_eq!(stage.envelopes(*operation_id), []);
    }

    stage.mend(empty);
    assert_eq!(resume_wallets(&stage), 2);
    stage.pass(9);
    stage.pass(SOLID_AFTER_S);
    for (operation_ids, count) in [(&sent_in_vain, 2), (&late, 1)] {
        for operation_id in operation_ids {
            let sent = stage.scene.transactions_of(*operation_id);
            assert_eq!(sent.len(), count, "{sent:#?}");
            assert_eq!(stage.scene.state(*operation_id), "confirmed");
        }
    }
    stage.scene.assert_books_agree();
}
