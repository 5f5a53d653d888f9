//! What these scenarios share: a scene whose runners reach the database through a proxy, and the withdrawals that were
//! submitted on it, which at the end must be all that was ever paid.

use sluice_scenarios::wait::until;
use sluice_scenarios::{CommitRule, Proxy, RuleId, Runner, RunnerSetup, Scene, Strike};
use uuid::Uuid;

/// Past the lease of whatever was claimed when it began, and past every back-off.
pub const PAST_EVERY_LEASE_S: u64 = 60;

/// From a send to the moment its block is solid, and less than the time after which it would be sent again.
pub const SOLID_AFTER_S: u64 = 21 * 3;

/// A scene with a proxy before its database. Fields end in the order written.
pub struct Stage {
    pub proxy: Proxy,
    pub scene: Scene,
    submitted: Vec<Uuid>,
}

impl Stage {
    pub fn new() -> Self {
        Self::on(Scene::start())
    }

    pub fn on(scene: Scene) -> Self {
        Self {
            proxy: Proxy::to(&scene.database),
            scene,
            submitted: vec![],
        }
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

    /// A runner, not yet started. Sending takes it no longer than it must.
    pub fn setup(&self) -> RunnerSetup {
        self.scene
            .runner_through(&self.proxy, "one")
            .set("SLUICE_SEND_TIMEOUT", "1s")
    }

    /// A runner that works until it is dropped.
    pub fn run(&self) -> Runner {
        self.setup().start(&["run"])
    }

    /// Strikes the next commit of this call, once.
    pub fn strike_once(&self, strike: Strike, call: &str) -> RuleId {
        self.proxy.add(CommitRule::new(strike).of(call).times(1))
    }

    /// Lets a new withdrawal be sent: whoever works now has gone on since whatever befell it before.
    pub fn let_another_be_sent(&mut self) {
        let another = self.submit();
        self.scene.wait_until_state(another, "broadcast");
    }

    /// Waits until all of them are in one of these states.
    pub fn wait_until_all_are(&self, states: &[&str]) {
        let mut superuser = self.scene.database.superuser();
        until(&format!("all are {states:?}"), || {
            let others = superuser.query_one(
                "select count(*) from sluice.withdrawals where state::text <> all ($1)",
                &[&states],
            );
            (others.expect("withdrawals can be counted").get::<_, i64>(0) == 0).then_some(())
        });
    }

    /// Lets everything come to its end, and shows that each was paid once and nothing else. Somebody must work.
    pub fn finish(&self) {
        self.scene.advance(PAST_EVERY_LEASE_S);
        // The clocks stand until all is sent: else envelopes would expire while a runner waits before it tries again.
        self.wait_until_all_are(&["broadcast", "confirmed"]);
        self.scene.advance(SOLID_AFTER_S);
        self.wait_until_all_are(&["confirmed"]);
        // A chain that seems stale would let the next claim find nothing to do.
        self.scene.wait_until_followed();
        self.scene
            .assert_each_paid_once_and_nothing_else(&self.submitted);
    }

    /// One value about a withdrawal.
    pub fn about<T>(&self, operation_id: Uuid, expression: &str) -> T
    where
        T: for<'a> postgres::types::FromSql<'a>,
    {
        let query = format!(
            "select {expression} from sluice.withdrawals w left join sluice.envelopes e using (operation_id)
              where operation_id = $1"
        );
        let row = self
            .scene
            .database
            .superuser()
            .query_one(&query, &[&operation_id]);
        row.expect("a withdrawal has at most one envelope here")
            .get(0)
    }
}
