//! Telling rows that a statement made from rows that a dump brings back. A fresh row leaves one column to its trigger; a restored
//! one brings it. The trigger fills it and remembers the row's table and key until the table's own trigger has checked what is
//! new. By table and key: one statement may insert into several tables, or within another one, and each check forgets only what it
//! has seen.

use crate::pg::clock::now_us;
use crate::pg::errors::{Code, raise};
use crate::pg::row::{Replacement, Row, returned};
use pgrx::AllocatedByPostgres;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

thread_local! {
    static FRESH: RefCell<HashMap<String, HashSet<Vec<u8>>>> = RefCell::new(HashMap::new());
}

/// Forgets what was fresh in a transaction that never came to its checks.
pub fn forget() {
    FRESH.with_borrow_mut(HashMap::clear);
}

/// BEFORE INSERT, for each row. Its argument is the column that a fresh row leaves empty.
#[pg_trigger]
fn mark_fresh<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    let (row, _) = Row::of_trigger(trigger);
    let uuid = |column| {
        row.get::<pgrx::Uuid>(column)
            .map(|id| id.as_bytes().to_vec())
    };
    let (column, key) = match trigger.extra_args()?.first().map(String::as_str) {
        Some("built_at") => ("built_at", row.get::<Vec<u8>>("txid")),
        Some("seen_at") => ("seen_at", row.get::<Vec<u8>>("txid")),
        Some("booked_at") => ("booked_at", uuid("posting_id")),
        Some("placed_at") => ("placed_at", uuid("operation_id")),
        other => raise(
            Code::BadArgument,
            format!("mark_fresh does not know the column {other:?}"),
            "",
        ),
    };
    if row.has(column) {
        return Ok(Some(returned(row)));
    }
    if let Some(key) = key {
        let table = trigger.table_name()?;
        FRESH.with_borrow_mut(|fresh| fresh.entry(table).or_default().insert(key));
    }
    let mut replacement = Replacement::of(row);
    replacement.set(column, TimestampWithTimeZone::try_from(now_us()).ok());
    Ok(Some(returned(replacement.row())))
}

/// Whether the statement under way made the row with this key.
#[pg_extern(volatile, strict)]
fn is_fresh(table_name: &str, key: &[u8]) -> bool {
    FRESH.with_borrow(|fresh| fresh.get(table_name).is_some_and(|keys| keys.contains(key)))
}

/// Ends the check of these rows of a table, and of no others: a statement within this one may have made some.
#[pg_extern(volatile, strict)]
fn forget_fresh(table_name: &str, keys: pgrx::Array<&[u8]>) {
    FRESH.with_borrow_mut(|fresh| {
        if let Some(marked) = fresh.get_mut(table_name) {
            keys.iter().flatten().for_each(|key| {
                marked.remove(key);
            });
        }
    });
}
