//! People who approve, at the same moment as others approve, reject, cancel and change the rules; and who may not.

use std::sync::Barrier;
use std::thread;

use sluice_scenarios::{Role, Worker};
use uuid::Uuid;

use crate::stage::{Answer, Stage, USDT, answer, code_of, submit, theirs};

const APPROVE: &str = "select sluice.approve($1)::text";
const REJECT: &str = "select sluice.reject($1, 'not today')::text";
const CANCEL: &str = "select sluice.cancel($1, 'not today')::text";

/// A stage on which so many must approve, with funds to withdraw and people.
fn stage(approvals: u32) -> (Stage, String) {
    let stage = Stage::new();
    stage.approvers(&["ann", "ben"]);
    stage.ask_for(approvals);
    stage.fund("alice", "100");
    let to_bob = stage.custody(1, "bob");
    (stage, to_bob)
}

/// Each login makes its call about the withdrawal, all at the same moment.
fn at_once(stage: &Stage, operation_id: Uuid, calls: &[(&str, &str)]) -> Vec<Answer> {
    let everybody_is_here = Barrier::new(calls.len());
    thread::scope(|scope| {
        let people: Vec<_> = calls
            .iter()
            .map(|(login, call)| {
                let here = &everybody_is_here;
                scope.spawn(move || {
                    let mut client = stage.database().as_login(login);
                    here.wait();
                    answer(&mut client, call, operation_id)
                })
            })
            .collect();
        people
            .into_iter()
            .map(|person| person.join().expect("a call ends"))
            .collect()
    })
}

fn approvals_of(stage: &Stage, operation_id: Uuid) -> i64 {
    stage.count(&format!(
        "sluice.approvals where operation_id = '{operation_id}'"
    ))
}

fn missing(stage: &Stage, operation_id: Uuid) -> String {
    stage.text(
        "select coalesce(missing_approvals, '') from sluice.withdrawal($1)",
        operation_id,
    )
}

/// Whether it waits for people, in every place where that is told.
fn assert_says(stage: &Stage, operation_id: Uuid, is_missing: &str) {
    assert_eq!(missing(stage, operation_id), is_missing);
    let held_by = "select coalesce(held_by, '') from sluice.explain($1)";
    let says = format!("has {is_missing}");
    assert_eq!(stage.text(held_by, operation_id), says);
    let may = "select may_be_done from sluice.explain($1)";
    assert!(stage.text(may, operation_id).starts_with("sluice.approve"));
    let stuck = "select coalesce((select why from sluice.stuck where operation_id = $1), '')";
    assert_eq!(stage.text(stuck, operation_id), says);
}

/// It was booked, by the one posting that there is.
fn assert_booked_once(stage: &Stage, operation_id: Uuid, units: i128) {
    let posting = format!("transfer alice bob {units}");
    assert_eq!(stage.postings_of(operation_id), [posting]);
    assert_eq!(stage.hold_of(operation_id), "captured");
    assert_eq!(stage.state(operation_id), "confirmed");
}

#[test]
fn two_people_who_approve_an_internal_withdrawal_at_the_same_moment_have_it_booked_once() {
    let (stage, to_bob) = stage(2);
    for round in 1..=10 {
        let operation_id = stage.withdraw("alice", &to_bob, "1");
        let answers = at_once(&stage, operation_id, &[("ann", APPROVE), ("ben", APPROVE)]);
        let mut states: Vec<&str> = answers
            .iter()
            .map(|answer| answer.as_deref().unwrap_or("refused"))
            .collect();
        states.sort_unstable();
        assert_booked_once(&stage, operation_id, USDT);
        assert_eq!(
            states,
            ["confirmed", "validated"],
            "round {round}: {answers:?}"
        );
        assert_eq!(approvals_of(&stage, operation_id), 2);
        assert_eq!(stage.balance("bob"), (round * USDT, 0));
    }
    stage.assert_no_deadlock();
}

#[test]
fn two_people_who_approve_an_external_withdrawal_at_the_same_moment_have_it_built_once() {
    let (stage, _) = stage(2);
    let mut worker = Worker::new("one", stage.database());
    for number in 1..=5 {
        let operation_id = stage.withdraw("alice", &theirs(number), "1");
        assert!(worker.claim(10).is_empty(), "nobody has approved it");
        assert_says(
            &stage,
            operation_id,
            r#"0 of 2 approvals under the rule "all""#,
        );
        let held = i128::from(number) * USDT;
        assert_eq!(stage.balance("alice"), (100 * USDT, held));

        let answers = at_once(&stage, operation_id, &[("ann", APPROVE), ("ben", APPROVE)]);
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(missing(&stage, operation_id), "");
        let built = thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|number| {
                    let database = stage.database();
                    scope.spawn(move || {
                        Worker::new(&format!("worker {number}"), database)
                            .claim(10)
                            .len()
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("a worker ends"))
                .sum::<usize>()
        });
        assert_eq!(built, 1);
        assert_eq!(stage.hold_of(operation_id), "open");
    }
}

