//! Workers that crash: before a digest is signed and after, between the intent on file and the wire, between the wire and the
//! answer on file. Whoever comes next finds the same bytes and goes on with them.

use std::os::unix::process::ExitStatusExt as _;

use crate::stage::Stage;

/// A worker is killed at this point.
fn killed_at(stage: &Stage, point: &str) {
    let setup = stage.runner("victim").killed_at(point);
    let mut victim = setup.start(&["drain", "--once"]);
    let ended = victim.wait();
    assert_eq!(ended.signal(), Some(9), "{point}: {}", victim.log());
}

#[test]
fn a_worker_that_crashes_after_the_write_ahead_and_before_the_send_has_its_bytes_sent_by_another() {
    for point in ["signatures.after_commit", "send.before"] {
        let mut stage = Stage::new();
        let operation_id = stage.submit();
        killed_at(&stage, point);
        assert_eq!(stage.scene.sends_of(operation_id), 0, "{point}");
        assert_eq!(stage.scene.state(operation_id), "broadcasting", "{point}");
        let intended = stage.envelopes(operation_id);

        stage.finish();
        assert_eq!(stage.sends_by("victim", operation_id), 0, "{point}");
        assert_eq!(stage.sends_by("heir", operation_id), 1, "{point}");
        assert_eq!(
            intended,
            [stage.scene.transactions_of(operation_id)[0].txid],
            "{point}"
        );
    }
}

#[test]
fn a_worker_that_crashes_after_the_send_and_before_recording_leaves_a_payment_that_a_second_send_does_not_repeat()
 {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    killed_at(&stage, "send.after");
    assert_eq!(stage.scene.sends_of(operation_id), 1);
    assert_eq!(stage.scene.state(operation_id), "broadcasting");

    // Past the lease, and before a solid block shows that it is paid.
    stage.scene.advance(31);
    stage.work_off();
    assert_eq!(stage.scene.state(operation_id), "broadcast");
    stage.finish();
    assert_eq!(stage.sends_by("victim", operation_id), 1);
    assert_eq!(stage.sends_by("heir", operation_id), 1);
    let paid = &stage.scene.transactions_of(operation_id)[0];
    assert_eq!(
        paid.answers.get("DUP_TRANSACTION_ERROR"),
        Some(&1),
        "{paid:?}"
    );
}

#[test]
fn a_worker_that_crashes_before_or_after_the_signer_answered_has_the_same_digest_signed_by_another()
{
    for point in ["sign.before", "sign.after"] {
        let mut stage = Stage::new();
        let operation_id = stage.submit();
        killed_at(&stage, point);
        let offered = stage.envelopes(operation_id);
        assert_eq!(
            (stage.scene.state(operation_id).as_str(), offered.len()),
            ("signing", 1),
            "{point}"
        );
        // The lease is not over: nobody else is offered anything.
        stage.work_off();
        assert_eq!(stage.scene.sends_of(operation_id), 0, "{point}");

        stage.finish();
        assert_eq!(stage.envelopes(operation_id), offered, "{point}");
        assert_eq!(stage.sends_by("heir", operation_id), 1, "{point}");
    }
}
