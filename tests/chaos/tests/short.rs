//! The short run of chaos: every fault that strikes one process, one session, one node or one client, and none that takes the
//! whole server away (`make chaos` has those). And the judge is judged: each kind of tampering with what a clean run left
//! makes it name the invariant that is broken.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use sluice_chaos::judge::{Invariant, Materials, judge};
use sluice_chaos::{Config, Outcome, report, run};
use sluice_core::state::State;

/// Another seed is tried with CHAOS_SEED.
const SEED: u64 = 20_260_101;

/// The run that both tests look at.
fn the_run() -> &'static (Config, Outcome) {
    static RUN: OnceLock<(Config, Outcome)> = OnceLock::new();
    RUN.get_or_init(|| {
        let seed = env::var("CHAOS_SEED")
            .ok()
            .map_or(SEED, |text| text.parse().expect("a whole number"));
        let config = Config {
            seed,
            withdrawals: 200,
            workers: 4,
            steps: 100,
            server_wide: false,
            keep: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{seed}")),
        };
        let outcome = run(&config);
        println!("{}", report::summary(&config, &outcome));
        report::keep_or_clear(&config, &outcome);
        (config, outcome)
    })
}

#[test]
fn two_hundred_withdrawals_under_every_fault_are_each_paid_at_most_once_and_none_is_lost() {
    let (config, outcome) = the_run();
    assert!(outcome.is_clean(), "{}", report::findings(config, outcome));
}

