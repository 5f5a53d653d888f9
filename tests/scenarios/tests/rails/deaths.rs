//! A session ends in the middle of moving money over the ledger: at each statement in turn, by an error, by the end of its backend, and
//! by a crash of the whole server. Whatever was not committed is as if it had never been, and the same call again does it once.

use std::thread;

use postgres::{Client, Error};
use sluice_scenarios::Role;
use uuid::Uuid;

use crate::stage::{Stage, USDT, ours, submit, theirs};

/// Every statement on these tables is a point at which a session may end: before it, after it and before the guard looks at what it
/// wrote, and after that; and at the commit.
const POINTS: &str = "
    create function public.end_here() returns trigger language plpgsql security definer as $$
    declare
      v_reached constant int := coalesce(nullif(current_setting('death.reached', true), ''), '0')::int + 1;
      v_how constant text := coalesce(current_setting('death.how', true), '');
    begin
      perform set_config('death.reached', v_reached::text, false);
      if v_reached::text is distinct from current_setting('death.at', true) then
        return new;
      end if;
      if v_how = 'terminate' then
        perform pg_terminate_backend(pg_backend_pid());
      elsif v_how = 'wait' then
        perform pg_advisory_xact_lock_shared(1);
      end if;
      raise exception 'the end, at point %', v_reached using errcode = 'XX999';
    end $$;
    do $$
    declare
      v_table text;
    begin
      foreach v_table in array array['withdrawals', 'events', 'accounts', 'postings', 'holds', 'approvals', 'approval_rules', 'changes', 'tallies'] loop
        execute format('create trigger a_0 before insert or update or delete on sluice.%I for each statement execute function public.end_here()', v_table);
        execute format('create trigger a_1 after insert or update or delete on sluice.%I for each statement execute function public.end_here()', v_table);
        execute format('create trigger z_2 after insert or update or delete on sluice.%I for each statement execute function public.end_here()', v_table);
      end loop;
    end $$;
    create constraint trigger z_commit after insert or update on sluice.withdrawals
      deferrable initially deferred for each row execute function public.end_here();";

/// From this amount on somebody must approve; less goes at once.
const LARGE: &str = "select sluice.set_approval_rule('USDT-TRC20', 'large', '5', 1)";

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Error,
    Termination,
    /// With the server: until then it waits.
    Crash,
}

/// The withdrawals of one walk's step: each has its own payer and payee, so that nothing else moves their money.
#[derive(Debug, Clone)]
struct Case {
    payer: String,
    payee: String,
    address: String,
    operation_ids: Vec<Uuid>,
    number: u32,
}

/// A call that moves money over the ledger, or lets it move.
#[derive(Clone, Copy)]
struct Deed {
    login: &'static str,
    /// What each withdrawal is of.
    amount: &'static str,
    units: i128,
    withdrawals: usize,
    prepare: fn(&Stage, &Case),
    call: fn(&mut Client, &Case) -> Result<(), Error>,
}

const SUBMISSION: Deed = Deed {
    login: Role::App.login(),
    amount: "4",
    units: 4 * USDT,
    withdrawals: 1,
    prepare: in_custody,
    call: |client, case| {
        submit(
            client,
            case.operation_ids[0],
            &case.payer,
            &case.address,
            SUBMISSION.amount,
        )
        .map(drop)
    },
};

const INSERTION: Deed = Deed {
    login: Role::App.login(),
    amount: "2",
    units: 2 * USDT,
    withdrawals: 3,
    prepare: in_custody,
    call: |client, case| {
        client
            .execute(
                "insert into sluice.withdrawals (operation_id, to_address, amount, account)
                 select unnest($1::uuid[]), $2, $3::text::sluice.amount, $4 on conflict (operation_id) do nothing",
                &[
                    &case.operation_ids,
                    &case.address,
                    &INSERTION.amount,
                    &case.payer,
                ],
            )
            .map(drop)
    },
};

const APPROVAL: Deed = Deed {
    login: "ann",
    amount: "8",
    units: 8 * USDT,
    withdrawals: 1,
    prepare: |stage, case| {
        in_custody(stage, case);
        let state = waiting(stage, case, APPROVAL.amount);
        assert_eq!(state, "validated");
    },
    call: |client, case| {
        client
            .execute("select sluice.approve($1)", &[&case.operation_ids[0]])
            .map(drop)
    },
};

/// The rule asks for nobody any more.
const LOWERING: Deed = Deed {
    login: Role::Operator.login(),
    amount: "8",
    units: 8 * USDT,
    withdrawals: 1,
    prepare: |stage, case| {
        stage.operate(LARGE);
        in_custody(stage, case);
        let state = waiting(stage, case, LOWERING.amount);
        assert_eq!(state, "validated");
    },
    call: |client, _| {
        client
            .execute(
                "select sluice.set_approval_rule('USDT-TRC20', 'large', '5', 0)",
                &[],
            )
            .map(drop)
    },
};

