//! Building: when an envelope is built, from which wallet, and its bytes, which are put together here by hand. And what keeps one
//! from being built: a pause, a full window, a stale chain, an asset that changed.

use super::scene::*;
use pgrx::prelude::*;
use sha2::{Digest, Sha256};

const CONTRACT: &str = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";

/// The 21 bytes of the addresses that the hand-made envelope needs.
const BODIES: [(&str, &str); 3] = [
    (MOCK_WALLET, "417e5f4552091a69125d5dfcb7b8c2659029395bdf"),
    (CONTRACT, "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"),
    (THEIRS, "4138f7477a811f3c6a45dfa690769a8fa0c6229c7b"),
];

fn body(address: &str) -> Vec<u8> {
    let (_, text) = BODIES
        .iter()
        .find(|(known, _)| *known == address)
        .expect("the address is listed");
    hex::decode(text).expect("it is hex")
}

/// The envelope that pays 1.5 USDT from the mock wallet for this withdrawal, over this reference block, for 300 seconds.
fn by_hand(id: &str, reference: &Block) -> Vec<u8> {
    let operation_id = hex::decode(id.replace('-', "")).expect("a UUID is hex");
    let calldata = [
        hex::decode("a9059cbb").expect("it is hex"),
        vec![0; 12],
        body(THEIRS)[1..].to_vec(),
        vec![0; 24],
        1_500_000_u64.to_be_bytes().to_vec(),
    ]
    .concat();
    let call = [
        wire::bytes(1, &body(MOCK_WALLET)),
        wire::bytes(2, &body(CONTRACT)),
        wire::bytes(4, &calldata),
    ]
    .concat();
    let any = [
        wire::bytes(1, b"type.googleapis.com/protocol.TriggerSmartContract"),
        wire::bytes(2, &call),
    ]
    .concat();
    let contract = [wire::number(1, 31), wire::bytes(2, &any)].concat();
    [
        wire::bytes(1, &reference.number.to_be_bytes()[6..]),
        wire::bytes(4, &reference.id[8..16]),
        wire::number(8, reference.time + 300_000),
        wire::bytes(11, &contract),
        wire::bytes(12, &Sha256::digest(operation_id)[..16]),
        wire::number(14, reference.time),
        wire::number(18, 100_000_000),
    ]
    .concat()
}

fn add_wallet(address: &str, window: u32) {
    run(&format!(
        "select sluice.add_wallet('{address}', 'hmac', live_window => {window})"
    ));
}

/// A text that changes whenever a withdrawal's row is written, even into itself.
fn versions() -> String {
    one("select string_agg(operation_id || ' ' || ctid, ' ' order by operation_id) from sluice.withdrawals").unwrap_or_default()
}

