//! The guard of a withdrawal's row: every UPDATE is judged step by step against the chart, whoever makes it, and the row's
//! sequence and hash follow from what was judged. The other half, which checks proofs and writes the log, works on whole
//! statements and is in `sql/guard.sql`.

use crate::pg::clock::now_us;
use crate::pg::decision::state_of;
use crate::pg::errors::{Code, raise};
use crate::pg::row::{Replacement, Row, json_element, returned};
use pgrx::AllocatedByPostgres;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use sluice_core::event::Entry;
use sluice_core::state::{PathError, State, judge_path};
use std::ffi::CStr;

/// What intake wrote never changes.
const IMMUTABLE: [&str; 12] = [
    "operation_id",
    "to_address",
    "destination",
    "amount",
    "amount_units",
    "asset",
    "asset_version",
    "account",
    "requested_by",
    "submitted_by",
    "request_hash",
    "created_at",
];

/// What is decided once.
const WRITE_ONCE: [&str; 10] = [
    "wallet",
    "rail",
    "reason_code",
    "reason",
    "credit_account",
    "depth",
    "posting_id",
    "cancel_reason",
    "block_number",
    "confirmed_at",
];

/// The session's user: who a write is by, where it does not say.
pub fn session_user() -> String {
    // SAFETY: GetUserNameFromId returns a terminated name for the session's own user.
    unsafe {
        let name = pg_sys::GetUserNameFromId(pg_sys::GetSessionUserId(), false);
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// The states in an array as PostgreSQL prints it: labels hold nothing that would be quoted.
fn states_of(printed: &str) -> Vec<State> {
    printed
        .trim_matches(|brace| brace == '{' || brace == '}')
        .split(',')
        .filter(|label| !label.is_empty())
        .map(state_of)
        .collect()
}

/// The sequence that comes so many entries after this one.
fn after(seq: i32, entries: i32) -> i32 {
    seq.checked_add(entries).unwrap_or_else(|| {
        raise(
            Code::BadArgument,
            "seq: a log has no more entries than an integer counts",
            "",
        )
    })
}

fn refuse_path(operation_id: &pgrx::Uuid, error: &PathError) -> ! {
    let code = match error {
        PathError::Terminal(_) => Code::Immutable,
        PathError::NoSuchStep { .. } | PathError::EndsElsewhere { .. } => Code::IllegalStep,
    };
    raise(
        code,
        format!("withdrawal {operation_id}: {error}"),
        "select * from sluice.transitions() shows the chart.",
    )
}

/// BEFORE UPDATE, for each row.
#[pg_trigger]
fn withdrawals_before_update<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    let (new, old) = Row::of_trigger(trigger);
    let old = old.ok_or(PgTriggerError::NotTrigger)?;
    let operation_id = old
        .get::<pgrx::Uuid>("operation_id")
        .ok_or(PgTriggerError::NotTrigger)?;
    let from = state_of(&old.printed("state").unwrap_or_default());
    let to = state_of(&new.printed("state").unwrap_or_default());
    let old_seq = old.get::<i32>("seq").unwrap_or_default();

    // A path counts only for the statement that named it: later ones find the sequence moved on, or the mark taken off.
    let named = new.get::<i32>("step_seq") == Some(old_seq);
    let path = named.then(|| states_of(&new.printed("step_path").unwrap_or_default()));
    let steps = judge_path(from, to, path.as_deref())
        .unwrap_or_else(|error| refuse_path(&operation_id, &error));

    for column in IMMUTABLE {
        if !new.agrees(&old, column) {
            raise(
                Code::Immutable,
                format!("withdrawal {operation_id}: {column} is fixed at intake"),
                "Submit another withdrawal, with its own operation_id.",
            );
        }
    }
    for column in WRITE_ONCE {
        if old.has(column) && !new.agrees(&old, column) {
            raise(
                Code::Immutable,
                format!("withdrawal {operation_id}: {column} is decided once"),
                "",
            );
        }
    }
    let token = |row: &Row| row.get::<i64>("fencing_token").unwrap_or_default();
    if token(&new) < token(&old) {
        raise(
            Code::Immutable,
            format!("withdrawal {operation_id}: a fencing token never falls"),
            "",
        );
    }

    let mut replacement = Replacement::of(new);
    if steps.is_empty() {
        replacement.clear("step_seq");
        replacement.set("seq", old_seq);
        replacement.set("hash", old.get::<Vec<u8>>("hash"));
        replacement.set("changed_at", old.get::<TimestampWithTimeZone>("changed_at"));
        return Ok(Some(returned(replacement.row())));
    }

    let by = if named {
        new.get::<String>("step_by")
    } else {
        None
    }
    .unwrap_or_else(session_user);
    let at_us = now_us();
    let mut hash = old.get::<Vec<u8>>("hash");
    let mut seq = old_seq;
    for (index, step) in steps.iter().enumerate() {
        seq = after(seq, 1);
        let detail = named
            .then(|| new.json_element("step_detail", i32::try_from(index).unwrap_or(i32::MAX)))
            .flatten();
        let entry = Entry {
            operation_id: *operation_id.as_bytes(),
            seq,
            from: Some(step.from),
            to: step.to,
            at_us,
            by: Some(&by),
            detail: detail.as_deref().unwrap_or("{}"),
        };
        hash = Some(entry.hash(hash.as_deref()).to_vec());
    }
    if !named {
        let labels: Vec<&str> = steps.iter().map(|step| step.to.name()).collect();
        replacement.set("step_seq", old_seq);
        replacement.read("step_path", &format!("{{{}}}", labels.join(",")));
        replacement.clear("step_detail");
    }
    replacement.set("step_by", by);
    replacement.set("seq", seq);
    replacement.set("hash", hash);
    replacement.set("changed_at", TimestampWithTimeZone::try_from(at_us).ok());
    if to.is_terminal() {
        replacement.clear("due_at");
        replacement.clear("leased_by");
    }
    Ok(Some(returned(replacement.row())))
}

/// The entries that one write adds to a withdrawal's log, hashed as the guard hashed them. `details` is a jsonb array with an
/// element an entry, or NULL.
#[expect(
    clippy::too_many_arguments,
    reason = "each argument is one column of the row"
)]
#[pg_extern(
    sql = "create function entries_of(operation_id uuid, seq int, previous bytea, from_state text, path text, at timestamptz, by text, details jsonb) returns table (entry_seq int, entry_from text, entry_to text, entry_hash bytea) immutable parallel safe rows 2 language c as 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn entries_of(
    operation_id: pgrx::Uuid,
    seq: i32,
    previous: Option<Vec<u8>>,
    from_state: Option<String>,
    path: &str,
    at: TimestampWithTimeZone,
    by: Option<String>,
    details: Option<pgrx::datum::AnyElement>,
) -> TableIterator<
    'static,
    (
        name!(entry_seq, i32),
        name!(entry_from, Option<String>),
        name!(entry_to, String),
        name!(entry_hash, Vec<u8>),
    ),
