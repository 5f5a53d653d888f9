//! How the story is told: an indent, a clock, and little colour, none where the output is no terminal or `NO_COLOR` is set.

use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Instant;

/// The teller.
pub struct Telling {
    began: Instant,
    colour: bool,
}

/// What a line is.
#[derive(Debug, Clone, Copy)]
enum Ink {
    Bold,
    Dim,
    Green,
    Red,
    Cyan,
}

impl Telling {
    /// Begins to tell.
    pub fn begin(title: &str, setting: &str) -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let telling = Self {
            began: Instant::now(),
            colour,
        };
        println!(
            "\n{} {}\n",
            telling.ink(Ink::Bold, title),
            telling.ink(Ink::Dim, setting)
        );
        telling
    }

    /// A new scene.
    pub fn scene(&self, title: &str) {
        println!("\n{}", self.ink(Ink::Bold, title));
    }

    /// Something that happened just now.
    pub fn happens(&self, what: impl Display) {
        let at = format!("{:5.1} s", self.began.elapsed().as_secs_f64());
        println!("{}  {what}", self.ink(Ink::Dim, &at));
    }

    /// A statement that somebody runs.
    pub fn statement(&self, sql: &str) {
        for line in sql.lines() {
            println!("         {}", self.ink(Ink::Cyan, line));
        }
    }

    /// Something that stands beside what happened.
    pub fn aside(&self, what: impl Display) {
        println!("         {}", self.ink(Ink::Dim, &what.to_string()));
    }

    /// A step of a withdrawal: from a state, or from nothing, to another, by whom, and why.
    pub fn row(&self, from: &str, to: &str, by: &str, evidence: &str) {
        let by = self.ink(Ink::Dim, &format!("{by:<8}"));
        println!("         {from:>12} → {to:<12}  {by}  {evidence}");
    }

    /// A claim of the story's end, and whether it is so.
    pub fn claim(&self, what: &str, holds: bool) {
        let mark = if holds {
            self.ink(Ink::Green, "✓")
        } else {
            self.ink(Ink::Red, "✗ not so:")
        };
        println!("         {mark} {what}");
    }

    /// The last line.
    pub fn end(&self, what: &str) {
        println!(
            "\n{} {}\n",
            self.ink(Ink::Bold, what),
            self.ink(
                Ink::Dim,
                &format!("{:.1} s", self.began.elapsed().as_secs_f64())
            )
        );
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Green => "32",
            Ink::Red => "1;31",
            Ink::Cyan => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
