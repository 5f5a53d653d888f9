//! The decisions: what may be built, what a withdrawal's next step is, what has become of an envelope, what follows from
//! it, and who owns a row. Each is a pure function of facts on file; SQL gathers the facts, set-based, and writes what
//! comes back. Nothing a node says appears here except as a reason to wait: only followed blocks decide.

use crate::block::{Receipt, ReceiptVerdict};
use crate::chain::{ChainTime, Slot};
use crate::state::State;

/// What keeps a withdrawal from being built, or its envelope from being signed or sent for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// No block is followed yet, or the newest is older than the freshness that the settings ask for.
    ChainStale,
    /// Somebody paused building: everything, the asset, or the wallet.
    Paused,
    /// No wallet has room for one more live envelope.
    WindowFull,
    /// The withdrawal's last envelope was built in this slot or a later one: equal bytes would be the same transaction.
    SlotNotLater,
    /// An envelope of the withdrawal is live, or paid it.
    EnvelopeNotSpent,
}

impl Hold {
    /// The name that SQL shows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChainStale => "chain_stale",
            Self::Paused => "paused",
            Self::WindowFull => "window_full",
            Self::SlotNotLater => "slot_not_later",
            Self::EnvelopeNotSpent => "envelope_not_spent",
        }
    }
}

/// The facts that `may_build` asks for.
#[derive(Debug, Clone, Copy)]
pub struct BuildFacts {
    /// Whether every envelope of the withdrawal is dead, or included with a failed result.
    pub all_spent: bool,
    /// Whether everything, the asset or the wallet is paused.
    pub paused: bool,
    /// Time of the newest followed block, if any.
    pub tip: Option<ChainTime>,
    /// The database's clock, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// How old the newest followed block may be. One that is ahead of the clock is fresh.
    pub freshness_ms: i64,
    /// The slot of the withdrawal's last envelope, if it had one.
    pub last_slot: Option<Slot>,
    /// Live envelopes that the wallet can still carry.
    pub room: i64,
}

/// Whether a new envelope may be built now; otherwise the first thing that forbids it.
pub fn may_build(facts: &BuildFacts) -> Result<Slot, Hold> {
    if !facts.all_spent {
        return Err(Hold::EnvelopeNotSpent);
    }
    if facts.paused {
        return Err(Hold::Paused);
    }
    let Some(tip) = facts.tip else {
        return Err(Hold::ChainStale);
    };
    if tip.0 < facts.now_ms.saturating_sub(facts.freshness_ms) {
        return Err(Hold::ChainStale);
    }
    if facts.last_slot.is_some_and(|last| tip.slot() <= last) {
        return Err(Hold::SlotNotLater);
    }
    if facts.room <= 0 {
        return Err(Hold::WindowFull);
    }
    Ok(tip.slot())
}

/// What stops a withdrawal's envelope from being signed and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brake {
    /// Nothing.
    Free,
    /// A pause: what has never left is not signed, and not sent. What may have left is sent again, since the sooner it lands the
    /// sooner it is over.
    Paused,
    /// A person wants it to end: nothing is signed or sent any more. Whether it ends unpaid is the chain's to say.
    Cancelled,
}

/// What a claim does with a row that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Build an envelope, if `may_build` allows it.
    Build,
    /// Offer the live envelope's digest to a signer: the same one, however often it was offered before.
    Sign,
    /// Send the live envelope's bytes: the same ones, however often they were sent before.
    Send,
    /// Nothing that a worker could do: blocks will move it, or a person.
    Wait,
}

impl NextStep {
    /// The name that SQL shows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Sign => "sign",
            Self::Send => "send",
            Self::Wait => "wait",
        }
    }
}

