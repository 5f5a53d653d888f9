//! Secrets, and where they may come from: a file that only its owner can read, or an environment variable. Never the
//! command line, which every user of the machine can read; never a log line.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use zeroize::Zeroizing;

/// More than any key, password or token needs.
const LONGEST: u64 = 8192;

/// Where a secret is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// `file:PATH`
    File(PathBuf),
    /// `env:NAME`
    Env(String),
}

/// Why a secret could not be had. Says where, never what.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Not written as a source.
    #[error("write where the secret is, as file:PATH or env:NAME")]
    Form,
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The path names something else than a file.
    #[error("{0} is not a regular file")]
    NoFile(PathBuf),
    /// Others than the owner may read it.
    #[error("{path} can be read by others than its owner (mode {mode:03o}): run chmod 600 {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It belongs to somebody else.
    #[error("{path} belongs to user {owner}, neither to the user that runs this nor to root")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The environment has no such variable.
    #[error("the environment variable {0} is not set, or is not UTF-8")]
    Unset(String),
    /// Nothing, or far too much, or not text.
    #[error("{0} holds no line of text of at most {LONGEST} bytes")]
    NoText(SecretSource),
}

impl SecretSource {
    /// The secret, without white space around it.
    pub fn read(&self) -> Result<Zeroizing<String>, SecretError> {
        let text = match self {
            Self::File(path) => private_file(path)?,
            Self::Env(name) => {
                Zeroizing::new(std::env::var(name).map_err(|_| SecretError::Unset(name.clone()))?)
            }
        };
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.contains(['\n', '\r', '\0']) {
            return Err(SecretError::NoText(self.clone()));
        }
        Ok(Zeroizing::new(trimmed.to_owned()))
    }
}

/// The text of a file that nobody but its owner can read.
pub fn private_file(path: &Path) -> Result<Zeroizing<String>, SecretError> {
    let unreadable = |error| SecretError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let file = File::open(path).map_err(unreadable)?;
    // Judged on the opened file: between a look at the path and its opening the file could be exchanged.
    let stat = rustix::fs::fstat(&file).map_err(|error| unreadable(error.into()))?;
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(SecretError::NoFile(path.to_owned()));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(SecretError::Open {
            path: path.to_owned(),
            mode: stat.st_mode & 0o777,
        });
    }
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid != us && stat.st_uid != 0 {
        return Err(SecretError::Foreign {
            path: path.to_owned(),
            owner: stat.st_uid,
        });
    }
    let no_text = || SecretError::NoText(SecretSource::File(path.to_owned()));
    let mut bytes = Zeroizing::new(Vec::with_capacity(256));
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(no_text());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| no_text())?;
    Ok(Zeroizing::new(text.to_owned()))
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Env(name) => write!(f, "env:{name}"),
        }
    }
}

impl FromStr for SecretSource {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.to_owned())),
            _ => Err(SecretError::Form),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn file_with(name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("sluice-secret-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a temporary file can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
            .expect("its mode can be set");
        path
    }

    #[test]
    fn a_secret_in_a_file_of_the_owner_alone_is_read_and_trimmed() {
        for mode in [0o600, 0o400] {
            let path = file_with("good", b"  5ec2e7\n", mode);
            let read = SecretSource::File(path.clone())
                .read()
                .expect("it is private");
            assert_eq!(read.as_str(), "5ec2e7");
            std::fs::remove_file(path).expect("it can be removed");
        }
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_the_remedy_and_without_the_secret() {
        for mode in [0o640, 0o604, 0o660, 0o644] {
            let path = file_with("open", b"5ec2e7", mode);
            let refused = SecretSource::File(path.clone())
                .read()
                .expect_err("it is not private")
                .to_string();
            assert!(
                refused.contains("chmod 600") && !refused.contains("5ec2e7"),
                "{refused}"
            );
            std::fs::remove_file(path).expect("it can be removed");
        }
    }

    #[test]
    fn what_is_no_line_of_text_is_no_secret() {
        for (name, content) in [
            ("empty", b"".as_slice()),
            ("lines", b"a\nb"),
            ("bytes", b"\xff\xfe"),
            ("long", &[b'a'; 9000]),
        ] {
            let path = file_with(name, content, 0o600);
            assert!(SecretSource::File(path.clone()).read().is_err(), "{name}");
            std::fs::remove_file(path).expect("it can be removed");
        }
        assert!(
            SecretSource::File("/nonexistent/sluice".into())
                .read()
                .is_err()
        );
        assert!(SecretSource::File(std::env::temp_dir()).read().is_err());
        assert!(
            SecretSource::Env("SLUICE_TEST_OF_NOTHING".into())
                .read()
                .is_err()
        );
    }

    #[test]
    fn a_source_names_a_file_or_a_variable_and_nothing_else() {
        assert_eq!(
            "file:/k".parse::<SecretSource>().ok(),
            Some(SecretSource::File("/k".into()))
        );
        assert_eq!(
            "env:K".parse::<SecretSource>().ok(),
            Some(SecretSource::Env("K".into()))
        );
        for bad in ["", "file:", "env:", "5ec2e7", "hex:5ec2e7", "/k"] {
            assert!(bad.parse::<SecretSource>().is_err(), "{bad}");
        }
    }
}
