//! Seeds and time. A property is tried from a fixed seed, so that two runs on one tree do the same, and from one that is drawn
//! and printed. `SEED` sets the drawn one; `FUZZ_SECONDS` goes on from there, a seed after the other, for so long a property.
//! What fails is made smaller, printed with its seed, and kept in `regressions/`, from where every later run begins.

use std::env;
use std::fmt::Debug;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, TestCaseResult, TestRng, TestRunner,
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What every run begins with.
const FIXED_SEED: u64 = 0x5eed;

/// How long a failure may be made smaller, in milliseconds.
const SHRINKING_MS: u32 = 20_000;

/// The seeds of a property, one a round: the fixed one, the drawn one, and more while there is time.
pub struct Rounds {
    next: Option<u64>,
    fixed_is_done: bool,
    end: Option<Instant>,
    /// Without a time a property has its two rounds.
    drawn_is_done: bool,
}

/// The rounds of the property with this name.
///
/// # Panics
/// Where `SEED` or `FUZZ_SECONDS` is no number.
#[must_use]
pub fn rounds(property: &str) -> Rounds {
    let seed = drawn_seed();
    // Past the harness, which keeps what a passing test prints.
    writeln!(std::io::stderr(), "fuzz {property}: SEED={seed}").expect("standard error is open");
    Rounds {
        next: Some(seed),
        fixed_is_done: number("SEED").is_some(),
        end: number("FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        drawn_is_done: false,
    }
}

impl Iterator for Rounds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if !self.fixed_is_done {
            self.fixed_is_done = true;
            return Some(FIXED_SEED);
        }
        let more = self.end.is_some_and(|end| Instant::now() < end);
        if self.drawn_is_done && !more {
            return None;
        }
        self.drawn_is_done = true;
        let seed = self.next?;
        self.next = Some(seed.wrapping_add(1));
        Some(seed)
    }
}

/// Tries a property on generated values, so many a round.
///
/// # Panics
/// With the smallest value found for which it does not hold, and the seed of its round.
pub fn fuzz<S>(
    property: &'static str,
    cases: u32,
    values: S,
    holds: impl Fn(S::Value) -> TestCaseResult,
) where
    S: Strategy,
    S::Value: Debug,
{
    for seed in rounds(property) {
        let mut runner = runner(property, seed, cases);
        if let Err(found) = runner.run(&values, &holds) {
            panic!("{property}, SEED={seed}: {found}");
        }
    }
}

fn runner(property: &'static str, seed: u64, cases: u32) -> TestRunner {
    static FILES: OnceLock<&'static str> = OnceLock::new();
    let directory = FILES.get_or_init(|| concat!(env!("CARGO_MANIFEST_DIR"), "/regressions"));
    // proptest keeps the name of its file for ever; there are as many as properties and rounds.
    let file = Box::leak(format!("{directory}/{property}.txt").into_boxed_str());
    let config = Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        max_shrink_time: SHRINKING_MS,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, generator(property, seed))
}

fn generator(property: &str, seed: u64) -> TestRng {
    let key = Sha256::new()
        .chain_update(seed.to_be_bytes())
        .chain_update(property)
        .finalize();
    TestRng::from_seed(RngAlgorithm::ChaCha, &key)
}

/// Values one after the other, for a session whose past decides what comes of each: none of them is made smaller.
pub struct Draws(TestRunner);

impl Draws {
    /// The values of this property from this seed.
    #[must_use]
    pub fn new(property: &str, seed: u64) -> Self {
        let config = Config {
            failure_persistence: None,
            ..Config::default()
        };
        Self(TestRunner::new_with_rng(config, generator(property, seed)))
    }

    /// The next value.
    ///
    /// # Panics
    /// Where the strategy refuses to give one.
    pub fn next<S: Strategy>(&mut self, of: &S) -> S::Value {
        of.new_tree(&mut self.0)
            .expect("no strategy here filters")
            .current()
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.next(&(0..end))
    }

    /// Whether it is one of so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

fn drawn_seed() -> u64 {
    static DRAWN: OnceLock<u64> = OnceLock::new();
    // Short enough to be typed.
    *DRAWN.get_or_init(|| number("SEED").unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0 >> 32))
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name}: {text:?} is no whole number"),
    }
}
