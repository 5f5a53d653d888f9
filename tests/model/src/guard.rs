//! The guard, as `sql/guard.sql`, `sql/guard_envelopes.sql` and `src/pg/guard.rs` have it: each write of a row is judged step by step
//! against the chart, with the proofs that the chart asks for; an envelope is filed, and its fate written, only with theirs.
//! It asks sluice-core and nobody else, whatever rule of the functions is broken.

use sluice_core::decision::{self, Fate};
use sluice_core::state::{Proof, State, judge_path};

use crate::database::{Database, coverage, fate_on_file, inclusion_of};
use crate::world::{FiledFate, Outcome, Transaction, at, slot};

/// A write that the guard refuses: its transaction is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

impl Database<'_> {
    /// Writes the row's state along a path.
    pub(crate) fn walk(&mut self, index: usize, path: &[State]) -> Result<(), Refused> {
        let from = self.world.withdrawals[index].state;
        let to = *path.last().unwrap_or(&from);
        if self.rules.guard {
            let steps = judge_path(from, to, Some(path)).map_err(|_| Refused)?;
            for step in steps {
                let proven = match step.proof {
                    Proof::None => step.to != State::Signed || self.has_signature(index),
                    Proof::AllSpent => self.all_spent(index),
                    Proof::Paid => self.is_paid(index),
                };
                if !proven {
                    return Err(Refused);
                }
            }
        }
        let withdrawal = &mut self.world.withdrawals[index];
        withdrawal.state = to;
        if to.is_terminal() {
            withdrawal.parked = false;
        }
        Ok(())
    }

    /// `*`: every envelope on file is spent.
    fn all_spent(&self, index: usize) -> bool {
        self.world.withdrawals[index]
            .transactions
            .iter()
            .filter(|transaction| transaction.filed)
            .all(|transaction| decision::is_spent(&fate_on_file(transaction)))
    }

    /// `**`: one is included with SUCCESS, at the asset's depth.
    fn is_paid(&self, index: usize) -> bool {
        self.world.withdrawals[index]
            .transactions
            .iter()
            .filter(|transaction| transaction.fate == Some(FiledFate::Included))
            .filter_map(|transaction| transaction.payment)
            .any(|payment| {
                payment.outcome == Outcome::Success
                    && self.world.followed >= payment.height + self.depth
            })
    }

    /// The newest envelope has a signature on file, or a block shows it.
    fn has_signature(&self, index: usize) -> bool {
        let withdrawal = &self.world.withdrawals[index];
        withdrawal.newest().is_some_and(|newest| {
            let newest = &withdrawal.transactions[newest];
            newest.signed || newest.fate == Some(FiledFate::Included)
        })
    }

    /// An envelope on its way to the file: of a withdrawal in `signing`, in a later slot than any before it, and the only one that
    /// can pay.
    pub(crate) fn check_envelope(&self, index: usize, fresh: &Transaction) -> Result<(), Refused> {
        let withdrawal = &self.world.withdrawals[index];
        let others = withdrawal
            .transactions
            .iter()
            .filter(|transaction| transaction.filed);
        let fits = withdrawal.state == State::Signing
            && others.clone().all(|other| {
                decision::is_spent(&fate_on_file(other))
                    && slot(other.built_at) < slot(fresh.built_at)
            });
        if fits || !self.rules.guard {
            Ok(())
        } else {
            Err(Refused)
        }
    }

    /// A fate on its way to the file: an inclusion that a followed block shows, or a death that coverage proves.
    pub(crate) fn check_fate(
        &self,
        transaction: &Transaction,
        fate: FiledFate,
    ) -> Result<(), Refused> {
        let proven = match fate {
            FiledFate::Included => transaction.payment.is_some(),
            FiledFate::Dead => {
                transaction.payment.is_none()
                    && matches!(
                        decision::fate(
                            at(transaction.expiration),
                            &coverage(self.world, transaction, self.margin),
                            transaction.payment.map(inclusion_of)
                        ),
                        Fate::Dead { .. }
                    )
            }
        };
        if proven || !self.rules.guard {
            Ok(())
        } else {
            Err(Refused)
        }
    }
}
