//! Withdrawals from accounts that the chain pays: what is held while an outcome is unknown, and what becomes of it when it is known, by a
//! runner and a network as they are.

use sluice_mock_node::{Fault, Rule};
use sluice_scenarios::wait::until;
use sluice_scenarios::{Runner, RunnerSetup};
use uuid::Uuid;

use crate::stage::{Stage, USDT, theirs};

/// From an envelope's reference block to its expiration, as a new database has it.
const TIME_TO_LIVE_S: u64 = 300;

/// From a send to the moment its block is solid, and less than the time after which it would be sent again.
pub const SOLID_AFTER_S: u64 = 21 * 3;

/// Past the time after which the same bytes are sent again.
const RESEND_S: u64 = 78;

/// Nothing is moved; all of it is held.
const HELD: (i128, i128) = (10 * USDT, 4 * USDT);
const RELEASED: (i128, i128) = (10 * USDT, 0);
const CAPTURED: (i128, i128) = (6 * USDT, 0);

fn runner(stage: &Stage) -> RunnerSetup {
    stage
        .scene
        .runner("one")
        .set("SLUICE_SEND_TIMEOUT", "300ms")
}

/// Follows to the solid block and works off all that is due.
pub fn work_off(stage: &Stage) {
    runner(stage).start(&["drain", "--once"]).ends_well();
}

/// Lets time pass, and everything be done that becomes due on the way.
fn pass(stage: &Stage, seconds: u64) {
    let mut left = seconds;
    while left > 0 {
        let some = left.min(RESEND_S);
        stage.scene.advance(some);
        work_off(stage);
        left -= some;
    }
}

fn fault(stage: &Stage, operation_id: Uuid, fault: Fault) -> u64 {
    let rule = Rule::new(fault).operation(operation_id);
    stage.scene.network.add_fault(rule).expect("a fault")
}

/// Four of the ten that this account has, for somebody else's address.
fn withdraw(stage: &Stage, account: &str, number: u32) -> Uuid {
    stage.fund(account, "10");
    stage.withdraw(account, &theirs(number), "4")
}

/// The row, its hold and its account tell the same end.
fn assert_ended(
    stage: &Stage,
    account: &str,
    operation_id: Uuid,
    state: &str,
    balance: (i128, i128),
) {
    let (hold, postings) = if state == "confirmed" {
        (
            "captured",
            vec![format!("capture {account} outside {}", 4 * USDT)],
        )
    } else {
        ("released", vec![])
    };
    assert_eq!(stage.balance(account), balance, "{account}");
    assert_eq!(stage.postings_of(operation_id), postings, "{account}");
    assert_eq!(stage.hold_of(operation_id), hold, "{account}");
    assert_eq!(stage.state(operation_id), state, "{account}");
}

/// How many solid blocks' successes paid it.
fn successes(stage: &Stage, operation_id: Uuid) -> usize {
    let transactions = stage.scene.transactions_of(operation_id);
    transactions
        .iter()
        .filter(|sent| sent.result.as_deref() == Some("SUCCESS") && sent.solid)
        .count()
}

#[test]
fn what_the_chain_paid_is_taken_from_the_account_what_it_refused_is_let_go_and_until_then_it_is_held()
 {
    let stage = Stage::new();
    let accounts = ["paid", "reverted", "refused", "lost", "rejected"];
    let [paid, reverted, refused, lost] =
        [0, 1, 2, 3].map(|number| withdraw(&stage, accounts[number as usize], number));
    fault(
        &stage,
        reverted,
        Fault::Receipt {
            result: "REVERT".to_owned(),
        },
    );
    let refusal = Fault::Answer {
        code: "CONTRACT_VALIDATE_ERROR".to_owned(),
        message: String::new(),
        keep: false,
        result: None,
    };
    let refusal = fault(&stage, refused, refusal);
    let loss = fault(&stage, lost, Fault::NeverInclude {});

    work_off(&stage);
    let rejected = stage.withdraw("paid", &theirs(4), "6.000001");
    work_off(&stage);
    // Of two that want more than there is, the first one has it.
    assert_eq!(stage.state(rejected), "rejected");
    assert_eq!(stage.hold_of(rejected), "none");
    assert_eq!(
        stage.failure_of(rejected),
        "account paid has insufficient available funds"
    );
    for account in ["paid", "reverted", "refused", "lost"] {
        assert_eq!(stage.balance(account), HELD, "{account}");
    }
    // In a block, and not solid.
    stage.scene.advance(SOLID_AFTER_S / 3);
    work_off(&stage);
    for account in ["paid", "reverted", "refused", "lost"] {
        assert_eq!(stage.balance(account), HELD, "{account}");
    }
    pass(&stage, SOLID_AFTER_S);
    assert_ended(&stage, "paid", paid, "confirmed", CAPTURED);
    assert_ended(&stage, "reverted", reverted, "failed", RELEASED);

    // Past the expiration, before and after the proof: another one is to be built, from the same hold.
    pass(&stage, TIME_TO_LIVE_S);
    for (account, operation_id) in [("refused", refused), ("lost", lost)] {
        assert_eq!(stage.balance(account), HELD, "{account}");
        assert_eq!(stage.hold_of(operation_id), "open", "{account}");
    }
    for rule in [refusal, loss] {
        assert!(stage.scene.network.remove_fault(rule));
    }
    // Past the back-off of what no node ever took.
    pass(&stage, 2 * TIME_TO_LIVE_S);
    for (account, operation_id) in [("refused", refused), ("lost", lost)] {
        assert_ended(&stage, account, operation_id, "confirmed", CAPTURED);
        let envelopes = stage.count(&format!(
            "sluice.envelopes where operation_id = '{operation_id}'"
        ));
        assert_eq!(successes(&stage, operation_id), 1, "{account}");
        assert!(envelopes >= 2, "{account}: {envelopes}");
    }
    assert_eq!(stage.count("sluice.postings where kind = 'capture'"), 3);
}

