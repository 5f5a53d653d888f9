//! What a run plays on: a network, a server with sluice in it, runners, clients, an operator, and the clocks, which one loop
//! moves. What was struck is counted here, where it really happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use postgres::Client;
use sluice_core::address::Address;
use sluice_mock_node::{ClockMode, Config as NetworkConfig, MockNet};
use sluice_scenarios::disk::Disk;
use sluice_scenarios::place::{scratch, scratch_in};
use sluice_scenarios::{Database, Postgres, Role, Wallets, scene, wait};
use uuid::Uuid;

use crate::accounts;
use crate::clients::Clients;
use crate::clock::DatabaseClock;
use crate::config::Config;
use crate::hostile::Hostile;
use crate::kind::Kind;
use crate::link::Link;
use crate::workers::{FOLLOW, Worker};

/// When every run begins: 2026-01-01 00:00:00 UTC, the beginning of a slot.
const BEGINNING_MS: i64 = 1_767_225_600_000;
/// The network's nodes; a runner asks them in an order of its own.
const NODES: usize = 3;
/// Clients at a time.
const CLIENTS: usize = 4;
/// Room for a small server with its log, and soon filled.
const DISK_MIB: u32 = 512;
/// A second login of runners, for a second observer.
pub const OTHER_LOGIN: &str = "chaos_runner";

/// A second token, with more digits than the first and a depth.
pub const OTHER_ASSET: &str = "USDD-TRC20";

/// Shorter than the defaults, so that envelopes expire within a run; an envelope still lives a minute and more at the head.
const SETTINGS: [(&str, &str); 3] = [
    ("time_to_live", "200 seconds"),
    ("resend", "30 seconds"),
    ("lease", "20 seconds"),
];

/// Something that a fault has changed and that is to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// A frozen runner goes on.
    Thaw(usize),
    /// A new process in a runner's place.
    Start(usize),
    /// A node is as it was.
    Node(usize),
    /// Blocks become solid again.
    Solidity,
    /// The operator resumes.
    Resume {
        /// The wallet that was paused; all, where none is named.
        wallet: Option<String>,
    },
    /// The database's clock shows what the chain's does.
    Clock,
    /// The hostile session lets go.
    Hostile,
    /// Nobody waits for a standby any more.
    Replication,
    /// One observer is enough again.
    Observers,
    /// The disk has room again.
    Disk,
    /// The server runs again.
    Server,
}

/// The stage. Fields end in the order written.
pub struct Stage {
    /// The runners, and as the last the follower that reads one node only.
    pub workers: Vec<Worker>,
    /// The clients.
    pub clients: Clients,
    /// The session that locks.
    pub hostile: Hostile,
    /// The database's clock.
    pub clock: DatabaseClock,
    /// The network.
    pub network: MockNet,
    /// The database.
    pub database: Database,
    /// The server.
    pub postgres: Postgres,
    /// The server's disk, where it has one of its own.
    pub disk: Option<Disk>,
    /// What is to be put back, and at which step.
    pub undo: Vec<(u64, Undo)>,
    /// Withdrawals that the operator cancelled, as the database acknowledged.
    pub cancelled: BTreeSet<Uuid>,
    /// How often each kind struck, rules of the network aside.
    pub struck: BTreeMap<Kind, u64>,
    /// What looked wrong on the way.
    pub remarks: Vec<String>,
    /// How the run was set up.
    pub config: Config,
    session: Option<Client>,
}

