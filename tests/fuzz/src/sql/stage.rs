//! Withdrawals in every state on a chain that pays them, honest work in between, so that there is always something to break, and a
//! judge who asks at the end whether anything is broken.

use serde_json::json;
use sluice_mock_node::{Fault, Rule};
use sluice_scenarios::worker::Task;
use sluice_scenarios::{Role, Scene, Wallets, Worker, destination};
use uuid::Uuid;

use crate::session::Draws;
use crate::sql::catalog::Catalog;
use crate::sql::session::{Session, Who};
use crate::sql::values::{Built, Held, Known};

/// Who an honest worker says it is.
const WORKER: &str = "by hand";

/// The stage.
pub struct Stage {
    /// The scene. Its end asks `sluice.verify()`.
    pub scene: Scene,
    /// What there is to call.
    pub catalog: Catalog,
    /// What stands, as of the last honest round.
    pub known: Known,
    /// Everybody's connection.
    pub sessions: Vec<Session>,
    submitted: u32,
}

impl Stage {
    /// A chain, wallets, and withdrawals: some confirmed, one failed, one rejected, the others on their way.
    ///
    /// # Panics
    /// Where it cannot be put up.
    #[must_use]
    pub fn open(draws: &mut Draws) -> Self {
        let scene = Scene::start();
        let catalog = Catalog::of(&mut scene.database.superuser());
        let sessions = Who::ALL
            .iter()
            .map(|who| Session::open(&scene.database, *who))
            .collect();
        let mut stage = Self {
            scene,
            catalog,
            known: Known::default(),
            sessions,
            submitted: 0,
        };
        stage.submit(draws, 12);
        stage.work(|_, task| task < 5, draws);
        stage.submit(draws, 6);
        stage.work(|_, task| task < 3, draws);
        let rejected = stage.submit(draws, 1)[0];
        let mut operator = stage.scene.database.as_role(Role::Operator);
        operator
            .query("select sluice.cancel($1, 'not wanted')", &[&rejected])
            .expect("what nothing was built for can be cancelled");
        stage.look();
        stage
    }

    fn submit(&mut self, draws: &mut Draws, count: u32) -> Vec<Uuid> {
        let mut app = self.scene.database.as_role(Role::App);
        (0..count)
            .map(|_| {
                self.submitted += 1;
                let id = Uuid::from_bytes(draws.next(&proptest::prelude::any::<[u8; 16]>()));
                let to = destination(self.submitted).to_string();
                // An asset's limits, and its being paused, are what they are after others' calls.
                let taken = app.query("select from sluice.submit($1, $2, '1.5')", &[&id, &to]);
                taken.expect("a withdrawal is taken");
                id
            })
            .collect()
    }

    /// Claims, signs and sends; `sends` says which of the tasks, and the first of those that are sent reverts on chain. Then time
    /// passes and blocks are followed.
    fn work(&mut self, sends: impl Fn(&Task, usize) -> bool, draws: &mut Draws) {
        let mut worker = Worker::new(WORKER, &self.scene.database);
        let tasks = worker.claim(8);
        let (_, to_sign): (Vec<_>, Vec<_>) =
            tasks.into_iter().partition(|task| task.signature.is_some());
        let some = to_sign.len().saturating_sub(1);
        let signed = worker.sign(&to_sign[..some]);
        let sent: Vec<Task> = signed
            .into_iter()
            .enumerate()
            .filter_map(|(place, task)| sends(&task, place).then_some(task))
            .collect();
        if let Some(first) = sent.first() {
            let result = (*draws.pick(&["REVERT", "OUT_OF_ENERGY"])).to_owned();
            let rule = Rule::new(Fault::Receipt { result }).operation(first.operation_id);
            self.scene
                .network
                .add_fault(rule)
                .expect("the network knows this fault");
        }
        for task in &sent {
            self.scene
                .network
                .inject(&task.transaction())
                .expect("a transaction of ours is one");
        }
        worker.answer(&sent, "SUCCESS");
        self.scene.advance(90);
        let _settled = self.scene.follow();
    }

