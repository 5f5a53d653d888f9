//! Transactions that hold an account for long, and those whose snapshot is older than what others have held since.

use postgres::IsolationLevel;
use postgres::error::SqlState;
use sluice_scenarios::Role;
use uuid::Uuid;

use crate::external::{SOLID_AFTER_S, work_off};
use crate::stage::{Stage, USDT, theirs};

#[test]
fn an_account_that_a_forgotten_transaction_holds_stops_nobody_elses_withdrawals() {
    let stage = Stage::new();
    for account in ["alice", "bob"] {
        stage.fund(account, "10");
    }
    let to_carol = stage.custody(1, "carol");
    let [sent_of_alice, sent_of_bob] =
        [("alice", 1), ("bob", 2)].map(|(account, n)| stage.withdraw(account, &theirs(n), "4"));
    work_off(&stage);

    let mut forgotten = stage.database().as_role(Role::App);
    let mut transaction = forgotten.transaction().expect("a transaction begins");
    transaction
        .query(
            "select sluice.submit($1, $2, '1', account => 'alice')",
            &[&Uuid::new_v4(), &to_carol],
        )
        .expect("it is taken in");
    let [new_of_alice, new_of_bob] =
        [("alice", 3), ("bob", 4)].map(|(account, n)| stage.withdraw(account, &theirs(n), "1"));
    stage.scene.advance(SOLID_AFTER_S);
    work_off(&stage);
    assert_eq!(stage.balance("bob"), (6 * USDT, USDT));
    assert_eq!(stage.state(sent_of_bob), "confirmed");
    assert_eq!(stage.state(new_of_bob), "broadcast");
    assert_eq!(stage.state(sent_of_alice), "broadcast", "it waits, paid");
    assert_eq!(stage.state(new_of_alice), "requested");
    let why = stage.text(
        "select why from sluice.stuck where operation_id = $1",
        sent_of_alice,
    );
    assert!(why.contains("held by another session"), "{why}");

    drop(transaction);
    stage.scene.advance(SOLID_AFTER_S);
    work_off(&stage);
    assert_eq!(stage.balance("alice"), (6 * USDT, USDT));
    assert_eq!(stage.state(sent_of_alice), "confirmed");
    assert_eq!(stage.state(new_of_alice), "broadcast");
    stage.assert_sound("when nobody holds it any more");
}

#[test]
fn a_session_with_an_older_snapshot_does_not_give_what_was_held_since() {
    let stage = Stage::new();
    let to_bob = stage.custody(1, "bob");
    for (account, isolation) in [
        ("alice", IsolationLevel::RepeatableRead),
        ("carol", IsolationLevel::Serializable),
    ] {
        stage.fund(account, "10");
        let mut old = stage.database().as_role(Role::App);
        let mut transaction = old
            .build_transaction()
            .isolation_level(isolation)
            .start()
            .expect("a transaction begins");
        transaction
            .query("select operation_id from sluice.withdrawals", &[])
            .expect("it has its snapshot");
        stage.withdraw(account, &theirs(1), "8");
        work_off(&stage);
        let refused = transaction.query(
            "select sluice.submit($1, $2, '5', account => $3)",
            &[&Uuid::new_v4(), &to_bob, &account],
        );
        let refused = refused.expect_err("two are left, and its snapshot shows ten");
        assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
        drop(transaction);
        assert_eq!(stage.balance(account), (10 * USDT, 8 * USDT));
    }
    stage.assert_sound("at the end");
}
