//! The guard of envelopes, against raw SQL by the role that owns them: an envelope is the one that the withdrawal, its wallet, its
//! asset and the first block of a slot make; its signature is the wallet's; its fate is what the followed blocks show. Every
//! refusal stands beside a statement that differs from it in one thing, and is taken.

use super::scene::*;
use pgrx::prelude::*;
use sluice_core::envelope::Txid;
use sluice_core::signature::SecretKey;

/// The statement that files the right envelope for a withdrawal; `changes` replaces expressions in it.
fn envelope(id: &str, changes: &[(&str, &str)]) -> String {
    let mut statement = format!(
        "insert into sluice.envelopes (
           txid, operation_id, attempt, wallet, slot, ref_block_number, time_to_live_ms, fee_limit_sun, permission_id, expiration_ms, raw_data)
         select sluice.txid(v.bytes), v.id, v.attempt, v.wallet, v.slot, v.reference, v.life, v.fee, v.permission, v.expiration, v.bytes
           from (select w.operation_id as id, w.attempt as attempt, w.wallet as wallet, b.timestamp_ms / 60000 as slot,
                        b.number as reference, 300000 as life, 100000000 as fee, 0 as permission,
                        b.timestamp_ms + 300000 as expiration,
                        sluice.raw_data(
                          /*owner*/ w.wallet, /*contract*/ 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', /*to*/ w.to_address,
                          /*units*/ w.amount_units, /*number*/ b.number, /*block*/ b.id, /*expires*/ b.timestamp_ms + 300000,
                          /*stamp*/ b.timestamp_ms, /*limit*/ 100000000, /*tag*/ w.operation_id, /*key*/ 0) as bytes
                   from sluice.withdrawals w
                  cross join (select * from sluice.blocks
                               where timestamp_ms >= (select max(timestamp_ms) from sluice.blocks) / 60000 * 60000
                               order by number limit 1) b
                  where w.operation_id = '{id}') v"
    );
    for (from, to) in changes {
        assert!(statement.contains(from), "{from}");
        statement = statement.replacen(from, to, 1);
    }
    statement
}

/// A withdrawal that stands in signing with its first envelope dead, as the block says that proves it.
fn bereft(scene: &mut Scene) -> String {
    let task = scene.broadcast(1);
    scene.pass(330);
    assert_eq!(scene.state(&task.operation_id), "signing");
    task.operation_id
}

/// Counts a second envelope, which is to be filed by hand.
fn count_another(id: &str) {
    run_as_owner(&format!(
        "update sluice.withdrawals set attempt = 2 where operation_id = '{id}'"
    ));
}

/// Both.
fn to_be_rebuilt(scene: &mut Scene) -> String {
    let id = bereft(scene);
    count_another(&id);
    id
}

/// Writes down that the newest block held the envelope.
fn include_by_hand(scene: &Scene, task: &Task, receipt: &str) {
    run_as_owner(&format!(
        "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units)
         values ('\\x{}', '{}', {}, 0, '{receipt}', '{}', '{THEIRS}', '{THEIRS}', 1)",
        hex::encode(&task.txid),
        task.operation_id,
        scene.tip.number,
        task.wallet
    ));
}

fn update(txid: &[u8], assignment: &str) -> String {
    format!(
        "update sluice.envelopes set {assignment} where txid = '\\x{}'",
        hex::encode(txid)
    )
}

