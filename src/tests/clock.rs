//! The clock that tests may replace: what `sluice.now` takes, what it does, and who may set it.

use super::scene::*;
use pgrx::prelude::*;

fn set_clock(text: &str) {
    run(&format!(
        "select set_config('sluice.now', {}, true)",
        quoted(text)
    ));
}

/// How far sluice's clock is from the time of day, in whole seconds.
fn ahead() -> i64 {
    let seconds = one("round(extract(epoch from sluice.now() - clock_timestamp()))::bigint");
    seconds
        .and_then(|seconds| seconds.parse().ok())
        .expect("a number of seconds")
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn an_instant_makes_the_clock_stand_there() {
        run("set local timezone = 'UTC'");
        for (text, instant) in [
            ("2026-01-01 00:00:00+00", "2026-01-01 00:00:00+00"),
            (
                "2026-01-01T03:00:00.123456+03",
                "2026-01-01 00:00:00.123456+00",
            ),
            ("2030-06-01", "2030-06-01 00:00:00+00"),
            ("epoch", "1970-01-01 00:00:00+00"),
        ] {
            set_clock(text);
            assert_eq!(one("sluice.now()").as_deref(), Some(instant), "{text}");
            run("select pg_sleep(0.002)");
            assert_eq!(
                one("sluice.now()").as_deref(),
                Some(instant),
                "{text} stands"
            );
        }
        alone();
        let id = id(1);
        set_clock("2026-01-01 00:00:00.123456+00");
        run(&format!("select sluice.submit('{id}', '{THEIRS}', '1')"));
        assert_eq!(
            one(&format!("select created_at || ' ' || due_at from sluice.withdrawals where operation_id = '{id}'")).as_deref(),
            Some("2026-01-01 00:00:00.123456+00 2026-01-01 00:00:00.123456+00"),
        );
    }

    #[pg_test]
    fn an_interval_sets_the_clock_off_by_that_much() {
        for (text, seconds) in [
            ("5 minutes", 300),
            ("-5 minutes", -300),
            ("-00:00:30", -30),
            ("1 day", 86_400),
            ("1 day ago", -86_400),
            ("P1D", 86_400),
            ("1 month", 30 * 86_400),
            ("0", 0),
        ] {
            set_clock(text);
            assert_eq!(ahead(), seconds, "{text}");
        }
        set_clock("1 hour");
        let before = one("sluice.now()");
        run("select pg_sleep(0.002)");
        assert_ne!(one("sluice.now()"), before, "it goes on");
    }

    #[pg_test]
    fn nothing_set_is_the_time_of_day() {
        assert_eq!(ahead(), 0);
        set_clock("5 minutes");
        set_clock("");
        assert_eq!(ahead(), 0);
    }

    #[pg_test]
    fn a_setting_that_is_no_time_is_refused_by_name_and_the_session_goes_on() {
        alone();
        for text in [
            "rubbish",
            " ",
            "2026-13-01",
            "12 parsecs",
            "NaN",
            "'; drop",
            "1e999",
        ] {
            set_clock(text);
            for statement in [
                "select sluice.now()".to_owned(),
                format!("select sluice.submit('{}', '{THEIRS}', '1')", id(1)),
                "select sluice.claim_batch('w')".to_owned(),
            ] {
                let (state, message) = refused(&statement);
                assert_eq!(state, "SL005", "{text}: {statement}: {message}");
                assert!(
                    message.starts_with("sluice.now: ") && message.contains(text),
                    "{text}: {message}"
                );
            }
        }
        set_clock("-200000 years");
        assert_eq!(sqlstate("select sluice.now()"), "SL005", "before all time");
        set_clock("");
        assert_eq!(ahead(), 0);
        assert_eq!(
            one("select count(*) from sluice.withdrawals").as_deref(),
            Some("0")
        );
    }

    #[pg_test]
    fn only_a_superuser_may_replace_the_clock() {
        alone();
        run("create role somebody");
        for role in [
            "sluice_owner",
            "sluice_app",
            "sluice_runner",
            "sluice_operator",
            "sluice_approver",
            "sluice_voucher",
            "sluice_auditor",
            "somebody",
        ] {
            for statement in [
                "set sluice.now = '5 minutes'",
                "set local sluice.now = '5 minutes'",
                "select set_config('sluice.now', '5 minutes', true)",
                "reset sluice.now",
            ] {
                assert_eq!(tried_as(role, statement).0, "42501", "{role}: {statement}");
            }
        }
        assert_eq!(ahead(), 0);
        // What a superuser has set holds for whoever the session then acts as.
        set_clock("5 minutes");
        run("set local role sluice_runner");
        let lead = one(
            "select round(extract(epoch from now - clock_timestamp())) from sluice.runner_state()",
        );
        assert_eq!(lead.as_deref(), Some("300"));
    }
}
