//! Running the mutants: each against the one test that it names, two at a time; or the whole matrix against each, one after the
//! other. Before any of them, sluice as it is goes the same way, compiled and installed as a mutant would be: a test that fails on
//! it would kill everything.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::compile::Workshop;
use crate::installation::{InstallError, Installation};
use crate::judge::{self, Fate};
use crate::matrix::{FOLDERS, Matrix};
use crate::mutant::Mutant;

/// How many mutants are tried at a time: each has a PostgreSQL of its own.
const SLOTS: usize = 2;

/// What stops a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A place could not be made ready.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// sluice as it is does not pass.
    #[error("{test} must pass on sluice as it is: {reason}")]
    Unsound {
        /// The test.
        test: String,
        /// What became of it.
        reason: String,
    },
}

/// How many mutants came to which end.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Those that a test noticed.
    pub killed: usize,
    /// Those that none noticed, or not the one named, and those that were none.
    pub failed: usize,
}

/// A place in which one mutant at a time is made and tried.
struct Slot {
    original: Installation,
    installation: Installation,
    workshop: Workshop,
}

impl Slot {
    fn open(number: usize) -> Result<Self, RunError> {
        let original = Installation::private()?;
        Ok(Self {
            installation: original.copy(number)?,
            workshop: Workshop::open(number, original.feature())?,
            original,
        })
    }

    /// Puts the mutant in; says why where it is none.
    fn put(&self, mutant: &Mutant) -> Result<(), String> {
        let library = if mutant.is_compiled() {
            let library = self.workshop.library(Some(mutant));
            Some(library.map_err(|error| error.to_string())?)
        } else {
            None
        };
        self.installation
            .put(&self.original, Some(mutant), library.as_deref())
            .map_err(|error| error.to_string())
    }

    /// Puts sluice in as it is, compiled here.
    fn put_as_it_is(&self) -> Result<(), RunError> {
        let library = self
            .workshop
            .library(None)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(self
            .installation
            .put(&self.original, None, Some(&library))?)
    }

    /// sluice as it is passes this mutant's test.
    fn prove_sound(&self, matrix: &Matrix, mutant: &Mutant) -> Result<(), RunError> {
        self.put_as_it_is()?;
        let killer = mutant.killer;
        let ran = matrix.run_one(killer.folder, killer.test, &self.installation.bin())?;
        let reason = match judge::fate(killer.test, &ran) {
            Fate::Survived => return Ok(()),
            Fate::Killed => ran.output,
            Fate::NoMutant(reason) => reason,
        };
        Err(RunError::Unsound {
            test: killer.test.to_owned(),
            reason,
        })
    }

    fn try_one(&self, matrix: &Matrix, mutant: &Mutant) -> Fate {
        if let Err(reason) = self.put(mutant) {
            return Fate::NoMutant(reason);
        }
        let killer = mutant.killer;
        match matrix.run_one(killer.folder, killer.test, &self.installation.bin()) {
            Ok(ran) => judge::fate(killer.test, &ran),
            Err(error) => Fate::NoMutant(error.to_string()),
        }
    }
}

/// Each mutant against the test that it names.
pub fn each_against_its_killer(matrix: &Matrix, mutants: &[Mutant]) -> Result<Tally, RunError> {
    let waiting = Mutex::new(mutants.iter());
    let tally = Mutex::new(Tally::default());
    thread::scope(|scope| {
        let slots: Vec<_> = (1..=SLOTS.min(mutants.len()))
            .map(|number| {
                let (waiting, tally) = (&waiting, &tally);
                scope.spawn(move || work(number, matrix, waiting, tally))
            })
            .collect();
        slots
            .into_iter()
            .try_for_each(|slot| slot.join().expect("a slot does not panic"))
    })?;
    Ok(tally.into_inner().expect("a slot does not panic"))
}

