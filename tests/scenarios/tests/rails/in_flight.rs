//! What changes under a withdrawal on its way: its accounts, the custody of its destination, the function that tells it, and two
//! sessions that would end it at the same moment.

use std::thread;

use sluice_scenarios::{Role, Worker};
use uuid::Uuid;

use crate::external::SOLID_AFTER_S;
use crate::stage::{Answer, Stage, USDT, code_of, ours, refusal, theirs};

/// The largest amount there can be, in base units.
const MOST: i128 = 10_i128.pow(38) - 1;

/// Past the back-off of what raised an error.
const BACK_OFF_S: u64 = 310;

/// Its hold, its postings and its account after it has ended so, with four of ten at stake.
fn assert_ended(stage: &Stage, operation_id: Uuid, state: &str, postings: &[&str]) {
    let (hold, posted) = if state == "confirmed" {
        ("captured", 6)
    } else {
        ("released", 10)
    };
    assert_eq!(stage.balance("alice"), (posted * USDT, 0));
    assert_eq!(stage.postings_of(operation_id), postings);
    assert_eq!(stage.hold_of(operation_id), hold);
    assert_eq!(stage.state(operation_id), state);
}

#[test]
fn a_custody_entry_that_changes_or_goes_after_the_routing_leads_no_money_elsewhere() {
    let stage = Stage::new();
    stage.approvers(&["ann"]);
    stage.ask_for(1);
    stage.fund("alice", "10");
    let to_bob = stage.custody(1, "bob");
    let mut worker = Worker::new("one", stage.database());
    let [moved, dropped] = ["1", "3"].map(|amount| stage.withdraw("alice", &to_bob, amount));
    let external = stage.withdraw("alice", &theirs(2), "2");
    assert!(worker.claim(10).is_empty(), "it is routed, and waits");

    stage.app("select sluice.set_custody($1, 'mallory')", &[&to_bob]);
    stage.app("select sluice.set_custody($1, 'mallory')", &[&theirs(2)]);
    assert_eq!(stage.approve("ann", moved), Ok("confirmed".to_owned()));
    stage.app("select sluice.drop_custody($1)", &[&to_bob]);
    assert_eq!(stage.approve("ann", dropped), Ok("confirmed".to_owned()));
    assert_eq!(stage.approve("ann", external), Ok("validated".to_owned()));

    assert_eq!(stage.balance("bob"), (4 * USDT, 0));
    let built = worker.claim(10);
    assert_eq!(
        built.len(),
        1,
        "the other one is the chain's, as it was routed"
    );
    assert_eq!(built[0].operation_id, external);
    assert_eq!(stage.balance("alice"), (6 * USDT, 2 * USDT));
    assert_eq!(stage.count("sluice.accounts where account = 'mallory'"), 0);
}

#[test]
fn an_account_that_is_closed_while_an_approval_is_awaited_is_not_credited_and_the_payers_stays_open()
 {
    let stage = Stage::new();
    stage.approvers(&["ann"]);
    stage.ask_for(1);
    stage.fund("alice", "10");
    let to_bob = stage.custody(1, "bob");
    let close = |account: &str| -> Answer {
        let closed = stage
            .database()
            .as_role(Role::App)
            .query_one("select sluice.close_account($1)::text", &[&account]);
        closed
            .map(|row| row.get(0))
            .map_err(|error| refusal(&error))
    };
    let waits = stage.withdraw("alice", &to_bob, "4");
    assert_eq!(stage.balance("alice"), (10 * USDT, 4 * USDT));
    assert_eq!(
        close("alice"),
        Err((
            "SL032".to_owned(),
            "account: \"alice\" has 1 withdrawals under way".to_owned()
        ))
    );
    assert_eq!(close("bob"), Ok("true".to_owned()));

    assert_eq!(stage.approve("ann", waits), Ok("rejected".to_owned()));
    assert_ended(&stage, waits, "rejected", &[]);
    assert_eq!(
        stage.failure_of(waits),
        "account bob, whose address the destination is, is closed"
    );
    assert_eq!(stage.balance("bob"), (0, 0));

    // Open again, it is credited; and what has given all away may be closed.
    stage.app("select sluice.open_account('bob')", &[]);
    let all = stage.withdraw("alice", &to_bob, "10");
    assert_eq!(stage.approve("ann", all), Ok("confirmed".to_owned()));
    assert_eq!(
        (close("alice"), code_of(&close("bob"))),
        (Ok("true".to_owned()), "SL032")
    );
    assert_eq!(stage.balance("bob"), (10 * USDT, 0));
}

