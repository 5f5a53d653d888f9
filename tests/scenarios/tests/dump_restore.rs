//! Plain pg_dump and pg_restore bring everything back, in every state, with the guard in force; and what was under way is
//! finished from there, paid once.

use std::collections::BTreeMap;
use std::process::Command;

use sluice_core::envelope;
use sluice_mock_node::{Fault, Rule, Tag};
use sluice_scenarios::worker::Task;
use sluice_scenarios::{Database, Postgres, Role, RunnerSetup, Scene, Worker, destination, place};
use uuid::Uuid;

/// The chart's states, each of which one withdrawal is in.
const STATES: [&str; 9] = [
    "requested",
    "validated",
    "signing",
    "signed",
    "broadcasting",
    "broadcast",
    "confirmed",
    "failed",
    "rejected",
];

/// A database as an operator left it: changed settings, a second asset, a paused wallet, accounts, and rows in every state.
struct Lived {
    scene: Scene,
    by_state: BTreeMap<&'static str, Uuid>,
    /// Paid over the ledger.
    internal: Uuid,
    /// Holds its account's funds, and has one of the two approvals that it needs.
    held: Uuid,
}

/// What is empty where nothing went wrong.
const MAY_BE_EMPTY: [&str; 1] = ["unsettled"];

/// What an account had and has, as `posted held`.
fn balance(database: &Database, account: &str) -> String {
    let query = "select posted || ' ' || held from sluice.balance($1)";
    let row = database.superuser().query_one(query, &[&account]);
    row.expect("the account is open").get(0)
}

