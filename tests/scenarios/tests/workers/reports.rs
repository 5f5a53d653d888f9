//! Workers that report what is not theirs, not so, or not now: by the calls that a runner makes, with JSON that no runner
//! writes.

use serde_json::{Value, json};
use sluice_scenarios::worker::Task;
use sluice_scenarios::{Role, Worker};
use uuid::Uuid;

use crate::stage::{PAST_EVERY_LEASE_S, SOLID_AFTER_S, Stage};

fn element(task: &Task) -> Value {
    json!({
        "operation_id": task.operation_id,
        "fencing_token": task.fencing_token,
        "txid": task.txid.to_string(),
    })
}

/// An element of a report, with these fields changed or added.
fn with(task: &Task, changes: Value) -> Value {
    let mut element = element(task);
    let fields = element.as_object_mut().expect("an object");
    fields.extend(changes.as_object().expect("an object").clone());
    element
}

fn signature(task: &Task, changes: Value) -> Value {
    let mut element = with(task, json!({ "signature": task.signature_in_hex() }));
    let fields = element.as_object_mut().expect("an object");
    fields.extend(changes.as_object().expect("an object").clone());
    json!([element])
}

fn answer(task: &Task, code: &str, changes: Value) -> Value {
    let mut element = with(task, json!({ "node": "by hand", "code": code }));
    let fields = element.as_object_mut().expect("an object");
    fields.extend(changes.as_object().expect("an object").clone());
    json!([element])
}

fn task_of(tasks: &[Task], operation_id: Uuid) -> Task {
    let found = tasks.iter().find(|task| task.operation_id == operation_id);
    found.expect("it was claimed").clone()
}

/// Reports all of these by this call; none is the worker's to write, and nothing changes.
fn nothing_comes_of(stage: &Stage, worker: &mut Worker, call: &str, reports: &[(&str, Value)]) {
    for (what, report) in reports {
        let before = stage.standings();
        assert_eq!(worker.report(call, report), [None], "{what}");
        assert_eq!(stage.standings(), before, "{what}");
    }
}

const AS_IT_IS: fn() -> Value = || json!({});

#[test]
fn a_report_for_what_another_holds_or_for_another_txid_or_too_early_or_twice_or_late_changes_nothing()
 {
    let mut stage = Stage::new();
    let [mine, yours] = [stage.submit(), stage.submit()];
    let [mut worker, mut other] =
        ["worker", "other"].map(|name| Worker::new(name, &stage.scene.database));
    let first = worker.claim(2);
    // The other has taken one over since.
    stage.scene.advance(PAST_EVERY_LEASE_S);
    stage.scene.follow();
    let taken_over = other.claim(2);
    assert_eq!(taken_over.len(), 2);
    let stale = task_of(&first, mine);
    let (mine, yours) = (task_of(&taken_over, mine), task_of(&taken_over, yours));

    nothing_comes_of(
        &stage,
        &mut worker,
        "record_signatures",
        &[
            ("an older claim", signature(&stale, AS_IT_IS())),
            (
                "a claim that nobody made",
                signature(&mine, json!({ "fencing_token": mine.fencing_token + 1 })),
            ),
            (
                "another's envelope",
                signature(
                    &mine,
                    json!({ "txid": yours.txid.to_string(), "signature": yours.signature_in_hex() }),
                ),
            ),
            (
                "an envelope that nobody built",
                signature(&mine, json!({ "txid": "ab".repeat(32) })),
            ),
            (
                "a withdrawal that nobody submitted",
                signature(&mine, json!({ "operation_id": Uuid::new_v4() })),
            ),
        ],
    );
    nothing_comes_of(
        &stage,
        &mut worker,
        "record_broadcasts",
        &[
            (
                "sent before it is signed",
                answer(&mine, "SUCCESS", AS_IT_IS()),
            ),
            (
                "refused before it is signed",
                answer(&mine, "SIGERROR", AS_IT_IS()),
            ),
        ],
    );

    // The true ones, each twice in one report and then again.
    for task in [&mine, &yours] {
        let once = signature(task, AS_IT_IS());
        assert_eq!(
            other.report("record_signatures", &once),
            [Some("broadcasting".to_owned())]
        );
        nothing_comes_of(&stage, &mut other, "record_signatures", &[("twice", once)]);
    }
    nothing_comes_of(
        &stage,
        &mut worker,
        "record_broadcasts",
        &[
            ("an older claim", answer(&stale, "SUCCESS", AS_IT_IS())),
            (
                "another's envelope",
                answer(&mine, "SUCCESS", json!({ "txid": yours.txid.to_string() })),
            ),
        ],
    );
    assert_eq!(stage.scene.network.transactions(), []);

    stage.finish();
    nothing_comes_of(
        &stage,
        &mut other,
        "record_signatures",
        &[("after the end", signature(&mine, AS_IT_IS()))],
    );
    nothing_comes_of(
        &stage,
        &mut other,
        "record_broadcasts",
        &[
            ("taken after the end", answer(&mine, "SUCCESS", AS_IT_IS())),
            (
                "refused after the end",
                answer(&mine, "SIGERROR", AS_IT_IS()),
            ),
        ],
    );
}

