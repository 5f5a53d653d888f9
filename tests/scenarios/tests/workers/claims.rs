//! Two workers and one withdrawal: one gets it, and the other goes on with others at once.

use postgres::Client;
use sluice_scenarios::Role;
use sluice_scenarios::wait::until;
use uuid::Uuid;

use crate::stage::Stage;

/// A session of a worker that would be an error were it to wait for a lock.
fn impatient(stage: &Stage) -> Client {
    let mut client = stage.scene.database.as_role(Role::Runner);
    client
        .batch_execute("set lock_timeout = '1s'")
        .expect("a session may set its time-outs");
    client
}

fn claim(client: &mut Client, worker_id: &str) -> Vec<(Uuid, Vec<u8>)> {
    client
        .query(
            "select operation_id, txid from sluice.claim_batch($1, 10)",
            &[&worker_id],
        )
        .expect("nobody waits for a lock")
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect()
}

#[test]
fn of_two_workers_that_claim_one_withdrawal_one_gets_it_and_the_other_gets_nothing_and_does_not_wait()
 {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let [mut first, mut second] = [impatient(&stage), impatient(&stage)];

    // Both at once: the first has not committed yet.
    first.batch_execute("begin").expect("a transaction");
    let claimed = claim(&mut first, "first");
    assert_eq!(claim(&mut second, "second"), []);
    first
        .batch_execute("rollback")
        .expect("it can be taken back");
    // What was taken back had never been: the second is offered it now, and the same digest.
    second.batch_execute("begin").expect("a transaction");
    assert_eq!(claim(&mut second, "second"), claimed);
    assert_eq!(claim(&mut first, "first"), []);
    second.batch_execute("commit").expect("it commits");
    assert_eq!(claim(&mut first, "first"), []);
    assert_eq!(claim(&mut second, "second"), []);
    assert_eq!(stage.standing(operation_id).fencing_token, 1);

    stage.finish();
    assert_eq!(stage.scene.sends_of(operation_id), 1);
}

#[test]
fn two_runners_at_work_on_the_same_sixty_send_each_of_them_once_and_by_one_of_them() {
    let mut stage = Stage::new();
    let runners = ["one", "two"].map(|name| {
        stage
            .runner(name)
            .set("SLUICE_BATCH", "4")
            .set("FAILPOINTS", "signer=return(slow)")
            .start(&["run"])
    });
    for runner in &runners {
        until("it has started", || {
            runner.log().contains("sluice-runner starts").then_some(())
        });
    }
    let operation_ids = stage.submit_many(60);
    until("all are sent", || {
        let sent = stage.scene.network.transactions().len();
        (sent == operation_ids.len()).then_some(())
    });
    stage.scene.let_time_pass_until_confirmed(&operation_ids);
    drop(runners);

    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&operation_ids);
    let transactions = stage.scene.network.transactions();
    for transaction in &transactions {
        assert_eq!(
            (transaction.sends, transaction.workers.len()),
            (1, 1),
            "{transaction:?}"
        );
    }
    for name in ["one", "two"] {
        let by_it = transactions
            .iter()
            .filter(|transaction| transaction.workers.contains(name));
        assert!(by_it.count() > 0, "{name} had its share");
    }
}
