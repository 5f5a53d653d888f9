//! What these scenarios share: a scene, the withdrawals that were submitted on it, and a look at what nodes, chain and database
//! say of them. Time passes by hand, and a runner works off what is due whenever it is told to.

use serde_json::Value;
use sluice_core::envelope::Txid;
use sluice_mock_node::{Config, Fault, Rule, TxReport};
use sluice_scenarios::wait::until;
use sluice_scenarios::{Role, Runner, RunnerSetup, Scene};
use uuid::Uuid;

/// From an envelope's reference block to its expiration, as a new database has it.
pub const TIME_TO_LIVE_S: u64 = 300;

/// From a send to the moment its block is solid, and less than the time after which it would be sent again.
pub const SOLID_AFTER_S: u64 = 21 * 3;

/// Past the time after which the same bytes are sent again.
pub const RESEND_S: u64 = 78;

/// A scene and its withdrawals.
pub struct Stage {
    pub scene: Scene,
    submitted: Vec<Uuid>,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with another network.
    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self {
            scene: Scene::start_with(change),
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

    /// All of them.
    pub fn submitted(&self) -> &[Uuid] {
        &self.submitted
    }

    /// A withdrawal that meets this fault, once.
    pub fn submit_that_meets(&mut self, fault: Fault) -> Uuid {
        let operation_id = self.submit();
        self.fault(Rule::new(fault).operation(operation_id).times(1));
        operation_id
    }

    /// Something goes wrong from now on.
    pub fn fault(&self, rule: Rule) -> u64 {
        self.scene.network.add_fault(rule).expect("a fault")
    }

    /// It goes wrong no more.
    pub fn mend(&self, rule: u64) {
        assert!(self.scene.network.remove_fault(rule), "the rule is there");
    }

    /// A runner, not yet started, that waits for a node no longer than it must.
    pub fn runner(&self) -> RunnerSetup {
        self.scene.runner("one").set("SLUICE_SEND_TIMEOUT", "300ms")
    }

    /// The same, with this node for the only one.
    pub fn runner_at(&self, node: usize) -> RunnerSetup {
        self.runner()
            .set("SLUICE_NODE", &self.scene.network.url(node))
    }

    /// A runner that works until it is dropped.
    pub fn run(&self) -> Runner {
        self.runner().start(&["run"])
    }

    /// Follows to the solid block and works off all that is due.
    pub fn work_off(&self) {
        work_off_by(self.runner());
    }

    /// Lets time pass, and everything be done that becomes due on the way.
    pub fn pass(&self, seconds: u64) {
        let mut left = seconds;
        while left > 0 {
            let some = left.min(RESEND_S);
            self.scene.advance(some);
            self.work_off();
            left -= some;
        }
    }

    /// Does as an operator.
    pub fn operate(&self, statement: &str) {
        let mut operator = self.scene.database.as_role(Role::Operator);
        operator
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
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

    /// The withdrawal's only envelope.
    pub fn envelope(&self, operation_id: Uuid) -> Txid {
        let envelopes = self.envelopes(operation_id);
        let [only] = envelopes.as_slice() else {
            panic!("{operation_id}: one envelope: {envelopes:?}")
        };
        *only
    }

    /// What the network knows of a transaction.
    pub fn on_chain(&self, txid: &Txid) -> TxReport {
        self.scene.network.transaction(txid).expect("it was sent")
    }

    /// The evidence that the log gives for each envelope of the withdrawal that died.
    pub fn deaths(&self, operation_id: Uuid) -> Vec<Value> {
        let rows = self.scene.database.superuser().query(
            "select detail from sluice.timeline($1) where to_state = 'signing' and detail ->> 'fate' = 'dead'",
            &[&operation_id],
        );
        rows.expect("a timeline can be read")
            .iter()
            .map(|row| row.get(0))
            .collect()
    }

    /// What `sluice.stuck` says of the withdrawal.
    pub fn stuck(&self, operation_id: Uuid) -> Option<String> {
        let row = self.scene.database.superuser().query_opt(
            "select why from sluice.stuck where operation_id = $1",
            &[&operation_id],
        );
        row.expect("stuck can be read").map(|row| row.get(0))
    }

    /// Each withdrawal was paid by the one transaction that there ever was of it, whatever nodes made of it meanwhile.
    pub fn assert_each_paid_by_its_only_transaction(&self) {
        for operation_id in &self.submitted {
            let transactions = self.scene.transactions_of(*operation_id);
            let [paid] = transactions.as_slice() else {
                panic!("{operation_id}: one transaction: {transactions:#?}")
            };
            assert_eq!(
                (paid.result.as_deref(), paid.solid),
                (Some("SUCCESS"), true),
                "{operation_id}: {paid:#?}"
            );
            assert_eq!(self.envelope(*operation_id), paid.txid);
            assert_eq!(self.scene.state(*operation_id), "confirmed");
        }
        self.scene.assert_books_agree();
    }

    /// The withdrawal's first transaction never came into a block, was proven dead, and the second paid.
    pub fn assert_paid_by_the_second_after_a_proof(&self, operation_id: Uuid) {
        let built = self.envelopes(operation_id);
        let [first, second] = built.as_slice() else {
            panic!("{operation_id}: two envelopes: {built:?}")
        };
        if let Some(sent) = self.scene.network.transaction(first) {
            assert_eq!(sent.block, None, "{operation_id}: {sent:#?}");
        }
        let paid = self.on_chain(second);
        assert_eq!(
            (paid.result.as_deref(), paid.solid),
            (Some("SUCCESS"), true),
            "{operation_id}: {paid:#?}"
        );
        assert_eq!(self.scene.state(operation_id), "confirmed");
        let deaths = self.deaths(operation_id);
        let [death] = deaths.as_slice() else {
            panic!("{operation_id}: one death: {deaths:?}")
        };
        assert_eq!(death["txid"].as_str(), Some(first.to_string().as_str()));
    }

    /// Starts a runner that follows and works until it says that it could not read a block, and ends it.
    pub fn look_in_vain(&self, complaint: &str) {
        let mut runner = self.run();
        until(&format!("the runner says {complaint:?}"), || {
            runner.log().contains(complaint).then_some(())
        });
        let ended = runner.terminate();
        assert!(ended.success(), "{ended}");
    }
}

/// Has this runner follow to the solid block and work off all that is due.
pub fn work_off_by(runner: RunnerSetup) {
    runner.start(&["drain", "--once"]).ends_well();
}

/// A node's answer to a broadcast, true or not; with `keep` the node takes the transaction all the same.
pub fn answer(code: &str, message: &str, keep: bool) -> Fault {
    Fault::Answer {
        code: code.to_owned(),
        message: message.to_owned(),
        keep,
        result: None,
    }
}
