//! The ground that many walks share: a server, a network of two nodes, the withdrawals that walk there, and what must have
//! become of each.

use std::ops::RangeInclusive;

use sluice_core::envelope::Txid;
use sluice_mock_node::{Fault, Rule};
use sluice_runner::crash::Point;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Postgres, Role, Runner, RunnerSetup, Scene};
use uuid::Uuid;

use crate::fault::NodeFault;
use crate::leg::{Leg, leg_of};

/// From a send to the moment its block is solid, and less than the time after which it would be sent again.
pub const SOLID_AFTER_S: u64 = 21 * 3;

/// Past the lease of whoever was struck, and past every postponement.
pub const PAST_EVERY_LEASE_S: u64 = 60;

/// Between two looks of a runner: past the time after which the same bytes are sent again.
const BETWEEN_LOOKS_S: u64 = 76;

/// The longest way to an end has fewer.
const MOST_LOOKS: usize = 20;

/// How far a lagging node is behind.
const LAG_BLOCKS: i64 = 6;

/// Where walks take place.
pub struct Ground {
    pub scene: Scene,
    walks: Vec<Walk>,
}

/// A withdrawal on its way.
#[derive(Debug, Clone)]
pub struct Walk {
    pub point: Point,
    pub fault: NodeFault,
    pub operation_id: Uuid,
    /// How many transactions of it may have been sent in the end.
    transactions: RangeInclusive<usize>,
    rule: Option<u64>,
}

/// What a write of anybody to a withdrawal would change.
#[derive(Debug, PartialEq, Eq)]
pub struct Standing {
    pub operation_id: Uuid,
    pub state: String,
    pub attempt: i32,
    pub fencing_token: i64,
    pub seq: i32,
    pub hash: Vec<u8>,
}

impl Walk {
    /// What it is called when it fails, and the runner that is struck on it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.point.name(), self.fault.name())
    }
}

impl Ground {
    pub fn new() -> Self {
        // What a crash of the server would lose is not what is asked here.
        let postgres = Postgres::start_with(&[("fsync", "off")]);
        Self {
            scene: Scene::start_on(postgres, |config| config.nodes = 2),
            walks: vec![],
        }
    }

    /// Envelopes live so long from now on.
    pub fn set_time_to_live(&self, time_to_live: &str) {
        let mut operator = self.scene.database.as_role(Role::Operator);
        operator
            .execute(
                "select from sluice.set_setting('time_to_live', $1, 'for the walk')",
                &[&time_to_live],
            )
            .expect("a setting can be changed");
    }

    /// A withdrawal that sets out with this before it, and that so many transactions may be sent of.
    pub fn set_out(
        &mut self,
        point: Point,
        fault: NodeFault,
        transactions: RangeInclusive<usize>,
    ) -> Walk {
        let n = u32::try_from(self.walks.len()).expect("a few hundred");
        let operation_id = self.scene.submit(n, "25");
        let rule = fault.rule(operation_id);
        let walk = Walk {
            point,
            fault,
            operation_id,
            transactions,
            rule: rule.map(|rule| self.scene.network.add_fault(rule).expect("a fault")),
        };
        self.walks.push(walk.clone());
        self.lag(if fault == NodeFault::Lagging {
            LAG_BLOCKS
        } else {
            0
        });
        walk
    }

    fn lag(&self, blocks: i64) {
        self.scene
            .network
            .change_node(0, |node| node.lag = blocks)
            .expect("there is a first node");
    }

    /// Keeps the first transaction of a withdrawal that is to die out of every block, once it is built.
    pub fn keep_out(&self, walk: &Walk) {
        if walk.fault != NodeFault::NeverIncluded {
            return;
        }
        let first = self.scene.database.superuser().query_opt(
            "select txid from sluice.envelopes where operation_id = $1 and attempt = 1",
            &[&walk.operation_id],
        );
        let Some(first) = first.expect("envelopes can be read") else {
            return;
        };
        let txid = Txid::from_bytes(first.get(0)).expect("a txid has 32 bytes");
        let known = self
            .scene
            .network
            .faults()
            .iter()
            .any(|known| known.rule.when.txid == Some(txid));
        if !known {
            let never = Rule::new(Fault::NeverInclude {}).txid(txid);
            self.scene.network.add_fault(never).expect("a fault");
        }
    }

    /// A runner, not yet started, that waits no longer than it must.
    pub fn runner(&self, name: &str) -> RunnerSetup {
        self.scene
            .runner(name)
            .set("SLUICE_SEND_TIMEOUT", "300ms")
            .set("SLUICE_LOG", "info")
    }

    /// Follows to the solid block and does all that is due, under another name.
    pub fn work_off(&self) {
        self.runner("heir").start(&["drain", "--once"]).ends_well();
    }

