//! How far a run is: one line that is written over on a terminal, a plain line now and then elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const WIDTH: u64 = 30;
/// Between two lines where there is no terminal.
const SELDOM: Duration = Duration::from_secs(15);

/// The bar.
pub struct Progress {
    began: Instant,
    last: Option<Instant>,
    terminal: bool,
}

impl Progress {
    /// Begins.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            last: None,
            terminal: stderr().is_terminal(),
        }
    }

    /// Shows how far this part of the run is.
    pub fn show(&mut self, part: &str, done: u64, of: u64, more: &str) {
        let elapsed = self.began.elapsed().as_secs();
        if !self.terminal {
            if self.last.is_some_and(|last| last.elapsed() < SELDOM) {
                return;
            }
            self.last = Some(Instant::now());
            eprintln!("{elapsed:4} s  {part} {done}/{of}  {more}");
            return;
        }
        let filled = (done * WIDTH).checked_div(of).unwrap_or(WIDTH).min(WIDTH) as usize;
        let bar = "█".repeat(filled) + &"░".repeat(WIDTH as usize - filled);
        eprint!("\r\x1b[2K{elapsed:4} s  {bar} {part} {done}/{of}  {more}");
        // A bar that cannot be shown is no failure of the run.
        let _ = stderr().flush();
    }

    /// Leaves the line.
    pub fn end(&self) {
        if self.terminal {
            eprintln!();
        }
    }
}
