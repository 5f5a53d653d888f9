//! What people ask and do: where a withdrawal stands, what became of an envelope, what needs a look, and ending one.

use super::scene::*;
use pgrx::prelude::*;

fn explained(id: &str) -> String {
    one(&format!(
        "select stands || ' | ' || coalesce(held_by, '') || ' | ' || may_be_done from sluice.explain('{id}')"
    ))
    .unwrap_or_default()
}

fn fate(task: &Task) -> String {
    one(&format!(
        "select fate || ' ' || coalesce(result, '') || ' ' || coalesce(block_number::text, '') from sluice.fate({})",
        literal(&task.txid)
    ))
    .unwrap_or_default()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_fate_of_an_envelope_is_in_flight_then_what_the_blocks_show() {
        let mut scene = Scene::open();
        let paid = scene.broadcast(1);
        assert_eq!(fate(&paid), "in flight  ");
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        assert_eq!(fate(&paid), "included SUCCESS 1001");
        let dies = scene.broadcast(2);
        scene.pass(303);
        assert_eq!(fate(&dies), "dead  ");
        assert_eq!(
            one("select count(*) from sluice.fate('\\x00')").as_deref(),
            Some("0")
        );
    }

    #[pg_test]
    fn a_client_sees_where_its_withdrawal_stands_and_what_paid_it() {
        let mut scene = Scene::open();
        let task = scene.broadcast(1);
        scene.follow(3000, &[in_block(&task.raw_data, SUCCESS)]);
        let seen = one(&format!(
            "select state || ' ' || amount || ' ' || rail || ' ' || txid || ' ' || block_number || ' ' || (confirmed_at is not null)
               from sluice.withdrawal('{}')",
            task.operation_id
        ));
        let expected = format!(
            "confirmed 1.5 external {} 1001 true",
            hex::encode(&task.txid)
        );
        assert_eq!(seen, Some(expected));
    }

    #[pg_test]
    fn explain_says_what_holds_a_withdrawal_and_what_may_be_done() {
        let mut scene = Scene::open();
        let id = scene.submit(1);
        run("select sluice.pause('the node is being moved')");
        assert!(
            explained(&id).contains("paused: the node is being moved"),
            "{}",
            explained(&id)
        );
        run("select sluice.resume('moved')");
        let claimed = scene.claim("w7");
        assert!(
            explained(&id).contains("leased by w7"),
            "{}",
            explained(&id)
        );
        let sent = scene.sign("w7", &claimed);
        scene.answer("w7", &sent, "SUCCESS");
        assert!(
            explained(&id).contains("in flight until"),
            "{}",
            explained(&id)
        );
        assert!(
            explained(&id).contains("Nothing by hand"),
            "{}",
            explained(&id)
        );
        scene.follow(3000, &[in_block(&sent[0].raw_data, SUCCESS)]);
        assert!(explained(&id).contains("Paid by"), "{}", explained(&id));
        assert_eq!(
            sqlstate(&format!("select sluice.explain('{}')", super::id(99))),
            "SL030"
        );
    }

    #[pg_test]
    fn overview_counts_and_sums_what_lives_and_what_is_over() {
        let mut scene = Scene::open();
        let paid = scene.broadcast(1);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        scene.submit(2);
        scene.submit(3);
        let cancelled = scene.submit(4);
        run(&format!(
            "select sluice.cancel('{cancelled}', 'no longer wanted')"
        ));
        let shown = one(
            "select string_agg(state || ' ' || withdrawals || ' ' || amount, ', ' order by state)
               from sluice.overview where asset is not null",
        );
        assert_eq!(
            shown.as_deref(),
            Some("requested 2 3, confirmed 1 1.5, rejected 1 1.5")
        );
        let states = one("select count(distinct state) from sluice.overview");
        assert_eq!(
            states.as_deref(),
            Some("9"),
            "a state without withdrawals is shown too"
        );
        let mock = one("select min(mock_wallets) from sluice.overview");
        assert_eq!(mock.as_deref(), Some(MOCK_WALLET));
    }

    #[pg_test]
    fn what_is_over_is_counted_right_after_its_parts_were_folded() {
        let mut scene = Scene::open();
        run(&format!(
            "insert into sluice.withdrawals (operation_id, to_address, amount)
             select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '{THEIRS}', '2' from generate_series(1, 520) n"
        ));
        run("select sluice.cancel(operation_id, 'all of them') from sluice.withdrawals");
        let parts = || one("select count(*) from sluice.tallies").unwrap_or_default();
        assert_eq!(parts(), "520");
        scene.follow(3000, &[]);
        assert_eq!(parts(), "1");
        let shown =
            one("select withdrawals || ' ' || units from sluice.overview where state = 'rejected'");
        assert_eq!(shown.as_deref(), Some("520 1040000000"));
    }

    #[pg_test]
    fn a_refused_withdrawal_is_stuck_until_a_node_takes_it() {
        let scene = Scene::open();
        scene.submit(1);
        let sent = scene.sign("w", &scene.claim("w"));
        scene.answer("w", &sent, "SIGERROR");
        let why = || one("select why from sluice.stuck");
        assert_eq!(why().as_deref(), Some("refused: SIGERROR"));
        scene.answer("w", &sent, "SUCCESS");
        assert_eq!(why(), None);
    }

    #[pg_test]
    fn a_withdrawal_is_cancelled_at_once_while_nothing_can_pay_it() {
        let mut scene = Scene::open();
        let waiting = scene.submit(1);
        let cancel = |id: &str| format!("select sluice.cancel('{id}', 'the customer asked')");
        run(&cancel(&waiting));
        assert_eq!(scene.state(&waiting), "rejected");
        assert_eq!(sqlstate(&cancel(&waiting)), "", "a repeat is free");

        let signing = scene.submit(2);
        let sent = scene.sign("w", &scene.claim("w"));
        scene.answer("w", &sent, "CONTRACT_VALIDATE_ERROR");
        scene.pass(303);
        assert_eq!(scene.state(&signing), "signing");
        run(&cancel(&signing));
        assert_eq!(scene.state(&signing), "failed");
        let reason = one(&format!(
            "select failure_reason from sluice.withdrawal('{signing}')"
        ));
        assert_eq!(reason.as_deref(), Some("cancelled: the customer asked"));
        assert_eq!(sqlstate(&cancel(&id(99))), "SL030");
    }

    #[pg_test]
    fn explain_has_a_word_for_every_state_and_every_reason_to_wait() {
        let mut scene = Scene::open();
        let says = |id: &str, part: &str, what: &str| {
            let found =
                one(&format!("select {part} from sluice.explain('{id}')")).unwrap_or_default();
            assert!(
                found.contains(what),
                "{part} of {id}: {found:?} does not say {what:?}"
            );
        };
        let nothing_by_hand = "only solid blocks may end or rebuild it";

        let dies = scene.broadcasting(1);
        scene.answer("w", std::slice::from_ref(&dies), "SIGERROR");
        scene.pass(297);
        says(&id(1), "stands", "may have been sent");
        says(&id(1), "held_by", "in flight until chain time");
        run("select sluice.set_setting('margin_blocks', '1', 'deeper proof')");
        scene.pass(3);
        says(
            &id(1),
            "held_by",
            "expired; waits for the followed blocks to decide",
        );
        scene.pass(3);
        says(&id(1), "stands", "1 envelope(s) are spent");
        says(&id(1), "held_by", "never_accepted");
        says(&id(1), "may_be_done", "sluice.cancel");
        assert_eq!(scene.due_in(&id(1)), 300);

        run("update sluice.assets set depth = 5");
        let paid = scene.broadcasting(2);
        scene.follow(3000, &[in_block(&paid.raw_data, SUCCESS)]);
        let block = scene.tip.number;
        says(
            &id(2),
            "stands",
            &format!("included in block {block} with SUCCESS"),
        );
        says(
            &id(2),
            "held_by",
            &format!("waits for block {} to be followed", block + 5),
        );
        says(&id(2), "may_be_done", "it is paid");
        let parked = scene.broadcasting(3);
        scene.follow(3000, &[in_block(&parked.raw_data, 13)]);
        says(&id(3), "stands", "with UNKNOWN");
        says(&id(3), "held_by", "decides nothing");
        says(&id(3), "may_be_done", "Look the transaction up");
        scene.pass(12);
        says(
            &id(2),
            "stands",
            &format!("Paid by {} in block {block}", hex::encode(&paid.txid)),
        );
        says(&id(2), "may_be_done", "never changes again");

        let failed = scene.broadcasting(4);
        scene.follow(3000, &[in_block(&failed.raw_data, REVERT)]);
        says(&id(4), "stands", "Over: the chain says REVERT");
        scene.submit(5);
        run(&format!("select sluice.cancel('{}', 'not wanted')", id(5)));
        says(&id(5), "stands", "Over: cancelled: not wanted");

        let signing = scene.signing(6);
        says(
            &id(6),
            "stands",
            &format!("Envelope {} is built", hex::encode(&signing.txid)),
        );
        says(&id(6), "held_by", "leased by w");
        says(&id(6), "may_be_done", nothing_by_hand);
        let signed = scene.signed(7);
        run("select sluice.pause('the signer is away')");
        says(
            &id(7),
            "stands",
            &format!(
                "Envelope {} is signed and not sent",
                hex::encode(&signed.txid)
            ),
        );
        says(&id(7), "held_by", "paused: the signer is away");
        says(&id(7), "may_be_done", nothing_by_hand);
        scene.submit(8);
        says(&id(8), "stands", "nothing is built yet");
        says(&id(8), "held_by", "paused: the signer is away");
        says(&id(8), "may_be_done", "sluice.resume, or sluice.cancel");
        run("select sluice.resume('the signer is back')");
        run(&format!(
            "select sluice.pause('it is empty', wallet => '{MOCK_WALLET}')"
        ));
        says(&id(8), "held_by", "every wallet is paused");
        run(&format!(
            "select sluice.resume('it is filled', wallet => '{MOCK_WALLET}')"
        ));
        run_as_owner(
            "update sluice.withdrawals set state = 'validated' where operation_id = '00000000-0000-4000-8000-000000000008'",
        );
        says(&id(8), "stands", "Checked; nothing is built yet");
        scene.clock(91);
        says(&id(8), "held_by", "the newest followed block is from");
        for number in 1..=8 {
            assert_eq!(
                one(&format!("select next_due is not distinct from due_at from sluice.explain('{0}') join sluice.withdrawals using (operation_id)", id(number))).as_deref(),
                Some("true")
            );
        }
    }

    #[pg_test]
    fn explain_says_that_there_is_no_chain_no_wallet_or_no_room() {
        alone();
        let first = block(FIRST, &[0; 32], START_MS, &[]);
        let scene = Scene { tip: first.clone() };
        scene.clock(0);
        let withdrawal = scene.submit(1);
        assert!(
            explained(&withdrawal).contains("no chain is followed"),
            "{}",
            explained(&withdrawal)
        );
        run(&format!(
            "select sluice.follow_from({}, '\\x{GENESIS}')",
            literal(&first.bytes)
        ));
        assert!(
            explained(&withdrawal).contains("there is no wallet"),
            "{}",
            explained(&withdrawal)
        );
        run(&format!(
            "select sluice.add_wallet('{MOCK_WALLET}', 'hmac', live_window => 1)"
        ));
        let due = one(&format!(
            "select held_by is null from sluice.explain('{withdrawal}')"
        ));
        assert_eq!(due.as_deref(), Some("true"), "nothing holds it");
        assert_eq!(scene.claim("w").len(), 1);
        let held = scene.submit(2);
        let both = explained(&held);
        assert!(both.contains("no wallet has room"), "{both}");
    }
}
