//! The model as the checker sees it: what can happen in a state, what comes of it, and what must hold in each.

use arrayvec::ArrayVec;
use sluice_core::decision;
use sluice_core::state::State;
use stateright::{Model, Property};

use crate::config::Config;
use crate::database::{CALM, Circumstances, Clock, Database, fate_on_file};
use crate::drain::Distances;
use crate::network::{NODES, Taken};
use crate::rules::{Mutation, Rules};
use crate::scenes::scenes;
use crate::world::{
    Answer, MOST_BLOCKS, MOST_TRANSACTIONS, Outcome, Step, Task, Transaction, World,
};

/// What each property is called.
pub mod promise {
    /// A chain never holds two transactions of a withdrawal that may have paid it, and none that may follow one.
    pub const PAID_ONCE: &str = "no withdrawal is paid twice";
    /// No transaction is built while another of the withdrawal can pay, or has paid; no envelope filed while one is live.
    pub const ONE_AT_A_TIME: &str = "one transaction at most can pay a withdrawal";
    /// With a success, irreversible and at its depth.
    pub const CONFIRMED_IS_PAID: &str = "confirmed is paid";
    /// Now or later.
    pub const ENDED_IS_UNPAID: &str = "failed and rejected are not paid";
    /// What a signer saw or a node may get is on file.
    pub const FILED_FIRST: &str = "nothing is signed that is not on file";
    /// An honest worker sends what the row says is being sent.
    pub const ANNOUNCED_FIRST: &str = "no worker sends before the intent is on file";
    /// Compare and swap.
    pub const FENCED: &str = "a stale token writes nothing";
    /// Else a withdrawal would be set aside for ever.
    pub const NOTHING_REFUSED: &str = "the functions ask for nothing that the guard refuses";
    /// No worker has leave to go on with it, and nothing is to be built for it.
    pub const WISH_IS_KEPT: &str = "what is to end is not signed, sent or built any more";
    /// By the fixed schedule.
    pub const ENDS: &str = "from every state a schedule without faults ends all";
    /// Of the model itself.
    pub const FITS: &str = "the model has room for it";
}

/// The longest that the schedule may take.
pub const MOST_STEPS: u8 = 60;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// An idle worker claims a withdrawal, in one transaction with all that a claim does.
    Claim {
        /// Who.
        worker: u8,
        /// What.
        withdrawal: u8,
        /// In which circumstances.
        found: Circumstances,
    },
    /// The signer answers a worker, however late.
    Sign {
        /// Whom.
        worker: u8,
    },
    /// A worker records its signature.
    RecordSignature {
        /// Who.
        worker: u8,
        /// Whether first sends are paused.
        paused: bool,
    },
    /// A worker sends its bytes to a node and gets this answer. What the node did with them, `Arrive` tells.
    Send {
        /// Who.
        worker: u8,
        /// The answer.
        answer: Answer,
    },
    /// A worker records its answer.
    RecordAnswer {
        /// Who.
        worker: u8,
    },
    /// A worker dies, or a commit's answer does not reach it.
    Crash {
        /// Who.
        worker: u8,
    },
    /// A worker that lies moves its withdrawal on.
    Lie {
        /// Who.
        worker: u8,
        /// Where to.
        to: State,
    },
    /// A signer that was asked once, or a worker that was thought dead, signs and sends.
    Zombie {
        /// Of which withdrawal.
        withdrawal: u8,
        /// What.
        transaction: u8,
    },
    /// Bytes that have left reach a node: from whom they were sent by, or from another node.
    Arrive {
        /// Of which withdrawal.
        withdrawal: u8,
        /// What.
        transaction: u8,
        /// Which node.
        node: u8,
    },
    /// A node drops a transaction.
    Drop {
        /// Of which withdrawal.
        withdrawal: u8,
        /// What.
        transaction: u8,
        /// Which node.
        node: u8,
    },
    /// A block.
    Produce {
        /// Ticks since the one before.
        gap: u8,
        /// What it takes in.
        taken: ArrayVec<Taken, 2>,
    },
    /// The newest block is forked away.
    Fork,
    /// The follower hands in the next blocks.
    Observe {
        /// How many.
        blocks: u8,
    },
    /// A person cancels a withdrawal.
    Cancel {
        /// Which.
        withdrawal: u8,
    },
}

/// The model: what is explored, and by which rules.
pub struct Sluice {
    /// What is explored.
    pub config: Config,
    /// By which rules.
    pub rules: Rules,
    /// Whether the checker also looks for the scenes that show that the model gets anywhere.
    pub scenes: bool,
    /// How many blocks may matter at once. Sound rules need few; where a broken one leaves something behind for ever, the chain
    /// would grow without end.
    pub window: usize,
    pub(crate) distances: Distances,
}

