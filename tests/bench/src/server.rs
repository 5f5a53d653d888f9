//! The server: PostgreSQL as it runs in production, every commit flushed to disk. Each measurement has a database of its own on it, so
//! that none is measured on what another left.

use std::cell::Cell;
use std::time::{Duration, Instant};

use postgres::Client;
use sluice_scenarios::{Database, Postgres};

/// What differs from PostgreSQL's own defaults, which are made for small machines.
const SETTINGS: [(&str, &str); 6] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "2GB"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "15min"),
];

/// A running server.
pub struct Server {
    postgres: Postgres,
    databases: Cell<u32>,
}

impl Server {
    /// Starts one.
    pub fn start() -> Self {
        Self {
            postgres: Postgres::start_with(&SETTINGS),
            databases: Cell::new(0),
        }
    }

    /// A database with sluice in it.
    pub fn database(&self) -> Database {
        self.databases.set(self.databases.get() + 1);
        let name = format!("bench{}", self.databases.get());
        self.postgres.createdb_with_sluice(&name)
    }

    /// What PostgreSQL calls itself.
    pub fn version(&self) -> String {
        let mut client = self.postgres.database("postgres").superuser();
        let row = client.query_one("select version()", &[]);
        row.expect("a server has a version").get(0)
    }
}

/// Gets a database ready to be measured: statistics as autovacuum would have them, and nothing left to be written from before.
pub fn settle(client: &mut Client) {
    client
        .batch_execute("vacuum analyze; checkpoint")
        .expect("a database can be vacuumed");
}

/// What it returned, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

/// How many a second.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of withdrawals are small"
)]
pub fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
