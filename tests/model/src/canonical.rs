//! One representative for all states that differ in nothing a rule or the network could ever see: older blocks and spent
//! transactions are forgotten, times and heights are counted from the oldest block that matters, and workers, nodes and
//! withdrawals, which have no names, are put in order. So a chain of any length has finitely many states.

use crate::world::{FiledFate, Inclusion, Outcome, TIME_TO_LIVE, Transaction, World, slot};

impl World {
    /// The representative of this state. `depth`: how many followed blocks a success needs on top.
    #[must_use]
    pub fn canonical(mut self, depth: u8) -> Self {
        self.dismiss_workers();
        self.forget_transactions(depth);
        self.saturate();
        self.rebase();
        self.put_in_order();
        self
    }

    /// A worker whose every further step would find nothing to change is idle: its bytes are out of reach of the network, and
    /// its row is over or has a newer envelope.
    fn dismiss_workers(&mut self) {
        for index in 0..self.workers.len() {
            let Some(task) = self.workers[index] else {
                continue;
            };
            let withdrawal = &self.withdrawals[usize::from(task.withdrawal)];
            let transaction = &withdrawal.transactions[usize::from(task.transaction)];
            let passed_over = withdrawal.state.is_terminal()
                || withdrawal
                    .newest()
                    .is_some_and(|newest| newest > usize::from(task.transaction))
                    && transaction.filed;
            if passed_over && self.is_out_of_reach(transaction) {
                self.workers[index] = None;
            }
        }
    }

    fn forget_transactions(&mut self, depth: u8) {
        for index in 0..self.withdrawals.len() {
            let mut place = 0;
            while place < self.withdrawals[index].transactions.len() {
                if self.is_forgettable(index, place, depth) {
                    self.forget(index, place);
                } else {
                    place += 1;
                }
            }
            if self.withdrawals[index].state.is_terminal() {
                let withdrawal = &mut self.withdrawals[index];
                (withdrawal.attempts, withdrawal.accepted, withdrawal.sent) = (0, false, None);
                (withdrawal.deep_at, withdrawal.unsettled) = (None, false);
                withdrawal.cancelled = false;
            }
        }
    }

    fn is_forgettable(&self, index: usize, place: usize, depth: u8) -> bool {
        let withdrawal = &self.withdrawals[index];
        let transaction = &withdrawal.transactions[place];
        let in_hand = self.workers.iter().flatten().any(|task| {
            (usize::from(task.withdrawal), usize::from(task.transaction)) == (index, place)
        });
        if in_hand || !self.is_out_of_reach(transaction) {
            return false;
        }
        // A success counts until it is seen at its depth.
        if transaction.included.is_some_and(|inclusion| {
            inclusion.outcome.may_have_moved()
                && (inclusion.outcome != Outcome::Success
                    || inclusion.height + depth > self.followed)
        }) {
            return false;
        }
        if withdrawal.state.is_terminal() {
            return true;
        }
        if !transaction.filed {
            return true;
        }
        transaction.fate.is_some() && withdrawal.newest() != Some(place)
    }

    fn forget(&mut self, index: usize, place: usize) {
        let withdrawal = &mut self.withdrawals[index];
        let gone = withdrawal.transactions.remove(place);
        if gone
            .included
            .is_some_and(|inclusion| inclusion.outcome == Outcome::Success)
        {
            withdrawal.paid = (withdrawal.paid + 1).min(2);
        }
        for task in self.workers.iter_mut().flatten() {
            if usize::from(task.withdrawal) == index && usize::from(task.transaction) > place {
                task.transaction -= 1;
            }
        }
    }

    /// What is only ever compared with the present is kept no finer than the comparison needs.
    fn saturate(&mut self) {
        let tip = self.tip();
        for index in 0..self.withdrawals.len() {
            for place in 0..self.withdrawals[index].transactions.len() {
                let transaction = self.withdrawals[index].transactions[place];
                if self.is_out_of_reach(&transaction) {
                    self.withdrawals[index].transactions[place] = out_of_reach(transaction, tip);
                }
            }
            let withdrawal = &mut self.withdrawals[index];
            withdrawal.sent = withdrawal.sent.map(|sent| sent.max(tip.saturating_sub(1)));
        }
    }