impl Lived {
    fn build() -> Self {
        let scene = Scene::start();
        let mut operator = scene.database.as_role(Role::Operator);
        for statement in [
            "select sluice.set_setting('lease', '45 seconds', 'our signers are slow')",
            "select sluice.set_setting('attempts', '3', 'energy is dear')",
            "select sluice.set_asset('USDC-TRC20', 'TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8', 6, '0.01', '5000', 90000000, 2, true)",
            "select sluice.pause('a fee to be looked into', asset => 'USDC-TRC20')",
            "select sluice.set_approval_rule('USDT-TRC20', 'large', '50', 2)",
            "select sluice.open_account('payer')",
            "select sluice.deposit('payer', '100', 'what it was funded with')",
        ] {
            operator
                .batch_execute(statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }

        let mut worker = Worker::new("by hand", &scene.database);
        let internal = Uuid::from_u128(501);
        let held = Uuid::from_u128(502);
        let mut app = scene.database.as_role(Role::App);
        for (id, to, amount) in [
            (internal, destination(90), "5"),
            (held, destination(91), "60"),
        ] {
            if id == internal {
                let ours = "select sluice.set_custody($1, 'payee')";
                app.query(ours, &[&to.to_string()])
                    .expect("an address is taken in");
            }
            let submit = "select sluice.submit($1, $2, $3, account => 'payer')";
            app.query(submit, &[&id, &to.to_string(), &amount])
                .expect("it is taken in");
        }
        assert!(worker.claim(10).is_empty(), "it waits for its approvals");
        let mut superuser = scene.database.superuser();
        superuser
            .query("select sluice.approve($1, 'looks right')", &[&held])
            .expect("one of two approves");

        let under_way: BTreeMap<&str, Uuid> = STATES[2..8]
            .iter()
            .zip(1..)
            .map(|(state, n)| (*state, scene.submit(n, "7.25")))
            .collect();
        let tasks = worker.claim(10);
        let task = |state: &str| -> Task {
            let found = tasks
                .iter()
                .find(|task| task.operation_id == under_way[state]);
            found
                .unwrap_or_else(|| panic!("{state}: not claimed"))
                .clone()
        };
        operator
            .batch_execute("select sluice.pause('lunch')")
            .expect("all can be paused");
        assert!(
            worker.sign(&[task("signed")]).is_empty(),
            "paused: signed, and not to be sent"
        );
        operator
            .batch_execute("select sluice.resume('lunch is over')")
            .expect("a pause can end");
        let to_send = worker.sign(&["broadcasting", "broadcast", "confirmed", "failed"].map(task));
        let answered: Vec<Task> = to_send
            .iter()
            .filter(|task| task.operation_id != under_way["broadcasting"])
            .cloned()
            .collect();
        worker.answer(&answered, "SUCCESS");
        // What the chain decides: one is paid, one reverts. The others' bytes are on their way, and nobody has them yet.
        let failed = Rule::new(Fault::Receipt {
            result: "REVERT".to_owned(),
        })
        .operation(under_way["failed"]);
        scene.network.add_fault(failed).expect("a fault");
        for task in to_send {
            if [under_way["confirmed"], under_way["failed"]].contains(&task.operation_id) {
                scene
                    .network
                    .inject(&task.transaction())
                    .expect("the network takes it");
            }
        }
        scene.advance(60);
        scene.follow();

        let mut by_state = under_way;
        for state in ["requested", "validated", "rejected"] {
            by_state.insert(state, scene.submit(100, "0.5"));
        }
        let step = "update sluice.withdrawals set state = 'validated' where operation_id = $1";
        scene
            .database
            .superuser()
            .execute(step, &[&by_state["validated"]])
            .expect("a legal step by hand");
        operator
            .query_one(
                "select sluice.cancel($1, 'asked for twice')",
                &[&by_state["rejected"]],
            )
            .expect("what is not built can be cancelled");
        let lived = Self {
            scene,
            by_state,
            internal,
            held,
        };
        lived.stands_in(&lived.scene.database);
        for (table, (rows, _)) in content(&lived.scene.database) {
            assert_eq!(
                rows == 0,
                MAY_BE_EMPTY.contains(&table.as_str()),
                "sluice.{table}"
            );
        }
        lived
    }

    /// Each state has its withdrawal there.
    fn stands_in(&self, database: &Database) {
        for (state, operation_id) in &self.by_state {
            assert_eq!(state_in(database, *operation_id), *state);
        }
        assert_eq!(state_in(database, self.internal), "confirmed");
        assert_eq!(state_in(database, self.held), "validated");
        assert_eq!(balance(database, "payer"), "95000000 60000000");
        assert_eq!(balance(database, "payee"), "5000000 0");
    }
}

fn state_in(database: &Database, operation_id: Uuid) -> String {
    database
        .superuser()
        .query_one(
            "select state::text from sluice.withdrawals where operation_id = $1",
            &[&operation_id],
        )
        .expect("it is there")
        .get(0)
}

/// Every table of sluice: how many rows, and all of them as text.
fn content(database: &Database) -> BTreeMap<String, (i64, String)> {
    let mut superuser = database.superuser();
    let tables = superuser.query(
        "select relname::text from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r'",
        &[],
    );
    let tables: Vec<String> = tables
        .expect("tables can be listed")
        .iter()
        .map(|row| row.get(0))
        .collect();
    tables
        .into_iter()
        .map(|table| {
            let query = format!(
                "select count(*), coalesce(string_agg(t::text, chr(10) order by t::text collate \"C\"), '') from sluice.{table} t"
            );
            let row = superuser.query_one(&query, &[]).expect("a table can be read");
            (table, (row.get(0), row.get(1)))
        })
        .collect()
}

/// The dump is of a way of its own, and a database from it is as the one it is of.
fn brought_back(
    lived: &Lived,
    into: &Postgres,
    name: &str,
    dump: &[&str],
    restore: &[&str],
) -> Database {
    let directory = place::scratch("dump");
    let file = directory.path().join("dump");
    let restored = into.createdb(name);
    let mut dumping = lived.scene.database.program("pg_dump");
    dumping.args(dump).arg("--file").arg(&file);
    succeeds(dumping);
    let [program, arguments @ ..] = restore else {
        panic!("a program restores")
    };
    let mut restoring = restored.program(program);
    restoring.args(arguments).arg(&file);
    succeeds(restoring);

    let before = content(&lived.scene.database);
    let after = content(&restored);
    for (table, rows) in &before {
        assert_eq!(
            Some(rows),
            after.get(table),
            "sluice.{table} after {dump:?}"
        );
    }
    assert_eq!(before.len(), after.len());
    lived.stands_in(&restored);
    restored
}

fn succeeds(mut command: Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{command:?}: {complaints}"
    );
}

/// The SQLSTATE with which a statement is refused.
fn refused(database: &Database, statement: &str) -> String {
    let refusal = database
        .superuser()
        .batch_execute(statement)
        .expect_err(statement);
    refusal
        .code()
        .map(|code| code.code().to_owned())
        .unwrap_or_else(|| panic!("{statement}: {refusal}"))
}

