//! Pauses: what one holds and what goes on, of what it may be, and how it ends.

use super::scene::*;
use super::setup::{TOKEN, rows, set_asset};
use pgrx::prelude::*;
use serde_json::json;

fn pauses_in_force() -> i64 {
    count("select count(*) from sluice.pauses where resumed_at is null")
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn a_pause_holds_building_signing_and_first_sends_and_nothing_else() {
        let mut scene = Scene::open();
        let requested = scene.submit(1);
        run("select sluice.pause('the token is upgraded')");
        assert!(scene.claim("w").is_empty(), "nothing is built");
        assert_eq!(scene.state(&requested), "requested");
        run("select sluice.resume('done')");

        // Built before the pause: the digest is not handed out again, and a signature that comes in is not sent.
        let built = scene.claim("w").remove(0);
        assert_eq!(built.operation_id, requested);
        run("select sluice.pause('again')");
        scene.pass(33);
        assert!(scene.claim("w").is_empty(), "nothing is signed");
        let answer = scene.sign("w", std::slice::from_ref(&built)).remove(0);
        assert_eq!(
            (answer.state.as_str(), answer.action.as_str()),
            ("signed", "")
        );
        scene.pass(33);
        assert!(scene.claim("w").is_empty(), "nothing is sent first");
        assert_eq!(scene.state(&requested), "signed");
        run("select sluice.resume('done')");

        // Sent before the pause: it is sent again, followed and settled.
        scene.pass(6);
        let sent = scene.claim("w").remove(0);
        assert_eq!(
            (sent.state.as_str(), sent.action.as_str()),
            ("broadcasting", "broadcast")
        );
        scene.answer("w", std::slice::from_ref(&sent), "SUCCESS");
        run("select sluice.pause('once more')");
        scene.pass(78);
        let again = scene.claim("w").remove(0);
        assert_eq!(
            (again.txid.clone(), again.action.as_str()),
            (sent.txid, "broadcast")
        );
        let moved = scene.follow(3000, &[in_block(&again.raw_data, SUCCESS)]);
        assert_eq!(moved[0].state, "confirmed");
    }

    #[pg_test]
    fn a_pause_of_a_wallet_or_an_asset_holds_what_it_names_alone() {
        let scene = Scene::open();
        run(&format!(
            "select sluice.add_wallet('{SECOND_WALLET}', 'hmac')"
        ));
        run(&set_asset("OTHER", TOKEN, 6, "1", "10"));
        let (usdt, other) = (id(1), id(2));
        let submit = || {
            run(&format!(
                "select sluice.submit('{usdt}', '{THEIRS}', '1.5'), sluice.submit('{other}', '{THEIRS}', '1.5', 'OTHER')"
            ));
        };
        let claimed = |pause: &str| {
            let scope = format!("perform sluice.pause('r', {pause})");
            run(&format!("do $do$ begin {scope}; end $do$"));
            let mut tasks = scene.claim("w");
            tasks.sort_by_key(|task| task.operation_id.clone());
            let found: Vec<_> = tasks
                .into_iter()
                .map(|task| (task.operation_id, task.wallet))
                .collect();
            run(&format!("select sluice.resume('r', {pause})"));
            found
        };
        submit();
        assert_eq!(
            claimed("asset => 'OTHER'"),
            [(usdt.clone(), MOCK_WALLET.to_owned())]
        );
        assert_eq!(
            claimed(&format!("wallet => '{MOCK_WALLET}'")),
            [(other.clone(), SECOND_WALLET.to_owned())],
            "the other wallet pays"
        );
        let (third, fourth) = (id(3), id(4));
        run(&format!(
            "select sluice.submit('{third}', '{THEIRS}', '1.5'), sluice.submit('{fourth}', '{THEIRS}', '1.5', 'OTHER')"
        ));
        assert_eq!(
            claimed("asset => 'OTHER', wallet => 'TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC'").len(),
            2,
            "the other wallet pays both"
        );
    }

    #[pg_test]
    fn a_pause_in_force_is_one_and_ends_by_its_own_wallet_and_asset() {
        alone();
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac')"
        ));
        let hex = "417e5f4552091a69125d5dfcb7b8c2659029395bdf";
        run(&format!(
            "select sluice.pause('one'), sluice.pause('two'), sluice.pause('w', '{MOCK_WALLET}'), sluice.pause('w', '{hex}'),
                    sluice.pause('a', asset => 'USDT-TRC20'), sluice.pause('b', '{MOCK_WALLET}', 'USDT-TRC20')"
        ));
        assert_eq!(pauses_in_force(), 4);
        run(&format!("select sluice.resume('well again', ' {hex} ')"));
        assert_eq!(pauses_in_force(), 3);
        let before = contents();
        for call in [
            format!("resume('r', '{MOCK_WALLET}')"),
            "resume(null)".to_owned(),
            "resume(' ')".to_owned(),
            "resume('r', 'nonsense')".to_owned(),
            format!("resume('r', '{THEIRS}')"),
            "resume('r', asset => 'NONE')".to_owned(),
            "pause(null)".to_owned(),
            "pause(E'\\t')".to_owned(),
            "pause(repeat('r', 1001))".to_owned(),
            "pause('r', 'nonsense')".to_owned(),
            "pause('r', '')".to_owned(),
            format!("pause('r', '{THEIRS}')"),
            "pause('r', asset => 'NONE')".to_owned(),
            "pause('r', asset => '')".to_owned(),
        ] {
            let (state, message) = refused(&format!("select sluice.{call}"));
            assert!(
                ["SL002", "SL004", "SL005"].contains(&state.as_str()),
                "{call}: {state} {message}"
            );
            assert!(message.contains(": "), "{call}: {message}");
        }
        assert_eq!(contents(), before);
        run("select sluice.resume('well again')");
        run(&format!(
            "select sluice.pause('anew'), sluice.pause('w again', '{MOCK_WALLET}')"
        ));
        assert_eq!(
            rows(
                "select reason, resume_reason, resumed_by = session_user as by_us from sluice.pauses where resumed_at is not null order by reason"
            ),
            [
                json!({"reason": "one", "resume_reason": "well again", "by_us": true}),
                json!({"reason": "w", "resume_reason": "well again", "by_us": true}),
            ]
        );
        assert_eq!(pauses_in_force(), 4);
    }
}