    /// An honest hour: what others have set is set back, what they hold runs out, and some more withdrawals are paid.
    ///
    /// # Panics
    /// Where honest work is not possible any more.
    pub fn honest_round(&mut self, draws: &mut Draws) {
        let mut operator = self.scene.database.as_role(Role::Operator);
        for (name, value) in [
            ("freshness", "90 s"),
            ("time_to_live", "300 s"),
            ("margin_blocks", "0"),
            ("lease", "30 s"),
            ("resend", "75 s"),
            ("attempts", "5"),
            ("observers", "1"),
        ] {
            operator
                .query(
                    "select sluice.set_setting($1, $2, 'set back')",
                    &[&name, &value],
                )
                .expect("a default is within its bounds");
        }
        operator
            .batch_execute(
                "select sluice.resume('set back', p.wallet, p.asset) from sluice.pauses p where p.resumed_at is null;
                 select sluice.set_asset('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, '0.000001', '1000000', 100000000, 0, true)",
            )
            .expect("what was paused is resumed, and the asset set back");
        self.submit(draws, 3);
        self.work(|_, _| true, draws);
        self.look();
    }

    /// Takes note of what stands now.
    fn look(&mut self) {
        let mut superuser = self.scene.database.superuser();
        let rows = superuser
            .query(
                "select w.operation_id, w.fencing_token, e.txid, e.raw_data, e.signature
                   from sluice.withdrawals w
                   left join sluice.envelopes e on e.operation_id = w.operation_id and e.attempt = w.attempt
                  order by w.operation_id
                  limit 200",
                &[],
            )
            .expect("withdrawals can be read");
        self.known.held = rows
            .iter()
            .map(|row| Held {
                operation_id: row.get(0),
                fencing_token: row.get(1),
                envelope: row.get::<_, Option<Vec<u8>>>(2).map(|txid| Built {
                    txid,
                    raw_data: row.get(3),
                    signature: row.get(4),
                }),
            })
            .collect();
        self.known.addresses = vec![
            Wallets::hmac().to_string(),
            Wallets::local().to_string(),
            destination(1).to_string(),
            "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".to_owned(),
        ];
        let head = self.scene.network.status().head;
        self.known.blocks = (head - 30..=head)
            .filter_map(|number| self.scene.network.block_bytes(number))
            .collect();
    }

    /// Nothing ended, nothing is broken, and no money moved that should not have.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn judge(&self) {
        let log = self.scene.postgres.log();
        let crash = log
            .lines()
            .find(|line| line.contains("terminated by signal") || line.contains("PANIC:"));
        assert_eq!(crash, None, "a backend crashed");
        self.money();
        let broken = self.scene.database.broken_invariants();
        assert!(
            broken.is_empty(),
            "invariants that do not hold: {broken:#?}"
        );
        let mut superuser = self.scene.database.superuser();
        for (what, query) in [
            (
                "withdrawals with several live envelopes",
                "select operation_id::text from sluice.envelopes where fate is null group by operation_id having count(*) > 1",
            ),
            (
                "withdrawals whose log does not end where they stand",
                "select w.operation_id::text
                   from sluice.withdrawals w
                   left join lateral (
                     select e.seq, e.to_state, e.hash from sluice.events e
                      where e.operation_id = w.operation_id order by e.seq desc limit 1
                   ) e on true
                  where (w.seq, w.state, w.hash) is distinct from (e.seq, e.to_state, e.hash)",
            ),
        ] {
            let rows = superuser.query(query, &[]).expect("tables can be read");
            let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            assert!(found.is_empty(), "{what}: {found:?}");
        }
    }

    /// What is confirmed was paid once, and nothing was paid twice, as the network's own record has it.
    fn money(&self) {
        let rows = self
            .scene
            .database
            .superuser()
            .query(
                "select operation_id, state::text from sluice.withdrawals",
                &[],
            )
            .expect("withdrawals can be read");
        let tags = self.scene.network.tags();
        let mut confirmed = 0;
        for row in &rows {
            let (id, state): (Uuid, String) = (row.get(0), row.get(1));
            let tag = hex::encode(sluice_core::envelope::tag(id.into_bytes()));
            let successes = tags.get(&tag).map_or(0, |report| report.successes);
            assert!(successes <= 1, "{id} was paid {successes} times");
            assert!(
                state != "confirmed" || successes == 1,
                "{id} is confirmed, and was never paid"
            );
            assert!(
                state != "failed" && state != "rejected" || successes == 0,
                "{id} is {state}, and was paid"
            );
            confirmed += u32::from(state == "confirmed");
        }
        assert!(
            confirmed >= 3,
            "there was nothing to break: {}",
            json!(tags)
        );
    }
}
