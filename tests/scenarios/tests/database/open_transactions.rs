//! Transactions that somebody leaves open: an old snapshot, and rows that stay locked. What does not need them goes on, and what
//! does is finished when they end.

use postgres::Client;
use uuid::Uuid;

use crate::stage::{SOLID_AFTER_S, Stage};

/// A session that begins a transaction, does this in it, and leaves it open.
fn left_open(stage: &Stage, begin: &str, statement: &str) -> Client {
    let mut session = stage.scene.database.superuser();
    session
        .batch_execute(&format!("{begin}; {statement}"))
        .expect("the transaction is open");
    session
}

fn left_open_with_a_lock_on(stage: &Stage, operation_id: Uuid) -> Client {
    left_open(
        stage,
        "begin",
        &format!("select from sluice.withdrawals where operation_id = '{operation_id}' for update"),
    )
}

#[test]
fn an_idle_snapshot_holds_nobody_up_and_sees_nothing_of_what_goes_on() {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let mut idle = left_open(
        &stage,
        "begin isolation level repeatable read",
        "select state from sluice.withdrawals",
    );
    let _runner = stage.run();
    stage.submit_many(3);
    stage.finish();
    let row = idle.query_one(
        "select state::text, (select count(*) from sluice.withdrawals) from sluice.withdrawals where operation_id = $1",
        &[&operation_id],
    );
    let row = row.expect("the snapshot still stands");
    assert_eq!(
        (row.get::<_, &str>(0), row.get::<_, i64>(1)),
        ("requested", 1)
    );
}

#[test]
fn a_row_that_stays_locked_before_its_claim_is_passed_over_and_paid_later() {
    let mut stage = Stage::new();
    let locked = stage.submit();
    let holder = left_open_with_a_lock_on(&stage, locked);
    let _runner = stage.run();
    let others = stage.submit_many(3);
    for other in &others {
        stage.scene.wait_until_state(*other, "broadcast");
    }
    stage.scene.advance(SOLID_AFTER_S);
    stage.scene.let_time_pass_until_confirmed(&others);
    assert_eq!(stage.scene.sends_of(locked), 0);
    assert_eq!(stage.scene.state(locked), "requested");
    drop(holder);
    stage.finish();
}

#[test]
fn a_row_that_stays_locked_while_a_block_settles_it_holds_up_no_other_and_is_settled_later() {
    let mut stage = Stage::new();
    let locked = stage.submit();
    stage.setup().start(&["drain", "--once"]).ends_well();
    let holder = left_open_with_a_lock_on(&stage, locked);
    let _runner = stage
        .setup()
        .set("SLUICE_STATEMENT_TIMEOUT", "3s")
        .start(&["run"]);
    let others = stage.submit_many(3);
    for other in &others {
        stage.scene.wait_until_state(*other, "broadcast");
    }
    stage.scene.advance(SOLID_AFTER_S);
    stage.scene.let_time_pass_until_confirmed(&others);
    assert_eq!(stage.scene.state(locked), "broadcast");
    let row = stage.scene.database.superuser().query_one(
        "select why from sluice.stuck where operation_id = $1",
        &[&locked],
    );
    let why: String = row.expect("it needs a look").get(0);
    assert!(why.contains("held by another session"), "{why}");
    drop(holder);
    stage.finish();
}
