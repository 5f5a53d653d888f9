//! The network's own record of what was sent and what became of it.

use serde_json::{Value, json};
use sluice_core::units::Units;
use sluice_mock_node::{Config, Fault, LogFilter, Rule, Tag};

use crate::scene::{Scene, TOKEN, stepped};

#[tokio::test]
async fn the_log_says_who_sent_what_to_whom_when_and_what_was_answered() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    let envelope = scene.envelope(1);
    scene.net.step(1_234);
    let now = scene.net.now_ms();
    let body = json!({ "transaction": hex::encode(envelope.bytes()) });
    scene
        .client
        .post(format!("{}/wallet/broadcasthex", scene.net.url(1)))
        .header("user-agent", "sluice-runner/0.1.0 (host-7)")
        .body(body.to_string())
        .send()
        .await
        .expect("an answer");
    scene.send_to(0, &envelope).await;
    let [first, second] = scene
        .net
        .sends(&LogFilter::default())
        .try_into()
        .expect("two");
    assert_eq!((first.seq, second.seq), (1, 2));
    assert_eq!((first.node, second.node), (1, 0));
    assert_eq!(first.worker.as_deref(), Some("host-7"));
    assert_eq!(second.worker, None);
    assert_eq!(
        (first.at_ms, first.endpoint.as_str()),
        (now, "broadcasthex")
    );
    assert!(first.wall_ms > 0);
    assert_eq!(first.txid, Some(envelope.txid));
    assert_eq!(first.tag.map(|tag| tag.to_string()), Some(envelope.tag()));
    assert_eq!(first.owner, Some(scene.owner()));
    assert_eq!(
        (first.answered.as_str(), first.kept, first.accepted),
        ("SUCCESS", true, true)
    );
    assert_eq!(second.answered, "DUP_TRANSACTION_ERROR");
    assert_eq!(second.message, "Dup transaction.");
    assert!(!second.kept && !second.accepted);

    let by = |filter: LogFilter| scene.net.sends(&filter).len();
    assert_eq!(
        by(LogFilter {
            worker: Some("host-7".to_owned()),
            ..LogFilter::default()
        }),
        1
    );
    assert_eq!(
        by(LogFilter {
            node: Some(0),
            ..LogFilter::default()
        }),
        1
    );
    assert_eq!(
        by(LogFilter {
            txid: Some(envelope.txid),
            ..LogFilter::default()
        }),
        2
    );
    assert_eq!(
        by(LogFilter {
            tag: Some(Tag([0; 16])),
            ..LogFilter::default()
        }),
        0
    );
    assert_eq!(
        by(LogFilter {
            after: 1,
            ..LogFilter::default()
        }),
        1
    );
}

#[tokio::test]
async fn totals_are_exact_and_count_successes_alone() {
    let scene = Scene::with(Config {
        solidity_lag: 2,
        foreign_per_block: 4,
        ..stepped()
    })
    .await;
    let large = 10_u128.pow(38) - 1;
    for number in 1..=5 {
        let mut spec = scene.spec(number);
        spec.units = Units::new(large).expect("in range");
        let envelope = scene.sign(number, &spec);
        if number == 5 {
            let fault = Fault::Receipt {
                result: "REVERT".to_owned(),
            };
            scene
                .net
                .add_fault(Rule::new(fault).txid(envelope.txid))
                .expect("a rule");
        }
        scene.send_to(0, &envelope).await;
        scene.net.produce(1);
    }
    let totals = scene.net.totals();
    assert_eq!(totals.len(), 1, "foreign transactions are not counted");
    let total = &totals[0];
    assert_eq!(total.owner, scene.owner());
    assert_eq!(
        total.contract.map(|contract| contract.to_string()),
        Some(TOKEN.to_owned())
    );
    // Four times 10^38 - 1 is beyond 128 bits.
    assert_eq!(
        (total.transfers, total.units.as_str()),
        (4, "399999999999999999999999999999999999996")
    );
    assert_eq!(
        (total.solid_transfers, total.solid_units.as_str()),
        (3, "299999999999999999999999999999999999997")
    );
}

