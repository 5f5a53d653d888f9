//! The database's clock jumps: a day forward and back, a day back and forward. It says when somebody may look again, and nothing
//! else: envelopes end by blocks, and who was first is told by the fencing token.

use sluice_mock_node::{Fault, Rule, Silence};
use sluice_scenarios::Worker;
use sluice_scenarios::wait::until;
use uuid::Uuid;

use crate::stage::Stage;

const DAY_MS: i64 = 86_400_000;

/// Makes the database's clock wrong by so much.
fn set_off_by(stage: &Stage, offset_ms: i64) {
    let now_ms = stage.scene.network.now_ms();
    stage.scene.database.set_clock_ms(now_ms + offset_ms);
}

/// A withdrawal that a worker who has died since has claimed.
fn claimed(stage: &mut Stage) -> Uuid {
    let operation_id = stage.submit();
    let claimed = Worker::new("dead", &stage.scene.database).claim(1);
    assert_eq!(claimed[0].operation_id, operation_id);
    operation_id
}

/// One whose signature it has filed as well, and not sent.
fn signed(stage: &mut Stage) -> Uuid {
    let operation_id = stage.submit();
    let mut worker = Worker::new("dead", &stage.scene.database);
    let claimed = worker.claim(1);
    let to_send = worker.sign(&claimed);
    assert_eq!(to_send[0].operation_id, operation_id);
    operation_id
}

/// One in each state in which somebody may have to do something.
fn one_in_each_state(stage: &mut Stage) -> [Uuid; 4] {
    let sent = stage.submit();
    stage.setup().start(&["drain", "--once"]).ends_well();
    [sent, claimed(stage), signed(stage), stage.submit()]
}

#[test]
fn a_clock_that_jumps_a_day_ahead_and_back_builds_nothing_anew_and_strands_nothing() {
    let mut stage = Stage::new();
    let [sent, claimed, signed, requested] = one_in_each_state(&mut stage);
    set_off_by(&stage, DAY_MS);
    let _runner = stage.run();
    // Every lease seems over, and every envelope expired.
    for operation_id in [claimed, signed] {
        stage.scene.wait_until_state(operation_id, "broadcast");
    }
    // The chain seems a day old, and nothing is built on it.
    assert_eq!(stage.scene.state(sent), "broadcast");
    assert_eq!(stage.scene.sends_of(requested), 0);
    assert_eq!(stage.scene.state(requested), "requested");
    set_off_by(&stage, 0);
    stage.scene.wait_until_state(requested, "broadcast");
    stage.finish();
}

#[test]
fn a_clock_that_jumps_a_day_back_and_ahead_builds_nothing_anew_and_strands_nothing() {
    let mut stage = Stage::new();
    let withdrawals = one_in_each_state(&mut stage);
    set_off_by(&stage, -DAY_MS);
    let _runner = stage.run();
    // Their leases seem to end tomorrow, which none does.
    for operation_id in withdrawals {
        stage.scene.wait_until_state(operation_id, "broadcast");
    }
    let meanwhile = stage.submit();
    stage.scene.wait_until_state(meanwhile, "broadcast");
    set_off_by(&stage, 0);
    let later = stage.submit();
    stage.scene.wait_until_state(later, "broadcast");
    stage.finish();
}

#[test]
fn a_clock_that_stays_a_day_off_pays_all_the_same_or_waits() {
    let mut stage = Stage::new();
    let behind = stage.submit();
    set_off_by(&stage, -DAY_MS);
    let _runner = stage.run();
    stage.scene.wait_until_state(behind, "broadcast");
    stage.scene.network.step(63_000);
    set_off_by(&stage, -DAY_MS);
    stage.scene.wait_until_state(behind, "confirmed");

    set_off_by(&stage, DAY_MS);
    let ahead = stage.submit();
    stage.scene.network.step(400_000);
    set_off_by(&stage, DAY_MS);
    stage.scene.wait_until_followed();
    assert_eq!(stage.scene.sends_of(ahead), 0);
    assert_eq!(stage.scene.state(ahead), "requested");
    stage.finish();
}

#[test]
fn a_lease_that_a_jump_ends_while_its_owner_sends_is_taken_over_and_the_owner_fenced_out() {
    let mut stage = Stage::new();
    let silence = Rule::new(Fault::AcceptThenTimeout { how: Silence::Hold }).worker("slow");
    stage.scene.network.add_fault(silence).expect("a fault");
    let operation_id = stage.submit();
    let slow = stage
        .setup()
        .set("SLUICE_WORKER_ID", "slow")
        .set("SLUICE_SEND_TIMEOUT", "2s")
        .start(&["run"]);
    until("the slow one sends", || {
        (stage.scene.sends_of(operation_id) == 1).then_some(())
    });
    slow.freeze();
    set_off_by(&stage, DAY_MS);
    let _fast = stage.run();
    stage.scene.wait_until_state(operation_id, "broadcast");
    slow.thaw();
    until("the slow one is told", || {
        slow.log().contains("fenced out").then_some(())
    });
    assert_eq!(stage.scene.state(operation_id), "broadcast");
    set_off_by(&stage, 0);
    stage.finish();
}
