//! The whole way in the roles that are to go it: an operator sets up, an app asks, a runner carries, an auditor looks. All other
//! tests run as a superuser; here whatever a role needs and does not hold would show, and whatever it holds and should not.

use super::scene::*;
use pgrx::prelude::*;
use serde_json::json;

/// Runs a statement in a role; it must be taken.
fn run_as(role: &str, statement: &str) {
    run(&format!("set local role {role}"));
    run(statement);
    run("reset role");
}

/// What a role reads.
fn read_as(role: &str, expression: &str) -> String {
    run(&format!("set local role {role}"));
    let value = one(expression).unwrap_or_default();
    run("reset role");
    value
}

/// Functions of the schema that this role may execute and not everybody may.
fn own_calls(role: &str) -> String {
    one(&format!(
        "select string_agg(p.proname, ' ' order by p.proname)
           from pg_proc p
          where p.pronamespace = 'sluice'::regnamespace
            and has_function_privilege('{role}', p.oid, 'execute') and not has_function_privilege('public', p.oid, 'execute')"
    ))
    .unwrap_or_default()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn each_role_holds_these_calls_beyond_everybodys_and_not_one_more() {
        for (role, calls) in [
            (
                "sluice_app",
                "balance close_account deposit drop_custody open_account route set_custody submit submit withdrawal",
            ),
            (
                "sluice_runner",
                "claim_batch fenced_cas observe_blocks record_broadcasts record_signatures release runner_state workload",
            ),
            (
                "sluice_operator",
                "add_wallet balance cancel close_account deposit drop_approval_rule drop_custody explain fate follow_from four_eyes missing_approvals open_account pause reject resume route routed set_approval_rule set_asset set_custody set_setting timeline verify verify withdrawal",
            ),
            (
                "sluice_auditor",
                "balance explain fate missing_approvals route routed timeline verify verify withdrawal",
            ),
            (
                "sluice_approver",
                "approve explain fate reject timeline withdrawal",
            ),
            ("sluice_voucher", "approve reject"),
        ] {
            assert_eq!(own_calls(role), calls, "{role}");
        }
    }

    #[pg_test]
    fn a_withdrawal_goes_its_whole_way_in_the_roles_that_are_to_move_it() {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        let scene = Scene { tip: first.clone() };
        scene.clock(0);
        for statement in [
            format!("select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"),
            format!("select sluice.follow_from({}, '\\x{GENESIS}')", literal(&first.bytes)),
            "select sluice.set_setting('lease', '20 seconds', 'a reason')".to_owned(),
            "select sluice.set_asset('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, '0.000001', '1000', 100000000, 0, true)".to_owned(),
            "select sluice.pause('a reason')".to_owned(),
            "select sluice.resume('a reason')".to_owned(),
        ] {
            run_as("sluice_operator", &statement);
        }
        run_as(
            "sluice_app",
            &format!("select sluice.submit('{}', '{THEIRS}', '1.5')", id(1)),
        );
        run_as(
            "sluice_app",
            &format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount) values ('{}', '{THEIRS}', '2')",
                id(2)
            ),
        );
        run_as(
            "sluice_app",
            &format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount) values ('{}', '{THEIRS}', 2) on conflict (operation_id) do nothing",
                id(2)
            ),
        );
        run_as(
            "sluice_operator",
            &format!("select sluice.cancel('{}', 'a reason')", id(2)),
        );
        run("create temp table carried (task jsonb)");
        run("grant all on carried to sluice_runner");
        run_as(
            "sluice_runner",
            "insert into carried select to_jsonb(t) from sluice.claim_batch('w') t",
        );
        let task =
            |key: &str| one(&format!("select task ->> '{key}' from carried")).unwrap_or_default();
        let hex = |key: &str| task(key).trim_start_matches("\\x").to_owned();
        let mut report = json!([{"operation_id": task("operation_id"), "fencing_token": 1, "txid": hex("txid"), "signature": "01".repeat(65)}]);
        let state = read_as(
            "sluice_runner",
            &format!("select state from sluice.record_signatures('w', '{report}')"),
        );
        assert_eq!(state, "broadcasting");
        if let Some(element) = report[0].as_object_mut() {
            element.remove("signature");
            element.insert("node".to_owned(), json!("n"));
            element.insert("code".to_owned(), json!("SUCCESS"));
        }
        let state = read_as(
            "sluice_runner",
            &format!("select state from sluice.record_broadcasts('w', '{report}')"),
        );
        assert_eq!(state, "broadcast");
        assert_eq!(
            read_as(
                "sluice_runner",
                &format!(
                    "select state from sluice.fenced_cas('{}', 1, 'broadcast', 'broadcast', 'w')",
                    id(1)
                )
            ),
            "broadcast"
        );
        assert_eq!(
            read_as(
                "sluice_runner",
                "select concat_ws(' ', due, waiting, parked) from sluice.workload()"
            ),
            "0 1 0"
        );
        let raw_data = hex::decode(hex("raw_data")).expect("bytea prints as hex");
        let next = scene.next(3000, &[in_block(&raw_data, SUCCESS)]);
        let moved = format!(
            "select state from sluice.observe_blocks('node', array[{}])",
            literal(&next.bytes)
        );
        assert_eq!(read_as("sluice_runner", &moved), "confirmed");
        assert_eq!(
            read_as(
                "sluice_runner",
                "select followed_number from sluice.runner_state()"
            ),
            "1001"
        );
        assert_eq!(
            read_as(
                "sluice_app",
                &format!("select state from sluice.withdrawal('{}')", id(1))
            ),
            "confirmed"
        );
        assert_eq!(
            read_as(
                "sluice_app",
                "select string_agg(state::text, ' ' order by operation_id) from sluice.withdrawals"
            ),
            "confirmed rejected"
        );
        for role in ["sluice_operator", "sluice_auditor"] {
            let overview = read_as(
                role,
                "select string_agg(state || ' ' || amount, ', ' order by state) from sluice.overview where asset is not null",
            );
            assert_eq!(overview, "confirmed 1.5, rejected 2", "{role}");
            assert_eq!(
                read_as(role, "select count(*) from sluice.stuck"),
                "0",
                "{role}"
            );
        }
        for role in ["sluice_operator", "sluice_auditor", "sluice_approver"] {
            assert_eq!(
                read_as(
                    role,
                    &format!("select fate from sluice.fate('\\x{}')", hex("txid"))
                ),
                "included",
                "{role}"
            );
            assert_eq!(
                read_as(
                    role,
                    &format!("select count(*) from sluice.timeline('{}')", id(1))
                ),
                "7",
                "{role}"
            );
            assert_ne!(
                read_as(
                    role,
                    &format!("select stands from sluice.explain('{}')", id(1))
                ),
                "",
                "{role}"
            );
        }
    }

    #[pg_test]
    fn an_auditor_reads_every_table_and_a_runner_none() {
        let _scene = Scene::open();
        let tables = one("select string_agg(relname, ' ' order by relname) from pg_class where relnamespace = 'sluice'::regnamespace and relkind in ('r', 'v')")
            .unwrap_or_default();
        for table in tables.split(' ') {
            let statement = format!("select * from sluice.{table}");
            assert_eq!(tried_as("sluice_auditor", &statement).0, "", "{table}");
            for role in ["sluice_runner", "sluice_approver", "sluice_voucher"] {
                assert_eq!(tried_as(role, &statement).0, "42501", "{role}: {table}");
            }
            let app = tried_as("sluice_app", &statement).0;
            assert_eq!(app, "42501", "an app: {table}");
        }
    }

    #[pg_test]
    fn no_role_reaches_past_the_calls_that_it_holds() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let (operation, txid) = (&task.operation_id, hex::encode(&task.txid));
        for statement in [
            format!("update sluice.withdrawals set state = 'failed', failure_reason = 'x' where operation_id = '{operation}'"),
            format!("update sluice.withdrawals set to_address = '{MOCK_WALLET}'"),
            format!("delete from sluice.withdrawals where operation_id = '{operation}'"),
            "truncate sluice.withdrawals".to_owned(),
            format!("update sluice.envelopes set fate = 'dead' where txid = '\\x{txid}'"),
            "insert into sluice.envelopes select * from sluice.envelopes".to_owned(),
            "insert into sluice.blocks select * from sluice.blocks".to_owned(),
            "insert into sluice.payments select * from sluice.payments".to_owned(),
            "insert into sluice.events select * from sluice.events".to_owned(),
            "update sluice.settings set observers = 1".to_owned(),
            format!("insert into sluice.wallets (address, signer, signer_address) values ('{THEIRS}', 'hmac', '{THEIRS}')"),
            format!("select sluice.settle(array['{operation}']::uuid[], 'node')"),
            format!("select sluice.claim_rows('w', array['{operation}']::uuid[], '1 hour')"),
            format!("select sluice.set_aside('{operation}', 'x')"),
            "select sluice.file_signatures('w', '[]')".to_owned(),
            "select sluice.intake_begin('[]', '{}')".to_owned(),
            "select * from sluice.intake_end('{}')".to_owned(),
            "select sluice.fold_tallies()".to_owned(),
            "select sluice.seen('w', 'x', 1)".to_owned(),
            format!("select sluice.signature_fault('hmac', '{MOCK_WALLET}', '\\x{txid}', '\\x00')"),
            "set sluice.now = '2030-01-01'".to_owned(),
            "set session_replication_role = replica".to_owned(),
            "alter table sluice.withdrawals disable trigger all".to_owned(),
            "drop trigger b_judge_steps on sluice.withdrawals".to_owned(),
            "create or replace function sluice.now() returns timestamptz language sql as 'select now()'".to_owned(),
            "create table sluice.mine ()".to_owned(),
        ] {
            for role in ["sluice_app", "sluice_runner", "sluice_operator", "sluice_auditor", "sluice_approver", "sluice_voucher"] {
                let code = tried_as(role, &statement).0;
                assert_eq!(code, "42501", "{role}: {statement}");
            }
        }
    }

    #[pg_test]
    fn no_role_is_another_and_none_logs_in() {
        for role in [
            "sluice_app",
            "sluice_runner",
            "sluice_operator",
            "sluice_auditor",
            "sluice_approver",
            "sluice_voucher",
            "sluice_owner",
        ] {
            assert_eq!(
                one(&format!("select rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls from pg_roles where rolname = '{role}'"))
                    .as_deref(),
                Some("false"),
                "{role}"
            );
        }
        assert_eq!(
            count(
                "select count(*) from pg_auth_members m join pg_roles r on r.oid = m.member where r.rolname like 'sluice\\_%'"
            ),
            0
        );
    }
}
