//! Single steps by the holder of a token, and what becomes of a holder whose withdrawal was decided meanwhile: whatever it still
//! says about it lands on nothing.

use super::scene::*;
use pgrx::prelude::*;

fn cas(task: &Task, from: &str, to: &str, more: &str) -> String {
    format!(
        "select state || ' ' || fencing_token from sluice.fenced_cas('{}', {}, '{from}', '{to}', 'w'{more})",
        task.operation_id, task.fencing_token
    )
}

/// Everything that a worker who holds this task might report, one after the other; none of it may land.
fn nothing_lands(scene: &Scene, task: &Task, why: &str) {
    let before = scene.column(&task.operation_id, "withdrawals::text");
    for from in ["signing", "signed", "broadcasting", "broadcast"] {
        assert_eq!(one(&cas(task, from, from, "")), None, "{why}: {from}");
        assert_eq!(
            one(&cas(task, from, from, ", '{\"due_in\": \"0 seconds\"}'")),
            None,
            "{why}: {from}"
        );
    }
    for (from, to) in [
        ("signing", "signed"),
        ("signed", "broadcasting"),
        ("broadcasting", "broadcast"),
        ("broadcast", "failed"),
        ("signing", "failed"),
    ] {
        assert_eq!(one(&cas(task, from, to, "")), None, "{why}: {from} > {to}");
    }
    for code in ["SUCCESS", "DUP_TRANSACTION_ERROR", "SIGERROR", "NO_ANSWER"] {
        assert_eq!(
            scene.answer("w", std::slice::from_ref(task), code)[0].state,
            "",
            "{why}: {code}"
        );
    }
    assert_eq!(
        scene.sign("w", std::slice::from_ref(task))[0].state,
        "",
        "{why}: a signature"
    );
    let release = format!(
        "select sluice.release('w', array['{}']::uuid[], array[{}]::bigint[])",
        task.operation_id, task.fencing_token
    );
    assert_eq!(count(&release), 0, "{why}: release");
    assert_eq!(
        scene.column(&task.operation_id, "withdrawals::text"),
        before,
        "{why}"
    );
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_step_of_the_token_holder_is_told_in_its_name_with_its_detail_and_renews_the_lease() {
        let scene = Scene::open();
        let task = scene.broadcasting(1);
        scene.clock(20);
        let moved = one(&cas(
            &task,
            "broadcasting",
            "broadcast",
            ", detail => '{\"seen\": \"by hand\"}'",
        ));
        assert_eq!(moved, Some(format!("broadcast {}", task.fencing_token)));
        let told = one(&format!(
            "select concat_ws(' ', from_state, to_state, worker_id, detail) from sluice.timeline('{}') order by seq desc limit 1",
            task.operation_id
        ));
        assert_eq!(
            told.as_deref(),
            Some("broadcasting broadcast w {\"seen\": \"by hand\"}")
        );
        assert_eq!(
            (
                scene.due_in(&task.operation_id),
                scene.column(&task.operation_id, "leased_by")
            ),
            (30, "w".to_owned())
        );
        assert_eq!(
            one(&cas(&task, "broadcasting", "broadcast", "")),
            None,
            "once"
        );
    }

    #[pg_test]
    fn a_withdrawal_that_was_put_off_is_nobodys_until_its_time_and_then_the_next_ones() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let put_off = one(&cas(
            &task,
            "signing",
            "signing",
            ", '{\"due_in\": \"10 minutes\", \"last_error\": \"the signer rests\"}'",
        ));
        assert_eq!(put_off, Some(format!("signing {}", task.fencing_token)));
        scene.clock(599);
        assert_eq!(scene.claim("other").len(), 0);
        run("update sluice.settings set freshness = '500 seconds', time_to_live = '600 seconds'");
        scene.clock(600);
        let next = scene.claim("other").remove(0);
        assert_eq!(
            (next.fencing_token, &next.txid),
            (task.fencing_token + 1, &task.txid),
            "an envelope that lives is signed, however old the newest block"
        );
        assert_eq!(
            scene.column(&task.operation_id, "last_error"),
            "the signer rests"
        );
    }

    #[pg_test]
    fn a_step_to_failed_asks_that_every_envelope_is_spent_and_says_why() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        for (from, to) in [("broadcast", "failed"), ("broadcast", "signing")] {
            assert_eq!(
                sqlstate(&cas(&task, from, to, "")),
                "SL012",
                "{from} > {to}"
            );
        }
        scene.pass(300);
        let spent = Task {
            fencing_token: task.fencing_token + 1,
            ..task
        };
        let failed = one(&cas(
            &spent,
            "signing",
            "failed",
            ", '{\"last_error\": \"given up\"}'",
        ));
        assert_eq!(failed, Some(format!("failed {}", spent.fencing_token)));
        assert_eq!(
            scene.column(&spent.operation_id, "failure_reason"),
            "ended by its worker w: given up"
        );
    }

    #[pg_test]
    fn a_step_to_confirmed_asks_for_the_block_that_paid_and_names_it() {
        let mut scene = Scene::open();
        run("update sluice.assets set depth = 1");
        let task = scene.broadcast(1);
        assert_eq!(sqlstate(&cas(&task, "broadcast", "confirmed", "")), "SL012");
        // As far as settling would have come, had it not been kept from it.
        scene.follow_by_hand(3000);
        let block = scene.tip.number;
        run_as_owner(&format!(
            "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units)
             values ('\\x{}', '{}', {block}, 0, 'SUCCESS', '{MOCK_WALLET}', '{THEIRS}', '{THEIRS}', 1)",
            hex::encode(&task.txid), task.operation_id
        ));
        run_as_owner(&format!(
            "update sluice.envelopes set fate = 'included', receipt = 'SUCCESS', block_number = {block}"
        ));
        assert_eq!(
            sqlstate(&cas(&task, "broadcast", "confirmed", "")),
            "SL012",
            "not deep enough"
        );
        scene.follow_by_hand(3000);
        assert_eq!(
            one(&cas(&task, "broadcast", "confirmed", "")),
            Some(format!("confirmed {}", task.fencing_token))
        );
        assert_eq!(
            scene.column(
                &task.operation_id,
                "block_number || ' ' || (confirmed_at = sluice.now())"
            ),
            format!("{block} true")
        );
    }

    #[pg_test]
    fn whoever_holds_what_was_paid_rebuilt_or_ended_meanwhile_holds_nothing() {
        let mut scene = Scene::open();
        let dies = scene.broadcast(1);
        scene.pass(300);
        nothing_lands(&scene, &dies, "its envelope died");
        let paid = scene.broadcasting(2);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        nothing_lands(&scene, &paid, "it is confirmed");
        let failed = scene.broadcasting(3);
        scene.follow(3000, &[in_block(&failed.raw_data, REVERT)]);
        nothing_lands(&scene, &failed, "it failed");
        let again = scene.broadcasting(4);
        scene.follow(3000, &[in_block(&again.raw_data, OUT_OF_ENERGY)]);
        nothing_lands(&scene, &again, "its envelope ran out of energy");
        let parked = scene.broadcasting(5);
        scene.follow(3000, &[in_block(&parked.raw_data, 0)]);
        nothing_lands(&scene, &parked, "it is parked");
        let taken = scene.broadcasting(6);
        scene.clock(40);
        scene.claim("other");
        nothing_lands(&scene, &taken, "its lease ran out");
        let waiting = scene.submit(7);
        run(&format!("select sluice.cancel('{waiting}', 'not wanted')"));
        let cancelled = Task {
            operation_id: waiting,
            fencing_token: 0,
            ..taken
        };
        nothing_lands(&scene, &cancelled, "it was cancelled");
    }

    #[pg_test]
    fn a_withdrawal_that_waits_for_its_depth_takes_reports_and_stays_where_it_is() {
        let mut scene = Scene::open();
        run("update sluice.assets set depth = 3");
        let task = scene.broadcasting(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(scene.state(&task.operation_id), "broadcast");
        assert_eq!(sqlstate(&cas(&task, "broadcast", "confirmed", "")), "SL012");
        assert_eq!(sqlstate(&cas(&task, "broadcast", "failed", "")), "SL012");
        assert_eq!(sqlstate(&cas(&task, "broadcast", "signing", "")), "SL012");
        scene.answer("w", std::slice::from_ref(&task), "SIGERROR");
        scene.pass(9);
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }
}
