//! Deaths and failures that ask for more than the first glance: margins, observers, evidence that anybody can check against the
//! blocks, and what is paid or spent from every state. Nothing else than these rebuilds a withdrawal.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::Value;

fn last_detail(id: &str) -> Value {
    let text = one(&format!(
        "select detail from sluice.timeline('{id}') order by seq desc limit 1"
    ))
    .expect("there is a log");
    serde_json::from_str(&text).expect("jsonb is JSON")
}

/// A transaction in a block without any result, as some very old ones are.
fn without_result(raw_data: &[u8]) -> Vec<u8> {
    [wire::bytes(1, raw_data), wire::bytes(2, &[9; 65])].concat()
}

/// A fresh withdrawal's task in each state in which an envelope lives.
fn one_in_each_live_state(scene: &Scene, from: u32) -> Vec<(&'static str, Task)> {
    let broadcast = scene.broadcasting(from + 3);
    scene.answer("w", std::slice::from_ref(&broadcast), "SUCCESS");
    vec![
        ("signing", scene.signing(from)),
        ("signed", scene.signed(from + 1)),
        ("broadcasting", scene.broadcasting(from + 2)),
        ("broadcast", broadcast),
    ]
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn nothing_but_blocks_rebuilds_whatever_nodes_and_clocks_say() {
        let mut scene = Scene::open();
        let task = scene.broadcasting(1);
        scene.pass(297);
        for code in [
            "TRANSACTION_EXPIRATION_ERROR",
            "SIGERROR",
            "CONTRACT_VALIDATE_ERROR",
            "TAPOS_ERROR",
            "OTHER_ERROR",
            "NO_ANSWER",
        ] {
            scene.answer("w", std::slice::from_ref(&task), code);
        }
        for seconds in [3, 60, 600, 86_400, 31_536_000] {
            scene.clock(seconds);
            for again in scene.claim("w") {
                assert_eq!(
                    (again.action.as_str(), &again.txid),
                    ("broadcast", &task.txid),
                    "after {seconds} s"
                );
                scene.answer("w", &[again], "TRANSACTION_EXPIRATION_ERROR");
            }
        }
        assert_eq!(count("select count(*) from sluice.envelopes"), 1);
        // The block that decides may come hours late, and it still may hold the transaction.
        let moved = scene.follow(7_200_000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(moved[0].state, "confirmed");
    }

    #[pg_test]
    fn a_margin_puts_a_death_off_and_never_an_inclusion() {
        let mut scene = Scene::open();
        run("select sluice.set_setting('margin_blocks', '3', 'deeper proof')");
        let dies = scene.broadcast(1);
        let paid = scene.broadcasting(2);
        scene.answer("w", std::slice::from_ref(&paid), "SUCCESS");
        scene.pass(300);
        let closing = scene.tip.number;
        scene.follow(3000, &[]);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        assert_eq!(
            scene.state(&paid.operation_id),
            "confirmed",
            "no chain would hold it so late, and if one does it is paid"
        );
        assert_eq!(scene.state(&dies.operation_id), "broadcast");
        assert_eq!(scene.claim("w").len(), 0, "it is neither sent nor built");
        scene.follow(3000, &[]);
        assert_eq!(scene.state(&dies.operation_id), "signing");
        let detail = last_detail(&dies.operation_id);
        assert_eq!(
            (&detail["last_block"], &detail["margin_blocks"]),
            (&closing.into(), &3.into())
        );
    }

    #[pg_test]
    fn with_two_observers_a_death_counts_once_both_filed_every_block_of_it() {
        let mut scene = Scene::open();
        run(
            "create role second_observer; grant sluice_runner to second_observer; create role third_observer; grant sluice_runner to third_observer",
        );
        run("select sluice.set_setting('observers', '2', 'two nodes of two operators')");
        let task = scene.broadcast(1);
        let mut blocks = vec![scene.tip.clone()];
        for _ in 0..10 {
            scene.follow(30_000, &[]);
            blocks.push(scene.tip.clone());
        }
        assert_eq!(
            scene.state(&task.operation_id),
            "broadcast",
            "one login's word"
        );
        scene.follow(3000, &[]);
        let files = |login: &str, from: usize, to: usize| {
            let bytes: Vec<String> = blocks[from..=to]
                .iter()
                .map(|block| literal(&block.bytes))
                .collect();
            run(&format!("set session authorization {login}"));
            run(&format!(
                "select sluice.observe_blocks('other node', array[{}])",
                bytes.join(",")
            ));
            run("reset session authorization");
        };
        files("second_observer", 2, 10);
        assert_eq!(
            scene.state(&task.operation_id),
            "broadcast",
            "the second did not read the block after the reference"
        );
        files("third_observer", 1, 9);
        assert_eq!(
            scene.state(&task.operation_id),
            "broadcast",
            "nor the third the last one"
        );
        files("third_observer", 10, 10);
        assert_eq!(scene.state(&task.operation_id), "signing");
        let detail = last_detail(&task.operation_id);
        assert_eq!(detail["observers"], 2);
    }

    #[pg_test]
    fn the_evidence_of_a_death_names_blocks_that_are_on_file_with_their_ids_and_times() {
        let mut scene = Scene::open();
        scene.pass(33);
        let task = scene.broadcast(1);
        scene.pass(240);
        scene.follow(90_000, &[]);
        scene.follow(3000, &[]);
        let detail = last_detail(&task.operation_id);
        let on_file = one(&format!(
            "select jsonb_build_object('first_block', f.number, 'first_block_id', encode(f.id, 'hex'),
                                       'last_block', l.number, 'last_block_id', encode(l.id, 'hex'), 'last_block_ms', l.timestamp_ms)
               from sluice.blocks f, sluice.blocks l
              where f.number = (select ref_block_number from sluice.envelopes)
                and l.number = (select min(b.number) from sluice.blocks b where b.timestamp_ms >= {})",
            START_MS + 300_000
        ))
        .expect("both blocks are on file");
        let on_file: Value = serde_json::from_str(&on_file).expect("jsonb is JSON");
        for (key, value) in on_file.as_object().expect("it is an object") {
            assert_eq!(&detail[key], value, "{key}");
        }
        assert_eq!(detail["txid"], hex::encode(&task.txid));
        assert_eq!(detail["expiration_ms"], START_MS + 300_000);
        let fate = one(&format!(
            "select evidence from sluice.fate({})",
            literal(&task.txid)
        ))
        .expect("it has a fate");
        let fate: Value = serde_json::from_str(&fate).expect("jsonb is JSON");
        for key in [
            "first_block",
            "first_block_id",
            "last_block",
            "last_block_id",
            "last_block_ms",
        ] {
            assert_eq!(fate[key], detail[key], "{key}");
        }
        assert_eq!(fate["followed_to"], scene.tip.number);
    }

    #[pg_test]
    fn a_transaction_that_ran_out_of_energy_or_time_is_rebuilt_from_every_state() {
        let mut scene = Scene::open();
        for (number, code) in [(10, OUT_OF_ENERGY), (20, 11)] {
            for (state, task) in one_in_each_live_state(&scene, number) {
                assert_eq!(scene.state(&task.operation_id), state);
                let moved = scene.follow(3000, &[in_block(&task.raw_data, code)]);
                assert_eq!(moved[0].state, "signing", "{state}");
                assert!(
                    scene
                        .log(&task.operation_id)
                        .ends_with(&format!("{state}>signing")),
                    "{state}"
                );
                assert_eq!(
                    scene.column(&task.operation_id, "attempt || ' ' || uncounted"),
                    "1 0",
                    "{state}: it counts, the chain took it"
                );
            }
            run(
                "update sluice.pauses set resumed_at = now(), resumed_tip = 999999999 where resumed_at is null",
            );
        }
        scene.pass(60);
        let again = scene.claim("w");
        assert_eq!(again.iter().filter(|task| task.attempt == 2).count(), 8);
    }

    #[pg_test]
    fn a_transaction_that_reverted_fails_its_withdrawal_from_every_state() {
        let mut scene = Scene::open();
        for (state, task) in one_in_each_live_state(&scene, 1) {
            let moved = scene.follow(3000, &[in_block(&task.raw_data, REVERT)]);
            assert_eq!(moved[0].state, "failed", "{state}");
            assert_eq!(
                last_detail(&task.operation_id)["receipt"],
                "REVERT",
                "{state}"
            );
        }
    }

    #[pg_test]
    fn a_transaction_whose_receipt_says_nothing_is_parked_from_every_state() {
        let mut scene = Scene::open();
        let kinds = [
            (None, "ABSENT"),
            (Some(0), "DEFAULT"),
            (Some(13), "UNKNOWN"),
            (Some(77), "CODE_77"),
        ];
        for (number, (code, name)) in (1..).step_by(10).zip(kinds) {
            for (state, task) in one_in_each_live_state(&scene, number) {
                let transaction = code.map_or_else(
                    || without_result(&task.raw_data),
                    |code| in_block(&task.raw_data, code),
                );
                let moved = scene.follow(3000, &[transaction]);
                assert_eq!(moved[0].state, "broadcast", "{state}");
                assert_eq!(last_detail(&task.operation_id)["receipt"], name, "{state}");
                assert_eq!(
                    scene.column(&task.operation_id, "due_at is null"),
                    "true",
                    "{state}"
                );
            }
        }
        scene.pass(900);
        assert_eq!(scene.claim("w").len(), 0);
        assert_eq!(
            count("select count(*) from sluice.envelopes where attempt > 1"),
            0
        );
        assert_eq!(count("select parked from sluice.workload()"), 16);
        assert_eq!(
            count("select count(*) from sluice.stuck where why like 'parked%'"),
            16
        );
        assert_eq!(
            count("select count(*) from sluice.pauses where paused_by = 'sluice'"),
            0,
            "what nobody knows is no failure"
        );
    }

    #[pg_test]
    fn envelopes_that_nobody_took_do_not_use_up_the_attempts() {
        let mut scene = Scene::open();
        let operation = scene.submit(1);
        let mut counted = 0;
        for round in 0..20 {
            let tasks = scene.sign("w", &scene.claim("w"));
            let taken = round % 3 == 2;
            scene.answer("w", &tasks, if taken { "SUCCESS" } else { "TAPOS_ERROR" });
            scene.pass(303);
            counted += i32::from(taken);
            let state = if counted == 5 { "failed" } else { "signing" };
            assert_eq!(scene.state(&operation), state, "round {round}");
            if counted == 5 {
                assert_eq!(
                    scene.column(&operation, "attempt || ' ' || uncounted"),
                    "15 10"
                );
                return;
            }
            scene.pass(3600);
        }
        unreachable!("it failed at the fifth that counted");
    }

    #[pg_test]
    fn an_envelope_counts_as_taken_by_what_was_said_of_itself_not_of_the_one_before() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.pass(303);
        let second = scene.sign("w", &scene.claim("w"));
        scene.answer("w", &second, "SIGERROR");
        assert_eq!(
            scene.column(&task.operation_id, "accepted || ' ' || refusal"),
            "false SIGERROR"
        );
        scene.pass(303);
        assert_eq!(
            scene.column(&task.operation_id, "attempt || ' ' || uncounted"),
            "2 1"
        );
        assert_eq!(scene.due_in(&task.operation_id), 300);
    }

    #[pg_test]
    fn three_failures_in_one_block_pause_their_wallet_and_no_other() {
        let mut scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac')"
        ));
        for number in 1..=6 {
            scene.submit(number);
        }
        let tasks = scene.claim("w");
        let of = |wallet: &str| {
            tasks
                .iter()
                .filter(|task| task.wallet == wallet)
                .cloned()
                .collect::<Vec<_>>()
        };
        let (first, second) = (of(MOCK_WALLET), of(SECOND_WALLET));
        assert_eq!((first.len(), second.len()), (3, 3));
        let block: Vec<_> = first
            .iter()
            .map(|task| in_block(&task.raw_data, REVERT))
            .chain(
                second[1..]
                    .iter()
                    .map(|task| in_block(&task.raw_data, OUT_OF_ENERGY)),
            )
            .collect();
        run("select sluice.pause('an older one, for an asset', asset => 'USDT-TRC20')");
        scene.follow(3000, &block);
        assert_eq!(
            one("select string_agg(wallet, ' ') from sluice.pauses where resumed_at is null and wallet is not null").as_deref(),
            Some(MOCK_WALLET)
        );
        // A success in between begins the count anew.
        scene.follow(3000, &[in_block(&second[0].raw_data, SUCCESS)]);
        assert_eq!(
            count(
                "select count(*) from sluice.pauses where wallet = 'TMhzXhj5o7aG14eMHn2htGe7ek39hiriPN'"
            ),
            0
        );
    }

    #[pg_test]
    fn a_later_envelope_confirms_with_its_own_block_and_the_dead_one_stays_dead() {
        let mut scene = Scene::open();
        let first = scene.broadcast(1);
        scene.pass(303);
        let second = scene.claim("w").remove(0);
        let moved = scene.follow(3000, &[in_block(&second.raw_data, SUCCESS)]);
        assert_eq!(
            (moved[0].state.as_str(), &moved[0].txid),
            ("confirmed", &second.txid)
        );
        let fates = one(
            "select string_agg(attempt || ' ' || fate, ', ' order by attempt) from sluice.envelopes",
        );
        assert_eq!(fates.as_deref(), Some("1 dead, 2 included"));
        let shown = one(&format!(
            "select txid || ' ' || block_number from sluice.withdrawal('{}')",
            first.operation_id
        ));
        assert_eq!(
            shown,
            Some(format!(
                "{} {}",
                hex::encode(&second.txid),
                scene.tip.number
            ))
        );
    }

    #[pg_test]
    fn blocks_answer_with_all_that_they_moved_in_the_order_of_their_ids() {
        let mut scene = Scene::open();
        let dies = scene.broadcasting(5);
        scene.pass(240);
        let tasks: Vec<Task> = [3, 1, 4]
            .into_iter()
            .map(|number| scene.signing(number))
            .collect();
        let a = scene.next(
            57_000,
            &[
                in_block(&tasks[0].raw_data, SUCCESS),
                in_block(&tasks[1].raw_data, REVERT),
            ],
        );
        let b = block(
            a.number + 1,
            &a.id,
            a.time + 3000,
            &[in_block(&tasks[2].raw_data, OUT_OF_ENERGY)],
        );
        scene.tip = b.clone();
        scene.clock(0);
        let moved = one(&format!(
            "select string_agg(concat_ws(' ', right(m.operation_id::text, 1), m.state, m.block_number - {}, m.txid = e.txid), ', ' order by m.ordinality)
               from sluice.observe_blocks('node', array[{}, {}]) with ordinality m
               left join sluice.envelopes e on e.operation_id = m.operation_id",
            a.number,
            literal(&a.bytes),
            literal(&b.bytes)
        ));
        assert_eq!(
            moved.as_deref(),
            Some("1 failed 0 t, 3 confirmed 0 t, 4 signing 1 t, 5 signing 1 t"),
            "the last one died: {}",
            dies.operation_id
        );
    }
}
