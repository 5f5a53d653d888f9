//! The decisions of `sluice-core`, as functions that set-based SQL calls for each row. SQL gathers the facts and writes the
//! outcome; nothing is decided in between.

use crate::pg::errors::{Code, OrRaise, raise};
use pgrx::prelude::*;
use sluice_core::block::Receipt;
use sluice_core::chain::{ChainTime, Slot};
use sluice_core::decision::{
    self, Brake, BuildFacts, Coverage, EnvelopeFacts, Fate, Inclusion, NextStep, Progress,
    Settlement,
};
use sluice_core::state::{State, TRANSITIONS};

/// A state by its label.
pub fn state_of(label: &str) -> State {
    label.parse().or_raise(Code::BadArgument, "state")
}

/// The chart.
#[pg_extern(name = "chart", immutable, parallel_safe)]
fn chart() -> TableIterator<
    'static,
    (
        name!(from_state, String),
        name!(to_state, String),
        name!(stars, String),
    ),
> {
    TableIterator::new(TRANSITIONS.into_iter().map(|row| {
        (
            row.from.name().to_owned(),
            row.to.name().to_owned(),
            row.proof.stars().to_owned(),
        )
    }))
}

/// Whether the chart has the step.
#[pg_extern(immutable, strict, parallel_safe)]
fn chart_has(from_state: &str, to_state: &str) -> bool {
    state_of(from_state)
        .transition_to(state_of(to_state))
        .is_some()
}

/// The mark of a step: which proof it asks for. Empty for a remark, and for a step that asks for none.
#[pg_extern(immutable, strict, parallel_safe)]
fn stars_of(from_state: &str, to_state: &str) -> &'static str {
    state_of(from_state)
        .transition_to(state_of(to_state))
        .map_or("", |row| row.proof.stars())
}

/// Whether the state is terminal.
#[pg_extern(immutable, strict, parallel_safe)]
fn is_terminal(state: &str) -> bool {
    state_of(state).is_terminal()
}

/// The shortest legal path between two states, without the one left.
#[pg_extern(immutable, strict, parallel_safe)]
fn shortest_path(from_state: &str, to_state: &str) -> Vec<String> {
    let (from, to) = (state_of(from_state), state_of(to_state));
    let Some(path) = from.path_to(to) else {
        raise(
            Code::IllegalStep,
            format!("the chart has no way from {from} to {to}"),
            "",
        );
    };
    path.into_iter()
        .map(|state| state.name().to_owned())
        .collect()
}

/// What a worker may do next: `build`, `sign`, `send` or `wait`. The envelope's arguments are NULL where there is none.
#[expect(
    clippy::too_many_arguments,
    reason = "each argument is one fact of the row"
)]
#[pg_extern(immutable, parallel_safe)]
fn next_step(
    state: &str,
    attempts: i32,
    envelope_attempt: Option<i32>,
    expiration_ms: Option<i64>,
    live: Option<bool>,
    spent: Option<bool>,
    signed: Option<bool>,
    sent_ms: Option<i64>,
    tip_ms: Option<i64>,
    resend_ms: i64,
    paused: bool,
    cancelled: bool,
) -> &'static str {
    let envelope = envelope_attempt
        .zip(expiration_ms)
        .map(|(attempt, expiration)| EnvelopeFacts {
            attempt,
            live: live == Some(true),
            spent: spent == Some(true),
            signed: signed == Some(true),
            expiration: ChainTime(expiration),
            last_sent: sent_ms.map(ChainTime),
        });
    let step: NextStep = decision::next_step(
        state_of(state),
        attempts,
        envelope.as_ref(),
        tip_ms.map(ChainTime),
        resend_ms,
        match (cancelled, paused) {
            (true, _) => Brake::Cancelled,
            (false, true) => Brake::Paused,
            (false, false) => Brake::Free,
        },
    );
    step.name()
}

/// What forbids building a new envelope, or NULL where nothing does.
#[pg_extern(immutable, parallel_safe)]
fn build_hold(
    all_spent: bool,
    paused: bool,
    tip_ms: Option<i64>,
    now_ms: i64,
    freshness_ms: i64,
    last_slot: Option<i64>,
    room: i64,
) -> Option<&'static str> {
    decision::may_build(&BuildFacts {
        all_spent,
        paused,
        tip: tip_ms.map(ChainTime),
        now_ms,
        freshness_ms,
        last_slot: last_slot.map(Slot),
        room,
    })
    .err()
    .map(decision::Hold::name)
}

/// A receipt by the name that block.rs stored.
fn receipt_of(name: &str) -> Receipt {
    Receipt::from_name(name).unwrap_or_else(|| {
        raise(
            Code::BadArgument,
            format!("receipt: \"{name}\" is no result of a contract"),
            "",
        )
    })
}

