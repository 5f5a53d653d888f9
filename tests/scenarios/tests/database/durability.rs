//! `synchronous_commit` set to less than `on`, for role, database and session: the two commits that must survive a crash of the
//! server, the claim's and the signatures', wait for the log all the same.

use sluice_scenarios::postgres::Stop;
use sluice_scenarios::{Postgres, Role, Scene, Strike};

use crate::stage::Stage;
use crate::standby;

/// Where such a setting may come from.
#[derive(Debug, Clone, Copy)]
enum From {
    Role,
    Database,
    Session,
}

/// The setting, taken back when it goes.
fn alter(stage: &Stage, from: From, change: &str) {
    let whose = match from {
        From::Role => format!("role {}", Role::Runner.login()),
        From::Database => format!("database {}", stage.scene.database.name()),
        From::Session => return,
    };
    stage
        .scene
        .database
        .superuser()
        .batch_execute(&format!("alter {whose} {change}"))
        .expect("a setting can be made");
}

/// Both commits wait for a standby, which `off` and `local` do not.
fn both_commits_wait(stage: &mut Stage, from: From, level: &str) {
    alter(stage, from, &format!("set synchronous_commit = {level}"));
    let mut setup = stage.setup();
    if matches!(from, From::Session) {
        let url = stage.scene.database.through(&stage.proxy).url(Role::Runner);
        let options = format!("{url}?options=-csynchronous_commit%3D{level}");
        setup = setup.set("SLUICE_DATABASE", &options);
    }
    let operation_id = stage.submit();
    let claimed = stage.strike_once(Strike::HoldAnswer, "claim_batch");

    standby::lose(&stage.scene.database);
    let runner = setup.start(&["run"]);
    standby::wait_until_a_commit_waits(&stage.scene.database);
    assert_eq!(
        stage.scene.state(operation_id),
        "requested",
        "{from:?} {level}"
    );
    standby::find_again(&stage.scene.database);
    stage.proxy.wait_until_struck(claimed, 1);
    assert_eq!(
        stage.scene.state(operation_id),
        "signing",
        "{from:?} {level}"
    );

    standby::lose(&stage.scene.database);
    stage.proxy.release();
    standby::wait_until_a_commit_waits(&stage.scene.database);
    assert_eq!(stage.scene.sends_of(operation_id), 0, "{from:?} {level}");
    assert_eq!(
        stage.scene.state(operation_id),
        "signing",
        "{from:?} {level}"
    );
    standby::find_again(&stage.scene.database);
    stage.scene.wait_until_state(operation_id, "broadcast");

    stage.finish();
    drop(runner);
    alter(stage, from, "reset synchronous_commit");
}

#[test]
fn the_commits_that_matter_wait_for_the_log_whatever_role_database_and_session_say() {
    let mut stage = Stage::new();
    for from in [From::Role, From::Database, From::Session] {
        for level in ["off", "local"] {
            both_commits_wait(&mut stage, from, level);
        }
    }
}

#[test]
fn what_a_runner_was_told_before_a_crash_is_there_after_it_where_other_commits_are_lost() {
    let postgres = Postgres::start_with(&[
        ("synchronous_commit", "off"),
        // Nobody else writes the log out while this test runs.
        ("wal_writer_delay", "10s"),
        ("wal_writer_flush_after", "0"),
    ]);
    let mut stage = Stage::on(Scene::start_on(postgres, |_| {}));
    stage
        .scene
        .database
        .superuser()
        .batch_execute("create table public.control (call text)")
        .expect("a table can be made");
    for (call, on_file) in [
        ("claim_batch", "signing"),
        ("record_signatures", "broadcasting"),
    ] {
        let operation_id = stage.submit();
        let acknowledged = stage.strike_once(Strike::HoldAnswer, call);
        let runner = stage.run();
        stage.proxy.wait_until_struck(acknowledged, 1);
        // Committed after it, as the server is told: on no disk yet.
        let mut superuser = stage.scene.database.superuser();
        superuser
            .execute("insert into public.control values ($1)", &[&call])
            .expect("it commits");
        drop(superuser);
        let Stage { proxy, scene, .. } = &mut stage;
        scene.restart_postgres(Stop::Immediate, proxy);
        drop(runner);

        assert_eq!(stage.scene.state(operation_id), on_file);
        let lost = stage
            .scene
            .database
            .superuser()
            .query_opt("select from public.control where call = $1", &[&call])
            .expect("the table can be read");
        assert!(
            lost.is_none(),
            "{call}: the crash has lost what can be lost"
        );
        let _another = stage.run();
        stage.finish();
    }
}