#[test]
fn one_person_who_approves_sixteen_times_at_the_same_moment_counts_once() {
    let (stage, to_bob) = stage(2);
    let internal = stage.withdraw("alice", &to_bob, "1");
    let external = stage.withdraw("alice", &theirs(1), "1");
    let mut worker = Worker::new("one", stage.database());
    assert!(worker.claim(10).is_empty());
    for operation_id in [internal, external] {
        let answers = at_once(&stage, operation_id, &[("ann", APPROVE); 16]);
        assert_eq!(answers, vec![Ok("validated".to_owned()); 16]);
        assert_eq!(approvals_of(&stage, operation_id), 1);
        assert_says(
            &stage,
            operation_id,
            r#"1 of 2 approvals under the rule "all""#,
        );
        let remarks = "select count(*)::text from sluice.timeline($1) where detail ? 'approved_by'";
        assert_eq!(stage.text(remarks, operation_id), "1");
    }
    assert_eq!(
        (stage.balance("alice"), worker.claim(10).len()),
        ((100 * USDT, 2 * USDT), 0)
    );

    // The last one, from sixteen connections as well.
    let answers = at_once(&stage, internal, &[("ben", APPROVE); 16]);
    assert_eq!(answers, vec![Ok("confirmed".to_owned()); 16]);
    assert_booked_once(&stage, internal, USDT);
    at_once(&stage, external, &[("ben", APPROVE); 16]);
    assert_eq!(worker.claim(10).len(), 1);
    assert!(worker.claim(10).is_empty());
    // Whoever has approved may say so for ever; nobody else may any more.
    assert_eq!(stage.approve("ann", internal), Ok("confirmed".to_owned()));
    stage.approvers(&["cyd"]);
    for operation_id in [internal, external] {
        assert_eq!(code_of(&stage.approve("cyd", operation_id)), "SL033");
        assert_eq!(approvals_of(&stage, operation_id), 2);
    }
}

/// It is booked and was not ended, or ended and nothing was booked.
fn assert_one_of_both(stage: &Stage, operation_id: Uuid, approved: &Answer, ended: &Answer) {
    let before = stage.balance("bob").0;
    if approved.is_ok() {
        assert_booked_once(stage, operation_id, USDT);
        assert_eq!(
            (approved.as_deref(), code_of(ended)),
            (Ok("confirmed"), "SL011")
        );
    } else {
        assert_eq!(stage.postings_of(operation_id), [] as [&str; 0]);
        assert_eq!(stage.hold_of(operation_id), "released");
        assert_eq!(stage.state(operation_id), "rejected");
        assert_eq!(
            (code_of(approved), ended.as_deref()),
            ("SL033", Ok("rejected"))
        );
    }
    let booked = stage.count("sluice.postings where kind = 'transfer'");
    assert_eq!(before, i128::from(booked) * USDT);
    assert_eq!(stage.balance("alice"), (100 * USDT - before, 0));
}

#[test]
fn an_approval_that_races_a_rejection_or_a_cancellation_ends_in_exactly_one_of_both() {
    let (stage, to_bob) = stage(1);
    let operator = Role::Operator.login();
    for (login, end) in [("ben", REJECT), (operator, CANCEL)] {
        // One after the other, in both orders: the second waits for the first's commit.
        for approval_is_first in [true, false] {
            let operation_id = stage.withdraw("alice", &to_bob, "1");
            let calls = [("ann", APPROVE), (login, end)];
            let (first, second) = if approval_is_first {
                (calls[0], calls[1])
            } else {
                (calls[1], calls[0])
            };
            let mut client = stage.database().as_login(first.0);
            client.batch_execute("begin").expect("a transaction begins");
            let of_first = answer(&mut client, first.1, operation_id);
            let of_second = thread::scope(|scope| {
                let waiting = scope.spawn(|| stage.decide(second.0, second.1, operation_id));
                stage.wait_until_waiting(1);
                client.batch_execute("commit").expect("it is committed");
                waiting.join().expect("a call ends")
            });
            let (approved, ended) = if approval_is_first {
                (of_first, of_second)
            } else {
                (of_second, of_first)
            };
            assert_eq!(approved.is_ok(), approval_is_first);
            assert_one_of_both(&stage, operation_id, &approved, &ended);
        }
        for _ in 0..10 {
            let operation_id = stage.withdraw("alice", &to_bob, "1");
            let answers = at_once(&stage, operation_id, &[("ann", APPROVE), (login, end)]);
            assert_one_of_both(&stage, operation_id, &answers[0], &answers[1]);
        }
    }
    stage.assert_no_deadlock();
}