fn work(
    number: usize,
    matrix: &Matrix,
    waiting: &Mutex<std::slice::Iter<'_, Mutant>>,
    tally: &Mutex<Tally>,
) -> Result<(), RunError> {
    let next = || waiting.lock().expect("a slot does not panic").next();
    let slot = Slot::open(number)?;
    let mut mutant = next();
    if let Some(first) = mutant {
        slot.prove_sound(matrix, first)?;
    }
    while let Some(tried) = mutant {
        let start = Instant::now();
        let fate = slot.try_one(matrix, tried);
        let took = start.elapsed().as_secs_f32();
        let mut tally = tally.lock().expect("a slot does not panic");
        let killer = format!("{}::{}", tried.killer.folder, tried.killer.test);
        match fate {
            Fate::Killed => {
                tally.killed += 1;
                println!("{:<40} killed by {killer} in {took:.1} s", tried.name);
            }
            Fate::Survived => {
                tally.failed += 1;
                println!(
                    "{:<40} LIVES through {killer}: {}",
                    tried.name, tried.breaks
                );
            }
            Fate::NoMutant(reason) => {
                tally.failed += 1;
                println!("{:<40} IS NO MUTANT: {reason}", tried.name);
            }
        }
        drop(tally);
        mutant = next();
    }
    Ok(())
}

/// The whole matrix against each mutant.
pub fn matrix_against_each(matrix: &Matrix, mutants: &[Mutant]) -> Result<Tally, RunError> {
    let slot = Slot::open(1)?;
    slot.put_as_it_is()?;
    let start = Instant::now();
    let sound = run_all(matrix, &slot)?;
    if let Some(test) = sound.failed.first() {
        return Err(RunError::Unsound {
            test: test.clone(),
            reason: format!("failed are {:?}", sound.failed),
        });
    }
    println!(
        "sluice as it is passes {} tests in {:.0} s",
        sound.passed,
        start.elapsed().as_secs_f32()
    );
    let mut tally = Tally::default();
    for mutant in mutants {
        let start = Instant::now();
        let verdict = slot
            .put(mutant)
            .and_then(|()| run_all(matrix, &slot).map_err(|error| error.to_string()))
            .and_then(|ran| told(mutant, &ran));
        let took = start.elapsed().as_secs_f32();
        match verdict {
            Ok(by) => {
                tally.killed += 1;
                println!("{:<40} killed in {took:.0} s by {by}", mutant.name);
            }
            Err(complaint) => {
                tally.failed += 1;
                println!("{:<40} {complaint}", mutant.name);
            }
        }
    }
    Ok(tally)
}

struct WholeRun {
    passed: usize,
    failed: BTreeSet<String>,
}

fn run_all(matrix: &Matrix, slot: &Slot) -> std::io::Result<WholeRun> {
    let mut whole = WholeRun {
        passed: 0,
        failed: BTreeSet::new(),
    };
    for folder in FOLDERS {
        let ran = matrix.run_folder(folder, &slot.installation.bin())?;
        if ran.overdue || ran.tests.is_empty() {
            return Err(std::io::Error::other(format!(
                "{folder} has not run to its end:\n{}",
                ran.output
            )));
        }
        for (test, passed) in ran.tests {
            if passed {
                whole.passed += 1;
            } else {
                whole.failed.insert(format!("{folder}::{test}"));
            }
        }
    }
    Ok(whole)
}

/// Which tests killed it; or what is wrong with it.
fn told(mutant: &Mutant, ran: &WholeRun) -> Result<String, String> {
    let killer = format!("{}::{}", mutant.killer.folder, mutant.killer.test);
    if ran.failed.is_empty() {
        return Err(format!("LIVES through all: {}", mutant.breaks));
    }
    if ran.passed == 0 {
        return Err("IS NO MUTANT: nothing of it works".to_owned());
    }
    if !ran.failed.contains(&killer) {
        return Err(format!(
            "LIVES through {killer}, which is to kill it; killed by {:?}",
            ran.failed
        ));
    }
    let tests: Vec<&str> = ran.failed.iter().map(String::as_str).collect();
    Ok(format!("{} tests: {}", tests.len(), tests.join(", ")))
}