/// A withdrawal's newest envelope, as far as its next step depends on it.
#[derive(Debug, Clone, Copy)]
pub struct EnvelopeFacts {
    /// Which of the withdrawal's envelopes it is, counted from 1.
    pub attempt: i32,
    /// Whether no fate is on file.
    pub live: bool,
    /// Whether it is dead, or included with a failed result: it can pay no more.
    pub spent: bool,
    /// Whether its signature is on file.
    pub signed: bool,
    /// Its expiration.
    pub expiration: ChainTime,
    /// Chain time when it was last sent, as far as anybody recorded it.
    pub last_sent: Option<ChainTime>,
}

/// What a worker may do next for a withdrawal.
///
/// `attempts` is how many envelopes the row says were built. Where the newest on file is another, a dump is being restored, or
/// worse: nothing is done for it. `resend_ms` is the chain time between two sends of the same bytes. An envelope at or past its
/// expiration is neither signed nor sent: the block that proves it dead, or pays it, is on its way.
#[must_use]
pub fn next_step(
    state: State,
    attempts: i32,
    envelope: Option<&EnvelopeFacts>,
    tip: Option<ChainTime>,
    resend_ms: i64,
    brake: Brake,
) -> NextStep {
    if envelope.map_or(0, |envelope| envelope.attempt) != attempts {
        return NextStep::Wait;
    }
    match state {
        State::Requested | State::Validated => NextStep::Build,
        State::Signing => match envelope {
            None => NextStep::Build,
            Some(envelope) if envelope.spent => NextStep::Build,
            Some(envelope) if envelope.live && brake == Brake::Free && !is_over(envelope, tip) => {
                NextStep::Sign
            }
            Some(_) => NextStep::Wait,
        },
        State::Signed | State::Broadcasting | State::Broadcast => match envelope {
            Some(envelope) if envelope.live && envelope.signed && !is_over(envelope, tip) => {
                match (brake, envelope.last_sent, tip) {
                    (Brake::Cancelled, _, _) | (Brake::Paused, None, _) => NextStep::Wait,
                    (_, Some(sent), Some(tip)) if tip.0.saturating_sub(sent.0) < resend_ms => {
                        NextStep::Wait
                    }
                    (Brake::Free | Brake::Paused, _, _) => NextStep::Send,
                }
            }
            Some(_) | None => NextStep::Wait,
        },
        State::Confirmed | State::Failed | State::Rejected => NextStep::Wait,
    }
}

fn is_over(envelope: &EnvelopeFacts, tip: Option<ChainTime>) -> bool {
    tip.is_some_and(|tip| tip >= envelope.expiration)
}

/// Where a transaction stands in a followed block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inclusion {
    /// The block's number.
    pub block: i64,
    /// What the chain says the transaction did.
    pub receipt: Receipt,
}

/// The followed blocks, as seen from one envelope.
#[derive(Debug, Clone, Copy)]
pub struct Coverage {
    /// The first block ever followed. From it on there is no gap.
    pub first: i64,
    /// The newest block that enough observers have filed.
    pub last: i64,
    /// The block that the envelope refers to: no block at or before it can hold the envelope.
    pub reference: i64,
    /// The first followed block stamped at or past the expiration: number and time.
    pub closing: Option<(i64, ChainTime)>,
    /// Followed blocks beyond the closing one before a death counts.
    pub margin: i64,
}

/// What has become of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It may still land.
    InFlight,
    /// A followed block holds it.
    Included(Inclusion),
    /// No block holds it and none can: from the reference to the closing block all were read.
    Dead {
        /// The first block of the coverage: the one referred to.
        first: i64,
        /// The last: the first stamped at or past the expiration.
        last: i64,
    },
}

impl Fate {
    /// The name that SQL stores and shows.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InFlight => "in flight",
            Self::Included(_) => "included",
            Self::Dead { .. } => "dead",
        }
    }
}

