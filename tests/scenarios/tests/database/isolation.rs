//! The isolation level of whoever calls: the runner's functions refuse any but READ COMMITTED, since they read what others commit
//! between their statements. The runner asks for that level itself, whatever the defaults are.

use sluice_scenarios::{Postgres, Role};

use crate::stage::Stage;

#[test]
fn the_runners_calls_refuse_another_isolation_level_by_name() {
    let postgres = Postgres::start();
    let database = postgres.createdb_with_sluice("isolation");
    let mut runner = database.as_role(Role::Runner);
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for (function, call) in [
            ("claim_batch", "sluice.claim_batch('w')"),
            ("record_signatures", "sluice.record_signatures('w', '[]')"),
            ("record_broadcasts", "sluice.record_broadcasts('w', '[]')"),
            ("release", "sluice.release('w', '{}', '{}')"),
            (
                "observe_blocks",
                "sluice.observe_blocks('n', array['\\x00'::bytea])",
            ),
            (
                "fenced_cas",
                "sluice.fenced_cas(gen_random_uuid(), 1, 'signing', 'signing', 'w')",
            ),
        ] {
            let mut transaction = runner
                .build_transaction()
                .start()
                .expect("a transaction starts");
            transaction
                .batch_execute(&format!("set transaction isolation level {level}"))
                .expect("the level is set");
            let refusal = transaction
                .batch_execute(&format!("select {call}"))
                .expect_err("another level is refused");
            let error = refusal.as_db_error().expect("by the database");
            assert_eq!(error.code().code(), "SL006", "{function}");
            assert!(
                error.message().starts_with(function) && error.message().contains(level),
                "{}",
                error.message()
            );
        }
    }
}

#[test]
fn a_default_of_another_isolation_level_does_not_reach_the_runner() {
    let mut stage = Stage::new();
    let operation_ids = stage.submit_many(5);
    let defaults = format!(
        "alter database {} set default_transaction_isolation = 'repeatable read';
         alter role {} set default_transaction_isolation = 'serializable';
         alter role {} set default_transaction_deferrable = on",
        stage.scene.database.name(),
        Role::Runner.login(),
        Role::Runner.login(),
    );
    stage
        .scene
        .database
        .superuser()
        .batch_execute(&defaults)
        .expect("settings can be made");
    let default: String = stage
        .scene
        .database
        .as_role(Role::Runner)
        .query_one("show transaction_isolation", &[])
        .expect("it can be shown")
        .get(0);
    assert_eq!(default, "serializable");
    let runner = stage.run();
    for operation_id in operation_ids {
        stage.scene.wait_until_state(operation_id, "broadcast");
    }
    assert!(!runner.log().contains("SL006"), "{}", runner.log());
    stage.finish();
}
