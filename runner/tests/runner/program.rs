//! The program: its commands, signals, exit codes and logs.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use sluice_mock_node::{Fault, Rule, Silence};
use sluice_scenarios::{Role, Runner, RunnerSetup, Scene, Wallets, wait};

/// From a block to the moment it is solid, and a little more.
const SOLID_AFTER_S: u64 = 20 * 3;

fn until_logged(runner: &Runner, what: &str) {
    wait::until(&format!("the runner says {what:?}"), || {
        runner.log().contains(what).then_some(())
    });
}

#[test]
fn run_pays_a_withdrawal_and_ends_with_0_when_told_to() {
    let scene = Scene::start();
    let mut runner = scene.runner("the-one").start(&["run"]);
    let operation_id = scene.submit(1, "25");
    scene.wait_until_state(operation_id, "broadcast");
    scene.advance(SOLID_AFTER_S);
    scene.wait_until_state(operation_id, "confirmed");
    assert_eq!(runner.terminate().code(), Some(0));
    let transactions = scene.network.transactions();
    let [transaction] = transactions.as_slice() else {
        panic!("{transactions:?}")
    };
    assert_eq!(transaction.sends, 1);
    assert!(
        transaction.workers.contains("the-one"),
        "the User-Agent names the worker: {transaction:?}"
    );
}

#[test]
fn drain_ends_when_everything_is_terminal() {
    let scene = Scene::start();
    let withdrawals = [scene.submit(1, "25"), scene.submit(2, "30")];
    let mut runner = scene.runner("one").start(&["drain"]);
    for operation_id in withdrawals {
        scene.wait_until_state(operation_id, "broadcast");
    }
    scene.advance(SOLID_AFTER_S);
    assert_eq!(runner.wait().code(), Some(0));
    for operation_id in withdrawals {
        assert_eq!(scene.state(operation_id), "confirmed");
    }
}

#[test]
fn drain_once_does_what_is_due_at_the_present_clock_and_ends() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    assert_eq!(scene.runner("one").answer(&["drain", "--once"]), "");
    assert_eq!(scene.state(operation_id), "broadcast");
    scene.advance(SOLID_AFTER_S);
    assert_eq!(scene.runner("two").answer(&["drain", "--once"]), "");
    assert_eq!(scene.state(operation_id), "confirmed");
}

#[test]
fn drain_gives_up_with_4_when_its_time_is_over() {
    let scene = Scene::start();
    scene.submit(1, "25");
    let mut runner = scene
        .runner("one")
        .start(&["drain", "--give-up-after", "1s"]);
    assert_eq!(runner.wait().code(), Some(4));
}

#[test]
fn told_to_stop_while_a_node_is_silent_it_gives_the_withdrawal_back_within_the_grace() {
    let scene = Scene::start();
    let silent = Fault::DropThenTimeout { how: Silence::Hold };
    scene.network.add_fault(Rule::new(silent)).expect("a fault");
    let operation_id = scene.submit(1, "25");
    let mut runner = scene
        .runner("one")
        .set("SLUICE_STOP_GRACE", "300ms")
        .set("SLUICE_SEND_TIMEOUT", "60s")
        .start(&["run"]);
    scene.wait_until_state(operation_id, "broadcasting");
    let start = Instant::now();
    assert_eq!(runner.terminate().code(), Some(0));
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    assert!(
        runner.log().contains("released what was not finished"),
        "{}",
        runner.log()
    );
    let row = scene.database.superuser().query_one(
        "select leased_by is null and due_at <= sluice.now() from sluice.withdrawals where operation_id = $1",
        &[&operation_id],
    );
    assert!(
        row.expect("it is there").get::<_, bool>(0),
        "it is due for whoever comes next"
    );
}

