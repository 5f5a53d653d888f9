//! A crowd at the ledger: many connections that take from one account, pay each other, and file one deposit, all at the same moment.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use postgres::{Client, Error};
use sluice_scenarios::worker::Task;
use sluice_scenarios::{Role, Worker};
use uuid::Uuid;

use crate::stage::{Stage, USDT, code_of, refusal, submit, theirs};

const CROWD: usize = 32;

/// From a send to the moment its block is solid, and less than the time after which it would be sent again.
const SOLID_AFTER_S: u64 = 21 * 3;

/// What one of the crowd asks for.
#[derive(Debug, Clone)]
struct Wish {
    operation_id: Uuid,
    account: &'static str,
    to: String,
}

impl Wish {
    fn new(account: &'static str, to: &str) -> Self {
        Self {
            operation_id: Uuid::new_v4(),
            account,
            to: to.to_owned(),
        }
    }
}

/// One call for each.
fn submit_each(client: &mut Client, wishes: &[Wish]) -> Result<(), Error> {
    wishes.iter().try_for_each(|wish| {
        submit(client, wish.operation_id, wish.account, &wish.to, "1").map(drop)
    })
}

/// One statement for all.
fn insert_all(client: &mut Client, wishes: &[Wish]) -> Result<(), Error> {
    let ids: Vec<Uuid> = wishes.iter().map(|wish| wish.operation_id).collect();
    let accounts: Vec<&str> = wishes.iter().map(|wish| wish.account).collect();
    let destinations: Vec<&str> = wishes.iter().map(|wish| wish.to.as_str()).collect();
    client
        .execute(
            "insert into sluice.withdrawals (operation_id, to_address, amount, account)
             select u.id, u.destination, '1', u.account
               from unnest($1::uuid[], $2::text[], $3::text[]) u (id, destination, account)",
            &[&ids, &destinations, &accounts],
        )
        .map(drop)
}

/// Each of these lists is one connection's: every other of them submits one by one, the others some in a statement. No connection
/// hears of an error.
fn submit_at_once(stage: &Stage, wishes: &[Vec<Wish>]) {
    let everybody_is_here = Barrier::new(wishes.len());
    thread::scope(|scope| {
        for (number, wishes) in wishes.iter().enumerate() {
            let everybody_is_here = &everybody_is_here;
            scope.spawn(move || {
                let mut client = stage.database().as_role(Role::App);
                everybody_is_here.wait();
                if number % 2 == 0 {
                    submit_each(&mut client, wishes).expect("each is taken");
                } else {
                    for some in wishes.chunks(8) {
                        insert_all(&mut client, some).expect("all are taken");
                    }
                }
            });
        }
    });
}

/// Tells the workers that nobody submits any more, also where a submission went wrong: they would wait for more for ever.
struct AllAreIn<'a>(&'a AtomicUsize);

impl Drop for AllAreIn<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

/// How many of an account's are in each state.
fn states(stage: &Stage) -> BTreeMap<String, i64> {
    let counted = stage.row(
        "select coalesce(jsonb_object_agg(c.label, c.withdrawals), '{}')
           from (select coalesce(w.rail::text || ' ', '') || w.state as label, count(*) as withdrawals
                   from sluice.withdrawals w group by 1) c",
        &[],
    );
    serde_json::from_value(counted.get(0)).expect("they are counts")
}

fn of(states: &BTreeMap<String, i64>, label: &str) -> i64 {
    states.get(label).copied().unwrap_or_default()
}

#[test]
fn of_a_thousand_withdrawals_from_one_account_at_once_exactly_those_that_it_covers_are_accepted() {
    const WITHDRAWALS: usize = 1000;
    const COVERED: i64 = 600;
    let stage = Stage::new();
    stage.fund("alice", "600");
    let to_bob = stage.custody(1, "bob");
    let mut wishes = vec![vec![]; CROWD];
    for number in 0..WITHDRAWALS {
        // Half of each connection's stay with us.
        let to = if (number / CROWD).is_multiple_of(2) {
            to_bob.clone()
        } else {
            theirs(u32::try_from(number).expect("a few"))
        };
        wishes[number % CROWD].push(Wish::new("alice", &to));
    }
    let wishers_at_work = AtomicUsize::new(1);

    let mut workers: Vec<(Worker, Vec<Task>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|number| {
                let (stage, wishers_at_work) = (&stage, &wishers_at_work);
                scope.spawn(move || {
                    let mut worker = Worker::new(&format!("worker {number}"), stage.database());
                    let mut tasks = vec![];
                    loop {
                        let nobody_submits = wishers_at_work.load(Ordering::SeqCst) == 0;
                        let some = worker.claim(20);
                        let found_none = some.is_empty();
                        tasks.extend(some);
                        // What another holds comes to its end there.
                        if nobody_submits && found_none {
                            return (worker, tasks);
                        }
                    }
                })
            })
            .collect();
        let all_are_in = AllAreIn(&wishers_at_work);
        submit_at_once(&stage, &wishes);
        drop(all_are_in);
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker ends"))
            .collect()
    });

    // What found its account busy for too long is due again a second later. A claim that only rejects returns no task.
    let requested = || stage.count("sluice.withdrawals where state = 'requested'");
    let (last, tasks) = &mut workers[0];
    for _ in 0..WITHDRAWALS {
        if requested() == 0 {
            break;
        }
        stage.scene.advance(3);
        stage.scene.follow();
        tasks.extend(last.claim(100));
    }

    stage.assert_no_deadlock();
    let after = states(&stage);
    let (booked, built) = (
        of(&after, "internal confirmed"),
        of(&after, "external signing"),
    );
    assert_eq!(booked + built, COVERED, "{after:?}");
    assert!(booked > 0 && built > 0, "{after:?}");
    let rejected = stage.count(
        "sluice.withdrawals where state = 'rejected' and failure_reason = 'account alice has insufficient available funds'",
    );
    assert_eq!(rejected, 1000 - COVERED, "{after:?}");
    let (booked_units, built_units) = (i128::from(booked) * USDT, i128::from(built) * USDT);
    assert_eq!(
        stage.balance("alice"),
        (built_units, built_units),
        "what is out is held"
    );
    assert_eq!(stage.balance("bob"), (booked_units, 0));
    stage.assert_sound("after the crowd");

    // And what is out is paid.
    for (worker, tasks) in &mut workers {
        for task in worker.sign(tasks) {
            let sent = stage.scene.network.inject(&task.transaction());
            sent.expect("the network takes it");
        }
    }
    stage.scene.advance(SOLID_AFTER_S);
    stage.scene.follow();
    let totals = stage.scene.network.totals();
    let paid: u64 = totals.iter().map(|total| total.solid_transfers).sum();
    assert_eq!(i64::try_from(paid).expect("a count"), built, "{totals:?}");
    assert_eq!(of(&states(&stage), "external confirmed"), built);
    assert_eq!(
        (stage.balance("alice"), stage.balance("bob")),
        ((0, 0), (booked_units, 0)),
        "what there was less what was paid"
    );
    let captured = stage.row(
        "select sum(units)::text from sluice.postings where kind = 'capture'",
        &[],
    );
    assert_eq!(captured.get::<_, String>(0), built_units.to_string());
}

