//! Cancelling: at once while nothing built can pay, a wish while something can. The chain has the last word on both.

use super::scene::*;
use pgrx::prelude::*;

fn cancel(id: &str, reason: &str) -> String {
    sqlstate(&format!("select sluice.cancel('{id}', '{reason}')"))
}

fn failure(id: &str) -> String {
    one(&format!(
        "select failure_reason from sluice.withdrawal('{id}')"
    ))
    .unwrap_or_default()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn before_anything_is_built_it_is_rejected_at_once() {
        let scene = Scene::open();
        let id = scene.submit(1);
        assert_eq!(cancel(&id, "changed his mind"), "");
        assert_eq!(
            (scene.state(&id).as_str(), failure(&id).as_str()),
            ("rejected", "cancelled: changed his mind")
        );
        assert!(scene.claim("w").is_empty());
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn while_an_envelope_lives_it_is_a_wish_that_stops_signing_and_sending() {
        let mut scene = Scene::open();
        let in_signing = scene.signing(1);
        let in_signed = scene.signed(2);
        let sending = scene.broadcasting(3);
        let broadcast = scene.broadcast(4);
        let tasks = [&in_signing, &in_signed, &sending, &broadcast];
        for task in tasks {
            assert_eq!(cancel(&task.operation_id, "stop"), "");
            let wish = one(&format!(
                "select cancel_reason from sluice.withdrawal('{}')",
                task.operation_id
            ));
            assert_eq!(wish.as_deref(), Some("stop"));
        }
        let logged =
            "select count(*) from sluice.changes where what = 'cancel' and reason = 'stop'";
        assert_eq!(count(logged), 4);
        // Whoever holds a task finds that it is not theirs any more.
        let late = scene.sign("w", std::slice::from_ref(&in_signing));
        assert_eq!(
            late[0].state, "",
            "a signature that comes late is not filed"
        );
        scene.pass(120);
        run("update sluice.withdrawals set due_at = sluice.now() where due_at is not null");
        assert!(
            scene.claim("w").is_empty(),
            "nothing is offered, sent or sent again"
        );
        let held = one(&format!(
            "select held_by from sluice.explain('{}')",
            broadcast.operation_id
        ));
        assert!(held.expect("it says").starts_with("is to end"));
        scene.pass(240);
        for task in tasks {
            assert_eq!(scene.state(&task.operation_id), "failed");
            assert_eq!(failure(&task.operation_id), "cancelled: stop");
            let why = one(&format!(
                "select detail ->> 'reason_code' || ' ' || (detail ->> 'fate') from sluice.timeline('{}') where to_state = 'failed'",
                task.operation_id
            ));
            assert_eq!(why.as_deref(), Some("cancelled dead"));
        }
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn what_was_paid_before_the_wish_could_take_effect_is_confirmed() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        cancel(&task.operation_id, "stop");
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(scene.state(&task.operation_id), "confirmed");
        assert_eq!(failure(&task.operation_id), "");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn what_the_chain_would_let_be_built_anew_is_not() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        cancel(&task.operation_id, "stop");
        scene.follow(3000, &[in_block(&task.raw_data, OUT_OF_ENERGY)]);
        assert_eq!(
            (
                scene.state(&task.operation_id).as_str(),
                failure(&task.operation_id).as_str()
            ),
            ("failed", "cancelled: stop")
        );
        // A spent envelope, and none built yet after it: nothing can pay, so it ends at once.
        let again = scene.broadcast(2);
        scene.follow(3000, &[in_block(&again.raw_data, OUT_OF_ENERGY)]);
        assert_eq!(scene.state(&again.operation_id), "signing");
        assert_eq!(cancel(&again.operation_id, "stop"), "");
        assert_eq!(scene.state(&again.operation_id), "failed");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn repeating_it_is_free_and_another_reason_is_a_conflict() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        let id = &task.operation_id;
        for _ in 0..2 {
            assert_eq!(cancel(id, "stop"), "");
        }
        assert_eq!(cancel(id, "another"), "SL001");
        let entries = || {
            count(&format!(
                "select seq from sluice.withdrawals where operation_id = '{id}'"
            ))
        };
        let before = entries();
        cancel(id, "stop");
        assert_eq!(entries(), before, "a repeat writes nothing");
        scene.pass(360);
        assert_eq!(scene.state(id), "failed");
        assert_eq!(
            (cancel(id, "stop"), cancel(id, "another")),
            (String::new(), "SL001".to_owned())
        );
        let paid = scene.broadcast(2);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        assert_eq!(cancel(&paid.operation_id, "late"), "SL011");
        for (statement, state, fault) in [
            (
                format!(
                    "select sluice.cancel('{}', 'x')",
                    super::super::scene::id(99)
                ),
                "SL030",
                "operation_id",
            ),
            (
                format!("select sluice.cancel('{id}', ' ')"),
                "SL005",
                "reason",
            ),
            (
                "select sluice.cancel(null, 'x')".to_owned(),
                "SL005",
                "operation_id",
            ),
        ] {
            refuses(&statement, state, fault);
        }
    }
}
