//! A row that makes its whole batch raise, at each of the calls that move it: the others go on, the culprit says what is wrong with
//! it, and goes on too once that is gone.

use sluice_scenarios::{Role, destination};
use uuid::Uuid;

use crate::stage::{PAST_EVERY_LEASE_S, SOLID_AFTER_S, Stage};

const WITHDRAWALS: i64 = 500;

/// Where each culprit raises: on which table's row, and when.
const POISONS: [(&str, &str); 4] = [
    ("before insert on sluice.envelopes", "true"),
    (
        "before update on sluice.withdrawals",
        "new.state = 'broadcasting' and old.state = 'signing'",
    ),
    (
        "before update on sluice.withdrawals",
        "new.state = 'broadcast' and old.state = 'broadcasting'",
    ),
    (
        "before update on sluice.withdrawals",
        "new.state = 'confirmed'",
    ),
];

fn submit_all(stage: &Stage) -> Vec<Uuid> {
    let rows = stage.scene.database.as_role(Role::App).query(
        "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
         select md5(i::text)::uuid, $1, (i * 1.000001)::numeric(38,6), 'USDT-TRC20' from generate_series(1, $2::bigint) i
         returning operation_id",
        &[&destination(1).to_string(), &WITHDRAWALS],
    );
    rows.expect("the withdrawals are taken")
        .iter()
        .map(|row| row.get(0))
        .collect()
}

fn poison(stage: &Stage, number: usize, operation_id: Uuid) {
    let (moment, condition) = POISONS[number];
    stage.as_superuser(&format!(
        "create function public.poison_{number}() returns trigger language plpgsql as $$
         begin
           if new.operation_id = '{operation_id}' and {condition} then
             raise exception 'poison {number}';
           end if;
           return new;
         end $$;
         create trigger zz_poison_{number} {moment} for each row execute function public.poison_{number}();"
    ));
}

fn cure(stage: &Stage, number: usize) {
    stage.as_superuser(&format!("drop function public.poison_{number}() cascade"));
}

/// How often the withdrawal was paid, and by which of how many envelopes.
fn successes(stage: &Stage, operation_id: Uuid) -> usize {
    stage
        .scene
        .transactions_of(operation_id)
        .iter()
        .filter(|transaction| transaction.result.as_deref() == Some("SUCCESS"))
        .count()
}

#[test]
fn of_five_hundred_due_ones_a_row_that_raises_stops_itself_and_is_paid_when_its_cause_is_gone() {
    let stage = Stage::new();
    let all = submit_all(&stage);
    let (culprits, others) = all.split_at(POISONS.len());
    for (number, culprit) in culprits.iter().enumerate() {
        poison(&stage, number, *culprit);
    }
    let runner = || {
        stage
            .runner("one")
            .set("SLUICE_BATCH", "500")
            .set("SLUICE_SEND_TIMEOUT", "10s")
    };
    runner().start(&["drain", "--once"]).ends_well();
    stage.scene.advance(SOLID_AFTER_S);
    runner().start(&["drain", "--once"]).ends_well();

    // The other 496 are paid as if nothing were, and so is each of the culprits whose turn came after the wire.
    stage.scene.assert_each_paid_once(others);
    let paid: Vec<usize> = culprits.iter().map(|id| successes(&stage, *id)).collect();
    assert_eq!(paid, [0, 0, 1, 1]);
    let states: Vec<String> = culprits.iter().map(|id| stage.scene.state(*id)).collect();
    // A block that pays settles what its answer could not.
    assert_eq!(states, ["requested", "signing", "confirmed", "broadcast"]);
    for number in [0, 1, 3] {
        let why = stage.stuck(culprits[number]).expect("it needs a look");
        assert!(
            why.contains(&format!("P0001 poison {number}")),
            "{number}: {why}"
        );
    }

    for number in 0..POISONS.len() {
        cure(&stage, number);
    }
    // Past the back-off of what was set aside, and for the one that had been built already past its envelope's end.
    for pause_s in [300, SOLID_AFTER_S, 300, PAST_EVERY_LEASE_S, SOLID_AFTER_S] {
        stage.scene.advance(pause_s);
        runner().start(&["drain", "--once"]).ends_well();
    }
    for culprit in culprits {
        assert_eq!(successes(&stage, *culprit), 1, "{culprit}");
        assert_eq!(stage.scene.state(*culprit), "confirmed", "{culprit}");
        assert_eq!(stage.stuck(*culprit), None, "{culprit}");
    }
    let sent = stage.scene.network.transactions();
    assert_eq!(sent.len(), all.len(), "each of the 500 was sent once");
}
