//! Clients choose their isolation level. In the stricter two a racing submission may be told to try again, and nothing else
//! changes.

use std::sync::Barrier;
use std::thread;

use postgres::error::SqlState;
use postgres::{Client, IsolationLevel};
use sluice_scenarios::{Postgres, Role, destination};
use uuid::Uuid;

const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

const CROWD: usize = 12;

/// Submits until it is answered, as a client does that is told to try again; says whether the withdrawal is new.
fn submit_until_answered(client: &mut Client, level: IsolationLevel, operation_id: Uuid) -> bool {
    loop {
        let mut transaction = client
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("a transaction begins");
        let answered = transaction
            .query_one(
                "select created from sluice.submit($1, $2, '25')",
                &[&operation_id, &destination(1).to_string()],
            )
            .and_then(|row| {
                transaction.commit()?;
                Ok(row.get(0))
            });
        match answered {
            Ok(created) => return created,
            Err(error) => assert_eq!(
                error.code(),
                Some(&SqlState::T_R_SERIALIZATION_FAILURE),
                "{error}"
            ),
        }
    }
}

#[test]
fn a_crowd_of_every_isolation_level_makes_one_row_and_everybody_is_answered() {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("sluice");
    for _ in 0..5 {
        let operation_id = Uuid::new_v4();
        let everybody_is_here = Barrier::new(CROWD);
        let created: Vec<bool> = thread::scope(|scope| {
            let submissions: Vec<_> = (0..CROWD)
                .map(|number| {
                    let (database, everybody_is_here) = (&database, &everybody_is_here);
                    scope.spawn(move || {
                        let mut client = database.as_role(Role::App);
                        everybody_is_here.wait();
                        submit_until_answered(&mut client, LEVELS[number % 3], operation_id)
                    })
                })
                .collect();
            submissions
                .into_iter()
                .map(|submission| submission.join().expect("it is answered"))
                .collect()
        });
        let row = database.superuser().query_one(
            "select (select count(*) from sluice.withdrawals where operation_id = $1),
                    (select count(*) from sluice.events where operation_id = $1)",
            &[&operation_id],
        );
        let row = row.expect("they can be counted");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 1));
        assert_eq!(created.iter().filter(|created| **created).count(), 1);
    }
}
