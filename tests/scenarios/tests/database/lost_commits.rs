//! COMMIT is sent and no answer comes: each of the commits that a runner makes, cut before it reaches the server and after the
//! server has made it. In both cases the runner knows nothing, uses nothing of what the call answered, and time brings the
//! withdrawal back.

use sluice_mock_node::{Fault, Rule, Silence};
use sluice_scenarios::Strike;

use crate::stage::Stage;

const EITHER_SIDE: [Strike; 2] = [Strike::CutBefore, Strike::CutAfter];

#[test]
fn a_claim_whose_commit_is_lost_hands_out_no_digest_and_the_same_one_is_offered_later() {
    let mut stage = Stage::new();
    for strike in EITHER_SIDE {
        let operation_id = stage.submit();
        let cut = stage.strike_once(strike, "claim_batch");
        let runner = stage.run();
        stage.proxy.wait_until_struck(cut, 1);
        stage.let_another_be_sent();
        if strike == Strike::CutAfter {
            // Its lease is on file, and nobody knows that it is his.
            assert_eq!(stage.scene.sends_of(operation_id), 0);
            assert_eq!(stage.scene.state(operation_id), "signing");
            let signed: bool = stage.about(operation_id, "e.signature is not null");
            assert!(!signed);
        } else {
            // Nothing is on file, and the next claim has taken it.
            stage.scene.wait_until_state(operation_id, "broadcast");
        }
        let built: Vec<u8> = stage.about(operation_id, "e.txid");
        stage.finish();
        let paid = stage.scene.transactions_of(operation_id);
        assert_eq!(paid[0].txid.as_bytes().as_slice(), built);
        assert!(runner.log().contains("claim_batch counts as not committed"));
    }
}

#[test]
fn signatures_whose_commit_is_lost_are_dropped_and_no_byte_is_sent_by_that_claim() {
    let mut stage = Stage::new();
    for (strike, on_file) in [
        (Strike::CutBefore, "signing"),
        (Strike::CutAfter, "broadcasting"),
    ] {
        let operation_id = stage.submit();
        let cut = stage.strike_once(strike, "record_signatures");
        let runner = stage.run();
        stage.proxy.wait_until_struck(cut, 1);
        stage.let_another_be_sent();
        assert_eq!(stage.scene.sends_of(operation_id), 0, "{strike:?}");
        assert_eq!(stage.scene.state(operation_id), on_file);
        stage.finish();
        assert_eq!(stage.scene.sends_of(operation_id), 1, "{strike:?}");
        assert!(runner.log().contains("signature not on file: dropped"));
    }
}

#[test]
fn answers_whose_commit_is_lost_let_the_same_bytes_be_sent_again_or_are_on_file() {
    let mut stage = Stage::new();
    for (strike, on_file, sends) in [
        (Strike::CutBefore, "broadcasting", 2),
        (Strike::CutAfter, "broadcast", 1),
    ] {
        let operation_id = stage.submit();
        let cut = stage.strike_once(strike, "record_broadcasts");
        let runner = stage.run();
        stage.proxy.wait_until_struck(cut, 1);
        stage.let_another_be_sent();
        assert_eq!(stage.scene.sends_of(operation_id), 1, "{strike:?}");
        assert_eq!(stage.scene.state(operation_id), on_file);
        stage.finish();
        assert_eq!(stage.scene.sends_of(operation_id), sends, "{strike:?}");
        assert!(runner.log().contains("sent, and the answer is not on file"));
    }
}

#[test]
fn a_postponement_whose_commit_is_lost_costs_time_and_nothing_else() {
    let mut stage = Stage::new();
    for strike in EITHER_SIDE {
        let operation_id = stage.submit();
        let cut = stage.strike_once(strike, "fenced_cas");
        // It can sign for no wallet.
        let unable = stage.setup().set("SLUICE_WALLET", "").start(&["run"]);
        stage.proxy.wait_until_struck(cut, 1);
        drop(unable);
        let leased: bool = stage.about(operation_id, "w.leased_by is not null");
        assert_eq!(leased, strike == Strike::CutBefore);
        assert_eq!(stage.scene.state(operation_id), "signing");
        let _able = stage.run();
        stage.finish();
    }
}

#[test]
fn blocks_whose_commit_is_lost_are_read_again_and_settle_once() {
    let mut stage = Stage::new();
    for strike in EITHER_SIDE {
        let operation_id = stage.submit();
        let _runner = stage.run();
        stage.scene.wait_until_state(operation_id, "broadcast");
        let cut = stage.strike_once(strike, "observe_blocks");
        // The first batch of blocks holds the payment, and makes it solid.
        stage.scene.advance(75);
        stage.proxy.wait_until_struck(cut, 1);
        stage.finish();
        let row = stage.scene.database.superuser().query_one(
            "select count(*) from sluice.events where operation_id = $1 and to_state = 'confirmed'",
            &[&operation_id],
        );
        assert_eq!(row.expect("events can be counted").get::<_, i64>(0), 1);
    }
}

#[test]
fn a_release_whose_commit_is_lost_leaves_what_was_held_to_its_lease() {
    let mut stage = Stage::new();
    for strike in EITHER_SIDE {
        let operation_id = stage.submit();
        let silence =
            Rule::new(Fault::DropThenTimeout { how: Silence::Hold }).operation(operation_id);
        let silence = stage.scene.network.add_fault(silence).expect("a fault");
        let cut = stage.strike_once(strike, "sluice.release(");
        let mut waits_for_an_answer = stage
            .setup()
            .set("SLUICE_SEND_TIMEOUT", "60s")
            .set("SLUICE_STOP_GRACE", "100ms")
            .start(&["run"]);
        sluice_scenarios::wait::until("it is sent", || {
            (stage.scene.sends_of(operation_id) == 1).then_some(())
        });
        assert!(waits_for_an_answer.terminate().success());
        assert_eq!(stage.proxy.struck(cut), 1);
        let leased: bool = stage.about(operation_id, "w.leased_by is not null");
        assert_eq!(leased, strike == Strike::CutBefore);
        assert!(stage.scene.network.remove_fault(silence));
        let _runner = stage.run();
        stage.finish();
    }
}
