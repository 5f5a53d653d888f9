//! The database's clock, moved by the driver together with the chain's. One session does it, and nobody waits until every
//! other one has seen it: in a run full of faults a clock that some see late is one fault more.

use postgres::Client;
use sluice_scenarios::Database;

/// The clock.
pub struct DatabaseClock {
    database: Database,
    session: Option<Client>,
    off_by_ms: i64,
}

impl DatabaseClock {
    /// That of this database.
    #[must_use]
    pub fn of(database: &Database) -> Self {
        Self {
            database: database.clone(),
            session: None,
            off_by_ms: 0,
        }
    }

    /// From now on it shows so much more, or less, than the chain's.
    pub fn be_off_by(&mut self, ms: i64) {
        self.off_by_ms = ms;
    }

    /// Makes it show this moment, give or take what it is off by. A server that cannot be reached shows it later: the next
    /// step asks again.
    pub fn show(&mut self, now_ms: i64) {
        if self.try_show(now_ms + self.off_by_ms).is_err() {
            self.session = None;
        }
    }

    fn try_show(&mut self, now_ms: i64) -> Result<(), postgres::Error> {
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                let mut session = self.database.try_superuser()?;
                session.batch_execute("load 'sluice'")?;
                none.insert(session)
            }
        };
        let row = session.query_one(
            "select format('alter system set sluice.now = %L', to_timestamp($1::bigint / 1000.0))",
            &[&now_ms],
        )?;
        session.batch_execute(row.get(0))?;
        session.batch_execute("select pg_reload_conf()")
    }

    /// The server is another one, or the same on another port.
    pub fn moved_to(&mut self, database: &Database) {
        self.database = database.clone();
        self.session = None;
    }
}
