//! What a node says of a transaction that it is handed, or leaves unsaid: none of it pays, fails or rebuilds.

use std::os::unix::process::ExitStatusExt;

use sluice_core::envelope::Txid;
use sluice_mock_node::{Fault, LogFilter, Rule, Silence};
use uuid::Uuid;

use crate::stage::{RESEND_S, SOLID_AFTER_S, Stage, TIME_TO_LIVE_S, answer};

/// Every way to give no answer, where the transaction was taken or was not.
fn no_answers(keep: bool) -> Vec<Fault> {
    let silences = [Silence::Hold, Silence::Reset, Silence::Close].map(|how| {
        if keep {
            Fault::AcceptThenTimeout { how }
        } else {
            Fault::DropThenTimeout { how }
        }
    });
    let bodies = [
        Fault::Empty { keep },
        Fault::Error {
            message: "class java.lang.NullPointerException : null".to_owned(),
            keep,
        },
        Fault::Body {
            status: 200,
            json: None,
            text: "<html>Bad Gateway</html>".to_owned(),
            keep,
        },
        Fault::Status { status: 503, keep },
        Fault::Status { status: 429, keep },
    ];
    silences.into_iter().chain(bodies).collect()
}

#[test]
fn what_a_node_took_without_an_answer_is_paid_once_and_not_built_anew() {
    let mut stage = Stage::new();
    let mut faults = no_answers(true);
    // A true answer that arrived garbled is none either.
    faults.extend([
        Fault::Truncated {},
        Fault::WrongTxid {},
        Fault::Missing {
            fields: vec!["code".to_owned()],
        },
    ]);
    for fault in faults {
        stage.submit_that_meets(fault);
    }
    stage.work_off();
    for operation_id in stage.submitted() {
        assert_eq!(stage.scene.sends_of(*operation_id), 1);
        assert_eq!(stage.scene.state(*operation_id), "broadcasting");
    }
    stage.pass(SOLID_AFTER_S);
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(stage.submitted());
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn what_a_node_dropped_without_an_answer_is_sent_again_and_paid_by_the_same_bytes() {
    let mut stage = Stage::new();
    for fault in no_answers(false) {
        stage.submit_that_meets(fault);
    }
    stage.work_off();
    for operation_id in stage.submitted() {
        assert_eq!(stage.scene.sends_of(*operation_id), 1);
        assert_eq!(stage.scene.state(*operation_id), "broadcasting");
    }
    stage.pass(RESEND_S);
    for operation_id in stage.submitted() {
        assert_eq!(stage.scene.sends_of(*operation_id), 2);
        assert_eq!(stage.scene.state(*operation_id), "broadcast");
    }
    stage.pass(SOLID_AFTER_S);
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(stage.submitted());
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

/// Withdrawals whose every send is answered so, one that the node takes all the same and one that it first takes when it
/// tells the truth again. Both are paid by the bytes sent first.
fn answered(stage: &mut Stage, code: &str, message: &str) -> [Uuid; 2] {
    let taken = stage.submit();
    stage.fault(Rule::new(answer(code, message, true)).operation(taken));
    let left = stage.submit_that_meets(answer(code, message, false));
    [taken, left]
}

fn show_that_answers_decide_nothing(answers: &[(&str, &str)]) {
    let mut stage = Stage::new();
    for (code, message) in answers {
        answered(&mut stage, code, message);
    }
    stage.work_off();
    for operation_id in stage.submitted() {
        assert_eq!(stage.scene.sends_of(*operation_id), 1);
        assert_eq!(stage.scene.state(*operation_id), "broadcasting");
    }
    stage.pass(RESEND_S);
    stage.pass(SOLID_AFTER_S);
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(stage.submitted());
    stage.pass(TIME_TO_LIVE_S);
    stage.assert_each_paid_by_its_only_transaction();
}

#[test]
fn a_code_that_nobody_knows_decides_nothing() {
    let long = "X".repeat(5000);
    show_that_answers_decide_nothing(&[
        ("A_CODE_OF_TOMORROW", "what it means will be told"),
        ("success", ""),
        ("", ""),
        ("20", "a number"),
        (&long, &long),
        ("\u{0}\u{202e}'; drop table", "\u{0}\n\u{feff}"),
    ]);
}

#[test]
fn a_node_that_claims_a_transaction_has_expired_is_not_taken_at_its_word() {
    show_that_answers_decide_nothing(&[
        ("TRANSACTION_EXPIRATION_ERROR", "Transaction expired"),
        ("OTHER_ERROR", "expired"),
    ]);
}

#[test]
fn an_error_of_a_node_that_kept_the_bytes_all_the_same_costs_nothing() {
    show_that_answers_decide_nothing(&[
        ("NOT_ENOUGH_EFFECTIVE_CONNECTION", "P2P broadcast failed."),
        ("OTHER_ERROR", "Error: null"),
        ("SERVER_BUSY", "Server busy."),
        ("NO_CONNECTION", "No connection."),
        ("BLOCK_UNSOLIDIFIED", "Block unsolidified."),
    ]);
}

/// Everything that a node can answer and that proves nothing. Each leaves the transaction out of the node's pool.
fn answers_that_prove_nothing() -> Vec<Fault> {
    let codes = [
        "SIGERROR",
        "CONTRACT_VALIDATE_ERROR",
        "CONTRACT_EXE_ERROR",
        "BANDWITH_ERROR",
        "DUP_TRANSACTION_ERROR",
        "TAPOS_ERROR",
        "TOO_BIG_TRANSACTION_ERROR",
        "TRANSACTION_EXPIRATION_ERROR",
        "SERVER_BUSY",
        "NO_CONNECTION",
        "NOT_ENOUGH_EFFECTIVE_CONNECTION",
        "BLOCK_UNSOLIDIFIED",
        "OTHER_ERROR",
        "A_CODE_OF_TOMORROW",
        "SUCCESS",
    ];
    codes
        .iter()
        .map(|code| answer(code, "", false))
        .chain(no_answers(false))
        .collect()
}

#[test]
fn nothing_but_a_solid_block_past_the_expiration_rebuilds() {
    let mut stage = Stage::new();
    for fault in answers_that_prove_nothing() {
        let operation_id = stage.submit();
        stage.fault(Rule::new(fault).operation(operation_id));
    }

    // The first to send is killed before any answer is on file; then all is sent again and again, up to the expiration.
    let killed = stage
        .runner()
        .killed_at("send.after")
        .start(&["run"])
        .wait();
    assert_eq!(killed.signal(), Some(9), "{killed}");
    for _ in 0..4 {
        stage.scene.advance((TIME_TO_LIVE_S - 20) / 4);
        stage.work_off();
    }
    let built: Vec<Txid> = stage
        .submitted()
        .iter()
        .map(|id| stage.envelope(*id))
        .collect();
    let sends: Vec<usize> = built.iter().map(|txid| times_sent(&stage, txid)).collect();
    assert!(
        sends.iter().all(|sends| *sends >= 2),
        "each was sent again: {sends:?}"
    );

    // Long past the expiration by every clock there is; but no block becomes solid.
    stage.scene.network.stall_solidity(true);
    stage.scene.advance(4 * TIME_TO_LIVE_S);
    stage.work_off();
    let still: Vec<Txid> = stage
        .submitted()
        .iter()
        .map(|id| stage.envelope(*id))
        .collect();
    assert_eq!(built, still);

    // The solid blocks come, and with them the proof.
    stage.scene.network.stall_solidity(false);
    stage.scene.advance(3);
    stage.work_off();
    let deaths: Vec<usize> = stage
        .submitted()
        .iter()
        .map(|id| stage.deaths(*id).len())
        .collect();
    assert!(deaths.iter().all(|deaths| *deaths == 1), "{deaths:?}");
    stage.scene.assert_books_agree();
}

/// How often nodes saw the transaction, whatever they answered.
fn times_sent(stage: &Stage, txid: &Txid) -> usize {
    let filter = LogFilter {
        txid: Some(*txid),
        ..LogFilter::default()
    };
    stage.scene.network.sends(&filter).len()
}
