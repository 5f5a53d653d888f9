//! Zombies: workers that stand still while their leases pass and another finishes their work, and then go on. Their own clock
//! tells them that it is too late, and where it does not the fencing token does.

use std::time::{Duration, Instant};

use sluice_scenarios::wait::until;

use crate::stage::Stage;

const LEASE: Duration = Duration::from_secs(3);

/// Where each stands still, how often it has sent by then, and what it says when it goes on.
const GRAVES: [(&str, usize, &str); 5] = [
    ("claim.after_commit", 0, "not signed: the lease was over"),
    ("sign.before", 0, "not signed: the lease was over"),
    ("sign.after", 0, "not signed: the lease was over"),
    ("send.before", 0, "not sent: the lease was over"),
    ("send.after", 1, "fenced out"),
];

#[test]
fn a_zombie_whose_lease_is_over_writes_nothing_and_sends_nothing_when_it_goes_on() {
    let mut stage = Stage::new();
    stage.operate(
        "select from sluice.set_setting('lease', $1, 'zombies')",
        "3 seconds",
    );
    let zombies: Vec<_> = GRAVES
        .into_iter()
        .map(|(point, sent_before, says)| {
            let operation_id = stage.submit();
            let zombie = stage.stopped_at(stage.runner(point), point);
            assert_eq!(stage.sends_by(point, operation_id), sent_before, "{point}");
            (operation_id, point, sent_before, says, zombie)
        })
        .collect();

    let last_began = Instant::now();
    // Past every lease, and before a solid block shows that anything is paid.
    stage.scene.advance(2 * LEASE.as_secs());
    stage.work_off();
    let before = stage.standings();
    assert!(
        before.iter().all(|standing| standing.state == "broadcast"),
        "{before:?}"
    );
    // Leases are counted by the runner's own clock too, which nobody steps.
    until("the last lease is over", || {
        (last_began.elapsed() > LEASE).then_some(())
    });
    for (operation_id, point, sent_before, says, mut zombie) in zombies {
        zombie.thaw();
        let ended = zombie.wait();
        assert!(ended.success(), "{point}: {ended}");
        assert_eq!(stage.sends_by(point, operation_id), sent_before, "{point}");
        assert_eq!(stage.sends_by("heir", operation_id), 1, "{point}");
        assert!(zombie.log().contains(says), "{point}: {}", zombie.log());
    }
    assert_eq!(stage.standings(), before);
    stage.finish();
}