    /// Leads a runner to the walk's point, where `action` befalls it, and returns it when it has: dead, or standing still.
    pub fn lead_to_point(
        &self,
        walk: &Walk,
        setup: RunnerSetup,
        action: &str,
        command: &[&str],
    ) -> Runner {
        let name = walk.name();
        let point = walk.point.name();
        let mut setup = setup.set("FAILPOINTS", &format!("{point}={action}"));
        match leg_of(walk.point) {
            Leg::Work => {}
            Leg::Postpone => setup = setup.set("SLUICE_WALLET", ""),
            Leg::Observe => {
                self.work_off();
                self.keep_out(walk);
                self.scene.advance(SOLID_AFTER_S);
            }
            Leg::Release => {
                // Besides what else befalls the send, its answer is long in coming: the runner holds it when it is to end.
                let late = Fault::Delay {
                    ms: 600_000,
                    before: false,
                };
                let late = Rule::new(late).worker(&name).operation(walk.operation_id);
                self.scene.network.add_fault(late).expect("a fault");
                setup = setup
                    .set("SLUICE_SEND_TIMEOUT", "60s")
                    .set("SLUICE_STOP_GRACE", "0s");
            }
        }
        let mut runner = setup.start(command);
        if leg_of(walk.point) == Leg::Release {
            self.scene
                .wait_until_state(walk.operation_id, "broadcasting");
            runner.ask_to_end();
        }
        let reached = format!("crash point {point} reached");
        until(&format!("{name}: the point is reached"), || {
            assert!(
                runner.log().contains(&reached) || runner.ended().is_none(),
                "{name}: it ended and never came to the point"
            );
            runner.log().contains(&reached).then_some(())
        });
        self.keep_out(walk);
        runner
    }

    /// Lets time pass, with a look of a runner now and then, until all are confirmed or nothing more is to be expected.
    pub fn finish(&self) {
        self.scene.advance(PAST_EVERY_LEASE_S);
        for _ in 0..MOST_LOOKS {
            self.look();
            let left = self.not_confirmed();
            if left.is_empty() {
                break;
            }
            let all_wait = left
                .iter()
                .all(|walk| walk.fault == NodeFault::NeverIncluded);
            match self.first_death_in_s().filter(|_| all_wait) {
                Some(death_in_s) => self.scene.advance(death_in_s),
                None => self.scene.advance(BETWEEN_LOOKS_S),
            }
        }
        self.lag(0);
    }

    /// Follows and works off, and keeps out of the blocks what is to stay out.
    pub fn look(&self) {
        self.work_off();
        for walk in &self.walks {
            self.keep_out(walk);
        }
    }

    /// Where each withdrawal stands.
    pub fn rows(&self) -> Vec<Standing> {
        let rows = self.scene.database.superuser().query(
            "select operation_id, state::text, attempt, fencing_token, seq, hash from sluice.withdrawals order by operation_id",
            &[],
        );
        rows.expect("withdrawals can be read")
            .iter()
            .map(|row| Standing {
                operation_id: row.get(0),
                state: row.get(1),
                attempt: row.get(2),
                fencing_token: row.get(3),
                seq: row.get(4),
                hash: row.get(5),
            })
            .collect()
    }

    fn not_confirmed(&self) -> Vec<&Walk> {
        let rows = self.scene.database.superuser().query(
            "select operation_id from sluice.withdrawals where state <> 'confirmed'",
            &[],
        );
        let rows = rows.expect("withdrawals can be read");
        let left: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        self.walks
            .iter()
            .filter(|walk| left.contains(&walk.operation_id))
            .collect()
    }

    /// When the first of the envelopes that are kept out of every block is known to be dead, from now.
    fn first_death_in_s(&self) -> Option<u64> {
        let expiration = self.scene.database.superuser().query_one(
            "select min(expiration_ms) from sluice.envelopes where fate is null and attempt = 1",
            &[],
        );
        let expiration: Option<i64> = expiration.expect("envelopes can be read").get(0);
        let left_s = (expiration? - self.scene.network.now_ms()) / 1000;
        u64::try_from(left_s)
            .ok()
            .map(|left_s| left_s + SOLID_AFTER_S)
    }

    /// What is not as it must be: each walk by its name.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints: Vec<String> = self
            .walks
            .iter()
            .filter_map(|walk| Some(format!("{}: {}", walk.name(), self.complaint(walk)?)))
            .collect();
        // Money that left for nobody.
        let sent = self.scene.network.transactions().len();
        let known: usize = self
            .walks
            .iter()
            .map(|walk| self.scene.transactions_of(walk.operation_id).len())
            .sum();
        if sent != known {
            complaints.push(format!(
                "{sent} transactions were sent, and {known} are ours"
            ));
        }
        complaints
    }

    fn complaint(&self, walk: &Walk) -> Option<String> {
        let transactions = self.scene.transactions_of(walk.operation_id);
        let paid: Vec<_> = transactions
            .iter()
            .filter(|transaction| transaction.block.is_some())
            .collect();
        let [payment] = paid.as_slice() else {
            return Some(format!("{} payments: {transactions:#?}", paid.len()));
        };
        if (payment.result.as_deref(), payment.solid) != (Some("SUCCESS"), true) {
            return Some(format!("not a solid success: {payment:#?}"));
        }
        if !walk.transactions.contains(&transactions.len()) {
            return Some(format!(
                "{} transactions: {transactions:#?}",
                transactions.len()
            ));
        }
        if let Some(twice) = transactions
            .iter()
            .find(|transaction| transaction.accepts > 1)
        {
            return Some(format!("taken as new twice: {twice:#?}"));
        }
        let state = self.scene.state(walk.operation_id);
        if state != "confirmed" {
            return Some(format!("it is {state}"));
        }
        let struck = |id| {
            let rules = self.scene.network.faults();
            rules.iter().any(|rule| rule.id == id && rule.struck > 0)
        };
        if walk.rule.is_some_and(|id| !struck(id)) {
            return Some("its fault never struck".to_owned());
        }
        None
    }
}
