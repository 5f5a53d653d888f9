//! Approvals: as many distinct people as the rule asks for, none of them who asked for it, measured when they approve and again when it
//! is handed to its rail.

use super::scene::*;
use pgrx::prelude::*;

const OURS: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

/// Logins that may approve, and one that vouches for others.
fn people() {
    for name in ["carol", "dora", "erin"] {
        run(&format!(
            "create role {name} login; grant sluice_approver to {name}"
        ));
    }
    run("create role portal login; grant sluice_voucher, sluice_app to portal");
    run(&format!("select sluice.set_custody('{OURS}', 'bob')"));
}

/// Runs a statement as somebody's session, and returns the SQLSTATE and message of its refusal, or two empty texts.
fn as_login(login: &str, statement: &str) -> (String, String) {
    run("create or replace function pg_temp.attempt_as(login text, statement text) returns text language plpgsql as $$
         declare v_state text; v_message text;
         begin
           execute format('set local session authorization %I', login);
           execute statement;
           reset session authorization;
           return '|';
         exception when others then
           get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
           return v_state || '|' || v_message;
         end $$");
    let answer = Spi::get_one_with_args::<String>(
        "select pg_temp.attempt_as($1, $2)",
        &[login.into(), statement.into()],
    );
    let answer = answer.expect("the attempt returns").unwrap_or_default();
    let (state, message) = answer.split_once('|').expect("both parts are there");
    (state.to_owned(), message.to_owned())
}

fn approve(login: &str, id: &str) -> String {
    as_login(
        login,
        &format!("select sluice.approve('{id}', 'looks right')"),
    )
    .0
}

fn vouch(id: &str, person: &str) -> String {
    as_login(
        "portal",
        &format!("select sluice.approve('{id}', null, '{person}')"),
    )
    .0
}

/// Submits an internal withdrawal of this amount for somebody.
fn asked(number: u32, amount: &str, by: &str) -> String {
    let id = id(number);
    run(&format!(
        "select sluice.submit('{id}', '{OURS}', '{amount}', requested_by => '{by}')"
    ));
    id
}

/// What a withdrawal still needs, in words.
fn missing(id: &str) -> String {
    one(&format!(
        "select missing_approvals from sluice.withdrawal('{id}')"
    ))
    .unwrap_or_default()
}

fn rule(name: &str, at_least: &str, approvals: i32) -> String {
    format!("select sluice.set_approval_rule('USDT-TRC20', '{name}', '{at_least}', {approvals})")
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_default_asks_for_nobody() {
        let scene = Scene::open();
        people();
        assert_eq!(scene.state(&asked(1, "1000000", "joe")), "confirmed");
    }

    #[pg_test]
    fn four_eyes_ask_for_one_person_below_the_amount_and_two_from_it_on() {
        let scene = Scene::open();
        people();
        run("select sluice.four_eyes('USDT-TRC20', '1000')");
        let small = asked(1, "999.999999", "joe");
        let large = asked(2, "1000", "joe");
        assert_eq!(
            missing(&small),
            "0 of 1 approvals under the rule \"single-approver\""
        );
        assert_eq!(
            missing(&large),
            "0 of 2 approvals under the rule \"four-eyes\""
        );
        assert_eq!(
            (approve("carol", &small), approve("carol", &large)),
            (String::new(), String::new())
        );
        assert_eq!(
            (scene.state(&small).as_str(), scene.state(&large).as_str()),
            ("confirmed", "validated")
        );
        assert_eq!(
            missing(&large),
            "1 of 2 approvals under the rule \"four-eyes\""
        );
        approve("dora", &large);
        assert_eq!(scene.state(&large), "confirmed");
        let kept = one(&format!(
            "select string_agg(approver || ' ' || login || ' ' || rule || ' ' || note, ', ' order by approver)
               from sluice.approvals where operation_id = '{large}'"
        ));
        assert_eq!(
            kept.as_deref(),
            Some("carol carol four-eyes looks right, dora dora four-eyes looks right")
        );
        let logged = one(&format!(
            "select count(*) from sluice.timeline('{large}') where detail ? 'approved_by'"
        ));
        assert_eq!(logged.as_deref(), Some("2"));
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn the_same_person_twice_counts_once_and_is_free_at_any_time() {
        let scene = Scene::open();
        people();
        run("select sluice.four_eyes('USDT-TRC20', '1')");
        let id = asked(1, "5", "joe");
        for _ in 0..3 {
            assert_eq!(approve("carol", &id), "");
        }
        assert_eq!(
            vouch(&id, "carol"),
            "",
            "the same person through an app is the same person"
        );
        assert_eq!(scene.state(&id), "validated");
        approve("dora", &id);
        assert_eq!(approve("dora", &id), "", "after it has moved on, too");
        assert_eq!(
            approve("erin", &id),
            "SL033",
            "nobody else is asked any more"
        );
        assert_eq!(
            one(&format!(
                "select count(*) from sluice.approvals where operation_id = '{id}'"
            ))
            .as_deref(),
            Some("2")
        );
    }

    #[pg_test]
    fn who_asked_for_it_does_not_approve_it() {
        let scene = Scene::open();
        people();
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        let for_carol = asked(1, "5", "carol");
        assert_eq!(approve("carol", &for_carol), "SL033");
        assert_eq!(vouch(&for_carol, "carol"), "SL033");
        assert_eq!(vouch(&for_carol, " carol "), "SL033");
        let own = id(2);
        run("grant sluice_app to dora");
        assert_eq!(
            as_login(
                "dora",
                &format!("select sluice.submit('{own}', '{OURS}', '5')")
            )
            .0,
            ""
        );
        assert_eq!(
            approve("dora", &own),
            "SL033",
            "nor the login that submitted it"
        );
        // An app that submits and vouches for its users submits for one and approves for another.
        let of_a_user = id(3);
        let submit =
            format!("select sluice.submit('{of_a_user}', '{OURS}', '5', requested_by => 'user 7')");
        assert_eq!(as_login("portal", &submit).0, "");
        assert_eq!(vouch(&of_a_user, "user 7"), "SL033");
        assert_eq!(vouch(&of_a_user, "user 8"), "");
        assert_eq!(scene.state(&of_a_user), "confirmed");
        let by = one(&format!(
            "select approver || ' by ' || login from sluice.approvals where operation_id = '{of_a_user}'"
        ));
        assert_eq!(by.as_deref(), Some("user 8 by portal"));
    }

    #[pg_test]
    fn who_vouches_says_for_whom_and_nobody_else_speaks_for_others() {
        let _scene = Scene::open();
        people();
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        let id = asked(1, "5", "joe");
        let unsaid = as_login("portal", &format!("select sluice.approve('{id}')"));
        assert_eq!(unsaid.0, "SL005");
        assert!(unsaid.1.starts_with("on_behalf_of: "), "{}", unsaid.1);
        assert_eq!(vouch(&id, "  "), "SL005");
        let spoken = as_login(
            "carol",
            &format!("select sluice.approve('{id}', null, 'dora')"),
        );
        assert_eq!(spoken.0, "SL033");
        assert!(spoken.1.starts_with("on_behalf_of: "), "{}", spoken.1);
        // Membership through another role is membership.
        run(
            "create role portals; grant sluice_voucher to portals; create role kiosk login; grant portals to kiosk",
        );
        assert_eq!(
            as_login("kiosk", &format!("select sluice.approve('{id}')")).0,
            "SL005"
        );
        assert_eq!(
            as_login(
                "kiosk",
                &format!("select sluice.approve('{id}', null, 'zoe')")
            )
            .0,
            ""
        );
    }

    #[pg_test]
    fn one_login_cannot_be_two_people_by_taking_another_role() {
        let scene = Scene::open();
        people();
        run("select sluice.four_eyes('USDT-TRC20', '1')");
        run("grant dora to carol");
        let id = asked(1, "5", "joe");
        approve("carol", &id);
        assert_eq!(
            as_login(
                "carol",
                &format!("set role dora; select sluice.approve('{id}')")
            )
            .0,
            ""
        );
        assert_eq!(scene.state(&id), "validated");
    }

    #[pg_test]
    fn an_external_withdrawal_is_not_built_before_it_is_approved_and_holds_its_funds_meanwhile() {
        let scene = Scene::open();
        people();
        run("select sluice.open_account('alice'); select sluice.deposit('alice', '10', 'r')");
        run("select sluice.four_eyes('USDT-TRC20', '1000')");
        let id = id(1);
        run(&format!(
            "select sluice.submit('{id}', '{THEIRS}', '4', account => 'alice')"
        ));
        assert!(scene.claim("w").is_empty());
        assert_eq!(
            (scene.state(&id).as_str(), scene.column(&id, "held_by")),
            ("validated", "approvals".to_owned())
        );
        assert_eq!(
            one("select held from sluice.balance('alice')").as_deref(),
            Some("4000000")
        );
        let stuck = one(&format!(
            "select why from sluice.stuck where operation_id = '{id}'"
        ));
        assert_eq!(
            stuck.as_deref(),
            Some("has 0 of 1 approvals under the rule \"single-approver\"")
        );
        let explained = one(&format!(
            "select held_by || ' / ' || may_be_done from sluice.explain('{id}')"
        ));
        assert_eq!(
            explained.as_deref(),
            Some(
                "has 0 of 1 approvals under the rule \"single-approver\" / sluice.approve, sluice.reject, or sluice.cancel."
            )
        );
        assert!(
            scene.claim("w").is_empty(),
            "nor is it looked at again by itself"
        );
        assert_eq!(broken(), "", "waiting for a person is not being lost");
        approve("carol", &id);
        assert_eq!(scene.claim("w").len(), 1);
        assert_eq!(missing(&id), "");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn an_approval_may_come_before_a_runner_has_looked_at_it() {
        let scene = Scene::open();
        people();
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        let id = scene.submit(1);
        approve("carol", &id);
        assert_eq!(scene.state(&id), "requested");
        assert_eq!(scene.claim("w").len(), 1);
    }

    #[pg_test]
    fn the_rule_is_measured_again_when_it_is_handed_to_its_rail() {
        let scene = Scene::open();
        people();
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        let id = scene.submit(1);
        approve("carol", &id);
        run(&rule("all", "0", 2));
        assert!(
            scene.claim("w").is_empty(),
            "one that no longer suffices goes no further"
        );
        assert_eq!(
            missing(&id),
            "1 of 2 approvals under the rule \"all\"",
            "and says so"
        );
        run(&rule("all", "0", 1));
        assert_eq!(
            scene.claim("w").len(),
            1,
            "a rule that asks for less lets it go"
        );
        let internal = asked(2, "5", "joe");
        assert_eq!(scene.state(&internal), "validated");
        run(&rule("all", "0", 0));
        assert_eq!(scene.state(&internal), "confirmed");
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn the_guard_asks_for_approvals_whoever_hands_over() {
        let scene = Scene::open();
        people();
        let id = scene.submit(1);
        run("update sluice.withdrawals set state = 'validated'");
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        assert_eq!(
            as_owner("update sluice.withdrawals set state = 'signing'"),
            "SL012"
        );
        approve("carol", &id);
        assert_eq!(
            as_owner("update sluice.withdrawals set state = 'signing'"),
            ""
        );
        assert_ne!(
            as_owner("delete from sluice.approvals"),
            "",
            "an approval is not taken back"
        );
        assert_ne!(as_owner("update sluice.approvals set approver = 'x'"), "");
    }

    #[pg_test]
    fn a_rejection_ends_it_at_once_and_only_before_it_is_handed_over() {
        let scene = Scene::open();
        people();
        run("select sluice.set_approval_rule('USDT-TRC20', 'all', '0', 1)");
        let id = asked(1, "5", "joe");
        let reject = |login: &str, id: &str, reason: &str| {
            as_login(login, &format!("select sluice.reject('{id}', '{reason}')")).0
        };
        assert_eq!(reject("carol", &id, ""), "SL005");
        assert_eq!(reject("carol", &id, "no such person"), "");
        assert_eq!(scene.state(&id), "rejected");
        assert_eq!(
            one(&format!(
                "select failure_reason from sluice.withdrawal('{id}')"
            ))
            .as_deref(),
            Some("rejected: no such person")
        );
        assert_eq!(
            reject("dora", &id, "no such person"),
            "",
            "the same again is free"
        );
        assert_eq!(reject("dora", &id, "another"), "SL001");
        assert_eq!(approve("dora", &id), "SL033");
        let built = scene.submit(2);
        approve("carol", &built);
        scene.claim("w");
        assert_eq!(reject("carol", &built, "too late"), "SL012");
        assert_eq!(
            reject("carol", &super::super::scene::id(99), "unknown"),
            "SL030"
        );
        assert_eq!(broken(), "");
    }

    #[pg_test]
    fn one_rule_starts_at_zero_and_two_do_not_start_at_the_same_amount() {
        let _scene = Scene::open();
        let rules = || {
            one("select string_agg(name || ' ' || at_least_units || ' ' || approvals, ', ' order by at_least_units) from sluice.approval_rules")
                .unwrap_or_default()
        };
        assert_eq!(rules(), "default 0 0");
        refuses(&rule("default", "5", 1), "SL005", "at_least");
        refuses(&rule("other", "-5", 1), "SL003", "at_least");
        refuses(&rule("other", "1.0000001", 1), "SL003", "at_least");
        refuses(&rule("other", "5", -1), "SL005", "approvals");
        refuses(&rule("other", "5", 101), "SL005", "approvals");
        refuses(&rule(" ", "5", 1), "SL005", "name");
        refuses(
            "select sluice.set_approval_rule('XYZ', 'a', '0', 1)",
            "SL004",
            "asset",
        );
        refuses(
            "select sluice.set_approval_rule('USDT-TRC20', 'a', null, 1)",
            "SL005",
            "at_least",
        );
        refuses(
            "select sluice.set_approval_rule('USDT-TRC20', 'a', '0', null)",
            "SL005",
            "approvals",
        );
        refuses(
            "select sluice.four_eyes('USDT-TRC20', '0')",
            "SL005",
            "above",
        );
        run(&rule("large", "1000", 2));
        assert_eq!(rules(), "default 0 0, large 1000000000 2");
        refuses(&rule("other", "1000", 3), "SL005", "at_least");
        run(&rule("large", "500", 3));
        assert_eq!(
            rules(),
            "default 0 0, large 500000000 3",
            "a name is one rule"
        );
        run(&rule("everything", "0", 1));
        assert_eq!(
            rules(),
            "everything 0 1, large 500000000 3",
            "the default gives way"
        );
        refuses(&rule("everything", "5", 1), "SL005", "at_least");
        refuses(&rule("other", "0", 1), "SL005", "at_least");
        refuses(
            "select sluice.drop_approval_rule('USDT-TRC20', 'everything')",
            "SL005",
            "name",
        );
        assert_eq!(
            one("sluice.drop_approval_rule('USDT-TRC20', 'large')").as_deref(),
            Some("true")
        );
        assert_eq!(
            one("sluice.drop_approval_rule('USDT-TRC20', 'large')").as_deref(),
            Some("false")
        );
        run("select sluice.four_eyes('USDT-TRC20', '100')");
        assert_eq!(rules(), "single-approver 0 1, four-eyes 100000000 2");
        let logged = one("select count(*) from sluice.changes where what = 'approval_rules'");
        assert_eq!(logged.as_deref(), Some("5"), "who changed what is on file");
    }
}
