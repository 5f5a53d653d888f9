//! What SQL can do to the tables, several statements to a transaction, with savepoints, cursors, prepared statements and COPY, by
//! everybody.

use sluice_fuzz::session::{Draws, rounds};
use sluice_fuzz::sql::session::Session;
use sluice_fuzz::sql::stage::Stage;
use sluice_fuzz::sql::statements::Statements;
use sluice_fuzz::sql::values::Values;

const PROPERTY: &str = "statements";

/// Transactions in a round, and after how many of them honest people come by.
const TRANSACTIONS: usize = 360;
const BETWEEN: usize = 120;

#[test]
fn every_statement_is_done_or_refused_by_name_and_what_is_on_file_holds() {
    for seed in rounds(PROPERTY) {
        let mut draws = Draws::new(PROPERTY, seed);
        let mut stage = Stage::open(&mut draws);
        for count in 1..=TRANSACTIONS {
            // Half of them by the superuser and the owner, whom privileges stop from little.
            let everybody = stage.sessions.len();
            let who = if draws.one_in(2) {
                everybody - 1 - draws.below(2)
            } else {
                draws.below(everybody)
            };
            let statements = Statements {
                values: Values {
                    polite: false,
                    catalog: &stage.catalog,
                    known: &stage.known,
                },
            };
            transaction(&mut stage.sessions[who], &mut draws, &statements);
            if count % BETWEEN == 0 {
                stage.honest_round(&mut draws);
            }
        }
        stage
            .sessions
            .iter()
            .for_each(|session| session.assert_sensible(seed));
        stage.judge();
    }
}

fn transaction(session: &mut Session, draws: &mut Draws, statements: &Statements<'_>) {
    let isolation = *draws.pick(&[
        "",
        "",
        "",
        " isolation level repeatable read",
        " isolation level serializable",
        " read only",
    ]);
    assert_eq!(session.say(&format!("begin{isolation}"), false), Ok(()));
    let mut about_blocks = false;
    for _ in 0..=draws.below(4) {
        let in_savepoint = !draws.one_in(4);
        if in_savepoint && session.say("savepoint s", false).is_err() {
            break;
        }
        let done = if draws.one_in(10) {
            let (statement, bytes) = statements.copy(draws);
            session.copy(&statement, &bytes)
        } else {
            let statement = statements.statement(draws);
            about_blocks |= statement.contains("observe_blocks");
            session.say(&statement, false)
        };
        if in_savepoint {
            // Some stay open, and end with their transaction.
            let ends = match (done, draws.below(3)) {
                (Err(_), _) | (Ok(()), 0) => "rollback to savepoint s",
                (Ok(()), 1) => "release savepoint s",
                (Ok(()), _) => continue,
            };
            assert_eq!(session.say(ends, false), Ok(()), "{ends}");
        }
    }
    let ends = if session.who.is_bound() && !about_blocks {
        "commit"
    } else {
        "rollback"
    };
    let _ended = session.say(ends, false);
    // What outlives a transaction, and would be in the way of the next.
    assert_eq!(session.say("close all", false), Ok(()));
    assert_eq!(session.say("deallocate all", false), Ok(()));
}
