//! The server says itself that a commit went wrong, or that it may yet be taken back: an error raised by a deferred constraint,
//! a WARNING that the wait for a standby was given up. What was answered before such a COMMIT counts for nothing.

use sluice_scenarios::wait::until;
use sluice_scenarios::{Runner, Strike};
use uuid::Uuid;

use crate::stage::Stage;
use crate::standby;

/// From now on, no commit that leaves a withdrawal in this state succeeds.
fn let_commits_fail(stage: &Stage, state: &str, sqlstate: &str) {
    let statements = format!(
        "create function public.fail_at_commit() returns trigger language plpgsql as $$
         begin raise exception 'no commit today' using errcode = '{sqlstate}'; end $$;
         create constraint trigger fail_at_commit after update on sluice.withdrawals deferrable initially deferred
           for each row when (new.state = '{state}') execute function public.fail_at_commit()"
    );
    let mut superuser = stage.scene.database.superuser();
    superuser
        .batch_execute(&statements)
        .expect("a trigger can be made");
}

fn let_commits_succeed(stage: &Stage) {
    let mut superuser = stage.scene.database.superuser();
    superuser
        .batch_execute("drop function public.fail_at_commit() cascade")
        .expect("the trigger can be dropped");
}

/// Waits until the runner says this; it lives until then, and no byte of the withdrawal is sent.
fn wait_until_logged(stage: &Stage, operation_id: Uuid, runner: &mut Runner, words: &str) {
    until(words, || {
        assert_eq!(stage.scene.sends_of(operation_id), 0);
        assert!(runner.ended().is_none(), "a digest was handed out");
        runner.log().contains(words).then_some(())
    });
}

/// 23514: a check was violated; 40001: another transaction was in the way.
const SQLSTATES: [&str; 2] = ["23514", "40001"];

#[test]
fn a_claim_that_a_deferred_constraint_refuses_hands_out_no_digest() {
    let mut stage = Stage::new();
    for sqlstate in SQLSTATES {
        let operation_id = stage.submit();
        let_commits_fail(&stage, "signing", sqlstate);
        // Should a digest reach a signer, that is its end.
        let mut runner = stage.setup().killed_at("sign.before").start(&["run"]);
        wait_until_logged(
            &stage,
            operation_id,
            &mut runner,
            &format!("claim_batch counts as not committed: no commit today [{sqlstate}]"),
        );
        assert_eq!(stage.scene.state(operation_id), "requested");
        runner.kill();
        let_commits_succeed(&stage);
        let _another = stage.run();
        stage.finish();
    }
}

#[test]
fn signatures_that_a_deferred_constraint_refuses_are_never_sent() {
    let mut stage = Stage::new();
    for sqlstate in SQLSTATES {
        let operation_id = stage.submit();
        let_commits_fail(&stage, "broadcasting", sqlstate);
        let mut runner = stage.run();
        wait_until_logged(
            &stage,
            operation_id,
            &mut runner,
            &format!("record_signatures counts as not committed: no commit today [{sqlstate}]"),
        );
        let_commits_succeed(&stage);
        stage.let_another_be_sent();
        assert_eq!(stage.scene.sends_of(operation_id), 0);
        assert_eq!(stage.scene.state(operation_id), "signing");
        stage.finish();
    }
}

/// How a wait for a standby can end before there is one.
const ENDS_OF_A_WAIT: [&str; 2] = ["pg_cancel_backend", "pg_terminate_backend"];

/// Ends the wait of the runner's commit, after which it is on file here and nowhere else.
fn end_the_wait(stage: &Stage, how: &str) {
    let pid = standby::wait_until_a_commit_waits(&stage.scene.database);
    stage
        .scene
        .database
        .superuser()
        .execute(&format!("select {how}($1)"), &[&pid])
        .expect("a backend can be signalled");
}

#[test]
fn a_claim_whose_wait_for_a_standby_is_ended_hands_out_no_digest_though_it_is_on_file() {
    let mut stage = Stage::new();
    for how in ENDS_OF_A_WAIT {
        let operation_id = stage.submit();
        standby::lose(&stage.scene.database);
        let mut runner = stage.setup().killed_at("sign.before").start(&["run"]);
        end_the_wait(&stage, how);
        stage.scene.wait_until_state(operation_id, "signing");
        wait_until_logged(
            &stage,
            operation_id,
            &mut runner,
            "claim_batch counts as not committed",
        );
        runner.kill();
        standby::find_again(&stage.scene.database);
        let _another = stage.run();
        stage.let_another_be_sent();
        assert_eq!(stage.scene.sends_of(operation_id), 0);
        stage.finish();
    }
}

#[test]
fn signatures_whose_wait_for_a_standby_is_ended_are_not_sent_though_they_are_on_file() {
    let mut stage = Stage::new();
    for how in ENDS_OF_A_WAIT {
        let operation_id = stage.submit();
        let claimed = stage.strike_once(Strike::HoldAnswer, "claim_batch");
        let mut runner = stage.run();
        stage.proxy.wait_until_struck(claimed, 1);
        standby::lose(&stage.scene.database);
        stage.proxy.release();
        end_the_wait(&stage, how);
        stage.scene.wait_until_state(operation_id, "broadcasting");
        wait_until_logged(
            &stage,
            operation_id,
            &mut runner,
            "signature not on file: dropped",
        );
        standby::find_again(&stage.scene.database);
        stage.let_another_be_sent();
        assert_eq!(stage.scene.sends_of(operation_id), 0);
        stage.finish();
    }
}
