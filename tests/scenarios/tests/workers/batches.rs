//! A batch that takes longer than its lease.

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
