//! The program: read the command line and the settings, start logging, do what was asked, say why it ended.

use std::process::ExitCode;

use clap::Parser as _;
use sluice_runner::cli::Cli;
use sluice_runner::commands::{Failure, perform};
use sluice_runner::config::Config;
use sluice_runner::logging;
use sluice_runner::settings::Settings;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Kept to the end: dropping it takes the points away again.
    #[cfg(feature = "failpoints")]
    let _scenario = fail::FailScenario::setup();
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The log may be off, or not begun: why it ended is said in any case, in one line.
            eprintln!("sluice-runner: {failure}");
            failure.exit_code()
        }
    }
}

fn start(cli: Cli) -> Result<(), Failure> {
    let settings = Settings::gather(&cli.flags, |name| std::env::var(name).ok())?;
    let config = Config::read(settings)?;
    logging::start(&config.log).map_err(Failure::Other)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("no runtime: {error}")))?;
    runtime.block_on(perform(cli.command, config))
}
