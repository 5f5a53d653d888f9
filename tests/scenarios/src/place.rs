//! Where things lie: the private PostgreSQL that `scripts/setup` makes, the binaries that cargo builds, and the directory
//! for what lives only as long as a scenario.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

/// The system user that runs PostgreSQL when root runs the scenarios: PostgreSQL refuses to run as root.
const POSTGRES_USER: &str = "postgres";

/// A program of the private PostgreSQL, such as `psql`.
#[must_use]
pub fn postgres_program(name: &str) -> PathBuf {
    let bin = env::var_os("SLUICE_PG_BIN").map_or_else(
        || checkout().join("target/postgresql-15/lib/postgresql/15/bin"),
        PathBuf::from,
    );
    existing(bin.join(name), "make it with scripts/setup")
}

/// A program of this workspace, such as `sluice-runner`. Cargo leaves programs in the directory above that of the tests.
#[must_use]
pub fn built_program(name: &str) -> PathBuf {
    let running = env::current_exe().expect("the system knows which program runs");
    let beside = running.parent().expect("a program lies in a directory");
    let bin = if beside.ends_with("deps") {
        beside.parent().unwrap_or(beside)
    } else {
        beside
    };
    existing(bin.join(name), "build it as scripts/test does")
}

fn existing(path: PathBuf, remedy: &str) -> PathBuf {
    assert!(path.exists(), "{} is missing: {remedy}", path.display());
    path
}

fn checkout() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A directory that ends with its owner and that the user who runs PostgreSQL can write. Its path is short: that of a Unix
/// socket may not exceed 107 bytes. `scripts/test` says where, and takes away what a killed scenario leaves there.
#[must_use]
pub fn scratch(prefix: &str) -> TempDir {
    let parent = env::var_os("SLUICE_TMP").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    scratch_in(&parent, prefix)
}

/// The same, in a directory that must be there.
#[must_use]
pub fn scratch_in(parent: &Path, prefix: &str) -> TempDir {
    let directory = tempfile::Builder::new()
        .prefix(prefix)
        .tempdir_in(parent)
        .unwrap_or_else(|error| {
            panic!("no directory can be made in {}: {error}", parent.display());
        });
    if geteuid().is_root() {
        let given = Command::new("chown")
            .arg(format!("{POSTGRES_USER}:{POSTGRES_USER}"))
            .arg(directory.path())
            .status()
            .expect("chown can be run");
        assert!(
            given.success(),
            "{} cannot be given to {POSTGRES_USER}",
            directory.path().display()
        );
    }
    directory
}

/// A command that runs as the user who may run PostgreSQL, and that gets `signal` should the thread that starts it end
/// first.
#[must_use]
pub fn as_postgres(program: &Path, signal: &str) -> Command {
    let other_user: &[&str] = if geteuid().is_root() {
        &[
            "--reuid",
            POSTGRES_USER,
            "--regid",
            POSTGRES_USER,
            "--clear-groups",
        ]
    } else {
        &[]
    };
    set_up(other_user, program, signal)
}

/// A command that gets `signal` should the thread that starts it end first.
#[must_use]
pub fn tied(program: &Path, signal: &str) -> Command {
    set_up(&[], program, signal)
}

/// `setpriv` (util-linux) sets what a process can only set for itself, and then becomes the program, in a
/// directory that everybody can reach. The kernel's
/// `PR_SET_PDEATHSIG` reaches a child even of a test that was killed with SIGKILL.
fn set_up(other_user: &[&str], program: &Path, signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(other_user)
        .args(["--pdeathsig", signal, "--"])
        .arg(program)
        .current_dir("/");
    command
}