#[test]
fn accounts_that_pay_each_other_at_once_in_both_directions_neither_deadlock_nor_lose_a_unit() {
    let stage = Stage::new();
    stage.fund("alice", "5");
    stage.fund("bob", "3");
    let (to_alice, to_bob) = (stage.custody(1, "alice"), stage.custody(2, "bob"));
    let there_and_back = |number: usize| -> Vec<Wish> {
        let mut wishes: Vec<Wish> = (0..12)
            .map(|turn| {
                if (number + turn).is_multiple_of(2) {
                    Wish::new("alice", &to_bob)
                } else {
                    Wish::new("bob", &to_alice)
                }
            })
            .collect();
        if number % 4 == 3 {
            wishes.reverse();
        }
        wishes
    };
    let wishes: Vec<Vec<Wish>> = (0..CROWD).map(there_and_back).collect();

    submit_at_once(&stage, &wishes);

    stage.assert_no_deadlock();
    let (alice, bob) = (stage.balance("alice"), stage.balance("bob"));
    assert_eq!((alice.0 + bob.0, alice.1, bob.1), (8 * USDT, 0, 0));
    let booked = |account| -> i128 {
        let of_account =
            format!("sluice.withdrawals where state = 'confirmed' and account = '{account}'");
        i128::from(stage.count(&of_account)) * USDT
    };
    assert_eq!(alice.0, 5 * USDT - booked("alice") + booked("bob"));
    let after = states(&stage);
    assert_eq!(
        of(&after, "internal confirmed") + of(&after, "internal rejected"),
        12 * CROWD as i64,
        "{after:?}"
    );
    let for_another_reason = stage.count(
        "sluice.withdrawals where state = 'rejected' and failure_reason not like 'account % has insufficient available funds'",
    );
    assert_eq!(for_another_reason, 0);
}

/// The amount of a deposit, and whether it was booked, or its refusal.
type Deposited = (i128, Result<bool, (String, String)>);

#[test]
fn a_deposit_that_a_crowd_repeats_is_booked_once_and_one_of_two_meanings_stands() {
    let stage = Stage::new();
    stage.fund("alice", "1");
    let mut booked = USDT;
    for round in 0..5 {
        let reference = format!("transaction {round}");
        let everybody_is_here = Barrier::new(CROWD);
        let answers: Vec<Deposited> = thread::scope(|scope| {
            let deposits: Vec<_> = (0..CROWD)
                .map(|number| {
                    let (stage, reference, here) = (&stage, &reference, &everybody_is_here);
                    // In the last round they do not agree on the amount.
                    let amount: i128 = if round == 4 && number % 4 == 0 { 3 } else { 2 };
                    scope.spawn(move || {
                        let mut client = stage.database().as_role(Role::App);
                        here.wait();
                        let filed = client.query_one(
                            "select sluice.deposit('alice', $1, $2)",
                            &[&amount.to_string(), reference],
                        );
                        let filed = filed.map(|row| row.get(0));
                        (amount, filed.map_err(|error| refusal(&error)))
                    })
                })
                .collect();
            deposits
                .into_iter()
                .map(|deposit| deposit.join().expect("a deposit ends"))
                .collect()
        });
        let news: Vec<i128> = answers
            .iter()
            .filter(|(_, filed)| *filed == Ok(true))
            .map(|(amount, _)| *amount)
            .collect();
        let [stands] = news.as_slice() else {
            panic!("round {round}: one is booked: {answers:?}")
        };
        booked += stands * USDT;
        assert_eq!(stage.balance("alice"), (booked, 0), "round {round}");
        for (amount, filed) in &answers {
            let answer = filed.clone().map(|new| new.to_string());
            let expected = if amount == stands { "" } else { "SL001" };
            assert_eq!(code_of(&answer), expected, "round {round}: {answers:?}");
        }
    }
    stage.assert_no_deadlock();
}
