//! The crash points: each is met, and what was killed there is finished by another.

use std::os::unix::process::ExitStatusExt as _;

use sluice_mock_node::{Fault, Rule, Silence};
use sluice_runner::crash::Point;
use sluice_scenarios::Scene;

/// From a block to the moment it is solid, and a little more.
const SOLID_AFTER_S: u64 = 20 * 3;

/// Kills a runner at this point, and lets another finish.
fn killed_at(point: Point) {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let mut setup = scene.runner("victim").killed_at(point.name());
    match point {
        // A signer that cannot be: the wallets' rules name none.
        Point::PostponeBeforeCommit | Point::PostponeAfterCommit => {
            setup = setup.set("SLUICE_WALLET", "")
        }
        Point::ReleaseBeforeCommit | Point::ReleaseAfterCommit => {
            let silent = Rule::new(Fault::DropThenTimeout { how: Silence::Hold }).worker("victim");
            scene.network.add_fault(silent).expect("a fault");
            setup = setup
                .set("SLUICE_STOP_GRACE", "100ms")
                .set("SLUICE_SEND_TIMEOUT", "60s");
        }
        Point::ObserveBefore | Point::ObserveBeforeCommit | Point::ObserveAfterCommit => {
            scene.advance(3)
        }
        Point::ClaimBeforeCommit
        | Point::ClaimAfterCommit
        | Point::SignBefore
        | Point::SignAfter
        | Point::SignaturesBeforeCommit
        | Point::SignaturesAfterCommit
        | Point::SendBefore
        | Point::SendAfter
        | Point::AnswersBeforeCommit
        | Point::AnswersAfterCommit => {}
    }
    let mut victim = setup.start(&["run"]);
    let status = match point {
        Point::ReleaseBeforeCommit | Point::ReleaseAfterCommit => {
            scene.wait_until_state(operation_id, "broadcasting");
            victim.terminate()
        }
        _ => victim.wait(),
    };
    assert_eq!(
        status.signal(),
        Some(9),
        "{}: {}",
        point.name(),
        victim.log()
    );
    assert!(
        victim
            .log()
            .contains(&format!("crash point {} reached", point.name())),
        "{}",
        victim.log()
    );

    // Past the longest lease, another does what is left; then what it sent becomes solid.
    scene.advance(60);
    assert_eq!(scene.runner("heir").answer(&["drain", "--once"]), "");
    scene.advance(SOLID_AFTER_S);
    assert_eq!(scene.runner("heir").answer(&["drain", "--once"]), "");
    assert_eq!(scene.state(operation_id), "confirmed", "{}", point.name());
    let transactions = scene.network.transactions();
    assert_eq!(transactions.len(), 1, "{}: {transactions:?}", point.name());
    assert_eq!(
        transactions[0].accepts,
        1,
        "{}: {transactions:?}",
        point.name()
    );
}

#[test]
fn a_runner_killed_at_any_crash_point_is_inherited_and_paid_once() {
    for point in Point::ALL {
        killed_at(*point);
    }
}