#[test]
fn follow_ends_with_3_at_a_block_that_contradicts_itself_and_names_it() {
    let scene = Scene::start_with(|config| config.foreign_per_block = 2);
    scene.network.produce(1);
    let bad = scene.network.status().solid;
    scene
        .network
        .add_fault(Rule::new(Fault::StripTransactions {}).block(bad))
        .expect("a fault");
    let mut runner = scene
        .runner("one")
        .set("SLUICE_LOG_FORMAT", "json")
        .start(&["follow"]);
    assert_eq!(runner.wait().code(), Some(3));
    let alarm = runner
        .log()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["alarm"] == true);
    let alarm = alarm.unwrap_or_else(|| panic!("no alarm in {}", runner.log()));
    assert_eq!(
        (alarm["level"].as_str(), alarm["block"].as_i64()),
        (Some("ERROR"), Some(bad))
    );
    assert!(
        alarm["remedy"]
            .as_str()
            .is_some_and(|remedy| remedy.contains("observe_blocks")),
        "{alarm}"
    );
}

#[test]
fn run_keeps_the_alarm_goes_on_working_and_clears_it_when_the_block_is_whole() {
    let scene = Scene::start_with(|config| config.foreign_per_block = 2);
    scene.network.produce(1);
    let bad = scene.network.status().solid;
    let rule = scene
        .network
        .add_fault(Rule::new(Fault::StripTransactions {}).block(bad))
        .expect("a fault");
    let runner = scene.runner("one").start(&["run"]);
    until_logged(&runner, "the follower stands still");
    let operation_id = scene.submit(1, "25");
    scene.wait_until_state(operation_id, "broadcast");
    scene.network.remove_fault(rule);
    until_logged(&runner, "the alarm is over");
}

#[test]
fn start_block_prints_the_statement_that_starts_a_database() {
    let scene = Scene::start_with(|config| config.foreign_per_block = 2);
    let number = scene.network.status().solid - 3;
    for (arguments, expected) in [
        (vec!["start-block".to_owned()], scene.network.status().solid),
        (
            vec![
                "start-block".to_owned(),
                "--number".to_owned(),
                number.to_string(),
            ],
            number,
        ),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let statement = scene.runner("one").answer(&arguments);
        assert!(
            statement.starts_with("select sluice.follow_from('\\x") && statement.ends_with("');\n"),
            "{statement}"
        );
        let database = scene
            .postgres
            .createdb_with_sluice(&format!("fresh_{expected}"));
        database
            .as_role(Role::Operator)
            .batch_execute(&statement)
            .expect("an operator may run it");
        let row = database.as_role(Role::Runner).query_one(
            "select followed_number, chain_genesis from sluice.runner_state()",
            &[],
        );
        let row = row.expect("the state can be asked");
        assert_eq!(row.get::<_, i64>(0), expected);
        assert_eq!(row.get::<_, Vec<u8>>(1), scene.network.genesis());
    }
    let beyond = (scene.network.status().solid + 1).to_string();
    let mut runner = scene
        .runner("one")
        .start(&["start-block", "--number", &beyond]);
    assert_eq!(
        runner.wait().code(),
        Some(1),
        "a block that is not solid is no start"
    );
}

#[test]
fn a_database_that_will_never_do_ends_it_with_the_remedy() {
    let scene = Scene::start();
    let bare = scene.postgres.createdb("bare");
    let url = bare.url(Role::Runner);
    let as_app = scene.database.url(Role::App);
    let wrong_password = scene
        .database
        .url(Role::Runner)
        .replacen(":", "\u{0}", 1)
        .replacen(":", ":x", 1)
        .replace('\u{0}', ":");
    for (url, remedy) in [
        (url.as_str(), "create extension sluice"),
        (as_app.as_str(), "grant sluice_runner to"),
        (wrong_password.as_str(), "check the user and the password"),
        (
            &url.replace("/bare", "/nowhere"),
            "check the database's name",
        ),
    ] {
        let mut runner = scene
            .runner("one")
            .set("SLUICE_DATABASE", url)
            .start(&["run"]);
        assert_eq!(runner.wait().code(), Some(1), "{}", runner.log());
        let log = runner.log();
        assert!(
            log.lines()
                .last()
                .is_some_and(|line| line.starts_with("sluice-runner: ") && line.contains(remedy)),
            "{log}"
        );
    }
}

