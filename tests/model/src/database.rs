//! The database: each function that a runner or a person calls, as one transaction that happens whole or not at all. What SQL is
//! by nature, an order of writes and a choice of rows, is told here after `sql/claim.sql`, `record.sql`, `observe.sql` and `people.sql`; what
//! it decides is asked of `Rules`, and what it writes goes through the guard.

use sluice_core::broadcast::BroadcastVerdict;
use sluice_core::decision::{
    Brake, BuildFacts, Coverage, EnvelopeFacts, Fate, Inclusion, NextStep, Progress, Settlement,
    is_spent,
};
use sluice_core::state::State;

use crate::guard::Refused;
use crate::rules::{LooksOver, Mutation, Rules};
use crate::world::{
    self, Answer, FiledFate, MOST_TRANSACTIONS, Step, TICK_MS, Task, Transaction, World, at, slot,
};

/// How old the newest followed block may be when an envelope is built.
const FRESHNESS_MS: i64 = 3 * TICK_MS;

/// The database's own clock, of which nothing is assumed: each call finds it somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// It agrees with the newest followed block.
    Agrees,
    /// It is past whatever expiration there is, and the chain is still fresh.
    Ahead,
    /// A day ahead: the chain is stale.
    FarAhead,
}

impl Clock {
    fn now_ms(self, tip: u8) -> i64 {
        at(tip).0
            + match self {
                Self::Agrees => 0,
                Self::Ahead => FRESHNESS_MS,
                Self::FarAhead => 24 * 60 * 60 * 1000,
            }
    }
}

/// What a claim finds besides what is on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Circumstances {
    /// The database's clock.
    pub clock: Clock,
    /// Whether building, signing and first sends are paused.
    pub paused: bool,
    /// Whether the asset has changed, so that nothing more may be built.
    pub asset_changed: bool,
}

/// As an operator hopes.
pub const CALM: Circumstances = Circumstances {
    clock: Clock::Agrees,
    paused: false,
    asset_changed: false,
};

/// A transaction on the database.
pub struct Database<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) rules: Rules,
    /// Followed blocks beyond the including one before a success confirms.
    pub(crate) depth: u8,
    /// Followed blocks beyond the closing one before a death counts.
    pub(crate) margin: u8,
    /// Envelopes that may be spent on a withdrawal.
    pub(crate) attempts_allowed: u8,
}

pub(crate) fn inclusion_of(inclusion: world::Inclusion) -> Inclusion {
    Inclusion {
        block: i64::from(inclusion.height),
        receipt: inclusion.outcome.receipt(),
    }
}

/// An envelope's fate as it stands on file.
pub(crate) fn fate_on_file(transaction: &Transaction) -> Fate {
    match (transaction.fate, transaction.payment) {
        (Some(FiledFate::Included), Some(payment)) => Fate::Included(inclusion_of(payment)),
        (Some(FiledFate::Dead), _) => Fate::Dead {
            first: i64::from(transaction.reference),
            last: i64::from(transaction.reference) + 1,
        },
        (Some(FiledFate::Included), None) | (None, _) => Fate::InFlight,
    }
}

/// `coverage_of`, for one observer.
pub(crate) fn coverage(world: &World, transaction: &Transaction, margin: u8) -> Coverage {
    let closing = (0..=world.followed).find(|height| world.tick(*height) >= transaction.expiration);
    Coverage {
        first: 0,
        last: i64::from(world.followed),
        reference: i64::from(transaction.reference),
        closing: closing.map(|height| (i64::from(height), at(world.tick(height)))),
        margin: i64::from(margin),
    }
}

