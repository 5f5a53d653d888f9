//! A PostgreSQL of a mutant's own: a copy of the private one, of which only sluice's script and library are ever written. PostgreSQL
//! finds its files relative to its own binary, so a copy made of hard links is an installation of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use crate::mutant::{Mutant, NotThere};
use crate::place;

/// A tree with a PostgreSQL in it.
#[derive(Debug, Clone)]
pub struct Installation {
    root: PathBuf,
    major: String,
}

/// Why no mutant could be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The environment does not say where PostgreSQL is.
    #[error("SLUICE_PG_BIN names no private PostgreSQL: run scripts/mutants")]
    NoPostgres,
    /// The script in the private PostgreSQL was made from other files than those of the checkout.
    #[error("{0} is not what is installed: run scripts/install-extension")]
    Stale(String),
    /// A text that the table names is not there.
    #[error(transparent)]
    NotThere(#[from] NotThere),
    /// The system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Installation {
    /// The private one, in which the extension is installed as it is.
    pub fn private() -> Result<Self, InstallError> {
        let bin = env::var_os("SLUICE_PG_BIN").ok_or(InstallError::NoPostgres)?;
        let bin = PathBuf::from(bin);
        // <root>/lib/postgresql/<major>/bin, as Debian has it.
        let major = bin
            .parent()
            .and_then(Path::file_name)
            .ok_or(InstallError::NoPostgres)?;
        let root = bin.ancestors().nth(4).ok_or(InstallError::NoPostgres)?;
        let found = Self {
            root: root.to_owned(),
            major: major.to_string_lossy().into_owned(),
        };
        if found.script().exists() && found.library().exists() {
            Ok(found)
        } else {
            Err(InstallError::NoPostgres)
        }
    }

    /// A copy beside it for slot `number`, in place of the one that was there.
    pub fn copy(&self, number: usize) -> Result<Self, InstallError> {
        let parent = self.root.parent().ok_or(InstallError::NoPostgres)?;
        let copy = Self {
            root: parent.join("mutants").join(format!("postgresql-{number}")),
            major: self.major.clone(),
        };
        if copy.root.exists() {
            fs::remove_dir_all(&copy.root)?;
        }
        fs::create_dir_all(parent.join("mutants"))?;
        let copied = Command::new("cp")
            .args(["--archive", "--link"])
            .args([&self.root, &copy.root])
            .status()?;
        if !copied.success() {
            return Err(io::Error::other(format!("cp --archive --link: {copied}")).into());
        }
        Ok(copy)
    }

    /// Where its programs are: what `SLUICE_PG_BIN` says to whoever is to use it.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.versioned("lib").join("bin")
    }

    /// The cargo feature that builds for its version.
    #[must_use]
    pub fn feature(&self) -> String {
        format!("pg{}", self.major)
    }

    fn versioned(&self, kind: &str) -> PathBuf {
        self.root.join(kind).join("postgresql").join(&self.major)
    }

    fn script(&self) -> PathBuf {
        let name = concat!("sluice--", env!("CARGO_PKG_VERSION"), ".sql");
        self.versioned("share").join("extension").join(name)
    }

    fn library(&self) -> PathBuf {
        self.versioned("lib").join("lib/sluice.so")
    }

    /// Puts the mutant in: its script, and its library if there is one; otherwise the ones that `original` has.
    pub fn put(
        &self,
        original: &Self,
        mutant: Option<&Mutant>,
        library: Option<&Path>,
    ) -> Result<(), InstallError> {
        let script = original.script_of(mutant)?;
        replace(&self.script(), |path| fs::write(path, script))?;
        let library = library.map_or_else(|| original.library(), Path::to_owned);
        replace(&self.library(), |path| fs::copy(library, path).map(drop))?;
        Ok(())
    }

    /// The extension's script as the mutant has it: it holds each file of `sql/` word for word.
    fn script_of(&self, mutant: Option<&Mutant>) -> Result<String, InstallError> {
        let mut script = fs::read_to_string(self.script())?;
        let Some(mutant) = mutant else {
            return Ok(script);
        };
        for file in mutant.sql_files() {
            let content = place::read(file)?;
            if script.matches(&content).count() != 1 {
                return Err(InstallError::Stale(file.to_owned()));
            }
            script = script.replacen(&content, &mutant.changed(file, &content)?, 1);
        }
        Ok(script)
    }
}

/// Another file in a path's place. Never written through: the path may be a link to the private PostgreSQL's own, and a library
/// that changes in place takes down whoever has loaded it.
fn replace(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let fresh = path.with_extension("fresh");
    write(&fresh)?;
    fs::rename(fresh, path)
}
