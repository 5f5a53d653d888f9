//! The chart, walked by raw UPDATE against the live guard in the role that owns the tables. The chart is written down here a
//! second time, by hand: what the guard asks is compared with the words of the design, not with the table that drives it.

use super::scene::*;
use pgrx::prelude::*;

const STATES: [&str; 9] = [
    "requested",
    "validated",
    "signing",
    "signed",
    "broadcasting",
    "broadcast",
    "confirmed",
    "failed",
    "rejected",
];

/// Every step there is, and what it asks for: `*` that every envelope is spent, `**` a success on chain, `signature` that
/// there is one on file.
const CHART: [(&str, &str, &str); 15] = [
    ("requested", "validated", ""),
    ("requested", "rejected", ""),
    ("validated", "signing", ""),
    ("validated", "rejected", ""),
    ("signing", "signed", "signature"),
    ("signing", "signing", "*"),
    ("signing", "failed", "*"),
    ("signed", "broadcasting", ""),
    ("signed", "signing", "*"),
    ("broadcasting", "broadcast", ""),
    ("broadcasting", "signing", "*"),
    ("broadcasting", "failed", "*"),
    ("broadcast", "confirmed", "**"),
    ("broadcast", "signing", "*"),
    ("broadcast", "failed", "*"),
];

fn asks(from: &str, to: &str) -> Option<&'static str> {
    CHART
        .iter()
        .find(|(left, reached, _)| (*left, *reached) == (from, to))
        .map(|(_, _, proof)| *proof)
}

fn is_terminal(state: &str) -> bool {
    matches!(state, "confirmed" | "failed" | "rejected")
}

/// The statement of the step, as a person would write it who knows the columns' own checks.
fn step(id: &str, to: &str) -> String {
    let more = match to {
        "failed" | "rejected" => ", failure_reason = 'by hand'",
        "confirmed" => ", block_number = 1000, confirmed_at = now()",
        _ => "",
    };
    format!("update sluice.withdrawals set state = '{to}'{more} where operation_id = '{id}'")
}

/// The statement of a path, named with the row's present sequence.
fn path(id: &str, through: &str) -> String {
    let to = through.rsplit(',').next().unwrap_or_default();
    step(id, to).replace(
        " where",
        &format!(", step_seq = seq, step_path = '{{{through}}}' where"),
    )
}

/// One withdrawal in each state, numbered in the chart's order, each led there by the functions that lead there.
fn one_in_each_state(scene: &mut Scene) {
    for (number, result) in [(7, SUCCESS), (8, REVERT)] {
        let task = scene.broadcast(number);
        scene.follow(3000, &[in_block(&task.raw_data, result)]);
    }
    scene.broadcast(6);
    scene.broadcasting(5);
    scene.signed(4);
    scene.signing(3);
    scene.submit(9);
    run(&format!("select sluice.cancel('{}', 'not wanted')", id(9)));
    scene.submit(2);
    // No call leaves a withdrawal there: a claim walks on. The step is legal for whoever may write the row.
    run_as_owner(&step(&id(2), "validated"));
    scene.submit(1);
    for (number, state) in (1..).zip(STATES) {
        assert_eq!(scene.state(&id(number)), state);
    }
}

/// A withdrawal in this live state whose one envelope is dead, or included with this result; and all of it by hand, since the
/// functions would move the withdrawal with the same stroke.
fn spent(scene: &mut Scene, number: u32, from: &str, receipt: Option<&str>) -> Task {
    let task = match from {
        "signing" => scene.signing(number),
        "signed" => scene.signed(number),
        "broadcasting" => scene.broadcasting(number),
        _ => {
            let task = scene.broadcasting(number);
            scene.answer("w", std::slice::from_ref(&task), "SUCCESS");
            task
        }
    };
    assert_eq!(scene.state(&task.operation_id), from);
    match receipt {
        Some(receipt) => include_by_hand(scene, &task, receipt),
        None => {
            scene.pass_by_hand(300);
            run_as_owner(&format!(
                "update sluice.envelopes set fate = 'dead', first_block = ref_block_number, last_block = {}
                  where txid = '\\x{}'",
                scene.tip.number,
                hex::encode(&task.txid)
            ));
        }
    }
    task
}

