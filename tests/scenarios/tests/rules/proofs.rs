//! What followed blocks prove, handed in one at a time around the block that decides: nothing before it, and all of it then. There
//! is no runner here that could be late and so seem right.

use std::ops::RangeInclusive;

use postgres::Client;
use sluice_core::address::Address;
use sluice_core::envelope::{Txid, signed_transaction};
use sluice_core::signature::hmac_sign;
use sluice_mock_node::{Fault, Rule};
use sluice_scenarios::worker::Task;
use sluice_scenarios::{Role, Scene, Wallets, Worker};
use uuid::Uuid;

/// Longer than an envelope lives and its last block needs to be solid.
const PAST_ITS_END_S: u64 = 420;

/// A withdrawal with a signed envelope, and a runner's login that hands blocks in.
struct Case {
    follower: Client,
    worker: Worker,
    operation_id: Uuid,
    task: Task,
    scene: Scene,
}

impl Case {
    fn new() -> Self {
        Self::on(Scene::start())
    }

    fn on(scene: Scene) -> Self {
        let operation_id = scene.submit(1, "25");
        let mut worker = Worker::new("by hand", &scene.database);
        let claimed = worker.claim(1);
        let task = worker.sign(&claimed).remove(0);
        Self {
            follower: scene.database.as_role(Role::Runner),
            worker,
            operation_id,
            task,
            scene,
        }
    }

    fn send(&self) {
        let sent = self.scene.network.inject(&self.task.transaction());
        sent.expect("the network takes it");
    }

    /// Hands these blocks in, as one batch.
    fn follow(&mut self, numbers: RangeInclusive<i64>) {
        hand_in(&self.scene, &mut self.follower, numbers);
    }

    /// The first block stamped at or past the envelope's expiration, once the chain has it.
    fn closing(&self) -> i64 {
        let row = self.scene.database.superuser().query_one(
            "select expiration_ms from sluice.envelopes where txid = $1",
            &[&self.task.txid.as_bytes().as_slice()],
        );
        let expiration_ms: i64 = row.expect("the envelope is on file").get(0);
        self.scene
            .network
            .blocks()
            .iter()
            .find(|block| block.timestamp_ms >= expiration_ms)
            .expect("the chain is that far")
            .number
    }

    /// The fate of the withdrawal's first envelope.
    fn fate(&self) -> String {
        let row = self.scene.database.superuser().query_one(
            "select fate from sluice.fate($1)",
            &[&self.task.txid.as_bytes().as_slice()],
        );
        row.expect("the envelope is on file").get(0)
    }

    fn envelopes(&self) -> i64 {
        let row = self.scene.database.superuser().query_one(
            "select count(*) from sluice.envelopes where operation_id = $1",
            &[&self.operation_id],
        );
        row.expect("envelopes can be counted").get(0)
    }

    fn set(&self, setting: &str, value: &str) {
        let set = self.scene.database.as_role(Role::Operator).execute(
            "select sluice.set_setting($1, $2, 'a test')",
            &[&setting, &value],
        );
        set.expect("the setting is within its bounds");
    }

    /// It waits for what the chain said, and for no error of its turn.
    fn assert_put_off_for_no_error(&self) {
        let row = self.scene.database.superuser().query_one(
            "select last_error from sluice.withdrawals where operation_id = $1",
            &[&self.operation_id],
        );
        let error: Option<String> = row.expect("it is there").get(0);
        assert!(
            error
                .as_deref()
                .is_none_or(|error| error.contains("the chain said")),
            "{error:?}"
        );
    }
}

fn hand_in(scene: &Scene, follower: &mut Client, numbers: RangeInclusive<i64>) {
    let blocks: Vec<Vec<u8>> = numbers
        .map(|number| scene.network.block_bytes(number).expect("it is there"))
        .collect();
    follower
        .query(
            "select from sluice.observe_blocks('by hand', $1)",
            &[&blocks],
        )
        .expect("blocks are taken");
}

/// Its only transaction comes in the last block that may hold it, after so many missed slots; each block is read by itself.
fn paid_at_the_last_moment(missed_slots: u32) {
    let mut case = Case::new();
    // The reference is as old as a block must be to be solid, and the next block is the last one that may hold it.
    case.scene.advance(300 - 57 - 3);
    case.send();
    case.scene.network.miss(missed_slots);
    case.scene.advance(PAST_ITS_END_S);
    let closing = case.closing();
    let paid = case.scene.transactions_of(case.operation_id);
    assert_eq!(paid[0].block, Some(closing));

    let next = case.scene.followed() + 1;
    case.follow(next..=closing - 2);
    for number in closing - 1..=closing + 1 {
        case.follow(number..=number);
    }
    assert_eq!(case.scene.state(case.operation_id), "confirmed");
    assert_eq!((case.fate().as_str(), case.envelopes()), ("included", 1));
}

#[test]
fn whoever_reads_block_by_block_sees_the_payment_in_the_last_block_that_may_hold_it() {
    paid_at_the_last_moment(0);
    paid_at_the_last_moment(2);
}

