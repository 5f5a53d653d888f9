//! Blocks that a node shows and that are not the chain's: stripped, altered, of another chain, missing, late. None is taken, and
//! nothing is decided until the true ones come.

use serde_json::json;
use sluice_mock_node::{Fault, Rule, Scope, Silence};
use uuid::Uuid;

use crate::stage::{SOLID_AFTER_S, Stage, TIME_TO_LIVE_S};

/// What a runner says when no block could be read, and when a person must look.
const NO_BLOCK: &str = "no block was read";
const ALARM: &str = "the follower stands still";

/// The exit code of an alarm.
const EXIT_ALARM: i32 = 3;

/// A withdrawal that is paid, and the block that holds it, which is solid and not read yet.
fn paid_and_not_read(stage: &mut Stage) -> (Uuid, i64) {
    let operation_id = stage.submit();
    stage.work_off();
    stage.scene.advance(SOLID_AFTER_S);
    let sent = stage.on_chain(&stage.envelope(operation_id));
    assert!(sent.solid, "{sent:?}");
    (operation_id, sent.block.expect("it is in a block"))
}

/// Nothing was decided, and no block from this one on is on file.
fn assert_undecided(stage: &Stage, operation_id: Uuid, block: i64) {
    assert!(stage.scene.followed() < block);
    stage.envelope(operation_id);
    assert_eq!(stage.scene.state(operation_id), "broadcast");
}

/// Whatever a node shows, for as long as it likes, decides nothing, before the expiration and long after it; the true block
/// confirms.
fn show_that_only_the_true_block_counts(
    faults: &[Fault],
    place: impl Fn(Rule, i64) -> Rule,
    complaint: &str,
) {
    let mut stage = Stage::new();
    let (operation_id, block) = paid_and_not_read(&mut stage);
    for _ in 0..2 {
        for fault in faults {
            let rule = stage.fault(place(Rule::new(fault.clone()), block));
            stage.look_in_vain(complaint);
            assert_undecided(&stage, operation_id, block);
            stage.mend(rule);
        }
        stage.scene.advance(2 * TIME_TO_LIVE_S);
    }
    stage.work_off();
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&[operation_id]);
    stage.scene.assert_books_agree();
}

#[test]
fn a_block_that_was_stripped_altered_or_comes_of_another_chain_is_never_taken_and_an_alarm_tells() {
    let faults = [
        Fault::StripTransactions {},
        Fault::AlterRet {
            result: "REVERT".to_owned(),
        },
        Fault::ForeignParent {},
    ];
    show_that_only_the_true_block_counts(&faults, Rule::block, ALARM);
}

#[test]
fn an_alarm_about_a_block_ends_a_drain_with_a_code_of_its_own_and_rebuilds_nothing() {
    let mut stage = Stage::new();
    let (operation_id, block) = paid_and_not_read(&mut stage);
    let stripped = stage.fault(Rule::new(Fault::StripTransactions {}).block(block));
    stage.scene.advance(2 * TIME_TO_LIVE_S);
    for command in [&["drain", "--once"][..], &["drain"], &["follow"]] {
        let ended = stage.runner().start(command).wait();
        assert_eq!(ended.code(), Some(EXIT_ALARM), "{command:?}");
        assert_undecided(&stage, operation_id, block);
    }
    stage.mend(stripped);
    stage.work_off();
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&[operation_id]);
}

#[test]
fn a_gap_in_the_blocks_that_a_node_shows_is_never_jumped() {
    show_that_only_the_true_block_counts(&[Fault::Gap {}], Rule::block, NO_BLOCK);
}

#[test]
fn answers_that_are_no_blocks_decide_nothing() {
    let body = |json| Fault::Body {
        status: 200,
        json: Some(json),
        text: String::new(),
        keep: false,
    };
    let faults = [
        Fault::Empty { keep: false },
        body(json!([])),
        body(json!({ "block": [] })),
        body(json!(null)),
        Fault::Error {
            message: "class java.lang.NullPointerException : null".to_owned(),
            keep: false,
        },
        Fault::Lite {},
        Fault::Status {
            status: 503,
            keep: false,
        },
        Fault::Truncated {},
        Fault::DropThenTimeout {
            how: Silence::Reset,
        },
    ];
    let at_all_blocks = |rule: Rule, _| rule.at(Scope::Blocks);
    show_that_only_the_true_block_counts(&faults, at_all_blocks, NO_BLOCK);
}

#[test]
fn where_one_node_strips_alters_or_forges_what_it_shows_another_is_read_and_it_is_paid_once() {
    let mut stage = Stage::with(|config| {
        config.nodes = 2;
        config.foreign_per_block = 1;
    });
    for fault in [
        Fault::StripTransactions {},
        Fault::AlterRet {
            result: "REVERT".to_owned(),
        },
        Fault::ForeignParent {},
        Fault::Gap {},
    ] {
        stage.submit();
        stage.work_off();
        let lies = stage.fault(Rule::new(fault).node(0));
        stage.pass(SOLID_AFTER_S);
        stage.mend(lies);
    }
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(stage.submitted());
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn a_node_that_stands_still_or_lags_proves_nothing_and_its_blocks_count_when_they_come() {
    let mut stage = Stage::new();
    let [paid, dies] = [stage.submit(), stage.submit()];
    let left_out = stage.fault(Rule::new(Fault::NeverInclude {}).operation(dies));
    stage.work_off();
    let first = stage.envelope(dies);
    let change = |frozen, lag| {
        let changed = stage.scene.network.change_node(0, |node| {
            node.frozen = frozen;
            node.lag = lag;
        });
        changed.expect("a node");
    };
    // By every other clock both have ended long ago, one way or the other.
    change(true, 0);
    for _ in 0..3 {
        stage.scene.advance(TIME_TO_LIVE_S);
        stage.work_off();
        for operation_id in [paid, dies] {
            stage.envelope(operation_id);
            assert_eq!(stage.scene.state(operation_id), "broadcast");
        }
    }
    stage.mend(left_out);

    // It catches up, to a moment at which the one was paid and the other might still have been.
    let sent_ms = stage.on_chain(&first).expiration_ms - 1000 * TIME_TO_LIVE_S as i64;
    let behind_ms = stage.scene.network.now_ms() - sent_ms;
    let lag = behind_ms / 3000 - 60;
    change(false, lag);
    stage.work_off();
    stage.scene.assert_paid_once(paid);
    assert_eq!(stage.envelope(dies), first);
    assert_eq!(stage.scene.state(dies), "broadcast");

    change(false, 0);
    stage.work_off();
    stage.pass(SOLID_AFTER_S);
    stage.assert_paid_by_the_second_after_a_proof(dies);
    stage.scene.assert_books_agree();
}
