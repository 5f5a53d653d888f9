//! Runners that are told to end, by SIGTERM, at each crash point: they do, and give back what they have not finished, so that
//! another goes on with it at once and not when a lease is over.

use std::collections::BTreeSet;

use sluice_mock_node::TxReport;
use sluice_runner::crash::Point;

use crate::fault::NodeFault;
use crate::ground::{Ground, Walk};
use crate::leg::{Leg, leg_of};

/// How long a task is put off that nobody could sign.
const PUT_OFF_S: u64 = 5;

/// A runner is told to end while it stands at the point, and has so long to finish; it ends as it should.
fn told_to_end_at(ground: &mut Ground, point: Point, grace: &str) -> Walk {
    let walk = ground.set_out(point, NodeFault::Honest, 1..=1);
    let setup = ground.runner(&walk.name()).set("SLUICE_STOP_GRACE", grace);
    let runner = ground.lead_to_point(&walk, setup, "1*return(stop)", &["run"]);
    // On the leg of the release it has been told already, and a second word would end it at once.
    if leg_of(point) != Leg::Release {
        runner.ask_to_end();
    }
    runner.thaw();
    runner.ends_well();
    walk
}

/// Walks to all points with this grace, and shows that each withdrawal is paid once; those that a runner which was told to end
/// has not sent by itself, another has.
fn walk_with_grace(grace: &str) -> Vec<(Walk, TxReport)> {
    let mut ground = Ground::new();
    let mut walks = vec![];
    for point in Point::ALL {
        let walk = told_to_end_at(&mut ground, *point, grace);
        if leg_of(*point) == Leg::Postpone {
            ground.scene.advance(PUT_OFF_S);
        }
        // No lease has passed since: what was left was given back.
        ground.work_off();
        let state = ground.scene.state(walk.operation_id);
        assert!(
            ["broadcast", "confirmed"].contains(&state.as_str()),
            "{} is {state}",
            walk.name()
        );
        walks.push(walk);
    }
    ground.finish();
    let complaints = ground.complaints();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let transaction_of = |walk: Walk| {
        let mut transactions = ground.scene.transactions_of(walk.operation_id);
        (walk, transactions.remove(0))
    };
    walks.into_iter().map(transaction_of).collect()
}

#[test]
fn a_runner_told_to_end_at_any_point_finishes_what_it_holds_and_each_withdrawal_is_paid_once() {
    for (walk, transaction) in walk_with_grace("10s") {
        if leg_of(walk.point) == Leg::Work {
            let by_itself = BTreeSet::from([walk.name()]);
            assert_eq!(transaction.workers, by_itself, "{}", walk.name());
        }
    }
}

#[test]
fn a_runner_told_to_end_at_once_at_any_point_gives_back_what_it_holds_and_each_withdrawal_is_paid_once()
 {
    let walks = walk_with_grace("0s");
    let given_back = walks
        .iter()
        .filter(|(walk, transaction)| !transaction.workers.contains(&walk.name()));
    assert!(given_back.count() > 0, "some did not come to send");
}
