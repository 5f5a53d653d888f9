//! The model itself: it gets to what it is about, and what it takes for the same is the same.

use sluice_model::check::explore_all;
use sluice_model::config::{Config, SHORT, SMALL, SMALL_AND_DEEP};
use sluice_model::model::{Action, Sluice, promise};
use sluice_model::rules::Rules;
use sluice_model::world::{MOST_BLOCKS, World};
use stateright::{Model, Property};

#[test]
fn every_scene_that_the_promises_are_about_comes_about() {
    let explored = explore_all(SMALL_AND_DEEP, Rules::shipped());
    assert_eq!(explored.unseen, Vec::<&str>::new());
    assert!(explored.broken.is_empty());
}

/// Walks at random through states as they are, never put into their canonical form, and compares each with its representative: it
/// keeps and breaks the same promises, and whatever happens to it happens to the representative too.
#[test]
fn whatever_happens_to_a_state_happens_to_its_representative() {
    let mut dice = Dice(0x5eed);
    let mut compared = 0;
    for config in [SMALL, SMALL_AND_DEEP, SHORT[1]] {
        let model = Sluice::new(config, Rules::shipped());
        for _ in 0..150 {
            compared += walk(&model, &mut dice);
        }
    }
    println!("{compared} states compared");
    assert!(compared > 5_000);
}

fn walk(model: &Sluice, dice: &mut Dice) -> usize {
    let Config {
        depth,
        withdrawals,
        workers,
        ..
    } = model.config;
    let mut here = World::beginning(usize::from(withdrawals), usize::from(workers));
    for step in 0..60 {
        let representative = here.clone().canonical(depth);
        assert_eq!(
            verdicts(model, &here),
            verdicts(model, &representative),
            "{here:?}\n{representative:?}"
        );
        if is_full(&here) {
            return step;
        }
        let mut possible = successors(model, &representative);
        possible.push(representative);
        let mut actions = vec![];
        model.actions(&here, &mut actions);
        let next: Vec<(Action, World)> = actions
            .into_iter()
            .filter_map(|action| Some((action.clone(), model.happen(&here, &action)?)))
            .collect();
        for (action, next) in &next {
            assert!(
                possible.contains(&next.clone().canonical(depth)),
                "{action}\n{here:?}\n{next:?}"
            );
        }
        if next.is_empty() {
            return step;
        }
        here = next[dice.below(next.len())].1.clone();
    }
    60
}

/// A state as it is forgets nothing, and there is an end to what it can remember.
fn is_full(world: &World) -> bool {
    world.blocks.len() == MOST_BLOCKS
        || world
            .withdrawals
            .iter()
            .any(|withdrawal| withdrawal.transactions.is_full())
}

fn successors(model: &Sluice, world: &World) -> Vec<World> {
    let mut actions = vec![];
    model.actions(world, &mut actions);
    actions
        .iter()
        .filter_map(|action| model.act(world, action))
        .collect()
}

fn verdicts(model: &Sluice, world: &World) -> Vec<(&'static str, bool)> {
    model
        .properties()
        .iter()
        // A state as it is needs more room.
        .filter(|property| property.name != promise::FITS)
        .map(
            |Property {
                 name, condition, ..
             }| (*name, condition(model, world)),
        )
        .collect()
}

/// A generator that gives the same throws on every machine (Knuth's MMIX constants).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}
