//! Somebody else is in the way: locks in the opposite order, time-outs that an administrator set low, read-only sessions. A call
//! that could not be made is made again, and the rest of it is as if it had never been.

use postgres::Client;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Role, Strike};
use uuid::Uuid;

use crate::stage::{PAST_EVERY_LEASE_S, SOLID_AFTER_S, Stage};

/// A session that holds a row in a transaction that it leaves open. It is never the one to give way.
fn hold(stage: &Stage, row: &str) -> Client {
    let mut hostile = stage.scene.database.superuser();
    hostile
        .batch_execute("begin; set local deadlock_timeout = '1h'")
        .expect("a transaction begins");
    lock(&mut hostile, row);
    hostile
}

fn lock(hostile: &mut Client, row: &str) {
    hostile
        .batch_execute(&format!("select from {row} for update"))
        .expect("the row can be locked");
}

fn withdrawal(operation_id: Uuid) -> String {
    format!("sluice.withdrawals where operation_id = '{operation_id}'")
}

fn wait_until_a_runner_waits_for_a_lock(stage: &Stage) {
    let mut superuser = stage.scene.database.superuser();
    until("a runner waits for a lock", || {
        let row = superuser.query_opt(
            "select from pg_stat_activity where application_name like 'sluice-runner %' and wait_event_type = 'Lock'",
            &[],
        );
        row.expect("sessions can be read").map(drop)
    });
}

/// A runner waits for the row that the hostile session holds, and that session now asks for one that the runner holds.
fn close_the_circle(stage: &Stage, mut hostile: Client, row: &str) {
    wait_until_a_runner_waits_for_a_lock(stage);
    lock(&mut hostile, row);
}

#[test]
fn signatures_that_die_in_a_deadlock_are_never_sent_and_are_tried_again() {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let claimed = stage.strike_once(Strike::HoldAnswer, "claim_batch");
    // A deadlock is looked for once, after so long: time enough to close the circle on a busy machine.
    let statement = format!(
        "alter role {} set deadlock_timeout = '3s'",
        Role::Runner.login()
    );
    let mut superuser = stage.scene.database.superuser();
    superuser
        .batch_execute(&statement)
        .expect("a setting can be made");
    let runner = stage.run();
    stage.proxy.wait_until_struck(claimed, 1);
    // The last thing that filing signatures locks, and the first.
    let hostile = hold(&stage, "sluice.workers where worker_id = 'one'");
    stage.proxy.release();
    close_the_circle(&stage, hostile, &withdrawal(operation_id));
    until("the runner gives way", || {
        let log = runner.log();
        let mut lines = log.lines();
        lines
            .any(|line| line.contains("record_signatures was refused: deadlock detected [40P01]"))
            .then_some(())
    });
    stage.let_another_be_sent();
    assert_eq!(stage.scene.sends_of(operation_id), 0);
    assert_eq!(stage.scene.state(operation_id), "signing");
    stage.finish();
}

#[test]
fn blocks_that_would_end_in_a_deadlock_give_way_before_and_settle_what_nobody_holds() {
    let mut stage = Stage::new();
    let mut three = stage.submit_many(3);
    // The order in which sluice locks them.
    three.sort();
    stage.setup().start(&["drain", "--once"]).ends_well();
    let hostile = hold(&stage, &withdrawal(three[1]));
    stage.scene.advance(SOLID_AFTER_S);
    let runner = stage.run();
    close_the_circle(&stage, hostile, &withdrawal(three[0]));
    stage.scene.wait_until_followed();
    assert!(!runner.log().contains("observe_blocks was refused"));
    stage.finish();
}

/// Settings of the runner's role under which no batch would ever be done, were they to reach it.
const STRANGLING: [&str; 5] = [
    "statement_timeout = '10ms'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '1ms'",
    "idle_session_timeout = '10ms'",
    "client_min_messages = 'error'",
];

