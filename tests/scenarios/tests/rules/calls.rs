//! The runner's calls, from whoever makes them: what is another's is not touched, what a node says decides nothing, and one bad row
//! stops itself. Made by hand, so that no care of the runner's stands before the database's own.

use std::collections::BTreeSet;

use postgres::error::SqlState;
use sluice_core::envelope::Txid;
use sluice_scenarios::{Role, Scene, Wallets};
use uuid::Uuid;

use crate::caller::Caller;

/// Past the lease of whatever was claimed when it began.
const PAST_A_LEASE_S: u64 = 31;

fn set(scene: &Scene, setting: &str, value: &str) {
    let set = scene.database.as_role(Role::Operator).execute(
        "select sluice.set_setting($1, $2, 'a test')",
        &[&setting, &value],
    );
    set.expect("the setting is within its bounds");
}

fn operator(scene: &Scene, statement: &str) {
    scene
        .database
        .as_role(Role::Operator)
        .batch_execute(statement)
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// One wallet pays, and the other does not.
fn only_the_local_wallet_pays(scene: &Scene) {
    let mock = Wallets::hmac();
    operator(
        scene,
        &format!("select sluice.pause('lunch', wallet => '{mock}')"),
    );
}

fn text(scene: &Scene, operation_id: Uuid, expression: &str) -> Option<String> {
    let query =
        format!("select ({expression})::text from sluice.withdrawals where operation_id = $1");
    let row = scene
        .database
        .superuser()
        .query_one(&query, &[&operation_id]);
    row.expect("it is there").get(0)
}

#[test]
fn a_lease_is_one_workers_until_it_is_over_and_then_the_same_digest_is_anothers_alone() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let [mut first, mut second, mut third] =
        ["first", "second", "third"].map(|name| Caller::new(&scene, name));
    let forgotten = first.claim_one();
    assert!(second.claim().is_empty(), "it is leased");
    scene.advance(PAST_A_LEASE_S);
    // Under the same name, as after a restart.
    let late = first.claim_one();
    assert_eq!(first.release(&forgotten), 0);
    assert!(second.claim().is_empty(), "it is leased again");

    // In a later slot, in which another envelope would have other bytes.
    scene.advance(PAST_A_LEASE_S);
    scene.follow();
    let task = second.claim_one();
    assert_eq!((task.txid, task.action.as_str()), (late.txid, "sign"));
    assert!(task.token > late.token);
    assert!(third.claim().is_empty(), "it is leased once more");

    // Whoever held it before holds nothing, whatever it says.
    assert_eq!(first.sign(&late, &late.good_signature()), (None, false));
    assert_eq!(first.answer_one(&late, "SUCCESS"), None);
    assert_eq!(first.release(&late), 0);
    assert!(third.claim().is_empty(), "nobody gave it back");
    assert_eq!(scene.state(operation_id), "signing");

    let (state, is_sent) = second.sign(&task, &task.good_signature());
    assert_eq!((state.as_deref(), is_sent), (Some("broadcasting"), true));
    assert_eq!(scene.state(operation_id), "broadcasting");
    // Filed once: a second report is nobody's.
    assert_eq!(second.sign(&task, &task.good_signature()), (None, false));
    assert_eq!(
        second.answer_one(&task, "SUCCESS").as_deref(),
        Some("broadcast")
    );
}

#[test]
fn an_answer_for_what_was_never_signed_is_nobodys() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let mut worker = Caller::new(&scene, "one");
    let task = worker.claim_one();
    let before = text(&scene, operation_id, "due_at");
    for code in ["SUCCESS", "SIGERROR", "NO_ANSWER"] {
        assert_eq!(worker.answer_one(&task, code), None, "{code}");
    }
    assert_eq!(scene.state(operation_id), "signing");
    assert_eq!(text(&scene, operation_id, "due_at"), before);
}

