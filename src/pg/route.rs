//! Routes and funds, as SQL asks for them: the one decision of each, for a row or over arrays.

use crate::pg::errors::{Code, OrRaise, raise};
use pgrx::prelude::*;
use sha2::{Digest, Sha256};
use sluice_core::route::{Route, Settlement};
use sluice_core::units::Units;

/// The route of a withdrawal to this destination, whose address custody says it is, in an asset of this depth.
#[pg_extern(immutable, parallel_safe)]
fn decide_route(
    destination: &str,
    account: Option<&str>,
    asset_depth: i32,
) -> TableIterator<
    'static,
    (
        name!(rail, &'static str),
        name!(reason_code, &'static str),
        name!(reason, String),
        name!(account, Option<String>),
        name!(settlement, &'static str),
        name!(depth, Option<i32>),
    ),
> {
    let route =
        Route::decide(destination, account, asset_depth).or_raise(Code::BadArgument, "route");
    let settlement = route.settlement();
    let depth = match settlement {
        Settlement::Ledger => None,
        Settlement::Chain { depth } => Some(depth),
    };
    TableIterator::once((
        route.rail(),
        route.reason_code(),
        route.reason(),
        route.account().map(str::to_owned),
        settlement.name(),
        depth,
    ))
}

fn units(digits: Option<&str>, argument: &str) -> Units {
    digits
        .unwrap_or_default()
        .parse()
        .or_raise(Code::BadArgument, argument)
}

/// For each request in order, whether its account covers it after those before it. `available` is what each account has, in
/// base units; `accounts` is the place in it of each request's account, from 1; `requested` are the base units.
#[pg_extern(immutable, strict, parallel_safe)]
fn cover(
    available: pgrx::Array<&str>,
    accounts: pgrx::Array<i32>,
    requested: pgrx::Array<&str>,
) -> Vec<bool> {
    if accounts.len() != requested.len() {
        raise(
            Code::BadArgument,
            "accounts, requested: must be two arrays of one length",
            "",
        );
    }
    let available = (1..).zip(available.iter().map(|digits| units(digits, "available")));
    let requests = accounts
        .iter()
        .map(Option::unwrap_or_default)
        .zip(requested.iter().map(|digits| units(digits, "requested")));
    sluice_core::funds::cover(available, requests)
}

/// The id that is fixed for a posting before it is posted, so that posting twice is posting once: the first 16 bytes of SHA-256
/// over its kind of cause and what names it.
#[pg_extern(immutable, strict, parallel_safe)]
fn posting_id(cause: &str, name: &[u8]) -> pgrx::Uuid {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(cause)
        .chain_update([0])
        .chain_update(name)
        .finalize()
        .into();
    let (id, _) = digest.split_first_chunk::<16>().expect("32 bytes have 16");
    pgrx::Uuid::from_bytes(*id)
}
