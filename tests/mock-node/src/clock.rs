//! The clock of the chain: real, faster or slower than real, or moved by hand. Nothing in this crate decides by any other.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What a factor may be: beyond, the clock would leave what an integer holds, or a wait what a duration holds.
const FACTORS: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// How chain time passes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum ClockMode {
    /// A second is a second.
    Real,
    /// So many chain seconds pass in a real one.
    Factor {
        /// From 0.001 to 100,000.
        factor: f64,
    },
    /// It stands until it is moved.
    Stepped,
}

impl ClockMode {
    /// `real`, `stepped`, or a factor such as `20`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "real" => Ok(Self::Real),
            "stepped" => Ok(Self::Stepped),
            _ => match text.parse::<f64>() {
                Ok(factor) => {
                    let mode = Self::Factor { factor };
                    mode.check().map(|()| mode)
                }
                Err(_) => Err(format!(
                    "{text:?} is no clock: give real, stepped, or a factor"
                )),
            },
        }
    }

    /// What is wrong with it, in words.
    pub fn check(self) -> Result<(), String> {
        match self {
            Self::Factor { factor } if !FACTORS.contains(&factor) => Err(format!(
                "a factor of {factor} is not from {} to {}",
                FACTORS.start(),
                FACTORS.end()
            )),
            Self::Real | Self::Stepped | Self::Factor { .. } => Ok(()),
        }
    }

    /// Chain seconds in a real second; none while time stands.
    fn rate(self) -> Option<f64> {
        match self {
            Self::Real => Some(1.0),
            Self::Factor { factor } => Some(factor),
            Self::Stepped => None,
        }
    }
}

/// Chain time, in milliseconds since the Unix epoch.
#[derive(Debug)]
pub struct Clock {
    mode: ClockMode,
    /// Chain time at `since`.
    base_ms: i64,
    since: Instant,
}

impl Clock {
    /// A clock that shows `start_ms` now.
    #[must_use]
    pub fn new(mode: ClockMode, start_ms: i64) -> Self {
        Self {
            mode,
            base_ms: start_ms,
            since: Instant::now(),
        }
    }

    /// How it goes.
    #[must_use]
    pub fn mode(&self) -> ClockMode {
        self.mode
    }

    /// What it shows.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.mode.rate().map_or(self.base_ms, |rate| {
            self.base_ms + (self.since.elapsed().as_secs_f64() * rate * 1000.0) as i64
        })
    }

    /// Another pace from this moment on.
    pub fn set_mode(&mut self, mode: ClockMode) {
        self.set(self.now());
        self.mode = mode;
    }

    /// Moves it on by so much.
    pub fn advance(&mut self, ms: i64) {
        self.set(self.now().saturating_add(ms));
    }

    /// Moves it on to this moment, if it has not come to it yet.
    pub fn at_least(&mut self, ms: i64) {
        if self.now() < ms {
            self.set(ms);
        }
    }

    /// How long, in real time, until it shows this moment; none while it stands short of it.
    #[must_use]
    pub fn until(&self, ms: i64) -> Option<Duration> {
        let missing = ms - self.now();
        if missing <= 0 {
            return Some(Duration::ZERO);
        }
        let rate = self.mode.rate()?;
        Some(Duration::from_secs_f64(missing as f64 / 1000.0 / rate))
    }

    fn set(&mut self, ms: i64) {
        self.base_ms = ms;
        self.since = Instant::now();
    }
}
