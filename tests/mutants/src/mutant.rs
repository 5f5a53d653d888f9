//! What a mutant is: which rule it breaks, the text that it changes, and the test that must notice.

/// sluice with one rule broken.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Which rule no longer holds.
    pub breaks: &'static str,
    /// What is changed. Several places where one alone is held by another: each of them has a mutant of its own where that shows.
    pub edits: &'static [Edit],
    /// The test that must fail.
    pub killer: Killer,
}

/// A changed place.
#[derive(Debug, Clone, Copy)]
pub struct Edit {
    /// The file, from the root of the checkout.
    pub file: &'static str,
    /// What stands there, once in the whole file.
    pub text: &'static str,
    /// What stands there in the mutant.
    pub instead: &'static str,
}

/// A test of the failure matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Killer {
    /// The folder in `tests/scenarios/tests`, which is the test's program too.
    pub folder: &'static str,
    /// The test in that program, with its module.
    pub test: &'static str,
}

/// Why a text cannot be changed.
#[derive(Debug, thiserror::Error)]
#[error("{mutant}: this stands {count} times in {file}, and not once:\n{text}")]
pub struct NotThere {
    mutant: &'static str,
    file: &'static str,
    text: &'static str,
    count: usize,
}

/// An edit, written short.
#[must_use]
pub const fn edit(file: &'static str, text: &'static str, instead: &'static str) -> Edit {
    Edit {
        file,
        text,
        instead,
    }
}

/// A killer, written short.
#[must_use]
pub const fn by(folder: &'static str, test: &'static str) -> Killer {
    Killer { folder, test }
}

impl Mutant {
    /// Whether the extension must be compiled for it.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.edits.iter().any(|edit| edit.file.ends_with(".rs"))
    }

    /// The file as it is in the mutant.
    pub fn changed(&self, file: &str, content: &str) -> Result<String, NotThere> {
        let mut changed = content.to_owned();
        for edit in self.edits.iter().filter(|edit| edit.file == file) {
            let count = changed.matches(edit.text).count();
            if count != 1 {
                return Err(NotThere {
                    mutant: self.name,
                    file: edit.file,
                    text: edit.text,
                    count,
                });
            }
            changed = changed.replacen(edit.text, edit.instead, 1);
        }
        Ok(changed)
    }

    /// The SQL files that it changes.
    pub fn sql_files(&self) -> impl Iterator<Item = &'static str> {
        let mut files: Vec<&str> = self
            .edits
            .iter()
            .map(|edit| edit.file)
            .filter(|file| file.ends_with(".sql"))
            .collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter()
    }
}