/// It was taken in for the chain, and the address came into custody before a worker looked at it.
const CLAIM: Deed = Deed {
    login: Role::Runner.login(),
    amount: "4",
    units: 4 * USDT,
    withdrawals: 1,
    prepare: |stage, case| {
        let state = waiting(stage, case, CLAIM.amount);
        assert_eq!(state, "requested");
        in_custody(stage, case);
    },
    call: |client, _| {
        let tasks = client.query("select from sluice.claim_batch('one')", &[])?;
        assert_eq!(tasks.len(), 0, "there is nothing for a worker to do");
        Ok(())
    },
};

fn in_custody(stage: &Stage, case: &Case) {
    assert_eq!(stage.custody(case.number, &case.payee), case.address);
}

fn waiting(stage: &Stage, case: &Case, amount: &str) -> String {
    let taken = stage.withdraw_as(case.operation_ids[0], &case.payer, &case.address, amount);
    taken.expect("it is taken in")
}

/// A stage with a point at every statement.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.approvers(&["ann"]);
    stage.operate(LARGE);
    stage.as_superuser(POINTS);
    stage
}

impl Case {
    fn new(stage: &Stage, deed: &Deed, number: u32) -> Self {
        let case = Self {
            payer: format!("payer {number}"),
            payee: format!("payee {number}"),
            address: ours(number),
            operation_ids: (0..deed.withdrawals).map(|_| Uuid::new_v4()).collect(),
            number,
        };
        stage.fund(&case.payer, "10");
        (deed.prepare)(stage, &case);
        case
    }

    /// All that is on file of it.
    fn on_file(&self, stage: &Stage) -> String {
        let row = stage.row(
            "select jsonb_pretty(jsonb_build_array(
               (select jsonb_agg(w::text order by w.operation_id) from sluice.withdrawals w where w.operation_id = any ($1)),
               (select jsonb_agg(e::text order by e.operation_id, e.seq) from sluice.events e where e.operation_id = any ($1)),
               (select jsonb_agg(h::text order by h.operation_id) from sluice.holds h where h.operation_id = any ($1)),
               (select jsonb_agg(p::text order by p.operation_id) from sluice.postings p where p.operation_id = any ($1)),
               (select jsonb_agg(p::text order by p.operation_id) from sluice.approvals p where p.operation_id = any ($1)),
               (select jsonb_agg(a::text order by a.account) from sluice.accounts a where a.account in ($2, $3))))",
            &[&self.operation_ids, &self.payer, &self.payee],
        );
        row.get(0)
    }

    /// It was done, once.
    fn assert_done(&self, stage: &Stage, deed: &Deed) {
        let paid = deed.units * deed.withdrawals as i128;
        assert_eq!(
            stage.balance(&self.payer),
            (10 * USDT - paid, 0),
            "{self:?}"
        );
        assert_eq!(stage.balance(&self.payee), (paid, 0), "{self:?}");
        let posting = format!("transfer {} {} {}", self.payer, self.payee, deed.units);
        for operation_id in &self.operation_ids {
            assert_eq!(stage.postings_of(*operation_id), [posting.as_str()]);
            assert_eq!(stage.hold_of(*operation_id), "captured");
            assert_eq!(stage.state(*operation_id), "confirmed");
        }
    }
}

/// Whatever this session does next ends at this point.
fn doom(client: &mut Client, end: End, point: u32) {
    let how = match end {
        End::Error => "error",
        End::Termination => "terminate",
        End::Crash => "wait",
    };
    client
        .batch_execute(&format!(
            "set death.reached = '0'; set death.at = '{point}'; set death.how = '{how}'"
        ))
        .expect("settings can be made");
}

/// Ends a session at each point in turn, until one comes through; answers how many points there were.
fn walk(stage: &Stage, deed: &Deed, end: End, first: u32) -> u32 {
    let mut doomed = stage.database().as_login(deed.login);
    let mut heir = stage.database().as_login(deed.login);
    for point in 1.. {
        let case = Case::new(stage, deed, first + point);
        let before = case.on_file(stage);
        doom(&mut doomed, end, point);
        let ended = (deed.call)(&mut doomed, &case);
        let Err(error) = ended else {
            case.assert_done(stage, deed);
            return point - 1;
        };
        let expected = if end == End::Termination {
            "57P01"
        } else {
            "XX999"
        };
        let code = error.code().map(|code| code.code().to_owned());
        // What a server says as it ends a session may not arrive.
        let unsaid = end == End::Termination && error.is_closed();
        assert!(
            unsaid || code.as_deref() == Some(expected),
            "point {point}: {error}"
        );
        assert_eq!(case.on_file(stage), before, "point {point}");
        stage.assert_sound(&format!("after an end at point {point}"));

        (deed.call)(&mut heir, &case)
            .unwrap_or_else(|error| panic!("again, after an end at point {point}: {error}"));
        case.assert_done(stage, deed);
        if end == End::Termination {
            doomed = stage.database().as_login(deed.login);
        }
        let done = case.on_file(stage);
        (deed.call)(&mut heir, &case).expect("once more is free");
        assert_eq!(case.on_file(stage), done, "point {point}");
    }
    unreachable!("every call has an end")
}

