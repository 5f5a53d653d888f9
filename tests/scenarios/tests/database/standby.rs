//! A standby that every synchronous commit waits for, and that there is not: a commit that does not wait is not synchronous.

use std::thread;

use sluice_scenarios::Database;
use sluice_scenarios::wait::until;

/// From now on every synchronous commit waits for it.
pub fn lose(database: &Database) {
    set(database, "nobody");
    // Whether anybody must wait at all is for the checkpointer to say, in its own time (`syncrep.c`,
    // `SyncRepUpdateSyncStandbysDefined`).
    until("commits wait", || a_commit_waits(database).then_some(()));
}

/// Whether a commit made now waits. It is given up when it does.
fn a_commit_waits(database: &Database) -> bool {
    let mut probe = database.superuser();
    probe
        .batch_execute("set synchronous_commit = on")
        .expect("whatever the database says");
    let pid: i32 = probe
        .query_one("select pg_backend_pid()", &[])
        .expect("a session knows its pid")
        .get(0);
    let mut superuser = database.superuser();
    thread::scope(|scope| {
        let commit = scope.spawn(move || {
            // It is cancelled, or commits at once: either tells what is asked.
            let _ = probe.batch_execute("select pg_logical_emit_message(true, 'probe', '')");
        });
        until("the probe's commit is over or waits", || {
            if commit.is_finished() {
                return Some(false);
            }
            let cancelled = superuser.query_one(
                "select count(pg_cancel_backend(pid)) from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'",
                &[&pid],
            );
            let cancelled: i64 = cancelled.expect("a backend can be cancelled").get(0);
            (cancelled == 1).then_some(true)
        })
    })
}

/// From now on none does, and whoever waits goes on.
pub fn find_again(database: &Database) {
    set(database, "");
}

fn set(database: &Database, names: &str) {
    let mut superuser = database.superuser();
    for statement in [
        &format!("alter system set synchronous_standby_names = '{names}'"),
        "select pg_reload_conf()",
    ] {
        superuser
            .batch_execute(statement)
            .expect("the setting can be made");
    }
    // The postmaster signals all its children before it forks the next: what a new session sees, all older ones see.
    until("the setting shows", || {
        let row = database
            .superuser()
            .query_one("show synchronous_standby_names", &[]);
        (row.expect("it can be shown").get::<_, String>(0) == names).then_some(())
    });
}

/// Waits until a runner's commit waits for the standby, and answers its backend's pid.
pub fn wait_until_a_commit_waits(database: &Database) -> i32 {
    let mut superuser = database.superuser();
    until("a runner's commit waits for the standby", || {
        let row = superuser.query_opt(
            "select pid from pg_stat_activity where application_name like 'sluice-runner %' and wait_event = 'SyncRep' limit 1",
            &[],
        );
        row.expect("sessions can be read").map(|row| row.get(0))
    })
}