#[test]
fn a_credit_that_races_the_closing_of_its_account_is_booked_or_the_account_is_closed_and_never_both()
 {
    let stage = Stage::new();
    stage.fund("alice", "10");
    for credit_is_first in [true, false] {
        let payee = format!("payee {credit_is_first}");
        let address = stage.custody(u32::from(credit_is_first) + 1, &payee);
        stage.app("select sluice.open_account($1)", &[&payee]);
        let operation_id = Uuid::new_v4();
        let calls = [
            format!(
                "select state::text from sluice.submit('{operation_id}', '{address}', '4', account => 'alice')"
            ),
            format!("select sluice.close_account('{payee}')::text"),
        ];
        let ask = |call: &str| -> Answer {
            let mut app = stage.database().as_role(Role::App);
            let answer = app.query_one(call, &[]);
            answer
                .map(|row| row.get(0))
                .map_err(|error| refusal(&error))
        };
        let [credit, closing] = &calls;
        let (first, second) = if credit_is_first {
            (credit, closing)
        } else {
            (closing, credit)
        };
        let mut client = stage.database().as_role(Role::App);
        let mut transaction = client.transaction().expect("a transaction begins");
        transaction
            .query_one(first, &[])
            .expect("nobody is before it");
        let answer = thread::scope(|scope| {
            let waiting = scope.spawn(|| ask(second));
            stage.wait_until_waiting(1);
            transaction.commit().expect("it is committed");
            waiting.join().expect("a call ends")
        });
        if credit_is_first {
            let posting = format!("transfer alice {payee} {}", 4 * USDT);
            assert_ended(&stage, operation_id, "confirmed", &[&posting]);
            assert_eq!(code_of(&answer), "SL032");
            assert_eq!(stage.balance(&payee), (4 * USDT, 0));
            stage.app("select sluice.deposit('alice', '4', 'once more')", &[]);
        } else {
            assert_eq!(
                (stage.balance("alice"), stage.balance(&payee)),
                ((10 * USDT, 0), (0, 0))
            );
            assert_eq!(answer, Ok("rejected".to_owned()));
            assert_eq!(
                stage.hold_of(operation_id),
                "none",
                "it was refused before it held anything"
            );
        }
    }
}

#[test]
fn a_cancellation_that_races_the_block_that_paid_ends_the_hold_once_and_as_the_chain_says() {
    for block_is_first in [true, false] {
        let stage = Stage::new();
        stage.fund("alice", "10");
        let operation_id = stage.withdraw("alice", &theirs(1), "4");
        let mut worker = Worker::new("one", stage.database());
        let tasks = worker.claim(1);
        for task in worker.sign(&tasks) {
            let sent = stage.scene.network.inject(&task.transaction());
            sent.expect("the network takes it");
        }
        stage.scene.advance(SOLID_AFTER_S);
        let cancel = format!("select sluice.cancel('{operation_id}', 'not needed')::text");
        let solid = stage.scene.network.status().solid;
        let blocks: Vec<Vec<u8>> = (stage.scene.followed() + 1..=solid)
            .map(|number| {
                stage
                    .scene
                    .network
                    .block_bytes(number)
                    .expect("a solid block is there")
            })
            .collect();
        let observe = "select state::text from sluice.observe_blocks('by hand', $1)";
        let mut operator = stage.database().as_role(Role::Operator);
        let mut runner = stage.database().as_role(Role::Runner);

        let cancelled: Answer = if block_is_first {
            let mut transaction = runner.transaction().expect("a transaction begins");
            transaction
                .query(observe, &[&blocks])
                .expect("blocks are taken");
            thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let answer = operator.query_one(&cancel, &[]);
                    answer
                        .map(|row| row.get(0))
                        .map_err(|error| refusal(&error))
                });
                stage.wait_until_waiting(1);
                transaction.commit().expect("it is committed");
                waiting.join().expect("a call ends")
            })
        } else {
            let mut transaction = operator.transaction().expect("a transaction begins");
            let answer = transaction.query_one(&cancel, &[]).expect("it is a wish");
            thread::scope(|scope| {
                let waiting =
                    scope.spawn(|| runner.query(observe, &[&blocks]).map(|rows| rows.len()));
                stage.wait_until_waiting(1);
                transaction.commit().expect("it is committed");
                waiting
                    .join()
                    .expect("a call ends")
                    .expect("blocks are taken");
            });
            Ok(answer.get(0))
        };
        let posting = format!("capture alice outside {}", 4 * USDT);
        assert_ended(&stage, operation_id, "confirmed", &[&posting]);
        if block_is_first {
            assert_eq!(code_of(&cancelled), "SL011", "{cancelled:?}");
        } else {
            assert_eq!(cancelled, Ok("broadcasting".to_owned()));
        }

        // Nobody ends it once more, whoever writes.
        let end = |change: &str| {
            let mut superuser = stage.database().superuser();
            let ended = superuser.batch_execute(&format!("update sluice.holds set {change}"));
            code_of(
                &ended
                    .map(|()| String::new())
                    .map_err(|error| refusal(&error)),
            )
            .to_owned()
        };
        for change in [
            "ended = 'released', ended_at = sluice.now()",
            "ended = null, ended_at = null",
            "ended_at = ended_at + interval '1 second'",
        ] {
            assert_eq!(end(change), "SL011", "{change}");
        }
        let again = format!("select sluice.end_holds(array['{operation_id}'::uuid])");
        let booked_again = stage.database().superuser().batch_execute(&again);
        let booked_again = refusal(&booked_again.expect_err("it is booked already"));
        assert_eq!(booked_again.0, "23505", "{booked_again:?}");
        assert_ended(&stage, operation_id, "confirmed", &[&posting]);
    }
}