fn inclusion_of(block: Option<i64>, receipt: Option<&str>) -> Option<Inclusion> {
    block.map(|block| Inclusion {
        block,
        receipt: receipt_of(receipt.unwrap_or_default()),
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "each argument is one fact of the followed chain"
)]
fn fate_of(
    expiration_ms: i64,
    reference: i64,
    first_followed: Option<i64>,
    last_followed: Option<i64>,
    closing: Option<i64>,
    closing_ms: Option<i64>,
    margin: i64,
    included_in: Option<i64>,
    receipt: Option<&str>,
) -> Fate {
    let inclusion = inclusion_of(included_in, receipt);
    let (Some(first), Some(last)) = (first_followed, last_followed) else {
        return inclusion.map_or(Fate::InFlight, Fate::Included);
    };
    let closing = closing
        .zip(closing_ms)
        .map(|(number, ms)| (number, ChainTime(ms)));
    decision::fate(
        ChainTime(expiration_ms),
        &Coverage {
            first,
            last,
            reference,
            closing,
            margin,
        },
        inclusion,
    )
}

/// What has become of an envelope: `in flight`, `included` or `dead`.
#[expect(
    clippy::too_many_arguments,
    reason = "each argument is one fact of the followed chain"
)]
#[pg_extern(immutable, parallel_safe)]
fn envelope_fate(
    expiration_ms: i64,
    reference: i64,
    first_followed: Option<i64>,
    last_followed: Option<i64>,
    closing: Option<i64>,
    closing_ms: Option<i64>,
    margin: i64,
    included_in: Option<i64>,
    receipt: Option<&str>,
) -> &'static str {
    fate_of(
        expiration_ms,
        reference,
        first_followed,
        last_followed,
        closing,
        closing_ms,
        margin,
        included_in,
        receipt,
    )
    .name()
}

/// What follows from a fate on file: `wait`, `confirm`, `rebuild`, `rebuild_later`, `fail` or `park`.
#[expect(
    clippy::too_many_arguments,
    reason = "each argument is one fact of the row"
)]
#[pg_extern(immutable, parallel_safe)]
fn settlement(
    dead: bool,
    included_in: Option<i64>,
    receipt: Option<&str>,
    tip: i64,
    depth: i64,
    attempts_made: i32,
    attempts_allowed: i32,
    accepted: bool,
    cancelled: bool,
) -> &'static str {
    let fate = match inclusion_of(included_in, receipt) {
        Some(inclusion) => Fate::Included(inclusion),
        None if dead => Fate::Dead {
            first: 0,
            last: tip,
        },
        None => Fate::InFlight,
    };
    let outcome: Settlement = decision::settle(
        &fate,
        &Progress {
            tip,
            depth,
            attempts_made,
            attempts_allowed,
            accepted,
            cancelled,
        },
    );
    outcome.name()
}

/// Whether an included transaction's receipt says that it paid nothing and never will.
#[pg_extern(immutable, strict, parallel_safe)]
fn receipt_failed(receipt: &str) -> bool {
    decision::is_spent(&Fate::Included(Inclusion {
        block: 0,
        receipt: receipt_of(receipt),
    }))
}

/// How long a withdrawal waits after this many envelopes that no node ever took, in milliseconds.
#[pg_extern(immutable, strict, parallel_safe)]
fn backoff_ms(deaths: i32) -> i64 {
    decision::backoff_ms(deaths)
}

/// The longest that anything may be due in the future, in milliseconds.
#[pg_extern(immutable, parallel_safe)]
fn longest_wait_ms() -> i64 {
    decision::LONGEST_WAIT_MS
}

/// The longest time to live of an envelope, in milliseconds.
#[pg_extern(immutable, parallel_safe)]
fn max_time_to_live_ms() -> i64 {
    sluice_core::chain::MAX_TIME_TO_LIVE_MS
}

/// The slot of a moment of chain time.
#[pg_extern(immutable, strict, parallel_safe)]
fn slot_of(chain_ms: i64) -> i64 {
    ChainTime(chain_ms).slot().0
}

/// When a slot begins, in milliseconds of chain time.
#[pg_extern(immutable, strict, parallel_safe)]
fn slot_begins_ms(slot: i64) -> i64 {
    slot.saturating_mul(sluice_core::chain::SLOT_MS)
}

/// Whether whoever offers this token and expects this state may write to the row.
#[pg_extern(immutable, strict, parallel_safe)]
fn owns(fencing_token: i64, expected: &str, row_token: i64, row_state: &str) -> bool {
    decision::owns(
        fencing_token,
        state_of(expected),
        row_token,
        state_of(row_state),
    )
}
