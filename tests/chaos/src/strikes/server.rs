//! Faults of the whole server: stopped as in a crash, its disk full, a standby that never answers, a clock that jumps, a
//! session that holds what others need, one more observer to wait for.

use sluice_scenarios::Role;
use sluice_scenarios::postgres::Stop;

use crate::draw::Draw;
use crate::kind::Kind;
use crate::stage::{OTHER_LOGIN, Stage, Undo};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What the server logs when each of these has happened.
const LOGGED: [(Kind, &str); 5] = [
    (Kind::DiskFull, "No space left on device"),
    (Kind::Deadlocked, "deadlock detected"),
    (
        Kind::TimedOut,
        "canceling statement due to statement timeout",
    ),
    (Kind::TimedOut, "canceling statement due to lock timeout"),
    (
        Kind::ReplicationCancelled,
        "canceling wait for synchronous replication due to user request",
    ),
];

/// Strikes the server.
pub fn strike(stage: &mut Stage, step: u64, kind: Kind, mut draw: Draw) {
    match kind {
        // It has stopped already, or its disk is full.
        Kind::ServerStopped if !stage.postgres.is_running() => {}
        Kind::DiskFull if stage.disk_is_full() => {}
        Kind::ServerStopped => {
            stage.stop_server(Stop::Immediate);
            stage.count(kind, 1);
            stage.later(step + draw.between(1, 3), Undo::Server);
        }
        Kind::DiskFull => {
            if let Some(disk) = &stage.disk {
                disk.fill();
                stage.later(step + draw.between(2, 5), Undo::Disk);
            }
        }
        Kind::ReplicationCancelled => {
            wait_for_a_standby(stage, true);
            stage.later(step + draw.between(3, 6), Undo::Replication);
        }
        Kind::ClockJumped => {
            let days = draw.pick(&[-1, 1]);
            stage.clock.be_off_by(days * DAY_MS);
            stage.count(kind, 1);
            stage.later(step + draw.between(2, 8), Undo::Clock);
        }
        Kind::TimedOut => {
            let rows = i64::try_from(draw.between(5, 50)).expect("a small number");
            stage.hostile.hold(&stage.database, rows);
            stage.later(step + draw.between(8, 14), Undo::Hostile);
        }
        Kind::Deadlocked => stage.hostile.lock_backwards(&stage.database),
        Kind::ObserversSwitched => {
            if set_observers(stage, 2) {
                stage.count(kind, 1);
            }
            stage.later(step + draw.between(10, 20), Undo::Observers);
        }
        other => unreachable!("{other} strikes no server"),
    }
}

/// Puts the server back; once more at the next step, where it could not be.
pub fn put_back(stage: &mut Stage, step: u64, undo: Undo) {
    let again = match undo {
        // Not a byte for its lock file: it could not even start.
        Undo::Server if stage.disk_is_full() => true,
        Undo::Server => {
            stage.start_server();
            false
        }
        Undo::Disk => {
            empty_disk(stage);
            false
        }
        Undo::Replication => !wait_for_a_standby(stage, false),
        Undo::Clock => {
            stage.clock.be_off_by(0);
            false
        }
        Undo::Hostile => {
            stage.hostile.release();
            false
        }
        Undo::Observers => !set_observers(stage, 1),
        other => unreachable!("{other:?} is not the server's"),
    };
    if again {
        stage.later(step.saturating_add(1), undo);
    }
}

/// Gives the bytes back, and starts the server again where it has given up.
fn empty_disk(stage: &mut Stage) {
    if let Some(disk) = &stage.disk {
        disk.empty();
    }
    if stage.postgres.has_ended() {
        stage.postgres.stop(Stop::Immediate);
        stage.start_server();
    }
}

/// Commits wait for a standby that there is not, or no more.
fn wait_for_a_standby(stage: &mut Stage, waits: bool) -> bool {
    let names = if waits { "nobody" } else { "" };
    stage
        .ask(|client| {
            client.batch_execute(&format!(
                "alter system set synchronous_standby_names = '{names}'"
            ))?;
            client.batch_execute("select pg_reload_conf()")
        })
        .is_some()
}

/// While commits wait for a standby: cancels each wait, as an administrator would who sees everything stand.
pub fn cancel_waits(stage: &mut Stage) {
    let waiting = stage
        .undo
        .iter()
        .any(|(_, undo)| *undo == Undo::Replication);
    if waiting {
        stage.ask(|client| {
            client.query(
                "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
                &[],
            )
        });
    }
}

fn set_observers(stage: &Stage, observers: i32) -> bool {
    stage.operator().is_some_and(|mut operator| {
        operator
            .execute(
                "select from sluice.set_setting('observers', $1, 'chaos')",
                &[&observers.to_string()],
            )
            .is_ok()
    })
}

/// How often each of these has happened, by the server's log.
#[must_use]
pub fn logged(log: &str) -> Vec<(Kind, u64)> {
    LOGGED
        .iter()
        .map(|(kind, line)| (*kind, log.matches(line).count() as u64))
        .collect()
}

impl Stage {
    fn disk_is_full(&self) -> bool {
        self.undo.iter().any(|(_, undo)| *undo == Undo::Disk)
    }

    /// Stops the server.
    fn stop_server(&mut self, how: Stop) {
        self.postgres.stop(how);
        self.forget_session();
    }

    /// Starts it again, on another port, and points every link there.
    fn start_server(&mut self) {
        self.postgres.launch();
        self.database = self.postgres.database(self.database.name());
        self.clock.moved_to(&self.database);
        self.forget_session();
        for link in self.links() {
            link.lead_to(&self.database);
        }
    }

    /// A second login of runners, and every other runner by it.
    pub fn give_half_of_the_runners_another_login(&mut self) {
        let url = self.database.url(Role::Runner);
        let password = url
            .split_once(':')
            .and_then(|(_, rest)| rest.split_once(':'))
            .and_then(|(_, rest)| rest.split_once('@'))
            .map(|(password, _)| password)
            .expect("a URL of this scaffold has a password");
        self.database
            .superuser()
            .batch_execute(&format!(
                "create role {OTHER_LOGIN} login password '{password}' in role {}",
                Role::Runner.group()
            ))
            .expect("a login can be made");
        let other = url.replace(Role::Runner.login(), OTHER_LOGIN);
        for worker in self.workers.iter_mut().skip(1).step_by(2) {
            worker.log_in_as(&other);
        }
    }
}
