//! A follower of its own, beside workers that do not follow: what stands still while it does, and that nothing is lost.

use crate::stage::Stage;
use sluice_scenarios::wait::until;

#[test]
fn a_follower_that_stands_still_for_ten_minutes_stops_building_and_nothing_is_built_on_an_old_chain()
 {
    let mut stage = Stage::new();
    let follower = stage.runner("follower").start(&["follow"]);
    let worker = stage
        .runner("worker")
        .set("SLUICE_NO_FOLLOW", "true")
        .start(&["run"]);
    let sent_before = stage.submit();
    stage.scene.wait_until_state(sent_before, "broadcast");

    follower.freeze();
    let before = stage.standing(sent_before).due_at;
    // The chain goes on without it, and pays what was sent.
    stage.scene.advance(600);
    let asked_for_meanwhile = stage.submit();
    until("the worker has come by, and could do nothing", || {
        (stage.standing(sent_before).due_at != before).then_some(())
    });
    let held_by = stage.held_by(asked_for_meanwhile).expect("it waits");
    assert!(
        held_by.starts_with("the newest followed block is from"),
        "{held_by}"
    );
    assert_eq!(stage.envelopes(asked_for_meanwhile), []);
    assert_eq!(stage.envelopes(sent_before).len(), 1);
    assert_eq!(stage.scene.state(sent_before), "broadcast");

    follower.thaw();
    let both = [sent_before, asked_for_meanwhile];
    stage.scene.let_time_pass_until_confirmed(&both);
    stage.scene.assert_each_paid_once_and_nothing_else(&both);
    drop((follower, worker));
}