/// Nothing is handed out, and nothing is written in vain.
fn nothing_is_started(scene: &Scene, why: &str) {
    let before = versions();
    for _ in 0..3 {
        assert_eq!(scene.claim("w").len(), 0, "{why}");
    }
    assert_eq!(versions(), before, "{why}: left alone");
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn an_envelope_is_these_bytes_and_a_forgetful_twin_makes_the_same_ones_all_through_a_slot() {
        let mut scene = Scene::open();
        let first = scene.tip.clone();
        let operation = scene.submit(1);
        let expected = by_hand(&operation, &first);
        let txid = hex::encode(Sha256::digest(&expected));
        for seconds in [0, 3, 30, 26] {
            scene.pass(seconds);
            let twin = forgotten(
                "(select encode(t.txid, 'hex') || encode(t.raw_data, 'hex') from sluice.claim_batch('twin') t)",
            );
            assert_eq!(
                twin,
                format!("{txid}{}", hex::encode(&expected)),
                "{} ms into the slot",
                scene.tip.time - first.time
            );
        }
        scene.follow(1000, &[]);
        let task = scene.claim("w").remove(0);
        assert_eq!(
            task.raw_data,
            by_hand(&operation, &scene.tip),
            "the next slot's first block, wherever in the slot it lies"
        );
        assert_ne!(hex::encode(&task.txid), txid);
        assert_eq!(task.txid, Sha256::digest(&task.raw_data).to_vec());
        let kept = one(
            "select concat_ws(' ', slot, ref_block_number, time_to_live_ms, fee_limit_sun, permission_id, expiration_ms) from sluice.envelopes",
        );
        let tip = &scene.tip;
        assert_eq!(
            kept,
            Some(format!(
                "{} {} 300000 100000000 0 {}",
                tip.time / 60_000,
                tip.number,
                tip.time + 300_000
            ))
        );
    }

    #[pg_test]
    fn a_wallets_permission_is_in_its_envelopes() {
        let scene = Scene::without_wallet();
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac', permission_id => 3)"
        ));
        let task = scene.signing(1);
        let says = one(&format!(
            "select sluice.decode_raw_data({}) ->> 'permission_id'",
            literal(&task.raw_data)
        ));
        assert_eq!(says.as_deref(), Some("3"));
        assert_eq!(
            one("select permission_id from sluice.envelopes").as_deref(),
            Some("3")
        );
    }

    #[pg_test]
    fn a_full_window_holds_no_resend() {
        let mut scene = Scene::without_wallet();
        add_wallet(MOCK_WALLET, 1);
        let task = scene.broadcast(1);
        scene.submit(2);
        scene.pass(78);
        let again = scene.claim("w");
        assert_eq!(again.len(), 1);
        assert_eq!(
            (again[0].action.as_str(), &again[0].txid),
            ("broadcast", &task.txid)
        );
    }

    #[pg_test]
    fn nothing_is_started_without_a_chain_without_a_wallet_or_with_all_of_them_paused() {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        let mut scene = Scene { tip: first.clone() };
        scene.clock(0);
        scene.submit(1);
        nothing_is_started(&scene, "no chain is followed and there is no wallet");
        run(&format!(
            "select sluice.follow_from({}, '\\x{GENESIS}')",
            literal(&first.bytes)
        ));
        nothing_is_started(&scene, "there is no wallet");
        add_wallet(MOCK_WALLET, 10);
        for pause in [
            "'a reason'".to_owned(),
            format!("'a reason', wallet => '{MOCK_WALLET}'"),
            "'a reason', asset => 'USDT-TRC20'".to_owned(),
        ] {
            run(&format!("select sluice.pause({pause})"));
            nothing_is_started(&scene, &pause);
            run(&format!("select sluice.resume({pause})"));
        }
        let both = format!("'a reason', wallet => '{MOCK_WALLET}', asset => 'USDT-TRC20'");
        run(&format!("select sluice.pause({both})"));
        assert_eq!(
            scene.claim("w").len(),
            0,
            "the only wallet is paused for the asset"
        );
        run(&format!("select sluice.resume({both})"));
        scene.follow(6000, &[]);
        assert_eq!(scene.claim("w").len(), 1);
    }

    #[pg_test]
    fn nothing_is_started_while_the_followed_chain_is_stale_and_one_ahead_of_the_clock_is_fresh() {
        let scene = Scene::open();
        scene.submit(1);
        scene.clock(91);
        nothing_is_started(&scene, "the newest block is older than freshness");
        scene.clock(90);
        assert_eq!(
            forgotten("(select count(*) from sluice.claim_batch('w'))"),
            "1"
        );
        scene.clock(-86_400);
        scene.submit(2);
        let tasks = scene.claim("w");
        assert_eq!(
            tasks.len(),
            2,
            "the clock is behind, the chain is not stale"
        );
    }

    #[pg_test]
    fn a_pause_of_one_wallet_or_asset_leaves_the_others_alone() {
        let scene = Scene::without_wallet();
        add_wallet(MOCK_WALLET, 10);
        add_wallet(SECOND_WALLET, 5);
        run(
            "select sluice.set_asset('OTHER', 'TPMhwU65PNAFADtkG7yHCsU9fcfmyE7fCC', 6, '1', '1000', 1000000, reverts_on_failure => true)",
        );
        let submit_other = |number: u32| {
            run(&format!(
                "select sluice.submit('{}', '{THEIRS}', '2', 'OTHER')",
                id(number)
            ));
        };
        run(&format!(
            "select sluice.pause('a reason', wallet => '{MOCK_WALLET}')"
        ));
        assert_eq!(scene.signing(1).wallet, SECOND_WALLET);
        run(&format!(
            "select sluice.resume('a reason', wallet => '{MOCK_WALLET}')"
        ));
        run("select sluice.pause('a reason', asset => 'USDT-TRC20')");
        scene.submit(2);
        submit_other(3);
        let tasks = scene.claim("w");
        assert_eq!(tasks.len(), 1);
        assert_eq!(
            (tasks[0].operation_id.clone(), tasks[0].wallet.as_str()),
            (id(3), MOCK_WALLET)
        );
        run("select sluice.resume('a reason', asset => 'USDT-TRC20')");
        // Paused for one asset, the wallet with most room pays others, and the other wallet pays that one.
        run(&format!(
            "select sluice.pause('a reason', wallet => '{MOCK_WALLET}', asset => 'USDT-TRC20')"
        ));
        submit_other(4);
        scene.clock(6);
        let tasks = scene.claim("w");
        assert_eq!(tasks.len(), 2);
        assert_eq!(
            (tasks[0].operation_id.clone(), tasks[0].wallet.as_str()),
            (id(2), SECOND_WALLET)
        );
        assert_eq!(
            (tasks[1].operation_id.clone(), tasks[1].wallet.as_str()),
            (id(4), MOCK_WALLET)
        );
    }

    #[pg_test]
    fn an_asset_that_changes_under_a_live_envelope_ends_the_withdrawal_only_once_that_is_over() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        let paid = scene.broadcast(2);
        run("update sluice.assets set decimals = 7");
        scene.pass(78);
        let again = scene.claim("w");
        assert_eq!(
            again.len(),
            2,
            "what was built is sent on: it pays what was asked for then"
        );
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        assert_eq!(scene.state(&paid.operation_id), "confirmed");
        scene.pass(300);
        assert_eq!(
            scene.claim("w").len(),
            0,
            "and what is not paid is not built anew"
        );
        assert_eq!(scene.state(&task.operation_id), "failed");
        assert!(
            scene
                .column(&task.operation_id, "failure_reason")
                .contains("contract or decimals changed")
        );
    }

    #[pg_test]
    fn a_validated_row_is_built_and_limits_hold_for_whatever_was_never_built() {
        let scene = Scene::open();
        for number in 1..=3 {
            scene.submit(number);
            run_as_owner(&format!(
                "update sluice.withdrawals set state = 'validated' where operation_id = '{}'",
                id(number)
            ));
        }
        // Further than a runner can walk it without building anything.
        assert_eq!(
            sqlstate(&format!(
                "select sluice.fenced_cas('{}', 0, 'validated', 'signing', 'w')",
                id(3)
            )),
            "SL012"
        );
        run_as_owner(&format!(
            "update sluice.withdrawals set state = 'signing' where operation_id = '{}'",
            id(3)
        ));
        scene.clock(31);
        let built = forgotten(
            "(select string_agg(right(operation_id::text, 1) || state, ' ') from sluice.claim_batch('w'))",
        );
        assert_eq!(built, "1signing 2signing 3signing");
        run("update sluice.assets set minimum_units = 1500001");
        assert_eq!(scene.claim("w").len(), 0);
        for (number, state) in [(1, "rejected"), (2, "rejected"), (3, "failed")] {
            assert_eq!(scene.state(&id(number)), state);
        }
    }
}
