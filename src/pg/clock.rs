//! The database's clock, which tests may replace. `sluice.now` is either an instant (the clock stands there) or an interval
//! (the clock is off by that much); unset, it is the time of day. Only a superuser may set it once this library is loaded,
//! and only Rust reads it: before that any role could set a placeholder of the same name, which PostgreSQL drops at load.

use crate::pg::errors::{Code, raise};
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgTryBuilder};
use std::cell::RefCell;
use std::ffi::{CStr, CString};

static NOW: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);

#[derive(Clone, Copy)]
enum Setting {
    StandsAt(i64),
    OffBy(i64),
}

thread_local! {
    static PARSED: RefCell<Option<(CString, Setting)>> = const { RefCell::new(None) };
}

/// Registers `sluice.now`.
pub fn define_setting() {
    GucRegistry::define_string_guc(
        c"sluice.now",
        c"Replaces the clock of sluice in tests.",
        c"An instant, at which the clock stands, or an interval, by which it is off. Empty: the time of day.",
        &NOW,
        GucContext::Suset,
        GucFlags::default(),
    );
}

const DAY_US: i64 = 86_400_000_000;

fn call_input(
    function: unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    text: &CStr,
) -> Option<pg_sys::Datum> {
    // SAFETY: both input functions take (cstring, oid, int4) and return a datum that is never null.
    PgTryBuilder::new(|| unsafe {
        pgrx::direct_function_call_as_datum(
            function,
            &[
                Some(pg_sys::Datum::from(text.as_ptr())),
                Some(pg_sys::Datum::from(0)),
                Some(pg_sys::Datum::from(-1)),
            ],
        )
    })
    .catch_others(|_| None)
    .execute()
}

fn parse(text: &CStr) -> Setting {
    if let Some(instant) = call_input(pg_sys::timestamptz_in, text) {
        return Setting::StandsAt(instant.value() as i64);
    }
    let Some(interval) = call_input(pg_sys::interval_in, text) else {
        raise(
            Code::BadArgument,
            format!(
                "sluice.now: \"{}\" is neither an instant nor an interval",
                text.to_string_lossy()
            ),
            "Set it to a timestamp with time zone, to an interval, or to nothing.",
        )
    };
    // SAFETY: interval_in returns a pointer to an Interval.
    let interval = unsafe { &*interval.cast_mut_ptr::<pg_sys::Interval>() };
    let days = i64::from(interval.month) * 30 + i64::from(interval.day);
    Setting::OffBy(days.saturating_mul(DAY_US).saturating_add(interval.time))
}

/// The clock, in microseconds since 2000-01-01 UTC, as PostgreSQL counts.
pub fn now_us() -> i64 {
    // SAFETY: reads the time of day.
    let real = || unsafe { pg_sys::GetCurrentTimestamp() };
    let Some(text) = NOW.get().filter(|text| !text.is_empty()) else {
        return real();
    };
    let setting = PARSED.with_borrow_mut(|parsed| match parsed {
        Some((of, setting)) if *of == text => *setting,
        _ => {
            let setting = parse(&text);
            *parsed = Some((text, setting));
            setting
        }
    });
    match setting {
        Setting::StandsAt(instant) => instant,
        Setting::OffBy(offset) => real().saturating_add(offset),
    }
}

/// The clock.
#[pg_extern(volatile, parallel_safe)]
fn now() -> TimestampWithTimeZone {
    TimestampWithTimeZone::try_from(pg_sys::TimestampTz::from(now_us())).unwrap_or_else(|_| {
        raise(
            Code::BadArgument,
            "sluice.now: out of range",
            "Set it to an instant that PostgreSQL can hold.",
        )
    })
}
