//! The server goes: stopped as in a crash and started again in the middle of a batch, and backends terminated at every point
//! that a runner passes. What was acknowledged is there, what was not comes back, and nothing is sent twice.

use std::collections::BTreeSet;

use sluice_core::envelope::Txid;
use sluice_mock_node::{Fault, Rule, Silence};
use sluice_scenarios::postgres::Stop;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Runner, Strike};
use uuid::Uuid;

use crate::stage::{SOLID_AFTER_S, Stage};

const BATCH: usize = 20;

/// The network has seen no transaction that the database does not know.
pub fn assert_all_that_was_sent_is_on_file(stage: &Stage) {
    let rows = stage
        .scene
        .database
        .superuser()
        .query("select txid from sluice.envelopes", &[]);
    let known: BTreeSet<Txid> = rows
        .expect("envelopes can be read")
        .iter()
        .map(|row| Txid::from_bytes(row.get(0)).expect("a txid has 32 bytes"))
        .collect();
    for sent in stage.scene.network.transactions() {
        assert!(known.contains(&sent.txid), "{sent:?}");
    }
}

/// The server is stopped while the answer to a commit of this call, a batch's, is on its way.
fn stopped_at(stage: &mut Stage, how: Stop, strike: Strike, call: &str) {
    stage.submit_many(BATCH);
    let struck = stage.strike_once(strike, call);
    let runner = stage.run();
    if call == "observe_blocks" {
        stage.wait_until_all_are(&["broadcast", "confirmed"]);
        stage.scene.advance(75);
    }
    stage.proxy.wait_until_struck(struck, 1);
    stage.scene.restart_postgres(how, &stage.proxy);
    assert_all_that_was_sent_is_on_file(stage);
    // The same runner goes on by itself.
    stage.finish();
    drop(runner);
}

#[test]
fn a_server_stopped_as_in_a_crash_in_mid_batch_loses_nothing_that_was_acknowledged() {
    let mut stage = Stage::new();
    for call in [
        "claim_batch",
        "record_signatures",
        "record_broadcasts",
        "observe_blocks",
    ] {
        stopped_at(&mut stage, Stop::Immediate, Strike::HoldAnswer, call);
    }
}

#[test]
fn a_server_that_is_shut_down_and_started_again_is_found_again_by_its_runners() {
    let mut stage = Stage::new();
    for call in ["record_signatures", "record_broadcasts"] {
        stopped_at(&mut stage, Stop::Fast, Strike::CutBefore, call);
    }
}

#[test]
fn a_server_that_crashes_while_transactions_are_sent_knows_each_of_them_afterwards() {
    let mut stage = Stage::new();
    let silence = Rule::new(Fault::AcceptThenTimeout { how: Silence::Hold });
    let silence = stage.scene.network.add_fault(silence).expect("a fault");
    stage.submit_many(BATCH);
    let runner = stage
        .setup()
        .set("SLUICE_SEND_TIMEOUT", "60s")
        .start(&["run"]);
    until("some are on their way", || {
        (stage.scene.network.transactions().len() >= 8).then_some(())
    });
    stage.scene.restart_postgres(Stop::Immediate, &stage.proxy);
    assert_all_that_was_sent_is_on_file(&stage);
    drop(runner);
    assert!(stage.scene.network.remove_fault(silence));
    let _another = stage.run();
    stage.finish();
}

#[test]
fn a_database_away_for_longer_than_an_envelope_lives_learns_from_blocks_what_was_paid_meanwhile() {
    let mut stage = Stage::new();
    let [paid, left_out] = [stage.submit(), stage.submit()];
    let _runner = stage.run();
    stage.wait_until_all_are(&["broadcast"]);
    let txid = stage.scene.transactions_of(left_out)[0].txid;
    let never = Rule::new(Fault::NeverInclude {}).txid(txid);
    stage.scene.network.add_fault(never).expect("a fault");
    stage.proxy.refuse(true);
    stage.proxy.cut_all();
    stage.scene.advance(900);
    stage.proxy.refuse(false);
    stage.scene.let_time_pass_until_confirmed(&[paid, left_out]);
    stage.scene.assert_paid_once(paid);
    let [dead, second] = stage
        .scene
        .transactions_of(left_out)
        .try_into()
        .expect("two");
    assert_eq!(dead.block, None);
    assert_eq!(second.result.as_deref(), Some("SUCCESS"));
    assert_eq!(stage.scene.network.transactions().len(), 3);
}

/// Every point that a runner passes: `sluice-runner crash-points`.
fn points(stage: &Stage) -> Vec<String> {
    let points = stage.setup().answer(&["crash-points"]);
    points.lines().map(str::to_owned).collect()
}

/// A runner that stands still when it first comes to this point, with all that leads it there.
fn runner_that_stops_at(stage: &Stage, point: &str, operation_id: Uuid) -> Runner {
    let mut setup = stage
        .setup()
        .set("FAILPOINTS", &format!("{point}=1*return(stop)"));
    if point.starts_with("postpone") {
        setup = setup.set("SLUICE_WALLET", "");
    }
    if point.starts_with("release") {
        let silence = Fault::DropThenTimeout { how: Silence::Hold };
        let silence = Rule::new(silence).operation(operation_id).times(1);
        stage.scene.network.add_fault(silence).expect("a fault");
        setup = setup
            .set("SLUICE_SEND_TIMEOUT", "60s")
            .set("SLUICE_STOP_GRACE", "100ms");
    }
    if point.starts_with("observe") {
        stage.setup().start(&["drain", "--once"]).ends_well();
        stage.scene.advance(SOLID_AFTER_S);
    }
    let mut runner = setup.start(&["run"]);
    if point.starts_with("release") {
        until("it is sent", || {
            (stage.scene.sends_of(operation_id) == 1).then_some(())
        });
        runner.ask_to_end();
    }
    let reached = format!("crash point {point} reached");
    until(&reached, || runner.log().contains(&reached).then_some(()));
    assert!(runner.ended().is_none());
    runner
}

/// Ends every session of a runner's; answers how many there were.
fn terminate_backends(stage: &Stage) -> i64 {
    let mut superuser = stage.scene.database.superuser();
    let terminated = superuser.query_one(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like 'sluice-runner %'",
        &[],
    );
    let terminated: i64 = terminated.expect("backends can be terminated").get(0);
    until("they are gone", || {
        let left = superuser.query_one(
            "select count(*) from pg_stat_activity where application_name like 'sluice-runner %'",
            &[],
        );
        (left.expect("sessions can be read").get::<_, i64>(0) == 0).then_some(())
    });
    terminated
}

#[test]
fn a_backend_terminated_at_any_point_costs_its_runner_a_connection_and_nobody_money() {
    let mut stage = Stage::new();
    for point in points(&stage) {
        let operation_id = stage.submit();
        let mut runner = runner_that_stops_at(&stage, &point, operation_id);
        assert!(terminate_backends(&stage) > 0, "{point}");
        runner.thaw();
        if point.starts_with("release") || point.starts_with("postpone") {
            // It ends by itself, or can do nothing: another takes over.
            runner.terminate();
            runner = stage.run();
        }
        stage.finish();
        assert!(runner.ended().is_none(), "{point}: it goes on by itself");
    }
}
