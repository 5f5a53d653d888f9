//! The runners of a run: real processes, each reached by signals, each replaced when it is gone, each with a log that is kept.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use sluice_scenarios::{Database, Role, Runner, RunnerSetup};

use crate::link::Link;

/// Alarms and drains end with codes of their own; this one is an alarm's.
const ALARM: i32 = 3;

/// The command of a runner that only reads blocks, and that ends with an alarm.
pub const FOLLOW: &str = "follow";

/// A place for a runner; who works there changes.
pub struct Worker {
    place: String,
    command: &'static str,
    nodes: Vec<String>,
    link: Link,
    login: String,
    keep: PathBuf,
    generation: u32,
    process: Option<Runner>,
    frozen: bool,
    at_crash_point: bool,
}

/// How a runner was found to have ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// SIGKILL of itself, at the crash point that it was given.
    AtCrashPoint,
    /// A follower's alarm.
    Alarmed,
    /// Something that nobody asked for: its log says what.
    Unasked,
}

impl Worker {
    /// A place for `run` (or `follow`) with these nodes, in this order, connected to the database by a link of its own.
    #[must_use]
    pub fn new(
        place: &str,
        command: &'static str,
        nodes: Vec<String>,
        database: &Database,
        keep: PathBuf,
    ) -> Self {
        Self {
            place: place.to_owned(),
            command,
            nodes,
            link: Link::to(database),
            login: database.url(Role::Runner),
            keep,
            generation: 0,
            process: None,
            frozen: false,
            at_crash_point: false,
        }
    }

    /// Who works there now: another name for each process.
    #[must_use]
    pub fn worker_id(&self) -> String {
        format!("{}-{}", self.place, self.generation)
    }

    /// Its way to the database.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Whether a process is there that is to kill itself.
    #[must_use]
    pub fn is_doomed(&self) -> bool {
        self.process.is_some() && self.at_crash_point
    }

    /// Connects by another login from the next process on.
    pub fn log_in_as(&mut self, url: &str) {
        self.login = url.to_owned();
    }

    /// Starts a process, if none is there.
    pub fn start(&mut self, database: &Database, failpoints: Option<&str>) {
        if self.process.is_some() {
            return;
        }
        self.generation += 1;
        // A follower reads one node only, until it must not be trusted.
        let nodes = match self.command {
            FOLLOW => &self.nodes[..1],
            _ => &self.nodes,
        };
        let mut setup = RunnerSetup::new(&self.worker_id(), database, nodes)
            .set("SLUICE_DATABASE", &self.link.url(&self.login))
            .set("SLUICE_POLL_MIN", "25ms")
            .set("SLUICE_POLL_MAX", "200ms")
            .set("SLUICE_FOLLOW_POLL", "50ms")
            .set("SLUICE_SEND_TIMEOUT", "300ms")
            .set("SLUICE_READ_TIMEOUT", "500ms")
            .set("SLUICE_CONNECT_TIMEOUT", "1s")
            .set("SLUICE_STATEMENT_TIMEOUT", "2s")
            .set("SLUICE_BATCH", "40")
            .set("SLUICE_LOG", "info,sluice_runner=debug");
        if let Some(failpoints) = failpoints {
            setup = setup.set("FAILPOINTS", failpoints);
        }
        self.at_crash_point = failpoints.is_some();
        self.process = Some(setup.start(&[self.command]));
    }

    /// SIGKILL; false where nobody is there.
    pub fn kill(&mut self) -> bool {
        let Some(mut process) = self.process.take() else {
            return false;
        };
        let killed = process.kill().signal() == Some(9);
        self.keep_log(&process);
        self.frozen = false;
        killed
    }

    /// SIGTERM, and gone when this returns; false where nobody is there, or stands still.
    pub fn terminate(&mut self) -> bool {
        if self.frozen {
            return false;
        }
        let Some(mut process) = self.process.take() else {
            return false;
        };
        process.terminate();
        self.keep_log(&process);
        true
    }

    /// SIGSTOP; false where nobody runs.
    pub fn freeze(&mut self) -> bool {
        let Some(process) = self.process.as_ref().filter(|_| !self.frozen) else {
            return false;
        };
        process.freeze();
        self.frozen = true;
        true
    }

    /// SIGCONT, where it stands still.
    pub fn thaw(&mut self) {
        if let Some(process) = self.process.as_ref().filter(|_| self.frozen) {
            process.thaw();
        }
        self.frozen = false;
    }

    /// Whether it has ended by itself, and how.
    pub fn ended(&mut self) -> Option<Ended> {
        let status = self.process.as_mut()?.ended()?;
        let process = self.process.take()?;
        self.keep_log(&process);
        self.frozen = false;
        Some(match status.code() {
            None if self.at_crash_point && status.signal() == Some(9) => Ended::AtCrashPoint,
            Some(ALARM) if self.command == FOLLOW => Ended::Alarmed,
            _ => Ended::Unasked,
        })
    }

    /// Reads from the nodes in another order: the first goes last.
    pub fn turn_to_the_next_node(&mut self) {
        self.nodes.rotate_left(1);
    }

    /// Writes down what the process has logged so far.
    pub fn keep_present_log(&self) {
        if let Some(process) = &self.process {
            self.keep_log(process);
        }
    }

    fn keep_log(&self, process: &Runner) {
        let path = self.keep.join(format!("{}.log", self.worker_id()));
        fs::write(&path, process.log())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