> {
    let mut from = from_state.as_deref().map(state_of);
    let mut hash = previous;
    let mut rows = vec![];
    for (place, to) in (1..).zip(states_of(path)) {
        // SAFETY: the function's declaration makes the argument jsonb.
        let detail =
            details.and_then(|details| unsafe { json_element(details.datum(), place - 1) });
        let entry = Entry {
            operation_id: *operation_id.as_bytes(),
            seq: after(seq, place),
            from,
            to,
            at_us: pg_sys::TimestampTz::from(at),
            by: by.as_deref(),
            detail: detail.as_deref().unwrap_or("{}"),
        };
        let next = entry.hash(hash.as_deref()).to_vec();
        rows.push((
            entry.seq,
            from.map(|state| state.name().to_owned()),
            to.name().to_owned(),
            next.clone(),
        ));
        from = Some(to);
        hash = Some(next);
    }
    TableIterator::new(rows)
}

/// The hash of one entry of a log, given the one before it: what `verify` holds the log against.
#[expect(
    clippy::too_many_arguments,
    reason = "each argument is one column of the entry"
)]
#[pg_extern(immutable, parallel_safe)]
fn entry_hash(
    previous: Option<Vec<u8>>,
    operation_id: pgrx::Uuid,
    seq: i32,
    from_state: Option<&str>,
    to_state: &str,
    at: TimestampWithTimeZone,
    by: Option<&str>,
    detail: &str,
) -> Vec<u8> {
    let entry = Entry {
        operation_id: *operation_id.as_bytes(),
        seq,
        from: from_state.map(state_of),
        to: state_of(to_state),
        at_us: pg_sys::TimestampTz::from(at),
        by,
        detail,
    };
    entry.hash(previous.as_deref()).to_vec()
}
