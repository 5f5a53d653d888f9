//! Runners that stand still for ten minutes, by the chain's clock and the database's, at each crash point, and then go on as if
//! nothing had been. Their own clock tells them nothing: for the machine only a moment has passed.

use sluice_runner::crash::Point;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Runner, RunnerSetup};

use crate::fault::NodeFault;
use crate::ground::{Ground, PAST_EVERY_LEASE_S, SOLID_AFTER_S, Walk};
use crate::leg::{Leg, holds_a_transaction, leg_of};

const TEN_MINUTES_S: u64 = 600;

/// A runner of this walk's. Where it stops in the middle of a transaction, the server ends its session soon.
fn setup(ground: &Ground, walk: &Walk) -> RunnerSetup {
    ground
        .runner(&walk.name())
        .set("SLUICE_STATEMENT_TIMEOUT", "1s")
}

/// Waits until the server has ended the session that a runner which stopped there had a transaction open in: until then, it
/// holds its locks.
fn wait_until_no_transaction_is_open(ground: &Ground, point: Point) {
    if !holds_a_transaction(point) {
        return;
    }
    let mut superuser = ground.scene.database.superuser();
    until("the server ends the session", || {
        let open = superuser.query_one(
            "select count(*) from pg_stat_activity where state = 'idle in transaction'",
            &[],
        );
        (open.expect("sessions can be read").get::<_, i64>(0) == 0).then_some(())
    });
}

/// A runner that stands still at this point.
fn stopped_at(
    ground: &mut Ground,
    point: Point,
    fault: NodeFault,
    command: &[&str],
) -> (Walk, Runner) {
    // Bytes that are signed, or sent, by a runner that comes too late are seen by the nodes and refused.
    let walk = ground.set_out(point, fault, 1..=2);
    let stopped = ground.lead_to_point(&walk, setup(ground, &walk), "1*return(stop)", command);
    wait_until_no_transaction_is_open(ground, point);
    (walk, stopped)
}

#[test]
fn a_runner_that_stood_still_at_any_point_while_others_rebuilt_and_paid_changes_nothing_when_it_goes_on()
 {
    let mut ground = Ground::new();
    // Those first that need time to pass: all stand still at once in the end.
    let mut points = Point::ALL.to_vec();
    points.sort_by_key(|point| leg_of(*point) != Leg::Observe);
    let mut stopped = vec![];
    for point in points {
        let (walk, runner) = stopped_at(
            &mut ground,
            point,
            NodeFault::NeverIncluded,
            &["drain", "--once"],
        );
        stopped.push((walk, runner));
    }

    // First the others send what was built. No block takes it; ten minutes on it is dead, and what is built in its place is on
    // its way.
    ground.scene.advance(PAST_EVERY_LEASE_S);
    ground.look();
    ground.scene.advance(TEN_MINUTES_S - PAST_EVERY_LEASE_S);
    ground.look();
    let before = ground.rows();
    assert!(
        before
            .iter()
            .all(|row| row.state == "broadcast" && row.attempt == 2),
        "{before:?}"
    );
    for (walk, mut runner) in stopped {
        assert!(runner.ended().is_none(), "{}", walk.name());
        runner.thaw();
        println!("{} goes on", walk.name());
        runner.ends_well();
    }
    assert_eq!(ground.rows(), before);
    ground.scene.advance(SOLID_AFTER_S);
    ground.look();
    let complaints = ground.complaints();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_runner_that_stood_still_at_any_point_with_nobody_else_at_work_finishes_what_it_began() {
    let mut ground = Ground::new();
    for point in Point::ALL {
        let (walk, mut runner) = stopped_at(&mut ground, *point, NodeFault::Honest, &["run"]);
        println!("{} stands still", walk.name());
        ground.scene.advance(TEN_MINUTES_S);
        runner.thaw();
        match leg_of(*point) {
            Leg::Work | Leg::Observe => {}
            // It ends, as it was told to before it stopped, or it knows no signer: who comes next does it.
            Leg::Release => {
                runner.wait();
                runner = ground.runner("next").start(&["run"]);
            }
            Leg::Postpone => {
                runner.terminate();
                runner = ground.runner("next").start(&["run"]);
            }
        }
        ground
            .scene
            .let_time_pass_until_confirmed(&[walk.operation_id]);
        runner.terminate();
    }
    let complaints = ground.complaints();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
