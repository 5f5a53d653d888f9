//! Batches that do not come to their end: the lease is shorter, or the runner dies in the middle.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_scenarios::wait::until;

use crate::stage::{SOLID_AFTER_S, Stage};

/// Lets the database's clock run from where the chain's stands.
fn let_the_clock_run(stage: &Stage) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = i64::try_from(now.expect("it is after 1970").as_millis()).expect("it fits");
    let off_by_ms = stage.scene.network.now_ms() - now_ms;
    stage
        .scene
        .database
        .set_clock(&format!("{off_by_ms} milliseconds"));
}

#[test]
fn a_lease_shorter_than_its_batch_costs_time_and_every_withdrawal_is_paid_once() {
    let mut stage = Stage::new();
    stage.operate(
        "select from sluice.set_setting('lease', $1, 'too short')",
        "1 second",
    );
    // Two seconds and a half for each batch, and a second runner that takes over what comes back.
    let operation_ids = stage.submit_many(50);
    let_the_clock_run(&stage);
    let runners = ["one", "two"].map(|name| {
        stage
            .runner(name)
            .set("SLUICE_BATCH", "25")
            .set("SLUICE_CONCURRENCY", "1")
            .set("FAILPOINTS", "signer=return(slow)")
            .start(&["run"])
    });
    until("all are sent", || {
        let sent = stage.scene.network.transactions().len();
        (sent == operation_ids.len()).then_some(())
    });
    let dropped: usize = runners
        .iter()
        .map(|runner| runner.log().matches("the lease was over").count())
        .sum();
    assert!(dropped > 0, "some leases did not last");
    drop(runners);

    stage.scene.show_chain_time();
    stage.scene.advance(SOLID_AFTER_S);
    stage.work_off();
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&operation_ids);
}

#[test]
fn a_runner_killed_in_the_middle_of_a_batch_leaves_each_of_it_where_it_was_and_each_is_paid_once() {
    let mut stage = Stage::new();
    let mut operation_ids = vec![];
    for point in ["sign.before", "sign.after", "send.before", "send.after"] {
        operation_ids.extend(stage.submit_many(24));
        let mut victim = stage
            .runner(point)
            .set("SLUICE_CONCURRENCY", "4")
            .set("FAILPOINTS", &format!("{point}=11*off->return(kill)"))
            .start(&["drain", "--once"]);
        let ended = victim.wait();
        assert_eq!(ended.signal(), Some(9), "{point}: {}", victim.log());
    }
    // Some wait for their signatures, some may have been sent, some are known to be sent.
    let states: BTreeSet<String> = stage
        .standings()
        .into_iter()
        .map(|standing| standing.state)
        .collect();
    assert!(states.len() >= 2, "{states:?}");
    stage.scene.advance(31);
    stage.work_off();
    stage.finish();
    let sent_by_several = operation_ids
        .iter()
        .filter(|id| stage.scene.sends_of(**id) > 1);
    assert!(sent_by_several.count() > 0, "some were sent by two");
}