impl Database<'_> {
    /// `claim_batch`, of one withdrawal by an idle worker. Leases and due times are the database's clock's, of which nothing is
    /// assumed: whatever is neither over nor parked may be found due.
    pub fn claim(
        &mut self,
        worker: usize,
        index: usize,
        found: Circumstances,
    ) -> Result<(), Refused> {
        let withdrawal = &self.world.withdrawals[index];
        if withdrawal.state.is_terminal() || withdrawal.parked {
            return Ok(());
        }
        let tip = self.world.tip();
        let state = withdrawal.state;
        let newest = withdrawal.newest();
        let envelope = newest.map(|newest| withdrawal.transactions[newest]);
        let spent = envelope.is_none_or(|envelope| self.looks_spent(index, &envelope, found.clock));
        let built = i32::from(envelope.is_some());
        let facts = envelope.map(|envelope| EnvelopeFacts {
            attempt: built,
            live: envelope.fate.is_none(),
            spent,
            signed: envelope.signed,
            expiration: at(envelope.expiration),
            last_sent: withdrawal.sent.map(at),
        });
        let brake = match (withdrawal.cancelled, found.paused) {
            (true, _) => Brake::Cancelled,
            (false, true) => Brake::Paused,
            (false, false) => Brake::Free,
        };
        // Sound rules believe what is on file and no more.
        let believed =
            spent && envelope.is_some_and(|envelope| !is_spent(&fate_on_file(&envelope)));
        let step = if believed {
            NextStep::Build
        } else {
            self.rules
                .next_step(state, built, facts.as_ref(), at(tip), brake)
        };
        match step {
            NextStep::Build if spent && found.asset_changed => self.refuse(index),
            NextStep::Build => {
                let facts = BuildFacts {
                    all_spent: spent,
                    paused: found.paused,
                    tip: Some(at(tip)),
                    now_ms: found.clock.now_ms(tip),
                    freshness_ms: FRESHNESS_MS,
                    last_slot: envelope.map(|envelope| slot(envelope.built_at)),
                    room: 1,
                };
                match self.rules.may_build(&facts) {
                    Ok(()) => self.build(worker, index),
                    Err(_) => Ok(()),
                }
            }
            NextStep::Sign => {
                self.take(worker, index, newest.unwrap_or_default(), Step::Sign);
                Ok(())
            }
            NextStep::Send => {
                if state == State::Signed {
                    self.walk(index, &[State::Broadcasting])?;
                }
                self.take(worker, index, newest.unwrap_or_default(), Step::Send);
                Ok(())
            }
            NextStep::Wait => Ok(()),
        }
    }

    fn looks_spent(&self, index: usize, envelope: &Transaction, clock: Clock) -> bool {
        let withdrawal = &self.world.withdrawals[index];
        let live = envelope.is_live();
        self.rules.is_spent(
            &fate_on_file(envelope),
            &LooksOver {
                by_the_clock: live && clock.now_ms(self.world.tip()) >= at(envelope.expiration).0,
                unsigned: live && withdrawal.state == State::Signing,
                never_accepted: live && !withdrawal.accepted,
            },
        )
    }

    fn refuse(&mut self, index: usize) -> Result<(), Refused> {
        let to = match self.world.withdrawals[index].state {
            State::Requested | State::Validated => State::Rejected,
            _ => State::Failed,
        };
        self.walk(index, &[to])
    }

    fn build(&mut self, worker: usize, index: usize) -> Result<(), Refused> {
        let reference = self.world.reference();
        let fresh = Transaction::new(reference, self.world.tick(reference));
        match self.world.withdrawals[index].state {
            State::Requested => self.walk(index, &[State::Validated, State::Signing])?,
            _ => self.walk(index, &[State::Signing])?,
        }
        let same_bytes = |other: &Transaction| {
            if other.is_remains() {
                slot(other.built_at) == slot(fresh.built_at)
            } else {
                !other.void
                    && (other.reference, other.built_at) == (fresh.reference, fresh.built_at)
            }
        };
        let twin = self.world.withdrawals[index]
            .transactions
            .iter()
            .position(same_bytes);
        let place = if self.rules.breaks(Mutation::SkipTheWriteAhead) {
            match twin {
                Some(twin) => twin,
                None => self.keep(index, fresh)?,
            }
        } else {
            // A txid belongs to one attempt, for ever.
            if twin.is_some() {
                return Err(Refused);
            }
            self.check_envelope(index, &fresh)?;
            let place = self.keep(index, fresh)?;
            self.file_envelope(index, place);
            place
        };
        self.take(worker, index, place, Step::Sign);
        Ok(())
    }

    fn keep(&mut self, index: usize, fresh: Transaction) -> Result<usize, Refused> {
        let transactions = &mut self.world.withdrawals[index].transactions;
        if transactions.len() == MOST_TRANSACTIONS {
            return Err(Refused);
        }
        transactions.push(fresh);
        Ok(transactions.len() - 1)
    }

    fn file_envelope(&mut self, index: usize, place: usize) {
        let withdrawal = &mut self.world.withdrawals[index];
        withdrawal.transactions[place].filed = true;
        withdrawal.attempts += 1;
        withdrawal.accepted = false;
        withdrawal.sent = None;
    }

    /// The token rises, and whoever held the withdrawal is fenced out.
    fn take(&mut self, worker: usize, index: usize, place: usize, step: Step) {
        self.fence(index);
        self.world.workers[worker] = Some(Task {
            withdrawal: small(index),
            transaction: small(place),
            current: true,
            step,
        });
    }

    fn fence(&mut self, index: usize) {
        for task in self.world.workers.iter_mut().flatten() {
            task.current &= usize::from(task.withdrawal) != index;
        }
    }

    /// `record_signatures`, of one task. The worker sends next, or is done with it.
    pub fn record_signature(&mut self, worker: usize, paused: bool) -> Result<(), Refused> {
        let Some(task) = self.world.workers[worker].take() else {
            return Ok(());
        };
        let (index, place) = (usize::from(task.withdrawal), usize::from(task.transaction));
        let withdrawal = &self.world.withdrawals[index];
        let unfiled = !withdrawal.transactions[place].filed;
        if unfiled && task.current && withdrawal.state == State::Signing {
            self.file_envelope(index, place);
        }
        let withdrawal = &self.world.withdrawals[index];
        let envelope = withdrawal.transactions[place];
        let files = envelope.is_live()
            && !envelope.signed
            && self
                .rules
                .owns(task.current, State::Signing, withdrawal.state);
        if !files {
            return Ok(());
        }
        self.world.noted.fenced_write |= !task.current;
        self.world.withdrawals[index].transactions[place].signed = true;
        if at(self.world.tip()) < at(envelope.expiration) && !paused {
            self.walk(index, &[State::Signed, State::Broadcasting])?;
            self.world.workers[worker] = Some(Task {
                step: Step::Send,
                ..task
            });
            Ok(())
        } else {
            self.walk(index, &[State::Signed])
        }
    }

    /// `record_broadcasts`, of one task.
    pub fn record_answer(&mut self, worker: usize, answer: Answer) -> Result<(), Refused> {
        let Some(task) = self.world.workers[worker].take() else {
            return Ok(());
        };
        let (index, place) = (usize::from(task.withdrawal), usize::from(task.transaction));
        let withdrawal = &self.world.withdrawals[index];
        let state = withdrawal.state;
        let files = withdrawal.newest() == Some(place)
            && (self.rules.owns(task.current, State::Broadcasting, state)
                || self.rules.owns(task.current, State::Broadcast, state));
        if !files {
            return Ok(());
        }
        self.world.noted.fenced_write |= !task.current;
        match self.rules.moved_by(state, answer) {
            Some(to @ State::Signing) => {
                self.walk(index, &[to])?;
                self.world.withdrawals[index].transactions[place].fate = Some(FiledFate::Dead);
                self.fence(index);
            }
            Some(to) => self.walk(index, &[to])?,
            None => {}
        }
        let tip = self.world.tip();
        let withdrawal = &mut self.world.withdrawals[index];
        withdrawal.accepted |= answer.code().verdict() == BroadcastVerdict::Accepted;
        withdrawal.sent = Some(tip);
        Ok(())
    }

    /// `fenced_cas`, by a worker that has the token and lies: the next step, whatever it has done.
    pub fn cas(&mut self, worker: usize, to: State) -> Result<(), Refused> {
        let Some(task) = self.world.workers[worker] else {
            return Ok(());
        };
        let index = usize::from(task.withdrawal);
        let from = self.world.withdrawals[index].state;
        let refused = to == State::Rejected
            || from.transition_to(to).is_none()
            || to == State::Signing && from != State::Signing
            || !self.rules.owns(task.current, from, from);
        if refused || from.is_terminal() {
            return Err(Refused);
        }
        self.walk(index, &[to])
    }

    /// `cancel`: at once where nothing built can pay, else a wish.
    pub fn cancel(&mut self, index: usize) -> Result<(), Refused> {
        let withdrawal = &self.world.withdrawals[index];
        let from = withdrawal.state;
        let live = withdrawal
            .transactions
            .iter()
            .filter(|transaction| transaction.filed)
            .any(|transaction| {
                !self.rules.is_spent(
                    &fate_on_file(transaction),
                    &LooksOver {
                        by_the_clock: false,
                        unsigned: false,
                        never_accepted: false,
                    },
                )
            });
        if from.is_terminal() || withdrawal.cancelled {
            return Err(Refused);
        }
        if live && !self.rules.breaks(Mutation::CancelWhileLive) {
            self.world.withdrawals[index].cancelled = true;
            self.fence(index);
            return Ok(());
        }
        let to = match from {
            State::Requested | State::Validated => State::Rejected,
            _ => State::Failed,
        };
        self.walk(index, &from.path_to(to).ok_or(Refused)?)?;
        self.fence(index);
        Ok(())
    }

    /// `observe_blocks`, of the next `count` blocks. Each withdrawal that they decide is settled whole or not at all.
    ///
    /// Returns whether the guard refused one.
    pub fn observe(&mut self, count: u8) -> bool {
        let first = self.world.followed + 1;
        let last = self.world.followed + count;
        let mut decided = vec![];
        for index in 0..self.world.withdrawals.len() {
            let paid = self.file_payments(index, first, last);
            if paid || self.is_due_for_settling(index, last) {
                decided.push(index);
            }
        }
        self.world.followed = last;
        let mut refused = false;
        for index in decided {
            let before = self.world.clone();
            let outcome = self.settle(index);
            if outcome.is_err() {
                *self.world = before;
            }
            self.world.withdrawals[index].unsettled = outcome.is_err();
            refused |= outcome.is_err();
        }
        refused
    }

    fn file_payments(&mut self, index: usize, first: u8, last: u8) -> bool {
        let mut filed = false;
        let ticks = self.world.blocks.clone();
        for transaction in &mut self.world.withdrawals[index].transactions {
            let Some(inclusion) = transaction.included else {
                continue;
            };
            let unread = self.rules.breaks(Mutation::ClosingBlockUnread)
                && ticks[usize::from(inclusion.height)] >= transaction.expiration;
            let shown = (first..=last).contains(&inclusion.height) && !unread;
            if transaction.filed && transaction.payment.is_none() && shown {
                transaction.payment = Some(inclusion);
                filed = true;
            }
        }
        filed
    }

    /// Which rows a batch of blocks is asked to settle, apart from those it pays.
    fn is_due_for_settling(&self, index: usize, last: u8) -> bool {
        let withdrawal = &self.world.withdrawals[index];
        let early = u8::from(self.rules.breaks(Mutation::JudgeByTheBlocksOwnTime));
        let tip = self.world.tick(last);
        withdrawal.unsettled
            || withdrawal
                .transactions
                .iter()
                .any(|transaction| transaction.is_live() && transaction.expiration <= tip + early)
            || !withdrawal.state.is_terminal()
                && withdrawal.deep_at.is_some_and(|height| height <= last)
    }

    fn settle(&mut self, index: usize) -> Result<(), Refused> {
        if self.rules.breaks(Mutation::SweepBeforeMatch) {
            self.sweep(index)?;
            self.match_payments(index)?;
        } else {
            self.match_payments(index)?;
            self.sweep(index)?;
        }
        let withdrawal = &self.world.withdrawals[index];
        let Some(newest) = withdrawal.newest() else {
            return Ok(());
        };
        let envelope = withdrawal.transactions[newest];
        if envelope.fate.is_none() || withdrawal.state.is_terminal() {
            return Ok(());
        }
        let fate = fate_on_file(&envelope);
        let progress = Progress {
            tip: i64::from(self.world.followed),
            depth: i64::from(self.depth),
            attempts_made: i32::from(withdrawal.attempts),
            attempts_allowed: i32::from(self.attempts_allowed),
            accepted: withdrawal.accepted,
            cancelled: withdrawal.cancelled,
        };
        let settlement = self.rules.settle(&fate, &progress);
        self.write_settlement(index, settlement, &envelope)
    }

    /// What the file says of a payment, for whoever asks whether an envelope is included.
    fn payment(&self, transaction: &Transaction) -> Option<world::Inclusion> {
        let shallow = |payment: &world::Inclusion| {
            self.rules.breaks(Mutation::ShallowIsNotIncluded)
                && payment.height + self.depth > self.world.followed
        };
        transaction.payment.filter(|payment| !shallow(payment))
    }

    fn match_payments(&mut self, index: usize) -> Result<(), Refused> {
        for place in 0..self.world.withdrawals[index].transactions.len() {
            let transaction = self.world.withdrawals[index].transactions[place];
            if transaction.is_live() && self.payment(&transaction).is_some() {
                self.check_fate(&transaction, FiledFate::Included)?;
                self.world.withdrawals[index].transactions[place].fate = Some(FiledFate::Included);
            }
        }
        Ok(())
    }

    fn sweep(&mut self, index: usize) -> Result<(), Refused> {
        let tip = self.world.tip();
        for place in 0..self.world.withdrawals[index].transactions.len() {
            let transaction = self.world.withdrawals[index].transactions[place];
            let on_file = self
                .payment(&transaction)
                .filter(|_| !self.rules.breaks(Mutation::SweepBeforeMatch));
            let passed_over =
                self.rules.breaks(Mutation::SweepOnlyWhatWasSigned) && !transaction.signed;
            if !transaction.is_live() || on_file.is_some() || passed_over {
                continue;
            }
            let covered = coverage(self.world, &transaction, self.margin);
            let fate = self
                .rules
                .fate(at(transaction.expiration), &covered, at(tip), None);
            if matches!(fate, Fate::Dead { .. }) {
                self.check_fate(&transaction, FiledFate::Dead)?;
                self.world.withdrawals[index].transactions[place].fate = Some(FiledFate::Dead);
            }
        }
        Ok(())
    }

    fn write_settlement(
        &mut self,
        index: usize,
        settlement: Settlement,
        envelope: &Transaction,
    ) -> Result<(), Refused> {
        let becomes = match settlement {
            Settlement::Confirm => State::Confirmed,
            Settlement::Fail => State::Failed,
            Settlement::Rebuild | Settlement::RebuildLater => State::Signing,
            Settlement::Wait | Settlement::Park => State::Broadcast,
        };
        let was = self.world.withdrawals[index].state;
        let path = if (was, becomes) == (State::Broadcast, State::Broadcast) {
            vec![becomes]
        } else {
            was.path_to(becomes).ok_or(Refused)?
        };
        self.walk(index, &path)?;
        let deep_at = envelope.payment.map(|payment| payment.height + self.depth);
        let withdrawal = &mut self.world.withdrawals[index];
        withdrawal.deep_at = deep_at.filter(|_| {
            settlement == Settlement::Wait && !self.rules.breaks(Mutation::ForgetTheDepth)
        });
        match settlement {
            Settlement::Rebuild | Settlement::RebuildLater => {
                withdrawal.sent = None;
                if settlement == Settlement::RebuildLater {
                    // Later is at any time: see `claim`.
                    withdrawal.attempts = withdrawal.attempts.saturating_sub(1);
                }
                self.fence(index);
            }
            Settlement::Park => {
                withdrawal.parked = true;
                self.fence(index);
            }
            Settlement::Wait | Settlement::Confirm | Settlement::Fail => {}
        }
        Ok(())
    }
}

fn small(index: usize) -> u8 {
    u8::try_from(index).expect("two withdrawals, a few transactions")
}
