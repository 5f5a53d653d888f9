//! The main job at some size: five hundred withdrawals, two runners, two nodes that lie now and then.

use std::collections::BTreeSet;

use sluice_core::address::Address;
use sluice_core::envelope::Txid;
use sluice_mock_node::{Fault, Rule, Silence};
use sluice_scenarios::{Role, Runner, Scene, destination, wait};

const WITHDRAWALS: i64 = 500;

/// In each way the network lies to a twentieth of the calls.
fn lies() -> Vec<Rule> {
    let busy = Fault::Answer {
        code: "SERVER_BUSY".to_owned(),
        message: String::new(),
        keep: false,
        result: None,
    };
    let refused_and_kept = Fault::Answer {
        code: "OTHER_ERROR".to_owned(),
        message: String::new(),
        keep: true,
        result: None,
    };
    [
        Fault::AcceptThenTimeout {
            how: Silence::Reset,
        },
        Fault::DropThenTimeout {
            how: Silence::Close,
        },
        busy,
        refused_and_kept,
    ]
    .into_iter()
    .map(|fault| Rule::new(fault).with_probability(0.05))
    .collect()
}

fn submit_all(scene: &Scene) {
    let destinations: Vec<String> = (0..50).map(|n| destination(n).to_string()).collect();
    let inserted = scene
        .database
        .as_role(Role::App)
        .execute(
            "insert into sluice.withdrawals (operation_id, to_address, amount, asset)
             select md5(i::text)::uuid, ($1::text[])[1 + i % 50], (i * 1.000001)::numeric(38,6), 'USDT-TRC20'
               from generate_series(1, $2::bigint) i",
            &[&destinations, &WITHDRAWALS],
        )
        .expect("the withdrawals are taken");
    assert_eq!(inserted, WITHDRAWALS as u64);
}

fn count(scene: &Scene, condition: &str) -> i64 {
    let query = format!("select count(*) from sluice.withdrawals where {condition}");
    scene
        .database
        .superuser()
        .query_one(&query, &[])
        .expect("withdrawals can be counted")
        .get(0)
}

/// What the database says each wallet has paid: address, transfers, base units.
fn paid_by_the_database(scene: &Scene) -> BTreeSet<(Address, u64, String)> {
    let rows = scene
        .database
        .superuser()
        .query(
            "select wallet, count(*), sum(amount_units)::text
               from sluice.withdrawals where state = 'confirmed' group by wallet",
            &[],
        )
        .expect("withdrawals can be summed");
    rows.iter()
        .map(|row| {
            let wallet: String = row.get(0);
            let count: i64 = row.get(1);
            (
                Address::parse(&wallet).expect("a wallet is an address"),
                count as u64,
                row.get(2),
            )
        })
        .collect()
}

/// What the solid chain says.
fn paid_by_the_chain(scene: &Scene) -> BTreeSet<(Address, u64, String)> {
    let totals = scene.network.totals();
    totals
        .into_iter()
        .map(|total| (total.owner, total.solid_transfers, total.solid_units))
        .collect()
}

#[test]
fn five_hundred_withdrawals_through_two_runners_are_each_accepted_and_paid_once() {
    let scene = Scene::start_with(|config| {
        config.nodes = 2;
        config.faults = lies();
    });
    submit_all(&scene);
    let _runners: Vec<Runner> = ["one", "two"]
        .map(|worker_id| {
            scene
                .runner(worker_id)
                .set("SLUICE_SEND_TIMEOUT", "2s")
                .start(&["run"])
        })
        .into();

    // The clocks stand until all is sent: else a slow machine would let envelopes expire, and have them rebuilt.
    wait::until("every withdrawal is sent", || {
        (count(&scene, "sent_ms is not null") == WITHDRAWALS).then_some(())
    });
    scene.let_time_pass_until("every withdrawal is confirmed", || {
        (count(&scene, "state = 'confirmed'") == WITHDRAWALS).then_some(())
    });

    assert_eq!(paid_by_the_database(&scene), paid_by_the_chain(&scene));
    let transactions = scene.network.transactions();
    assert_eq!(transactions.len(), WITHDRAWALS as usize);
    for transaction in &transactions {
        assert_eq!(transaction.accepts, 1, "{transaction:?}");
        assert_eq!(
            transaction.result.as_deref(),
            Some("SUCCESS"),
            "{transaction:?}"
        );
    }
    let operations = scene.network.tags();
    assert_eq!(operations.len(), WITHDRAWALS as usize);
    assert!(
        operations
            .values()
            .all(|operation| operation.successes == 1)
    );
    let workers: BTreeSet<&String> = transactions
        .iter()
        .flat_map(|transaction| &transaction.workers)
        .collect();
    assert_eq!(workers.len(), 2, "both runners carried");
    for lie in scene.network.faults() {
        assert!(lie.struck > 0, "never told: {lie:?}");
    }
    no_transaction_that_the_database_does_not_know(
        &scene,
        &transactions.iter().map(|known| known.txid).collect(),
    );
}

fn no_transaction_that_the_database_does_not_know(scene: &Scene, sent: &BTreeSet<Txid>) {
    let rows = scene
        .database
        .superuser()
        .query("select txid from sluice.envelopes", &[]);
    let known: BTreeSet<Txid> = rows
        .expect("envelopes can be read")
        .iter()
        .map(|row| Txid::from_bytes(row.get(0)).expect("a txid has 32 bytes"))
        .collect();
    assert_eq!(&known, sent);
}
