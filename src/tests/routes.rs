//! Routes: a route is decided once, from custody, stored with its reason, logged on both branches, and cannot be stored in a shape
//! that makes no sense. The table of destinations is the specification.

use super::scene::*;
use pgrx::prelude::*;

/// The address of an account of ours.
const OURS: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
const ASSET: &str = "USDT-TRC20";

fn hex_of(address: &str) -> String {
    one(&format!(
        "select encode(sluice.address_bytes('{address}'), 'hex')"
    ))
    .expect("it is an address")
}

/// A route, as `rail reason_code account settlement depth`.
fn routed(destination: &str) -> String {
    one(&format!(
        "select concat_ws(' ', rail, reason_code, coalesce(account, '-'), settlement, depth) from sluice.route({}, '{ASSET}')",
        quoted(destination)
    ))
    .expect("it is routed")
}

fn custody() {
    run(&format!("select sluice.set_custody('{OURS}', 'acct-77')"));
}

/// Submits to a destination, exactly as given.
fn submit_to(number: u32, destination: &str) -> String {
    let id = id(number);
    run(&format!(
        "select sluice.submit('{id}', {}, '1.5')",
        quoted(destination)
    ));
    id
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_table_of_destinations() {
        let _scene = Scene::open();
        custody();
        let hex = hex_of(OURS);
        let ours = "internal custodied acct-77 ledger";
        for (destination, expected) in [
            (THEIRS.to_owned(), "external not_custodied - chain 0"),
            (OURS.to_owned(), ours),
            (format!("  {OURS}  "), ours),
            (format!("\t{OURS}\n"), ours),
            (hex.clone(), ours),
            (hex.to_uppercase(), ours),
            (format!("0x{hex}"), ours),
            (format!(" 0x{hex} "), ours),
            (hex_of(THEIRS), "external not_custodied - chain 0"),
        ] {
            assert_eq!(routed(&destination), expected, "{destination:?}");
        }
        // Case does not make it ours, nor anybody's: base58 has upper and lower case, and checks itself.
        for destination in [
            OURS.to_uppercase(),
            THEIRS.to_uppercase(),
            OURS.to_lowercase(),
        ] {
            refuses(
                &format!("select sluice.route('{destination}', '{ASSET}')"),
                "SL002",
                "destination",
            );
        }
        refuses(
            &format!("select sluice.route('', '{ASSET}')"),
            "SL005",
            "destination",
        );
        refuses(
            &format!("select sluice.route('{OURS}', 'XYZ')"),
            "SL004",
            "asset",
        );
    }

    #[pg_test]
    fn a_route_keeps_the_destination_exactly_as_asked_for_and_says_why_in_words() {
        let _scene = Scene::open();
        custody();
        let asked = format!("  {OURS} ");
        let (destination, reason) = (
            one(&format!(
                "select destination from sluice.route('{asked}', '{ASSET}')"
            )),
            one(&format!(
                "select reason from sluice.route('{asked}', '{ASSET}')"
            )),
        );
        assert_eq!(destination.as_deref(), Some(asked.as_str()));
        assert!(reason.expect("there is one").contains("account acct-77"));
        let id = submit_to(1, &asked);
        let logged = one(&format!(
            "select detail ->> 'destination' from sluice.timeline('{id}') where detail ? 'rail'"
        ));
        assert_eq!(logged.as_deref(), Some(asked.as_str()));
    }

    #[pg_test]
    fn any_lookup_will_do() {
        let _scene = Scene::open();
        custody();
        run("create schema myapp");
        run(&format!(
            "create function myapp.account_of(address bytea, asset text) returns text language sql security definer
             as $$ select 'knows-one' where address = sluice.address_bytes('{THEIRS}') and asset = '{ASSET}' $$"
        ));
        run("grant usage on schema myapp to sluice_owner");
        run(
            "select sluice.set_setting('custody_function', 'myapp.account_of', 'our own address book')",
        );
        assert_eq!(routed(THEIRS), "internal custodied knows-one ledger");
        assert_eq!(routed(OURS), "external not_custodied - chain 0");
        let theirs = submit_to(1, THEIRS);
        let ours = submit_to(2, OURS);
        let states = one(&format!(
            "select string_agg(state || ' ' || coalesce(credit_account, '-'), ', ' order by operation_id)
               from sluice.withdrawals where operation_id in ('{theirs}', '{ours}')"
        ));
        assert_eq!(states.as_deref(), Some("confirmed knows-one, requested -"));
        run("select sluice.set_setting('custody_function', 'sluice.account_of', 'back')");
        assert_eq!(routed(OURS), "internal custodied acct-77 ledger");
    }

    #[pg_test]
    fn a_custody_function_that_cannot_be_called_or_would_have_the_owners_rights_is_refused() {
        let _scene = Scene::open();
        run("create schema myapp");
        run("create role somebody");
        run("grant usage, create on schema myapp to somebody");
        run(
            "create function myapp.returns_int(address bytea, asset text) returns int language sql as 'select 1'",
        );
        run(
            "create function myapp.hidden(address bytea, asset text) returns text language sql as $$ select 'x' $$",
        );
        run("revoke execute on function myapp.hidden from public");
        run(
            "create function myapp.invoker(address bytea, asset text) returns text language sql as $$ select 'x' $$",
        );
        run("alter function myapp.invoker owner to somebody");
        for name in [
            "myapp.absent",
            "no such name(",
            "myapp.returns_int",
            "myapp.hidden",
            "myapp.invoker",
        ] {
            refuses(
                &format!("select sluice.set_setting('custody_function', '{name}', 'test')"),
                "SL005",
                "custody_function",
            );
        }
        // One that was taken and is replaced by what would not be is refused when it is to be called.
        run("grant usage on schema myapp to sluice_owner");
        run(
            "create function myapp.turns(address bytea, asset text) returns text language sql security definer as $$ select null::text $$",
        );
        run("alter function myapp.turns owner to somebody");
        run("select sluice.set_setting('custody_function', 'myapp.turns', 'test')");
        run("alter function myapp.turns security invoker");
        refuses(
            &format!("select sluice.submit('{}', '{THEIRS}', '1')", id(1)),
            "SL005",
            "custody_function",
        );
    }

    #[pg_test]
    fn the_route_is_decided_once_and_custody_changes_nothing_of_it_later() {
        let scene = Scene::open();
        custody();
        run(&format!(
            "select sluice.set_approval_rule('{ASSET}', 'all', '0', 1)"
        ));
        let waits = submit_to(1, OURS);
        run(&format!(
            "select sluice.set_custody('{OURS}', 'somebody-else')"
        ));
        run(&format!("select sluice.drop_custody('{OURS}')"));
        run(&format!(
            "insert into sluice.approvals (operation_id, approver) values ('{waits}', 'eve')"
        ));
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 0)");
        assert_eq!(scene.state(&waits), "confirmed");
        assert_eq!(scene.column(&waits, "credit_account"), "acct-77");
        let theirs = scene.submit(2);
        let task = scene.claim("w").remove(0);
        assert_eq!(task.operation_id, theirs);
        run(&format!("select sluice.set_custody('{THEIRS}', 'acct-77')"));
        scene.sign("w", &[task]);
        assert_eq!(scene.column(&theirs, "rail"), "external");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn what_comes_into_custody_before_it_is_routed_goes_the_ledgers_way_when_it_is_claimed() {
        let scene = Scene::open();
        let late = scene.submit(1);
        run(&format!("select sluice.set_custody('{THEIRS}', 'acct-77')"));
        assert!(scene.claim("w").is_empty(), "there is nothing to sign");
        assert_eq!(scene.state(&late), "confirmed");
        assert_eq!(
            scene.log(&late),
            ">requested requested>validated validated>signing signing>signed signed>broadcasting \
             broadcasting>broadcast broadcast>confirmed"
        );
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn the_decision_is_in_the_log_on_both_branches() {
        let scene = Scene::open();
        custody();
        let ours = submit_to(1, OURS);
        let theirs = scene.submit(2);
        scene.claim("w");
        for (id, expected) in [
            (ours, "validated internal custodied acct-77 ledger -"),
            (theirs, "validated external not_custodied - chain 0"),
        ] {
            let logged = one(&format!(
                "select concat_ws(' ', to_state, detail ->> 'rail', detail ->> 'reason_code', coalesce(detail ->> 'account', '-'),
                        detail ->> 'settlement', coalesce(detail ->> 'depth', '-'))
                   from sluice.timeline('{id}') where detail ? 'rail'"
            ));
            assert_eq!(logged.as_deref(), Some(expected));
        }
    }

    #[pg_test]
    fn a_route_in_a_shape_that_makes_no_sense_cannot_be_stored() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let store = |sets: &str| {
            sqlstate(&format!(
                "update sluice.withdrawals set {sets} where operation_id = '{id}'"
            ))
        };
        let posting = "posting_id = gen_random_uuid()";
        for sets in [
            "rail = 'external', reason_code = 'x', reason = 'y', depth = 0, credit_account = 'stale'",
            "rail = 'external', reason_code = 'x', reason = 'y'",
            "rail = 'external', reason_code = 'x', reason = 'y', depth = -1",
            "rail = 'external', reason_code = 'x', reason = ' ', depth = 0",
            "rail = 'external', reason_code = '', reason = 'y', depth = 0",
            "rail = 'external', reason_code = 'x', depth = 0",
            "rail = 'external', reason_code = 'x', reason = 'y', depth = 0, posting_id = gen_random_uuid()",
            &format!("rail = 'internal', reason_code = 'x', reason = 'y', {posting}"),
            &format!(
                "rail = 'internal', reason_code = 'x', reason = 'y', credit_account = ' ', {posting}"
            ),
            &format!(
                "rail = 'internal', reason_code = 'x', reason = 'y', credit_account = 'outside', {posting}"
            ),
            &format!(
                "rail = 'internal', reason_code = 'x', reason = 'y', credit_account = 'a', depth = 3, {posting}"
            ),
            "rail = 'internal', reason_code = 'x', reason = 'y', credit_account = 'a'",
            "credit_account = 'a'",
            "reason = 'why'",
            "depth = 1",
        ] {
            assert_eq!(store(sets), "23514", "{sets}");
        }
        assert_eq!(
            store("rail = 'external', reason_code = 'x', reason = 'y', depth = 0"),
            ""
        );
    }

    #[pg_test]
    fn what_settled_means_travels_with_the_withdrawal() {
        let mut scene = Scene::open();
        let set_depth = |depth| {
            run(&format!(
                "select sluice.set_asset(asset, contract, decimals, '1', '1000', fee_limit_sun, {depth}, true) from sluice.assets"
            ));
        };
        set_depth(2);
        let task = scene.broadcast(1);
        set_depth(0);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        scene.follow(3000, &[]);
        assert_eq!(scene.state(&task.operation_id), "broadcast");
        scene.follow(3000, &[]);
        assert_eq!(scene.state(&task.operation_id), "confirmed");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn the_two_populations_can_be_counted_side_by_side() {
        let scene = Scene::open();
        custody();
        let before = one("sluice.now()").expect("a clock");
        submit_to(1, OURS);
        submit_to(2, &format!(" {OURS}"));
        scene.submit(3);
        scene.claim("w");
        scene.clock(3600);
        let later = one("sluice.now()").expect("a clock");
        submit_to(4, OURS);
        let counted = |since: &str, until: &str| {
            one(&format!(
                "select string_agg(concat_ws(' ', rail, reason_code, coalesce(account, '-'), asset, withdrawals, units, amount), ', ')
                   from sluice.routed({since}, {until})"
            ))
            .unwrap_or_default()
        };
        let external = "external not_custodied - USDT-TRC20 1 1500000 1.5";
        assert_eq!(
            counted("null", "null"),
            format!("internal custodied acct-77 USDT-TRC20 3 4500000 4.5, {external}")
        );
        assert_eq!(
            counted(&format!("'{before}'"), &format!("'{later}'")),
            format!("internal custodied acct-77 USDT-TRC20 2 3000000 3, {external}")
        );
        assert_eq!(
            counted(&format!("'{later}'"), "null"),
            "internal custodied acct-77 USDT-TRC20 1 1500000 1.5"
        );
    }

    #[pg_test]
    fn a_bad_or_empty_custody_entry_is_refused_when_it_is_stored() {
        let _scene = Scene::open();
        let contract = one("select contract from sluice.assets").expect("an asset");
        let zero = one("sluice.zero_address()").expect("an address");
        let set = |address: &str, account: &str| {
            format!(
                "select sluice.set_custody({}, {})",
                quoted(address),
                quoted(account)
            )
        };
        let long = "x".repeat(201);
        for (statement, state, fault) in [
            (set("", "acct"), "SL005", "address"),
            (set("TNotAnAddress", "acct"), "SL002", "address"),
            (set(&OURS.to_uppercase(), "acct"), "SL002", "address"),
            (set(OURS, ""), "SL005", "account"),
            (set(OURS, "  "), "SL005", "account"),
            (set(OURS, &long), "SL005", "account"),
            (set(OURS, "outside"), "SL005", "account"),
            (set(&zero, "acct"), "SL008", "address"),
            (set(&contract, "acct"), "SL008", "address"),
            (set(MOCK_WALLET, "acct"), "SL008", "address"),
            (
                "select sluice.set_custody(null, 'acct')".to_owned(),
                "SL005",
                "address",
            ),
            (
                format!("select sluice.set_custody('{OURS}', null)"),
                "SL005",
                "account",
            ),
            (
                "select sluice.drop_custody('x')".to_owned(),
                "SL002",
                "address",
            ),
        ] {
            refuses(&statement, state, fault);
        }
        custody();
        refuses(
            &format!("select sluice.add_wallet('{OURS}', 'hmac')"),
            "SL008",
            "address",
        );
        assert_eq!(
            sqlstate("insert into sluice.custody (address, account) values ('\\x41', 'acct')"),
            "23514"
        );
        assert_eq!(
            one(&format!("sluice.drop_custody('  {OURS}')")).as_deref(),
            Some("true")
        );
        assert_eq!(
            one(&format!("sluice.drop_custody('{OURS}')")).as_deref(),
            Some("false")
        );
        let changes = one("select count(*) from sluice.changes where what = 'custody'");
        assert_eq!(changes.as_deref(), Some("2"), "who changed what is on file");
    }
}
