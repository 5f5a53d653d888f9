//! The fixed schedule without faults that must end everything, from whatever state: workers finish what they hold, the
//! follower reads, workers claim what is due, and where nothing of that is left to do, the nodes make a block of what was sent.
//!
//! It is a function of the state, so its length is remembered: a state is as far from its end as the next one, and one more.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use crate::database::CALM;
use crate::model::{Action, Sluice};
use crate::network::Taken;
use crate::world::{Answer, Outcome, Step, World};

const SHARDS: usize = 64;

/// How far states are from their end, as far as that was asked.
pub struct Distances([Mutex<HashMap<u64, u8>>; SHARDS]);

impl Default for Distances {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

fn mark(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

impl Distances {
    fn shard(&self, mark: u64) -> &Mutex<HashMap<u64, u8>> {
        &self.0[usize::try_from(mark >> 58).expect("six bits")]
    }

    fn get(&self, mark: u64) -> Option<u8> {
        self.shard(mark)
            .lock()
            .expect("nobody panics with it")
            .get(&mark)
            .copied()
    }

    fn put(&self, mark: u64, distance: u8) {
        self.shard(mark)
            .lock()
            .expect("nobody panics with it")
            .insert(mark, distance);
    }

    /// The farthest that any state was from its end.
    pub fn farthest(&self) -> u8 {
        self.0
            .iter()
            .filter_map(|shard| {
                shard
                    .lock()
                    .expect("nobody panics with it")
                    .values()
                    .copied()
                    .filter(|distance| *distance != STUCK)
                    .max()
            })
            .max()
            .unwrap_or(0)
    }
}

/// Where the schedule comes to a halt, or to no end.
const STUCK: u8 = u8::MAX;

impl Sluice {
    /// How many steps of the schedule end everything from here; `None` where they do not.
    pub fn steps_to_the_end(&self, world: &World) -> Option<u8> {
        let mut walked = vec![];
        let mut here = world.clone();
        let mut distance = loop {
            let mark = mark(&here);
            if let Some(known) = self.distances.get(mark) {
                break known;
            }
            let ended = here
                .withdrawals
                .iter()
                .all(|withdrawal| here.has_ended(withdrawal))
                && here.workers.iter().all(Option::is_none);
            if ended {
                break 0;
            }
            walked.push(mark);
            match self.next_of_schedule(&here) {
                Some(next) if walked.len() < usize::from(STUCK) => here = next,
                _ => {
                    for mark in walked {
                        self.distances.put(mark, STUCK);
                    }
                    return None;
                }
            }
        };
        for mark in walked.into_iter().rev() {
            distance = distance.saturating_add(1);
            self.distances.put(mark, distance);
        }
        (distance != STUCK).then_some(distance)
    }

    /// What the schedule does next; `None` where nothing of it does anything.
    #[must_use]
    pub fn next_of_schedule(&self, world: &World) -> Option<World> {
        self.schedule(world)
            .into_iter()
            .find_map(|action| self.act(world, &action))
    }

    /// What the schedule would do next, in the order of preference.
    fn schedule(&self, world: &World) -> Vec<Action> {
        if let Some((worker, task)) = (0u8..)
            .zip(&world.workers)
            .find_map(|(worker, task)| task.map(|task| (worker, task)))
        {
            return vec![match task.step {
                Step::Sign => Action::Sign { worker },
                Step::RecordSignature => Action::RecordSignature {
                    worker,
                    paused: false,
                },
                Step::Send => Action::Send {
                    worker,
                    answer: Answer::Success,
                },
                Step::RecordAnswer(_) => Action::RecordAnswer { worker },
            }];
        }
        let mut actions = vec![];
        if world.followed < world.solid {
            actions.push(Action::Observe {
                blocks: world.solid - world.followed,
            });
        }
        let withdrawals = 0u8..u8::try_from(world.withdrawals.len()).expect("two at most");
        actions.extend(withdrawals.clone().map(|withdrawal| Action::Claim {
            worker: 0,
            withdrawal,
            found: CALM,
        }));
        // A node that was sent something has it in its pool.
        for (withdrawal, row) in (0u8..).zip(&world.withdrawals) {
            for (transaction, sent) in (0u8..).zip(&row.transactions) {
                if self.config.pools && sent.wire && sent.pools == 0 {
                    actions.push(Action::Arrive {
                        withdrawal,
                        transaction,
                        node: 0,
                    });
                }
            }
        }
        let taken = withdrawals
            .filter_map(|withdrawal| {
                let row = &world.withdrawals[usize::from(withdrawal)];
                let place = row
                    .transactions
                    .iter()
                    .rposition(|transaction| world.may_be_next(transaction, self.config.pools))?;
                Some(Taken {
                    withdrawal,
                    transaction: u8::try_from(place).expect("a few"),
                    outcome: Outcome::Success,
                })
            })
            .collect();
        actions.push(Action::Produce { gap: 1, taken });
        actions
    }
}
