//! The figures of a run, the targets that follow from them, and how both are shown and kept.

use std::fmt;
use std::path::Path;
use std::{fs, io};

use serde::Serialize;

use crate::Options;
use crate::server::Server;

/// Something measured.
#[derive(Debug, Clone, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

/// A ratio that is asked for.
#[derive(Debug, Clone, Serialize)]
struct Target {
    name: &'static str,
    value: f64,
    goal: f64,
    met: bool,
}

/// All of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    server: String,
    cores: usize,
    withdrawals: usize,
    batch: usize,
    runs: usize,
    figures: Vec<Figure>,
    targets: Vec<Target>,
}

/// What is asked for: the first figure over the second is at least this.
const TARGETS: [(&str, &str, &str, f64); 3] = [
    (
        "in the database, to the ceiling",
        "in the database, 1 session(s)",
        "ceiling, 1 session(s)",
        0.60,
    ),
    (
        "in the database, two sessions to one",
        "in the database, 2 session(s)",
        "in the database, 1 session(s)",
        1.4,
    ),
    (
        "intake in batches, to a bare INSERT",
        "intake, an INSERT in batches",
        "intake, a bare INSERT in batches",
        0.5,
    ),
];

impl Report {
    /// An empty one.
    pub fn new(options: &Options) -> Self {
        Self {
            server: String::new(),
            cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            withdrawals: options.withdrawals,
            batch: options.batch,
            runs: options.runs,
            figures: vec![],
            targets: vec![],
        }
    }

    /// On what it runs.
    pub fn machine(&mut self, server: &Server) {
        self.server = server.version();
    }

    /// Adds a figure, and says so.
    pub fn figure(&mut self, name: &str, value: f64, unit: &'static str) {
        eprintln!("{name}: {value:.0} {unit}");
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit,
        });
    }

    fn value(&self, name: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|figure| figure.name == name)?;
        Some(figure.value)
    }

    /// Holds the figures against the targets.
    pub fn judge(&mut self) {
        self.targets = TARGETS
            .into_iter()
            .filter_map(|(name, figure, of, goal)| {
                let value = self.value(figure)? / self.value(of)?;
                Some(Target {
                    name,
                    value,
                    goal,
                    met: value >= goal,
                })
            })
            .collect();
    }

    /// Writes it as JSON.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(path, serde_json::to_string_pretty(self)? + "\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\n{} cores, {} withdrawals in batches of {}, the best of {} runs\n",
            self.server, self.cores, self.withdrawals, self.batch, self.runs
        )?;
        for figure in &self.figures {
            writeln!(
                f,
                "{:48} {:>12.0} {}",
                figure.name, figure.value, figure.unit
            )?;
        }
        writeln!(f)?;
        for target in &self.targets {
            let met = if target.met { "met" } else { "not met" };
            writeln!(
                f,
                "{:48} {:>12.2} of {:.2}: {met}",
                target.name, target.value, target.goal
            )?;
        }
        Ok(())
    }
}
