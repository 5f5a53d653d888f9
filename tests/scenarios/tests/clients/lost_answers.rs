//! A client submits and never learns what became of it: its connection is cut before the server commits or after, its session
//! ended, the server stopped. It submits the same again, and there is one withdrawal, which is paid once.

use postgres::{Client, Error, NoTls};
use sluice_scenarios::postgres::Stop;
use sluice_scenarios::{CommitRule, Proxy, Role, Scene, Strike, destination};
use uuid::Uuid;

/// A way to submit.
type Submit = fn(&mut Client, Uuid) -> Result<(), Error>;

const WAYS: [(&str, Submit); 3] = [
    ("a call by itself", by_call),
    ("a call in a transaction", by_call_in_a_transaction),
    ("an insert in a transaction", by_insert_in_a_transaction),
];

fn by_call(client: &mut Client, operation_id: Uuid) -> Result<(), Error> {
    client
        .query_one(
            "select from sluice.submit($1, $2, '25')",
            &[&operation_id, &destination(1).to_string()],
        )
        .map(drop)
}

fn by_call_in_a_transaction(client: &mut Client, operation_id: Uuid) -> Result<(), Error> {
    let mut transaction = client.transaction()?;
    transaction.query_one(
        "select from sluice.submit($1, $2, '25')",
        &[&operation_id, &destination(1).to_string()],
    )?;
    transaction.commit()
}

fn by_insert_in_a_transaction(client: &mut Client, operation_id: Uuid) -> Result<(), Error> {
    let mut transaction = client.transaction()?;
    transaction.execute(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
         values ($1, $2, '25', 'USDT-TRC20') on conflict (operation_id) do nothing",
        &[&operation_id, &destination(1).to_string()],
    )?;
    transaction.commit()
}

/// A client that reaches the database through the proxy.
fn client(scene: &Scene, proxy: &Proxy) -> Client {
    Client::connect(&scene.database.through(proxy).url(Role::App), NoTls)
        .expect("the proxy leads there")
}

fn on_file(scene: &Scene, operation_id: Uuid) -> bool {
    scene
        .database
        .superuser()
        .query_opt(
            "select from sluice.withdrawals where operation_id = $1",
            &[&operation_id],
        )
        .expect("withdrawals can be read")
        .is_some()
}

/// Pays all there is, and shows that it is one payment for each of these.
fn assert_each_is_paid_once(scene: &Scene, operation_ids: &[Uuid]) {
    scene.runner("one").start(&["drain", "--once"]).ends_well();
    scene.advance(63);
    scene.runner("one").start(&["drain", "--once"]).ends_well();
    scene.assert_each_paid_once_and_nothing_else(operation_ids);
    let row = scene
        .database
        .superuser()
        .query_one("select count(*) from sluice.withdrawals", &[]);
    let withdrawals: i64 = row.expect("withdrawals can be counted").get(0);
    assert_eq!(withdrawals, operation_ids.len() as i64);
}

#[test]
fn a_submission_whose_commit_is_lost_is_submitted_again_and_paid_once() {
    let scene = Scene::start();
    let proxy = Proxy::to(&scene.database);
    let mut submitted = vec![];
    for (way, submit) in WAYS {
        for (strike, taken_in) in [(Strike::CutBefore, false), (Strike::CutAfter, true)] {
            let operation_id = Uuid::new_v4();
            let cut = proxy.add(CommitRule::new(strike).times(1));
            submit(&mut client(&scene, &proxy), operation_id).expect_err("no answer comes");
            assert_eq!(proxy.struck(cut), 1);
            assert_eq!(on_file(&scene, operation_id), taken_in, "{way}, {strike:?}");
            // As often as a client likes.
            for _ in 0..3 {
                submit(&mut client(&scene, &proxy), operation_id).expect("it is answered");
            }
            submitted.push(operation_id);
        }
    }
    assert_each_is_paid_once(&scene, &submitted);
}

#[test]
fn a_submission_that_is_repeated_after_it_was_paid_is_answered_and_not_paid_again() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    assert_each_is_paid_once(&scene, &[operation_id]);
    let mut app = scene.database.as_role(Role::App);
    let row = app
        .query_one(
            "select created, state::text from sluice.submit($1, $2, '25')",
            &[&operation_id, &destination(1).to_string()],
        )
        .expect("it is answered");
    assert_eq!((row.get(0), row.get(1)), (false, "confirmed"));
    by_insert_in_a_transaction(&mut app, operation_id).expect("no conflict");
    assert_each_is_paid_once(&scene, &[operation_id]);
}

#[test]
fn a_submission_whose_session_or_server_ends_before_the_commit_leaves_nothing_and_can_be_repeated()
{
    let mut scene = Scene::start();
    let proxy = Proxy::to(&scene.database);
    let mut submitted = vec![];
    for ends_with in ["its session", "its server"] {
        let operation_id = Uuid::new_v4();
        let mut app = client(&scene, &proxy);
        let mut transaction = app.transaction().expect("a transaction begins");
        transaction
            .query_one(
                "select from sluice.submit($1, $2, '25')",
                &[&operation_id, &destination(1).to_string()],
            )
            .expect("it is answered");
        if ends_with == "its session" {
            scene
                .database
                .superuser()
                .execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where usename = $1",
                    &[&Role::App.login()],
                )
                .expect("a backend can be terminated");
        } else {
            scene.restart_postgres(Stop::Immediate, &proxy);
        }
        transaction.commit().expect_err("it is gone");
        assert!(!on_file(&scene, operation_id), "{ends_with}");
        by_call(&mut client(&scene, &proxy), operation_id).expect("it is taken");
        submitted.push(operation_id);
    }
    assert_each_is_paid_once(&scene, &submitted);
}
