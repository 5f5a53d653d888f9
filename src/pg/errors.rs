//! The SQLSTATEs of sluice, and how Rust raises them. Class `SL` is free for implementations (the SQL standard reserves
//! classes that begin with 0-4 and A-H). The README lists the same codes for applications.

use core::ffi::{c_int, c_void};
use core::ptr;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name, pg_sys};
use std::cell::Cell;

/// What went wrong, as a SQLSTATE that never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The destination is no TRON address in a form that sluice takes.
    BadAddress,
    /// The amount is no exact decimal, or has too many fractional digits.
    BadAmount,
    /// No asset of that name is set up.
    UnknownAsset,
    /// Any other argument is missing, malformed or out of bounds.
    BadArgument,
    /// The amount is outside the asset's limits.
    OutOfBounds,
    /// The destination is an address that must not be paid.
    DestinationRefused,
    /// The step is not in the chart.
    IllegalStep,
    /// The row, or this part of it, never changes again.
    Immutable,
    /// Bytes are no block, or one whose root does not hold.
    BadBlock,
}

impl Code {
    /// The five characters.
    #[must_use]
    pub const fn sqlstate(self) -> &'static str {
        match self {
            Self::BadAddress => "SL002",
            Self::BadAmount => "SL003",
            Self::UnknownAsset => "SL004",
            Self::BadArgument => "SL005",
            Self::OutOfBounds => "SL007",
            Self::DestinationRefused => "SL008",
            Self::IllegalStep => "SL010",
            Self::Immutable => "SL011",
            Self::BadBlock => "SL020",
        }
    }
}

thread_local! {
    static CODE: Cell<c_int> = const { Cell::new(0) };
}

/// pgrx keeps SQLSTATEs as an enum of those that PostgreSQL itself knows, so a code of ours is set where PostgreSQL lets
/// a report be completed: `errfinish` calls the functions on `error_context_stack` (elog.c), and each may call `errcode`.
static mut SET_CODE: pg_sys::ErrorContextCallback = pg_sys::ErrorContextCallback {
    previous: ptr::null_mut(),
    callback: Some(set_code),
    arg: ptr::null_mut(),
};

unsafe extern "C-unwind" {
    fn errcode(sqlerrcode: c_int) -> c_int;
}

unsafe extern "C-unwind" fn set_code(_: *mut c_void) {
    // SAFETY: PostgreSQL calls this from errfinish, with an error being reported; errcode only writes to that report.
    unsafe {
        errcode(CODE.get());
    }
}

/// `MAKE_SQLSTATE` of PostgreSQL's elog.h: six bits a character.
fn packed(sqlstate: &str) -> c_int {
    sqlstate
        .bytes()
        .enumerate()
        .fold(0, |packed, (position, byte)| {
            packed | ((c_int::from(byte) - c_int::from(b'0')) & 0x3f) << (6 * position)
        })
}

/// Raises an error with one of sluice's codes. Nothing is written: the statement is undone.
#[track_caller]
pub fn raise(code: Code, message: impl Into<String>, hint: &str) -> ! {
    CODE.set(packed(code.sqlstate()));
    // SAFETY: the callback is static, and whoever catches the error restores the stack as it was before (PG_CATCH and
    // the main loop in postgres.c both do). It is linked once: were it on the stack already, linking it again would make a ring.
    unsafe {
        let callback = &raw mut SET_CODE;
        if pg_sys::error_context_stack != callback {
            (*callback).previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = callback;
        }
    }
    let report = ErrorReport::new(
        PgSqlErrorCode::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
        message.into(),
        function_name!(),
    );
    let report = if hint.is_empty() {
        report
    } else {
        report.set_hint(hint)
    };
    report.report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Raises an error that says which argument is missing.
pub fn missing(argument: &str) -> ! {
    raise(
        Code::BadArgument,
        format!("{argument} is NULL"),
        &format!("Give a value for {argument}."),
    )
}

/// The value, or the error of this code with the argument's name in front of the reason.
pub trait OrRaise<T> {
    /// See the trait.
    fn or_raise(self, code: Code, argument: &str) -> T;
}

impl<T, E: std::fmt::Display> OrRaise<T> for Result<T, E> {
    fn or_raise(self, code: Code, argument: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => raise(code, format!("{argument}: {error}"), ""),
        }
    }
}