#[test]
fn a_signature_that_is_not_the_wallets_is_filed_nowhere_and_the_same_digest_is_offered_again() {
    let scene = Scene::start();
    only_the_local_wallet_pays(&scene);
    let operation_id = scene.submit(1, "25");
    let mut worker = Caller::new(&scene, "one");
    let task = worker.claim_one();
    let mut of_another_digest = task.clone();
    of_another_digest.txid = Txid::of(b"another");
    for bad in [
        vec![0x11; 65],
        task.good_signature()[..64].to_vec(),
        of_another_digest.good_signature(),
    ] {
        let (state, is_sent) = worker.sign(&task, &bad);
        assert_eq!((state.as_deref(), is_sent), (Some("signing"), false));
        let refused = text(&scene, operation_id, "last_error");
        assert!(
            refused
                .as_deref()
                .is_some_and(|error| error.starts_with("signature refused")),
            "{refused:?}"
        );
    }
    scene.advance(PAST_A_LEASE_S);
    let again = worker.claim_one();
    assert_eq!((again.txid, again.action.as_str()), (task.txid, "sign"));
    let (state, is_sent) = worker.sign(&again, &again.good_signature());
    assert_eq!((state.as_deref(), is_sent), (Some("broadcasting"), true));
}

#[test]
fn nothing_that_a_node_says_ends_a_withdrawal_and_what_it_says_of_another_transaction_is_nobodys() {
    let scene = Scene::start();
    let codes = [
        ("SUCCESS", "broadcast"),
        ("DUP_TRANSACTION_ERROR", "broadcast"),
        ("SIGERROR", "broadcasting"),
        ("CONTRACT_VALIDATE_ERROR", "broadcasting"),
        ("CONTRACT_EXE_ERROR", "broadcasting"),
        ("BANDWITH_ERROR", "broadcasting"),
        ("TAPOS_ERROR", "broadcasting"),
        ("TOO_BIG_TRANSACTION_ERROR", "broadcasting"),
        ("TRANSACTION_EXPIRATION_ERROR", "broadcasting"),
        ("SERVER_BUSY", "broadcasting"),
        ("NO_CONNECTION", "broadcasting"),
        ("NOT_ENOUGH_EFFECTIVE_CONNECTION", "broadcasting"),
        ("BLOCK_UNSOLIDIFIED", "broadcasting"),
        ("OTHER_ERROR", "broadcasting"),
        ("NO_ANSWER", "broadcasting"),
        ("A_CODE_OF_TOMORROW", "broadcasting"),
    ];
    for n in 0..codes.len() {
        scene.submit(u32::try_from(n).expect("a few"), "25");
    }
    let mut worker = Caller::new(&scene, "one");
    let tasks = worker.claim();
    assert_eq!(tasks.len(), codes.len());
    for task in &tasks {
        worker.sign(task, &task.good_signature());
    }
    // Each says SUCCESS of its neighbour's transaction first.
    let crossed: Vec<_> = tasks
        .iter()
        .zip(tasks.iter().cycle().skip(1))
        .map(|(task, other)| (task, &other.txid, "SUCCESS"))
        .collect();
    assert!(worker.answer(&crossed).iter().all(Option::is_none));
    let answers: Vec<_> = tasks
        .iter()
        .zip(&codes)
        .map(|(task, (code, _))| (task, &task.txid, *code))
        .collect();
    let states = worker.answer(&answers);
    for ((task, (code, becomes)), state) in tasks.iter().zip(&codes).zip(states) {
        assert_eq!(state.as_deref(), Some(*becomes), "{code}");
        assert_eq!(scene.state(task.operation_id), *becomes, "{code}");
    }
}

#[test]
fn what_a_node_took_is_sent_again_after_the_interval_and_no_sooner() {
    let scene = Scene::start();
    scene.submit(1, "25");
    let mut worker = Caller::new(&scene, "one");
    let sent = worker.carry().remove(0);
    scene.advance(60);
    scene.follow();
    assert!(worker.claim().is_empty(), "it was just sent");
    scene.advance(18);
    scene.follow();
    let again = worker.claim_one();
    assert_eq!(
        (again.action.as_str(), again.state.as_str()),
        ("broadcast", "broadcast")
    );
    assert_eq!(again.transaction(), sent.transaction());
    assert_eq!(again.signature, Some(sent.good_signature()));
}

