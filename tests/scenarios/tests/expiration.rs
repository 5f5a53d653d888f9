//! The end of an envelope: the last block that may hold it, the proof that none did, and everything that is no such proof.

use std::os::unix::process::ExitStatusExt;

use serde_json::Value;
use sluice_core::envelope::Txid;
use sluice_mock_node::{Fault, Rule, Silence, TxReport};
use sluice_scenarios::{Runner, RunnerSetup, Scene};
use uuid::Uuid;

/// From an envelope's reference block to its expiration, as a new database has it.
const TIME_TO_LIVE_S: u64 = 300;
/// From a block to the moment it is solid.
const SOLID_AFTER_S: u64 = 19 * 3;

fn setup(scene: &Scene) -> RunnerSetup {
    scene.runner("one").set("SLUICE_SEND_TIMEOUT", "200ms")
}

fn run(scene: &Scene) -> Runner {
    setup(scene).start(&["run"])
}

/// Follows to the solid block and does all that is due at the present clock.
fn work_off(scene: &Scene) {
    setup(scene).start(&["drain", "--once"]).ends_well();
}

/// The withdrawal's envelopes, in the order they were built.
fn envelopes(scene: &Scene, operation_id: Uuid) -> Vec<Txid> {
    let rows = scene.database.superuser().query(
        "select txid from sluice.envelopes where operation_id = $1 order by attempt",
        &[&operation_id],
    );
    let rows = rows.expect("envelopes can be read");
    rows.iter()
        .map(|row| Txid::from_bytes(row.get(0)).expect("a txid has 32 bytes"))
        .collect()
}

/// The evidence that the log gives for each envelope of the withdrawal that died.
fn deaths(scene: &Scene, operation_id: Uuid) -> Vec<Value> {
    let rows = scene.database.superuser().query(
        "select detail from sluice.timeline($1) where to_state = 'signing' and detail ->> 'fate' = 'dead'",
        &[&operation_id],
    );
    rows.expect("a timeline can be read")
        .iter()
        .map(|row| row.get(0))
        .collect()
}

fn on_chain(scene: &Scene, txid: &Txid) -> TxReport {
    scene.network.transaction(txid).expect("it was sent")
}

fn time_of(scene: &Scene, block: i64) -> i64 {
    let row = scene.database.superuser().query_one(
        "select timestamp_ms from sluice.blocks where number = $1",
        &[&block],
    );
    row.expect("the block is followed").get(0)
}

/// A withdrawal whose only transaction comes in the first block stamped at or past its expiration, after so many missed slots.
fn included_at_the_last_moment(missed_slots: u32) {
    let scene = Scene::start();
    scene
        .network
        .add_fault(Rule::new(Fault::IncludeAtExpiration {}))
        .expect("a fault");
    let operation_id = scene.submit(1, "25");
    let _runner = run(&scene);
    scene.wait_until_state(operation_id, "broadcast");
    let txid = envelopes(&scene, operation_id)[0];

    let expiration_ms = on_chain(&scene, &txid).expiration_ms;
    let left_s = u64::try_from(expiration_ms - scene.network.now_ms()).expect("it lives") / 1000;
    scene.advance(left_s - 3);
    scene.network.miss(missed_slots);
    scene.advance(SOLID_AFTER_S + 60);
    scene.wait_until_state(operation_id, "confirmed");

    let report = on_chain(&scene, &txid);
    let behind_ms = report.block_ms.expect("it is in a block") - expiration_ms;
    assert_eq!(behind_ms, i64::from(missed_slots) * 3000);
    assert_eq!(report.result.as_deref(), Some("SUCCESS"));
    // Far beyond, nothing more is built.
    scene.advance(TIME_TO_LIVE_S + SOLID_AFTER_S);
    scene.wait_until_followed();
    assert_eq!(envelopes(&scene, operation_id), [txid]);
    assert_eq!(scene.network.transactions().len(), 1);
}

#[test]
fn a_payment_in_the_block_stamped_exactly_at_its_expiration_is_confirmed_and_not_rebuilt() {
    included_at_the_last_moment(0);
}

#[test]
fn a_payment_in_the_first_block_stamped_past_its_expiration_is_confirmed_and_not_rebuilt() {
    included_at_the_last_moment(2);
}

