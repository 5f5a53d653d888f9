//! A small disk of its own for the server, which can be filled to the last byte: a tmpfs, where the run may mount one.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use sluice_scenarios::place::scratch;
use tempfile::TempDir;

/// Room for a small server with its log, and soon filled.
const SIZE: &str = "size=512m,mode=755";

/// The disk.
pub struct Disk {
    mounted: TempDir,
}

impl Disk {
    /// A disk, if one may be mounted here.
    #[must_use]
    pub fn mount() -> Option<Self> {
        let mounted = scratch("disk");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "tmpfs"])
            .arg(mounted.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        done.is_ok_and(|status| status.success())
            .then_some(Self { mounted })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.mounted.path().to_owned()
    }

    /// Takes every byte that is left.
    pub fn fill(&self) {
        let mut file = File::create(self.filler()).expect("the disk can be written");
        let mut piece = vec![0; 1024 * 1024];
        // Smaller and smaller pieces, until not one byte more can be written.
        while !piece.is_empty() {
            if file.write_all(&piece).is_err() {
                piece.truncate(piece.len() / 2);
            }
        }
    }

    /// Gives them back.
    pub fn empty(&self) {
        fs::remove_file(self.filler()).expect("what fills the disk can be removed");
    }

    fn filler(&self) -> PathBuf {
        self.mounted.path().join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let gone = Command::new("umount").arg(self.mounted.path()).status();
        if !gone.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.mounted.path().display());
        }
    }
}