#[test]
fn what_is_past_its_time_is_neither_signed_nor_sent_while_its_death_is_not_proven() {
    let scene = Scene::start();
    // Its time is over, and it is not dead for eight hours.
    set(&scene, "margin_blocks", "10000");
    set(&scene, "lease", "1 hour");
    let [slow, forgotten] = [1, 2].map(|n| scene.submit(n, "25"));
    let mut worker = Caller::new(&scene, "one");
    let tasks = worker.claim();
    scene.advance(420);
    scene.follow();
    // The signer answers now: its work is kept, and not sent.
    let late = tasks
        .iter()
        .find(|task| task.operation_id == slow)
        .expect("it was claimed");
    let (state, is_sent) = worker.sign(late, &late.good_signature());
    assert_eq!((state.as_deref(), is_sent), (Some("signed"), false));
    assert_eq!(scene.state(slow), "signed");
    scene.advance(3601);
    scene.follow();
    assert_eq!(worker.claim(), []);
    assert_eq!(scene.state(forgotten), "signing");
    assert_eq!(text(&scene, forgotten, "attempt").as_deref(), Some("1"));
}

#[test]
fn a_pause_holds_signing_and_first_sends_and_a_resumption_commits_to_sending_before_it_sends() {
    let scene = Scene::start();
    only_the_local_wallet_pays(&scene);
    let operation_id = scene.submit(1, "25");
    let mut worker = Caller::new(&scene, "one");
    let task = worker.claim_one();
    let wallet = Wallets::local();
    operator(
        &scene,
        &format!("select sluice.pause('a fee to be looked into', wallet => '{wallet}')"),
    );
    let (state, is_sent) = worker.sign(&task, &task.good_signature());
    assert_eq!((state.as_deref(), is_sent), (Some("signed"), false));
    scene.submit(2, "25");
    scene.advance(PAST_A_LEASE_S);
    assert_eq!(worker.claim(), [], "both wallets are paused");

    operator(
        &scene,
        &format!("select sluice.resume('it was right', wallet => '{wallet}')"),
    );
    scene.advance(6);
    let handed = worker.claim();
    let first_send = handed
        .iter()
        .find(|handed| handed.operation_id == operation_id)
        .expect("it is due");
    assert_eq!(
        (
            first_send.action.as_str(),
            first_send.state.as_str(),
            first_send.txid
        ),
        ("broadcast", "broadcasting", task.txid)
    );
    assert_eq!(scene.state(operation_id), "broadcasting");
}

#[test]
fn a_row_that_raises_is_put_off_and_all_others_in_its_batch_go_on() {
    let scene = Scene::start();
    let ids: Vec<Uuid> = (0..5).map(|n| scene.submit(n, "25")).collect();
    let poisoned = ids[2];
    let mut superuser = scene.database.superuser();
    let poison = format!(
        "alter table sluice.envelopes add constraint poison check (operation_id <> '{poisoned}')"
    );
    superuser
        .batch_execute(&poison)
        .expect("a constraint can be added");
    let mut worker = Caller::new(&scene, "one");
    let handed: Vec<Uuid> = worker
        .claim()
        .iter()
        .map(|task| task.operation_id)
        .collect();
    assert_eq!(handed.len(), 4);
    assert!(!handed.contains(&poisoned));
    let error = text(&scene, poisoned, "last_error").expect("it says why");
    assert!(error.contains("poison"), "{error}");
    assert!(worker.claim().is_empty(), "it is put off");

    superuser
        .batch_execute("alter table sluice.envelopes drop constraint poison")
        .expect("a constraint can be dropped");
    scene.advance(60);
    scene.follow();
    assert_eq!(text(&scene, poisoned, "attempt").as_deref(), Some("0"));
    scene.advance(300);
    scene.follow();
    assert!(
        worker
            .claim()
            .iter()
            .any(|task| task.operation_id == poisoned)
    );
}

