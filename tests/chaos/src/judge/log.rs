//! Each withdrawal's log, computed again: no gap, each step legal, each hash that of what the entry says after the one before,
//! and the end where the row stands.

use sluice_core::event::Entry;
use sluice_core::state::State;

use super::Findings;
use super::materials::{Event, Materials, Row};

/// The chart, written down once more: the judge does not ask the table that the product asks.
const STEPS: [(State, State); 15] = {
    use State::{
        Broadcast, Broadcasting, Confirmed, Failed, Rejected, Requested, Signed, Signing, Validated,
    };
    [
        (Requested, Validated),
        (Requested, Rejected),
        (Validated, Signing),
        (Validated, Rejected),
        (Signing, Signed),
        (Signing, Signing),
        (Signing, Failed),
        (Signed, Broadcasting),
        (Signed, Signing),
        (Broadcasting, Broadcast),
        (Broadcasting, Signing),
        (Broadcasting, Failed),
        (Broadcast, Confirmed),
        (Broadcast, Signing),
        (Broadcast, Failed),
    ]
};

/// I5.
pub fn legal(materials: &Materials, findings: &mut Findings) {
    for row in &materials.rows {
        let events = materials
            .events
            .get(&row.operation_id)
            .map_or(&[][..], Vec::as_slice);
        if let Some(fault) = fault_of(row, events) {
            findings.of(row.operation_id, fault);
        }
    }
    for id in materials.events.keys() {
        if materials.rows.iter().all(|row| row.operation_id != *id) {
            findings.of(*id, "a log without a row");
        }
    }
}

fn fault_of(row: &Row, events: &[Event]) -> Option<String> {
    let mut state = None;
    let mut hash: Option<Vec<u8>> = None;
    for (event, place) in events.iter().zip(1..) {
        if event.seq != place {
            return Some(format!("entry {place} has number {}", event.seq));
        }
        if event.from != state {
            return Some(format!(
                "entry {place} leaves {:?}, the one before reached {state:?}",
                event.from
            ));
        }
        if !is_legal(event) {
            return Some(format!(
                "entry {place}: {:?} -> {} is no step",
                event.from, event.to
            ));
        }
        let entry = Entry {
            operation_id: row.operation_id.into_bytes(),
            seq: event.seq,
            from: event.from,
            to: event.to,
            at_us: event.at_us,
            by: event.by.as_deref(),
            detail: &event.detail_text,
        };
        if entry.hash(hash.as_deref()).as_slice() != event.hash {
            return Some(format!(
                "the hash of entry {place} is not that of what it says"
            ));
        }
        state = Some(event.to);
        hash = Some(event.hash.clone());
    }
    let ends = (
        i32::try_from(events.len()).unwrap_or(i32::MAX),
        state,
        hash.as_deref(),
    );
    let stands = (row.seq, Some(row.state), Some(row.hash.as_slice()));
    (ends != stands).then(|| {
        format!(
            "the log ends with entry {} in {state:?}, the row stands at {} in {}",
            events.len(),
            row.seq,
            row.state
        )
    })
}

/// The first entry is a request; a remark stays in a live state.
fn is_legal(event: &Event) -> bool {
    match event.from {
        None => event.to == State::Requested,
        Some(from) if from == event.to => !from.is_terminal(),
        Some(from) => STEPS.contains(&(from, event.to)),
    }
}
