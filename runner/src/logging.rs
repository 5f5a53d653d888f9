//! Logs, on standard error: for people or as JSON, an object a line.

use std::io::IsTerminal as _;

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
    let started = match config.format {
        Format::Human => subscriber
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        Format::Json => subscriber
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
    };
    started.map_err(|error| error.to_string())
}
