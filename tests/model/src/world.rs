//! One state of the model: the chain and the nodes as they really are, what the database has on file, and what each worker
//! is about to do. Small numbers only, counted from the oldest block that still matters (see `canonical`).

use arrayvec::ArrayVec;
use sluice_core::block::{Receipt, ReceiptVerdict};
use sluice_core::broadcast::BroadcastCode;
use sluice_core::chain::{ChainTime, Slot};
use sluice_core::state::State;

/// Time passes in ticks of 30 s: half a slot. A block is stamped with a whole tick; a tick without a block is a run of
/// missed slots.
pub const TICK_MS: i64 = 30_000;

/// From an envelope's reference to its expiration: one slot. Without missed slots there are then two blocks that may hold
/// it, and the second is the one stamped exactly at its expiration, which the parent rule still allows.
pub const TIME_TO_LIVE: u8 = 2;

/// How many transactions of one withdrawal may be remembered at once. Sound rules need two, broken ones some more; a claim
/// that would need another is not explored.
pub const MOST_TRANSACTIONS: usize = 4;

/// The most blocks between the oldest that matters and the head.
pub const MOST_BLOCKS: usize = 24;

/// A tick as the block header states it.
#[must_use]
pub fn at(tick: u8) -> ChainTime {
    ChainTime(i64::from(tick) * TICK_MS)
}

/// The slot of a tick.
#[must_use]
pub fn slot(tick: u8) -> Slot {
    at(tick).slot()
}

/// How the chain ran a transaction: one receipt of each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The token moved.
    Success,
    /// It did not, and might another time.
    OutOfEnergy,
    /// It did not, and will not.
    Revert,
    /// The receipt does not say; the token may have moved.
    Unknown,
}

impl Outcome {
    /// As the block holds it.
    #[must_use]
    pub const fn receipt(self) -> Receipt {
        match self {
            Self::Success => Receipt::Success,
            Self::OutOfEnergy => Receipt::OutOfEnergy,
            Self::Revert => Receipt::Revert,
            Self::Unknown => Receipt::Default,
        }
    }

    /// Whether the token may have moved.
    #[must_use]
    pub fn may_have_moved(self) -> bool {
        match self.receipt().verdict() {
            ReceiptVerdict::Success | ReceiptVerdict::Undecided => true,
            ReceiptVerdict::Transient | ReceiptVerdict::Failed => false,
        }
    }
}

/// What a node answers: for each verdict one code at least, and the two that are most easily believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// `SUCCESS`.
    Success,
    /// `DUP_TRANSACTION_ERROR`.
    Dup,
    /// `TRANSACTION_EXPIRATION_ERROR`.
    Expired,
    /// `SERVER_BUSY`.
    Busy,
    /// None, or none that is one.
    Nothing,
}

impl Answer {
    /// As a worker reports it.
    #[must_use]
    pub fn code(self) -> BroadcastCode {
        match self {
            Self::Success => BroadcastCode::Success,
            Self::Dup => BroadcastCode::DupTransactionError,
            Self::Expired => BroadcastCode::TransactionExpirationError,
            Self::Busy => BroadcastCode::ServerBusy,
            Self::Nothing => BroadcastCode::NoAnswer,
        }
    }
}

/// Where a transaction stands on a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inclusion {
    /// The block's height.
    pub height: u8,
    /// How it ran.
    pub outcome: Outcome,
}

/// A fate on file. That of an included one is in its payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FiledFate {
    /// Swept.
    Dead,
    /// Matched.
    Included,
}

/// A transaction that somebody built for a withdrawal: its bytes, where they are, and the envelope on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transaction {
    /// Height of the block referred to. With its time it stands for the txid: the bytes are a function of the withdrawal
    /// and of that block.
    pub reference: u8,
    /// That block's tick.
    pub built_at: u8,
    /// The expiration, in ticks.
    pub expiration: u8,
    /// The block referred to was forked away: no chain can hold it any more.
    pub void: bool,
    /// Signed bytes have left, to whatever node: any node may have them, or get them from another, at any time.
    pub wire: bool,
    /// Which nodes' pools hold it, a bit each.
    pub pools: u8,
    /// On the chain as it now is, solid or not.
    pub included: Option<Inclusion>,
    /// Whether the envelope is on file.
    pub filed: bool,
    /// Whether its signature is on file.
    pub signed: bool,
    /// What a followed block showed.
    pub payment: Option<Inclusion>,
    /// Its fate on file.
    pub fate: Option<FiledFate>,
}

impl Transaction {
    /// Fresh bytes, seen by nobody but their builder.
    #[must_use]
    pub const fn new(reference: u8, built_at: u8) -> Self {
        Self {
            reference,
            built_at,
            expiration: built_at + TIME_TO_LIVE,
            void: false,
            wire: false,
            pools: 0,
            included: None,
            filed: false,
            signed: false,
            payment: None,
            fate: None,
        }
    }

    /// Whether all that is left is that it was built once, and is spent or undecided for ever.
    #[must_use]
    pub const fn is_remains(&self) -> bool {
        self.expiration == 0
    }

    /// Whether the envelope is on file without a fate.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.filed && self.fate.is_none()
    }
}