#[test]
fn an_apps_own_custody_function_that_raises_or_says_nonsense_or_is_gone_leaves_nothing_of_an_intake_and_routes_when_it_is_mended()
 {
    let stage = Stage::new();
    stage.fund("alice", "10");
    let address_book = |body: &str| {
        stage.as_superuser(&format!(
            "create or replace function shop.account_of(address bytea, asset text) returns text
             language plpgsql security definer as $$ begin {body} end $$"
        ));
    };
    let knows_bob = format!(
        "return case when address = sluice.address_bytes('{}') then 'bob' end;",
        ours(1)
    );
    stage.as_superuser(
        "create role shop; create schema shop authorization shop;
         grant usage on schema shop to sluice_owner; grant usage on schema sluice to shop",
    );
    address_book(&knows_bob);
    stage.as_superuser("alter function shop.account_of owner to shop");
    stage.operate(
        "select sluice.set_setting('custody_function', 'shop.account_of', 'our own address book')",
    );
    // One that was taken in before, and that no worker has looked at.
    let elsewhere = stage.withdraw("alice", &theirs(1), "1");
    let mut worker = Worker::new("one", stage.database());

    let operation_id = Uuid::new_v4();
    let submit = || stage.withdraw_as(operation_id, "alice", &ours(1), "4");
    let assert_nothing = |fault: &str| {
        assert_eq!(stage.balance("alice"), (10 * USDT, 0), "{fault}");
        for table in ["withdrawals", "events", "holds", "postings"] {
            let rows = stage.count(&format!(
                "sluice.{table} where operation_id = '{operation_id}'"
            ));
            assert_eq!(rows, 0, "{fault}: {table}");
        }
        assert_eq!(
            stage.count("sluice.accounts where account <> 'alice'"),
            0,
            "{fault}"
        );
    };
    for (fault, body, code) in [
        (
            "it raises",
            "raise exception 'the address book is away' using errcode = 'P0042';",
            "P0042",
        ),
        ("it says nonsense", "return ' ';", "SL005"),
        ("it says what is no account", "return 'outside';", ""),
    ] {
        address_book(body);
        let answer = submit();
        assert!(answer.is_err(), "{fault}: {answer:?}");
        assert!(code_of(&answer).starts_with(code), "{fault}: {answer:?}");
        assert_nothing(fault);
    }
    // A worker's batch goes on without it, and says so.
    address_book("raise exception 'the address book is away';");
    assert!(worker.claim(10).is_empty());
    let why = "select why from sluice.stuck where operation_id = $1";
    assert!(
        stage
            .text(why, elsewhere)
            .contains("the address book is away")
    );
    assert_eq!(stage.state(elsewhere), "requested");
    stage.as_superuser("drop function shop.account_of");
    assert_eq!(code_of(&submit()), "SL005", "it is gone");
    assert_nothing("it is gone");

    address_book(&knows_bob);
    stage.as_superuser("alter function shop.account_of owner to shop");
    assert_eq!(submit(), Ok("confirmed".to_owned()));
    let posting = format!("transfer alice bob {}", 4 * USDT);
    assert_ended(&stage, operation_id, "confirmed", &[&posting]);
    stage.scene.advance(BACK_OFF_S);
    stage.scene.follow();
    let built = worker.claim(10);
    assert_eq!(built.len(), 1);
    assert_eq!(built[0].operation_id, elsewhere);
}

