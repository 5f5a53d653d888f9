//! Somebody with a runner's login hands in blocks that are none: stripped of transactions, with a gap, of another chain. The
//! database checks them itself, whatever the runner did, and stays where it was.

use postgres::Client;
use sluice_core::block::decode_block;
use sluice_mock_node::{ClockMode, Config, MockNet};
use sluice_scenarios::{Role, Scene, Wallets, Worker};

/// The SQLSTATE with which the blocks are refused.
fn refusal(runner: &mut Client, blocks: &[Vec<u8>]) -> String {
    let taken = runner.query(
        "select * from sluice.observe_blocks('by hand', $1)",
        &[&blocks],
    );
    let refused = taken.expect_err("these blocks are refused");
    let error = refused.as_db_error().expect("by the database");
    error.code().code().to_owned()
}

/// The block as a node shows it that has lost its transactions: the header alone.
fn stripped(block: &[u8]) -> Vec<u8> {
    let mut at = 0;
    while block[at] == 0x0a {
        let (mut length, mut shift) = (0, 0);
        loop {
            at += 1;
            length |= usize::from(block[at] & 0x7f) << shift;
            shift += 7;
            if block[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1 + length;
    }
    block[at..].to_vec()
}

/// A chain with the same numbers and times, and other blocks.
fn another_chain(scene: &Scene, start_ms: i64) -> MockNet {
    let other = MockNet::start_blocking(Config {
        clock: ClockMode::Stepped,
        start_ms: Some(start_ms),
        wallets: Wallets::signers(),
        seed: 2,
        ..Config::default()
    });
    let other = other.expect("another network can be started");
    other.step(u64::try_from(scene.network.now_ms() - start_ms).expect("it began earlier"));
    other
}

#[test]
fn blocks_that_are_none_or_of_another_chain_are_refused_and_hide_no_payment() {
    let scene = Scene::start();
    let start_ms = scene.network.now_ms();
    let operation_id = scene.submit(1, "25");
    let mut worker = Worker::new("by hand", &scene.database);
    let tasks = worker.claim(1);
    for task in worker.sign(&tasks) {
        let sent = scene.network.inject(&task.transaction());
        sent.expect("the network takes it");
    }
    scene.advance(120);
    let block = |number: i64| {
        scene
            .network
            .block_bytes(number)
            .expect("the block is there")
    };
    let paid_in = scene.transactions_of(operation_id)[0]
        .block
        .expect("it is in a block");
    let first = scene.followed() + 1;
    let until_paid: Vec<Vec<u8>> = (first..paid_in).map(block).collect();
    let mut runner = scene.database.as_role(Role::Runner);

    let mut without = until_paid.clone();
    without.push(stripped(&block(paid_in)));
    let shown = decode_block(&without[without.len() - 1]).expect("it is a block");
    assert_eq!((shown.number, shown.transactions.len()), (paid_in, 0));
    assert_eq!(refusal(&mut runner, &without), "SL020");

    let mut with_a_gap = until_paid.clone();
    with_a_gap.push(block(paid_in + 1));
    assert_eq!(refusal(&mut runner, &with_a_gap), "SL021", "a gap within");
    assert_eq!(
        refusal(&mut runner, &[block(first + 1)]),
        "SL021",
        "a gap before"
    );

    let other = another_chain(&scene, start_ms);
    let other = |number: i64| other.block_bytes(number).expect("the block is there");
    assert_ne!(other(first), block(first));
    assert_eq!(
        refusal(&mut runner, &[other(first)]),
        "SL021",
        "another parent"
    );
    let mixed = [block(first), other(first + 1)];
    assert_eq!(
        refusal(&mut runner, &mixed),
        "SL021",
        "two chains in one batch"
    );
    assert_eq!(
        refusal(&mut runner, &[other(first - 1)]),
        "SL021",
        "another block than the one on file"
    );

    assert_eq!(scene.followed(), first - 1, "nothing of it is on file");
    scene.follow();
    let paid: Vec<_> = scene
        .transactions_of(operation_id)
        .into_iter()
        .map(|transaction| transaction.result)
        .collect();
    assert_eq!(paid, [Some("SUCCESS".to_owned())]);
    assert_eq!(scene.state(operation_id), "confirmed");
}
