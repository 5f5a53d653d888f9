//! Runners as the processes that they are: started, stopped, frozen and killed like any other, with all that they logged.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::place::{built_program, scratch, tied};
use crate::postgres::{Database, Role};
use crate::wait::until;
use crate::wallets::Wallets;

/// How a runner is set up, before it is started.
#[derive(Debug)]
pub struct RunnerSetup {
    worker_id: String,
    settings: Vec<(String, String)>,
}

/// A runner that was started.
#[derive(Debug)]
pub struct Runner {
    worker_id: String,
    process: Child,
    directory: TempDir,
}

impl RunnerSetup {
    /// A runner of this name for a database, these nodes and the scenarios' wallets. It looks for work often, so that no
    /// scenario waits for it.
    #[must_use]
    pub fn new(worker_id: &str, database: &Database, nodes: &[String]) -> Self {
        Self {
            worker_id: worker_id.to_owned(),
            settings: Vec::new(),
        }
        .set("SLUICE_WORKER_ID", worker_id)
        .set("SLUICE_DATABASE", &database.url(Role::Runner))
        .set("SLUICE_NODE", &nodes.join(","))
        .set("SLUICE_WALLET", &Wallets::rules())
        .set(Wallets::HMAC_KEY_VARIABLE, Wallets::HMAC_KEY)
        .set(Wallets::LOCAL_KEY_VARIABLE, Wallets::LOCAL_KEY)
        .set("SLUICE_POLL_MIN", "10ms")
        .set("SLUICE_POLL_MAX", "50ms")
        .set("SLUICE_FOLLOW_POLL", "20ms")
        .set("SLUICE_LOG", "info,sluice_runner=debug")
    }

    /// A variable of its environment: `sluice-runner --help` lists them.
    #[must_use]
    pub fn set(mut self, variable: &str, value: &str) -> Self {
        self.settings.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Killed by SIGKILL the moment it comes to this point: `sluice-runner crash-points` lists them.
    #[must_use]
    pub fn killed_at(self, point: &str) -> Self {
        self.set("FAILPOINTS", &format!("{point}=return(kill)"))
    }

    /// Starts it with a command: `run`, `drain`, `follow`, `start-block`, and that command's flags.
    #[must_use]
    pub fn start(self, command: &[&str]) -> Runner {
        let directory = scratch("runner");
        let output =
            File::create(directory.path().join("log")).expect("the runner's log can be made");
        let process = self
            .command(command)
            .stdout(output.try_clone().expect("a file handle can be copied"))
            .stderr(output)
            .spawn()
            .expect("the runner can be started");
        Runner {
            worker_id: self.worker_id,
            process,
            directory,
        }
    }

    /// Runs it to its end, and returns what it wrote on standard output.
    #[must_use]
    pub fn answer(self, command: &[&str]) -> String {
        let output = self
            .command(command)
            .stderr(Stdio::piped())
            .output()
            .expect("the runner can be started");
        assert!(
            output.status.success(),
            "{}: {}",
            self.worker_id,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("the runner writes UTF-8")
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut runner = tied(&built_program("sluice-runner"), "KILL");
        runner
            .args(command)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(
                self.settings
                    .iter()
                    .map(|(variable, value)| (variable, value)),
            )
            .stdin(Stdio::null());
        runner
    }
}

impl Runner {
    /// SIGKILL, and gone when this returns.
    pub fn kill(&mut self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.wait()
    }

    /// SIGTERM, and gone when this returns.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// SIGTERM, and no wait for what becomes of it.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGSTOP: it stands still wherever it is.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: it goes on as if nothing had been. Not before it stands still: one that says that it is about to stop has not
    /// stopped yet, and a SIGCONT takes a stop away that is on its way (`signal(7)`).
    pub fn thaw(&self) {
        until(&format!("{} stands still", self.worker_id), || {
            self.stands_still().then_some(())
        });
        self.signal(Signal::CONT);
    }

    /// Whether it was stopped, or is over.
    fn stands_still(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()));
        // proc(5): the state comes after the name in parentheses, which may hold anything.
        stat.map_or(true, |stat| {
            let state = stat
                .rsplit(')')
                .next()
                .and_then(|rest| rest.trim_start().chars().next());
            matches!(state, Some('T' | 'Z' | 'X'))
        })
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process
            .try_wait()
            .expect("a child can be asked for its status")
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let what = format!("{} ends", self.worker_id);
        until(&what, || self.ended())
    }

    /// Waits until it ends by itself, as it should.
    pub fn ends_well(mut self) {
        let ended = self.wait();
        assert!(ended.success(), "{}: {ended}", self.worker_id);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal)
            .expect("a running runner can be signalled");
    }

    /// All that it wrote.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).expect("the runner's log can be read")
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("what {} logged:\n{}", self.worker_id, self.log());
        }
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.kill();
        }
    }
}
