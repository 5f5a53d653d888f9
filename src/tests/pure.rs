//! What several texts say together: labels and chart in core and in SQL, the contract's signatures, the SQLSTATEs in code
//! and README; and that what is written in PL/pgSQL is at least well-formed.

use super::scene::*;
use pgrx::prelude::*;
use sluice_core::state::{State, TRANSITIONS};
use std::collections::BTreeSet;

/// The contract's functions with their arguments, as PostgreSQL prints them. Applications and runners call these: a change
/// here breaks them.
const CONTRACT: &str = "\
add_wallet(address text, signer text, signer_address text DEFAULT NULL::text, permission_id integer DEFAULT 0, live_window integer DEFAULT 6000) void
address_bytes(address text) bytea
address_is_valid(address text) boolean
address_text(address bytea) text
approve(operation_id uuid, note text DEFAULT NULL::text, on_behalf_of text DEFAULT NULL::text) sluice.state
balance(account text, asset text DEFAULT 'USDT-TRC20'::text) TABLE(posted numeric, held numeric, available numeric)
can_transition(from_state sluice.state, to_state sluice.state) boolean
cancel(operation_id uuid, reason text) sluice.state
claim_batch(worker_id text, batch_size integer DEFAULT 100, lease interval DEFAULT NULL::interval) SETOF sluice.task
close_account(account text, asset text DEFAULT 'USDT-TRC20'::text) boolean
decode_block(block bytea) jsonb
decode_raw_data(raw_data bytea) jsonb
deposit(account text, amount text, reference text, asset text DEFAULT 'USDT-TRC20'::text) boolean
drop_approval_rule(asset text, name text) boolean
drop_custody(address text) boolean
explain(operation_id uuid) SETOF sluice.explanation
fate(txid bytea) TABLE(fate text, result text, block_number bigint, evidence jsonb)
fenced_cas(operation_id uuid, fencing_token bigint, from_state sluice.state, to_state sluice.state, worker_id text, sets jsonb DEFAULT '{}'::jsonb, detail jsonb DEFAULT '{}'::jsonb) SETOF sluice.swapped
follow_from(block bytea, genesis_id bytea) bigint
format_amount(units numeric, decimals integer) text
four_eyes(asset text, above text) void
observe_blocks(node text, blocks bytea[]) TABLE(operation_id uuid, state sluice.state, txid bytea, block_number bigint)
open_account(account text, asset text DEFAULT 'USDT-TRC20'::text) boolean
parse_amount(amount text, decimals integer) numeric
pause(reason text, wallet text DEFAULT NULL::text, asset text DEFAULT NULL::text) void
raw_data(owner text, contract text, to_address text, amount_units numeric, ref_block_number bigint, ref_block_id bytea, expiration_ms bigint, timestamp_ms bigint, fee_limit_sun bigint, operation_id uuid DEFAULT NULL::uuid, permission_id integer DEFAULT 0) bytea
record_broadcasts(worker_id text, results jsonb) TABLE(operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea, raw_data bytea, signature bytea, expiration_ms bigint, attempt integer)
record_signatures(worker_id text, results jsonb) TABLE(operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea, raw_data bytea, signature bytea, expiration_ms bigint, attempt integer)
reject(operation_id uuid, reason text) sluice.state
release(worker_id text, operation_ids uuid[], fencing_tokens bigint[]) bigint
request_hash(to_address text, amount_units numeric, asset text, account text DEFAULT NULL::text) bytea
resume(reason text, wallet text DEFAULT NULL::text, asset text DEFAULT NULL::text) void
route(destination text, asset text) SETOF sluice.route_view
routed(since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone) TABLE(rail sluice.rail, reason_code text, account text, asset text, withdrawals bigint, units numeric, amount text)
runner_state() TABLE(followed_number bigint, followed_id bytea, followed_ms bigint, chain_genesis bytea, now timestamp with time zone, lease interval)
set_approval_rule(asset text, name text, at_least text, approvals integer) void
set_asset(asset text, contract text, decimals integer, minimum text, maximum text, fee_limit_sun bigint, depth integer DEFAULT 0, reverts_on_failure boolean DEFAULT NULL::boolean) void
set_custody(address text, account text) void
set_setting(name text, value text, reason text) void
signed_transaction(raw_data bytea, signature bytea) bytea
submit(operation_id uuid, to_address text, amount text, asset text DEFAULT 'USDT-TRC20'::text, account text DEFAULT NULL::text, requested_by text DEFAULT NULL::text) SETOF sluice.submitted
submit(payload jsonb) SETOF sluice.submitted
tag(operation_id uuid) bytea
timeline(operation_id uuid) TABLE(seq integer, from_state sluice.state, to_state sluice.state, at timestamp with time zone, worker_id text, detail jsonb)
transitions() TABLE(from_state sluice.state, to_state sluice.state, stars text)
txid(raw_data bytea) bytea
verify() TABLE(invariant text, holds boolean, detail jsonb)
verify(since timestamp with time zone) TABLE(invariant text, holds boolean, detail jsonb)
withdrawal(operation_id uuid) SETOF sluice.client_view
workload() TABLE(due bigint, waiting bigint, parked bigint)";