#[tokio::test]
async fn an_operation_is_known_by_its_tag_across_its_transactions() {
    let scene = Scene::new().await;
    let first = scene.envelope(1);
    let fault = Fault::Receipt {
        result: "OUT_OF_ENERGY".to_owned(),
    };
    scene
        .net
        .add_fault(Rule::new(fault).txid(first.txid))
        .expect("a rule");
    scene.send_to(0, &first).await;
    scene.net.produce(1);
    let second = scene.envelope(1);
    scene.send_to(0, &second).await;
    scene.net.produce(1);
    let third = scene.envelope(1);
    scene.send_to(0, &third).await;

    let tags = scene.net.tags();
    let report = &tags[&first.tag()];
    assert_eq!(report.txids, [first.id(), second.id(), third.id()]);
    assert_eq!((report.included, report.successes), (2, 1));
    assert_eq!(report.units, "1500000");
    assert_eq!(tags.len(), 1);
}

#[tokio::test]
async fn a_trail_tells_what_happened_in_order() {
    let scene = Scene::new().await;
    let envelope = scene.envelope(1);
    scene.send_to(0, &envelope).await;
    scene.net.produce(2);
    scene
        .net
        .fork(2, 3, 0, Default::default(), &[])
        .expect("a fork");
    let steps = serde_json::to_value(&scene.report(&envelope).steps).expect("JSON");
    let names: Vec<_> = steps
        .as_array()
        .expect("a list")
        .iter()
        .map(|step| step["what"].as_str().unwrap_or_default())
        .collect();
    // At node and producers; into a block; out of it, back to the producers, into another, back to the node's pool.
    assert_eq!(names[..4], ["pooled", "pooled", "included", "erased"]);
    assert!(names[4..].contains(&"included"), "{names:?}");
}

#[tokio::test]
async fn requests_are_counted_by_node_path_and_worker() {
    let scene = Scene::with(Config {
        nodes: 2,
        ..stepped()
    })
    .await;
    for _ in 0..3 {
        scene.head(1).await;
    }
    scene
        .post(0, "/walletsolidity/getnowblock", &json!({}))
        .await;
    let counts: Vec<_> = scene
        .net
        .requests()
        .into_iter()
        .map(|(request, count)| (request.node, request.path, count))
        .collect();
    let wanted = [
        (0, "/walletsolidity/getnowblock".to_owned(), 1),
        (1, "/wallet/getnowblock".to_owned(), 3),
    ];
    assert_eq!(counts, wanted);
}

#[tokio::test]
async fn one_hundred_transactions_by_two_ways_are_accepted_once_each() {
    let scene = Scene::with(Config {
        nodes: 3,
        ..stepped()
    })
    .await;
    let envelopes: Vec<_> = (1..=100).map(|number| scene.envelope(number)).collect();
    let (left, right) = tokio::join!(
        async {
            let mut codes = Vec::new();
            for envelope in &envelopes {
                codes.push(scene.code_of(0, envelope).await);
            }
            codes
        },
        async {
            let mut codes = Vec::new();
            for envelope in envelopes.iter().rev() {
                codes.push(scene.code_of(2, envelope).await);
            }
            codes
        }
    );
    let count = |wanted: &str| {
        left.iter()
            .chain(&right)
            .filter(|code| *code == wanted)
            .count()
    };
    assert_eq!(
        (count("SUCCESS"), count("DUP_TRANSACTION_ERROR")),
        (100, 100)
    );
    scene.net.produce(1);
    let reports = scene.net.transactions();
    assert_eq!(reports.len(), 100);
    assert!(
        reports
            .iter()
            .all(|report| report.accepts == 1 && report.block == Some(31))
    );
    let value: Value = serde_json::to_value(&reports[0]).expect("JSON");
    assert_eq!(value["became"], "included");
}
