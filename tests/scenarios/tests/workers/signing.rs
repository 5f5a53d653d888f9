//! Signers that are slow, silent, or answer with what is no signature of the wallet's. Until the envelope is dead the same digest
//! is offered again and no second one is built; a signature counts where it is the wallet's, and as long as it is asked for.

use serde_json::{Value, json};
use sluice_core::signature::SecretKey;
use sluice_scenarios::wait::until;
use sluice_scenarios::worker::Task;
use sluice_scenarios::{Runner, Wallets, Worker};
use uuid::Uuid;

use crate::stage::{DEATH_S, PAST_EVERY_LEASE_S, SOLID_AFTER_S, Stage};

/// A runner whose signers do so, until it is dropped.
fn runner_whose_signer(stage: &Stage, does: &str) -> Runner {
    stage
        .runner("one")
        .set("SLUICE_SIGN_TIMEOUT", "100ms")
        .set("FAILPOINTS", &format!("signer={does}"))
        .start(&["run"])
}

fn signature_on_file(stage: &Stage, operation_id: Uuid) -> Vec<u8> {
    let row = stage.scene.database.superuser().query_one(
        "select signature from sluice.envelopes where operation_id = $1",
        &[&operation_id],
    );
    row.expect("it has one envelope").get(0)
}

/// What a worker reports when its signer has answered.
fn signed(task: &Task) -> Value {
    json!([{
        "operation_id": task.operation_id,
        "fencing_token": task.fencing_token,
        "txid": task.txid.to_string(),
        "signature": task.signature_in_hex(),
    }])
}

fn claim_one(worker: &mut Worker) -> Task {
    let claimed = worker.claim(10);
    let [task] = claimed.as_slice() else {
        panic!("one is due: {claimed:?}")
    };
    task.clone()
}

#[test]
fn a_signature_that_is_short_or_nobodys_or_anothers_is_refused_and_the_same_digest_is_then_signed_well_and_paid_once()
 {
    let mut stage = Stage::with_a_real_signer();
    let refused = [
        ("short", "signature refused: a signature has 65 bytes"),
        (
            "bad",
            "signature refused: these 65 bytes are no secp256k1 signature",
        ),
        ("other-key", "signature refused: the signature was made by"),
    ];
    for (answer, complaint) in refused {
        let operation_id = stage.submit();
        let runner = runner_whose_signer(&stage, &format!("1*return({answer})"));
        stage.wait_until_last_error(operation_id, complaint);
        assert_eq!(stage.scene.sends_of(operation_id), 0, "{answer}");
        assert_eq!(stage.scene.state(operation_id), "signing", "{answer}");
        let offered = stage.envelopes(operation_id);
        assert_eq!(offered.len(), 1, "{answer}");
        let why = stage.stuck(operation_id).expect("it needs a look");
        assert!(why.starts_with(complaint), "{answer}: {why}");

        // The same runner, whose signer is well now, is offered the same digest when the lease's time is over.
        stage.scene.advance(31);
        stage.scene.wait_until_state(operation_id, "broadcast");
        assert_eq!(stage.envelopes(operation_id), offered, "{answer}");
        assert_eq!(stage.stuck(operation_id), None, "{answer}");
        drop(runner);
    }
    stage.finish();
}

#[test]
fn a_signature_with_a_high_s_is_taken_as_it_came_and_paid_once() {
    let mut stage = Stage::with_a_real_signer();
    let operation_id = stage.submit();
    let runner = runner_whose_signer(&stage, "1*return(high-s)");
    stage.scene.wait_until_state(operation_id, "broadcast");
    drop(runner);
    stage.finish();
    let txid = stage.envelopes(operation_id)[0];
    let low = SecretKey::from_hex(Wallets::LOCAL_KEY)
        .expect("a published key")
        .sign(&txid);
    let on_file = signature_on_file(&stage, operation_id);
    assert_eq!(on_file[..32], low[..32], "the same r");
    assert_ne!(on_file[32..64], low[32..64], "another s");
}

