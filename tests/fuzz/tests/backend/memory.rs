//! One backend that is called very often has as much memory as one that was called a little: what a call takes, answered or refused,
//! it gives back.

use sluice_fuzz::session::{Draws, rounds};
use sluice_fuzz::sql::session::{Session, Who};
use sluice_fuzz::sql::stage::Stage;
use sluice_fuzz::sql::statements::Statements;
use sluice_fuzz::sql::values::Values;

const PROPERTY: &str = "memory";

/// Calls of each function in a row, with the same arguments: of a leak of a hundred bytes the sum shows.
const IN_A_ROW: usize = 60;

/// What a backend may have more after a pass over all functions that has not filled its caches.
const GROWTH_KB: u64 = 6 * 1024;

/// How many passes may fill caches, plans and the allocator's own pockets. A leak is in every one.
const FILLING: usize = 4;

#[test]
fn a_backend_that_is_called_again_and_again_does_not_grow() {
    for seed in rounds(PROPERTY) {
        let mut draws = Draws::new(PROPERTY, seed);
        let stage = Stage::open(&mut draws);
        let mut session = Session::open(&stage.scene.database, Who::Superuser);
        let statements = Statements {
            values: Values {
                polite: false,
                catalog: &stage.catalog,
                known: &stage.known,
            },
        };
        let calls: Vec<String> = stage
            .catalog
            .functions
            .iter()
            // PL/pgSQL keeps what it has compiled of a trigger's function when it then refuses to call it as another.
            .filter(|function| stage.catalog.type_of(function.returns).name != "trigger")
            .map(|function| statements.call(&mut draws, function))
            // Half a megabyte, again and again, tells of nothing but time.
            .filter(|call| {
                ["repeat(", "array_fill(", "10001", "verify"]
                    .iter()
                    .all(|costly| !call.contains(costly))
            })
            .collect();
        assert!(calls.len() > 80);
        pass(&mut session, &calls);
        let mut taken = vec![session.memory_kb()];
        for _ in 0..FILLING {
            pass(&mut session, &calls);
            taken.push(session.memory_kb());
            if taken[taken.len() - 1] < taken[taken.len() - 2] + GROWTH_KB {
                break;
            }
        }
        session.assert_sensible(seed);
        assert!(
            taken.len() <= FILLING,
            "{} calls a pass, and after each pass kB: {taken:?}, SEED={seed}",
            calls.len() * IN_A_ROW
        );
    }
}

fn pass(session: &mut Session, calls: &[String]) {
    for call in calls {
        let block = format!(
            "do $fuzz$ begin for i in 1..{IN_A_ROW} loop begin perform * from ({call}) t; exception when others then
               if sqlstate like 'XX%' then raise; end if; end; end loop; end $fuzz$"
        );
        for statement in ["begin", &block, "rollback"] {
            let _answered = session.say(statement, false);
        }
    }
}