impl Sluice {
    /// A model of this much, by these rules.
    #[must_use]
    pub fn new(config: Config, rules: Rules) -> Self {
        Self {
            config,
            rules,
            scenes: false,
            window: MOST_BLOCKS,
            distances: Distances::default(),
        }
    }

    /// The most steps that the schedule took from any state looked at.
    #[must_use]
    pub fn longest_way_to_the_end(&self) -> u8 {
        self.distances.farthest()
    }

    fn database<'a>(&self, world: &'a mut World) -> Database<'a> {
        Database {
            world,
            rules: self.rules,
            depth: self.config.depth,
            margin: self.config.margin,
            attempts_allowed: self.config.attempts,
        }
    }

    /// What comes of an action: the representative of the state it leads to, or `None` where it changes nothing.
    #[must_use]
    pub fn act(&self, world: &World, action: &Action) -> Option<World> {
        let next = self.happen(world, action)?.canonical(self.config.depth);
        (next != *world).then_some(next)
    }

    /// What comes of an action, as it is; `None` where it is refused or impossible.
    #[must_use]
    pub fn happen(&self, world: &World, action: &Action) -> Option<World> {
        let mut next = world.clone();
        match *action {
            Action::Claim {
                worker,
                withdrawal,
                found,
            } => {
                let claimed = self.database(&mut next).claim(
                    usize::from(worker),
                    usize::from(withdrawal),
                    found,
                );
                if claimed.is_err() {
                    return Some(refused(world, None));
                }
            }
            Action::Sign { worker } => {
                let step = if self.rules.breaks(Mutation::SendBeforeTheIntent) {
                    Step::Send
                } else {
                    Step::RecordSignature
                };
                task(&mut next, worker)?.step = step;
            }
            Action::RecordSignature { worker, paused } => {
                let filed = self
                    .database(&mut next)
                    .record_signature(usize::from(worker), paused);
                if filed.is_err() {
                    return Some(refused(world, Some(worker)));
                }
            }
            Action::Send { worker, answer } => self.send(&mut next, worker, answer)?,
            Action::RecordAnswer { worker } => {
                let Step::RecordAnswer(answer) = task(&mut next, worker)?.step else {
                    return None;
                };
                let filed = self
                    .database(&mut next)
                    .record_answer(usize::from(worker), answer);
                if filed.is_err() {
                    return Some(refused(world, Some(worker)));
                }
            }
            Action::Crash { worker } => next.workers[usize::from(worker)] = None,
            Action::Lie { worker, to } => {
                self.database(&mut next).cas(usize::from(worker), to).ok()?
            }
            Action::Zombie {
                withdrawal,
                transaction,
            } => leave(&mut next, withdrawal, transaction),
            Action::Arrive {
                withdrawal,
                transaction,
                node,
            } => transaction_mut(&mut next, withdrawal, transaction).pools |= 1 << node,
            Action::Drop {
                withdrawal,
                transaction,
                node,
            } => transaction_mut(&mut next, withdrawal, transaction).pools &= !(1 << node),
            Action::Produce { gap, ref taken } => {
                return world.produce(gap, taken, self.config.confirmations);
            }
            Action::Fork => return world.fork(self.config.pools),
            Action::Observe { blocks } => {
                let refused = self.database(&mut next).observe(blocks);
                next.noted.refused |= refused;
            }
            Action::Cancel { withdrawal } => self
                .database(&mut next)
                .cancel(usize::from(withdrawal))
                .ok()?,
        }
        Some(next)
    }

    fn send(&self, next: &mut World, worker: u8, answer: Answer) -> Option<()> {
        let sender = *task(next, worker)?;
        let state = next.withdrawals[usize::from(sender.withdrawal)].state;
        let announced = matches!(
            state,
            State::Broadcasting
                | State::Broadcast
                | State::Confirmed
                | State::Failed
                | State::Rejected
        );
        next.noted.sent_unannounced |= sender.current && !announced;
        leave(next, sender.withdrawal, sender.transaction);
        let unrecorded = self.rules.breaks(Mutation::SendBeforeTheIntent) && !announced;
        task(next, worker)?.step = if unrecorded {
            Step::RecordSignature
        } else {
            Step::RecordAnswer(answer)
        };
        Some(())
    }

    fn worker_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (worker, task) in (0u8..).zip(&world.workers) {
            let Some(task) = task else {
                continue;
            };
            match task.step {
                Step::Sign => actions.push(Action::Sign { worker }),
                Step::RecordSignature => {
                    actions.extend(
                        [false, true].map(|paused| Action::RecordSignature { worker, paused }),
                    );
                }
                Step::Send => actions.extend(
                    self.config
                        .answers
                        .iter()
                        .map(|&answer| Action::Send { worker, answer }),
                ),
                Step::RecordAnswer(_) => actions.push(Action::RecordAnswer { worker }),
            }
            actions.push(Action::Crash { worker });
            if self.config.lies && self.rules.guard && task.current {
                actions.extend(State::ALL.map(|to| Action::Lie { worker, to }));
            }
        }
        // The idle have no names: one of them is any.
        let Some(worker) = world.workers.iter().position(Option::is_none) else {
            return;
        };
        let worker = u8::try_from(worker).expect("two at most");
        for withdrawal in 0u8..self.config.withdrawals {
            actions.extend(CIRCUMSTANCES.map(|found| Action::Claim {
                worker,
                withdrawal,
                found,
            }));
        }
    }

    fn network_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (withdrawal, row) in (0u8..).zip(&world.withdrawals) {
            for (transaction, bytes) in (0u8..).zip(&row.transactions) {
                if world.is_out_of_reach(bytes) {
                    continue;
                }
                if !bytes.wire {
                    actions.push(Action::Zombie {
                        withdrawal,
                        transaction,
                    });
                }
                if !self.config.pools || bytes.included.is_some() {
                    continue;
                }
                for node in 0..NODES {
                    if bytes.pools >> node & 1 == 1 {
                        actions.push(Action::Drop {
                            withdrawal,
                            transaction,
                            node,
                        });
                    } else if bytes.wire {
                        actions.push(Action::Arrive {
                            withdrawal,
                            transaction,
                            node,
                        });
                    }
                }
            }
        }
        if world.head() > world.solid {
            actions.push(Action::Fork);
        }
        let unread = (world.head() + 1)
            .saturating_sub(self.config.confirmations)
            .max(world.solid)
            .saturating_sub(world.followed);
        if unread <= self.config.lag {
            let mut blocks = vec![ArrayVec::new()];
            for (withdrawal, row) in (0u8..).zip(&world.withdrawals) {
                for (transaction, bytes) in (0u8..).zip(&row.transactions) {
                    if !world.may_be_next(bytes, self.config.pools) {
                        continue;
                    }
                    let with = |block: &ArrayVec<Taken, 2>, outcome: Outcome| {
                        let mut longer = block.clone();
                        longer
                            .try_push(Taken {
                                withdrawal,
                                transaction,
                                outcome,
                            })
                            .ok()
                            .map(|()| longer)
                    };
                    let longer: Vec<_> = blocks
                        .iter()
                        .flat_map(|block| {
                            self.config
                                .outcomes
                                .iter()
                                .filter_map(move |&outcome| with(block, outcome))
                        })
                        .collect();
                    blocks.extend(longer);
                }
            }
            for taken in blocks {
                actions.extend(self.config.gaps.iter().map(|&gap| Action::Produce {
                    gap,
                    taken: taken.clone(),
                }));
            }
        }
    }
}