fn guard_is_in_force(database: &Database, lived: &Lived) {
    let id = |state: &str| lived.by_state[state];
    for (sqlstate, statement) in [
        ("SL012", format!("update sluice.withdrawals set state = 'signing' where operation_id = '{}'", id("broadcast"))),
        ("SL012", format!("update sluice.withdrawals set state = 'failed', failure_reason = 'x' where operation_id = '{}'", id("broadcasting"))),
        ("SL010", format!("update sluice.withdrawals set state = 'confirmed' where operation_id = '{}'", id("validated"))),
        ("SL011", format!("update sluice.withdrawals set state = 'signing' where operation_id = '{}'", id("confirmed"))),
        ("SL011", format!("update sluice.withdrawals set amount_units = 1 where operation_id = '{}'", id("requested"))),
        ("SL011", "update sluice.envelopes set expiration_ms = expiration_ms + 1".to_owned()),
        ("SL013", "delete from sluice.events".to_owned()),
        ("SL011", "update sluice.accounts set posted = posted + 1".to_owned()),
        ("SL011", "update sluice.holds set ended = 'released', ended_at = sluice.now()".to_owned()),
        ("SL013", "delete from sluice.postings".to_owned()),
        ("SL012", format!("update sluice.withdrawals set state = 'signing' where operation_id = '{}'", lived.held)),
        ("SL013", "truncate sluice.withdrawals".to_owned()),
        ("SL001", format!("select sluice.submit('{}', '{}', '7.26')", id("confirmed"), destination(5))),
        ("SL021", "insert into sluice.blocks (number, id, parent_id, timestamp_ms, root, transactions)
                   select number + 2, id, parent_id, timestamp_ms + 6000, root, 0 from sluice.blocks order by number desc limit 1".to_owned()),
    ] {
        assert_eq!(refused(database, &statement), sqlstate, "{statement}");
    }
    let replay = database.superuser().query_one(
        "select created, state::text from sluice.submit($1, $2, '7.25')",
        &[&id("confirmed"), &destination(5).to_string()],
    );
    let replay = replay.expect("a replay is answered");
    assert_eq!((replay.get(0), replay.get(1)), (false, "confirmed"));
}

#[test]
fn a_plain_dump_brings_everything_back() {
    let lived = Lived::build();
    let psql = [
        "psql",
        "--quiet",
        "--no-psqlrc",
        "--set=ON_ERROR_STOP=1",
        "--output=/dev/null",
        "--file",
    ];
    let restored = brought_back(
        &lived,
        &lived.scene.postgres,
        "restored",
        &["--format=plain"],
        &psql,
    );
    guard_is_in_force(&restored, &lived);
}

#[test]
fn a_custom_dump_brings_everything_back() {
    let lived = Lived::build();
    let restore = ["pg_restore", "--exit-on-error", "--dbname=restored"];
    let restored = brought_back(
        &lived,
        &lived.scene.postgres,
        "restored",
        &["--format=custom"],
        &restore,
    );
    guard_is_in_force(&restored, &lived);
}

#[test]
fn a_parallel_restore_on_a_new_server_brings_everything_back_and_finishes_it() {
    let lived = Lived::build();
    let elsewhere = Postgres::start();
    let restore = [
        "pg_restore",
        "--jobs=4",
        "--exit-on-error",
        "--dbname=restored",
    ];
    let restored = brought_back(
        &lived,
        &elsewhere,
        "restored",
        &["--format=directory", "--jobs=4"],
        &restore,
    );
    elsewhere.create_logins();
    guard_is_in_force(&restored, &lived);

    let approval = format!(
        "create role second login; grant sluice_approver to second; set session authorization second;
         select sluice.approve('{}'); reset session authorization",
        lived.held
    );
    restored
        .superuser()
        .batch_execute(&approval)
        .expect("the other approves");
    finish(&lived, &restored);
    assert_eq!(state_in(&restored, lived.held), "confirmed");
    assert_eq!(balance(&restored, "payer"), "35000000 0");
    for (state, operation_id) in &lived.by_state {
        let expected = match *state {
            "failed" | "rejected" => *state,
            _ => "confirmed",
        };
        assert_eq!(state_in(&restored, *operation_id), expected, "was {state}");
        let paid = lived
            .scene
            .network
            .tags()
            .get(&tag(*operation_id))
            .map_or(0, |operation| operation.successes);
        assert_eq!(paid, u64::from(expected == "confirmed"), "was {state}");
    }
}

fn tag(operation_id: Uuid) -> String {
    Tag(envelope::tag(operation_id.into_bytes())).to_string()
}

/// A runner works on the restored database until nothing is left to do.
fn finish(lived: &Lived, restored: &Database) {
    let network = &lived.scene.network;
    let nodes = network.urls();
    for _ in 0..60 {
        restored.set_clock_ms(network.now_ms());
        RunnerSetup::new("next", restored, &nodes)
            .start(&["drain", "--once"])
            .ends_well();
        let live = "select count(*) from sluice.withdrawals where state not in ('confirmed', 'failed', 'rejected')";
        let live: i64 = restored
            .superuser()
            .query_one(live, &[])
            .expect("withdrawals can be counted")
            .get(0);
        if live == 0 {
            return;
        }
        network.step(15_000);
    }
    panic!("not finished after fifteen minutes of chain time");
}
