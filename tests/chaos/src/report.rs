//! What a run says when it is over: what struck how often, and, where something was found, the seed, the invariant, the
//! withdrawals with their timelines, and where the logs are.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use uuid::Uuid;

use crate::config::Config;
use crate::drive::Outcome;
use crate::judge::Materials;

/// Withdrawals whose timelines are told; the rest is in the kept files.
const TOLD: usize = 5;
/// Lines of each log that are shown.
const LINES: usize = 25;

/// The summary of a run.
#[must_use]
pub fn summary(config: &Config, outcome: &Outcome) -> String {
    let mut text = format!(
        "chaos: seed {}, {} withdrawals, {} runners, {} steps: {} s of chain time in {:.0} s\n",
        config.seed,
        config.withdrawals,
        config.workers,
        config.steps,
        outcome.chain_s,
        outcome.took.as_secs_f64()
    );
    let states =
        outcome
            .materials
            .rows
            .iter()
            .fold(std::collections::BTreeMap::new(), |mut states, row| {
                *states.entry(row.state).or_insert(0) += 1;
                states
            });
    for (state, count) in states {
        let _ = write!(text, "  {state} {count}");
    }
    let envelopes: usize = outcome.materials.envelopes.values().map(Vec::len).sum();
    let _ = writeln!(
        text,
        "  envelopes {envelopes}  transactions {}",
        outcome.materials.transactions.len()
    );
    for (kind, count) in outcome.counts.iter().filter(|(_, count)| **count > 0) {
        let _ = writeln!(text, "  {count:6}  {kind}");
    }
    for (kind, why) in &outcome.left_out {
        let _ = writeln!(text, "  left out: {kind}: {why}");
    }
    text
}

/// What was found, in full; the logs stay where it says.
#[must_use]
pub fn findings(config: &Config, outcome: &Outcome) -> String {
    let mut text = format!(
        "seed {}: {} violations; logs are kept in {}\n",
        config.seed,
        outcome.violations.len(),
        config.keep.display()
    );
    for kind in &outcome.missing {
        let _ = writeln!(text, "never struck: {kind}");
    }
    for remark in &outcome.remarks {
        let _ = writeln!(text, "{remark}");
    }
    for violation in &outcome.violations {
        let _ = writeln!(text, "{violation}");
    }
    let concerned: BTreeSet<Uuid> = outcome
        .violations
        .iter()
        .filter_map(|violation| violation.operation_id)
        .collect();
    for id in concerned.iter().take(TOLD) {
        text.push_str(&story(&outcome.materials, *id));
    }
    if !outcome.violations.is_empty() {
        let _ = writeln!(text, "\nthe end of the last runners' logs:");
        text.push_str(&ends_of_logs(config));
    }
    text
}

/// Everything that is known of one withdrawal.
fn story(materials: &Materials, id: Uuid) -> String {
    let mut text = format!("\nwithdrawal {id}\n");
    if let Some(row) = materials.rows.iter().find(|row| row.operation_id == id) {
        let _ = writeln!(text, "  {row:?}");
    }
    for event in materials.events.get(&id).into_iter().flatten() {
        let from = event.from.map_or("", |state| state.name());
        let by = event.by.as_deref().unwrap_or("");
        let _ = writeln!(
            text,
            "  {:2} {from} -> {} at {} by {by}: {}",
            event.seq, event.to, event.at_us, event.detail_text
        );
    }
    for envelope in materials.envelopes_of(id) {
        let _ = writeln!(
            text,
            "  envelope {} {} fate {:?} {:?} {:?}",
            envelope.attempt, envelope.txid, envelope.fate, envelope.receipt, envelope.block_number
        );
        if let Some(report) = materials.transactions.get(&envelope.txid) {
            let _ = writeln!(
                text,
                "    the network: {:?} in {:?} with {:?}, answers {:?}, by {:?}",
                report.became, report.block, report.result, report.answers, report.workers
            );
        }
    }
    text
}

/// Of the runners that wrote last: those that were there at the end.
fn ends_of_logs(config: &Config) -> String {
    let mut text = String::new();
    let Ok(files) = fs::read_dir(&config.keep) else {
        return text;
    };
    let mut logs: Vec<_> = files
        .filter_map(Result::ok)
        .filter(|file| file.path().extension().is_some_and(|end| end == "log"))
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .collect();
    logs.sort();
    for (_, path) in logs.iter().rev().take(config.workers + 1) {
        let log = fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let _ = writeln!(text, "--- {}", path.display());
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// Keeps what the server logged and what was found, or takes everything away after a run that found nothing.
pub fn keep_or_clear(config: &Config, outcome: &Outcome) {
    if outcome.is_clean() {
        // What cannot be taken away is left: it is no failure of the run.
        let _ = fs::remove_dir_all(&config.keep);
        return;
    }
    for (name, text) in [
        ("server.txt", &outcome.server_log),
        ("findings.txt", &findings(config, outcome)),
    ] {
        let path = config.keep.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let stories: String = outcome
        .violations
        .iter()
        .filter_map(|violation| violation.operation_id)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|id| story(&outcome.materials, id))
        .collect();
    let path = config.keep.join("withdrawals.txt");
    fs::write(&path, stories).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
