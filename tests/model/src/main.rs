//! `sluice-model`: explores every configuration and prints how many states it has, then breaks one rule at a time and prints the
//! shortest way to see it. Ends with an error if a promise breaks under the rules as shipped, or if a broken rule breaks nothing.
//!
//!     sluice-model              the configurations of the tests
//!     sluice-model --long       larger ones too
//!     sluice-model --tell       with the steps of each counterexample

use std::process::ExitCode;
use std::time::Instant;

use sluice_model::check::{explore, shortest};
use sluice_model::config::{Config, LONG, SHORT};
use sluice_model::model::Action;
use sluice_model::mutations::CASES;
use sluice_model::rules::Rules;

fn main() -> ExitCode {
    let mut long = false;
    let mut told = false;
    for argument in std::env::args().skip(1) {
        match &*argument {
            "--long" => long = true,
            "--tell" => told = true,
            other => {
                eprintln!("sluice-model: {other} is neither --long nor --tell");
                return ExitCode::FAILURE;
            }
        }
    }
    let start = Instant::now();
    println!("As shipped:");
    let mut sound = true;
    let mut states = 0;
    for config in SHORT.into_iter().chain(LONG.into_iter().filter(|_| long)) {
        match hold(config) {
            Some(explored) => states += explored,
            None => sound = false,
        }
    }
    println!("  {states} states in all\n\nWith one rule broken:");
    for case in CASES {
        for promise in case.breaks {
            let found = shortest(case.config, case.rules(), promise);
            let Some((way, looked_at)) = found else {
                println!(
                    "  {:?}: NOT FOUND: \"{promise}\" still holds",
                    case.mutation
                );
                sound = false;
                continue;
            };
            println!(
                "  {:?}: \"{promise}\" breaks in {} steps ({looked_at} states looked at)",
                case.mutation,
                way.len()
            );
            if told {
                tell(&way);
            }
        }
    }
    println!("\n{:.0} s", start.elapsed().as_secs_f64());
    if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Explores a configuration and says what it is; how many states it has, if every promise holds in each.
fn hold(config: Config) -> Option<usize> {
    let explored = explore(config, Rules::shipped());
    println!(
        "  {}: {} states, {} steps between them; all end within {} steps; {:.1} s",
        config.name,
        explored.states,
        explored.steps,
        explored.longest_end,
        explored.took.as_secs_f64()
    );
    for (promise, way) in &explored.broken {
        println!("  BROKEN: {promise}");
        tell(way);
    }
    explored.broken.is_empty().then_some(explored.states)
}

fn tell(way: &[Action]) {
    for (number, action) in (1..).zip(way) {
        println!("    {number:2}. {action}");
    }
}
