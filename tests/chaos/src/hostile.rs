//! A session that does harm: it leaves transactions open on rows that others need, and locks rows in the wrong order.

use std::thread::{self, JoinHandle};

use postgres::Client;
use sluice_scenarios::Database;

/// How often it looks whether somebody waits for it, before it makes the deadlock; each look takes the server a moment.
const LOOKS: u32 = 200;

/// The session.
#[derive(Default)]
pub struct Hostile {
    open: Option<Client>,
    locking: Vec<JoinHandle<()>>,
}

impl Hostile {
    /// Locks so many withdrawals that are due next, and the chain, and keeps its transaction open.
    pub fn hold(&mut self, database: &Database, rows: i64) {
        // What it holds already it would wait for itself.
        self.open = None;
        self.open = hold(database, rows).ok();
    }

    /// Locks half of the withdrawals, those with the higher ids, waits until somebody waits for one, and then wants the rest:
    /// who waits has locked some of them before.
    pub fn lock_backwards(&mut self, database: &Database) {
        let database = database.clone();
        self.locking.push(thread::spawn(move || {
            // That it comes to nothing, or is the one that the server ends, is as good: the server's log says which.
            let _ = lock_backwards(&database);
        }));
    }

    /// Ends all that it holds.
    pub fn release(&mut self) {
        self.open = None;
        for thread in self.locking.drain(..) {
            if thread.join().is_err() {
                eprintln!("the hostile session panicked");
            }
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.release();
    }
}

fn hold(database: &Database, rows: i64) -> Result<Client, postgres::Error> {
    let mut session = database.try_superuser()?;
    session.batch_execute("set lock_timeout = '1s'; begin")?;
    // Whoever files blocks waits for this one.
    session.query("select from sluice.chain for update", &[])?;
    session.query(
        "select from sluice.withdrawals where due_at is not null order by due_at limit $1 for update skip locked",
        &[&rows],
    )?;
    Ok(session)
}

fn lock_backwards(database: &Database) -> Result<(), postgres::Error> {
    let mut session = database.try_superuser()?;
    session.batch_execute("set statement_timeout = '5s'; begin")?;
    // Whoever works on several withdrawals locks them in the order of their ids, and waits for these last.
    let held = session.query(
        "select operation_id from sluice.withdrawals where state not in ('confirmed', 'failed', 'rejected')
          order by operation_id desc
          limit (select count(*) / 2 from sluice.withdrawals where state not in ('confirmed', 'failed', 'rejected'))
            for update skip locked",
        &[],
    )?;
    let Some(lowest) = held.last() else {
        return Ok(());
    };
    let lowest: uuid::Uuid = lowest.get(0);
    for _ in 0..LOOKS {
        let waiting = session.query_one(
            "select exists (select from pg_stat_activity a where pg_backend_pid() = any (pg_blocking_pids(a.pid))), pg_sleep(0.01)",
            &[],
        )?;
        if waiting.get(0) {
            // Those before them, in whatever order: who waits holds some, and one of us must give way.
            session.query(
                "select from sluice.withdrawals where state not in ('confirmed', 'failed', 'rejected') and operation_id < $1 for update",
                &[&lowest],
            )?;
            break;
        }
    }
    session.batch_execute("rollback")
}
