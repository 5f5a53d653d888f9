//! Logs, on standard error: for people or as JSON, an object a line. Only what the runner itself says: the libraries under it
//! log headers and statements, and with them what nobody should read there.

use std::io::IsTerminal as _;

use tracing::subscriber::set_global_default;
use tracing_subscriber::EnvFilter;

use crate::config::LogConfig;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// For machines: `timestamp`, `level`, `target`, `message` and the event's own fields, on one level.
    Json,
}

/// Starts logging, once for the process.
pub fn start(config: &LogConfig) -> Result<(), String> {
    let filter = EnvFilter::try_new(&config.filter).map_err(|error| error.to_string())?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // Not `init`, which would also take in what libraries say through the crate `log`.
    let started = match config.format {
        Format::Human => set_global_default(
            subscriber
                .with_ansi(std::io::stderr().is_terminal())
                .finish(),
        ),
        Format::Json => set_global_default(
            subscriber
                .json()
                .flatten_event(true)
                .with_current_span(false)
                .with_span_list(false)
                .finish(),
        ),
    };
    started.map_err(|error| error.to_string())
}
