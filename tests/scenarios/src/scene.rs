//! A whole sluice: a database with the extension, its wallets, and the network that it follows from a solid block on. The
//! chain's clock and the database's stand still together and move together, by hand.

use std::collections::BTreeMap;
use std::thread;

use postgres::Client;
use sluice_mock_node::{ClockMode, Config, MockNet};
use uuid::Uuid;

use crate::postgres::{Database, Postgres, Role, Stop};
use crate::proxy::Proxy;
use crate::runner::RunnerSetup;
use crate::wait::until;
use crate::wallets::{Wallets, destination};

/// When every scene begins: 2026-01-01 00:00:00 UTC, the beginning of a slot.
const BEGINNING_MS: i64 = 1_767_225_600_000;

/// The most blocks handed in at once.
const BLOCKS_AT_ONCE: i64 = 100;

/// What stands on the stage. Fields end in the order written: the network before the database.
pub struct Scene {
    /// The TRON network.
    pub network: MockNet,
    /// The database.
    pub database: Database,
    /// The server that holds it.
    pub postgres: Postgres,
}

impl Scene {
    /// Java-tron's own figures: a block every 3 s, solid after 19 more, one node.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// The same with another network.
    #[must_use]
    pub fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(Postgres::start(), change)
    }

    /// The same on a server that is there.
    #[must_use]
    pub fn start_on(postgres: Postgres, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            clock: ClockMode::Stepped,
            start_ms: Some(BEGINNING_MS),
            wallets: Wallets::signers(),
            ..Config::default()
        };
        change(&mut config);
        let network = MockNet::start_blocking(config).expect("the network can be started");
        let database = postgres.createdb_with_sluice("sluice");
        let scene = Self {
            network,
            database,
            postgres,
        };
        set_up(&scene.database, &scene.network);
        scene.show_chain_time();
        scene
    }

    /// Stops the server and starts it again; connections through a proxy find it there again.
    pub fn restart_postgres(&mut self, how: Stop, proxy: &Proxy) {
        self.postgres.stop(how);
        // What the proxy still held is held by nobody any more.
        proxy.cut_all();
        self.start_postgres_again(proxy);
    }

    /// Starts the server again after it has ended.
    pub fn start_postgres_again(&mut self, proxy: &Proxy) {
        self.postgres.launch();
        self.database = self.postgres.database(self.database.name());
        proxy.lead_to(&self.database);
    }

    /// Moves chain time and the database's clock on; blocks appear on the way.
    pub fn advance(&self, seconds: u64) {
        self.network.step(seconds * 1000);
        self.show_chain_time();
    }

    /// Lets time pass, some blocks at a time and each followed, until there is an answer. Somebody must follow.
    pub fn let_time_pass_until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        until(what, || {
            let seen = look();
            if seen.is_none() {
                self.advance(15);
                self.wait_until_followed();
            }
            seen
        })
    }

    /// Makes the database's clock show what the chain's does.
    pub fn show_chain_time(&self) {
        self.database.set_clock_ms(self.network.now_ms());
    }

    /// Hands the database every solid block that it has not read, as a runner would, and returns what they settled.
    pub fn follow(&self) -> BTreeMap<Uuid, String> {
        let mut runner = self.database.as_role(Role::Runner);
        let solid = self.network.status().solid;
        let mut settled = BTreeMap::new();
        let mut next = self.followed() + 1;
        while next <= solid {
            let last = solid.min(next + BLOCKS_AT_ONCE - 1);
            let blocks: Vec<Vec<u8>> = (next..=last)
                .map(|number| {
                    self.network
                        .block_bytes(number)
                        .expect("a solid block is there")
                })
                .collect();
            let rows = runner
                .query(
                    "select operation_id, state::text from sluice.observe_blocks('by hand', $1)",
                    &[&blocks],
                )
                .expect("solid blocks are taken");
            settled.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
            next = last + 1;
        }
        settled
    }

    /// Waits until a runner has followed to the network's solid block.
    pub fn wait_until_followed(&self) {
        let mut superuser = self.database.superuser();
        until("the solid block is followed", || {
            (newest_block(&mut superuser) >= self.network.status().solid).then_some(())
        });
    }

    /// The newest block that the database has read.
    #[must_use]
    pub fn followed(&self) -> i64 {
        newest_block(&mut self.database.superuser())
    }

    /// A runner of this scene, not yet started.
    #[must_use]
    pub fn runner(&self, worker_id: &str) -> RunnerSetup {
        RunnerSetup::new(worker_id, &self.database, &self.network.urls())
    }

    /// A runner of this scene that reaches the database through a proxy, not yet started.
    #[must_use]
    pub fn runner_through(&self, proxy: &Proxy, worker_id: &str) -> RunnerSetup {
        let database = self.database.through(proxy);
        RunnerSetup::new(worker_id, &database, &self.network.urls())
    }

    /// Submits a withdrawal of so much USDT to the `n`th destination.
    pub fn submit(&self, n: u32, amount: &str) -> Uuid {
        let operation_id = Uuid::new_v4();
        self.database
            .as_role(Role::App)
            .query_one(
                "select from sluice.submit($1, $2, $3)",
                &[&operation_id, &destination(n).to_string(), &amount],
            )
            .expect("the withdrawal is taken");
        operation_id
    }

    /// The withdrawal's state.
    #[must_use]
    pub fn state(&self, operation_id: Uuid) -> String {
        self.database
            .superuser()
            .query_one(
                "select state::text from sluice.withdrawals where operation_id = $1",
                &[&operation_id],
            )
            .expect("the withdrawal is there")
            .get(0)
    }

    /// Waits until the withdrawal is in that state.
    pub fn wait_until_state(&self, operation_id: Uuid, state: &str) {
        let mut superuser = self.database.superuser();
        until(&format!("{operation_id} is {state}"), || {
            superuser
                .query_opt(
                    "select from sluice.withdrawals where operation_id = $1 and state::text = $2",
                    &[&operation_id, &state],
                )
                .expect("withdrawals can be read")
                .map(drop)
        });
    }
}

fn newest_block(client: &mut Client) -> i64 {
    client
        .query_one("select max(number) from sluice.blocks", &[])
        .expect("followed blocks can be read")
        .get(0)
}

/// However a scenario went, its tables agree with each other and with the followed blocks.
impl Drop for Scene {
    fn drop(&mut self) {
        if thread::panicking() || !self.postgres.is_running() {
            return;
        }
        let broken = self.database.broken_invariants();
        assert!(
            broken.is_empty(),
            "invariants that do not hold: {broken:#?}"
        );
    }
}

/// Adds the wallets, and follows from the network's solid block.
pub fn set_up(database: &Database, network: &MockNet) {
    let mut operator = database.as_role(Role::Operator);
    for (address, signer) in [(Wallets::hmac(), "hmac"), (Wallets::local(), "secp256k1")] {
        operator
            .query_one(
                "select from sluice.add_wallet($1, $2)",
                &[&address.to_string(), &signer],
            )
            .expect("the wallet can be added");
    }
    let first = network.status().solid;
    let block = network
        .block_bytes(first)
        .expect("the solid block is there");
    operator
        .query_one(
            "select from sluice.follow_from($1, $2)",
            &[&block, &network.genesis().as_slice()],
        )
        .expect("the solid block can be followed from");
}
