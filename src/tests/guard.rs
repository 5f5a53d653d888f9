//! The guard against raw SQL by the role that owns the tables: what never changes, what never leaves, and blocks and payments
//! that nobody's INSERT may invent. Every refusal stands beside a statement that differs from it only in the thing refused,
//! and is taken.

use super::scene::*;
use pgrx::prelude::*;

/// Sets one column of a withdrawal.
fn set(id: &str, assignment: &str) -> String {
    format!("update sluice.withdrawals set {assignment} where operation_id = '{id}'")
}

/// Files a payment for an envelope; `changes` replaces expressions in the statement.
fn payment(txid: &[u8], block: i64, changes: &[(&str, &str)]) -> String {
    let mut statement = format!(
        "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units)
         select v.txid, v.operation_id, {block}, 0, 'SUCCESS', v.wallet, a.contract, w.to_address, w.amount_units
           from sluice.envelopes v
           join sluice.withdrawals w on w.operation_id = v.operation_id
           join sluice.assets a on a.asset = w.asset
          where v.txid = '\\x{}'",
        hex::encode(txid)
    );
    for (from, to) in changes {
        assert!(statement.contains(from), "{from}");
        statement = statement.replacen(from, to, 1);
    }
    statement
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn what_intake_wrote_never_changes() {
        let scene = Scene::open();
        run(
            "select sluice.submit('00000000-0000-4000-8000-000000000001', 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ', '1.5', account => 'a', requested_by => 'r')",
        );
        let id = id(1);
        for assignment in [
            "operation_id = gen_random_uuid()",
            "to_address = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'",
            "destination = destination || ' '",
            "amount = '1.50'",
            "amount = '2'",
            "amount_units = amount_units + 1",
            "asset = 'OTHER'",
            "asset_version = asset_version + 1",
            "account = 'b'",
            "account = null",
            "requested_by = 'somebody else'",
            "requested_by = null",
            "request_hash = '\\x00'",
            "created_at = created_at + interval '1 microsecond'",
        ] {
            assert_eq!(as_owner(&set(&id, assignment)), "SL011", "{assignment}");
            let with_a_step = format!("{assignment}, state = 'validated'");
            assert_eq!(as_owner(&set(&id, &with_a_step)), "SL011", "{with_a_step}");
        }
        assert_eq!(as_owner(&set(&id, "last_error = 'a note'")), "");
        assert_eq!(scene.column(&id, "amount_units"), "1500000");
    }

    #[pg_test]
    fn what_is_decided_once_is_never_decided_again() {
        let scene = Scene::open();
        let task = scene.signing(1);
        for assignment in [
            "wallet = 'TMhzXhj5o7aG14eMHn2htGe7ek39hiriPN'",
            "wallet = null",
            "rail = 'internal'",
            "rail = null",
            "reason_code = 'other'",
            "reason = null",
        ] {
            let answer = as_owner(&set(&task.operation_id, assignment));
            assert_eq!(answer, "SL011", "{assignment}");
        }
    }

    #[pg_test]
    fn the_sequence_the_hash_and_the_time_of_change_are_the_guards_own() {
        let scene = Scene::open();
        let task = scene.signed(1);
        let chain = "seq || ' ' || hash::text || ' ' || changed_at";
        let before = scene.column(&task.operation_id, chain);
        run_as_owner(&set(
            &task.operation_id,
            "seq = 99, hash = '\\x00', changed_at = 'infinity', last_error = 'a note'",
        ));
        assert_eq!(scene.column(&task.operation_id, chain), before);
        run_as_owner(&set(
            &task.operation_id,
            "seq = 99, hash = '\\x00', changed_at = 'infinity', state = 'broadcasting'",
        ));
        assert_eq!(scene.column(&task.operation_id, "seq"), "5");
        assert_eq!(
            scene.column(&task.operation_id, chain),
            one(&format!(
                "select seq || ' ' || hash::text || ' ' || at from sluice.events where operation_id = '{}' order by seq desc limit 1",
                task.operation_id
            ))
            .unwrap_or_default(),
            "the row is what the log says last"
        );
    }

    #[pg_test]
    fn a_fencing_token_never_falls() {
        let scene = Scene::open();
        let task = scene.signing(1);
        let fenced = |value: &str| {
            as_owner(&set(
                &task.operation_id,
                &format!("fencing_token = {value}"),
            ))
        };
        assert_eq!(fenced("fencing_token - 1"), "SL011");
        assert_eq!(fenced("0"), "SL011");
        assert_eq!(fenced("null"), "SL011");
        assert_eq!(fenced("fencing_token + 1"), "");
    }

    #[pg_test]
    fn a_withdrawal_that_is_over_never_changes_again_not_even_into_itself() {
        let mut scene = Scene::open();
        let paid = scene.broadcast(1);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        let failed = scene.broadcast(2);
        scene.follow(3000, &[in_block(&failed.raw_data, REVERT)]);
        let rejected = scene.submit(3);
        run(&format!("select sluice.cancel('{rejected}', 'not wanted')"));
        let columns = one(
            "select string_agg(quote_ident(attname), ' ') from pg_attribute
              where attrelid = 'sluice.withdrawals'::regclass and attnum > 0 and not attisdropped",
        )
        .unwrap_or_default();
        for (id, state) in [
            (&paid.operation_id, "confirmed"),
            (&failed.operation_id, "failed"),
            (&rejected, "rejected"),
        ] {
            assert_eq!(&scene.state(id), state);
            for column in columns.split(' ') {
                let itself = format!("{column} = {column}");
                assert_eq!(as_owner(&set(id, &itself)), "SL011", "{state}: {itself}");
            }
            for assignment in [
                "due_at = now()",
                "fencing_token = fencing_token + 1",
                "last_error = 'a note'",
            ] {
                assert_eq!(
                    as_owner(&set(id, assignment)),
                    "SL011",
                    "{state}: {assignment}"
                );
            }
        }
        // One row that is over refuses the statement for all the others in it.
        assert_eq!(
            as_owner("update sluice.withdrawals set last_error = 'a note'"),
            "SL011"
        );
    }

    #[pg_test]
    fn nothing_leaves_a_table_that_money_rests_on() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        run("select sluice.pause('a reason')");
        for table in [
            "withdrawals",
            "events",
            "envelopes",
            "blocks",
            "payments",
            "wallets",
            "chain",
            "changes",
            "pauses",
            "settings",
            "assets",
        ] {
            assert_ne!(
                count(&format!("select count(*) from sluice.{table}")),
                0,
                "{table} holds something"
            );
            for statement in [
                format!("delete from sluice.{table}"),
                format!("delete from sluice.{table} where false"),
                format!("truncate sluice.{table}"),
                format!("truncate sluice.{table} cascade"),
            ] {
                assert_eq!(as_owner(&statement), "SL013", "{statement}");
                assert_eq!(
                    tried_as(&superuser(), &statement).0,
                    "SL013",
                    "superuser: {statement}"
                );
            }
        }
    }

    #[pg_test]
    fn what_a_table_says_for_ever_is_not_updated() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        for (table, assignment) in [
            ("events", "detail = '{}'"),
            ("blocks", "timestamp_ms = timestamp_ms + 1"),
            ("payments", "receipt = 'REVERT'"),
            ("wallets", "live_window = 1"),
            ("chain", "first_number = 1"),
            ("changes", "reason = 'another'"),
        ] {
            let statement = format!("update sluice.{table} set {assignment}");
            assert_eq!(as_owner(&statement), "SL013", "{statement}");
        }
    }

    #[pg_test]
    fn a_withdrawal_begins_as_requested() {
        let scene = Scene::open();
        for state in [
            "validated",
            "signing",
            "signed",
            "broadcasting",
            "broadcast",
            "confirmed",
            "failed",
            "rejected",
        ] {
            let statement = format!(
                "insert into sluice.withdrawals (operation_id, to_address, amount, state) values ('{}', '{THEIRS}', '1', '{state}')",
                id(1)
            );
            assert_eq!(as_owner(&statement), "SL010", "{state}");
        }
        // What is not asked for is not taken over either: attempt, wallet, token and log are the guard's.
        run_as_owner(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount, wallet, attempt, fencing_token, seq, due_at, leased_by, accepted, block_number)
             values ('{}', '{THEIRS}', '1', '{MOCK_WALLET}', 7, 7, 7, 'infinity', 'w', true, 1)",
            id(1)
        ));
        assert_eq!(
            scene.column(&id(1), "concat_ws(' ', wallet, attempt, fencing_token, seq, leased_by, accepted, block_number)"),
            "0 0 1 f"
        );
        assert_eq!(scene.due_in(&id(1)), 0);
        assert_eq!(scene.log(&id(1)), ">requested");
    }

    #[pg_test]
    fn signed_asks_for_a_signature_of_the_envelope_that_is_to_be_sent() {
        let mut scene = Scene::open();
        let first = scene.broadcast(1);
        scene.pass(300);
        let second = scene.claim("w").remove(0);
        assert_eq!((second.action.as_str(), second.attempt), ("sign", 2));
        let signed = set(&first.operation_id, "state = 'signed'");
        assert_eq!(
            as_owner(&signed),
            "SL012",
            "the spent envelope's signature is none of the live one's"
        );
        run_as_owner(&format!(
            "update sluice.envelopes set signature = decode(repeat('01', 65), 'hex') where txid = '\\x{}'",
            hex::encode(&second.txid)
        ));
        assert_eq!(as_owner(&signed), "");
    }

    #[pg_test]
    fn a_block_that_does_not_follow_from_the_newest_is_refused() {
        let mut scene = Scene::open();
        scene.follow(3000, &[]);
        let good = Scene::by_hand(&scene.next(3000, &[]));
        assert_eq!(as_owner(&good), "");
        for (from, to, what) in [
            (
                "(d ->> 'number')::bigint",
                "(d ->> 'number')::bigint + 1",
                "a gap",
            ),
            (
                "(d ->> 'number')::bigint",
                "(d ->> 'number')::bigint - 1",
                "a number that is there",
            ),
            ("(d ->> 'number')::bigint", "5", "a number before the first"),
            (
                "decode(d ->> 'parent_id', 'hex')",
                "decode(d ->> 'id', 'hex')",
                "a foreign parent",
            ),
            (
                "(d ->> 'timestamp_ms')::bigint",
                "(d ->> 'timestamp_ms')::bigint - 3000",
                "a time that stands",
            ),
            (
                "(d ->> 'timestamp_ms')::bigint",
                "(d ->> 'timestamp_ms')::bigint - 3001",
                "a time that falls",
            ),
        ] {
            assert!(good.contains(from));
            assert_eq!(as_owner(&good.replacen(from, to, 1)), "SL021", "{what}");
        }
        for part in ["id", "root"] {
            let from = format!("decode(d ->> '{part}', 'hex')");
            assert!(good.contains(&from));
            let short = good.replacen(&from, "'\\x00'", 1);
            assert_eq!(as_owner(&short), "23514", "{part} of one byte");
        }
    }

    #[pg_test]
    fn a_payment_asks_for_an_envelope_of_ours_and_a_followed_block_after_its_reference() {
        let mut scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac')"
        ));
        let task = scene.broadcast(1);
        scene.follow(3000, &[]);
        let tip = scene.tip.number;
        assert_eq!(as_owner(&payment(&task.txid, tip, &[])), "");
        for (block, what) in [
            (tip + 1, "a block that nobody has followed"),
            (FIRST, "the block that it refers to"),
            (FIRST - 1, "a block before all"),
        ] {
            assert_eq!(
                as_owner(&payment(&task.txid, block, &[])),
                "SL012",
                "{what}"
            );
        }
        let other = format!("'{SECOND_WALLET}'");
        for (from, to, what) in [
            (
                "select v.txid",
                "select sha256(v.txid)",
                "a transaction that we never built",
            ),
            (
                "v.operation_id",
                "gen_random_uuid()",
                "another's withdrawal",
            ),
            ("v.operation_id", "null", "nobody's withdrawal"),
            ("v.wallet", other.as_str(), "a wallet that did not pay"),
        ] {
            assert_eq!(
                as_owner(&payment(&task.txid, tip, &[(from, to)])),
                "SL012",
                "{what}"
            );
        }
        run_as_owner(&payment(&task.txid, tip, &[]));
        assert_eq!(
            as_owner(&payment(&task.txid, tip, &[])),
            "23505",
            "and is there once"
        );
    }

    #[pg_test]
    fn an_asset_gets_a_new_version_whoever_gives_it_another_meaning() {
        let _scene = Scene::open();
        let version = || count("select version from sluice.assets where asset = 'USDT-TRC20'");
        assert_eq!(version(), 1);
        run_as_owner("update sluice.assets set decimals = 7");
        assert_eq!(version(), 2);
        run_as_owner("update sluice.assets set decimals = 6, version = 1");
        assert_eq!(version(), 3, "what it meant in between is not forgotten");
        run_as_owner("update sluice.assets set maximum_units = 7, version = 9");
        assert_eq!(version(), 3, "and limits are no meaning");
        assert_eq!(
            count("select count(*) from sluice.changes where what = 'assets'"),
            3
        );
    }
}
