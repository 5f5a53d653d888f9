//! What these scenarios share: a scene, the withdrawals that were submitted on it, and a look at their rows.

use sluice_core::envelope::Txid;
use sluice_mock_node::LogFilter;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Role, Runner, RunnerSetup, Scene, Wallets};
use uuid::Uuid;

/// Past the lease of whatever was claimed when it began, and past every short back-off.
pub const PAST_EVERY_LEASE_S: u64 = 60;

/// From a send to the moment its block is solid, and less than the time after which it would be sent again.
pub const SOLID_AFTER_S: u64 = 21 * 3;

/// Past the expiration of an envelope that was just built, and past the block that proves it dead.
pub const DEATH_S: u64 = 300 + SOLID_AFTER_S;

/// A scene and its withdrawals.
pub struct Stage {
    pub scene: Scene,
    submitted: Vec<Uuid>,
}

/// How far a withdrawal is: what a write of anybody would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub state: String,
    pub seq: i32,
    pub hash: Vec<u8>,
    pub fencing_token: i64,
    pub due_at: Option<String>,
}

impl Stage {
    pub fn new() -> Self {
        Self {
            scene: Scene::start(),
            submitted: vec![],
        }
    }

    /// The same with one wallet that signs as TRON demands, and no mock.
    pub fn with_a_real_signer() -> Self {
        let stage = Self::new();
        stage.operate(
            "select from sluice.pause('no mock here', $1)",
            &Wallets::hmac().to_string(),
        );
        stage
    }

    /// Does as an operator, with one argument.
    pub fn operate(&self, statement: &str, argument: &str) {
        let mut operator = self.scene.database.as_role(Role::Operator);
        operator
            .execute(statement, &[&argument])
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Does as the superuser.
    pub fn as_superuser(&self, statements: &str) {
        let mut superuser = self.scene.database.superuser();
        superuser
            .batch_execute(statements)
            .unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    /// A withdrawal.
    pub fn submit(&mut self) -> Uuid {
        let n = u32::try_from(self.submitted.len()).expect("a few");
        let operation_id = self.scene.submit(n, "25");
        self.submitted.push(operation_id);
        operation_id
    }

    /// So many withdrawals.
    pub fn submit_many(&mut self, count: usize) -> Vec<Uuid> {
        (0..count).map(|_| self.submit()).collect()
    }

    /// A runner of this name, not yet started, that waits for a node no longer than it must.
    pub fn runner(&self, name: &str) -> RunnerSetup {
        self.scene.runner(name).set("SLUICE_SEND_TIMEOUT", "1s")
    }

    /// A runner that will stand still at this point, standing there.
    pub fn stopped_at(&self, setup: RunnerSetup, point: &str) -> Runner {
        let mut runner = setup
            .set("FAILPOINTS", &format!("{point}=1*return(stop)"))
            .start(&["drain", "--once"]);
        let reached = format!("crash point {point} reached");
        until(&reached, || {
            assert!(runner.ended().is_none(), "{point}: it ended before");
            runner.log().contains(&reached).then_some(())
        });
        runner
    }

    /// Follows and works off all that is due, under the name of an heir.
    pub fn work_off(&self) {
        self.runner("heir").start(&["drain", "--once"]).ends_well();
    }

    /// Lets an heir bring everything to its end, and shows that each withdrawal was paid once and nothing else.
    pub fn finish(&self) {
        self.scene.advance(PAST_EVERY_LEASE_S);
        self.work_off();
        self.scene.advance(SOLID_AFTER_S);
        self.work_off();
        self.scene
            .assert_each_paid_once_and_nothing_else(&self.submitted);
    }

    /// How often this worker sent something of this withdrawal.
    pub fn sends_by(&self, worker: &str, operation_id: Uuid) -> usize {
        let filter = LogFilter {
            worker: Some(worker.to_owned()),
            ..LogFilter::default()
        };
        let ours: Vec<Txid> = self
            .scene
            .transactions_of(operation_id)
            .iter()
            .map(|transaction| transaction.txid)
            .collect();
        self.scene
            .network
            .sends(&filter)
            .iter()
            .filter(|sent| sent.txid.is_some_and(|txid| ours.contains(&txid)))
            .count()
    }

    /// The withdrawal's envelopes, in the order they were built.
    pub fn envelopes(&self, operation_id: Uuid) -> Vec<Txid> {
        let rows = self.scene.database.superuser().query(
            "select txid from sluice.envelopes where operation_id = $1 order by attempt",
            &[&operation_id],
        );
        rows.expect("envelopes can be read")
            .iter()
            .map(|row| Txid::from_bytes(row.get(0)).expect("a txid has 32 bytes"))
            .collect()
    }

    /// How long the withdrawal's newest envelope has until its expiration.
    pub fn left_of_envelope_s(&self, operation_id: Uuid) -> u64 {
        let row = self.scene.database.superuser().query_one(
            "select max(expiration_ms) from sluice.envelopes where operation_id = $1",
            &[&operation_id],
        );
        let expiration_ms: i64 = row.expect("it has an envelope").get(0);
        let left_ms = expiration_ms - self.scene.network.now_ms();
        u64::try_from(left_ms).expect("it is not over") / 1000
    }

    /// Whether a worker holds the withdrawal.
    pub fn is_leased(&self, operation_id: Uuid) -> bool {
        let row = self.scene.database.superuser().query_one(
            "select leased_by is not null from sluice.withdrawals where operation_id = $1",
            &[&operation_id],
        );
        row.expect("the withdrawal is there").get(0)
    }

    /// Where the withdrawal stands.
    pub fn standing(&self, operation_id: Uuid) -> Standing {
        let row = self.scene.database.superuser().query_one(
            "select state::text, seq, hash, fencing_token, due_at::text from sluice.withdrawals where operation_id = $1",
            &[&operation_id],
        );
        let row = row.expect("the withdrawal is there");
        Standing {
            state: row.get(0),
            seq: row.get(1),
            hash: row.get(2),
            fencing_token: row.get(3),
            due_at: row.get(4),
        }
    }

    /// Where all of them stand.
    pub fn standings(&self) -> Vec<Standing> {
        self.submitted.iter().map(|id| self.standing(*id)).collect()
    }

    /// What `sluice.stuck` says of the withdrawal.
    pub fn stuck(&self, operation_id: Uuid) -> Option<String> {
        let row = self.scene.database.superuser().query_opt(
            "select why from sluice.stuck where operation_id = $1",
            &[&operation_id],
        );
        row.expect("stuck can be read").map(|row| row.get(0))
    }

    /// What `sluice.explain` says holds the withdrawal.
    pub fn held_by(&self, operation_id: Uuid) -> Option<String> {
        let row = self
            .scene
            .database
            .superuser()
            .query_one("select held_by from sluice.explain($1)", &[&operation_id]);
        row.expect("it can be explained").get(0)
    }

    /// Waits until the withdrawal's last error begins so.
    pub fn wait_until_last_error(&self, operation_id: Uuid, begins: &str) {
        let mut superuser = self.scene.database.superuser();
        until(&format!("the last error is {begins}"), || {
            superuser
                .query_opt(
                    "select from sluice.withdrawals where operation_id = $1 and starts_with(last_error, $2)",
                    &[&operation_id, &begins],
                )
                .expect("withdrawals can be read")
                .map(drop)
        });
    }
}