/// Writes down that the next block held the envelope.
fn include_by_hand(scene: &mut Scene, task: &Task, receipt: &str) {
    let txid = hex::encode(&task.txid);
    scene.follow_by_hand(3000);
    run_as_owner(&format!(
        "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units)
         select v.txid, v.operation_id, {}, 0, '{receipt}', v.wallet, a.contract, w.to_address, w.amount_units
           from sluice.envelopes v
           join sluice.withdrawals w on w.operation_id = v.operation_id
           join sluice.assets a on a.asset = w.asset
          where v.txid = '\\x{txid}'",
        scene.tip.number
    ));
    run_as_owner(&format!(
        "update sluice.envelopes set fate = 'included', receipt = '{receipt}', block_number = {} where txid = '\\x{txid}'",
        scene.tip.number
    ));
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_chart_that_sql_shows_is_the_one_in_the_design() {
        let shown = one(
            "select string_agg(from_state || '>' || to_state || stars, ' ' order by from_state, to_state) from sluice.transitions()",
        );
        let mut written: Vec<_> = CHART
            .iter()
            .map(|(from, to, proof)| {
                let place = |state| STATES.iter().position(|label| *label == state);
                (
                    place(*from),
                    place(*to),
                    format!("{from}>{to}{}", proof.trim_matches(char::is_alphabetic)),
                )
            })
            .collect();
        written.sort();
        let written: Vec<_> = written.into_iter().map(|(_, _, entry)| entry).collect();
        assert_eq!(shown, Some(written.join(" ")));
        assert_eq!(
            one("select array_to_string(enum_range(null::sluice.state), ' ')"),
            Some(STATES.join(" "))
        );
        for from in STATES {
            for to in STATES {
                let says = one(&format!("select sluice.can_transition('{from}', '{to}')"));
                let expected = if asks(from, to).is_some() {
                    "true"
                } else {
                    "false"
                };
                assert_eq!(says.as_deref(), Some(expected), "{from} > {to}");
            }
        }
    }

    #[pg_test]
    fn each_of_the_81_steps_by_raw_update_is_taken_or_refused_as_the_chart_says() {
        let mut scene = Scene::open();
        one_in_each_state(&mut scene);
        for (number, from) in (1..).zip(STATES) {
            for to in STATES {
                let answer = as_owner(&step(&id(number), to));
                let expected = match asks(from, to) {
                    _ if is_terminal(from) => "SL011",
                    // A state that is written over itself says nothing: it is a step only when it is named.
                    _ if from == to => "",
                    None => "SL010",
                    // In signing there is none yet.
                    Some("*" | "**" | "signature") => "SL012",
                    Some(_) => "",
                };
                assert_eq!(answer, expected, "{from} > {to}");
            }
        }
    }

    #[pg_test]
    fn each_of_the_81_steps_named_as_a_path_is_taken_or_refused_as_the_chart_says() {
        let mut scene = Scene::open();
        one_in_each_state(&mut scene);
        for (number, from) in (1..).zip(STATES) {
            for to in STATES {
                let answer = as_owner(&path(&id(number), to));
                let expected = match asks(from, to) {
                    _ if is_terminal(from) => "SL011",
                    Some("*" | "**" | "signature") => "SL012",
                    Some(_) => "",
                    // A remark on a live state moves nothing.
                    None if from == to => "",
                    None => "SL010",
                };
                assert_eq!(answer, expected, "{from} > {to}");
            }
        }
    }

    #[pg_test]
    fn a_step_by_hand_is_told_in_the_log_and_a_state_written_over_itself_is_not() {
        let mut scene = Scene::open();
        one_in_each_state(&mut scene);
        for (number, state) in (1..=6).zip(STATES) {
            let before = scene.log(&id(number));
            run_as_owner(&step(&id(number), state));
            assert_eq!(scene.log(&id(number)), before);
        }
        for (number, to) in [
            (1, "validated"),
            (2, "signing"),
            (4, "broadcasting"),
            (5, "broadcast"),
        ] {
            let (before, from) = (scene.log(&id(number)), scene.state(&id(number)));
            run_as_owner(&step(&id(number), to));
            assert_eq!(scene.log(&id(number)), format!("{before} {from}>{to}"));
            let by = format!(
                "select worker_id from sluice.timeline('{}') order by seq desc limit 1",
                id(number)
            );
            assert_eq!(
                one(&by),
                one("session_user"),
                "a step that names nobody is its session's"
            );
        }
    }

    #[pg_test]
    fn every_step_with_a_star_is_taken_once_its_envelope_is_dead() {
        let mut scene = Scene::open();
        for (number, (from, to, _)) in (1..).zip(CHART.iter().filter(|(_, _, proof)| *proof == "*"))
        {
            let task = spent(&mut scene, number, from, None);
            assert_eq!(as_owner(&path(&task.operation_id, to)), "", "{from} > {to}");
        }
    }

    #[pg_test]
    fn every_step_with_a_star_is_taken_once_its_envelope_failed_on_chain_and_on_no_other_receipt() {
        let mut scene = Scene::open();
        let mut number = 0;
        for (from, to, _) in CHART.iter().filter(|(_, _, proof)| *proof == "*") {
            for (receipt, expected) in [
                ("REVERT", ""),
                ("OUT_OF_ENERGY", ""),
                ("SUCCESS", "SL012"),
                ("UNKNOWN", "SL012"),
                ("DEFAULT", "SL012"),
                ("ABSENT", "SL012"),
                ("CODE_77", "SL012"),
            ] {
                number += 1;
                let task = spent(&mut scene, number, from, Some(receipt));
                let answer = as_owner(&path(&task.operation_id, to));
                assert_eq!(answer, expected, "{from} > {to} on {receipt}");
            }
        }
    }

    #[pg_test]
    fn the_step_to_confirmed_asks_for_success_in_the_block_that_the_row_names() {
        let mut scene = Scene::open();
        for (number, receipt) in
            (2..).zip(["REVERT", "OUT_OF_TIME", "UNKNOWN", "DEFAULT", "ABSENT"])
        {
            let task = spent(&mut scene, number, "broadcast", Some(receipt));
            assert_eq!(
                as_owner(&confirm(&task, scene.tip.number)),
                "SL012",
                "{receipt}"
            );
        }
        let task = scene.broadcasting(1);
        scene.answer("w", std::slice::from_ref(&task), "SUCCESS");
        assert_eq!(as_owner(&confirm(&task, scene.tip.number)), "SL012");
        include_by_hand(&mut scene, &task, "SUCCESS");
        assert_eq!(as_owner(&confirm(&task, scene.tip.number - 1)), "SL012");
        assert_eq!(as_owner(&confirm(&task, scene.tip.number)), "");
    }

    #[pg_test]
    fn the_step_to_confirmed_asks_for_the_assets_depth() {
        let mut scene = Scene::open();
        run("update sluice.assets set depth = 2");
        let task = scene.broadcast(1);
        include_by_hand(&mut scene, &task, "SUCCESS");
        let block = scene.tip.number;
        for expected in ["SL012", "SL012", ""] {
            assert_eq!(
                as_owner(&confirm(&task, block)),
                expected,
                "tip {}",
                scene.tip.number
            );
            scene.follow_by_hand(3000);
        }
    }

    #[pg_test]
    fn a_named_path_is_one_write_and_as_many_entries_as_steps() {
        let scene = Scene::open();
        let task = scene.signed(1);
        let before = scene.log(&task.operation_id);
        run_as_owner(
            &path(&task.operation_id, "broadcasting,broadcasting,broadcast").replace(
                ", step_path",
                ", step_by = 'somebody', step_detail = '[{\"n\": 1}, {\"n\": 2}, {\"n\": 3}]', step_path",
            ),
        );
        assert_eq!(
            scene.log(&task.operation_id),
            format!(
                "{before} signed>broadcasting broadcasting>broadcasting broadcasting>broadcast"
            )
        );
        assert_eq!(
            one(&format!(
                "select string_agg(worker_id || (detail ->> 'n'), ' ' order by seq) from sluice.timeline('{}') where detail ? 'n'",
                task.operation_id
            ))
            .as_deref(),
            Some("somebody1 somebody2 somebody3")
        );
    }

    #[pg_test]
    fn a_path_with_one_step_that_is_not_in_the_chart_is_refused_whole() {
        let mut scene = Scene::open();
        one_in_each_state(&mut scene);
        for (number, through) in [
            (1, "signing"),
            (1, "validated,signed"),
            (1, "validated,rejected,validated"),
            (3, "broadcasting"),
            (3, "signed,broadcast"),
            (3, "failed,signing"),
            (4, "broadcasting,signed"),
            (6, "confirmed,confirmed"),
            (6, "requested"),
        ] {
            assert_eq!(
                as_owner(&path(&id(number), through)),
                "SL010",
                "{number}: {through}"
            );
        }
    }

    #[pg_test]
    fn a_star_in_the_middle_of_a_path_asks_for_its_proof_too() {
        let mut scene = Scene::open();
        let task = scene.broadcasting(1);
        let through = "broadcast,signing,signing";
        assert_eq!(as_owner(&path(&task.operation_id, through)), "SL012");
        include_by_hand(&mut scene, &task, "OUT_OF_TIME");
        assert_eq!(as_owner(&path(&task.operation_id, through)), "");
    }

    #[pg_test]
    fn a_path_that_ends_elsewhere_than_the_row_is_refused() {
        let scene = Scene::open();
        let task = scene.signed(1);
        for through in ["{}", "{broadcasting,broadcast}", "{signed}"] {
            let statement = format!(
                "update sluice.withdrawals set state = 'broadcasting', step_seq = seq, step_path = '{through}' where operation_id = '{}'",
                task.operation_id
            );
            assert_eq!(as_owner(&statement), "SL010", "{through}");
        }
        let without = format!(
            "update sluice.withdrawals set state = 'broadcasting', step_seq = seq, step_path = null where operation_id = '{}'",
            task.operation_id
        );
        assert_eq!(as_owner(&without), "SL010");
    }

    #[pg_test]
    fn a_path_that_is_no_plain_list_of_states_is_refused() {
        let scene = Scene::open();
        let task = scene.signed(1);
        for through in ["{null}", "[5:5]={broadcasting}", "{null,broadcasting}"] {
            let statement = format!(
                "update sluice.withdrawals set state = 'broadcasting', step_seq = seq, step_path = '{through}' where operation_id = '{}'",
                task.operation_id
            );
            let answer = as_owner(&statement);
            assert!(answer.starts_with("SL0"), "{through}: {answer:?}");
        }
    }

    #[pg_test]
    fn a_path_of_an_earlier_statement_says_nothing_to_the_next_one() {
        let scene = Scene::open();
        let task = scene.signed(1);
        run_as_owner(&path(&task.operation_id, "broadcasting,broadcasting"));
        let left = scene.column(&task.operation_id, "step_path");
        assert_eq!(
            left, "{broadcasting,broadcasting}",
            "the path of the last write stays for people to see"
        );
        let log = scene.log(&task.operation_id);
        run_as_owner(&format!(
            "update sluice.withdrawals set last_error = 'a note' where operation_id = '{}'",
            task.operation_id
        ));
        assert_eq!(
            scene.log(&task.operation_id),
            log,
            "and adds nothing to the log again"
        );
        run_as_owner(&step(&task.operation_id, "broadcast"));
        assert_eq!(
            scene.log(&task.operation_id),
            format!("{log} broadcasting>broadcast")
        );
    }

    #[pg_test]
    fn a_path_with_a_sequence_that_is_not_the_rows_says_nothing() {
        let scene = Scene::open();
        let task = scene.signed(1);
        let log = scene.log(&task.operation_id);
        for named in ["seq - 1", "seq + 1", "0", "null"] {
            let statement = path(&task.operation_id, "broadcasting,broadcast")
                .replace("state = 'broadcast'", "last_error = 'a note'")
                .replace("step_seq = seq", &format!("step_seq = {named}"));
            run_as_owner(&statement);
            assert_eq!(scene.log(&task.operation_id), log, "{named}");
            // And where the state itself moves, only the one step that it is counts.
            let moves = path(&task.operation_id, "broadcasting,broadcast")
                .replace("step_seq = seq", &format!("step_seq = {named}"));
            assert_eq!(
                as_owner(&moves),
                "SL010",
                "{named}: signed > broadcast is no step"
            );
        }
    }

    fn confirm(task: &Task, block: i64) -> String {
        step(&task.operation_id, "confirmed")
            .replace("block_number = 1000", &format!("block_number = {block}"))
    }
}
