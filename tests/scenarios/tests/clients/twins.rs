//! Two clients submit one id in transactions that overlap: the second waits for the first, and is answered by what the first
//! did in the end.

use std::thread;

use postgres::error::SqlState;
use postgres::{Client, Error};
use sluice_scenarios::wait::until;
use sluice_scenarios::{Database, Postgres, Role, destination};
use uuid::Uuid;

/// Whether the withdrawal is new.
fn submit(client: &mut Client, operation_id: Uuid, amount: &str) -> Result<bool, Error> {
    client
        .query_one(
            "select created from sluice.submit($1, $2, $3)",
            &[&operation_id, &destination(1).to_string(), &amount],
        )
        .map(|row| row.get(0))
}

/// The first client submits 25 in a transaction; the second submits the same id; then the first ends its transaction so.
fn overlap(database: &Database, amount: &str, end: &str) -> Result<bool, Error> {
    let operation_id = Uuid::new_v4();
    let mut first = database.as_role(Role::App);
    first.batch_execute("begin").expect("a transaction begins");
    submit(&mut first, operation_id, "25").expect("it is taken");
    let mut second = database.as_role(Role::App);
    let mut superuser = database.superuser();
    thread::scope(|scope| {
        let second = scope.spawn(move || submit(&mut second, operation_id, amount));
        until("the second waits", || {
            let row = superuser.query_opt(
                "select from pg_stat_activity where usename = $1 and wait_event_type = 'Lock'",
                &[&Role::App.login()],
            );
            row.expect("sessions can be read").map(drop)
        });
        // Others do not wait.
        let mut other = database.as_role(Role::App);
        assert!(submit(&mut other, Uuid::new_v4(), "25").expect("it is taken"));
        first.batch_execute(end).expect("the transaction ends");
        second.join().expect("the second is answered")
    })
}

#[test]
fn a_twin_waits_for_the_first_and_is_its_replay_its_heir_or_its_conflict() {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("sluice");
    let replayed = overlap(&database, "25", "commit").expect("it is answered");
    assert!(!replayed, "the first has created it");
    let inherited = overlap(&database, "25", "rollback").expect("it is answered");
    assert!(inherited, "the first has left nothing");
    let inherited = overlap(&database, "26", "rollback").expect("it is answered");
    assert!(inherited, "what was rolled back is no other meaning");
    let conflict = overlap(&database, "26", "commit").expect_err("another meaning");
    assert_eq!(conflict.code(), Some(&SqlState::from_code("SL001")));
    let row = database
        .superuser()
        .query_one("select count(*) from sluice.withdrawals", &[]);
    // One for each pair, and one for the bystander of each.
    assert_eq!(row.expect("they can be counted").get::<_, i64>(0), 4 + 4);
}