#[test]
fn a_report_that_raises_puts_its_own_row_off_and_the_others_of_its_batch_are_filed() {
    let scene = Scene::start();
    for n in 0..4 {
        scene.submit(n, "25");
    }
    let mut worker = Caller::new(&scene, "one");
    let tasks = worker.claim();
    let poisoned = tasks[1].operation_id;
    let mut superuser = scene.database.superuser();
    let poison = format!(
        "alter table sluice.withdrawals add constraint poison
           check (operation_id <> '{poisoned}' or state <> 'broadcasting')"
    );
    superuser
        .batch_execute(&poison)
        .expect("a constraint can be added");
    let states = worker.sign_all(&tasks);
    for (task, state) in tasks.iter().zip(states) {
        let expected = (task.operation_id != poisoned).then_some("broadcasting");
        assert_eq!(state.as_deref(), expected);
    }
    assert_eq!(scene.state(poisoned), "signing");
    let error = text(&scene, poisoned, "last_error").expect("it says why");
    assert!(error.contains("poison"), "{error}");
}

#[test]
fn what_an_envelope_can_still_pay_is_cancelled_by_its_death_and_no_sooner() {
    let scene = Scene::start();
    let mut worker = Caller::new(&scene, "one");
    let operation_id = scene.submit(1, "25");
    worker.carry();
    let mut operator = scene.database.as_role(Role::Operator);
    let mut cancel = |reason: &str| {
        operator
            .query_one(
                "select sluice.cancel($1, $2)::text",
                &[&operation_id, &reason],
            )
            .map(|row| row.get::<_, String>(0))
    };
    assert_eq!(cancel("asked for twice").expect("a wish"), "broadcast");
    assert_eq!(scene.state(operation_id), "broadcast", "it may be out");
    scene.advance(420);
    scene.follow();
    assert_eq!(scene.state(operation_id), "failed", "it is dead");
    assert_eq!(
        cancel("asked for twice").expect("a repeat is free"),
        "failed"
    );
    let conflict = cancel("for another reason").expect_err("it was said once");
    assert_eq!(conflict.code(), Some(&SqlState::from_code("SL001")));
}

#[test]
fn what_somebody_holds_is_passed_over_by_a_claim_that_hands_out_all_else() {
    let scene = Scene::start();
    let [leased, free_again] = [1, 2].map(|n| scene.submit(n, "25"));
    Caller::new(&scene, "dead").claim();
    scene.advance(PAST_A_LEASE_S);
    scene.follow();
    let [held, free] = [3, 4].map(|n| scene.submit(n, "25"));
    let mut holder = scene.database.superuser();
    let mut transaction = holder.transaction().expect("a transaction begins");
    let locked = transaction.query(
        "select from sluice.withdrawals where operation_id = any ($1) for update",
        &[&vec![leased, held]],
    );
    assert_eq!(locked.expect("rows can be locked").len(), 2);
    let mut worker = Caller::new(&scene, "one").impatient();
    let handed: BTreeSet<Uuid> = worker
        .claim()
        .iter()
        .map(|task| task.operation_id)
        .collect();
    assert_eq!(handed, BTreeSet::from([free_again, free]));
    drop(transaction);
    let handed: BTreeSet<Uuid> = worker
        .claim()
        .iter()
        .map(|task| task.operation_id)
        .collect();
    assert_eq!(handed, BTreeSet::from([leased, held]));
}

#[test]
fn a_time_further_ahead_than_any_legal_one_was_written_by_a_clock_that_jumped_and_counts_as_passed()
{
    let scene = Scene::start();
    let leased = scene.submit(1, "25");
    Caller::new(&scene, "dead").claim();
    let requested = scene.submit(2, "25");
    let mut superuser = scene.database.superuser();
    let mut due_in = |interval: &str| {
        let due =
            format!("update sluice.withdrawals set due_at = sluice.now() + interval '{interval}'");
        superuser
            .batch_execute(&due)
            .expect("a time can be set by hand");
    };
    let mut worker = Caller::new(&scene, "one");
    due_in("1 hour");
    assert_eq!(worker.claim(), [], "as long as a lease may be");
    due_in("1 day");
    let handed: BTreeSet<Uuid> = worker
        .claim()
        .iter()
        .map(|task| task.operation_id)
        .collect();
    assert_eq!(handed, BTreeSet::from([leased, requested]));
}

#[test]
fn nothing_is_built_while_the_newest_followed_block_is_old() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let mut worker = Caller::new(&scene, "one");
    scene.advance(300);
    assert_eq!(worker.claim(), []);
    assert_eq!(scene.state(operation_id), "requested");
    scene.follow();
    assert_eq!(worker.claim_one().operation_id, operation_id);
}
