//! Leases: for how long a withdrawal is one worker's, what comes first, and what stops itself without stopping the others.

use super::scene::*;
use pgrx::prelude::*;

fn ids(tasks: &[Task]) -> Vec<String> {
    let mut ids: Vec<_> = tasks.iter().map(|task| task.operation_id.clone()).collect();
    ids.sort();
    ids
}

/// Claims with further arguments. Returns the ids in the order of the answer.
fn claimed(arguments: &str) -> String {
    one(&format!(
        "select string_agg(right(t.operation_id::text, 2), ' ' order by t.ordinality)
           from sluice.claim_batch({arguments}) with ordinality t"
    ))
    .unwrap_or_default()
}

/// A text that changes whenever a row of the table is written, even into itself.
fn versions() -> String {
    one("select string_agg(operation_id || ' ' || ctid, ' ' order by operation_id) from sluice.withdrawals").unwrap_or_default()
}

/// A trigger that raises whenever the table writes for this withdrawal.
fn poison(table: &str, verb: &str, id: &str) {
    run(
        "create function pg_temp.poison() returns trigger language plpgsql as $$ begin raise exception 'poisoned' using errcode = 'P0666'; end $$",
    );
    run(&format!(
        "create trigger a_poison before {verb} on sluice.{table} for each row when (new.operation_id = '{id}') execute function pg_temp.poison()"
    ));
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_withdrawal_is_handed_out_to_one_worker_until_its_lease_ends() {
        let scene = Scene::open();
        for number in 1..=3 {
            scene.submit(number);
        }
        let first = scene.claim("one");
        assert_eq!(ids(&first), [id(1), id(2), id(3)]);
        for seconds in [0, 10, 29] {
            scene.clock(seconds);
            assert_eq!(scene.claim("other").len(), 0, "after {seconds} s");
            assert_eq!(scene.claim("one").len(), 0, "not to itself either");
        }
        scene.clock(30);
        let second = scene.claim("other");
        assert_eq!(ids(&second), ids(&first));
        for (before, after) in first.iter().zip(&second) {
            assert_eq!(after.fencing_token, before.fencing_token + 1);
            assert_eq!(
                (after.action.as_str(), after.state.as_str()),
                ("sign", "signing")
            );
            assert_eq!(after.txid, before.txid, "the same digest is offered again");
            assert_eq!(after.raw_data, before.raw_data);
            assert_eq!(after.attempt, 1);
            assert_eq!(scene.column(&after.operation_id, "leased_by"), "other");
        }
        assert_eq!(
            count("select count(*) from sluice.envelopes"),
            3,
            "and nothing is built again"
        );
        assert_eq!(
            scene.log(&id(1)),
            ">requested requested>validated validated>signing",
            "nor told again"
        );
    }

    #[pg_test]
    fn a_lease_is_as_long_as_the_call_or_the_setting_says() {
        let scene = Scene::open();
        let task = scene.signing(1);
        assert_eq!(scene.due_in(&task.operation_id), 30);
        run("select sluice.set_setting('lease', '7 seconds', 'quicker')");
        scene.submit(2);
        scene.claim("w");
        assert_eq!(scene.due_in(&id(2)), 7);
        scene.submit(3);
        assert_eq!(claimed("'w', 100, interval '1 hour'"), "03");
        assert_eq!(scene.due_in(&id(3)), 3600);
        for lease in [
            "'0.999 seconds'",
            "'3601 seconds'",
            "'-1 second'",
            "'infinity'",
            "'1 month'",
        ] {
            let answer = sqlstate(&format!(
                "select sluice.claim_batch('w', 100, interval {lease})"
            ));
            assert!(
                answer == "SL005" || answer.starts_with("22"),
                "{lease}: {answer}"
            );
        }
    }

    #[pg_test]
    fn a_clock_that_jumped_ahead_and_came_back_strands_nothing() {
        let mut scene = Scene::open();
        // Somebody's clock was a year ahead when these were taken in, leased, and put off.
        let leased = scene.signing(1);
        let year = 365 * 24 * 3600;
        scene.clock(year);
        scene.submit(2);
        let again = scene.claim("w");
        assert_eq!(
            ids(&again),
            std::slice::from_ref(&leased.operation_id),
            "nothing is built on a chain that looks a year old"
        );
        scene.clock(0);
        assert!(scene.due_in(&id(1)) > year && scene.due_in(&id(2)) >= year);
        let back = scene.claim("w");
        assert_eq!(ids(&back), [id(1), id(2)]);
        assert_eq!((back[0].fencing_token, &back[0].txid), (3, &leased.txid));
        assert_eq!(scene.due_in(&id(1)), 30);
        // What is due within its longest legal time is left alone.
        scene.submit(3);
        assert_eq!(claimed("'w', 100, interval '1 hour'"), "03");
        assert_eq!(scene.claim("w").len(), 0);
        scene.follow(3000, &[]);
        assert_eq!(scene.claim("w").len(), 0);
    }

    #[pg_test]
    fn what_is_under_way_is_claimed_before_what_is_to_be_started() {
        let scene = Scene::open();
        let task = scene.signing(1);
        scene.clock(-60);
        scene.submit(2);
        scene.clock(31);
        assert_eq!(
            claimed("'w', 1"),
            "01",
            "though the other has waited longer"
        );
        assert_eq!(claimed("'w', 1"), "02");
        assert_eq!(scene.state(&task.operation_id), "signing");
    }

    #[pg_test]
    fn withdrawals_that_only_wait_do_not_fill_a_batch_again_and_again() {
        let mut scene = Scene::open();
        run("update sluice.assets set depth = 1000");
        // Paid, and deep enough in an hour: nobody can do anything for them.
        let tasks: Vec<_> = (1..=4).map(|number| scene.broadcast(number)).collect();
        let paid: Vec<_> = tasks
            .iter()
            .map(|task| in_block(&task.raw_data, SUCCESS))
            .collect();
        scene.follow(3000, &paid);
        scene.pass(90);
        let mut empty = 0;
        for second in 0..60 {
            scene.clock(second);
            let before = versions();
            assert_eq!(claimed("'w', 2"), "");
            empty += i32::from(versions() != before);
        }
        assert!(empty <= 4, "{empty} of 60 claims wrote rows that only wait");
        for task in &tasks {
            assert_eq!(scene.state(&task.operation_id), "broadcast");
        }
    }

    #[pg_test]
    fn one_row_that_raises_stops_itself_and_the_others_go_on() {
        let scene = Scene::open();
        for number in 1..=5 {
            scene.submit(number);
        }
        poison("envelopes", "insert", &id(3));
        let tasks = scene.claim("w");
        assert_eq!(ids(&tasks), [id(1), id(2), id(4), id(5)]);
        assert_eq!(scene.state(&id(3)), "requested");
        assert_eq!(scene.column(&id(3), "last_error"), "P0666 poisoned");
        assert_eq!(scene.column(&id(3), "leased_by"), "");
        assert_eq!(scene.due_in(&id(3)), 300);
        assert_eq!(scene.log(&id(3)), ">requested");
        scene.clock(31);
        assert_eq!(
            ids(&scene.claim("w")),
            [id(1), id(2), id(4), id(5)],
            "and is not tried with the next batch"
        );
        run("drop trigger a_poison on sluice.envelopes");
        scene.clock(89);
        scene.claim("w");
        run("update sluice.settings set freshness = '500 seconds', time_to_live = '600 seconds'");
        scene.clock(301);
        assert!(
            ids(&scene.claim("w")).contains(&id(3)),
            "its time comes again"
        );
        assert_eq!(scene.state(&id(3)), "signing");
    }

    #[pg_test]
    fn a_row_that_cannot_even_be_set_aside_does_not_stop_the_others() {
        let scene = Scene::open();
        for number in 1..=3 {
            scene.submit(number);
        }
        poison("withdrawals", "update", &id(2));
        assert_eq!(ids(&scene.claim("w")), [id(1), id(3)]);
        assert_eq!(scene.state(&id(2)), "requested");
        assert_eq!(scene.claim("w").len(), 0);
    }

    #[pg_test]
    fn every_call_of_a_runner_refuses_every_other_isolation_level_by_name() {
        run("create extension dblink");
        run(
            "select dblink_connect('other', 'host=localhost port=' || current_setting('port') || ' dbname=' || current_database() || ' user=' || session_user)",
        );
        let calls = [
            ("claim_batch", "'w'"),
            (
                "fenced_cas",
                "gen_random_uuid(), 0, 'signing', 'signing', 'w'",
            ),
            ("record_signatures", "'w', '[]'"),
            ("record_broadcasts", "'w', '[]'"),
            ("release", "'w', '{}', '{}'"),
            ("observe_blocks", "'node', '{}'"),
        ];
        for level in ["repeatable read", "serializable"] {
            for (call, arguments) in calls {
                run(&format!(
                    "select dblink_exec('other', 'begin isolation level {level}')"
                ));
                let remote = format!("select sluice.{call}({arguments})");
                let (code, message) =
                    refused(&format!("select dblink_exec('other', {})", quoted(&remote)));
                assert_eq!(code, "SL006", "{call} in {level}");
                assert!(
                    message.contains(call) && message.contains(&level.to_uppercase()),
                    "{message}"
                );
                run("select dblink_exec('other', 'rollback')");
            }
        }
        for (call, arguments) in calls {
            let here = sqlstate(&format!("select sluice.{call}({arguments})"));
            assert_ne!(here, "SL006", "in READ COMMITTED {call} does its work");
        }
        run("select dblink_disconnect('other')");
    }
}
