//! What a run of a test says about a mutant.

use crate::matrix::Ran;

/// The words with which a scene gives up where the script cannot be installed.
const DOES_NOT_INSTALL: &str = "the extension can be created";

/// SQLSTATEs of a script that is no longer SQL, rather than of a rule that is broken: syntax, and names and types that do not fit.
const NO_SQL: [&str; 7] = [
    "42601", "42703", "42883", "42P01", "42702", "42804", "42P13",
];

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The test failed.
    Killed,
    /// The test passed.
    Survived,
    /// It was none: it did not compile, did not install, could not be run, or nothing of it works.
    NoMutant(String),
}

/// What one test's run says.
#[must_use]
pub fn fate(test: &str, ran: &Ran) -> Fate {
    if let Some(reason) = stillborn(ran) {
        return Fate::NoMutant(reason);
    }
    match ran.tests.iter().find(|(name, _)| name == test) {
        Some((_, true)) => Fate::Survived,
        Some((_, false)) => Fate::Killed,
        None => Fate::NoMutant(format!("{test} was not run:\n{}", ran.output)),
    }
}

/// Why whatever failed does not count.
#[must_use]
pub fn stillborn(ran: &Ran) -> Option<String> {
    if ran.overdue {
        return Some(format!("it took too long:\n{}", ran.output));
    }
    if ran.output.contains(DOES_NOT_INSTALL) {
        return Some(format!("it does not install:\n{}", ran.output));
    }
    // As the driver shows a code, and as a runner logs it.
    NO_SQL
        .iter()
        .find(|code| {
            ran.output.contains(&format!("SqlState(E{code})"))
                || ran.output.contains(&format!("[{code}]"))
        })
        .map(|code| format!("its SQL is none ({code}):\n{}", ran.output))
}
