//! The extension's library as a mutant has it. Each slot has a copy of the sources and a directory to build in, kept from one run
//! to the next: only what a mutant changes is compiled again. What it takes from others is linked from where cargo built it for the
//! extension itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::mutant::{Mutant, NotThere};
use crate::place::{self, write_if_changed};

/// What cargo-pgrx hands to cargo when it builds an extension (`cargo.rs`, `pgrx_cdylib_config_args`): with other flags nothing that
/// it has built could be used again.
const AS_PGRX_BUILDS: &str = r#"target.'cfg(all(target_family = "unix", not(target_os = "macos")))'.rustflags = ["-C", "link-arg=-Wl,--no-gc-sections"]"#;

/// Files up to this size are copied and not linked: cargo rewrites its small records in place.
const LARGEST_RECORD: u64 = 64 * 1024;

/// Where a slot compiles.
#[derive(Debug)]
pub struct Workshop {
    directory: PathBuf,
    feature: String,
}

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The compiler refused it: no mutant, but an error in the table.
    #[error("it does not compile:\n{0}")]
    Refused(String),
    /// A text that the table names is not there.
    #[error(transparent)]
    NotThere(#[from] NotThere),
    /// The system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Workshop {
    /// Slot `number`'s, made ready.
    pub fn open(number: usize, feature: String) -> io::Result<Self> {
        let directory = place::workshop(number);
        let built = directory.join("target/debug");
        if !built.exists() {
            seed(&place::built(), &built)?;
        }
        Ok(Self { directory, feature })
    }

    /// The library as the mutant has it, or as it is.
    pub fn library(&self, mutant: Option<&Mutant>) -> Result<PathBuf, CompileError> {
        self.lay_out(mutant)?;
        let output = Command::new("cargo")
            .args(["--config", AS_PGRX_BUILDS])
            .args(["build", "--quiet", "--offline", "--lib"])
            .args(["--no-default-features", "--features", &self.feature])
            .current_dir(self.sources())
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            // One mutant after the other differs from the last in a line or two.
            .env("CARGO_INCREMENTAL", "1")
            .output()?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(CompileError::Refused(complaint));
        }
        Ok(self.directory.join("target/debug/libsluice.so"))
    }

    fn sources(&self) -> PathBuf {
        self.directory.join("sources")
    }

    /// The sources as the mutant has them. Files that are as they were are not written.
    fn lay_out(&self, mutant: Option<&Mutant>) -> Result<(), CompileError> {
        let mut files = BTreeSet::from(["Cargo.lock".to_owned(), "sluice.control".to_owned()]);
        for directory in ["src", "sql"] {
            collect(Path::new(directory), &mut files)?;
        }
        for file in &files {
            let mut content = place::read(file)?;
            if let Some(mutant) = mutant {
                content = mutant.changed(file, &content)?;
            }
            write_if_changed(&self.sources().join(file), content.as_bytes())?;
        }
        let manifest = only_the_extension(&place::read("Cargo.toml")?);
        write_if_changed(&self.sources().join("Cargo.toml"), manifest.as_bytes())?;
        Ok(())
    }
}

/// The workspace without the members that the extension does without.
fn only_the_extension(manifest: &str) -> String {
    let mut lines: Vec<&str> = vec![];
    for line in manifest.lines() {
        lines.push(if line.starts_with("members = ") {
            r#"members = ["src/core"]"#
        } else {
            line
        });
    }
    lines.join("\n") + "\n"
}

/// Every file below a directory of the checkout, tests aside.
fn collect(directory: &Path, files: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(place::checkout().join(directory))? {
        let entry = entry?;
        let path = directory.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            files.insert(path.to_string_lossy().into_owned());
        } else if entry.file_name() != "tests" {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// Takes over what cargo has built already, all but this workspace's own.
fn seed(from: &Path, to: &Path) -> io::Result<()> {
    for part in [".fingerprint", "build", "deps"] {
        let Ok(entries) = fs::read_dir(from.join(part)) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = name.starts_with("sluice") || name.starts_with("libsluice");
            // Of the rest in deps, what has no extension is a test or a program.
            if is_ours || part == "deps" && !name.contains('.') {
                continue;
            }
            take_over(&entry.path(), &to.join(part).join(name))?;
        }
    }
    Ok(())
}

fn take_over(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(about) = fs::symlink_metadata(from) else {
        // Somebody builds at the same time, and it was a file of a moment.
        return Ok(());
    };
    if about.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            take_over(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    if about.len() > LARGEST_RECORD {
        return fs::hard_link(from, to);
    }
    fs::copy(from, to)?;
    // Cargo tells by the time of a record whether what it speaks of is older.
    fs::File::options()
        .write(true)
        .open(to)?
        .set_modified(about.modified()?)
}