#[test]
fn an_envelope_that_no_block_held_is_rebuilt_with_evidence_that_names_its_first_and_last_block() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let _runner = run(&scene);
    scene.wait_until_state(operation_id, "broadcast");
    let first = envelopes(&scene, operation_id)[0];
    scene
        .network
        .add_fault(Rule::new(Fault::NeverInclude {}).txid(first))
        .expect("a fault");

    let expiration_ms = on_chain(&scene, &first).expiration_ms;
    scene.let_time_pass_until("another is built and pays", || {
        (scene.state(operation_id) == "confirmed").then_some(())
    });

    let proofs = deaths(&scene, operation_id);
    let [proof] = proofs.as_slice() else {
        panic!("rebuilt once: {proofs:?}")
    };
    assert_eq!(
        (proof["txid"].as_str(), proof["fate"].as_str()),
        (Some(first.to_string().as_str()), Some("dead"))
    );
    let [first_block, last_block] =
        ["first_block", "last_block"].map(|name| proof[name].as_i64().expect("a block number"));
    assert_eq!(
        time_of(&scene, first_block) + 1000 * TIME_TO_LIVE_S as i64,
        expiration_ms,
        "the first is the reference"
    );
    assert!(
        time_of(&scene, last_block) >= expiration_ms
            && time_of(&scene, last_block - 1) < expiration_ms
    );

    let built = envelopes(&scene, operation_id);
    let [_, second] = built.as_slice() else {
        panic!("two were built: {built:?}")
    };
    assert_eq!(on_chain(&scene, second).result.as_deref(), Some("SUCCESS"));
    assert_eq!(on_chain(&scene, &first).block, None);
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
    let answers = codes.map(|code| Fault::Answer {
        code: code.to_owned(),
        message: String::new(),
        keep: false,
        result: None,
    });
    let silences =
        [Silence::Hold, Silence::Reset, Silence::Close].map(|how| Fault::DropThenTimeout { how });
    let bodies = [
        Fault::Empty { keep: false },
        Fault::Status {
            status: 503,
            keep: false,
        },
    ];
    answers.into_iter().chain(silences).chain(bodies).collect()
}

#[test]
fn nothing_but_a_solid_block_past_the_expiration_rebuilds() {
    let scene = Scene::start();
    let faults = answers_that_prove_nothing();
    let withdrawals: Vec<Uuid> = faults
        .into_iter()
        .zip(1..)
        .map(|(fault, n)| {
            let operation_id = scene.submit(n, "25");
            scene
                .network
                .add_fault(Rule::new(fault).operation(operation_id))
                .expect("a fault");
            operation_id
        })
        .collect();

    // The first to send is killed before any answer is on file; then all is sent again and again, up to the expiration.
    let killed = setup(&scene).killed_at("send.after").start(&["run"]).wait();
    assert_eq!(killed.signal(), Some(9), "{killed}");
    for _ in 0..4 {
        scene.advance((TIME_TO_LIVE_S - 20) / 4);
        work_off(&scene);
    }
    let built: Vec<Vec<Txid>> = withdrawals
        .iter()
        .map(|id| envelopes(&scene, *id))
        .collect();
    assert!(
        built.iter().all(|envelopes| envelopes.len() == 1),
        "{built:?}"
    );
    let sends: Vec<usize> = built
        .iter()
        .map(|envelopes| times_sent(&scene, &envelopes[0]))
        .collect();
    assert!(
        sends.iter().all(|sends| *sends >= 2),
        "each was sent again: {sends:?}"
    );

    // Long past the expiration by every clock there is; but no block becomes solid.
    scene.network.stall_solidity(true);
    scene.advance(4 * TIME_TO_LIVE_S);
    work_off(&scene);
    let still: Vec<Vec<Txid>> = withdrawals
        .iter()
        .map(|id| envelopes(&scene, *id))
        .collect();
    assert_eq!(built, still);

    // The solid blocks come, and with them the proof.
    scene.network.stall_solidity(false);
    scene.advance(3);
    work_off(&scene);
    let deaths: Vec<usize> = withdrawals
        .iter()
        .map(|id| deaths(&scene, *id).len())
        .collect();
    assert!(deaths.iter().all(|deaths| *deaths == 1), "{deaths:?}");
}

/// How often nodes saw the transaction, whatever they answered.
fn times_sent(scene: &Scene, txid: &Txid) -> usize {
    scene
        .network
        .sends(&sluice_mock_node::LogFilter {
            txid: Some(*txid),
            ..Default::default()
        })
        .len()
}