#[test]
fn a_worker_that_reports_sends_and_refusals_that_never_were_costs_time_and_nobody_money() {
    let mut stage = Stage::new();
    let operation_ids = [stage.submit(), stage.submit()];
    let mut liar = Worker::new("liar", &stage.scene.database);
    let tasks = liar.claim(2);
    let signed = liar.sign(&tasks);
    let [sent, refused] = operation_ids.map(|id| task_of(&signed, id));
    let said = liar.report("record_broadcasts", &answer(&sent, "SUCCESS", AS_IT_IS()));
    assert_eq!(said, [Some("broadcast".to_owned())]);
    let said = liar.report(
        "record_broadcasts",
        &answer(&refused, "SIGERROR", AS_IT_IS()),
    );
    assert_eq!(said, [Some("broadcasting".to_owned())]);
    assert_eq!(stage.scene.network.transactions(), []);

    // The same bytes are sent again when it is time, whatever was said of them.
    stage.scene.advance(76);
    stage.work_off();
    for operation_id in operation_ids {
        assert_eq!(stage.sends_by("heir", operation_id), 1);
    }
    // And a refusal of what is on its way is no failure.
    let late = liar.report("record_broadcasts", &answer(&sent, "SIGERROR", AS_IT_IS()));
    assert_eq!(late, [None]);
    stage.scene.advance(SOLID_AFTER_S);
    stage.work_off();
    stage
        .scene
        .assert_each_paid_once_and_nothing_else(&operation_ids);
}

#[test]
fn a_worker_can_neither_end_nor_give_away_what_is_in_flight() {
    let mut stage = Stage::new();
    let operation_id = stage.submit();
    let mut liar = Worker::new("liar", &stage.scene.database);
    let claimed = liar.claim(1);
    let task = liar.sign(&claimed)[0].clone();
    let before = stage.standing(operation_id);
    let mut session = stage.scene.database.as_role(Role::Runner);
    let steps = [
        ("broadcasting", "failed", "SL012"),
        ("broadcasting", "signing", "SL012"),
        ("broadcasting", "confirmed", "SL010"),
        ("broadcasting", "rejected", "SL010"),
    ];
    for (from, to, code) in steps {
        let refused = session
            .query(
                "select from sluice.fenced_cas($1, $2, $3::text::sluice.state, $4::text::sluice.state, 'liar')",
                &[&task.operation_id, &task.fencing_token, &from, &to],
            )
            .expect_err("no such step may be taken");
        let refused = refused
            .code()
            .expect("the server refused")
            .code()
            .to_owned();
        assert_eq!(refused, code, "{from} -> {to}");
        assert_eq!(stage.standing(operation_id), before, "{from} -> {to}");
    }
    // Nor does anybody else give back what it holds.
    let released: i64 = session
        .query_one(
            "select sluice.release('other', array[$1]::uuid[], array[$2]::bigint[])",
            &[&task.operation_id, &task.fencing_token],
        )
        .expect("it can be asked")
        .get(0);
    assert_eq!(released, 0);
    assert_eq!(stage.standing(operation_id), before);
    stage.finish();
}
