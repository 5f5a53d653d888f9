//! Intake of withdrawals. A statement that inserts some is one frame: before it, the assets and wallets are read once; for each
//! row, what is asked for is brought into its one form and noted; after it, the notes are compared with what stands.
//!
//! A replay is judged before any validation, and only the end of the statement knows which rows are replays (`ON CONFLICT`
//! skips them after their BEFORE ROW trigger has run). So what can never have been accepted (a bad address, a float) is refused at
//! once, and what depends on limits, assets and wallets is noted and raised for the rows that were really inserted.

use crate::pg::clock::now_us;
use crate::pg::errors::{Code, OrRaise, missing, raise};
use crate::pg::guard::session_user;
use crate::pg::row::{Replacement, Row, returned};
use pgrx::AllocatedByPostgres;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use serde_json::json;
use sluice_core::address::Address;
use sluice_core::event::Entry;
use sluice_core::state::State;
use sluice_core::units::{Units, format_amount, parse_amount, shortest};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

struct Asset {
    contract: Address,
    decimals: u32,
    minimum: Units,
    maximum: Units,
    version: i32,
}

/// What one row asked for, in its one form.
struct Proposal {
    operation_id: [u8; 16],
    to_address: String,
    amount: String,
    asset: String,
    account: Option<String>,
    fault: Option<(Code, String, &'static str)>,
}

struct Frame {
    subtransaction: pg_sys::SubTransactionId,
    assets: HashMap<String, Asset>,
    wallets: HashSet<Address>,
    proposals: Vec<Proposal>,
}

thread_local! {
    /// One frame for each INSERT under way: a trigger of somebody else's may insert while we do.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(vec![]) };
    /// The ids that the frame closed last had noted: rows in its statement that are not among them were restored.
    static NOTED: RefCell<HashSet<[u8; 16]>> = RefCell::new(HashSet::new());
}

/// Makes an aborted transaction or subtransaction forget the frames that it opened.
pub fn watch_subtransactions() {
    #[pg_guard]
    unsafe extern "C-unwind" fn on_transaction_end(
        event: pg_sys::XactEvent::Type,
        _argument: *mut c_void,
    ) {
        if event == pg_sys::XactEvent::XACT_EVENT_ABORT
            || event == pg_sys::XactEvent::XACT_EVENT_COMMIT
        {
            FRAMES.with_borrow_mut(Vec::clear);
            NOTED.with_borrow_mut(HashSet::clear);
            super::fresh::forget();
        }
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn on_subtransaction_end(
        event: pg_sys::SubXactEvent::Type,
        aborted: pg_sys::SubTransactionId,
        _parent: pg_sys::SubTransactionId,
        _argument: *mut c_void,
    ) {
        if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
            FRAMES.with_borrow_mut(|frames| frames.retain(|frame| frame.subtransaction < aborted));
        }
    }
    // SAFETY: both callbacks are static and only touch this backend's memory.
    unsafe {
        pg_sys::RegisterXactCallback(Some(on_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(on_subtransaction_end), std::ptr::null_mut());
    }
}

/// Opens a frame. `assets` is an array of objects; `wallets` are our own addresses.
#[pg_extern(volatile)]
fn intake_begin(assets: pgrx::JsonB, wallets: Vec<Option<String>>) {
    let text =
        |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let number = |row: &serde_json::Value, key: &str| row[key].as_i64().unwrap_or_default();
    let assets = assets
        .0
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| {
            let asset = Asset {
                contract: Address::parse(&text(row, "contract"))
                    .or_raise(Code::BadAddress, "contract"),
                decimals: u32::try_from(number(row, "decimals"))
                    .or_raise(Code::BadArgument, "decimals"),
                minimum: text(row, "minimum")
                    .parse()
                    .or_raise(Code::BadArgument, "minimum"),
                maximum: text(row, "maximum")
                    .parse()
                    .or_raise(Code::BadArgument, "maximum"),
                version: i32::try_from(number(row, "version"))
                    .or_raise(Code::BadArgument, "version"),
            };
            (text(row, "asset"), asset)
        })
        .collect();
    let wallets = wallets
        .iter()
        .flatten()
        .map(|wallet| Address::parse(wallet).or_raise(Code::BadAddress, "wallet"))
        .collect();
    // SAFETY: reads the number of the subtransaction under way.
    let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
    FRAMES.with_borrow_mut(|frames| {
        frames.push(Frame {
            subtransaction,
            assets,
            wallets,
            proposals: vec![],
        });
    });
}

/// Closes a frame: raises the first fault of a row that was really inserted, and returns what else was proposed, which must
/// agree with what stands. `inserted` are the ids that the statement stored.
#[pg_extern(volatile)]
fn intake_end(
    inserted: Vec<Option<pgrx::Uuid>>,
) -> TableIterator<
    'static,
    (
        name!(operation_id, pgrx::Uuid),
        name!(to_address, String),
        name!(amount, String),
        name!(asset, String),
        name!(account, Option<String>),
    ),
> {
    let Some(frame) = FRAMES.with_borrow_mut(Vec::pop) else {
        return TableIterator::new(vec![]);
    };
    NOTED.with_borrow_mut(|noted| {
        noted.clear();
        noted.extend(frame.proposals.iter().map(|proposal| proposal.operation_id));
    });
    let mut stored: HashSet<[u8; 16]> =
        inserted.iter().flatten().map(|id| *id.as_bytes()).collect();
    let mut to_compare = vec![];
    for proposal in frame.proposals {
        let id = pgrx::Uuid::from_bytes(proposal.operation_id);
        if stored.remove(&proposal.operation_id) {
            if let Some((code, message, hint)) = proposal.fault {
                raise(code, message, hint);
            }
            continue;
        }
        to_compare.push((
            id,
            proposal.to_address,
            proposal.amount,
            proposal.asset,
            proposal.account,
        ));
    }
    TableIterator::new(to_compare)
}

/// Whether the statement whose frame was closed last had noted this id: otherwise the row was restored.
#[pg_extern(volatile, strict)]
fn intake_noted(operation_id: pgrx::Uuid) -> bool {
    NOTED.with_borrow(|noted| noted.contains(operation_id.as_bytes()))
}

/// Longest text that a caller may file about itself.
const MAX_TEXT: usize = 200;

fn bounded(row: &Row, column: &'static str) -> Option<String> {
    let text = row.get::<String>(column)?;
    if text.trim().is_empty() {
        raise(
            Code::BadArgument,
            format!("{column}: is blank"),
            "Leave it out, or give a text.",
        );
    }
    if text.chars().count() > MAX_TEXT {
        raise(
            Code::BadArgument,
            format!("{column}: longer than {MAX_TEXT} characters"),
            "Give a shorter text.",
        );
    }
    Some(text)
}

/// The amount in base units, and what limits and lists say against paying it there.
fn judge(
    asset: &Asset,
    name: &str,
    wallets: &HashSet<Address>,
    to: &Address,
    amount: &str,
) -> (Units, Option<(Code, String, &'static str)>) {
    let parsed = parse_amount(amount, asset.decimals)
        .map_err(|error| {
            (
                Code::BadAmount,
                format!("amount: {error}"),
                "Give as many fractional digits as the asset has decimals, or fewer.",
            )
        })
        .and_then(|digits| {
            digits.parse::<Units>().map_err(|error| {
                (
                    Code::OutOfBounds,
                    format!("amount: {error}"),
                    "Give a smaller amount.",
                )
            })
        });
    let units = match parsed {
        Ok(units) => units,
        Err(fault) => return (Units::MAX, Some(fault)),
    };
    let shown = |units: Units| {
        format_amount(&units.to_string(), asset.decimals).unwrap_or_else(|_| units.to_string())
    };
    let fault = if units < asset.minimum {
        Some((
            Code::OutOfBounds,
            format!(
                "amount: below the minimum of {name}, {}",
                shown(asset.minimum)
            ),
            "Give a larger amount.",
        ))
    } else if units > asset.maximum {
        Some((
            Code::OutOfBounds,
            format!(
                "amount: above the maximum of {name}, {}",
                shown(asset.maximum)
            ),
            "Give a smaller amount.",
        ))
    } else if *to == asset.contract {
        Some((
            Code::DestinationRefused,
            "to_address: is the token's own contract".to_owned(),
            "Tokens sent to their contract are lost: give the recipient's address.",
        ))
    } else if wallets.contains(to) {
        Some((
            Code::DestinationRefused,
            "to_address: is one of our own wallets".to_owned(),
            "Give an address outside our wallets.",
        ))
    } else {
        None
    };
    (units, fault)
}

/// BEFORE INSERT, for each row.
#[pg_trigger]
fn withdrawals_before_insert<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError> {
    let (row, _) = Row::of_trigger(trigger);
    if row.has("hash") {
        return Ok(Some(returned(row)));
    }
    let operation_id = row
        .get::<pgrx::Uuid>("operation_id")
        .unwrap_or_else(|| missing("operation_id"));
    let destination = row
        .get::<String>("to_address")
        .unwrap_or_else(|| missing("to_address"));
    let amount = row
        .get::<String>("amount")
        .unwrap_or_else(|| missing("amount"));
    let asset_name = row
        .get::<String>("asset")
        .unwrap_or_else(|| missing("asset"));
    let account = bounded(&row, "account");
    let requested_by = bounded(&row, "requested_by");
    let state = row.printed("state").unwrap_or_default();
    if state != State::Requested.name() {
        raise(
            Code::IllegalStep,
            format!("withdrawal {operation_id}: begins as requested, not as {state}"),
            "Leave state out.",
        );
    }

    let to = super::envelope::address_of(&destination, "to_address");
    if to.is_zero() {
        raise(
            Code::DestinationRefused,
            "to_address: is the zero address",
            "Give the recipient's address.",
        );
    }
    let amount = shortest(&amount).or_raise(Code::BadAmount, "amount");
    let given = row.get::<String>("amount").unwrap_or_default();

    let (units, version) = FRAMES.with_borrow_mut(|frames| {
        let Some(frame) = frames.last_mut() else {
            raise(
                Code::IllegalStep,
                "the triggers of sluice.withdrawals were tampered with",
                "Restore them: ALTER TABLE … ENABLE TRIGGER.",
            );
        };
        let Some(asset) = frame.assets.get(&asset_name) else {
            let shown: String = asset_name.chars().take(40).collect();
            raise(
                Code::UnknownAsset,
                format!("asset: \"{shown}\" is not set up"),
                "Set it up with sluice.set_asset, or name one that is.",
            );
        };
        let (units, fault) = judge(asset, &asset_name, &frame.wallets, &to, &given);
        let version = asset.version;
        frame.proposals.push(Proposal {
            operation_id: *operation_id.as_bytes(),
            to_address: to.to_string(),
            amount: amount.clone(),
            asset: asset_name.clone(),
            account: account.clone(),
            fault,
        });
        (units, version)
    });

    let request_hash = sluice_core::request::request_hash(
        &to,
        &units.to_string(),
        &asset_name,
        account.as_deref(),
    );
    let submitted_by = session_user();
    let by = requested_by.clone().unwrap_or_else(|| submitted_by.clone());
    let at_us = now_us();
    let at = TimestampWithTimeZone::try_from(at_us).or_raise(Code::BadArgument, "sluice.now");
    let detail = json!([{
        "to_address": to.to_string(),
        "destination": destination,
        "amount_units": units.to_string(),
        "asset": asset_name,
        "account": account,
        "requested_by": requested_by,
        "submitted_by": submitted_by,
        "request_hash": hex::encode(request_hash),
    }]);

    let mut replacement = Replacement::of(row);
    replacement.set("to_address", to.to_string());
    replacement.set("destination", destination);
    replacement.set("amount", amount);
    replacement.read("amount_units", &units.to_string());
    replacement.set("asset_version", version);
    replacement.set("submitted_by", submitted_by);
    replacement.set("request_hash", request_hash.to_vec());
    replacement.set("created_at", at);
    replacement.set("changed_at", at);
    replacement.set("due_at", at);
    replacement.set("fencing_token", 0_i64);
    replacement.set("attempt", 0_i32);
    replacement.set("uncounted", 0_i32);
    replacement.set("accepted", false);
    for column in [
        "rail",
        "reason_code",
        "reason",
        "credit_account",
        "depth",
        "posting_id",
        "cancel_reason",
        "leased_by",
        "wallet",
        "sent_ms",
        "refusal",
        "last_error",
        "failure_reason",
        "block_number",
        "confirmed_at",
    ] {
        replacement.clear(column);
    }
    replacement.set("step_seq", 0_i32);
    replacement.read("step_path", "{requested}");
    replacement.read("step_detail", &detail.to_string());
    replacement.set("step_by", by.clone());
    replacement.set("seq", 1_i32);

    // The hash covers the detail as PostgreSQL prints it, so it is read back from the row that is to be stored.
    let stored = replacement.row();
    let printed = stored.json_element("step_detail", 0).unwrap_or_default();
    let entry = Entry {
        operation_id: *operation_id.as_bytes(),
        seq: 1,
        from: None,
        to: State::Requested,
        at_us,
        by: Some(&by),
        detail: &printed,
    };
    let mut hashed = Replacement::of(stored);
    hashed.set("hash", entry.hash(None).to_vec());
    Ok(Some(returned(hashed.row())))
}
