//! Following: in order, without a gap, never beyond what is solid, and loudly when it cannot.

use std::sync::Arc;
use std::time::Duration;

use sluice_mock_node::{ClockMode, Config, Endpoint, Fault, MockNet, Rule, Scope};
use sluice_runner::config::{DatabaseConfig, FollowConfig};
use sluice_runner::database_url::DatabaseUrl;
use sluice_runner::db::Database;
use sluice_runner::follower::{FollowError, Follower};
use sluice_runner::node::Node;
use sluice_runner::nodes::Nodes;
use sluice_scenarios::{Role, Scene};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::support::{node, run};

const CONFIG: FollowConfig = FollowConfig {
    poll: Duration::from_millis(20),
    batch: 15,
    stalled: Duration::from_secs(30),
};

fn follower_of(scene: &Scene, nodes: Vec<Node>) -> Follower {
    follower_with(CONFIG, scene, nodes)
}

fn follower_with(follow: FollowConfig, scene: &Scene, nodes: Vec<Node>) -> Follower {
    let url = DatabaseUrl::read(
        &scene.database.url(Role::Runner),
        None,
        Duration::from_secs(5),
        &|_| None,
    );
    let config = DatabaseConfig {
        url: url.expect("a URL"),
        statement_timeout: Duration::from_secs(20),
    };
    Follower::new(
        follow,
        Database::new(config, "follower".to_owned()),
        Arc::new(Nodes::new(nodes).expect("a node")),
        CancellationToken::new(),
        Arc::new(Notify::new()),
    )
}

fn follower(scene: &Scene) -> Follower {
    follower_of(
        scene,
        scene
            .network
            .urls()
            .iter()
            .map(|url| node(url, url))
            .collect(),
    )
}

fn followed(scene: &Scene) -> i64 {
    let row = scene
        .database
        .superuser()
        .query_one("select max(number) from sluice.blocks", &[]);
    row.expect("blocks can be read").get(0)
}

fn alarm(outcome: Result<usize, FollowError>) -> sluice_runner::follower::Alarm {
    match outcome {
        Err(FollowError::Alarm(alarm)) => alarm,
        other => panic!("{other:?} is no alarm"),
    }
}

fn blocks_by(scope: Scope, fault: Fault) -> Rule {
    Rule::new(fault).at(scope)
}

