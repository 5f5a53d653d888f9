//! The ledger: balances follow from postings and change by nothing else, a hold is placed once and ends as its withdrawal ends, and no
//! account gives what it has not.

use super::scene::*;
use pgrx::prelude::*;

const OURS: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

/// What an account has, as `posted held available`.
fn balance(account: &str) -> String {
    one(&format!(
        "select concat_ws(' ', posted, held, available) from sluice.balance('{account}')"
    ))
    .expect("it is open")
}

/// An account with this much.
fn funded(account: &str, amount: &str) {
    run(&format!("select sluice.open_account('{account}')"));
    run(&format!(
        "select sluice.deposit('{account}', '{amount}', 'funds of {account}')"
    ));
}

/// Submits from an account, and returns the id.
fn withdraw(number: u32, to: &str, amount: &str, account: &str) -> String {
    let id = id(number);
    run(&format!(
        "select sluice.submit('{id}', '{to}', '{amount}', account => '{account}')"
    ));
    id
}

fn custody(account: &str) {
    run(&format!("select sluice.set_custody('{OURS}', '{account}')"));
}

fn failure(id: &str) -> String {
    one(&format!(
        "select failure_reason from sluice.withdrawal('{id}')"
    ))
    .unwrap_or_default()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_deposit_is_booked_once_a_reference() {
        let _scene = Scene::open();
        run("select sluice.open_account('alice')");
        let deposit = "sluice.deposit('alice', '12.50', 'tx 1')";
        assert_eq!(one(deposit).as_deref(), Some("true"));
        assert_eq!(one(deposit).as_deref(), Some("false"));
        assert_eq!(
            one("sluice.deposit('alice', '12.5', 'tx 1')").as_deref(),
            Some("false")
        );
        assert_eq!(balance("alice"), "12500000 0 12500000");
        run("select sluice.open_account('bob')");
        for (statement, differs) in [
            (
                "select sluice.deposit('alice', '12', 'tx 1')",
                "another amount",
            ),
            (
                "select sluice.deposit('bob', '12.5', 'tx 1')",
                "another account",
            ),
            (
                "select sluice.deposit('bob', '1', 'tx 1')",
                "another account, amount",
            ),
        ] {
            let (state, message) = refused(statement);
            assert_eq!(state, "SL001");
            assert!(
                message.starts_with("reference: ") && message.ends_with(differs),
                "{message}"
            );
        }
        assert_eq!(balance("alice"), "12500000 0 12500000");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn bad_input_names_its_argument_and_changes_nothing() {
        let _scene = Scene::open();
        run("select sluice.open_account('alice')");
        for (statement, state, fault) in [
            ("select sluice.open_account('')", "SL005", "account"),
            ("select sluice.open_account('outside')", "SL005", "account"),
            ("select sluice.open_account('a', 'XYZ')", "SL004", "asset"),
            ("select sluice.open_account(null)", "SL005", "account"),
            ("select sluice.close_account('bob')", "SL031", "account"),
            ("select sluice.balance('bob')", "SL031", "account"),
            ("select sluice.balance('alice', 'XYZ')", "SL004", "asset"),
            ("select sluice.deposit('bob', '1', 'r')", "SL031", "account"),
            (
                "select sluice.deposit('alice', '0', 'r')",
                "SL007",
                "amount",
            ),
            (
                "select sluice.deposit('alice', '-1', 'r')",
                "SL003",
                "amount",
            ),
            (
                "select sluice.deposit('alice', '1e3', 'r')",
                "SL003",
                "amount",
            ),
            (
                "select sluice.deposit('alice', '0.0000001', 'r')",
                "SL003",
                "amount",
            ),
            (
                "select sluice.deposit('alice', null, 'r')",
                "SL005",
                "amount",
            ),
            (
                "select sluice.deposit('alice', '1', ' ')",
                "SL005",
                "reference",
            ),
            (
                "select sluice.deposit('alice', '1', null)",
                "SL005",
                "reference",
            ),
            (
                "select sluice.deposit('alice', repeat('9', 33), 'r')",
                "SL007",
                "amount",
            ),
        ] {
            refuses(statement, state, fault);
        }
        run("select sluice.deposit('alice', repeat('9', 32), 'r')");
        refuses(
            "select sluice.deposit('alice', '1', 'r2')",
            "SL032",
            "amount",
        );
    }

    #[pg_test]
    fn an_internal_withdrawal_moves_the_money_from_one_account_to_the_other_and_touches_no_chain() {
        let scene = Scene::open();
        funded("alice", "10");
        custody("bob");
        let id = withdraw(1, OURS, "4", "alice");
        assert_eq!(
            (balance("alice").as_str(), balance("bob").as_str()),
            ("6000000 0 6000000", "4000000 0 4000000")
        );
        assert_eq!(scene.state(&id), "confirmed");
        let shown = one(&format!(
            "select concat_ws(' ', rail, reason_code, account, from_account, to_account, coalesce(txid, '-'), coalesce(block_number::text, '-'),
                    posting_id is not null, confirmed_at is not null) from sluice.withdrawal('{id}')"
        ));
        assert_eq!(
            shown.as_deref(),
            Some("internal custodied bob alice bob - - t t")
        );
        assert!(scene.claim("w").is_empty(), "there is nothing for a runner");
        // The same again is the same withdrawal, and moves nothing.
        let again = one(&format!(
            "select concat_ws(' ', created, state, account) from sluice.submit('{id}', '{OURS}', '4', account => 'alice')"
        ));
        assert_eq!(again.as_deref(), Some("f confirmed alice"));
        assert_eq!(balance("alice"), "6000000 0 6000000");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn without_an_account_nothing_is_held_and_the_credit_is_booked_all_the_same() {
        let scene = Scene::open();
        custody("bob");
        let id = id(1);
        run(&format!("select sluice.submit('{id}', '{OURS}', '4')"));
        assert_eq!(
            (scene.state(&id).as_str(), balance("bob").as_str()),
            ("confirmed", "4000000 0 4000000")
        );
        scene.submit(2);
        assert_eq!(
            scene.claim("w").len(),
            1,
            "the chain's rail asks for no account either"
        );
        assert_eq!(
            one("select count(*) from sluice.holds").as_deref(),
            Some("0")
        );
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn a_hold_is_placed_when_it_is_validated_stays_while_the_outcome_is_unknown_and_is_captured_when_it_is_paid()
     {
        let mut scene = Scene::open();
        funded("alice", "10");
        let id = withdraw(1, THEIRS, "4", "alice");
        assert_eq!(balance("alice"), "10000000 0 10000000");
        let task = scene.claim("w").remove(0);
        assert_eq!(balance("alice"), "10000000 4000000 6000000");
        let signed = scene.sign("w", std::slice::from_ref(&task));
        scene.answer("w", &signed, "SIGERROR");
        assert_eq!(
            balance("alice"),
            "10000000 4000000 6000000",
            "a node's word ends nothing"
        );
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(scene.state(&id), "confirmed");
        assert_eq!(balance("alice"), "6000000 0 6000000");
        assert_eq!(
            one("select kind || ' ' || debit || ' ' || credit || ' ' || units from sluice.postings where operation_id is not null").as_deref(),
            Some("capture alice outside 4000000")
        );
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn a_hold_is_released_when_the_chain_fails_it_and_when_a_person_ends_it() {
        let mut scene = Scene::open();
        funded("alice", "10");
        withdraw(1, THEIRS, "4", "alice");
        let task = scene.claim("w").remove(0);
        let rejected = withdraw(2, THEIRS, "5", "alice");
        run(&format!(
            "select sluice.pause('none to be built', '{MOCK_WALLET}')"
        ));
        scene.claim("w");
        assert_eq!(
            balance("alice"),
            "10000000 4000000 6000000",
            "what cannot be started is not looked at"
        );
        run(&format!("select sluice.resume('go on', '{MOCK_WALLET}')"));
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        scene.claim("w");
        assert_eq!(balance("alice"), "10000000 9000000 1000000");
        run(&format!("select sluice.reject('{rejected}', 'not today')"));
        assert_eq!(balance("alice"), "10000000 4000000 6000000");
        scene.sign("w", std::slice::from_ref(&task));
        scene.follow(3000, &[in_block(&task.raw_data, REVERT)]);
        assert_eq!(scene.state(&task.operation_id), "failed");
        assert_eq!(balance("alice"), "10000000 0 10000000");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn a_withdrawal_that_its_account_cannot_cover_is_rejected_for_that_on_both_rails() {
        let scene = Scene::open();
        funded("alice", "10");
        custody("bob");
        let internal = withdraw(1, OURS, "10.000001", "alice");
        let external = withdraw(2, THEIRS, "10.000001", "alice");
        let unopened = withdraw(3, THEIRS, "1", "nobody");
        let fits = withdraw(4, THEIRS, "10", "alice");
        scene.claim("w");
        for id in [&internal, &external] {
            assert_eq!(scene.state(id), "rejected");
            assert_eq!(
                failure(id),
                "account alice has insufficient available funds"
            );
        }
        assert_eq!(
            failure(&unopened),
            "account nobody is not open for USDT-TRC20"
        );
        assert_eq!(scene.state(&fits), "signing");
        assert_eq!(balance("alice"), "10000000 10000000 0");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn of_many_at_once_those_that_fit_are_taken_in_order_and_what_does_not_fit_stands_in_nobodys_way()
     {
        let scene = Scene::open();
        funded("alice", "10");
        for (number, amount) in [(1, "8"), (2, "5"), (3, "2"), (4, "1")] {
            withdraw(number, THEIRS, amount, "alice");
        }
        scene.claim("w");
        let states: Vec<String> = (1..=4).map(|number| scene.state(&id(number))).collect();
        assert_eq!(states, ["signing", "rejected", "signing", "rejected"]);
        // The same in one statement, over the ledger.
        custody("bob");
        funded("carol", "10");
        run(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount, asset, account)
             select ('00000000-0000-4000-8000-' || lpad((100 + n)::text, 12, '0'))::uuid, '{OURS}', amount::sluice.amount, 'USDT-TRC20', 'carol'
               from unnest(array[8, 5, 2, 1]) with ordinality t (amount, n)"
        ));
        let states: Vec<String> = (101..=104).map(|number| scene.state(&id(number))).collect();
        assert_eq!(states, ["confirmed", "rejected", "confirmed", "rejected"]);
        assert_eq!(balance("bob"), "10000000 0 10000000");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn placing_a_hold_twice_is_free_and_placing_it_with_other_numbers_is_an_error() {
        let scene = Scene::open();
        funded("alice", "10");
        let id = withdraw(1, THEIRS, "4", "alice");
        scene.claim("w");
        run(&format!("select sluice.place_holds(array['{id}'::uuid])"));
        assert_eq!(balance("alice"), "10000000 4000000 6000000");
        let other = withdraw(2, THEIRS, "1", "alice");
        for values in [
            format!("'{other}', 'alice', 'USDT-TRC20', 999999"),
            format!("'{other}', 'bob', 'USDT-TRC20', 1000000"),
            format!(
                "'{}', 'alice', 'USDT-TRC20', 1",
                super::super::scene::id(99)
            ),
        ] {
            assert_eq!(
                sqlstate(&format!(
                    "insert into sluice.holds (operation_id, account, asset, units) values ({values})"
                )),
                "SL014",
                "{values}"
            );
        }
    }

    #[pg_test]
    fn a_hold_ends_once_and_only_as_its_withdrawal_ends() {
        let scene = Scene::open();
        funded("alice", "10");
        let id = withdraw(1, THEIRS, "4", "alice");
        scene.claim("w");
        let end = |how: &str| {
            sqlstate(&format!(
                "update sluice.holds set ended = '{how}', ended_at = sluice.now() where operation_id = '{id}'"
            ))
        };
        assert_eq!(
            (end("captured"), end("released")),
            ("SL011".into(), "SL011".into())
        );
        let rejected = withdraw(2, OURS, "1", "alice");
        run(&format!("select sluice.cancel('{rejected}', 'no')"));
        for statement in [
            "update sluice.holds set units = 1",
            "update sluice.holds set account = 'bob'",
            "delete from sluice.holds",
            "truncate sluice.holds",
        ] {
            assert_ne!(sqlstate(statement), "", "{statement}");
        }
        assert_eq!(balance("alice"), "10000000 4000000 6000000");
    }

    #[pg_test]
    fn a_balance_changes_by_postings_and_by_nothing_else() {
        let _scene = Scene::open();
        funded("alice", "10");
        for statement in [
            "update sluice.accounts set posted = posted + 1",
            "insert into sluice.accounts (account, asset, posted) values ('mallory', 'USDT-TRC20', 5)",
            "update sluice.accounts set account = 'mallory'",
            "delete from sluice.accounts",
            "update sluice.postings set units = units + 1",
            "delete from sluice.postings",
        ] {
            assert_ne!(as_owner(statement), "", "{statement}");
        }
        let post = |kind: &str, debit: &str, credit: &str, units: &str, rest: &str| {
            sqlstate(&format!(
                "insert into sluice.postings (posting_id, kind, debit, credit, asset, units, operation_id, reference)
                 values (gen_random_uuid(), '{kind}', '{debit}', '{credit}', 'USDT-TRC20', {units}, {rest})"
            ))
        };
        assert_eq!(
            post("deposit", "outside", "alice", "5", "null, 'made up'"),
            "SL014"
        );
        assert_eq!(
            post(
                "transfer",
                "outside",
                "alice",
                "5",
                &format!("'{}', null", id(1))
            ),
            "SL014"
        );
        assert_eq!(
            post(
                "transfer",
                "alice",
                "alice",
                "5",
                &format!("'{}', null", id(1))
            ),
            "23514"
        );
        assert_eq!(
            post("deposit", "outside", "alice", "0", "null, 'r'"),
            "23514"
        );
        assert_eq!(post("gift", "outside", "alice", "5", "null, 'r'"), "23514");
        assert_eq!(balance("alice"), "10000000 0 10000000");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn an_account_closes_empty_and_with_nothing_under_way_and_opens_again() {
        let scene = Scene::open();
        funded("alice", "4");
        refuses("select sluice.close_account('alice')", "SL032", "account");
        withdraw(1, THEIRS, "4", "alice");
        let task = scene.claim("w").remove(0);
        refuses("select sluice.close_account('alice')", "SL032", "account");
        let mut scene = scene;
        scene.sign("w", std::slice::from_ref(&task));
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        assert_eq!(
            one("sluice.close_account('alice')").as_deref(),
            Some("true")
        );
        assert_eq!(
            one("sluice.close_account('alice')").as_deref(),
            Some("false")
        );
        refuses(
            "select sluice.deposit('alice', '1', 'late')",
            "SL031",
            "account",
        );
        assert_eq!(one("sluice.open_account('alice')").as_deref(), Some("true"));
        assert_eq!(
            one("sluice.open_account('alice')").as_deref(),
            Some("false")
        );
        run("select sluice.deposit('alice', '1', 'late')");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn an_account_that_is_closed_is_not_credited_and_the_sender_keeps_its_funds() {
        let scene = Scene::open();
        funded("alice", "10");
        custody("bob");
        run("select sluice.open_account('bob')");
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        let waits = withdraw(1, OURS, "4", "alice");
        assert_eq!(balance("alice"), "10000000 4000000 6000000");
        run("select sluice.close_account('bob')");
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 0)");
        assert_eq!(scene.state(&waits), "rejected");
        assert_eq!(
            failure(&waits),
            "account bob, whose address the destination is, is closed"
        );
        let at_once = withdraw(2, OURS, "4", "alice");
        assert_eq!(scene.state(&at_once), "rejected");
        assert_eq!(balance("alice"), "10000000 0 10000000");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn an_account_does_not_pay_itself() {
        let scene = Scene::open();
        funded("alice", "10");
        custody("alice");
        let id = withdraw(1, OURS, "4", "alice");
        assert_eq!(scene.state(&id), "rejected");
        assert_eq!(
            failure(&id),
            "the destination is an address of account alice itself"
        );
        assert_eq!(balance("alice"), "10000000 0 10000000");
    }

    #[pg_test]
    fn amounts_at_the_edge_of_what_the_ledger_holds() {
        let scene = Scene::open();
        let most = "9".repeat(38);
        run(&format!(
            "select sluice.set_asset('WHOLE', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', 0, '1', '{most}', 100, 0, true)"
        ));
        run("select sluice.open_account('alice', 'WHOLE')");
        run(&format!(
            "select sluice.deposit('alice', '{most}', 'all there is', 'WHOLE')"
        ));
        custody("bob");
        let submit = |number: u32, amount: &str, account: &str| {
            let id = id(number);
            run(&format!(
                "select sluice.submit('{id}', '{OURS}', '{amount}', 'WHOLE', {account})"
            ));
            id
        };
        let all = submit(1, &most, "'alice'");
        assert_eq!(scene.state(&all), "confirmed");
        let posted = one("select posted from sluice.balance('bob', 'WHOLE')");
        assert_eq!(posted.as_deref(), Some(most.as_str()));
        let more = submit(2, "1", "null");
        assert_eq!(
            failure(&more),
            "account bob, whose address the destination is, cannot hold that much more"
        );
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn what_the_ledger_counts_in_keeps_its_decimals() {
        let _scene = Scene::open();
        funded("alice", "10");
        refuses(
            "select sluice.set_asset(asset, contract, 8, '1', '1000', fee_limit_sun, 0, true) from sluice.assets",
            "SL005",
            "decimals",
        );
    }
}
