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
    fn a_withdrawal_is_cancelled_only_while_nothing_can_pay_it() {
        let mut scene = Scene::open();
        let waiting = scene.submit(1);
        let cancel = |id: &str| format!("select sluice.cancel('{id}', 'the customer asked')");
        run(&cancel(&waiting));
        assert_eq!(scene.state(&waiting), "rejected");
        assert_eq!(sqlstate(&cancel(&waiting)), "SL011");

        let signing = scene.submit(2);
        let claimed = scene.claim("w");
        assert_eq!(
            sqlstate(&cancel(&signing)),
            "SL012",
            "its digest is with a signer"
        );
        let sent = scene.sign("w", &claimed);
        assert_eq!(
            sqlstate(&cancel(&signing)),
            "SL012",
            "it may have been sent"
        );
        scene.answer("w", &sent, "CONTRACT_VALIDATE_ERROR");
        assert_eq!(
            sqlstate(&cancel(&signing)),
            "SL012",
            "a refusal proves nothing"
        );

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
}
