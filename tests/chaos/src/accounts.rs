//! The accounts of a run: payers whose funds run out for some of what is asked of them, and payees whose addresses are in custody.

use postgres::Client;
use sluice_scenarios::destination;

use crate::orders::DESTINATIONS;

/// How many accounts pay.
pub const PAYERS: u64 = 20;

/// What each of them has of each asset when a run of so many withdrawals begins, in whole tokens: what is asked of one is more at
/// times.
#[must_use]
pub fn funds(withdrawals: usize) -> u64 {
    12_000 * (withdrawals as u64 / 200).max(1)
}

/// Of the addresses that are paid, one in so many is an account's.
const CUSTODY: u32 = 8;

/// An account that pays.
#[must_use]
pub fn payer(n: u64) -> String {
    format!("payer {n}")
}

/// Opens the accounts, funds them, and takes the payees' addresses into custody.
///
/// # Panics
/// Where the operator is refused.
pub fn open(operator: &mut Client, assets: &[&str], withdrawals: usize) {
    for asset in assets {
        for n in 0..PAYERS {
            let open =
                "select sluice.open_account($1, $2), sluice.deposit($1, $3, $1 || ' ' || $2, $2)";
            operator
                .query_one(open, &[&payer(n), asset, &funds(withdrawals).to_string()])
                .expect("an account is opened and funded");
        }
    }
    let addresses = u32::try_from(DESTINATIONS).expect("few");
    for n in (0..addresses).filter(|n| n % CUSTODY == 0) {
        let address = destination(n).to_string();
        operator
            .query_one(
                "select sluice.set_custody($1, $2)",
                &[&address, &format!("payee {n}")],
            )
            .expect("an address is taken into custody");
    }
}
