//! Who may do what: each role holds the calls that the contract names for it, and nothing else.

use super::scene::*;
use pgrx::prelude::*;

/// The calls that move something or show more than a client may see, and the roles that hold them.
const CALLS: [(&str, &[&str]); 42] = [
    ("submit(uuid,text,text,text,text,text)", &["sluice_app"]),
    ("submit(jsonb)", &["sluice_app"]),
    (
        "withdrawal(uuid)",
        &[
            "sluice_app",
            "sluice_approver",
            "sluice_auditor",
            "sluice_operator",
        ],
    ),
    ("claim_batch(text,integer,interval)", &["sluice_runner"]),
    (
        "fenced_cas(uuid,bigint,sluice.state,sluice.state,text,jsonb,jsonb)",
        &["sluice_runner"],
    ),
    ("record_signatures(text,jsonb)", &["sluice_runner"]),
    ("record_broadcasts(text,jsonb)", &["sluice_runner"]),
    ("release(text,uuid[],bigint[])", &["sluice_runner"]),
    ("observe_blocks(text,bytea[])", &["sluice_runner"]),
    ("runner_state()", &["sluice_runner"]),
    ("workload()", &["sluice_runner"]),
    (
        "add_wallet(text,text,text,integer,integer)",
        &["sluice_operator"],
    ),
    (
        "set_asset(text,text,integer,text,text,bigint,integer,boolean)",
        &["sluice_operator"],
    ),
    ("set_setting(text,text,text)", &["sluice_operator"]),
    ("follow_from(bytea,bytea)", &["sluice_operator"]),
    ("pause(text,text,text)", &["sluice_operator"]),
    ("resume(text,text,text)", &["sluice_operator"]),
    ("cancel(uuid,text)", &["sluice_operator"]),
    (
        "reject(uuid,text)",
        &["sluice_approver", "sluice_operator", "sluice_voucher"],
    ),
    (
        "approve(uuid,text,text)",
        &["sluice_approver", "sluice_voucher"],
    ),
    ("set_custody(text,text)", &["sluice_app", "sluice_operator"]),
    ("drop_custody(text)", &["sluice_app", "sluice_operator"]),
    (
        "open_account(text,text)",
        &["sluice_app", "sluice_operator"],
    ),
    (
        "close_account(text,text)",
        &["sluice_app", "sluice_operator"],
    ),
    (
        "deposit(text,text,text,text)",
        &["sluice_app", "sluice_operator"],
    ),
    (
        "balance(text,text)",
        &["sluice_app", "sluice_auditor", "sluice_operator"],
    ),
    (
        "route(text,text)",
        &["sluice_app", "sluice_auditor", "sluice_operator"],
    ),
    (
        "routed(timestamptz,timestamptz)",
        &["sluice_auditor", "sluice_operator"],
    ),
    (
        "set_approval_rule(text,text,text,integer)",
        &["sluice_operator"],
    ),
    ("drop_approval_rule(text,text)", &["sluice_operator"]),
    ("four_eyes(text,text)", &["sluice_operator"]),
    (
        "fate(bytea)",
        &["sluice_approver", "sluice_auditor", "sluice_operator"],
    ),
    (
        "timeline(uuid)",
        &["sluice_approver", "sluice_auditor", "sluice_operator"],
    ),
    (
        "explain(uuid)",
        &["sluice_approver", "sluice_auditor", "sluice_operator"],
    ),
    // Halves of the above, which nobody but the owner may call by themselves.
    ("claim_rows(text,uuid[],interval)", &[]),
    ("claim_all(text,uuid[],interval)", &[]),
    ("take_in(uuid[],text[],text)", &[]),
    ("hand_over(uuid[],text)", &[]),
    ("place_holds(uuid[])", &[]),
    ("settle(uuid[],text)", &[]),
    ("settle_all(uuid[],text)", &[]),
    ("file_signatures(text,jsonb)", &[]),
];

const ROLES: [&str; 6] = [
    "sluice_app",
    "sluice_approver",
    "sluice_auditor",
    "sluice_operator",
    "sluice_runner",
    "sluice_voucher",
];

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn each_role_holds_the_calls_that_are_its_own_and_no_other() {
        for (call, holders) in CALLS {
            for role in ROLES {
                let holds = one(&format!(
                    "has_function_privilege('{role}', 'sluice.{call}', 'execute')"
                ));
                let expected = holders.contains(&role).to_string();
                assert_eq!(holds, Some(expected), "{role} and {call}");
            }
        }
    }

    #[pg_test]
    fn no_role_writes_a_table_except_that_an_app_inserts_what_it_asks_for() {
        let writes = one("select string_agg(r || ' ' || c.relname || ' ' || p, ', ' order by 1)
               from unnest(array['sluice_app','sluice_approver','sluice_auditor','sluice_operator','sluice_runner','sluice_voucher','public']) r,
                    pg_class c, unnest(array['insert','update','delete','truncate','references','trigger']) p
              where c.relnamespace = 'sluice'::regnamespace and c.relkind in ('r', 'v')
                and has_table_privilege(r, c.oid, p)");
        assert_eq!(writes, None);
        let columns = one("select string_agg(a.attname, ',' order by a.attname)
               from pg_attribute a
              where a.attrelid = 'sluice.withdrawals'::regclass and a.attnum > 0
                and has_column_privilege('sluice_app', a.attrelid, a.attnum, 'insert')");
        assert_eq!(
            columns.as_deref(),
            Some("account,amount,asset,operation_id,requested_by,to_address")
        );
        let seen = one("select string_agg(a.attname, ',' order by a.attname)
               from pg_attribute a
              where a.attrelid = 'sluice.withdrawals'::regclass and a.attnum > 0
                and has_column_privilege('sluice_app', a.attrelid, a.attnum, 'select')");
        assert_eq!(seen.as_deref(), Some("operation_id,state"));
    }

    #[pg_test]
    fn public_holds_only_what_reads_nothing_and_writes_nothing() {
        let held = one(
            "select string_agg(distinct p.proname, ',' order by p.proname)
               from pg_proc p
              where p.pronamespace = 'sluice'::regnamespace and p.provolatile = 'v'
                and has_function_privilege('public', p.oid, 'execute')",
        );
        assert_eq!(
            held.as_deref(),
            Some("now"),
            "the clock, which a column's default asks"
        );
    }

    #[pg_test]
    fn every_function_that_runs_as_the_owner_pins_its_search_path_and_jit_and_the_owner_is_no_superuser()
     {
        let loose = one("select string_agg(p.oid::regprocedure::text, ', ')
               from pg_proc p
              where p.pronamespace = 'sluice'::regnamespace and p.prosecdef
                and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false)");
        assert_eq!(loose, None);
        // What they ask is small, and looks large to a planner that has no statistics of small tables: compiling it took a quarter
        // of a second, at every poll of every runner.
        let compiled = one("select string_agg(p.oid::regprocedure::text, ', ')
               from pg_proc p
              where p.pronamespace = 'sluice'::regnamespace and p.prosecdef
                and not coalesce(p.proconfig @> array['jit=off'], false)");
        assert_eq!(compiled, None);
        let owners = one(
            "select string_agg(distinct pg_get_userbyid(p.proowner), ',')
               from pg_proc p where p.pronamespace = 'sluice'::regnamespace and p.prosecdef",
        );
        assert_eq!(owners.as_deref(), Some("sluice_owner"));
        let owner = one(
            "select rolsuper or rolcanlogin or rolbypassrls or rolcreaterole from pg_roles where rolname = 'sluice_owner'",
        );
        assert_eq!(owner.as_deref(), Some("false"));
    }
}