#[test]
fn a_death_counts_at_the_block_that_closes_its_time_and_the_margin_beyond_it_and_no_sooner() {
    for margin in [0, 4] {
        let mut case = Case::new();
        case.set("margin_blocks", &margin.to_string());
        case.scene.advance(PAST_ITS_END_S);
        let proven = case.closing() + margin;
        let next = case.scene.followed() + 1;
        case.follow(next..=proven - 1);
        assert_eq!(case.fate(), "in flight", "margin {margin}");
        case.follow(proven..=proven);
        assert_eq!(case.fate(), "dead", "margin {margin}");
        assert_eq!(case.scene.state(case.operation_id), "signing");
    }
}

#[test]
fn where_two_observers_are_asked_for_a_death_counts_once_both_have_read_every_block_of_it() {
    let mut case = Case::new();
    case.set("observers", "2");
    let after_reference = case.scene.followed() + 1;
    case.scene.advance(PAST_ITS_END_S);
    let closing = case.closing();
    case.follow(after_reference..=closing);
    assert_eq!(case.fate(), "in flight", "one login's word");

    let mut second = case.scene.database.superuser();
    second
        .batch_execute(
            "create role second_observer in role sluice_runner; set session authorization second_observer",
        )
        .expect("a second login");
    for (numbers, what) in [
        (after_reference..=closing - 2, "not to the end"),
        (closing..=closing, "with a gap"),
        (after_reference + 1..=closing - 1, "not from the beginning"),
    ] {
        hand_in(&case.scene, &mut second, numbers);
        assert_eq!(case.fate(), "in flight", "the second read it {what}");
    }
    hand_in(&case.scene, &mut second, after_reference..=after_reference);
    assert_eq!(case.fate(), "dead", "both read all of it");
}

#[test]
fn a_success_confirms_at_its_depth_and_not_a_block_sooner() {
    let scene = Scene::start();
    let set_depth = "update sluice.assets set depth = 3";
    scene
        .database
        .superuser()
        .batch_execute(set_depth)
        .expect("a depth can be set");
    let mut case = Case::on(scene);
    case.send();
    case.scene.advance(120);
    let paid_in = case.scene.transactions_of(case.operation_id)[0].block;
    let paid_in = paid_in.expect("it is in a block");
    let next = case.scene.followed() + 1;
    case.follow(next..=paid_in + 2);
    assert_eq!(case.scene.state(case.operation_id), "broadcast");
    case.follow(paid_in + 3..=paid_in + 3);
    assert_eq!(case.scene.state(case.operation_id), "confirmed");
    assert_eq!(case.envelopes(), 1);
}

#[test]
fn what_ran_out_of_energy_is_built_anew_in_a_later_slot_since_equal_bytes_would_be_the_same_transaction()
 {
    // Blocks that are solid soon, and a reference at the very beginning of its slot.
    let scene = Scene::start_with(|config| config.solidity_lag = 2);
    scene.advance(6);
    scene.follow();
    let mut case = Case::on(scene);
    let out_of_energy = Rule::new(Fault::Receipt {
        result: "OUT_OF_ENERGY".to_owned(),
    });
    case.scene
        .network
        .add_fault(out_of_energy)
        .expect("a fault");
    case.send();
    case.scene.advance(12);
    case.scene.follow();
    assert_eq!(case.scene.state(case.operation_id), "signing");
    assert!(case.worker.claim(1).is_empty());
    case.assert_put_off_for_no_error();

    case.scene.advance(60);
    case.scene.follow();
    let rebuilt: Vec<Txid> = case.worker.claim(1).iter().map(|task| task.txid).collect();
    assert_eq!(rebuilt.len(), 1);
    assert_ne!(rebuilt[0], case.task.txid);
}

/// Other bytes that the same wallet signed, with the same tag: they pay somebody else.
fn twin(task: &Task, to: &Address) -> Vec<u8> {
    let mut raw_data = task.raw_data.clone();
    let recipient = [0xd5_u8; 16];
    let at = raw_data
        .windows(recipient.len())
        .position(|window| window == recipient)
        .expect("the calldata names the destination");
    raw_data[at..at + 20].copy_from_slice(&to.as_bytes()[1..]);
    let signature = hmac_sign(Wallets::HMAC_KEY.as_bytes(), &Txid::of(&raw_data));
    signed_transaction(&raw_data, &signature)
}

#[test]
fn a_transaction_that_only_bears_the_withdrawals_tag_settles_nothing() {
    let case = Case::new();
    assert_eq!(case.task.wallet, Wallets::hmac());
    let somebody = sluice_scenarios::destination(99);
    let sent = case.scene.network.inject(&twin(&case.task, &somebody));
    let foreign = sent.expect("the network takes it");
    assert_ne!(foreign, case.task.txid);
    case.scene.advance(66);
    let on_chain = case
        .scene
        .network
        .transaction(&foreign)
        .expect("it was sent");
    assert_eq!(on_chain.result.as_deref(), Some("SUCCESS"));
    case.scene.follow();
    assert_eq!(case.scene.state(case.operation_id), "broadcasting");
    assert_eq!(case.fate(), "in flight");

    case.send();
    case.scene.advance(66);
    case.scene.follow();
    assert_eq!(case.scene.state(case.operation_id), "confirmed");
    assert_eq!(case.fate(), "included");
    assert_eq!(case.envelopes(), 1);
}
