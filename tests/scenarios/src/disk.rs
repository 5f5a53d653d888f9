//! A small disk of its own for a server, which can be filled to the last byte: a tmpfs, where the run may mount one. It is
//! unmounted with its owner, whatever ends that.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::place::scratch;

/// Mounts, says so, and unmounts when nobody holds its standard input open any more: a killed test does not either.
const KEEPER: &str = r#"mount -t tmpfs -o "size=$2m,mode=755" tmpfs "$1" && echo mounted && cat; umount --lazy "$1""#;

/// The disk.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    keeper: Child,
    _mounted_at: TempDir,
}

impl Disk {
    /// A disk of so many MiB; none where nobody lets us mount one.
    ///
    /// Root mounts it. Others do in a mount namespace of their own, in which they are root, and reach it through `/proc`.
    #[must_use]
    pub fn mount(size_mib: u32) -> Option<Self> {
        let mounted_at = scratch("disk");
        let mut command = if geteuid().is_root() {
            Command::new("sh")
        } else {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "sh"]);
            command
        };
        command
            .args(["-c", KEEPER, "sh"])
            .arg(mounted_at.path())
            .arg(size_mib.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut keeper = command.spawn().ok()?;
        let mut said = String::new();
        let output = keeper.stdout.as_mut().expect("it is piped");
        BufReader::new(output)
            .read_line(&mut said)
            .expect("a pipe can be read");
        if said.trim() != "mounted" {
            keeper.wait().expect("a child can be waited for");
            return None;
        }
        let path = if geteuid().is_root() {
            mounted_at.path().to_owned()
        } else {
            let inside = mounted_at.path().strip_prefix("/").expect("it is absolute");
            Path::new("/proc")
                .join(keeper.id().to_string())
                .join("root")
                .join(inside)
        };
        Some(Self {
            path,
            keeper,
            _mounted_at: mounted_at,
        })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes every byte that is left.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("the disk can be written");
        let mut piece = vec![0; 1024 * 1024];
        // Smaller and smaller pieces, until not one byte more can be written.
        while !piece.is_empty() {
            if filler.write_all(&piece).is_err() {
                piece.truncate(piece.len() / 2);
            }
        }
    }

    /// Gives them back.
    pub fn empty(&self) {
        fs::remove_file(self.filler()).expect("what fills the disk can be removed");
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().expect("a child can be waited for");
    }
}