#[test]
fn the_largest_amount_there_can_be_is_booked_and_paid_to_the_last_unit_and_one_more_is_refused() {
    let stage = Stage::new();
    let contract: String = stage.row("select contract from sluice.assets", &[]).get(0);
    stage.operate(&format!(
        "select sluice.set_asset('WHOLE', '{contract}', 0, '1', '{MOST}', 100000000, 0, true)"
    ));
    let to_bob = stage.custody(1, "bob");
    let ask = |call: &str| -> Answer {
        let answer = stage.database().as_role(Role::App).query_one(call, &[]);
        answer
            .map(|row| row.get(0))
            .map_err(|error| refusal(&error))
    };
    let deposit = |amount: i128, reference: &str| {
        ask(&format!(
            "select sluice.deposit('alice', '{amount}', '{reference}', 'WHOLE')::text"
        ))
    };
    let withdraw = |account: &str, to: &str, amount: i128| {
        let operation_id = Uuid::new_v4();
        let call = format!(
            "select state::text from sluice.submit('{operation_id}', '{to}', '{amount}', 'WHOLE', '{account}')"
        );
        (operation_id, ask(&call))
    };
    ask("select sluice.open_account('alice', 'WHOLE')::text").expect("it is opened");
    assert_eq!(code_of(&deposit(MOST + 1, "too much")), "SL007");
    assert_eq!(deposit(MOST, "all there is"), Ok("true".to_owned()));
    assert_eq!(code_of(&deposit(1, "one more")), "SL032");
    assert_eq!(code_of(&withdraw("alice", &to_bob, MOST + 1).1), "SL007");

    assert_eq!(
        withdraw("alice", &to_bob, MOST).1,
        Ok("confirmed".to_owned())
    );
    assert_eq!(
        (
            stage.balance_in("alice", "WHOLE"),
            stage.balance_in("bob", "WHOLE")
        ),
        ((0, 0), (MOST, 0))
    );
    assert_eq!(deposit(1, "one more"), Ok("true".to_owned()));
    let (too_much, answer) = withdraw("alice", &to_bob, 1);
    assert_eq!(answer, Ok("rejected".to_owned()));
    assert_eq!(
        stage.failure_of(too_much),
        "account bob, whose address the destination is, cannot hold that much more"
    );
    assert_eq!(stage.balance_in("alice", "WHOLE"), (1, 0));

    // All of it leaves over the chain.
    let (external, answer) = withdraw("bob", &theirs(1), MOST);
    assert_eq!(answer, Ok("requested".to_owned()));
    let mut worker = Worker::new("one", stage.database());
    let tasks = worker.claim(10);
    assert_eq!(stage.balance_in("bob", "WHOLE"), (MOST, MOST));
    for task in worker.sign(&tasks) {
        let sent = stage.scene.network.inject(&task.transaction());
        sent.expect("the network takes it");
    }
    stage.scene.advance(SOLID_AFTER_S);
    stage.scene.follow();
    assert_eq!(stage.balance_in("bob", "WHOLE"), (0, 0));
    assert_eq!(stage.state(external), "confirmed");
    assert_eq!(
        stage.postings_of(external),
        [format!("capture bob outside {MOST}")]
    );
    let paid: Vec<String> = stage
        .scene
        .network
        .transactions()
        .into_iter()
        .filter_map(|sent| sent.units)
        .collect();
    assert_eq!(paid, [MOST.to_string()]);
}
