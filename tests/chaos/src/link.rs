//! A way to the database: a proxy that stays at one port wherever the server goes, and that strikes at commits, so that
//! whoever sent one never learns whether it was made.

use std::sync::Mutex;

use sluice_scenarios::Database;
use sluice_scenarios::proxy::{CommitRule, Proxy, RuleId, Strike};

/// The way.
#[derive(Debug)]
pub struct Link {
    proxy: Proxy,
    rules: Mutex<Vec<RuleId>>,
}

impl Link {
    /// To this database's server.
    #[must_use]
    pub fn to(database: &Database) -> Self {
        Self {
            proxy: Proxy::to(database),
            rules: Mutex::default(),
        }
    }

    /// The URL, with this way in place of the server's own address.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        let (before, rest) = url.split_once('@').expect("a URL of this scaffold");
        let (_, name) = rest.split_once('/').expect("a URL of this scaffold");
        format!("{before}@127.0.0.1:{}/{name}", self.proxy.port())
    }

    /// New connections go to this database's server.
    pub fn lead_to(&self, database: &Database) {
        self.proxy.lead_to(database);
    }

    /// Strikes at the next commit of a transaction that holds this text.
    pub fn strike_next_commit(&self, strike: Strike, of: &str) {
        let rule = self.proxy.add(CommitRule::new(strike).of(of).times(1));
        self.rules().push(rule);
    }

    /// Strikes no more, and lets go what it holds back.
    pub fn be_sound(&self) {
        self.proxy.be_sound();
        self.proxy.release();
    }

    /// How many commits it has struck.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.rules()
            .iter()
            .map(|rule| u64::from(self.proxy.struck(*rule)))
            .sum()
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Vec<RuleId>> {
        self.rules
            .lock()
            .expect("nobody panics while holding this lock")
    }
}