/// What a claim may find. Nothing of it is kept in the state, so that the next call finds something else.
const CIRCUMSTANCES: [Circumstances; 5] = [
    CALM,
    Circumstances {
        clock: Clock::Ahead,
        ..CALM
    },
    Circumstances {
        clock: Clock::FarAhead,
        ..CALM
    },
    Circumstances {
        paused: true,
        ..CALM
    },
    Circumstances {
        asset_changed: true,
        ..CALM
    },
];

fn task(world: &mut World, worker: u8) -> Option<&mut Task> {
    world.workers[usize::from(worker)].as_mut()
}

fn transaction_mut(world: &mut World, withdrawal: u8, transaction: u8) -> &mut Transaction {
    &mut world.withdrawals[usize::from(withdrawal)].transactions[usize::from(transaction)]
}

/// Bytes leave. Where no chain can hold them any more, they might as well not.
fn leave(world: &mut World, withdrawal: u8, transaction: u8) {
    let bytes = world.withdrawals[usize::from(withdrawal)].transactions[usize::from(transaction)];
    if !world.is_out_of_reach(&bytes) {
        transaction_mut(world, withdrawal, transaction).wire = true;
    }
}

/// A call that the guard refused: nothing of it happened, and whoever made it drops the task.
fn refused(world: &World, worker: Option<u8>) -> World {
    let mut next = world.clone();
    if let Some(worker) = worker {
        next.workers[usize::from(worker)] = None;
    }
    next.noted.refused = true;
    next
}