#[test]
fn a_database_that_is_away_is_waited_for() {
    let scene = Scene::start();
    let mut runner = scene
        .runner("one")
        .set("SLUICE_DATABASE", "postgresql://u:p@127.0.0.1:1/d")
        .start(&["run"]);
    until_logged(&runner, "the database does not answer yet");
    assert_eq!(runner.terminate().code(), Some(0));
}

#[test]
fn a_wrong_setting_ends_it_with_2_and_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice-runner"))
        .args(["run", "--batch", "0"])
        .env_clear()
        .output();
    let output = output.expect("it can be started");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.starts_with("sluice-runner: --batch (SLUICE_BATCH"),
        "{told}"
    );
}

#[test]
fn no_secret_is_ever_logged() {
    let scene = Scene::start();
    let operation_id = scene.submit(1, "25");
    let directory = std::env::temp_dir().join(format!("sluice-secrets-{}", std::process::id()));
    let password = "a-password-5ec2e7";
    scene
        .database
        .superuser()
        .batch_execute(&format!(
            "create role quiet login password '{password}' in role sluice_runner"
        ))
        .expect("a role");
    let database = scene.database.url(Role::Runner);
    let (_, place) = database.split_once('@').expect("a URL with a password");
    let runner = RunnerSetup::new("one", &scene.database, &scene.network.urls())
        .set("SLUICE_DATABASE", &format!("postgresql://quiet@{place}"))
        .set("SLUICE_DATABASE_PASSWORD", "env:PASSWORD")
        .set("PASSWORD", password)
        .set("SLUICE_NODE_API_KEY", "env:API_KEY")
        .set("API_KEY", "an-api-key-5ec2e7")
        .set("SLUICE_LOG", "trace")
        .start(&["run"]);
    scene.wait_until_state(operation_id, "broadcast");
    until_logged(&runner, "recorded answers");
    let log = runner.log();
    for secret in [
        password,
        "an-api-key-5ec2e7",
        Wallets::HMAC_KEY,
        Wallets::LOCAL_KEY,
    ] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert!(!directory.exists());
}

#[test]
fn every_line_about_a_withdrawal_that_is_not_taken_names_it_and_its_transaction() {
    let scene = Scene::start();
    let refusal = Fault::Answer {
        code: "SIGERROR".to_owned(),
        message: "no".to_owned(),
        keep: false,
        result: None,
    };
    scene
        .network
        .add_fault(Rule::new(refusal))
        .expect("a fault");
    let operation_id = scene.submit(1, "25");
    let runner = scene
        .runner("one")
        .set("SLUICE_LOG", "info")
        .set("SLUICE_LOG_FORMAT", "json")
        .start(&["run"]);
    until_logged(&runner, "recorded answers");
    let log = runner.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    let anomaly = lines
        .iter()
        .find(|line| line["code"] == "SIGERROR")
        .unwrap_or_else(|| panic!("no anomaly in {log}"));
    assert_eq!(
        (&anomaly["level"], &anomaly["said"]),
        (&"WARN".into(), &"no".into())
    );
    assert!(
        anomaly["message"]
            .as_str()
            .is_some_and(|message| message.contains("will be sent again")),
        "{anomaly}"
    );
    assert_eq!(anomaly["operation_id"], operation_id.to_string());
    assert_eq!(
        anomaly["txid"],
        scene.network.transactions()[0].txid.to_string()
    );
    for batch in ["claimed", "recorded signatures", "recorded answers"] {
        assert_eq!(
            lines.iter().filter(|line| line["message"] == batch).count(),
            1,
            "a line for each batch: {log}"
        );
    }
}