#[test]
fn a_signer_that_says_nothing_is_offered_the_same_digest_until_the_envelope_is_dead_and_only_then_another()
 {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let mut runner = runner_whose_signer(&stage, "return(silent)");
    stage.wait_until_last_error(operation_id, "signer: the signer did not answer in time");
    let first = stage.envelopes(operation_id);
    let mut offers = vec![];
    for _ in 0..5 {
        until("it is put off", || {
            (!stage.is_leased(operation_id)).then_some(())
        });
        let token = stage.standing(operation_id).fencing_token;
        stage.scene.advance(30);
        until("it is offered again", || {
            let now = stage.standing(operation_id);
            (now.fencing_token > token).then_some(())
        });
        offers.push(stage.envelopes(operation_id));
    }
    assert!(offers.iter().all(|offered| *offered == first), "{offers:?}");
    assert_eq!(stage.scene.sends_of(operation_id), 0);

    // Its blocks have all been read, and none holds it: the next digest is another one, which the next runner's signer signs.
    stage.scene.advance(DEATH_S);
    stage.scene.wait_until_followed();
    runner.kill();
    stage.scene.advance(PAST_EVERY_LEASE_S);
    let heir = stage.runner("heir").start(&["run"]);
    stage.scene.let_time_pass_until_confirmed(&[operation_id]);
    drop(heir);
    let transactions = stage.scene.transactions_of(operation_id);
    assert_eq!(transactions.len(), 1, "{transactions:#?}");
    let built = stage.envelopes(operation_id);
    assert!(built.len() >= 2 && built[0] == first[0], "{built:?}");
    assert_eq!(transactions[0].txid, built[built.len() - 1]);
    assert_eq!(transactions[0].result.as_deref(), Some("SUCCESS"));
}

#[test]
fn a_signature_that_comes_after_the_lease_counts_only_if_nobody_has_claimed_since() {
    let mut stage = Stage::new();
    let [unclaimed, reclaimed] = [stage.submit(), stage.submit()];
    let mut slow = Worker::new("slow", &stage.scene.database);
    let tasks = slow.claim(10);
    let task_of = |operation_id: Uuid| {
        let found = tasks.iter().find(|task| task.operation_id == operation_id);
        found.expect("both were claimed").clone()
    };

    // The lease is over. One is filed before anybody comes, which is as good as ever.
    stage.scene.advance(PAST_EVERY_LEASE_S);
    let filed = slow.report("record_signatures", &signed(&task_of(unclaimed)));
    assert_eq!(filed, [Some("broadcasting".to_owned())]);
    // The other has been offered to somebody else: the same digest, so both sign the same, and the second is refused.
    let mut other = Worker::new("other", &stage.scene.database);
    let again = claim_one(&mut other);
    assert_eq!(
        (again.operation_id, again.txid),
        (reclaimed, task_of(reclaimed).txid)
    );
    let before = stage.standing(reclaimed);
    let late = slow.report("record_signatures", &signed(&task_of(reclaimed)));
    assert_eq!(late, [None]);
    assert_eq!(stage.standing(reclaimed), before);
    let filed = other.report("record_signatures", &signed(&again));
    assert_eq!(filed, [Some("broadcasting".to_owned())]);
    let late = slow.report("record_signatures", &signed(&task_of(reclaimed)));
    assert_eq!(late, [None]);
    stage.finish();
}

#[test]
fn a_signature_that_comes_after_the_expiration_is_never_sent_and_one_after_the_death_is_not_even_filed()
 {
    let mut stage = Stage::new();
    stage.operate(
        "select from sluice.set_setting('margin_blocks', $1, 'a death takes longer')",
        "20",
    );
    let operation_ids = [stage.submit(), stage.submit()];
    let [expired, dead] = operation_ids;
    let mut slow = Worker::new("slow", &stage.scene.database);
    let tasks = slow.claim(10);
    let task_of = |operation_id: Uuid| {
        let found = tasks.iter().find(|task| task.operation_id == operation_id);
        found.expect("both were claimed").clone()
    };

    // Blocks past the expiration are solid, and not yet as many as the margin asks for.
    stage
        .scene
        .advance(stage.left_of_envelope_s(expired) + SOLID_AFTER_S);
    stage.scene.follow();
    let filed = slow.report("record_signatures", &signed(&task_of(expired)));
    assert_eq!(
        filed,
        [Some("signed".to_owned())],
        "on file, and not to be sent"
    );
    stage.work_off();
    assert_eq!(stage.scene.network.transactions().len(), 0);

    stage.scene.advance(120);
    stage.scene.follow();
    let before = stage.standing(dead);
    let late = slow.report("record_signatures", &signed(&task_of(dead)));
    assert_eq!(late, [None]);
    assert_eq!(stage.standing(dead), before);

    // What nobody ever took is built anew after a pause, and paid by that.
    let heir = stage.runner("heir").start(&["run"]);
    stage.scene.let_time_pass_until_confirmed(&operation_ids);
    drop(heir);
    for operation_id in operation_ids {
        let [first, second] = stage.envelopes(operation_id).try_into().expect("two");
        let transactions = stage.scene.transactions_of(operation_id);
        assert_eq!(transactions.len(), 1, "{transactions:#?}");
        assert_eq!(transactions[0].txid, second);
        assert_eq!(transactions[0].result.as_deref(), Some("SUCCESS"));
        let late = slow.report("record_signatures", &signed(&task_of(operation_id)));
        assert_eq!(late, [None], "{first}");
    }
    stage.scene.advance(SOLID_AFTER_S);
    assert_eq!(stage.scene.network.transactions().len(), 2);
}