#[test]
fn what_is_cancelled_while_its_envelope_lives_is_sent_no_more_and_fails_and_is_let_go_after_the_proof()
 {
    let stage = Stage::new();
    let operation_id = withdraw(&stage, "alice", 1);
    fault(&stage, operation_id, Fault::NeverInclude {});
    work_off(&stage);
    let sent = stage.scene.sends_of(operation_id);
    assert_eq!((sent, stage.balance("alice")), (1, HELD));

    stage.operate(&format!(
        "select sluice.cancel('{operation_id}', 'not needed')"
    ));
    assert_eq!(stage.state(operation_id), "broadcast", "it is a wish");
    pass(&stage, TIME_TO_LIVE_S - RESEND_S);
    assert_eq!(
        stage.scene.sends_of(operation_id),
        sent,
        "it is not sent again"
    );
    assert_eq!(
        (stage.balance("alice"), stage.state(operation_id).as_str()),
        (HELD, "broadcast")
    );
    let held_by = "select held_by from sluice.explain($1)";
    assert!(stage.text(held_by, operation_id).starts_with("is to end"));

    pass(&stage, RESEND_S + SOLID_AFTER_S);
    assert_ended(&stage, "alice", operation_id, "failed", RELEASED);
    assert_eq!(stage.failure_of(operation_id), "cancelled: not needed");
    let evidence = "select concat_ws(' ', detail ->> 'reason_code', detail ->> 'fate') from sluice.timeline($1) order by seq desc limit 1";
    assert_eq!(stage.text(evidence, operation_id), "cancelled dead");
    assert_eq!(
        (
            stage.scene.sends_of(operation_id),
            successes(&stage, operation_id)
        ),
        (sent, 0)
    );
}

#[test]
fn what_is_cancelled_after_it_was_sent_and_is_paid_all_the_same_is_confirmed_and_taken_from_the_account()
 {
    let stage = Stage::new();
    let operation_id = withdraw(&stage, "alice", 1);
    work_off(&stage);
    stage.operate(&format!(
        "select sluice.cancel('{operation_id}', 'too late')"
    ));
    stage.scene.advance(SOLID_AFTER_S / 3);
    work_off(&stage);
    assert_eq!(stage.balance("alice"), HELD);
    pass(&stage, SOLID_AFTER_S);
    assert_ended(&stage, "alice", operation_id, "confirmed", CAPTURED);
    assert_eq!(
        (
            successes(&stage, operation_id),
            stage.scene.sends_of(operation_id)
        ),
        (1, 1)
    );
    let cancelled = "select cancel_reason from sluice.withdrawal($1)";
    assert_eq!(stage.text(cancelled, operation_id), "too late");
}

/// A runner that stands still when it first comes to this point.
fn runner_at(stage: &Stage, point: &str) -> Runner {
    let runner = runner(stage)
        .set("FAILPOINTS", &format!("{point}=1*return(stop)"))
        .start(&["run"]);
    let reached = format!("crash point {point} reached");
    until(&reached, || runner.log().contains(&reached).then_some(()));
    runner
}

#[test]
fn what_is_cancelled_before_a_byte_of_it_left_never_leaves_wherever_its_runner_stood() {
    let stage = Stage::new();
    let points = runner(&stage).answer(&["crash-points"]);
    // Once the intent to send is committed, bytes leave whatever anybody wishes.
    let before_the_send: Vec<&str> = points
        .lines()
        .take_while(|point| *point != "signatures.after_commit")
        .collect();
    assert!(before_the_send.len() >= 4, "{points}");
    let mut number = 0;
    for point in before_the_send {
        number += 1;
        let operation_id = withdraw(&stage, point, number);
        let mut runner = runner_at(&stage, point);
        stage.operate(&format!(
            "select sluice.cancel('{operation_id}', 'not needed')"
        ));
        let is_built = stage.count(&format!(
            "sluice.envelopes where operation_id = '{operation_id}'"
        )) > 0;
        let expected = if is_built { HELD } else { RELEASED };
        assert_eq!(stage.balance(point), expected, "{point}");
        runner.thaw();
        stage
            .scene
            .let_time_pass_until(&format!("{point}: it is over"), || {
                ["failed", "rejected"]
                    .contains(&stage.state(operation_id).as_str())
                    .then_some(())
            });
        runner.terminate();
        assert_eq!(stage.scene.sends_of(operation_id), 0, "{point}");
        assert_eq!(
            (stage.balance(point), stage.postings_of(operation_id).len()),
            (RELEASED, 0),
            "{point}"
        );
        assert_eq!(
            stage.failure_of(operation_id),
            "cancelled: not needed",
            "{point}"
        );
    }
}
