//! `sluice.amount`, a base type for exact decimals, and the functions between decimal text and base units. The type stores
//! the text as it was given, since trailing zeros count against an asset's decimals; what is no exact decimal cannot
//! become one. No cast from float4 or float8 exists: assigning one is PostgreSQL's own 42804.

use crate::pg::errors::{Code, OrRaise, raise};
use pgrx::prelude::*;
use sluice_core::units;
use std::ffi::CStr;

fn checked(text: &str) -> String {
    units::check_amount_form(text).or_raise(Code::BadAmount, "amount");
    text.to_owned()
}

#[pg_extern(
    sql = "create function amount_in(cstring) returns amount immutable strict parallel safe language c as 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn amount_in(text: &CStr) -> String {
    checked(&text.to_string_lossy())
}

#[pg_extern(
    sql = "create function amount_recv(internal) returns amount stable strict parallel safe language c as 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn amount_recv(buffer: pgrx::Internal) -> String {
    let Some(datum) = buffer.unwrap() else {
        raise(Code::BadAmount, "amount: nothing was received", "");
    };
    // SAFETY: PostgreSQL calls receive functions with a StringInfo; pq_getmsgtext returns a palloc'd, terminated string in the
    // database's encoding.
    let text = unsafe {
        let message = datum.cast_mut_ptr::<pg_sys::StringInfoData>();
        let mut length = 0;
        let unread = (*message).len - (*message).cursor;
        CStr::from_ptr(pg_sys::pq_getmsgtext(message, unread, &mut length))
    };
    checked(&text.to_string_lossy())
}

#[pg_extern(
    sql = "create function amount_from_text(text) returns amount immutable strict parallel safe language c as 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn amount_from_text(text: &str) -> String {
    checked(text)
}

#[pg_extern(
    sql = "create function amount_from_numeric(numeric) returns amount immutable strict parallel safe language c as 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn amount_from_numeric(value: AnyNumeric) -> String {
    units::shortest(&value.to_string()).or_raise(Code::BadAmount, "amount")
}

#[pg_extern(
    sql = "create function amount_from_bigint(bigint) returns amount immutable strict parallel safe language c as 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn amount_from_bigint(value: i64) -> String {
    checked(&value.to_string())
}

/// Bounds the decimals of any asset: uint8 in the token's contract.
fn decimals_of(decimals: i32) -> u32 {
    u32::try_from(decimals)
        .ok()
        .filter(|decimals| *decimals <= 255)
        .unwrap_or_else(|| {
            raise(
                Code::BadArgument,
                format!("decimals: {decimals} is not between 0 and 255"),
                "Give the token's decimals.",
            )
        })
}

/// The base units of an argument that is an amount, or an error that names the argument.
#[pg_extern(immutable, strict, parallel_safe)]
fn amount_argument(amount: &str, decimals: i32, argument: &str) -> AnyNumeric {
    let digits =
        units::parse_amount(amount, decimals_of(decimals)).or_raise(Code::BadAmount, argument);
    AnyNumeric::try_from(digits.as_str()).or_raise(Code::BadAmount, argument)
}

/// Decimal text to base units, exact at any length.
#[pg_extern(immutable, strict, parallel_safe)]
fn parse_amount(amount: &str, decimals: i32) -> AnyNumeric {
    amount_argument(amount, decimals, "amount")
}

/// Base units to the shortest exact decimal.
#[pg_extern(immutable, strict, parallel_safe)]
fn format_amount(units: AnyNumeric, decimals: i32) -> String {
    let text = units.to_string();
    let whole = units::shortest(&text).or_raise(Code::BadArgument, "units");
    units::format_amount(&whole, decimals_of(decimals)).or_raise(Code::BadArgument, "units")
}

/// What an amount is worth, whatever zeros it was written with: two texts of one value give one text.
#[pg_extern(immutable, strict, parallel_safe)]
fn shortest_amount(amount: &str) -> String {
    units::shortest(amount).or_raise(Code::BadAmount, "amount")
}
