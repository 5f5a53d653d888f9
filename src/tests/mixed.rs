//! Ten thousand withdrawals, half of them between accounts of ours and half over the chain, until nothing is left to do.

use super::scene::*;
use pgrx::prelude::*;

/// An address of an account of ours.
const OURS: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
/// How many withdrawals in all.
const MANY: i64 = 10_000;
/// How many accounts pay for them.
const ACCOUNTS: i64 = 10;

/// What our accounts have, and what has left them, in base units.
const LEDGER: &str = "select (select sum(a.posted) from sluice.accounts a)
       + coalesce((select sum(p.units) from sluice.postings p where p.kind = 'capture'), 0)";

/// How many of them come first.
const FEW: i64 = 20;

/// Submits these, every other one to an address of ours.
fn submit(first: i64, last: i64) {
    run(&format!(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset, account)
         select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid,
                case when n % 2 = 0 then '{OURS}' else '{THEIRS}' end, '1', 'USDT-TRC20', 'payer ' || n / 2 % {ACCOUNTS}
           from generate_series({first}, {last}) n"
    ));
}

/// Signs, sends and pays until nothing is due.
fn drain(scene: &mut Scene) {
    loop {
        let tasks = tasks_of("select * from sluice.claim_batch('w', 1000)");
        if tasks.is_empty() {
            return;
        }
        let signed = scene.sign("w", &tasks);
        scene.answer("w", &signed, "SUCCESS");
        let paid: Vec<Vec<u8>> = signed
            .iter()
            .map(|task| in_block(&task.raw_data, SUCCESS))
            .collect();
        scene.follow(3000, &paid);
    }
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn ten_thousand_mixed_withdrawals_drain_and_the_ledgers_total_is_unchanged() {
        let mut scene = Scene::open();
        run(&format!("select sluice.set_custody('{OURS}', 'shop')"));
        run(&format!(
            "select sluice.open_account('payer ' || n), sluice.deposit('payer ' || n, '1000', 'funds ' || n)
               from generate_series(0, {}) n",
            ACCOUNTS - 1
        ));
        let before = one(LEDGER);
        // A database that has lived a little, with statistics as autovacuum keeps them: a plan for empty tables is no measure.
        submit(1, FEW);
        drain(&mut scene);
        run("analyze");
        submit(FEW + 1, MANY);
        run("analyze");
        let confirmed =
            || count("select count(*) from sluice.withdrawals where state = 'confirmed'");
        assert_eq!(
            confirmed(),
            (FEW + MANY) / 2,
            "the ledger's half is done when the INSERT is"
        );
        drain(&mut scene);
        assert_eq!(confirmed(), MANY);
        assert_eq!(one(LEDGER), before);
        assert_eq!(
            one("select string_agg(concat_ws(' ', rail, withdrawals, amount), ', ') from sluice.routed()").as_deref(),
            Some("internal 5000 5000, external 5000 5000")
        );
        assert_eq!(
            count("select sum(posted) from sluice.accounts"),
            5_000_000_000
        );
        assert_eq!(
            count("select count(*) from sluice.holds where ended = 'captured'"),
            MANY
        );
        assert_eq!(broken(), "");
    }
}
