//! Intake under a crowd: many connections with one operation_id at once, and one statement with very many.

use std::sync::Barrier;
use std::thread;

use postgres::error::SqlState;
use postgres::{Client, Error};
use sluice_scenarios::{Database, Postgres, Role, destination};
use uuid::Uuid;

const CROWD: u32 = 32;

/// What a withdrawal means, apart from its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meaning {
    destination: u32,
    amount: &'static str,
}

const ONE: Meaning = Meaning {
    destination: 1,
    amount: "12.5",
};
const OTHER: Meaning = Meaning {
    destination: 1,
    amount: "12.50001",
};

/// What intake answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Replayed,
    Conflict,
}

/// A way to submit a withdrawal; says whether the row is new.
type Submit = fn(&mut Client, Uuid, Meaning) -> Result<bool, Error>;

fn by_function(client: &mut Client, operation_id: Uuid, meaning: Meaning) -> Result<bool, Error> {
    client
        .query_one(
            "select created from sluice.submit($1, $2, $3)",
            &[
                &operation_id,
                &destination(meaning.destination).to_string(),
                &meaning.amount,
            ],
        )
        .map(|row| row.get(0))
}

fn by_insert(client: &mut Client, operation_id: Uuid, meaning: Meaning) -> Result<bool, Error> {
    client
        .query_opt(
            "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
             values ($1, $2, $3::text::sluice.amount, 'USDT-TRC20')
             on conflict (operation_id) do nothing
             returning operation_id",
            &[
                &operation_id,
                &destination(meaning.destination).to_string(),
                &meaning.amount,
            ],
        )
        .map(|row| row.is_some())
}

/// Submits one id from many connections at the same moment, each with the meaning that `meaning` gives its number.
fn crowd(
    database: &Database,
    operation_id: Uuid,
    submit: Submit,
    meaning: impl Fn(u32) -> Meaning + Sync,
) -> Vec<(Meaning, Outcome)> {
    let everybody_is_here = Barrier::new(CROWD as usize);
    thread::scope(|scope| {
        let submissions: Vec<_> = (0..CROWD)
            .map(|number| {
                let (meaning, everybody_is_here) = (meaning(number), &everybody_is_here);
                scope.spawn(move || {
                    let mut client = database.as_role(Role::App);
                    everybody_is_here.wait();
                    let outcome = match submit(&mut client, operation_id, meaning) {
                        Ok(true) => Outcome::Created,
                        Ok(false) => Outcome::Replayed,
                        Err(error) => {
                            assert_eq!(
                                error.code(),
                                Some(&SqlState::from_code("SL001")),
                                "{error}"
                            );
                            Outcome::Conflict
                        }
                    };
                    (meaning, outcome)
                })
            })
            .collect();
        submissions
            .into_iter()
            .map(|submission| submission.join().expect("a submission ends"))
            .collect()
    })
}

/// The amounts on file under this id, and the entries in its log.
fn on_file(database: &Database, operation_id: Uuid) -> (Vec<String>, i64) {
    let mut superuser = database.superuser();
    let amounts = superuser
        .query(
            "select amount::text from sluice.withdrawals where operation_id = $1",
            &[&operation_id],
        )
        .expect("withdrawals can be read");
    let events = superuser
        .query_one(
            "select count(*) from sluice.events where operation_id = $1",
            &[&operation_id],
        )
        .expect("events can be counted");
    (
        amounts.iter().map(|row| row.get(0)).collect(),
        events.get(0),
    )
}

fn count(outcomes: &[(Meaning, Outcome)], wanted: Outcome) -> usize {
    outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == wanted)
        .count()
}

fn one_meaning_makes_one_row(submit: Submit) {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("sluice");
    let operation_id = Uuid::new_v4();

    let outcomes = crowd(&database, operation_id, submit, |_| ONE);

    assert_eq!(
        on_file(&database, operation_id),
        (vec![ONE.amount.to_owned()], 1)
    );
    assert_eq!(count(&outcomes, Outcome::Created), 1, "{outcomes:?}");
    assert_eq!(count(&outcomes, Outcome::Replayed), 31, "{outcomes:?}");
}

fn two_meanings_make_one_row_and_a_conflict_for_each_of_the_other(submit: Submit) {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("sluice");
    // Who comes first differs from run to run, and with it which meaning stands.
    for round in 0..10 {
        let operation_id = Uuid::new_v4();

        let outcomes = crowd(&database, operation_id, submit, |number| {
            if number % 4 == 0 { OTHER } else { ONE }
        });

        let (amounts, events) = on_file(&database, operation_id);
        assert_eq!((amounts.len(), events), (1, 1), "round {round}");
        for (meaning, outcome) in &outcomes {
            let stands = meaning.amount == amounts[0];
            assert_eq!(
                *outcome == Outcome::Conflict,
                !stands,
                "round {round}: {amounts:?} stands, {outcomes:?}"
            );
        }
        assert_eq!(
            count(&outcomes, Outcome::Created),
            1,
            "round {round}: {outcomes:?}"
        );
    }
}

#[test]
fn a_crowd_that_submits_one_withdrawal_by_function_makes_one_row() {
    one_meaning_makes_one_row(by_function);
}

#[test]
fn a_crowd_that_submits_one_withdrawal_by_plain_insert_makes_one_row() {
    one_meaning_makes_one_row(by_insert);
}

#[test]
fn a_crowd_with_two_meanings_by_function_makes_one_row_and_a_conflict_for_each_of_the_other() {
    two_meanings_make_one_row_and_a_conflict_for_each_of_the_other(by_function);
}

#[test]
fn a_crowd_with_two_meanings_by_plain_insert_makes_one_row_and_a_conflict_for_each_of_the_other() {
    two_meanings_make_one_row_and_a_conflict_for_each_of_the_other(by_insert);
}

#[test]
fn one_insert_takes_fifty_thousand_withdrawals_in_and_a_replay_of_it_changes_nothing() {
    const ROWS: i64 = 50_000;
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("sluice");
    let mut app = database.as_role(Role::App);
    let insert = format!(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
         select md5(i::text)::uuid, '{}', (i / 1000000.0)::numeric(38,6), 'USDT-TRC20'
           from generate_series(1, {ROWS}) i
         on conflict (operation_id) do nothing",
        destination(1),
    );

    let inserted = app.execute(&insert, &[]).expect("fifty thousand are taken");
    let replayed = app.execute(&insert, &[]).expect("a replay is no error");

    assert_eq!((inserted, replayed), (50_000, 0));
    let row = database
        .superuser()
        .query_one(
            "select count(*), sum(amount_units)::text,
                    (select count(*) from sluice.events where seq = 1 and to_state = 'requested')
               from sluice.withdrawals where state = 'requested'",
            &[],
        )
        .expect("withdrawals can be counted");
    let sum = ROWS * (ROWS + 1) / 2;
    assert_eq!(
        (row.get(0), row.get(1), row.get(2)),
        (ROWS, sum.to_string(), ROWS)
    );
}
