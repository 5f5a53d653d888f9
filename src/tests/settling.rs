//! What blocks decide: payment, failure, death, and when a withdrawal is built anew.

use super::scene::*;
use pgrx::prelude::*;

fn state_and(id: &str, column: &str) -> String {
    one(&format!(
        "select state || ' ' || coalesce(({column})::text, 'null') from sluice.withdrawals where operation_id = '{id}'"
    ))
    .unwrap_or_default()
}

fn set_depth(depth: u32) {
    run(&format!(
        "select sluice.set_asset('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, '0.000001', '1000000', 100000000, {depth}, true)"
    ));
}

impl Scene {
    /// Takes what is due from its claim to `broadcast`, and returns its task.
    fn send_again(&self) -> Task {
        let sent = self.sign("w", &self.claim("w"));
        self.answer("w", &sent, "SUCCESS");
        sent.into_iter().next().unwrap_or_else(|| {
            let rows = one("select string_agg(state || ' ' || attempt || ' ' || coalesce(held_by, '') || ' ' || (due_at - sluice.now()), ', ') from sluice.withdrawals");
            panic!("nothing was due: {rows:?}")
        })
    }
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_success_confirms_at_its_depth_and_is_neither_swept_nor_sent_before() {
        let mut scene = Scene::open();
        set_depth(150);
        let task = scene.broadcast(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(scene.state(&task.operation_id), "broadcast");
        scene.pass(149 * 3);
        assert_eq!(
            state_and(&task.operation_id, "deep_at"),
            "broadcast 1151",
            "past its expiration, and paid"
        );
        assert!(scene.claim("w").is_empty());
        assert_eq!(
            one(&format!("sluice.cancel('{}', 'now')", task.operation_id)).as_deref(),
            Some("broadcast"),
            "a wish that comes too late"
        );
        scene.follow(3000, &[]);
        assert_eq!(
            state_and(&task.operation_id, "block_number"),
            "confirmed 1001"
        );
    }

    #[pg_test]
    fn the_depth_is_the_one_it_was_routed_with() {
        let mut scene = Scene::open();
        set_depth(2);
        let task = scene.broadcast(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        set_depth(4);
        scene.pass(3);
        assert_eq!(scene.state(&task.operation_id), "broadcast");
        scene.pass(3);
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }

    #[pg_test]
    fn a_block_pays_a_withdrawal_wherever_it_stands_and_walks_it_there() {
        let mut scene = Scene::open();
        for number in 1..=3 {
            scene.submit(number);
        }
        let tasks = scene.claim("w");
        scene.sign("w", &tasks[2..]);
        run("select sluice.pause('hold')");
        scene.sign("w", &tasks[1..2]);
        let states: Vec<String> = (1..=3).map(|number| scene.state(&id(number))).collect();
        assert_eq!(states, ["signing", "signed", "broadcasting"]);
        let block: Vec<Vec<u8>> = tasks
            .iter()
            .map(|task| in_block(&task.raw_data, SUCCESS))
            .collect();
        scene.follow(3000, &block);
        for number in 1..=3 {
            assert_eq!(scene.state(&id(number)), "confirmed", "{number}");
            assert!(scene.log(&id(number)).ends_with(
                "signing>signed signed>broadcasting broadcasting>broadcast broadcast>confirmed"
            ));
        }
        let late = scene.sign("w", &tasks[..1]);
        assert!(
            late[0].state.is_empty(),
            "the signer that answers now is told so"
        );
    }

    #[pg_test]
    fn every_named_failure_but_two_fails_the_withdrawal_and_says_which() {
        let mut scene = Scene::open();
        for (number, (code, name)) in (1..).zip([
            (2, "REVERT"),
            (3, "BAD_JUMP_DESTINATION"),
            (4, "OUT_OF_MEMORY"),
            (5, "PRECOMPILED_CONTRACT"),
            (6, "STACK_TOO_SMALL"),
            (7, "STACK_TOO_LARGE"),
            (8, "ILLEGAL_OPERATION"),
            (9, "STACK_OVERFLOW"),
            (12, "JVM_STACK_OVER_FLOW"),
            (14, "TRANSFER_FAILED"),
            (15, "INVALID_CODE"),
        ]) {
            run(
                "update sluice.pauses set resumed_at = sluice.now(), resumed_tip = (select max(number) from sluice.blocks) where resumed_at is null",
            );
            let task = scene.broadcast(number);
            scene.follow(3000, &[in_block(&task.raw_data, code)]);
            assert_eq!(
                state_and(&task.operation_id, "failure_reason"),
                format!("failed the chain says {name}")
            );
        }
        assert_eq!(
            one("select count(*) from sluice.payments where receipt = 'SUCCESS'").as_deref(),
            Some("0")
        );
    }

    #[pg_test]
    fn running_out_of_energy_or_time_is_tried_five_times_and_then_fails() {
        let mut scene = Scene::open();
        let mut task = scene.broadcast(1);
        for attempt in 1..=5 {
            assert_eq!(task.attempt, attempt);
            let code = if attempt % 2 == 0 { 11 } else { OUT_OF_ENERGY };
            scene.follow(3000, &[in_block(&task.raw_data, code)]);
            run(
                "update sluice.pauses set resumed_at = sluice.now(), resumed_tip = (select max(number) from sluice.blocks) where resumed_at is null",
            );
            if attempt < 5 {
                assert_eq!(scene.state(&task.operation_id), "signing", "{attempt}");
                assert!(
                    scene.claim("w").is_empty(),
                    "not in the slot of the envelope before"
                );
                scene.pass(60);
                task = scene.send_again();
            }
        }
        assert_eq!(state_and(&task.operation_id, "attempt"), "failed 5");
    }

    #[pg_test]
    fn a_receipt_that_says_nothing_decides_nothing_and_waits_for_a_person() {
        let mut scene = Scene::open();
        for (number, code) in (1..).zip([0, 13, 77]) {
            let task = scene.broadcast(number);
            scene.follow(3000, &[in_block(&task.raw_data, code)]);
            assert_eq!(
                state_and(&task.operation_id, "due_at"),
                "broadcast null",
                "{code}"
            );
            assert_eq!(
                one(&format!("sluice.cancel('{}', 'x')", task.operation_id)).as_deref(),
                Some("broadcast"),
                "no wish ends what may have been paid"
            );
        }
        assert_eq!(one("select count(*) from sluice.stuck where why like 'parked: block % holds its envelope with the receipt %'").as_deref(), Some("3"));
        scene.pass(600);
        assert!(scene.claim("w").is_empty(), "no second envelope, ever");
        assert_eq!(one("select count(*) from sluice.events where to_state = 'confirmed' or to_state = 'failed'").as_deref(), Some("0"));
    }

    #[pg_test]
    fn three_failed_transfers_in_a_row_pause_the_wallet_and_a_resumption_counts_anew() {
        let mut scene = Scene::open();
        let fail = |scene: &mut Scene, number: u32| {
            let task = scene.broadcast(number);
            scene.follow(3000, &[in_block(&task.raw_data, REVERT)]);
        };
        let paused = || {
            one(
                "select string_agg(wallet || ' ' || paused_by, '') from sluice.pauses where resumed_at is null",
            )
        };
        fail(&mut scene, 1);
        fail(&mut scene, 2);
        let good = scene.broadcast(3);
        scene.follow(3000, &[in_block(&good.raw_data, SUCCESS)]);
        fail(&mut scene, 4);
        fail(&mut scene, 5);
        assert_eq!(paused(), None, "a success in between");
        fail(&mut scene, 6);
        assert_eq!(paused(), Some(format!("{MOCK_WALLET} sluice")));
        scene.submit(7);
        assert!(scene.claim("w").is_empty());
        run(&format!(
            "select sluice.resume('filled up', '{MOCK_WALLET}')"
        ));
        let next = scene.send_again();
        scene.follow(3000, &[in_block(&next.raw_data, REVERT)]);
        assert_eq!(
            paused(),
            None,
            "two more are to fail before it pauses again"
        );
    }

    #[pg_test]
    fn an_envelope_that_no_node_took_is_built_anew_later_and_later_and_never_counts() {
        let mut scene = Scene::open();
        let id = scene.submit(1);
        for (deaths, minutes) in (1..).zip([5, 10, 20, 40, 60, 60, 60]) {
            let sent = scene.sign("w", &scene.claim("w"));
            assert_eq!(sent[0].attempt, deaths);
            scene.answer("w", &sent, "SIGERROR");
            scene.pass(303);
            let due = state_and(&id, "extract(epoch from due_at - sluice.now())::int / 60");
            assert_eq!(due, format!("signing {minutes}"), "after {deaths}");
            assert!(
                one("select why from sluice.stuck")
                    .unwrap_or_default()
                    .starts_with(&format!("{deaths} envelope(s) died"))
            );
            scene.pass(minutes * 60);
        }
        let paid = scene.send_again();
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        assert_eq!(scene.state(&id), "confirmed");
    }

    #[pg_test]
    fn an_envelope_that_was_taken_and_died_counts_and_five_of_them_are_the_end() {
        let mut scene = Scene::open();
        let mut task = scene.broadcast(1);
        for attempt in 1..=5 {
            assert_eq!(task.attempt, attempt);
            scene.pass(303);
            if attempt < 5 {
                assert_eq!(scene.state(&task.operation_id), "signing");
                task = scene.send_again();
            }
        }
        assert_eq!(scene.state(&task.operation_id), "failed");
        let dead = one("select count(*) from sluice.envelopes where fate = 'dead'");
        assert_eq!(dead.as_deref(), Some("5"));
    }

    #[pg_test]
    fn a_login_whose_blocks_do_not_reach_back_far_enough_is_sent_back_to_read_them() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(30);
        // This login seems to have come late: it read from the sixth block on.
        run(&format!(
            "update sluice.observers set first_number = {}",
            FIRST + 6
        ));
        run("select sluice.set_setting('observers', '2', 'two are better')");
        run(&format!(
            "insert into sluice.observers values ('another', {FIRST}, {}, 'n', sluice.now())",
            FIRST + 200
        ));
        let next = || one("select followed_number from sluice.runner_state()");
        assert_eq!(
            next(),
            Some(FIRST.to_string()),
            "the reference of the oldest live envelope"
        );
        scene.pass(303);
        assert_eq!(
            scene.state(&task.operation_id),
            "broadcast",
            "one login proves nothing"
        );
        let all = one(&format!(
            "select max(number) from sluice.blocks where number > {FIRST}"
        ))
        .unwrap_or_default();
        run(&format!(
            "update sluice.observers set first_number = {FIRST}, last_number = {all} where login = session_user"
        ));
        assert_eq!(next(), Some(all));
        scene.follow(3000, &[]);
        assert_eq!(scene.state(&task.operation_id), "signing");
    }

    #[pg_test]
    fn a_refused_withdrawal_that_a_block_holds_is_confirmed() {
        let mut scene = Scene::open();
        scene.submit(1);
        let sent = scene.sign("w", &scene.claim("w"));
        for code in [
            "SIGERROR",
            "TRANSACTION_EXPIRATION_ERROR",
            "TAPOS_ERROR",
            "BANDWITH_ERROR",
            "CONTRACT_VALIDATE_ERROR",
        ] {
            scene.answer("w", &sent, code);
        }
        scene.follow(3000, &[in_block(&sent[0].raw_data, SUCCESS)]);
        assert_eq!(scene.state(&id(1)), "confirmed");
    }

    #[pg_test]
    fn what_holds_it_and_what_closes_its_time_in_one_batch_is_a_payment() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(297);
        let holds = block(
            scene.tip.number + 1,
            &scene.tip.id,
            scene.tip.time + 30_000,
            &[in_block(&task.raw_data, SUCCESS)],
        );
        let after = block(holds.number + 1, &holds.id, holds.time + 3000, &[]);
        scene.tip = after.clone();
        scene.clock(0);
        run(&format!(
            "select sluice.observe_blocks('node', array[{}, {}])",
            literal(&holds.bytes),
            literal(&after.bytes)
        ));
        assert_eq!(scene.state(&task.operation_id), "confirmed");
    }