/// What the contract calls pure: IMMUTABLE and PARALLEL SAFE, and STRICT but for those with an argument that may be left out.
const PURE: [&str; 12] = [
    "address_bytes",
    "address_is_valid",
    "address_text",
    "can_transition",
    "decode_block",
    "decode_raw_data",
    "format_amount",
    "parse_amount",
    "raw_data",
    "request_hash",
    "signed_transaction",
    "tag",
];

fn columns(of: &str) -> String {
    one(&format!(
        "select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
           from pg_attribute where attrelid = 'sluice.{of}'::regclass and attnum > 0"
    ))
    .unwrap_or_default()
}

/// Every code of sluice's own class in a text.
fn codes_in(text: &str) -> BTreeSet<String> {
    text.match_indices("SL0")
        .filter_map(|(at, _)| text.get(at..at + 5))
        .filter(|code| code[2..].bytes().all(|byte| byte.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_labels_of_a_state_are_those_of_the_chart_in_its_order() {
        let labels = one("array_to_string(enum_range(null::sluice.state), ' ')");
        let names: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
        assert_eq!(labels, Some(names.join(" ")));
        assert_eq!(names.len(), 9);
        let others = one(
            "array_to_string(enum_range(null::sluice.rail), ' ') || '; ' || array_to_string(enum_range(null::sluice.action), ' ')",
        );
        assert_eq!(others.as_deref(), Some("internal external; sign broadcast"));
    }

    #[pg_test]
    fn the_chart_in_sql_is_the_one_table_of_core() {
        let shown = one(
            "select string_agg(from_state || '>' || to_state || stars, ' ') from sluice.transitions()",
        );
        let rows = TRANSITIONS
            .iter()
            .map(|row| format!("{}>{}{}", row.from.name(), row.to.name(), row.proof.stars()));
        assert_eq!(shown, Some(rows.collect::<Vec<_>>().join(" ")));
        let mut legal = 0;
        for from in State::ALL {
            for to in State::ALL {
                let there = one(&format!(
                    "sluice.can_transition('{}', '{}')",
                    from.name(),
                    to.name()
                ));
                let expected = TRANSITIONS
                    .iter()
                    .any(|row| row.from == from && row.to == to);
                assert_eq!(there, Some(expected.to_string()), "{from} -> {to}");
                assert!(!expected || from != to || from == State::Signing);
                legal += usize::from(expected);
            }
        }
        assert_eq!(legal, 15);
    }

    #[pg_test]
    fn the_contracts_functions_have_the_arguments_that_others_call_them_with() {
        let names: BTreeSet<&str> = CONTRACT
            .lines()
            .filter_map(|line| line.split('(').next())
            .collect();
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let there = one(&format!(
            "select string_agg(line, E'\\n' order by line collate \"C\")
               from (select proname || '(' || pg_get_function_arguments(oid) || ') ' || pg_get_function_result(oid) as line
                       from pg_proc where pronamespace = 'sluice'::regnamespace and proname in ({})) f",
            list.join(", ")
        ));
        let mut expected: Vec<&str> = CONTRACT.lines().collect();
        expected.sort_unstable();
        assert_eq!(there.unwrap_or_default(), expected.join("\n"));
    }

    #[pg_test]
    fn the_contracts_rows_have_the_columns_that_others_read() {
        for (of, expected) in [
            (
                "task",
                "operation_id uuid, fencing_token bigint, state sluice.state, action sluice.action, wallet text, txid bytea, raw_data bytea, signature bytea, expiration_ms bigint, attempt integer",
            ),
            (
                "submitted",
                "operation_id uuid, state sluice.state, created boolean, to_address text, destination text, amount text, asset text, amount_units numeric, account text, txid text",
            ),
            (
                "swapped",
                "operation_id uuid, state sluice.state, fencing_token bigint",
            ),
            (
                "client_view",
                "operation_id uuid, state sluice.state, to_address text, destination text, amount text, asset text, account text, rail sluice.rail, reason_code text, reason text, txid text, block_number bigint, failure_reason text, created_at timestamp with time zone, confirmed_at timestamp with time zone, from_account text, to_account text, posting_id uuid, cancel_reason text, missing_approvals text",
            ),
            (
                "route_view",
                "rail sluice.rail, destination text, reason_code text, reason text, account text, settlement text, depth integer",
            ),
        ] {
            assert_eq!(columns(of), expected, "{of}");
        }
    }

    #[pg_test]
    fn pure_functions_may_be_folded_indexed_and_run_in_parallel() {
        for name in PURE.into_iter().chain(["txid", "transitions"]) {
            let marks = one(&format!(
                "select format('%s %s %s', provolatile, proparallel, proisstrict::text) from pg_proc
                  where pronamespace = 'sluice'::regnamespace and proname = '{name}'"
            ));
            let strict = !["raw_data", "request_hash", "transitions"].contains(&name);
            assert_eq!(marks, Some(format!("i s {strict}")), "{name}");
        }
    }

    #[pg_test]
    fn a_pure_function_of_null_is_null() {
        let (bytes, hash) = ("'\\x00'::bytea", format!("'\\x{}'::bytea", "00".repeat(32)));
        let (address, id) = (quoted(THEIRS), format!("'{}'::uuid", id(1)));
        let (address, id) = (address.as_str(), id.as_str());
        let raw: [&str; 11] = [
            address, address, address, "1", "1", &hash, "1", "1", "1", id, "0",
        ];
        let mut nulls = 0;
        for (name, arguments, optional) in [
            ("parse_amount", &["'1'", "6"][..], None),
            ("format_amount", &["1", "6"], None),
            ("request_hash", &[address, "1", "'A'", "'a'"], Some(3)),
            ("address_is_valid", &["'x'"], None),
            ("address_bytes", &[address], None),
            (
                "address_text",
                &["sluice.address_bytes('TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ')"],
                None,
            ),
            ("raw_data", &raw, Some(9)),
            ("tag", &[id], None),
            ("txid", &[bytes], None),
            ("signed_transaction", &[bytes, bytes], None),
            ("can_transition", &["'signing'", "'signed'"], None),
        ] {
            let call =
                |arguments: &[&str]| one(&format!("sluice.{name}({})", arguments.join(", ")));
            assert!(call(arguments).is_some(), "{name}");
            for position in 0..arguments.len() {
                let mut with_null = arguments.to_vec();
                with_null[position] = "null";
                let null = call(&with_null).is_none();
                assert_eq!(
                    null,
                    optional != Some(position),
                    "{name}, argument {position}"
                );
                nulls += 1;
            }
        }
        for name in ["decode_raw_data", "decode_block"] {
            assert_eq!(one(&format!("sluice.{name}(null)")), None);
        }
        assert_eq!(nulls, 28);
    }

    #[pg_test]
    fn every_function_in_sql_and_plpgsql_is_well_formed() {
        run("set local check_function_bodies = on");
        let many = one(
            "select count(*) > 50 and count(*) filter (where l.lanname = 'plpgsql') > 30
               from pg_proc p join pg_language l on l.oid = p.prolang
              where p.pronamespace = 'sluice'::regnamespace and l.lanname in ('sql', 'plpgsql')",
        );
        assert_eq!(many.as_deref(), Some("true"));
        run("do $$
             declare f record;
             begin
               for f in select p.oid, p.oid::regprocedure as signature, l.lanname
                          from pg_proc p join pg_language l on l.oid = p.prolang
                         where p.pronamespace = 'sluice'::regnamespace and l.lanname in ('sql', 'plpgsql') loop
                 begin
                   if f.lanname = 'sql' then
                     perform fmgr_sql_validator(f.oid);
                   else
                     perform plpgsql_validator(f.oid);
                   end if;
                 exception when others then
                   raise exception '%: %', f.signature, sqlerrm;
                 end;
               end loop;
             end $$");
    }

    #[pg_test]
    fn the_readme_lists_the_sqlstates_that_are_raised_and_no_others() {
        let sources = [
            include_str!("../../sql/types.sql"),
            include_str!("../../sql/amount.sql"),
            include_str!("../../sql/tables.sql"),
            include_str!("../../sql/pure.sql"),
            include_str!("../../sql/guard.sql"),
            include_str!("../../sql/guard_envelopes.sql"),
            include_str!("../../sql/guard_chain.sql"),
            include_str!("../../sql/defaults.sql"),
            include_str!("../../sql/commit.sql"),
            include_str!("../../sql/setup.sql"),
            include_str!("../../sql/guard_ledger.sql"),
            include_str!("../../sql/custody.sql"),
            include_str!("../../sql/ledger.sql"),
            include_str!("../../sql/rails.sql"),
            include_str!("../../sql/approvals.sql"),
            include_str!("../../sql/ending.sql"),
            include_str!("../../sql/submit.sql"),
            include_str!("../../sql/worker.sql"),
            include_str!("../../sql/claim.sql"),
            include_str!("../../sql/record.sql"),
            include_str!("../../sql/observe.sql"),
            include_str!("../../sql/people.sql"),
            include_str!("../../sql/overview.sql"),
            include_str!("../../sql/verify.sql"),
            include_str!("../../sql/grants.sql"),
            include_str!("../pg/errors.rs"),
        ];
        // The table of contents knows of no file that this test does not.
        assert_eq!(
            include_str!("../lib.rs")
                .matches("extension_sql_file!")
                .count(),
            sources.len() - 1
        );
        let raised: BTreeSet<String> = sources.into_iter().flat_map(codes_in).collect();
        let listed: Vec<&str> = include_str!("../../README.md")
            .lines()
            .filter_map(|line| line.strip_prefix("| SL")?.get(..3))
            .collect();
        let listed_once: BTreeSet<String> =
            listed.iter().map(|number| format!("SL{number}")).collect();
        assert_eq!(listed_once, raised);
        assert_eq!(listed.len(), raised.len(), "each is listed once");
        assert!(raised.len() > 15, "{raised:?}");
    }
}
