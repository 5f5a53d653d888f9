//! Every function of the schema, in turn, by everybody in turn, with anything in its arguments: written as text, or sent as bytes.

use std::collections::BTreeSet;

use sluice_fuzz::bytes::noise;
use sluice_fuzz::session::{Draws, rounds};
use sluice_fuzz::sql::catalog::Function;
use sluice_fuzz::sql::session::{Session, Who, raw};
use sluice_fuzz::sql::stage::Stage;
use sluice_fuzz::sql::statements::Statements;
use sluice_fuzz::sql::values::Values;
use sluice_scenarios::Role;

const PROPERTY: &str = "calls";

/// How often a round goes over all functions.
const PASSES: usize = 2;

/// A backend keeps plans and catalogue entries of what it has met: so much more it may have after the first pass.
const GROWTH_KB: u64 = 96 * 1024;

#[test]
fn every_function_answers_or_refuses_by_name_whoever_calls_it_with_whatever() {
    for seed in rounds(PROPERTY) {
        let mut draws = Draws::new(PROPERTY, seed);
        let mut stage = Stage::open(&mut draws);
        let mut before = vec![];
        let mut answered = BTreeSet::new();
        for _ in 0..PASSES {
            all_functions(&mut stage, &mut draws, &mut answered);
            stage.honest_round(&mut draws);
            let memory: Vec<u64> = stage.sessions.iter().map(Session::memory_kb).collect();
            for (before, after) in before.iter().zip(&memory) {
                assert!(
                    *after < before + GROWTH_KB,
                    "a backend grew from {before} kB to {after} kB, SEED={seed}"
                );
            }
            before = memory;
        }
        let names: BTreeSet<String> = stage
            .catalog
            .functions
            .iter()
            .filter(|function| stage.catalog.type_of(function.returns).name != "trigger")
            .map(|function| function.name.clone())
            .collect();
        let silent: Vec<_> = names.difference(&answered).collect();
        assert!(
            silent.len() * 5 < names.len(),
            "too many functions never did what they are for, SEED={seed}: {silent:?}"
        );
        stage
            .sessions
            .iter()
            .for_each(|session| session.assert_sensible(seed));
        stage.judge();
    }
}

/// Each function, a few times by those who may call it, and now and then by those who may not.
fn all_functions(stage: &mut Stage, draws: &mut Draws, answered: &mut BTreeSet<String>) {
    for function in &stage.catalog.functions {
        for session in &mut stage.sessions {
            let times = if session.who.may_call(function) {
                2
            } else {
                usize::from(draws.one_in(4))
            };
            for _ in 0..times {
                let statements = Statements {
                    values: Values {
                        polite: false,
                        catalog: &stage.catalog,
                        known: &stage.known,
                    },
                };
                if draws.one_in(6) {
                    send_bytes(session, draws, function, &statements);
                    continue;
                }
                let call = statements.call(draws, function);
                if in_a_transaction(session, draws, &call) {
                    answered.insert(function.name.clone());
                }
            }
        }
    }
}

/// Said in a transaction that is committed where the caller is bound by every rule and says nothing about blocks: whoever can make
/// up blocks can make up payments.
fn in_a_transaction(session: &mut Session, draws: &mut Draws, call: &str) -> bool {
    let isolation = if draws.one_in(10) {
        " isolation level repeatable read"
    } else {
        ""
    };
    said(session, &format!("begin{isolation}"));
    let in_savepoint = draws.one_in(3);
    if in_savepoint {
        said(session, "savepoint s");
    }
    let done = session.say(call, draws.one_in(2));
    if in_savepoint {
        said(
            session,
            if done.is_ok() {
                "release savepoint s"
            } else {
                "rollback to savepoint s"
            },
        );
        // What a refused call has left behind in the backend must not show in the next one.
        let _again = session.say(call, false);
    }
    let lies_about_blocks =
        call.contains("observe_blocks") && session.who == Who::Member(Role::Runner);
    let ends = if session.who.is_bound() && !lies_about_blocks && !draws.one_in(3) {
        "commit"
    } else {
        "rollback"
    };
    let ended = session.say(ends, false);
    done.is_ok() && ended.is_ok()
}

fn said(session: &mut Session, statement: &str) {
    assert_eq!(session.say(statement, false), Ok(()), "{statement}");
}

/// The arguments as bytes that claim to be of their types.
fn send_bytes(
    session: &mut Session,
    draws: &mut Draws,
    function: &Function,
    statements: &Statements<'_>,
) {
    let catalog = statements.values.catalog;
    let pseudo = |of: u32| matches!(catalog.type_of(of).name.as_str(), "internal" | "cstring");
    if function
        .arguments
        .iter()
        .any(|argument| pseudo(argument.of))
    {
        return;
    }
    let placeholders: Vec<String> = (1..)
        .zip(&function.arguments)
        .map(|(place, argument)| format!("${place}::{}", catalog.type_of(argument.of).name))
        .collect();
    let parameters: Vec<raw::Bytes> = function
        .arguments
        .iter()
        .map(|_| {
            let bytes = draws.next(&noise(40));
            raw::Bytes((!draws.one_in(8)).then_some(match draws.below(3) {
                0 => b"12.50".to_vec(),
                1 => bytes[..bytes.len() / 8 * 8].to_vec(),
                _ => bytes,
            }))
        })
        .collect();
    said(session, "begin");
    let call = format!(
        "select sluice.{}({})",
        function.name,
        placeholders.join(", ")
    );
    let _answered = session.say_with(&call, &parameters);
    said(session, "rollback");
}
