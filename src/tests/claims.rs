//! Claims: what is handed out, to whom, from which wallet, and what is left alone.

use super::scene::*;
use pgrx::prelude::*;

/// A second wallet, whose address sorts before the first's.
const OTHER_WALLET: &str = "TMhzXhj5o7aG14eMHn2htGe7ek39hiriPN";

fn submit_many(from: u32, to: u32) {
    run(&format!(
        "insert into sluice.withdrawals (operation_id, to_address, amount)
         select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '{THEIRS}', '1.5' from generate_series({from}, {to}) n"
    ));
}

fn row(id: &str, column: &str) -> Option<String> {
    one(&format!(
        "select {column} from sluice.withdrawals where operation_id = '{id}'"
    ))
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn what_is_leased_is_handed_to_nobody_else_until_the_lease_is_over() {
        let scene = Scene::open();
        scene.submit(1);
        let first = scene.claim("a");
        assert_eq!(first.len(), 1);
        assert!(scene.claim("b").is_empty());
        scene.clock(29);
        assert!(scene.claim("b").is_empty(), "the lease is 30 s");
        scene.clock(30);
        let second = scene.claim("b");
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].fencing_token, first[0].fencing_token + 1);
        assert_eq!(
            (
                second[0].txid.as_slice(),
                second[0].action.as_str(),
                second[0].attempt
            ),
            (first[0].txid.as_slice(), "sign", 1),
            "the same digest is offered again"
        );
        assert!(
            scene.sign("a", &first)[0].state.is_empty(),
            "the first worker is fenced out"
        );
    }

    #[pg_test]
    fn what_is_released_is_due_at_once_and_only_its_holder_can_release_it() {
        let scene = Scene::open();
        let id = scene.submit(1);
        let claimed = scene.claim("a");
        let release = |worker: &str, token: i64| {
            one(&format!(
                "select sluice.release('{worker}', array['{id}'::uuid], array[{token}::bigint])"
            ))
        };
        let token = claimed[0].fencing_token;
        assert_eq!(release("b", token).as_deref(), Some("0"));
        assert_eq!(release("a", token - 1).as_deref(), Some("0"));
        assert_eq!(release("a", token).as_deref(), Some("1"));
        let again = scene.claim("b");
        assert_eq!(again[0].txid, claimed[0].txid);
    }

    #[pg_test]
    fn a_batch_is_as_large_as_asked_for_and_each_withdrawal_is_in_one_of_them() {
        let _scene = Scene::open();
        submit_many(1, 25);
        let count = |size: u32| {
            one(&format!(
                "select count(*) from sluice.claim_batch('w', {size})"
            ))
            .unwrap_or_default()
        };
        assert_eq!(
            (count(10), count(10), count(10), count(10)),
            ("10".into(), "10".into(), "5".into(), "0".into())
        );
        assert_eq!(
            one("select count(distinct operation_id) from sluice.envelopes").as_deref(),
            Some("25")
        );
    }

    #[pg_test]
    fn the_wallet_with_most_room_pays_then_the_lowest_address_and_never_another() {
        let mut scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{OTHER_WALLET}', 'hmac', live_window => 6002)"
        ));
        submit_many(1, 5);
        scene.claim("w");
        let wallets =
            one("select string_agg(wallet, ' ' order by operation_id) from sluice.withdrawals")
                .unwrap_or_default();
        // The other has two more places: it takes the first two, then they take turns, the lower address first.
        let expected = [
            OTHER_WALLET,
            OTHER_WALLET,
            MOCK_WALLET,
            OTHER_WALLET,
            MOCK_WALLET,
        ]
        .join(" ");
        assert_eq!(wallets, expected);
        let before = row(&id(1), "wallet");
        scene.pass(303);
        scene.clock(0);
        run("update sluice.withdrawals set due_at = sluice.now() where due_at is not null");
        assert_eq!(scene.claim("w").len(), 5);
        assert_eq!(row(&id(1), "attempt").as_deref(), Some("2"));
        assert_eq!(row(&id(1), "wallet"), before);
    }

    #[pg_test]
    fn a_full_window_builds_no_more_and_leaves_the_rest_untouched() {
        let mut scene = Scene::open();
        run("select sluice.pause('the small one is tried')");
        run(&format!(
            "select sluice.resume('on'), sluice.pause('not this one', '{MOCK_WALLET}')"
        ));
        run(&format!(
            "select sluice.add_wallet('{OTHER_WALLET}', 'hmac', live_window => 2)"
        ));
        submit_many(1, 5);
        assert_eq!(scene.claim("w").len(), 2);
        let untouched = || {
            one(
                "select count(*) from sluice.withdrawals where attempt = 0 and due_at = created_at and fencing_token = 0",
            )
        };
        assert_eq!(untouched().as_deref(), Some("3"));
        assert!(scene.claim("w").is_empty());
        assert_eq!(
            untouched().as_deref(),
            Some("3"),
            "what cannot be built does not churn"
        );
        let raw: Vec<Vec<u8>> = {
            let sent = one("select string_agg(encode(raw_data, 'hex'), ' ') from sluice.envelopes")
                .unwrap_or_default();
            sent.split(' ')
                .map(|hex| hex::decode(hex).expect("hex"))
                .collect()
        };
        scene.follow(3000, &[in_block(&raw[0], SUCCESS)]);
        assert_eq!(scene.claim("w").len(), 1, "a place is free again");
    }

    #[pg_test]
    fn nothing_is_handed_out_without_a_wallet_a_chain_or_a_fresh_one() {
        alone();
        alone();
        run(&format!(
            "select sluice.submit('{}', '{THEIRS}', '1.5')",
            id(1)
        ));
        let claims = || one("select count(*) from sluice.claim_batch('w')").unwrap_or_default();
        assert_eq!(claims(), "0", "no wallet, no chain");
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"
        ));
        assert_eq!(claims(), "0", "no chain");
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        run(&format!(
            "select sluice.follow_from({}, '\\x{GENESIS}')",
            literal(&first.bytes)
        ));
        let scene = Scene { tip: first };
        scene.clock(91);
        run("update sluice.withdrawals set due_at = sluice.now()");
        assert_eq!(claims(), "0", "the newest block is 91 s old");
        scene.clock(-3600);
        run("update sluice.withdrawals set due_at = sluice.now()");
        assert_eq!(claims(), "1", "a chain ahead of the clock is fresh");
    }

    #[pg_test]
    fn a_pause_holds_what_it_names_and_ends_with_its_resumption() {
        let scene = Scene::open();
        run(
            "select sluice.set_asset('OTHER', 'TPMhwU65PNAFADtkG7yHCsU9fcfmyE7fCC', 6, '1', '100', 1000000, 0, true)",
        );
        scene.submit(1);
        run(&format!(
            "select sluice.submit('{}', '{THEIRS}', '2', 'OTHER')",
            id(2)
        ));
        let claims = || {
            scene
                .claim("w")
                .into_iter()
                .map(|task| task.operation_id)
                .collect::<Vec<_>>()
        };
        run("select sluice.pause('all')");
        assert!(claims().is_empty());
        run("select sluice.resume('all')");
        run(&format!("select sluice.pause('wallet', '{MOCK_WALLET}')"));
        assert!(claims().is_empty());
        run(&format!("select sluice.resume('wallet', '{MOCK_WALLET}')"));
        run("select sluice.pause('asset', null, 'OTHER')");
        assert_eq!(claims(), [id(1)]);
        run("select sluice.resume('asset', null, 'OTHER')");
        assert_eq!(claims(), [id(2)]);
    }

    #[pg_test]
    fn what_may_no_longer_be_paid_is_rejected_with_the_reason() {
        let scene = Scene::open();
        let ids: Vec<String> = (1..=2).map(|number| scene.submit(number)).collect();
        run(
            "select sluice.set_asset('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, '2', '100', 100000000, 0, true)",
        );
        assert!(scene.claim("w").is_empty());
        assert_eq!(scene.state(&ids[0]), "rejected");
        assert_eq!(scene.log(&ids[0]), ">requested requested>rejected");
        assert!(
            row(&ids[0], "failure_reason")
                .unwrap_or_default()
                .contains("limits")
        );

        run(
            "select sluice.set_asset('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, '1', '100', 100000000, 0, true)",
        );
        let renamed = scene.submit(3);
        run(
            "select sluice.set_asset('USDT-TRC20', 'TPMhwU65PNAFADtkG7yHCsU9fcfmyE7fCC', 6, '1', '100', 100000000, 0, true)",
        );
        assert!(scene.claim("w").is_empty());
        assert!(
            row(&renamed, "failure_reason")
                .unwrap_or_default()
                .contains("contract or decimals")
        );

        let ours = scene.submit(4);
        run(&format!("select sluice.add_wallet('{THEIRS}', 'hmac')"));
        assert!(scene.claim("w").is_empty());
        assert!(
            row(&ours, "failure_reason")
                .unwrap_or_default()
                .contains("must not be paid")
        );
        assert_eq!(
            one("select count(*) from sluice.envelopes").as_deref(),
            Some("0")
        );
    }

    #[pg_test]
    fn a_row_that_raises_stops_itself_and_nobody_else() {
        let scene = Scene::open();
        submit_many(1, 20);
        // A restored row at the end of its counter: building one more envelope raises.
        run(&format!(
            "update sluice.withdrawals set attempt = 2147483647 where operation_id = '{}'",
            id(7)
        ));
        let poison = |fate: &str| {
            run(&format!(
                "insert into sluice.envelopes (txid, operation_id, attempt, wallet, slot, ref_block_number, time_to_live_ms, fee_limit_sun,
                   permission_id, expiration_ms, raw_data, built_at, fate, first_block, last_block)
                 values (sluice.txid('\\x00'), '{}', 2147483647, '{MOCK_WALLET}', 1, 1, 1, 1, 0, 1, '\\x00', sluice.now(), {fate})",
                id(7)
            ));
        };
        poison("'dead', 1, 2");
        let claimed = scene.claim("w");
        assert_eq!(claimed.len(), 19);
        assert_eq!(scene.state(&id(7)), "requested");
        let error = row(&id(7), "last_error").unwrap_or_default();
        assert!(error.starts_with("22003 "), "{error}");
        let backed_off = row(&id(7), "due_at = sluice.now() + interval '5 minutes'");
        assert_eq!(backed_off.as_deref(), Some("true"));
        assert!(scene.claim("w").is_empty());
        let stuck = one("select string_agg(operation_id::text, ' ') from sluice.stuck");
        assert_eq!(stuck, Some(id(7)), "and a person sees it");
    }

    #[pg_test]
    fn a_due_time_that_a_jumped_clock_wrote_counts_as_passed() {
        let scene = Scene::open();
        let started = scene.submit(1);
        let claimed = scene.claim("w");
        scene.submit(2);
        run("update sluice.withdrawals set due_at = sluice.now() + interval '1 day'");
        let ids: Vec<String> = scene
            .claim("v")
            .into_iter()
            .map(|task| task.operation_id)
            .collect();
        assert_eq!(ids.len(), 2, "neither is stranded");
        assert!(ids.contains(&started) && claimed.len() == 1);
        run("update sluice.withdrawals set due_at = sluice.now() + interval '59 minutes'");
        assert!(scene.claim("v").is_empty());
    }

    #[pg_test]
    fn two_builders_that_know_nothing_of_each_other_build_the_same_bytes() {
        let mut scene = Scene::open();
        scene.pass(30);
        scene.submit(1);
        let task = scene.claim("w").remove(0);
        // Built by hand from the first block of the slot, which is not the newest.
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        let by_hand = one(&format!(
            "select encode(sluice.raw_data('{MOCK_WALLET}', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', '{THEIRS}', 1500000, {FIRST}, {}, {}, {START_MS}, 100000000, '{}'), 'hex')",
            literal(&first.id),
            START_MS + 300_000,
            id(1)
        ));
        assert_eq!(by_hand, Some(hex::encode(&task.raw_data)));
    }

    #[pg_test]
    fn a_claim_says_which_of_its_arguments_is_wrong() {
        let _scene = Scene::open();
        for (call, argument) in [
            ("sluice.claim_batch('')", "worker_id"),
            ("sluice.claim_batch(null)", "worker_id"),
            ("sluice.claim_batch('w', 0)", "batch_size"),
            ("sluice.claim_batch('w', 10001)", "batch_size"),
            ("sluice.claim_batch('w', 1, '0 seconds')", "lease"),
            ("sluice.claim_batch('w', 1, '2 hours')", "lease"),
        ] {
            let (state, message) = refused(&format!("select {call}"));
            assert_eq!(state, "SL005", "{call}");
            assert!(message.starts_with(argument), "{call}: {message}");
        }
    }
}
