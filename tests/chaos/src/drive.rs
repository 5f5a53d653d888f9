//! The one loop that drives a run: it moves the clocks, lets the schedule strike, hands out orders; then it ends the faults,
//! lets the rest drain, and calls the judge.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::judge::{Materials, Violation, judge};
use crate::kind::{Kind, Reach};
use crate::orders::{Given, orders};
use crate::progress::Progress;
use crate::schedule::strikes;
use crate::stage::Stage;
use crate::strikes::{count_expired_leases, logged};

/// Chain time of a step with faults: two blocks.
const STEP_S: u64 = 6;
/// Chain time of a step without.
const DRAIN_STEP_S: u64 = 15;
/// The same, while nothing is in flight and all that is left waits for a time to come.
const IDLE_STEP_S: u64 = 60;
/// How long the followers may take for a step before the clock moves on without them, and what they have at least.
const PACE: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(450));
/// The same, without faults: nobody is to be left behind.
const DRAIN_PACE: (Duration, Duration) = (Duration::from_millis(40), Duration::from_secs(2));
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How long the rest may take to drain, however much there is, and for each withdrawal.
const DRAIN: (Duration, Duration) = (Duration::from_secs(120), Duration::from_millis(100));
/// At the end the chain goes on for longer than any envelope lives: what could still land, lands.
const AFTERMATH_S: u64 = 420;

/// How a run ended.
pub struct Outcome {
    /// What does not hold.
    pub violations: Vec<Violation>,
    /// Kinds that were to strike and did not.
    pub missing: Vec<Kind>,
    /// Kinds that cannot strike here, and why.
    pub left_out: Vec<(Kind, &'static str)>,
    /// How often each kind struck.
    pub counts: BTreeMap<Kind, u64>,
    /// What looked wrong on the way.
    pub remarks: Vec<String>,
    /// What the judge read.
    pub materials: Materials,
    /// Chain time that passed, in seconds.
    pub chain_s: u64,
    /// How long it took.
    pub took: Duration,
    /// What the server logged.
    pub server_log: String,
}

impl Outcome {
    /// Whether nothing was found, and everything was tried.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.missing.is_empty() && self.remarks.is_empty()
    }
}

/// Runs it.
#[must_use]
pub fn run(config: &Config) -> Outcome {
    let began = Instant::now();
    let mut progress = Progress::begin();
    let mut stage = Stage::set(config);
    let first_ms = stage.network.now_ms();
    stage.begin();

    strike_and_submit(&mut stage, &mut progress);
    let counts = calm(&mut stage);
    drain(&mut stage, &mut progress);
    progress.end();

    finish(stage, counts, began, first_ms)
}

fn strike_and_submit(stage: &mut Stage, progress: &mut Progress) {
    let Config {
        seed,
        withdrawals,
        steps,
        server_wide,
        ..
    } = stage.config.clone();
    let mut waiting = orders(seed, withdrawals, steps).into_iter().peekable();
    for step in 0..steps {
        stage.put_back(step);
        while let Some(Given { client, order, .. }) = waiting.next_if(|given| given.step <= step) {
            stage.clients.give(client, order);
        }
        for strike in strikes(seed, step, server_wide) {
            stage.strike(step, strike);
        }
        stage.advance(STEP_S);
        count_expired_leases(stage);
        pace(stage, PACE);
        stage.look_around(step);
        progress.show("faults", step + 1, steps, &format!("seed {seed}"));
    }
    for Given { client, order, .. } in waiting {
        stage.clients.give(client, order);
    }
}

/// Gives the followers a moment, and waits for them as long as it is to be waited.
fn pace(stage: &mut Stage, (at_least, at_most): (Duration, Duration)) {
    let began = Instant::now();
    while began.elapsed() < at_most {
        sleep(BETWEEN_LOOKS);
        if began.elapsed() >= at_least && stage.is_followed() {
            return;
        }
    }
}

/// Ends all faults, and answers how often each kind had struck.
fn calm(stage: &mut Stage) -> BTreeMap<Kind, u64> {
    let mut counts = stage.counts();
    stage.network.clear_faults();
    stage.mend_links();
    while !stage.undo.is_empty() {
        stage.put_back(u64::MAX);
    }
    for (kind, times) in logged(&stage.postgres.log()) {
        *counts.entry(kind).or_default() += times;
    }
    stage.relieve_crash_points();
    stage.begin();
    counts
}

/// Lets time pass until every client is answered and every withdrawal is over or parked, or patience is at its end; then
/// until whatever is still out there has landed or cannot land any more.
fn drain(stage: &mut Stage, progress: &mut Progress) {
    let began = Instant::now();
    let count = u32::try_from(stage.config.withdrawals).unwrap_or(u32::MAX);
    let patience = DRAIN.0 + DRAIN.1 * count;
    while began.elapsed() < patience {
        let Some(left) = stage.left() else {
            sleep(BETWEEN_LOOKS);
            continue;
        };
        let all = stage.config.withdrawals as u64;
        progress.show(
            "drained",
            all.saturating_sub(left.withdrawals),
            all,
            &format!("{} in flight", left.in_flight),
        );
        if left.withdrawals == 0 && stage.clients.waiting() == 0 {
            break;
        }
        let idle = left.in_flight == 0 && left.due == 0;
        stage.advance(if idle { IDLE_STEP_S } else { DRAIN_STEP_S });
        pace(stage, DRAIN_PACE);
        stage.look_around(u64::MAX - 1);
        stage.put_back(u64::MAX);
    }
    for _ in 0..AFTERMATH_S / IDLE_STEP_S {
        stage.advance(IDLE_STEP_S);
        pace(stage, DRAIN_PACE);
    }
}

fn finish(
    mut stage: Stage,
    mut counts: BTreeMap<Kind, u64>,
    began: Instant,
    first_ms: i64,
) -> Outcome {
    for worker in &stage.workers {
        worker.keep_present_log();
    }
    // Nobody writes any more while the judge reads.
    let chain_ms = stage.network.now_ms() - first_ms;
    for index in 0..stage.workers.len() {
        stage.workers[index].kill();
    }
    let ledger = stage.clients.ledger();
    let materials = Materials::read(
        &mut stage.database.superuser(),
        &stage.network,
        ledger,
        stage.cancelled.clone(),
    );
    let deaths = materials
        .envelopes
        .values()
        .flatten()
        .filter(|envelope| envelope.fate.as_deref() == Some("dead"))
        .count();
    *counts.entry(Kind::EnvelopeExpired).or_default() += deaths as u64;

    let left_out = stage.left_out();
    let missing = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| stage.config.server_wide || kind.reach() == Reach::Short)
        .filter(|kind| left_out.iter().all(|(left, _)| left != kind))
        .filter(|kind| counts.get(kind).copied().unwrap_or_default() == 0)
        .collect();
    Outcome {
        violations: judge(&materials),
        missing,
        left_out,
        counts,
        remarks: std::mem::take(&mut stage.remarks),
        materials,
        chain_s: chain_ms.unsigned_abs() / 1000,
        took: began.elapsed(),
        server_log: stage.postgres.log(),
    }
}