    fn rebase(&mut self) {
        let oldest = self
            .withdrawals
            .iter()
            .flat_map(|withdrawal| &withdrawal.transactions)
            .filter(|transaction| !transaction.is_remains())
            .flat_map(|transaction| {
                [
                    Some(transaction.reference),
                    transaction.included.map(|inclusion| inclusion.height),
                    transaction.payment.map(|payment| payment.height),
                ]
            })
            .flatten()
            .chain([self.reference(), self.solid])
            .min()
            .unwrap_or(0);
        self.blocks.drain(..usize::from(oldest));
        self.solid -= oldest;
        self.followed = self.followed.saturating_sub(oldest);
        // By whole slots, and such that what was built a slot ago still has a time.
        let since = (self.blocks[0] & !1).saturating_sub(TIME_TO_LIVE);
        for tick in &mut self.blocks {
            *tick -= since;
        }
        for withdrawal in &mut self.withdrawals {
            withdrawal.sent = withdrawal.sent.map(|sent| sent - since);
            withdrawal.deep_at = withdrawal
                .deep_at
                .map(|height| height.saturating_sub(oldest));
            for transaction in &mut withdrawal.transactions {
                shift(transaction, oldest, since);
            }
        }
    }

    fn put_in_order(&mut self) {
        self.order_nodes();
        self.workers.sort_unstable();
        if self.withdrawals.len() == 2 && self.withdrawals[1] <= self.withdrawals[0] {
            let mut exchanged = self.workers.clone();
            for task in exchanged.iter_mut().flatten() {
                task.withdrawal = 1 - task.withdrawal;
            }
            exchanged.sort_unstable();
            if self.withdrawals[1] < self.withdrawals[0] || exchanged < self.workers {
                self.withdrawals.swap(0, 1);
                self.workers = exchanged;
            }
        }
    }

    fn order_nodes(&mut self) {
        let holds = |world: &Self, node: u8| -> Vec<bool> {
            world
                .withdrawals
                .iter()
                .flat_map(|withdrawal| &withdrawal.transactions)
                .map(|transaction| transaction.pools >> node & 1 == 1)
                .collect()
        };
        if self.any_pool() && holds(self, 0) < holds(self, 1) {
            for transaction in self
                .withdrawals
                .iter_mut()
                .flat_map(|withdrawal| &mut withdrawal.transactions)
            {
                transaction.pools = (transaction.pools & 1) << 1 | transaction.pools >> 1;
            }
        }
    }

    fn any_pool(&self) -> bool {
        self.withdrawals
            .iter()
            .flat_map(|withdrawal| &withdrawal.transactions)
            .any(|transaction| transaction.pools != 0)
    }
}

/// What is left to be said of a transaction that the network is done with.
fn out_of_reach(transaction: Transaction, tip: u8) -> Transaction {
    if is_spent_for_good(&transaction) {
        return remains(&transaction, tip);
    }
    if transaction.fate == Some(FiledFate::Included)
        && transaction
            .payment
            .is_some_and(|payment| payment.outcome == Outcome::Unknown)
    {
        return undecided();
    }
    Transaction {
        wire: false,
        pools: 0,
        ..transaction
    }
}

/// An envelope whose receipt says nothing: for ever.
fn undecided() -> Transaction {
    let long_ago = Some(Inclusion {
        height: 0,
        outcome: Outcome::Unknown,
    });
    Transaction {
        filed: true,
        fate: Some(FiledFate::Included),
        included: long_ago,
        payment: long_ago,
        expiration: 0,
        ..Transaction::new(0, 0)
    }
}

/// Whether the newest envelope says no more than that it is spent, and when it was built.
fn is_spent_for_good(transaction: &Transaction) -> bool {
    let nothing_moved = |inclusion: Inclusion| !inclusion.outcome.may_have_moved();
    transaction.filed
        && transaction.included.is_none_or(nothing_moved)
        && match transaction.fate {
            Some(FiledFate::Dead) => true,
            Some(FiledFate::Included) => transaction.payment.is_some_and(nothing_moved),
            None => false,
        }
}

/// A spent envelope: dead, and built in this slot or before it.
fn remains(transaction: &Transaction, tip: u8) -> Transaction {
    let this_slot = tip & !1;
    Transaction {
        filed: true,
        fate: Some(FiledFate::Dead),
        expiration: 0,
        void: true,
        ..Transaction::new(
            0,
            if slot(transaction.built_at) == slot(tip) {
                this_slot
            } else {
                this_slot.saturating_sub(1)
            },
        )
    }
}

fn shift(transaction: &mut Transaction, heights: u8, ticks: u8) {
    transaction.reference = transaction.reference.saturating_sub(heights);
    transaction.built_at = transaction.built_at.saturating_sub(ticks);
    transaction.expiration = transaction.expiration.saturating_sub(ticks);
    for inclusion in [&mut transaction.included, &mut transaction.payment]
        .into_iter()
        .flatten()
    {
        inclusion.height = inclusion.height.saturating_sub(heights);
    }
}