/// What has become of an envelope with this expiration.
///
/// java-tron compares a transaction's expiration with the timestamp of the *parent* of the block that would hold it
/// (`Manager.java`, `validateCommon`), so the first block stamped at or past the expiration may still hold it and no later one can.
/// An inclusion on file ends the question, however shallow the block.
#[must_use]
pub fn fate(expiration: ChainTime, coverage: &Coverage, inclusion: Option<Inclusion>) -> Fate {
    if let Some(inclusion) = inclusion {
        return Fate::Included(inclusion);
    }
    match coverage.closing {
        Some((closing, time))
            if time >= expiration
                && closing > coverage.reference
                && coverage.first <= coverage.reference
                && closing.saturating_add(coverage.margin) <= coverage.last =>
        {
            Fate::Dead {
                first: coverage.reference,
                last: closing,
            }
        }
        Some(_) | None => Fate::InFlight,
    }
}

/// How far a withdrawal has come, as far as settling it depends on that.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The newest followed block.
    pub tip: i64,
    /// Followed blocks beyond the including one before a success confirms.
    pub depth: i64,
    /// Envelopes built that count as attempts, the one in question included.
    pub attempts_made: i32,
    /// How many the settings allow.
    pub attempts_allowed: i32,
    /// Whether any node said that it took the envelope (SUCCESS or DUP).
    pub accepted: bool,
    /// Whether a person wants it to end: then nothing is built anew.
    pub cancelled: bool,
}

/// What follows from an envelope's fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// Nothing yet: it is in flight, or paid and not deep enough.
    Wait,
    /// The chain paid it.
    Confirm,
    /// It will never be paid by this envelope: build anew, as one more attempt.
    Rebuild,
    /// The same, but no node ever took the envelope: build anew later, and do not count it.
    RebuildLater,
    /// It will never be paid by this envelope, and building anew would not help.
    Fail,
    /// The chain did not say what became of it: a person must look.
    Park,
}

impl Settlement {
    /// The name that SQL reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Confirm => "confirm",
            Self::Rebuild => "rebuild",
            Self::RebuildLater => "rebuild_later",
            Self::Fail => "fail",
            Self::Park => "park",
        }
    }
}

/// What follows from an envelope's fate.
#[must_use]
pub fn settle(fate: &Fate, progress: &Progress) -> Settlement {
    let another = if progress.cancelled {
        Settlement::Fail
    } else if progress.attempts_made < progress.attempts_allowed {
        Settlement::Rebuild
    } else {
        Settlement::Fail
    };
    match fate {
        Fate::InFlight => Settlement::Wait,
        Fate::Dead { .. } if !progress.accepted && !progress.cancelled => Settlement::RebuildLater,
        Fate::Dead { .. } => another,
        Fate::Included(inclusion) => match inclusion.receipt.verdict() {
            ReceiptVerdict::Success
                if progress.tip.saturating_sub(inclusion.block) >= progress.depth =>
            {
                Settlement::Confirm
            }
            ReceiptVerdict::Success => Settlement::Wait,
            ReceiptVerdict::Transient => another,
            ReceiptVerdict::Failed => Settlement::Fail,
            ReceiptVerdict::Undecided => Settlement::Park,
        },
    }
}

/// Whether an envelope with this fate can never pay: what the starred steps of the chart ask of every envelope.
#[must_use]
pub fn is_spent(fate: &Fate) -> bool {
    match fate {
        Fate::InFlight => false,
        Fate::Dead { .. } => true,
        Fate::Included(inclusion) => match inclusion.receipt.verdict() {
            ReceiptVerdict::Transient | ReceiptVerdict::Failed => true,
            ReceiptVerdict::Success | ReceiptVerdict::Undecided => false,
        },
    }
}

/// How long a withdrawal waits before it is built anew after its `deaths`-th envelope that no node ever took: five minutes,
/// doubling to an hour.
#[must_use]
pub const fn backoff_ms(deaths: i32) -> i64 {
    const FIRST_MS: i64 = 5 * 60 * 1000;
    const DOUBLINGS: i32 = 4;
    let doublings = if deaths < 1 { 0 } else { deaths - 1 };
    if doublings >= DOUBLINGS {
        LONGEST_WAIT_MS
    } else {
        FIRST_MS << doublings
    }
}