/// A withdrawal: its row, and its transactions in the order built.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Withdrawal {
    /// Where it stands.
    pub state: State,
    /// Envelopes built that count as attempts.
    pub attempts: u8,
    /// Whether a node took the newest envelope, as far as anybody recorded it.
    pub accepted: bool,
    /// The newest followed block's tick when it was last sent, as far as anybody recorded it.
    pub sent: Option<u8>,
    /// Left to a person: no due time.
    pub parked: bool,
    /// A person wants it to end.
    pub cancelled: bool,
    /// The followed block at which a success is deep enough.
    pub deep_at: Option<u8>,
    /// Its settlement was refused, and is tried again with the next block.
    pub unsettled: bool,
    /// Solid successes of transactions that are forgotten.
    pub paid: u8,
    /// The transactions that still matter.
    pub transactions: ArrayVec<Transaction, MOST_TRANSACTIONS>,
}

impl Withdrawal {
    /// As a client submits it.
    #[must_use]
    pub fn requested() -> Self {
        Self {
            state: State::Requested,
            attempts: 0,
            accepted: false,
            sent: None,
            parked: false,
            cancelled: false,
            deep_at: None,
            unsettled: false,
            paid: 0,
            transactions: ArrayVec::new(),
        }
    }

    /// Where the newest envelope on file is among the transactions.
    #[must_use]
    pub fn newest(&self) -> Option<usize> {
        self.transactions
            .iter()
            .rposition(|transaction| transaction.filed)
    }
}

/// What a worker does next for its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Ask the signer.
    Sign,
    /// Record the signature.
    RecordSignature,
    /// Send the bytes.
    Send,
    /// Record this answer.
    RecordAnswer(Answer),
}

/// A claim under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// Which withdrawal.
    pub withdrawal: u8,
    /// Which of its transactions.
    pub transaction: u8,
    /// Whether its fencing token is still the row's. A stale one never becomes the row's again: tokens only rise.
    pub current: bool,
    /// What comes next.
    pub step: Step,
}

/// What must never happen and leaves no other trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Noted {
    /// A write under a stale token changed something.
    pub fenced_write: bool,
    /// Bytes left before the intent was on file.
    pub sent_unannounced: bool,
    /// A function of sluice's asked for what the guard refuses.
    pub refused: bool,
}

/// One state of everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// The ticks of the blocks, by height: those below `solid` for ever, those above until a fork.
    pub blocks: ArrayVec<u8, MOST_BLOCKS>,
    /// Height of the newest irreversible block.
    pub solid: u8,
    /// Height of the newest block on file.
    pub followed: u8,
    /// The withdrawals.
    pub withdrawals: ArrayVec<Withdrawal, 2>,
    /// The workers, a claim each at most.
    pub workers: ArrayVec<Option<Task>, 2>,
    /// What left no other trace.
    pub noted: Noted,
}

impl World {
    /// One followed block, and nothing done yet.
    #[must_use]
    pub fn beginning(withdrawals: usize, workers: usize) -> Self {
        Self {
            blocks: [TIME_TO_LIVE].into_iter().collect(),
            solid: 0,
            followed: 0,
            withdrawals: (0..withdrawals).map(|_| Withdrawal::requested()).collect(),
            workers: (0..workers).map(|_| None).collect(),
            noted: Noted::default(),
        }
    }

    /// Height of the newest block.
    #[must_use]
    pub fn head(&self) -> u8 {
        u8::try_from(self.blocks.len() - 1).expect("there is a block, and few")
    }

    /// The tick of a block.
    #[must_use]
    pub fn tick(&self, height: u8) -> u8 {
        self.blocks[usize::from(height)]
    }

    /// The tick of the newest block on file: chain time, as the database knows it.
    #[must_use]
    pub fn tip(&self) -> u8 {
        self.tick(self.followed)
    }

    /// The first followed block of the newest one's slot: what is built now refers to it.
    #[must_use]
    pub fn reference(&self) -> u8 {
        (0..=self.followed)
            .find(|height| slot(self.tick(*height)) == slot(self.tip()))
            .expect("the newest followed block is in its own slot")
    }

    /// Whether no chain that may still come about holds the transaction anew: it is solid already, its reference is gone,
    /// or every block from now on has a parent at or past its expiration.
    #[must_use]
    pub fn is_out_of_reach(&self, transaction: &Transaction) -> bool {
        transaction.void
            || match transaction.included {
                Some(inclusion) => inclusion.height <= self.solid,
                None => self.tick(self.solid) >= transaction.expiration,
            }
    }

    /// Whether the transaction can still pay, or has paid on the chain as it is.
    #[must_use]
    pub fn can_pay_or_has(&self, transaction: &Transaction) -> bool {
        transaction
            .included
            .is_some_and(|inclusion| inclusion.outcome.may_have_moved())
            || !self.is_out_of_reach(transaction)
    }

    /// Whether nothing is left to be done for a withdrawal: it is over, or a receipt that says nothing left it to a person.
    #[must_use]
    pub fn has_ended(&self, withdrawal: &Withdrawal) -> bool {
        withdrawal.state.is_terminal()
            || withdrawal.parked
                && withdrawal.transactions.iter().any(|transaction| {
                    transaction
                        .payment
                        .is_some_and(|payment| payment.outcome == Outcome::Unknown)
                })
    }
}
