//! Telling rows that a statement made from rows that a dump brings back. A fresh row leaves one column to its trigger; a restored
//! one brings it. The trigger fills it and remembers the row's key until the statement's own trigger has checked what is new.

use crate::pg::clock::now_us;
use crate::pg::errors::{Code, raise};
use crate::pg::row::{Replacement, Row, returned};
use pgrx::AllocatedByPostgres;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::HashSet;

thread_local! {
    static FRESH: RefCell<HashSet<Vec<u8>>> = RefCell::new(HashSet::new());
}

/// Forgets what was fresh: at the end of a statement's check, and of a transaction that never came to it.
pub fn forget() {
    FRESH.with_borrow_mut(HashSet::clear);
}

/// BEFORE INSERT, for each row, of tables whose key is `txid`. Its argument is the column that a fresh row leaves empty.
#[pg_trigger]
fn mark_fresh<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    let (row, _) = Row::of_trigger(trigger);
    let column = match trigger.extra_args()?.first().map(String::as_str) {
        Some("built_at") => "built_at",
        Some("seen_at") => "seen_at",
        other => raise(
            Code::BadArgument,
            format!("mark_fresh does not know the column {other:?}"),
            "",
        ),
    };
    if row.has(column) {
        return Ok(Some(returned(row)));
    }
    if let Some(key) = row.get::<Vec<u8>>("txid") {
        FRESH.with_borrow_mut(|fresh| fresh.insert(key));
    }
    let mut replacement = Replacement::of(row);
    replacement.set(column, TimestampWithTimeZone::try_from(now_us()).ok());
    Ok(Some(returned(replacement.row())))
}

/// Whether the statement under way made the row with this key.
#[pg_extern(volatile, strict)]
fn is_fresh(key: &[u8]) -> bool {
    FRESH.with_borrow(|fresh| fresh.contains(key))
}

/// Ends the check of a statement's fresh rows.
#[pg_extern(volatile)]
fn forget_fresh() {
    forget();
}