fn dead(txid: &[u8], first: i64, last: i64) -> String {
    update(
        txid,
        &format!("fate = 'dead', first_block = {first}, last_block = {last}"),
    )
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn an_envelope_by_hand_is_the_one_that_claim_batch_builds_or_none() {
        let mut scene = Scene::open();
        let id = bereft(&mut scene);
        let claimed = forgotten(
            "(select string_agg(encode(t.txid, 'hex'), ' ') from sluice.claim_batch('w') t)",
        );
        count_another(&id);
        let nothing = forgotten("(select count(*) from sluice.claim_batch('w'))");
        assert_eq!(nothing, "0", "what the row speaks of is not on file");
        run_as_owner(&envelope(&id, &[]));
        let by_hand = one(&format!(
            "select encode(txid, 'hex') from sluice.envelopes where operation_id = '{id}' and attempt = 2"
        ));
        assert_eq!(by_hand, Some(claimed));
    }

    #[pg_test]
    fn bytes_that_pay_anything_but_what_the_row_says_are_refused() {
        let mut scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac')"
        ));
        let id = to_be_rebuilt(&mut scene);
        assert_eq!(as_owner(&envelope(&id, &[])), "");
        let second = format!("/*owner*/ '{SECOND_WALLET}'");
        let to_us = format!("/*to*/ '{SECOND_WALLET}'");
        for (from, to, what) in [
            ("/*owner*/ w.wallet", second.as_str(), "another wallet pays"),
            (
                "/*contract*/ 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'",
                "/*contract*/ 'TFAR54aGjHGLz1TeZLZREgsC7u9msqGgQQ'",
                "another token",
            ),
            ("/*to*/ w.to_address", to_us.as_str(), "another recipient"),
            (
                "/*units*/ w.amount_units",
                "/*units*/ w.amount_units + 1",
                "a unit more",
            ),
            (
                "/*units*/ w.amount_units",
                "/*units*/ w.amount_units - 1",
                "a unit less",
            ),
            (
                "/*number*/ b.number",
                "/*number*/ b.number + 1",
                "another reference",
            ),
            (
                "/*block*/ b.id",
                "/*block*/ b.parent_id",
                "another block's id",
            ),
            (
                "/*expires*/ b.timestamp_ms + 300000",
                "/*expires*/ b.timestamp_ms + 300001",
                "a millisecond longer",
            ),
            ("/*stamp*/ b.timestamp_ms", "/*stamp*/ 0", "no time"),
            ("/*limit*/ 100000000", "/*limit*/ 100000001", "more fee"),
            ("/*tag*/ w.operation_id", "/*tag*/ null", "no tag"),
            (
                "/*tag*/ w.operation_id",
                "/*tag*/ gen_random_uuid()",
                "another's tag",
            ),
            ("/*key*/ 0", "/*key*/ 2", "another permission"),
            ("as bytes", "|| '\\xa00601' as bytes", "a field more"),
        ] {
            let (code, message) = tried_as("sluice_owner", &envelope(&id, &[(from, to)]));
            assert_eq!(code, "SL014", "{what}");
            assert!(
                message.contains("its bytes do not pay"),
                "{what}: {message}"
            );
        }
    }

    #[pg_test]
    fn an_envelope_that_is_not_what_it_says_of_itself_is_refused() {
        let mut scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac')"
        ));
        let id = to_be_rebuilt(&mut scene);
        let second = format!("'{SECOND_WALLET}' as wallet");
        let pays = format!("/*owner*/ '{SECOND_WALLET}'");
        let other = scene.submit(2);
        let other = format!("'{other}'::uuid as id");
        for (changes, says) in [
            (
                vec![("w.operation_id as id", "gen_random_uuid() as id")],
                "no such withdrawal",
            ),
            (
                vec![("w.operation_id as id", other.as_str())],
                "is requested, and envelopes are built in signing",
            ),
            (
                vec![
                    ("w.wallet as wallet", second.as_str()),
                    ("/*owner*/ w.wallet", pays.as_str()),
                ],
                "another wallet",
            ),
            (vec![("w.attempt as attempt", "3 as attempt")], "attempt 2"),
            (
                vec![(
                    "b.timestamp_ms / 60000 as slot",
                    "b.timestamp_ms / 60000 + 1 as slot",
                )],
                "first followed block of its slot",
            ),
            (
                vec![(
                    "b.timestamp_ms / 60000 as slot",
                    "b.timestamp_ms / 60000 - 1 as slot",
                )],
                "first followed block of its slot",
            ),
            (
                vec![("b.number as reference", "b.number + 1 as reference")],
                "first followed block of its slot",
            ),
            (
                vec![("b.number as reference", "b.number + 100000 as reference")],
                "no followed block",
            ),
            (
                vec![(
                    "b.timestamp_ms + 300000 as expiration",
                    "b.timestamp_ms + 300001 as expiration",
                )],
                "its time to live",
            ),
            (
                vec![("300000 as life", "300001 as life")],
                "its time to live",
            ),
            (
                vec![("100000000 as fee", "100000001 as fee")],
                "its bytes do not pay",
            ),
            (
                vec![
                    ("0 as permission", "2 as permission"),
                    ("/*key*/ 0", "/*key*/ 2"),
                ],
                "its permission is not the wallet's",
            ),
        ] {
            let (code, message) = tried_as("sluice_owner", &envelope(&id, &changes));
            assert_eq!(code, "SL014", "{changes:?}");
            assert!(message.contains(says), "{message}");
        }
        for (from, to, constraint) in [
            (
                "sluice.txid(v.bytes)",
                "sha256(sluice.txid(v.bytes))",
                "envelope_names_its_bytes",
            ),
            ("300000 as life", "600001 as life", "envelope_time_to_live"),
            ("300000 as life", "0 as life", "envelope_time_to_live"),
        ] {
            let (code, message) = tried_as("sluice_owner", &envelope(&id, &[(from, to)]));
            assert_eq!(code, "23514", "{from} as {to}");
            assert!(message.contains(constraint), "{message}");
        }
    }

    #[pg_test]
    fn an_envelope_refers_to_the_first_block_of_its_slot_and_to_no_later_one() {
        let mut scene = Scene::open();
        let id = to_be_rebuilt(&mut scene);
        // Eleven blocks into the slot: its second block makes an envelope of its own, bytes and all, and is refused.
        let second = envelope(
            &id,
            &[(
                "order by number limit 1",
                "order by number offset 1 limit 1",
            )],
        );
        let (code, message) = tried_as("sluice_owner", &second);
        assert_eq!(code, "SL014");
        assert!(
            message.contains("first followed block of its slot"),
            "{message}"
        );
        // So is the last slot's first block, which is followed too: only a later slot than the last envelope's counts.
        let earlier = |back: i64| {
            envelope(
                &id,
                &[(
                    "/ 60000 * 60000",
                    &format!("/ 60000 * 60000 - {}", back * 60_000),
                )],
            )
        };
        assert_eq!(
            as_owner(&earlier(4)),
            "",
            "the slot after that of the envelope before"
        );
        assert_eq!(
            as_owner(&earlier(5)),
            "23505",
            "in its own slot it is the dead one, byte for byte"
        );
        let paying_more_fee = earlier(5)
            .replace("100000000 as fee", "100000001 as fee")
            .replace("/*limit*/ 100000000", "/*limit*/ 100000001");
        let (code, message) = tried_as("sluice_owner", &paying_more_fee);
        assert_eq!(code, "SL014");
        assert!(message.contains("not later"), "{message}");
    }

    #[pg_test]
    fn an_envelope_begins_unsigned_and_without_a_fate() {
        let mut scene = Scene::open();
        let id = to_be_rebuilt(&mut scene);
        for (column, value) in [
            ("signature", "decode(repeat('01', 65), 'hex')"),
            ("fate, first_block, last_block", "'dead', 1000, 1100"),
        ] {
            let statement = envelope(
                &id,
                &[
                    ("raw_data)", &format!("raw_data, {column})")),
                    ("v.bytes\n", &format!("v.bytes, {value}\n")),
                ],
            );
            let (code, message) = tried_as("sluice_owner", &statement);
            assert_eq!(code, "SL014", "{column}");
            assert!(message.contains("begins unsigned"), "{message}");
        }
    }

    #[pg_test]
    fn a_withdrawal_has_at_most_one_envelope_that_can_pay() {
        let mut scene = Scene::open();
        let task = scene.broadcasting(1);
        scene.pass(60);
        run_as_owner(&format!(
            "update sluice.withdrawals set attempt = 2 where operation_id = '{}'",
            task.operation_id
        ));
        // The unique index speaks first; a state other than signing would do the same.
        assert_eq!(
            as_owner(&envelope(&task.operation_id, &[])),
            "23505",
            "a live twin"
        );
        for (number, receipt) in (2..).zip(["SUCCESS", "UNKNOWN", "DEFAULT", "ABSENT", "REVERT"]) {
            let other = scene.signing(number);
            scene.follow_by_hand(60_000);
            include_by_hand(&scene, &other, receipt);
            run_as_owner(&update(
                &other.txid,
                &format!(
                    "fate = 'included', receipt = '{receipt}', block_number = {}",
                    scene.tip.number
                ),
            ));
            run_as_owner(&format!(
                "update sluice.withdrawals set attempt = 2 where operation_id = '{}'",
                other.operation_id
            ));
            let (code, message) = tried_as("sluice_owner", &envelope(&other.operation_id, &[]));
            if receipt == "REVERT" {
                assert_eq!(code, "", "what failed can pay no more");
                continue;
            }
            assert_eq!(code, "SL014", "{receipt}");
            assert!(message.contains("can still pay"), "{receipt}: {message}");
        }
    }

    #[pg_test]
    fn an_envelope_is_built_in_signing_and_in_no_other_state() {
        let mut scene = Scene::open();
        let id = to_be_rebuilt(&mut scene);
        run(&format!(
            "select sluice.cancel('{id}', 'not wanted any more')"
        ));
        let (code, message) = tried_as("sluice_owner", &envelope(&id, &[]));
        assert_eq!(code, "SL014");
        assert!(message.contains("is failed"), "{message}");
    }

    #[pg_test]
    fn a_changed_asset_makes_no_envelope_for_what_was_asked_before() {
        let mut scene = Scene::open();
        let id = to_be_rebuilt(&mut scene);
        run("update sluice.assets set decimals = 7");
        let (code, message) = tried_as("sluice_owner", &envelope(&id, &[]));
        assert_eq!(code, "SL014");
        assert!(message.contains("changed since intake"), "{message}");
    }

    #[pg_test]
    fn one_statement_that_files_several_things_has_each_of_them_checked() {
        let mut scene = Scene::open();
        let id = to_be_rebuilt(&mut scene);
        run_as_owner(&format!(
            "update sluice.withdrawals set due_at = null where operation_id = '{id}'"
        ));
        let paid = scene.signing(2);
        scene.follow(3000, &[]);
        let payment = |receipt: &str, block: i64| {
            format!(
                "insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units)
                 values ('\\x{}', '{}', {block}, 0, '{receipt}', '{MOCK_WALLET}', '{THEIRS}', '{THEIRS}', 1)",
                hex::encode(&paid.txid),
                paid.operation_id
            )
        };
        let (good, bad) = (
            payment("REVERT", scene.tip.number),
            payment("REVERT", scene.tip.number + 1),
        );
        let (right, wrong) = (
            envelope(&id, &[]),
            envelope(
                &id,
                &[("/*units*/ w.amount_units", "/*units*/ w.amount_units * 2")],
            ),
        );
        let both = |one: &str, other: &str| {
            format!("with a as ({one} returning 1), b as ({other} returning 1) select * from a, b")
        };
        assert_eq!(as_owner(&both(&right, &good)), "");
        assert_eq!(as_owner(&both(&good, &right)), "");
        assert_eq!(as_owner(&both(&wrong, &good)), "SL014");
        assert_eq!(as_owner(&both(&good, &wrong)), "SL014");
        assert_eq!(as_owner(&both(&right, &bad)), "SL012");
        assert_eq!(as_owner(&both(&bad, &right)), "SL012");
    }

    #[pg_test]
    fn a_statement_within_another_has_both_of_them_checked() {
        let mut scene = Scene::open();
        let id = to_be_rebuilt(&mut scene);
        run_as_owner(&format!(
            "update sluice.withdrawals set due_at = null where operation_id = '{id}'"
        ));
        let other = scene.broadcast(2);
        scene.pass(330);
        run_as_owner(&format!(
            "update sluice.withdrawals set attempt = 2 where operation_id = '{}'",
            other.operation_id
        ));
        run(&format!(
            "create function pg_temp.also() returns int language plpgsql as $$ begin {}; return 1; end $$",
            envelope(&other.operation_id, &[])
        ));
        // The row of the outer statement is made first, the inner statement runs and is checked while the next one is read.
        let outer = |units: &str| {
            let first = envelope(&id, &[("/*units*/ w.amount_units", units)]);
            format!(
                "{first} union all select null, null, null, null, null, null, null, null, null, null, null where pg_temp.also() = 2"
            )
        };
        assert_eq!(as_owner(&outer("w.amount_units")), "");
        assert_eq!(as_owner(&outer("w.amount_units * 2")), "SL014");
    }

    #[pg_test]
    fn what_an_envelope_is_never_changes() {
        let scene = Scene::open();
        let task = scene.signing(1);
        scene.submit(2);
        for assignment in [
            format!("operation_id = '{}'", id(2)),
            "attempt = 2".to_owned(),
            format!("wallet = '{SECOND_WALLET}'"),
            "slot = slot + 1".to_owned(),
            "ref_block_number = ref_block_number + 1".to_owned(),
            "time_to_live_ms = time_to_live_ms + 1".to_owned(),
            "fee_limit_sun = 0".to_owned(),
            "permission_id = 2".to_owned(),
            "expiration_ms = expiration_ms - 300000".to_owned(),
            "raw_data = '\\x01', txid = sluice.txid('\\x01')".to_owned(),
            "built_at = now()".to_owned(),
        ] {
            assert_eq!(
                as_owner(&update(&task.txid, &assignment)),
                "SL011",
                "{assignment}"
            );
        }
        assert_eq!(as_owner(&update(&task.txid, "raw_data = '\\x01'")), "23514");
    }

    #[pg_test]
    fn a_signature_is_the_wallets_own_and_is_written_once() {
        let scene = Scene::without_wallet();
        run(&format!(
            "select sluice.add_wallet('{KEYED_WALLET}', 'secp256k1')"
        ));
        let task = scene.signing(1);
        let txid = Txid::from_bytes(&task.txid).expect("a txid has 32 bytes");
        let key = SecretKey::from_hex(KEY).expect("the key is one");
        let other = SecretKey::from_bytes(&[7; 32]).expect("so is this");
        let set = |signature: &[u8]| {
            update(
                &task.txid,
                &format!("signature = '\\x{}'", hex::encode(signature)),
            )
        };
        let good = key.sign(&txid);
        assert_eq!(as_owner(&set(&good)), "");
        assert_eq!(as_owner(&set(&other.sign(&txid))), "SL015", "another key's");
        assert_eq!(
            as_owner(&set(&key.sign(&Txid::of(b"other bytes")))),
            "SL015",
            "of other bytes"
        );
        assert_eq!(as_owner(&set(&good[..64])), "SL015", "a byte short");
        assert_eq!(
            as_owner(&set(&[&good[..], &[0]].concat())),
            "SL015",
            "a byte long"
        );
        assert_eq!(as_owner(&set(&[0; 65])), "SL015", "zeros");
        assert_eq!(as_owner(&set(&[])), "SL015", "nothing");
        run_as_owner(&set(&good));
        assert_eq!(as_owner(&set(&good)), "", "itself again");
        let mut flipped = good;
        flipped[64] ^= 4;
        assert_eq!(
            as_owner(&set(&flipped)),
            "SL011",
            "a second one, of the same key"
        );
        assert_eq!(
            as_owner(&update(&task.txid, "signature = null")),
            "SL011",
            "and none"
        );
    }

    #[pg_test]
    fn a_death_asks_for_every_block_up_to_the_first_past_the_expiration() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        for _ in 0..9 {
            scene.follow_by_hand(30_000);
        }
        scene.follow_by_hand(29_999);
        let last = scene.tip.number;
        assert_eq!(
            as_owner(&dead(&task.txid, FIRST, last)),
            "SL012",
            "a millisecond short"
        );
        scene.follow_by_hand(1);
        let closing = scene.tip.number;
        scene.follow_by_hand(3000);
        for (first, last, what) in [
            (FIRST + 1, closing, "a coverage that begins late"),
            (
                FIRST - 1,
                closing,
                "a coverage that begins where nothing was followed",
            ),
            (FIRST, closing - 1, "one that ends before the expiration"),
            (
                FIRST,
                closing + 1,
                "one that ends after the block that decides",
            ),
        ] {
            assert_eq!(as_owner(&dead(&task.txid, first, last)), "SL012", "{what}");
        }
        assert_eq!(as_owner(&dead(&task.txid, FIRST, closing)), "");
    }

    #[pg_test]
    fn a_death_waits_for_the_margin_that_the_settings_ask_for() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        run("select sluice.set_setting('margin_blocks', '2', 'deeper proof')");
        scene.pass_by_hand(300);
        let closing = scene.tip.number;
        for expected in ["SL012", "SL012", ""] {
            assert_eq!(
                as_owner(&dead(&task.txid, FIRST, closing)),
                expected,
                "tip {}",
                scene.tip.number
            );
            scene.follow_by_hand(3000);
        }
    }

    #[pg_test]
    fn an_envelope_with_an_inclusion_on_file_cannot_be_declared_dead() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow_by_hand(3000);
        include_by_hand(&scene, &task, "SUCCESS");
        scene.pass_by_hand(297);
        assert_eq!(
            as_owner(&dead(&task.txid, FIRST, scene.tip.number)),
            "SL012"
        );
    }

    #[pg_test]
    fn an_inclusion_asks_for_a_payment_in_a_followed_block_and_is_what_that_says() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow_by_hand(3000);
        let block = scene.tip.number;
        let included = |receipt: &str, block: i64| {
            update(
                &task.txid,
                &format!("fate = 'included', receipt = '{receipt}', block_number = {block}"),
            )
        };
        assert_eq!(
            as_owner(&included("SUCCESS", block)),
            "SL012",
            "no payment is on file"
        );
        include_by_hand(&scene, &task, "SUCCESS");
        assert_eq!(
            as_owner(&included("REVERT", block)),
            "SL012",
            "another receipt"
        );
        assert_eq!(
            as_owner(&included("SUCCESS", block - 1)),
            "SL012",
            "another block"
        );
        assert_eq!(as_owner(&included("SUCCESS", block)), "");
    }

    #[pg_test]
    fn a_fate_is_written_once() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        let other = scene.broadcast(2);
        scene.follow(3000, &[in_block(&other.raw_data, REVERT)]);
        scene.pass(297);
        for (txid, last) in [
            (&task.txid, scene.tip.number),
            (&other.txid, scene.tip.number),
        ] {
            for assignment in [
                "fate = null, receipt = null, block_number = null, first_block = null, last_block = null".to_owned(),
                format!("fate = 'dead', receipt = null, block_number = null, first_block = {FIRST}, last_block = {}", last - 1),
                format!("fate = 'included', receipt = 'SUCCESS', block_number = {last}, first_block = null, last_block = null"),
            ] {
                assert_eq!(as_owner(&update(txid, &assignment)), "SL011", "{assignment}");
            }
        }
        for (number, assignment) in (3..).zip([
            "fate = 'lost'",
            "fate = 'dead'",
            "fate = 'included'",
            "fate = 'included', receipt = 'SUCCESS'",
        ]) {
            let third = scene.signing(number);
            assert_eq!(
                as_owner(&update(&third.txid, assignment)),
                "23514",
                "{assignment}"
            );
        }
    }
}