#[test]
fn time_outs_set_low_for_the_runners_role_do_not_reach_its_calls() {
    let mut stage = Stage::new();
    let mut superuser = stage.scene.database.superuser();
    for setting in STRANGLING {
        let statement = format!("alter role {} set {setting}", Role::Runner.login());
        superuser
            .batch_execute(&statement)
            .expect("a setting can be made");
    }
    stage.submit_many(10);
    let runner = stage.run();
    stage.finish();
    for time_out in ["57014", "55P03", "25P03", "57P05"] {
        let told = |log: &str| log.lines().filter(|line| line.contains(time_out)).count();
        // A session's own settings come first; on a busy machine even those may take too long.
        assert!(told(&runner.log()) <= 3, "{time_out}: {}", runner.log());
    }
}

#[test]
fn signatures_that_wait_too_long_for_a_lock_are_never_sent_and_all_others_go_on() {
    let mut stage = Stage::new();
    let locked = stage.submit();
    let claimed = stage.strike_once(Strike::HoldAnswer, "claim_batch");
    let runner = stage
        .setup()
        .set("SLUICE_STATEMENT_TIMEOUT", "1s")
        .start(&["run"]);
    stage.proxy.wait_until_struck(claimed, 1);
    let holder = hold(&stage, &withdrawal(locked));
    stage.proxy.release();
    until("the runner gives up", || {
        runner
            .log()
            .contains("signature not on file: dropped")
            .then_some(())
    });
    stage.let_another_be_sent();
    // Its lease is over, and its row is held all the same.
    stage.scene.advance(PAST_EVERY_LEASE_S);
    stage.let_another_be_sent();
    assert_eq!(stage.scene.sends_of(locked), 0);
    assert_eq!(stage.scene.state(locked), "signing");
    drop(holder);
    stage.finish();
}

#[test]
fn a_role_that_may_only_read_sends_nothing_and_says_why() {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let mut superuser = stage.scene.database.superuser();
    let mut read_only = |value: &str| {
        let statement = format!(
            "alter role {} set default_transaction_read_only = {value}",
            Role::Runner.login()
        );
        superuser
            .batch_execute(&statement)
            .expect("a setting can be made");
    };
    read_only("on");
    let runner = stage.run();
    until("it says why", || {
        runner
            .log()
            .contains("in a read-only transaction [25006]")
            .then_some(())
    });
    assert_eq!(stage.scene.sends_of(operation_id), 0);
    assert_eq!(stage.scene.state(operation_id), "requested");
    drop(runner);
    read_only("off");
    let _runner = stage.run();
    stage.finish();
}

/// Cancels whatever statement a runner has under way; answers how many.
fn cancel_statements(superuser: &mut Client) -> i64 {
    let cancelled = superuser.query_one(
        "select count(pg_cancel_backend(pid)) from pg_stat_activity
          where application_name like 'sluice-runner %' and state = 'active'",
        &[],
    );
    cancelled.expect("backends can be cancelled").get(0)
}

#[test]
fn statements_that_somebody_keeps_cancelling_are_made_again_and_lose_nothing() {
    let mut stage = Stage::new();
    let mut superuser = stage.scene.database.superuser();
    stage.submit_many(30);
    let mut runner = stage.run();
    let mut cancelled = 0;
    until("a good many are cancelled", || {
        cancelled += cancel_statements(&mut superuser);
        (cancelled >= 10).then_some(())
    });
    assert!(runner.ended().is_none());
    assert!(runner.log().contains("[57014]"), "{}", runner.log());
    // It pauses longer and longer by now: another goes on at once.
    drop(runner);
    let _another = stage.run();
    stage.finish();
}

#[test]
fn a_runner_that_gets_no_connection_waits_for_one() {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let mut superuser = stage.scene.database.superuser();
    let mut limit = |connections: i32| {
        let statement = format!(
            "alter role {} connection limit {connections}",
            Role::Runner.login()
        );
        superuser
            .batch_execute(&statement)
            .expect("a limit can be set");
    };
    limit(0);
    let mut runner = stage.run();
    until("it is refused", || {
        runner.log().contains("[53300]").then_some(())
    });
    assert!(runner.ended().is_none());
    limit(-1);
    stage.scene.wait_until_state(operation_id, "broadcast");
    stage.finish();
}