#[test]
fn a_rule_raised_before_a_withdrawal_is_handed_over_stops_it_and_says_so_and_one_that_is_lowered_lets_it_go()
 {
    let (stage, to_bob) = stage(1);
    let mut worker = Worker::new("one", stage.database());
    let external = stage.withdraw("alice", &theirs(1), "1");
    let not_routed = stage.withdraw("alice", &theirs(2), "1");
    assert_eq!(stage.approve("ann", not_routed), Ok("requested".to_owned()));
    stage.ask_for(2);
    assert!(worker.claim(10).is_empty(), "the rule of now counts");
    assert_says(
        &stage,
        not_routed,
        r#"1 of 2 approvals under the rule "all""#,
    );
    stage.ask_for(1);
    let built = worker.claim(10);
    assert_eq!(built.len(), 1, "what has enough goes");
    assert_eq!(built[0].operation_id, not_routed);

    // Approved, and the rule is raised before a worker comes.
    assert_says(&stage, external, r#"0 of 1 approvals under the rule "all""#);
    assert_eq!(stage.approve("ann", external), Ok("validated".to_owned()));
    assert_eq!(missing(&stage, external), "");
    stage.ask_for(2);
    assert!(worker.claim(10).is_empty(), "the rule of now counts");
    assert_says(&stage, external, r#"1 of 2 approvals under the rule "all""#);
    assert_eq!(
        (
            stage.state(external).as_str(),
            stage.hold_of(external).as_str()
        ),
        ("validated", "open")
    );

    let internal = stage.withdraw("alice", &to_bob, "1");
    assert_eq!(stage.approve("ann", internal), Ok("validated".to_owned()));
    stage.ask_for(3);
    assert_eq!(stage.approve("ben", internal), Ok("validated".to_owned()));
    assert_says(&stage, internal, r#"2 of 3 approvals under the rule "all""#);
    assert_eq!(stage.postings_of(internal), [] as [&str; 0]);

    stage.ask_for(2);
    assert_booked_once(&stage, internal, USDT);
    assert!(
        worker.claim(10).is_empty(),
        "the other one has but one approval"
    );
    stage.ask_for(1);
    let built = worker.claim(10);
    assert_eq!(built.len(), 1);
    assert_eq!(built[0].operation_id, external);
}

#[test]
fn whoever_asked_for_a_withdrawal_does_not_approve_it_whichever_login_says_so() {
    let (stage, to_bob) = stage(1);
    stage.as_superuser(
        "create role twofold login in role sluice_app, sluice_approver;
         create role portal login in role sluice_app, sluice_voucher",
    );
    let untouched = |operation_id| {
        assert_eq!(stage.postings_of(operation_id), [] as [&str; 0]);
        assert_eq!(approvals_of(&stage, operation_id), 0);
    };

    // A login's own.
    let own = Uuid::new_v4();
    submit(
        &mut stage.database().as_login("twofold"),
        own,
        "alice",
        &to_bob,
        "1",
    )
    .expect("it is taken");
    assert_eq!(code_of(&stage.approve("twofold", own)), "SL033");
    let for_another = "select sluice.approve($1, on_behalf_of => 'ann')::text";
    assert_eq!(code_of(&stage.decide("twofold", for_another, own)), "SL033");
    assert_eq!(
        code_of(&stage.decide("ann", for_another, own)),
        "SL033",
        "not even for itself"
    );
    untouched(own);
    assert_eq!(stage.approve("ann", own), Ok("confirmed".to_owned()));

    // A user's, of an app that vouches for its users.
    let vouched = Uuid::new_v4();
    let submitted = stage.decide(
        "portal",
        &format!("select state::text from sluice.submit($1, '{to_bob}', '1', account => 'alice', requested_by => 'user-1')"),
        vouched,
    );
    assert_eq!(submitted, Ok("validated".to_owned()));
    let behalf = |user: &str| {
        let call = format!("select sluice.approve($1, on_behalf_of => {user})::text");
        stage.decide("portal", &call, vouched)
    };
    for (user, refusal) in [
        ("null", "SL005"),
        ("' '", "SL005"),
        ("'user-1'", "SL033"),
        ("E' user-1\\n'", "SL033"),
    ] {
        assert_eq!(code_of(&behalf(user)), refusal, "{user}");
    }
    assert_eq!(
        code_of(&stage.approve("portal", vouched)),
        "SL005",
        "a voucher is nobody itself"
    );
    untouched(vouched);
    assert_eq!(behalf("'user-2'"), Ok("confirmed".to_owned()));
    assert_booked_once(&stage, vouched, USDT);
    let kept = "select concat_ws(' ', approver, login, rule) from sluice.approvals where operation_id = $1";
    assert_eq!(stage.text(kept, vouched), "user-2 portal all");

    // A person is one, through whichever login.
    stage.ask_for(2);
    let twice = stage.withdraw("alice", &to_bob, "1");
    let for_ann = "select sluice.approve($1, on_behalf_of => 'ann')::text";
    assert_eq!(stage.approve("ann", twice), Ok("validated".to_owned()));
    assert_eq!(
        stage.decide("portal", for_ann, twice),
        Ok("validated".to_owned())
    );
    assert_eq!(approvals_of(&stage, twice), 1);
}
