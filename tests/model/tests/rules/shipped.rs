//! The rules as shipped.

use sluice_core::decision::{LONGEST_WAIT_MS, backoff_ms};
use sluice_model::check::explore;
use sluice_model::config::{Config, SHORT};
use sluice_model::rules::Rules;

fn every_promise_holds(config: Config) {
    let explored = explore(config, Rules::shipped());
    for (promise, way) in &explored.broken {
        println!("{}: \"{promise}\" breaks:", config.name);
        for action in way {
            println!("  {action}");
        }
    }
    assert!(explored.broken.is_empty(), "{}", config.name);
    println!(
        "{}: {} states, all end within {} steps",
        config.name, explored.states, explored.longest_end
    );
    assert!(explored.states > 100_000, "a model in which little happens");
}

#[test]
fn whatever_nodes_and_the_chain_do_a_withdrawal_is_paid_once_and_ends() {
    every_promise_holds(SHORT[0]);
}

#[test]
fn two_withdrawals_that_share_their_workers_are_each_paid_once_and_end() {
    every_promise_holds(SHORT[1]);
}

#[test]
fn a_depth_longer_than_the_time_to_live_pays_nothing_twice_and_ends() {
    every_promise_holds(SHORT[2]);
}

/// The model lets a claim find due whatever is neither over nor parked. That loses no way to get stuck only if nothing is put
/// off for longer than any clock takes to get there.
#[test]
fn nothing_is_put_off_for_longer_than_the_longest_wait() {
    for deaths in -1..1000 {
        assert!(
            (1..=LONGEST_WAIT_MS).contains(&backoff_ms(deaths)),
            "{deaths}"
        );
    }
}