#[test]
fn it_reads_to_the_solid_head_and_not_one_block_further() {
    let scene = Scene::start_with(|config| config.foreign_per_block = 3);
    scene.network.produce(50);
    let behind = scene.network.status().solid - followed(&scene);
    assert!(behind >= 45, "{behind}");
    assert_eq!(
        run(follower(&scene).catch_up()).expect("it follows"),
        usize::try_from(behind).expect("positive")
    );
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn near_the_tip_it_asks_for_the_next_block_alone() {
    let scene = Scene::start();
    let mut follower = follower(&scene);
    run(async {
        follower.catch_up().await.expect("it follows");
        for _ in 0..3 {
            scene.network.produce(1);
            assert_eq!(follower.catch_up().await.expect("it follows"), 1);
        }
    });
    assert_eq!(followed(&scene), scene.network.status().solid);
    let ranges = scene
        .network
        .requests()
        .into_iter()
        .filter(|(request, _)| format!("{request:?}").contains("BlockByLimitNext"));
    assert_eq!(ranges.count(), 0, "one block needs no range");
}

#[test]
fn a_range_from_another_branch_than_the_solid_one_is_not_taken() {
    let scene = Scene::start();
    let other = Config {
        clock: ClockMode::Stepped,
        start_ms: Some(1_767_225_600_000),
        seed: 99,
        ..Config::default()
    };
    let other = MockNet::start_blocking(other).expect("another network");
    scene.network.produce(40);
    other.produce(40);
    // Its full API is on another branch, as a load balancer may have it.
    let mut follower = follower_of(&scene, vec![node(&other.url(0), &scene.network.url(0))]);
    run(follower.catch_up()).expect("the solid API serves them one by one");
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn a_node_without_ranges_is_read_block_by_block() {
    let scene = Scene::start();
    scene.network.produce(30);
    let closed = blocks_by(Scope::Named(Endpoint::BlockByLimitNext), Fault::Lite {});
    scene.network.add_fault(closed).expect("a fault");
    run(follower(&scene).catch_up()).expect("it follows");
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn answers_that_are_none_are_no_alarm_and_leave_everything_as_it_was() {
    let scene = Scene::start();
    scene.network.produce(25);
    let before = followed(&scene);
    let mut follower = follower(&scene);
    for fault in [
        Fault::Empty { keep: false },
        Fault::Error {
            message: "busy".to_owned(),
            keep: false,
        },
        Fault::Status {
            status: 503,
            keep: false,
        },
        Fault::Lite {},
        Fault::Truncated {},
        Fault::DropThenTimeout {
            how: sluice_mock_node::Silence::Hold,
        },
    ] {
        let rule = scene
            .network
            .add_fault(blocks_by(Scope::Any, fault.clone()))
            .expect("a fault");
        let outcome = run(follower.catch_up());
        assert!(
            matches!(outcome, Err(FollowError::NoAnswer(_))),
            "{fault:?}: {outcome:?}"
        );
        assert!(scene.network.remove_fault(rule));
    }
    assert_eq!(followed(&scene), before);
    run(follower.catch_up()).expect("it follows");
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn a_block_without_its_transactions_is_an_alarm_that_names_it_and_the_remedy() {
    let scene = Scene::start_with(|config| config.foreign_per_block = 2);
    scene.network.produce(1);
    let bad = scene.network.status().solid;
    let rule = scene
        .network
        .add_fault(Rule::new(Fault::StripTransactions {}).block(bad))
        .expect("a fault");
    let mut follower = follower(&scene);
    let alarm = alarm(run(follower.catch_up()));
    assert_eq!(alarm.block, Some(bad));
    assert!(
        alarm.what.contains("0 transactions") && alarm.to_string().contains("observe_blocks"),
        "{alarm}"
    );
    assert_eq!(followed(&scene), bad - 1);
    scene.network.remove_fault(rule);
    run(follower.catch_up()).expect("it goes on by itself when the block is whole");
    assert_eq!(followed(&scene), bad);
}

#[test]
fn where_one_node_strips_blocks_another_is_read_from() {
    let scene = Scene::start_with(|config| {
        config.nodes = 2;
        config.foreign_per_block = 2;
    });
    scene.network.produce(30);
    scene
        .network
        .add_fault(Rule::new(Fault::StripTransactions {}).node(0))
        .expect("a fault");
    run(follower(&scene).catch_up()).expect("the second node is honest");
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn a_node_that_stands_still_is_left_for_one_that_moves() {
    let scene = Scene::start_with(|config| config.nodes = 2);
    let nodes: Vec<Node> = scene
        .network
        .urls()
        .iter()
        .map(|url| node(url, url))
        .collect();
    let patient = follower_of(&scene, nodes.clone());
    let impatient = FollowConfig {
        stalled: Duration::ZERO,
        ..CONFIG
    };
    let impatient = follower_with(impatient, &scene, nodes);
    scene
        .network
        .change_node(0, |settings| settings.frozen = true)
        .expect("a node");
    let before = followed(&scene);
    scene.network.produce(5);
    for (mut follower, reads) in [(patient, 0), (impatient, 5)] {
        assert_eq!(run(follower.catch_up()).expect("it follows"), reads);
    }
    assert_eq!(followed(&scene), before + 5);
}

#[test]
fn a_block_of_another_chain_is_an_alarm_and_never_on_file() {
    let scene = Scene::start();
    scene.network.produce(1);
    let bad = scene.network.status().solid;
    scene
        .network
        .add_fault(Rule::new(Fault::ForeignParent {}).block(bad))
        .expect("a fault");
    let alarm = alarm(run(follower(&scene).catch_up()));
    assert_eq!(alarm.block, Some(bad));
    assert!(alarm.remedy.contains("--node"), "{alarm}");
    assert_eq!(followed(&scene), bad - 1);
}

#[test]
fn a_whole_other_chain_is_an_alarm_at_the_first_look() {
    let scene = Scene::start();
    let other = Config {
        clock: ClockMode::Stepped,
        start_ms: Some(1_767_225_600_000),
        seed: 99,
        ..Config::default()
    };
    let other = MockNet::start_blocking(other).expect("another network");
    let url = other.url(0);
    alarm(run(follower_of(&scene, vec![node(&url, &url)]).catch_up()));
    other.produce(30);
    alarm(run(follower_of(&scene, vec![node(&url, &url)]).catch_up()));
}

#[test]
fn a_gap_in_what_a_node_shows_is_filled_or_waited_for_but_never_jumped() {
    let scene = Scene::start();
    scene.network.produce(20);
    let missing = followed(&scene) + 8;
    let rule = scene
        .network
        .add_fault(Rule::new(Fault::Gap {}).block(missing))
        .expect("a fault");
    let outcome = run(follower(&scene).catch_up());
    assert!(
        matches!(outcome, Err(FollowError::NoAnswer(_))),
        "{outcome:?}"
    );
    assert_eq!(
        followed(&scene),
        missing - 1,
        "all before the gap is on file"
    );
    scene.network.remove_fault(rule);
    run(follower(&scene).catch_up()).expect("it follows");
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn two_followers_do_each_others_work_and_no_harm() {
    let scene = Scene::start();
    scene.network.produce(60);
    let (mut one, mut other) = (follower(&scene), follower(&scene));
    run(async {
        let (first, second) = tokio::join!(one.catch_up(), other.catch_up());
        first.expect("it follows");
        second.expect("it follows");
    });
    assert_eq!(followed(&scene), scene.network.status().solid);
}

#[test]
fn a_database_that_follows_no_chain_says_how_to_start() {
    let scene = Scene::start();
    let empty = scene.postgres.createdb_with_sluice("empty");
    let url = DatabaseUrl::read(
        &empty.url(Role::Runner),
        None,
        Duration::from_secs(5),
        &|_| None,
    );
    let config = DatabaseConfig {
        url: url.expect("a URL"),
        statement_timeout: Duration::from_secs(20),
    };
    let url = scene.network.url(0);
    let mut follower = Follower::new(
        CONFIG,
        Database::new(config, "follower".to_owned()),
        Arc::new(Nodes::new(vec![node(&url, &url)]).expect("a node")),
        CancellationToken::new(),
        Arc::new(Notify::new()),
    );
    let error = run(follower.catch_up()).expect_err("there is no start");
    assert!(
        matches!(error, FollowError::NoStart) && error.to_string().contains("start-block"),
        "{error}"
    );
}