/// The longest that anything may be due in the future, a lease included. A due time further ahead than this was written by a
/// clock that had jumped, and counts as passed.
pub const LONGEST_WAIT_MS: i64 = 60 * 60 * 1000;

/// Whether whoever offers this token and expects this state may write to the row: the compare of every compare-and-swap.
#[must_use]
pub fn owns(token: i64, expected: State, row_token: i64, row_state: State) -> bool {
    token == row_token && expected == row_state
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRATION: ChainTime = ChainTime(300_000);

    fn covered(closing: Option<(i64, i64)>, last: i64, margin: i64) -> Coverage {
        Coverage {
            first: 10,
            last,
            reference: 10,
            closing: closing.map(|(number, ms)| (number, ChainTime(ms))),
            margin,
        }
    }

    fn included(receipt: Receipt) -> Fate {
        Fate::Included(Inclusion { block: 50, receipt })
    }

    const PROGRESS: Progress = Progress {
        tip: 60,
        depth: 10,
        attempts_made: 1,
        attempts_allowed: 5,
        accepted: true,
        cancelled: false,
    };

    #[test]
    fn an_envelope_is_dead_only_when_every_block_to_the_first_past_its_expiration_was_read() {
        assert_eq!(
            fate(EXPIRATION, &covered(None, 99, 0), None),
            Fate::InFlight
        );
        let closed = covered(Some((100, 300_000)), 100, 0);
        assert_eq!(
            fate(EXPIRATION, &closed, None),
            Fate::Dead {
                first: 10,
                last: 100
            }
        );
        assert_eq!(
            fate(EXPIRATION, &covered(Some((100, 299_999)), 100, 0), None),
            Fate::InFlight
        );
        assert_eq!(
            fate(EXPIRATION, &covered(Some((100, 300_000)), 99, 0), None),
            Fate::InFlight
        );
        assert_eq!(
            fate(
                EXPIRATION,
                &Coverage {
                    first: 11,
                    ..closed
                },
                None
            ),
            Fate::InFlight
        );
    }

    #[test]
    fn a_margin_asks_for_that_many_followed_blocks_beyond_the_closing_one() {
        assert_eq!(
            fate(EXPIRATION, &covered(Some((100, 300_000)), 102, 3), None),
            Fate::InFlight
        );
        assert_ne!(
            fate(EXPIRATION, &covered(Some((100, 300_000)), 103, 3), None),
            Fate::InFlight
        );
    }

    #[test]
    fn an_inclusion_on_file_is_never_swept() {
        let inclusion = Inclusion {
            block: 100,
            receipt: Receipt::Success,
        };
        let closed = covered(Some((100, 300_000)), 500, 0);
        assert_eq!(
            fate(EXPIRATION, &closed, Some(inclusion.clone())),
            Fate::Included(inclusion)
        );
    }

    #[test]
    fn a_success_confirms_at_its_depth_and_not_before() {
        assert_eq!(
            settle(&included(Receipt::Success), &PROGRESS),
            Settlement::Confirm
        );
        assert_eq!(
            settle(
                &included(Receipt::Success),
                &Progress {
                    tip: 59,
                    ..PROGRESS
                }
            ),
            Settlement::Wait
        );
    }

    #[test]
    fn running_out_of_energy_is_tried_again_and_a_revert_is_not() {
        assert_eq!(
            settle(&included(Receipt::OutOfEnergy), &PROGRESS),
            Settlement::Rebuild
        );
        let last = Progress {
            attempts_made: 5,
            ..PROGRESS
        };
        assert_eq!(
            settle(&included(Receipt::OutOfTime), &last),
            Settlement::Fail
        );
        assert_eq!(
            settle(&included(Receipt::Revert), &PROGRESS),
            Settlement::Fail
        );
    }

    #[test]
    fn a_result_that_says_nothing_decides_nothing() {
        for receipt in [
            Receipt::Absent,
            Receipt::Default,
            Receipt::Unknown,
            Receipt::Unlisted(77),
        ] {
            assert_eq!(
                settle(&included(receipt), &PROGRESS),
                Settlement::Park,
                "{receipt:?}"
            );
            assert!(!is_spent(&included(receipt)));
        }
    }

    #[test]
    fn an_envelope_no_node_ever_took_is_rebuilt_for_ever_and_never_failed() {
        let dead = Fate::Dead {
            first: 10,
            last: 100,
        };
        let never = Progress {
            attempts_made: 99,
            accepted: false,
            ..PROGRESS
        };
        assert_eq!(settle(&dead, &never), Settlement::RebuildLater);
        assert_eq!(settle(&dead, &PROGRESS), Settlement::Rebuild);
        assert_eq!(
            settle(
                &dead,
                &Progress {
                    attempts_made: 5,
                    ..PROGRESS
                }
            ),
            Settlement::Fail
        );
        let minutes: Vec<i64> = (1..=6).map(|n| backoff_ms(n) / 60_000).collect();
        assert_eq!(minutes, [5, 10, 20, 40, 60, 60]);
    }

    const BUILD: BuildFacts = BuildFacts {
        all_spent: true,
        paused: false,
        tip: Some(ChainTime(600_000)),
        now_ms: 600_000,
        freshness_ms: 90_000,
        last_slot: None,
        room: 1,
    };

    #[test]
    fn nothing_is_built_while_an_envelope_may_still_pay() {
        assert_eq!(may_build(&BUILD), Ok(Slot(10)));
        assert_eq!(
            may_build(&BuildFacts {
                all_spent: false,
                ..BUILD
            }),
            Err(Hold::EnvelopeNotSpent)
        );
    }

    #[test]
    fn nothing_is_built_on_a_stale_chain_and_a_chain_ahead_of_the_clock_is_fresh() {
        assert_eq!(
            may_build(&BuildFacts {
                now_ms: 690_001,
                ..BUILD
            }),
            Err(Hold::ChainStale)
        );
        assert!(
            may_build(&BuildFacts {
                now_ms: 690_000,
                ..BUILD
            })
            .is_ok()
        );
        assert!(may_build(&BuildFacts { now_ms: 0, ..BUILD }).is_ok());
        assert_eq!(
            may_build(&BuildFacts { tip: None, ..BUILD }),
            Err(Hold::ChainStale)
        );
    }

    #[test]
    fn a_rebuild_waits_for_a_later_slot() {
        assert_eq!(
            may_build(&BuildFacts {
                last_slot: Some(Slot(10)),
                ..BUILD
            }),
            Err(Hold::SlotNotLater)
        );
        assert!(
            may_build(&BuildFacts {
                last_slot: Some(Slot(9)),
                ..BUILD
            })
            .is_ok()
        );
        assert_eq!(
            may_build(&BuildFacts { room: 0, ..BUILD }),
            Err(Hold::WindowFull)
        );
    }

    const LIVE: EnvelopeFacts = EnvelopeFacts {
        attempt: 1,
        live: true,
        spent: false,
        signed: false,
        expiration: EXPIRATION,
        last_sent: None,
    };

    #[test]
    fn a_withdrawal_claimed_again_in_signing_is_offered_the_same_digest() {
        let tip = Some(ChainTime(1));
        assert_eq!(
            next_step(State::Signing, 1, Some(&LIVE), tip, 75_000, Brake::Free),
            NextStep::Sign
        );
        assert_eq!(
            next_step(
                State::Signing,
                1,
                Some(&LIVE),
                Some(EXPIRATION),
                75_000,
                Brake::Free
            ),
            NextStep::Wait
        );
        let spent = EnvelopeFacts {
            live: false,
            spent: true,
            ..LIVE
        };
        assert_eq!(
            next_step(State::Signing, 1, Some(&spent), tip, 75_000, Brake::Free),
            NextStep::Build
        );
        let undecided = EnvelopeFacts {
            live: false,
            spent: false,
            ..LIVE
        };
        assert_eq!(
            next_step(
                State::Signing,
                1,
                Some(&undecided),
                tip,
                75_000,
                Brake::Free
            ),
            NextStep::Wait
        );
    }

    #[test]
    fn nothing_is_done_while_the_envelope_that_the_row_speaks_of_is_not_on_file() {
        let tip = Some(ChainTime(1));
        for state in State::ALL {
            assert_eq!(
                next_step(state, 1, None, tip, 75_000, Brake::Free),
                NextStep::Wait,
                "{state}"
            );
            assert_eq!(
                next_step(state, 2, Some(&LIVE), tip, 75_000, Brake::Free),
                NextStep::Wait,
                "{state}"
            );
        }
        assert_eq!(
            next_step(State::Requested, 0, None, tip, 75_000, Brake::Free),
            NextStep::Build
        );
    }

    #[test]
    fn the_same_bytes_are_sent_again_at_an_interval_even_when_paused() {
        let sent = EnvelopeFacts {
            signed: true,
            last_sent: Some(ChainTime(0)),
            ..LIVE
        };
        for state in [State::Broadcasting, State::Broadcast] {
            let early = next_step(
                state,
                1,
                Some(&sent),
                Some(ChainTime(74_999)),
                75_000,
                Brake::Paused,
            );
            assert_eq!(early, NextStep::Wait);
            let due = next_step(
                state,
                1,
                Some(&sent),
                Some(ChainTime(75_000)),
                75_000,
                Brake::Paused,
            );
            assert_eq!(due, NextStep::Send);
        }
        let unsent = EnvelopeFacts {
            signed: true,
            ..LIVE
        };
        assert_eq!(
            next_step(
                State::Signed,
                1,
                Some(&unsent),
                Some(ChainTime(1)),
                75_000,
                Brake::Paused
            ),
            NextStep::Wait
        );
        assert_eq!(
            next_step(
                State::Signed,
                1,
                Some(&unsent),
                Some(ChainTime(1)),
                75_000,
                Brake::Free
            ),
            NextStep::Send
        );
        assert_eq!(
            next_step(
                State::Broadcast,
                1,
                Some(&sent),
                Some(EXPIRATION),
                75_000,
                Brake::Free
            ),
            NextStep::Wait
        );
    }

    #[test]
    fn only_the_token_and_the_state_on_the_row_own_it() {
        assert!(owns(3, State::Signing, 3, State::Signing));
        assert!(!owns(2, State::Signing, 3, State::Signing));
        assert!(!owns(3, State::Signed, 3, State::Signing));
    }

    #[test]
    fn what_is_to_end_is_not_signed_and_not_sent_again_and_not_built_anew() {
        let signed = EnvelopeFacts {
            signed: true,
            ..LIVE
        };
        let sent = EnvelopeFacts {
            last_sent: Some(ChainTime(0)),
            ..signed
        };
        let tip = Some(ChainTime(200_000));
        for (state, envelope) in [
            (State::Signing, LIVE),
            (State::Signed, signed),
            (State::Broadcasting, signed),
            (State::Broadcast, sent),
        ] {
            let step = |brake| next_step(state, 1, Some(&envelope), tip, 75_000, brake);
            assert_ne!(step(Brake::Free), NextStep::Wait, "{state}");
            assert_eq!(step(Brake::Cancelled), NextStep::Wait, "{state}");
        }
        let dead = Fate::Dead { first: 1, last: 50 };
        for accepted in [false, true] {
            let progress = Progress {
                accepted,
                cancelled: true,
                ..PROGRESS
            };
            assert_eq!(settle(&dead, &progress), Settlement::Fail);
            assert_eq!(
                settle(&included(Receipt::OutOfEnergy), &progress),
                Settlement::Fail
            );
            assert_eq!(
                settle(&included(Receipt::Success), &progress),
                Settlement::Confirm
            );
        }
    }
}
