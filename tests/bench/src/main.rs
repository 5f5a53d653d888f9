//! `sluice-bench`: what sluice costs. It starts a PostgreSQL of its own with production settings, measures bare SQL and sluice one after
//! the other on it, prints a table, and writes `target/bench/result.json`. Every target is a ratio within the run: machines differ, and are
//! noisy.

mod ceiling;
mod chain;
mod intake;
mod lifecycle;
mod report;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use report::Report;

/// What to measure, and how much of it.
#[derive(Debug, Clone, Parser)]
#[command(about = "Measures sluice against bare SQL on the same server, in one run")]
pub struct Options {
    /// Withdrawals of each measurement.
    #[arg(long, default_value_t = 20_000)]
    withdrawals: usize,
    /// Withdrawals of a batch.
    #[arg(long, default_value_t = 500)]
    batch: usize,
    /// Runs of each measurement; the best counts, since whatever disturbs only slows down.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Where the figures go.
    #[arg(long, default_value = "target/bench/result.json")]
    output: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.withdrawals == 0 || options.batch == 0 || options.runs == 0 {
        eprintln!("sluice-bench: --withdrawals, --batch and --runs must be at least 1");
        return ExitCode::FAILURE;
    }
    let mut report = Report::new(&options);
    let server = server::Server::start();
    report.machine(&server);
    ceiling::measure(&server, &options, &mut report);
    lifecycle::measure(&server, &options, &mut report);
    intake::measure(&server, &options, &mut report);
    report.judge();
    print!("{report}");
    match report.write(&options.output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice-bench: {}: {error}", options.output.display());
            ExitCode::FAILURE
        }
    }
}