impl Stage {
    /// Sets the stage. Nobody works yet.
    #[must_use]
    pub fn set(config: &Config) -> Self {
        fs::create_dir_all(&config.keep)
            .unwrap_or_else(|error| panic!("{}: {error}", config.keep.display()));
        let network = MockNet::start_blocking(NetworkConfig {
            nodes: NODES,
            clock: ClockMode::Stepped,
            start_ms: Some(BEGINNING_MS),
            seed: config.seed,
            foreign_per_block: 1,
            wallets: Wallets::signers(),
            ..NetworkConfig::default()
        })
        .expect("the network can be started");
        let disk = config.server_wide.then(|| Disk::mount(DISK_MIB)).flatten();
        let directory = match &disk {
            Some(disk) => scratch_in(disk.path(), "pg"),
            None => scratch("pg"),
        };
        let postgres = Postgres::start_in(
            directory,
            &[("deadlock_timeout", "100ms"), ("max_wal_size", "64MB")],
        );
        let database = postgres.createdb_with_sluice("sluice");
        let mut clock = DatabaseClock::of(&database);
        clock.show(network.now_ms());
        wait::until("the database's clock stands", || {
            let row = database
                .superuser()
                .query_one("select current_setting('sluice.now', true) <> ''", &[]);
            row.expect("a setting can be read")
                .get::<_, Option<bool>>(0)
                .filter(|stands| *stands)
        });
        scene::set_up(&database, &network);
        let mut operator = database.as_role(Role::Operator);
        for (name, value) in SETTINGS {
            operator
                .query_one(
                    "select from sluice.set_setting($1, $2, 'chaos is short')",
                    &[&name, &value],
                )
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        operator
            .query_one(
                "select from sluice.set_asset($1, $2, 18, '0.000001', '1000000', 90000000, 4, true)",
                &[&OTHER_ASSET, &Address::from_body([0x77; 20]).to_string()],
            )
            .expect("a second asset can be set up");
        accounts::open(
            &mut operator,
            &["USDT-TRC20", OTHER_ASSET],
            config.withdrawals,
        );
        let mut stage = Self {
            workers: vec![],
            clients: Clients::start(CLIENTS, &database),
            hostile: Hostile::default(),
            clock,
            network,
            postgres,
            disk,
            undo: vec![],
            cancelled: BTreeSet::new(),
            struck: BTreeMap::new(),
            remarks: vec![],
            config: config.clone(),
            session: None,
            database,
        };
        stage.hire();
        if config.server_wide {
            stage.give_half_of_the_runners_another_login();
        }
        stage
    }

    fn hire(&mut self) {
        let urls = self.network.urls();
        for index in 0..self.config.workers {
            let mut nodes = urls.clone();
            nodes.rotate_left(index % urls.len());
            self.workers
                .push(self.worker(&format!("runner{index}"), "run", nodes));
        }
        self.workers.push(self.worker("follower", FOLLOW, urls));
    }

    fn worker(&self, place: &str, command: &'static str, nodes: Vec<String>) -> Worker {
        Worker::new(
            place,
            command,
            nodes,
            &self.database,
            self.config.keep.clone(),
        )
    }

    /// Everybody begins.
    pub fn begin(&mut self) {
        for index in 0..self.workers.len() {
            self.start(index);
        }
    }

    /// A process in this place, if there is none.
    pub fn start(&mut self, index: usize) {
        self.workers[index].start(&self.database, None);
    }

    /// The place of the follower that reads one node only.
    #[must_use]
    pub fn follower(&self) -> usize {
        self.workers.len() - 1
    }

    /// Counts a strike that happened.
    pub fn count(&mut self, kind: Kind, times: u64) {
        *self.struck.entry(kind).or_default() += times;
    }

    /// To be put back at that step.
    pub fn later(&mut self, step: u64, undo: Undo) {
        self.undo.push((step, undo));
    }

    /// The superuser's session of the driver; none while the server is away.
    pub fn superuser(&mut self) -> Option<&mut Client> {
        if self.session.as_ref().is_none_or(Client::is_closed) {
            self.session = self.database.try_superuser().ok();
        }
        self.session.as_mut()
    }

    /// Asks the database something; `None` where it cannot be asked now, for whatever reason.
    pub fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Option<T> {
        let answer = ask(self.superuser()?);
        match answer {
            Ok(answer) => Some(answer),
            Err(_) => {
                self.session = None;
                None
            }
        }
    }

    /// The session is another server's.
    pub fn forget_session(&mut self) {
        self.session = None;
    }

    /// A session of the operator, who does not wait long for what others hold; none while commits would wait for ever.
    #[must_use]
    pub fn operator(&self) -> Option<Client> {
        if self.undo.iter().any(|(_, undo)| *undo == Undo::Replication) {
            return None;
        }
        let mut operator = self.database.try_as_role(Role::Operator).ok()?;
        operator
            .batch_execute("set statement_timeout = '500ms'")
            .ok()?;
        Some(operator)
    }

    /// Moves the chain and the database's clock on.
    pub fn advance(&mut self, seconds: u64) {
        self.network.step(seconds * 1000);
        self.clock.show(self.network.now_ms());
    }

    /// How often each kind struck, by the network's own count for its rules.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Kind, u64> {
        let mut counts = self.struck.clone();
        let rules = self.network.faults();
        for kind in Kind::ALL {
            let struck: u64 = rules
                .iter()
                .filter(|status| status.rule.label == kind.name())
                .map(|status| status.struck)
                .sum();
            *counts.entry(*kind).or_default() += struck;
        }
        *counts.entry(Kind::CutCommit).or_default() += self.links().map(Link::struck).sum::<u64>();
        *counts.entry(Kind::DuplicateSubmit).or_default() += self.clients.duplicates();
        *counts.entry(Kind::ConflictingSubmit).or_default() += self.clients.conflicts();
        counts
    }

    /// Whether the database has read the newest solid block.
    pub fn is_followed(&mut self) -> bool {
        let solid = self.network.status().solid;
        self.ask(|client| client.query_one("select max(number) from sluice.blocks", &[]))
            .is_some_and(|row| row.get::<_, i64>(0) >= solid)
    }

    /// What is not over yet; `None` where the database cannot be asked now.
    pub fn left(&mut self) -> Option<Left> {
        let row = self.ask(|client| {
            client.query_one(
                "select count(*), count(*) filter (where due_at <= sluice.now()),
                        (select count(*) from sluice.envelopes where fate is null)
                   from sluice.withdrawals where due_at is not null",
                &[],
            )
        })?;
        let count = |column| row.get::<_, i64>(column).unsigned_abs();
        Some(Left {
            withdrawals: count(0),
            due: count(1),
            in_flight: count(2),
        })
    }

    /// No link cuts any more.
    pub fn mend_links(&self) {
        for link in self.links() {
            link.be_sound();
        }
    }

    /// Every way to the database.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.workers
            .iter()
            .map(Worker::link)
            .chain(self.clients.links())
    }

    /// Ends the runners that still carry a crash point.
    pub fn relieve_crash_points(&mut self) {
        for worker in self.workers.iter_mut().filter(|worker| worker.is_doomed()) {
            worker.kill();
        }
    }

    /// Kinds of this run that cannot strike on this machine.
    #[must_use]
    pub fn left_out(&self) -> Vec<(Kind, &'static str)> {
        if self.config.server_wide && self.disk.is_none() {
            return vec![(Kind::DiskFull, "no tmpfs can be mounted here")];
        }
        vec![]
    }
}

/// What is not over yet.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    /// Withdrawals that are neither over nor parked.
    pub withdrawals: u64,
    /// Of them, those that are due.
    pub due: u64,
    /// Envelopes that can still pay.
    pub in_flight: u64,
}