impl Model for Sluice {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![
            World::beginning(
                usize::from(self.config.withdrawals),
                usize::from(self.config.workers),
            )
            .canonical(self.config.depth),
        ]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.worker_actions(world, actions);
        self.network_actions(world, actions);
        let readable = if self.rules.breaks(Mutation::FollowTheHead) {
            world.head()
        } else {
            world.solid
        };
        actions.extend((1..=readable - world.followed).map(|blocks| Action::Observe { blocks }));
        if self.config.cancels {
            actions.extend(
                (0..self.config.withdrawals).map(|withdrawal| Action::Cancel { withdrawal }),
            );
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        self.act(world, &action)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.blocks.len() <= self.window
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = promises();
        if self.scenes {
            properties.extend(scenes());
        }
        properties
    }
}

fn promises() -> Vec<Property<Sluice>> {
    vec![
        Property::always(promise::PAID_ONCE, |_, world: &World| {
            world
                .withdrawals
                .iter()
                .all(|withdrawal| payments_of(withdrawal) <= 1)
        }),
        Property::always(promise::ONE_AT_A_TIME, |_, world: &World| {
            world.withdrawals.iter().all(|withdrawal| {
                let transactions = withdrawal.transactions.iter();
                let can_pay = transactions
                    .clone()
                    .filter(|transaction| world.can_pay_or_has(transaction))
                    .count();
                let live = transactions.filter(|transaction| transaction.is_live());
                can_pay + usize::from(withdrawal.paid) <= 1 && live.count() <= 1
            })
        }),
        Property::always(
            promise::CONFIRMED_IS_PAID,
            |model: &Sluice, world: &World| {
                world
                    .withdrawals
                    .iter()
                    .filter(|withdrawal| withdrawal.state == State::Confirmed)
                    .all(|withdrawal| {
                        withdrawal.paid > 0
                            || withdrawal
                                .transactions
                                .iter()
                                .filter_map(|transaction| transaction.included)
                                .any(|inclusion| {
                                    inclusion.outcome == Outcome::Success
                                        && inclusion.height <= world.solid
                                        && inclusion.height + model.config.depth <= world.followed
                                })
                    })
            },
        ),
        Property::always(promise::ENDED_IS_UNPAID, |_, world: &World| {
            world
                .withdrawals
                .iter()
                .filter(|withdrawal| matches!(withdrawal.state, State::Failed | State::Rejected))
                .all(|withdrawal| payments_of(withdrawal) == 0)
        }),
        Property::always(promise::FILED_FIRST, |_, world: &World| {
            world
                .withdrawals
                .iter()
                .flat_map(|withdrawal| &withdrawal.transactions)
                .all(|transaction| transaction.filed)
        }),
        Property::always(promise::ANNOUNCED_FIRST, |_, world: &World| {
            !world.noted.sent_unannounced
        }),
        Property::always(promise::FENCED, |_, world: &World| {
            !world.noted.fenced_write
        }),
        Property::always(promise::NOTHING_REFUSED, |_, world: &World| {
            !world.noted.refused
        }),
        Property::always(promise::WISH_IS_KEPT, |_, world: &World| {
            let going_on = |index: usize| {
                let tasks = world.workers.iter().flatten();
                tasks
                    .filter(|task| usize::from(task.withdrawal) == index)
                    .any(|task| task.current)
            };
            world
                .withdrawals
                .iter()
                .enumerate()
                .filter(|(_, withdrawal)| withdrawal.cancelled)
                .all(|(index, withdrawal)| !going_on(index) && !is_to_be_built(withdrawal))
        }),
        Property::always(promise::ENDS, |model: &Sluice, world: &World| {
            model
                .steps_to_the_end(world)
                .is_some_and(|steps| steps <= MOST_STEPS)
        }),
        Property::always(promise::FITS, |_, world: &World| {
            world.blocks.len() < MOST_BLOCKS
                && world
                    .withdrawals
                    .iter()
                    .all(|withdrawal| withdrawal.transactions.len() < MOST_TRANSACTIONS)
        }),
    ]
}

/// Whether its newest envelope is spent, and it is not over.
fn is_to_be_built(withdrawal: &crate::world::Withdrawal) -> bool {
    !withdrawal.state.is_terminal()
        && withdrawal.newest().is_none_or(|newest| {
            decision::is_spent(&fate_on_file(&withdrawal.transactions[newest]))
        })
}

/// How many transactions on the chain may have paid it, those above the solid block too.
fn payments_of(withdrawal: &crate::world::Withdrawal) -> usize {
    usize::from(withdrawal.paid)
        + withdrawal
            .transactions
            .iter()
            .filter_map(|transaction| transaction.included)
            .filter(|inclusion| inclusion.outcome.may_have_moved())
            .count()
}
