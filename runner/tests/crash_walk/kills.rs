//! Runners that are killed: SIGKILL at each crash point, with each fault of the nodes.

use std::os::unix::process::ExitStatusExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use sluice_runner::crash::Point;

use crate::fault::NodeFault;
use crate::ground::Ground;

/// How many grounds there are, each on a thread of its own: the clock is its server's.
const GROUNDS: usize = 2;

/// Kills a runner at this point of a withdrawal with this misfortune.
fn kill_at(ground: &mut Ground, point: Point, fault: NodeFault) {
    let walk = ground.set_out(point, fault, fault.transactions());
    let setup = ground.runner(&walk.name());
    let mut victim = ground.lead_to_point(&walk, setup, "return(kill)", &["drain", "--once"]);
    let ended = victim.wait();
    assert_eq!(ended.signal(), Some(9), "{}: {}", walk.name(), victim.log());
}

/// Walks to these points with every fault; what went wrong.
fn walk(points: &[Point]) -> Vec<String> {
    let mut ground = Ground::new();
    let mut complaints = vec![];
    // The longest there is: whatever is to be sent three times comes to it before its envelope expires.
    ground.set_time_to_live("600 seconds");
    for point in points {
        // A lagging node is everybody's misfortune: those whose fault is another come to their end before.
        for fault in NodeFault::ALL {
            if fault == NodeFault::Lagging {
                ground.finish();
            }
            // One that breaks off says so, and the others go on.
            let strike = AssertUnwindSafe(|| kill_at(&mut ground, *point, fault));
            if panic::catch_unwind(strike).is_err() {
                let (point, fault) = (point.name(), fault.name());
                complaints.push(format!("{point}/{fault}: broken off, see above"));
            }
        }
        ground.finish();
    }
    complaints.extend(ground.complaints());
    complaints
}

#[test]
fn a_runner_killed_at_any_point_while_nodes_do_their_worst_is_inherited_and_each_withdrawal_paid_once()
 {
    let shares: Vec<Vec<Point>> = (0..GROUNDS)
        .map(|share| {
            Point::ALL
                .iter()
                .copied()
                .skip(share)
                .step_by(GROUNDS)
                .collect()
        })
        .collect();
    let complaints: Vec<String> = thread::scope(|scope| {
        let walkers: Vec<_> = shares
            .iter()
            .map(|points| scope.spawn(|| walk(points)))
            .collect();
        walkers
            .into_iter()
            .flat_map(|walker| {
                walker
                    .join()
                    .unwrap_or_else(|_| vec!["a walk was broken off: see above".to_owned()])
            })
            .collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
