//! Where things lie: the checkout, the directory that cargo builds in, and what the mutants keep below it from one run to the next.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The checkout.
#[must_use]
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the checkout.
pub fn read(file: &str) -> io::Result<String> {
    fs::read_to_string(checkout().join(file))
        .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
}

/// The directory of cargo's profile, `target/debug`, in which this program lies.
#[must_use]
pub fn built() -> PathBuf {
    let running = env::current_exe().expect("the system knows which program runs");
    running
        .parent()
        .expect("a program lies in a directory")
        .to_owned()
}

/// What slot `number` compiles in.
#[must_use]
pub fn workshop(number: usize) -> PathBuf {
    let target = built();
    let target = target
        .parent()
        .expect("a profile lies in a target directory");
    target.join("mutants").join(format!("workshop-{number}"))
}

/// Writes a file, if it would change: what is as it was need not be compiled again.
pub fn write_if_changed(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, content)
}
