//! The command line: what may be asked of the runner.

use clap::{Parser, Subcommand};

use crate::settings::Flags;

const ABOUT: &str = "The sidecar of sluice: carries solid blocks of TRON into PostgreSQL, and digests to signers and signed bytes to \
     nodes. The database decides everything; any number of runners may serve one database.";

const AFTER: &str = "\
Every setting may be given as a flag, as an environment variable or in the file that --config
names; a flag wins over the environment, the environment over the file. In the file, names have
underscores and lists are TOML arrays:

    database = \"postgresql://runner@db.example/pay?sslmode=verify-full\"
    database_password = \"file:/etc/sluice/db.password\"
    node = [\"https://api.trongrid.io\", \"http://10.0.0.5:8090\"]
    solidity = [\"https://api.trongrid.io\", \"http://10.0.0.5:8091\"]
    node_api_key = \"env:TRONGRID_KEY\"
    wallet = [\"TJRabPrwbZy45sbavfcjinPJC18kjpRTv8=local:file:/etc/sluice/hot.key\"]
    batch = 200

Durations are whole numbers with ms, s, m or h; sizes with KiB, MiB or GiB. Secrets are named
by where they are (file:PATH or env:NAME), never given themselves.

Exit codes:
  0  done, or told to stop
  1  an error that trying again will not mend
  2  a wrong command line or setting
  3  an alarm: blocks contradict themselves or the database, and a person must look
  4  drain cannot end: something is due that no claim takes, or --give-up-after has passed";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "sluice-runner", version, about = ABOUT, after_help = AFTER, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// The settings given as flags.
    #[command(flatten)]
    pub flags: Flags,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work on withdrawals and follow the chain until SIGTERM or SIGINT; then finish or release what is held, and exit 0
    Run,
    /// Do the same until every withdrawal is terminal or waits for a person
    Drain {
        /// End already when nothing is due at the present clock and the node's solid head is on file
        #[arg(long)]
        once: bool,
        /// Give up (exit 4) when it is not done by then; a duration such as 90s [default: never]
        #[arg(long, value_name = "DURATION")]
        give_up_after: Option<String>,
    },
    /// Follow the chain only, until SIGTERM or SIGINT; exit 3 when a person must look
    Follow,
    /// Fetch block 0 and the newest solid block, check both, and print the SQL statement that starts a database on that chain
    StartBlock {
        /// Start at this solid block instead
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
        number: Option<i64>,
    },
    /// List the crash points of this build, one a line
    #[cfg(feature = "failpoints")]
    #[command(hide = true)]
    CrashPoints,
}
