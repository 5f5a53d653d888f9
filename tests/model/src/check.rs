//! Running the checker: all of a configuration, or the shortest way to break one promise.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::config::Config;
use crate::model::{Action, Sluice};
use crate::rules::Rules;

/// What an exploration found.
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Ways from one to the next.
    pub steps: usize,
    /// The most steps that the schedule without faults took to end everything.
    pub longest_end: u8,
    /// How long it took.
    pub took: Duration,
    /// Broken promises, by name, each with a way to break it.
    pub broken: Vec<(&'static str, Vec<Action>)>,
    /// Scenes that were looked for and never seen.
    pub unseen: Vec<&'static str>,
}

/// Explores a configuration to its end, or until something breaks.
#[must_use]
pub fn explore(config: Config, rules: Rules) -> Explored {
    finish(Sluice::new(config, rules), HasDiscoveries::AnyFailures)
}

/// How many blocks may matter at once where a rule is broken: as many as under the rules as shipped, which need no bound.
const fn window(config: &Config) -> usize {
    5 + config.depth as usize
}

/// Explores a configuration whatever breaks meanwhile, as far as no more blocks matter at once than under the rules as shipped,
/// and looks for the scenes too.
#[must_use]
pub fn explore_all(config: Config, rules: Rules) -> Explored {
    let model = Sluice {
        scenes: true,
        window: window(&config),
        ..Sluice::new(config, rules)
    };
    finish(model, HasDiscoveries::All)
}

fn finish(model: Sluice, until: HasDiscoveries) -> Explored {
    let start = Instant::now();
    let checker = model
        .checker()
        .threads(available_parallelism().map_or(1, NonZero::get))
        .finish_when(until)
        .spawn_bfs()
        .join();
    let found = checker.discoveries();
    let properties = checker.model().properties();
    let unseen = properties
        .iter()
        .filter(|property| !property.expectation.discovery_is_failure())
        .map(|property| property.name)
        .filter(|name| !found.contains_key(name))
        .collect();
    let mut broken: Vec<_> = properties
        .iter()
        .filter(|property| property.expectation.discovery_is_failure())
        .filter_map(|property| {
            let way = found.get(property.name)?.clone();
            Some((property.name, way.into_actions()))
        })
        .collect();
    broken.sort_by_key(|(_, way)| way.len());
    Explored {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        longest_end: checker.model().longest_way_to_the_end(),
        took: start.elapsed(),
        broken,
        unseen,
    }
}

/// How many states a search for a counterexample may generate.
const FAR_ENOUGH: usize = 8_000_000;

/// The shortest way to break a promise, and how many states were looked at; `None` where none was found.
///
/// The checker goes on for a while after it has found one, and tells the last; so it is asked again for a shorter one until
/// there is none.
#[must_use]
pub fn shortest(
    config: Config,
    rules: Rules,
    promise: &'static str,
) -> Option<(Vec<Action>, usize)> {
    let mut best: Option<Vec<Action>> = None;
    let mut states = 0;
    loop {
        let mut builder = Sluice::new(config, rules)
            .checker()
            .finish_when(HasDiscoveries::AnyOf([promise].into()))
            .target_state_count(FAR_ENOUGH);
        if let Some(best) = &best {
            builder = builder.target_max_depth(best.len() + 1);
        }
        let checker = builder.spawn_bfs().join();
        states += checker.unique_state_count();
        match checker.discovery(promise) {
            Some(path) => best = Some(path.into_actions()),
            None => return best.map(|best| (best, states)),
        }
    }
}
