//! One rule broken at a time.

use std::collections::BTreeSet;

use sluice_model::check::{explore, explore_all, shortest};
use sluice_model::config::{SMALL, SMALL_AND_DEEP};
use sluice_model::mutations::{CASES, MONEY};
use sluice_model::rules::Rules;

#[test]
fn each_broken_rule_breaks_what_it_is_there_for() {
    for case in CASES {
        for promise in case.breaks {
            let Some((way, states)) = shortest(case.config, case.rules(), promise) else {
                panic!("{:?}: \"{promise}\" still holds", case.mutation);
            };
            println!(
                "{:?}: \"{promise}\" breaks in {} steps ({states} states looked at)",
                case.mutation,
                way.len()
            );
        }
    }
}

#[test]
fn where_broken_rules_are_looked_for_the_shipped_ones_break_nothing() {
    for config in [SMALL, SMALL_AND_DEEP] {
        let explored = explore(config, Rules::shipped());
        assert!(explored.broken.is_empty(), "{:?}", explored.broken);
        // What bounds the exploration of broken rules cuts nothing off that sound ones get to.
        assert_eq!(
            explored.states,
            explore_all(config, Rules::shipped()).states,
            "{}",
            config.name
        );
    }
}

#[test]
fn where_another_rule_stands_behind_a_broken_one_nothing_else_breaks() {
    for case in CASES.into_iter().filter(|case| case.nothing_else) {
        let explored = explore_all(case.config, Rules::guarded(case.mutation));
        let broken: BTreeSet<_> = explored.broken.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            broken,
            BTreeSet::from_iter(case.breaks.iter().copied()),
            "{:?}",
            case.mutation
        );
        println!(
            "{:?}: no more than {:?} breaks in {} states",
            case.mutation, case.breaks, explored.states
        );
    }
}

#[test]
fn the_guard_alone_keeps_the_money_where_a_function_breaks_a_rule() {
    for case in CASES.into_iter().filter(|case| case.guard_holds) {
        let explored = explore_all(case.config, Rules::guarded(case.mutation));
        let lost: Vec<_> = explored
            .broken
            .iter()
            .filter(|(promise, _)| MONEY.contains(promise))
            .collect();
        println!("{:?}: {} states", case.mutation, explored.states);
        assert!(lost.is_empty(), "{:?}: {lost:?}", case.mutation);
    }
}