#[test]
fn a_session_that_is_terminated_at_any_statement_of_an_internal_withdrawal_leaves_nothing_of_it_and_the_next_books_it_once()
 {
    let stage = stage();
    let points = walk(&stage, &SUBMISSION, End::Termination, 0);
    assert!(points >= 35, "{points} points");
}

#[test]
fn an_error_at_any_statement_of_an_internal_withdrawal_leaves_nothing_of_it_and_the_next_books_it_once()
 {
    let stage = stage();
    let points = walk(&stage, &SUBMISSION, End::Error, 0);
    assert!(points >= 35, "{points} points");
    // Three in one statement are written by no more statements than one, apart from the commit.
    let of_three = walk(&stage, &INSERTION, End::Error, 1000);
    assert!(
        (points..=points + 10).contains(&of_three),
        "{of_three} points, and {points}"
    );
}

#[test]
fn a_session_that_ends_at_any_statement_of_the_last_approval_leaves_it_unapproved_and_held_and_the_next_books_it_once()
 {
    let stage = stage();
    for (end, first) in [(End::Termination, 0), (End::Error, 1000)] {
        let points = walk(&stage, &APPROVAL, end, first);
        assert!(points >= 25, "{end:?}: {points} points");
    }
}

#[test]
fn a_session_that_ends_at_any_statement_of_lowering_a_rule_leaves_the_rule_and_what_waits_for_it_as_they_were()
 {
    let stage = stage();
    let points = walk(&stage, &LOWERING, End::Termination, 0);
    assert!(points >= 25, "{points} points");
}

#[test]
fn a_worker_whose_session_ends_at_any_statement_of_taking_an_internal_withdrawal_leaves_it_requested_and_the_next_books_it_once()
 {
    let stage = stage();
    let points = walk(&stage, &CLAIM, End::Termination, 0);
    assert!(points >= 30, "{points} points");
}

#[test]
fn a_server_that_crashes_with_a_session_at_every_statement_has_nothing_of_theirs_and_all_of_what_was_committed()
 {
    let mut stage = stage();
    let points_of = |deed: &Deed, number| {
        let case = Case::new(&stage, deed, number);
        let mut client = stage.database().as_login(deed.login);
        (deed.call)(&mut client, &case).expect("nothing ends it");
        let row = client.query_one("select current_setting('death.reached')::int", &[]);
        let points: i32 = row.expect("a setting can be read").get(0);
        (case, u32::try_from(points).expect("a count"))
    };
    let (submitted, submissions) = points_of(&SUBMISSION, 1);
    let (approved, approvals) = points_of(&APPROVAL, 2);
    let committed = [(&SUBMISSION, &submitted), (&APPROVAL, &approved)];
    let points = (1..=submissions)
        .map(|point| (&SUBMISSION, point, 1000 + point))
        .chain((1..=approvals).map(|point| (&APPROVAL, point, 2000 + point)));
    let cut_off: Vec<(&Deed, u32, Case, String)> = points
        .map(|(deed, point, number)| {
            let case = Case::new(&stage, deed, number);
            let before = case.on_file(&stage);
            (deed, point, case, before)
        })
        .collect();
    assert!(cut_off.len() >= 60, "{} points", cut_off.len());

    let mut superuser = stage.database().superuser();
    superuser
        .execute("select pg_advisory_lock(1)", &[])
        .expect("a lock can be taken");
    let sessions: Vec<_> = cut_off
        .iter()
        .map(|(deed, point, case, _)| {
            let mut client = stage.database().as_login(deed.login);
            doom(&mut client, End::Crash, *point);
            let (call, case) = (deed.call, case.clone());
            thread::spawn(move || call(&mut client, &case))
        })
        .collect();
    stage.wait_until_waiting(cut_off.len());
    stage.crash();
    for session in sessions {
        let ended = session.join().expect("a session ends");
        assert!(ended.is_err(), "its server has crashed");
    }

    stage.assert_sound("after the crash");
    for (deed, case) in committed {
        case.assert_done(&stage, deed);
    }
    for (deed, point, case, before) in &cut_off {
        assert_eq!(case.on_file(&stage), *before, "point {point}");
        for _ in 0..2 {
            let mut heir = stage.database().as_login(deed.login);
            (deed.call)(&mut heir, case).expect("it is done");
            case.assert_done(&stage, deed);
        }
    }
    // Those of the chain's rail are where they were, too.
    let external = stage.withdraw("payer 1", &theirs(1), "1");
    assert_eq!(stage.state(external), "requested");
}