/// Something that somebody did to what the judge reads, and the invariant that it breaks.
type Tampering = (&'static str, Invariant, fn(&mut Materials));

const TAMPERINGS: &[Tampering] = &[
    ("a withdrawal is not over", Invariant::Liveness, |m| {
        let row = row_in(m, State::Confirmed);
        m.rows[row].state = State::Broadcast;
        m.rows[row].due = true;
    }),
    ("one is parked for no reason", Invariant::Liveness, |m| {
        let row = row_in(m, State::Confirmed);
        m.rows[row].state = State::Broadcast;
        m.rows[row].due = false;
    }),
    ("one failed for no reason", Invariant::Liveness, |m| {
        let row = row_in(m, State::Confirmed);
        m.cancelled.clear();
        m.attempts = 100;
        m.rows[row].state = State::Failed;
    }),
    ("one was rejected by nobody", Invariant::Liveness, |m| {
        let row = row_in(m, State::Confirmed);
        m.cancelled.clear();
        m.rows[row].state = State::Rejected;
    }),
    ("the chain paid one twice", Invariant::AtMostOnce, |m| {
        let paid = m.tags.values_mut().find(|tag| tag.successes == 1);
        paid.expect("one was paid").successes = 2;
    }),
    ("a failed one was paid", Invariant::AtMostOnce, |m| {
        let row = row_in(m, State::Confirmed);
        m.rows[row].state = State::Failed;
    }),
    (
        "the chain paid what is nobody's",
        Invariant::AtMostOnce,
        |m| {
            let report = m.tags.values().next().expect("one was sent").clone();
            m.tags.insert("00".repeat(16), report);
        },
    ),
    ("an envelope is gone", Invariant::AtMostOnce, |m| {
        let id = m.rows[row_in(m, State::Confirmed)].operation_id;
        m.envelopes.remove(&id);
    }),
    ("the chain paid one unit more", Invariant::Totals, |m| {
        let total = &mut m.totals[0];
        let units: u128 = total.units.parse().expect("a number");
        total.units = (units + 1).to_string();
    }),
    ("a confirmation is forged", Invariant::Totals, |m| {
        let paid = m.rows[row_in(m, State::Confirmed)].clone();
        let forged = m
            .rows
            .iter_mut()
            .find(|row| row.state != State::Confirmed && row.wallet.is_some())
            .expect("not all were paid");
        forged.state = State::Confirmed;
        forged.block_number = paid.block_number;
    }),
    ("an amount is altered", Invariant::Totals, |m| {
        let row = row_in(m, State::Confirmed);
        m.rows[row].amount_units.push('0');
    }),
    (
        "a confirmation names another block",
        Invariant::Totals,
        |m| {
            let row = row_in(m, State::Confirmed);
            m.rows[row].block_number = m.rows[row].block_number.map(|number| number + 1);
        },
    ),
    ("an account has a unit more", Invariant::Ledger, |m| {
        let has = m.balances.values_mut().next().expect("accounts are open");
        let units: u128 = has.parse().expect("a number");
        *has = (units + 1).to_string();
    }),
    ("an internal credit is forged", Invariant::Ledger, |m| {
        let row = m
            .rows
            .iter_mut()
            .find(|row| row.internal && row.state == State::Confirmed);
        row.expect("some stay on the ledger").amount_units.push('0');
    }),
    ("a hold was let go twice", Invariant::Ledger, |m| {
        let hold = m
            .holds
            .iter_mut()
            .find(|hold| hold.ended.as_deref() == Some("captured"));
        hold.expect("some were held").ended = Some("released".to_owned());
    }),
    ("a hold is gone", Invariant::Ledger, |m| {
        let captured = m
            .holds
            .iter()
            .position(|hold| hold.ended.as_deref() == Some("captured"));
        m.holds.remove(captured.expect("some were held"));
    }),
    ("a withdrawal is removed", Invariant::OneRow, |m| {
        m.rows.remove(0);
    }),
    ("a withdrawal is there twice", Invariant::OneRow, |m| {
        let twin = m.rows[0].clone();
        m.rows.push(twin);
    }),
    ("a row means something else", Invariant::OneRow, |m| {
        m.rows[0].account = Some("somebody".to_owned());
    }),
    ("a row that nobody asked for", Invariant::OneRow, |m| {
        m.ledger.ids.pop_first();
    }),
    ("a client was told two things", Invariant::OneRow, |m| {
        let id = m.rows[0].operation_id;
        m.ledger.contradictions.push((id, "two things".to_owned()));
    }),
    ("an entry is deleted", Invariant::LegalLog, |m| {
        first_log(m).remove(2);
    }),
    ("a log is cut off", Invariant::LegalLog, |m| {
        first_log(m).pop();
    }),
    ("an entry's detail is altered", Invariant::LegalLog, |m| {
        first_log(m)[1].detail_text.push(' ');
    }),
    ("an entry has another time", Invariant::LegalLog, |m| {
        first_log(m)[1].at_us += 1;
    }),
    ("an entry has another author", Invariant::LegalLog, |m| {
        first_log(m)[1].by = Some("nobody".to_owned());
    }),
    ("a step that the chart has not", Invariant::LegalLog, |m| {
        first_log(m)[1].to = State::Broadcast;
    }),
    ("a row stands elsewhere", Invariant::LegalLog, |m| {
        m.rows[0].seq += 1;
    }),
    ("a death without blocks", Invariant::Evidence, |m| {
        dead(m).last_block = None;
    }),
    ("a death one block early", Invariant::Evidence, |m| {
        let envelope = dead(m);
        envelope.last_block = envelope.last_block.map(|last| last - 1);
    }),
    ("a death one block late", Invariant::Evidence, |m| {
        let envelope = dead(m);
        envelope.last_block = envelope.last_block.map(|last| last + 1);
    }),
    ("a death with blocks left out", Invariant::Evidence, |m| {
        let envelope = dead(m);
        envelope.first_block = envelope.first_block.map(|first| first + 1);
    }),
    ("a dead one was in a block", Invariant::Evidence, |m| {
        let (txid, last) = {
            let envelope = dead(m);
            (envelope.txid, envelope.last_block.expect("it is dead"))
        };
        let index = usize::try_from(last).expect("a height");
        m.chain[index]
            .transactions
            .push((txid, "SUCCESS".to_owned()));
    }),
    (
        "the chain of the evidence is broken",
        Invariant::Evidence,
        |m| {
            let last = dead(m).last_block.expect("it is dead");
            let index = usize::try_from(last).expect("a height");
            m.chain[index].parent = [0; 32];
        },
    ),
    ("a followed block is another", Invariant::Evidence, |m| {
        m.followed[5].1[31] ^= 1;
    }),
    ("a rebuilt one was still alive", Invariant::Evidence, |m| {
        let envelope = dead(m);
        envelope.fate = None;
        envelope.first_block = None;
        envelope.last_block = None;
    }),
    ("an envelope has other bytes", Invariant::Evidence, |m| {
        dead(m).raw_data.push(0);
    }),
    ("a rebuild tells of no evidence", Invariant::Evidence, |m| {
        evidence(m)["fate"] = serde_json::Value::Null;
    }),
    ("a rebuild names another block", Invariant::Evidence, |m| {
        let last = evidence(m)["last_block"].as_i64().expect("a block");
        evidence(m)["last_block"] = (last + 1).into();
    }),
    ("a rebuild names another id", Invariant::Evidence, |m| {
        evidence(m)["first_block_id"] = "00".repeat(32).into();
    }),
    ("a rebuild before its margin", Invariant::Evidence, |m| {
        evidence(m)["margin_blocks"] = 100_000.into();
    }),
    ("a rebuild is about another", Invariant::Evidence, |m| {
        evidence(m)["txid"] = "00".repeat(32).into();
    }),
    ("a receipt is altered", Invariant::Evidence, |m| {
        let paid = m
            .envelopes
            .values_mut()
            .flatten()
            .find(|envelope| envelope.receipt.as_deref() == Some("SUCCESS"));
        paid.expect("one was paid").receipt = Some("REVERT".to_owned());
    }),
    ("the database's own word", Invariant::Verify, |m| {
        m.verify_says_no.push(("any".to_owned(), "{}".to_owned()));
    }),
];

fn row_in(materials: &Materials, state: State) -> usize {
    materials
        .rows
        .iter()
        .position(|row| row.state == state && !row.internal)
        .expect("a run has such a withdrawal")
}

fn first_log(materials: &mut Materials) -> &mut Vec<sluice_chaos::judge::materials::Event> {
    let id = materials.rows[row_in(materials, State::Confirmed)].operation_id;
    materials.events.get_mut(&id).expect("each has a log")
}

fn dead(materials: &mut Materials) -> &mut sluice_chaos::judge::materials::Envelope {
    materials
        .envelopes
        .values_mut()
        .flatten()
        .find(|envelope| envelope.fate.as_deref() == Some("dead"))
        .expect("a run has such an envelope")
}

/// The evidence of a death that led to another envelope.
fn evidence(materials: &mut Materials) -> &mut serde_json::Value {
    let event = materials
        .events
        .values_mut()
        .flatten()
        .find(|event| event.to == State::Signing && event.detail["last_block"].is_number());
    &mut event.expect("a run has such an entry").detail
}

#[test]
fn each_kind_of_tampering_with_what_a_run_left_makes_the_judge_name_the_broken_invariant() {
    let (_, outcome) = the_run();
    let before = judge(&outcome.materials);
    for (what, invariant, tamper) in TAMPERINGS {
        let mut tampered = outcome.materials.clone();
        tamper(&mut tampered);
        let found = judge(&tampered);
        assert!(
            found.len() > before.len()
                && found
                    .iter()
                    .any(|violation| violation.invariant == *invariant),
            "{what}: {found:?}"
        );
    }
}
