//! The failure matrix: the tests in `tests/scenarios/tests/{clients,database,nodes,rules,workers}`, a program a folder, as cargo has built
//! them, run against a PostgreSQL with a mutant in it.
//!
//! Two at a time, even where there is only one: the harness then writes a test's name and what became of it in one line, which
//! nothing that others write can part.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The folders.
pub const FOLDERS: [&str; 6] = ["clients", "database", "nodes", "rails", "rules", "workers"];

/// How many tests run at a time.
const TEST_THREADS: &str = "--test-threads=2";

/// How long a test that is to fail may wait for something before it takes it for never, in seconds.
const SHORT_PATIENCE_S: u64 = 10;

/// How long one test's program may take, and a folder's.
const LONGEST_TEST: Duration = Duration::from_secs(300);
const LONGEST_FOLDER: Duration = Duration::from_secs(3 * 3600);

/// Each folder's program.
#[derive(Debug)]
pub struct Matrix {
    programs: BTreeMap<String, PathBuf>,
}

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// All that it wrote.
    pub output: String,
    /// Each test, and whether it passed.
    pub tests: Vec<(String, bool)>,
    /// Whether it was ended because it took too long.
    pub overdue: bool,
    /// How long it took.
    pub took: Duration,
}

impl Matrix {
    /// From the messages of `cargo test --no-run --message-format=json`.
    #[must_use]
    pub fn from_messages(messages: &str) -> Self {
        let programs = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["target"]["kind"][0] == "test")
            .filter_map(|message| {
                let folder = message["target"]["name"].as_str()?;
                let program = message["executable"].as_str()?;
                Some((folder.to_owned(), PathBuf::from(program)))
            })
            .filter(|(folder, _)| FOLDERS.contains(&folder.as_str()))
            .collect();
        Self { programs }
    }

    /// Runs one test.
    pub fn run_one(&self, folder: &str, test: &str, bin: &Path) -> io::Result<Ran> {
        let patience = ("SLUICE_PATIENCE", SHORT_PATIENCE_S.to_string());
        let arguments = [TEST_THREADS, "--exact", test];
        self.run(folder, &arguments, bin, Some(patience), LONGEST_TEST)
    }

    /// Runs a folder's tests, all of them.
    pub fn run_folder(&self, folder: &str, bin: &Path) -> io::Result<Ran> {
        self.run(folder, &[TEST_THREADS], bin, None, LONGEST_FOLDER)
    }

    fn run(
        &self,
        folder: &str,
        arguments: &[&str],
        bin: &Path,
        variable: Option<(&str, String)>,
        limit: Duration,
    ) -> io::Result<Ran> {
        let program = self.programs.get(folder).ok_or_else(|| {
            io::Error::other(format!("cargo has built no test program for {folder}"))
        })?;
        let start = Instant::now();
        let (mut reader, writer) = io::pipe()?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("SLUICE_PG_BIN", bin)
            .envs(variable)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        let reading = thread::spawn(move || {
            let mut bytes = vec![];
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        let mut overdue = false;
        while child.try_wait()?.is_none() {
            if start.elapsed() > limit {
                overdue = true;
                // What it has started is tied to its life.
                child.kill()?;
                child.wait()?;
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let bytes = reading
            .join()
            .map_err(|_| io::Error::other("reading a test's output panicked"))??;
        let output = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Ran {
            tests: tests_in(&output),
            output,
            overdue,
            took: start.elapsed(),
        })
    }
}

/// The tests that the harness says it ran.
fn tests_in(output: &str) -> Vec<(String, bool)> {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "))
        .filter_map(|(name, outcome)| match outcome {
            "ok" => Some((name.to_owned(), true)),
            "FAILED" => Some((name.to_owned(), false)),
            _ => None,
        })
        .collect()
}