    #[pg_test]
    fn a_withdrawal_that_cannot_be_settled_stops_nobody_and_is_tried_with_every_block() {
        let mut scene = Scene::open();
        let tasks: Vec<Task> = (1..=3).map(|number| scene.broadcast(number)).collect();
        // Its counter is at the end of its range: adding to it raises.
        let culprit = &tasks[1].operation_id;
        run(&format!(
            "update sluice.withdrawals set uncounted = 2147483647, accepted = false where operation_id = '{culprit}'"
        ));
        scene.pass(303);
        assert_eq!(scene.state(&tasks[0].operation_id), "signing");
        assert_eq!(scene.state(&tasks[2].operation_id), "signing");
        assert_eq!(scene.state(culprit), "broadcast");
        assert_eq!(
            one("select string_agg(operation_id::text, ' ') from sluice.unsettled"),
            Some(culprit.clone())
        );
        assert!(
            one(&format!(
                "select why from sluice.stuck where operation_id = '{culprit}'"
            ))
            .unwrap_or_default()
            .starts_with("could not be settled")
        );
        run(&format!(
            "update sluice.withdrawals set uncounted = 0 where operation_id = '{culprit}'"
        ));
        scene.follow(3000, &[]);
        assert_eq!(scene.state(culprit), "signing");
        assert_eq!(
            one("select count(*) from sluice.unsettled").as_deref(),
            Some("0")
        );
    }
}
