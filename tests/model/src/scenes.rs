//! Scenes that the model must get to: a model in which nothing happens keeps every promise.

use sluice_core::state::State;
use stateright::Property;

use crate::model::Sluice;
use crate::world::{FiledFate, Inclusion, Outcome, Step, Transaction, World};

/// Every scene.
#[must_use]
pub fn scenes() -> Vec<Property<Sluice>> {
    vec![
        Property::sometimes("it is confirmed", |_, world: &World| {
            any_is(world, State::Confirmed)
        }),
        Property::sometimes("it fails", |_, world: &World| any_is(world, State::Failed)),
        Property::sometimes("it is rejected", |_, world: &World| {
            any_is(world, State::Rejected)
        }),
        Property::sometimes("it is signed and held back", |_, world: &World| {
            any_is(world, State::Signed)
        }),
        Property::sometimes("it is left to a person", |_, world: &World| {
            world.withdrawals.iter().any(|withdrawal| withdrawal.parked)
        }),
        Property::sometimes("a success waits for its depth", |_, world: &World| {
            world
                .withdrawals
                .iter()
                .any(|withdrawal| withdrawal.deep_at.is_some())
        }),
        Property::sometimes(
            "a block stamped at the expiration holds it",
            |_, world: &World| {
                any_included(world, |transaction, inclusion| {
                    world.tick(inclusion.height) == transaction.expiration
                })
            },
        ),
        Property::sometimes(
            "a block stamped past the expiration holds it",
            |_, world: &World| {
                any_included(world, |transaction, inclusion| {
                    world.tick(inclusion.height) > transaction.expiration
                })
            },
        ),
        Property::sometimes(
            "it is paid before its signature is on file",
            |_, world: &World| {
                any_included(world, |transaction, inclusion| {
                    !transaction.signed
                        && transaction.filed
                        && inclusion.outcome == Outcome::Success
                })
            },
        ),
        Property::sometimes("it is built anew after a death", |_, world: &World| {
            world.withdrawals.iter().any(|withdrawal| {
                matches!(&withdrawal.transactions[..], [.., last] if last.is_live())
                    && withdrawal.attempts > 1
            })
        }),
        Property::sometimes(
            "an envelope dies that no node was seen to take, and does not count",
            |_, world: &World| {
                world.withdrawals.iter().any(|withdrawal| {
                    withdrawal.state == State::Signing
                        && withdrawal.attempts == 0
                        && matches!(&withdrawal.transactions[..], [.., last] if last.fate == Some(FiledFate::Dead))
                })
            },
        ),
        Property::sometimes(
            "it is to end while the chain pays it",
            |_, world: &World| {
                world.withdrawals.iter().any(|withdrawal| {
                    withdrawal.cancelled
                        && withdrawal.transactions.iter().any(|transaction| {
                            transaction.payment.is_none()
                                && transaction
                                    .included
                                    .is_some_and(|inclusion| inclusion.outcome == Outcome::Success)
                        })
                })
            },
        ),
        Property::sometimes("a stale worker records a signature", |_, world: &World| {
            any_stale(world, |step| step == Step::RecordSignature)
        }),
        Property::sometimes("a stale worker sends", |_, world: &World| {
            any_stale(world, |step| step == Step::Send)
        }),
        Property::sometimes("a stale worker records an answer", |_, world: &World| {
            any_stale(world, |step| matches!(step, Step::RecordAnswer(_)))
        }),
        Property::sometimes(
            "both nodes have it, and it is in signing",
            |_, world: &World| {
                world.withdrawals.iter().any(|withdrawal| {
                    withdrawal.state == State::Signing
                        && withdrawal
                            .transactions
                            .iter()
                            .any(|transaction| transaction.pools == 3)
                })
            },
        ),
        Property::sometimes(
            "one node has it, and the other does not",
            |_, world: &World| {
                world
                    .withdrawals
                    .iter()
                    .flat_map(|withdrawal| &withdrawal.transactions)
                    .any(|transaction| transaction.pools == 1)
            },
        ),
    ]
}

fn any_is(world: &World, state: State) -> bool {
    world
        .withdrawals
        .iter()
        .any(|withdrawal| withdrawal.state == state)
}

fn any_included(world: &World, asks: impl Fn(&Transaction, Inclusion) -> bool) -> bool {
    world
        .withdrawals
        .iter()
        .flat_map(|withdrawal| &withdrawal.transactions)
        .filter(|transaction| !transaction.is_remains())
        .any(|transaction| {
            transaction
                .included
                .is_some_and(|inclusion| asks(transaction, inclusion))
        })
}

fn any_stale(world: &World, asks: impl Fn(Step) -> bool) -> bool {
    world
        .workers
        .iter()
        .flatten()
        .any(|task| !task.current && asks(task.step))
}
