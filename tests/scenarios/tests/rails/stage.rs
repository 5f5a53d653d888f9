//! What these scenarios share: a scene whose ledger has accounts with funds and addresses in custody, people who approve, and a look
//! at the money.

use std::sync::{Mutex, PoisonError};

use postgres::types::ToSql;
use postgres::{Client, Error, Row};
use sluice_mock_node::Config;
use sluice_scenarios::postgres::Stop;
use sluice_scenarios::wait::until;
use sluice_scenarios::{Database, Role, Scene, destination};
use uuid::Uuid;

/// One USDT in base units.
pub const USDT: i128 = 1_000_000;

/// The addresses in custody, apart from those of others.
const OURS: u32 = 1_000_000;

/// A scene with a ledger. Those who set it up and look at it stay connected: these scenarios do both very often.
pub struct Stage {
    app: Mutex<Client>,
    superuser: Mutex<Client>,
    pub scene: Scene,
}

/// What a statement came to: what it answered, or the SQLSTATE and message of its refusal.
pub type Answer = Result<String, (String, String)>;

impl Stage {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with another network.
    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let scene = Scene::start_with(change);
        Self {
            app: Mutex::new(scene.database.as_role(Role::App)),
            superuser: Mutex::new(scene.database.superuser()),
            scene,
        }
    }

    /// The server falls, and is started again.
    pub fn crash(&mut self) {
        self.scene.postgres.stop(Stop::Immediate);
        self.scene.postgres.launch();
        let name = self.scene.database.name().to_owned();
        self.scene.database = self.scene.postgres.database(&name);
        self.app = Mutex::new(self.database().as_role(Role::App));
        self.superuser = Mutex::new(self.database().superuser());
    }

    pub fn database(&self) -> &Database {
        &self.scene.database
    }

    /// An account with this much.
    pub fn fund(&self, account: &str, amount: &str) {
        self.app(
            "select sluice.open_account($1), sluice.deposit($1, $2, 'funds of ' || $1)",
            &[account, amount],
        );
    }

    /// Has this account own the `n`th of our addresses, and returns that.
    pub fn custody(&self, n: u32, account: &str) -> String {
        let address = ours(n);
        self.app("select sluice.set_custody($1, $2)", &[&address, account]);
        address
    }

    /// Does as an app.
    pub fn app(&self, statement: &str, arguments: &[&str]) {
        let arguments: Vec<&(dyn ToSql + Sync)> = arguments
            .iter()
            .map(|argument| argument as &(dyn ToSql + Sync))
            .collect();
        locked(&self.app, |app| app.execute(statement, &arguments))
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Does as an operator.
    pub fn operate(&self, statement: &str) {
        let mut operator = self.database().as_role(Role::Operator);
        operator
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Does as the superuser.
    pub fn as_superuser(&self, statements: &str) {
        locked(&self.superuser, |superuser| {
            superuser.batch_execute(statements)
        })
        .unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    /// Has so many people approve every withdrawal from now on.
    pub fn ask_for(&self, approvals: u32) {
        self.operate(&format!(
            "select sluice.set_approval_rule('USDT-TRC20', 'all', '0', {approvals})"
        ));
    }

    /// Logins who may approve.
    pub fn approvers(&self, logins: &[&str]) {
        for login in logins {
            self.as_superuser(&format!(
                "create role {login} login in role sluice_approver"
            ));
        }
    }

    /// A withdrawal from this account.
    pub fn withdraw(&self, account: &str, to: &str, amount: &str) -> Uuid {
        let operation_id = Uuid::new_v4();
        self.withdraw_as(operation_id, account, to, amount)
            .expect("the withdrawal is taken in");
        operation_id
    }

    /// The same with an id of its own, and whatever the database says of it.
    pub fn withdraw_as(&self, operation_id: Uuid, account: &str, to: &str, amount: &str) -> Answer {
        locked(&self.app, |app| {
            submit(app, operation_id, account, to, amount)
        })
        .map_err(|error| refusal(&error))
    }

    /// The withdrawal's state.
    pub fn state(&self, operation_id: Uuid) -> String {
        self.text(
            "select state::text from sluice.withdrawals where operation_id = $1",
            operation_id,
        )
    }

    /// Approves as this login.
    pub fn approve(&self, login: &str, operation_id: Uuid) -> Answer {
        self.decide(login, "select sluice.approve($1)::text", operation_id)
    }

    /// Calls, as this login, a function about this withdrawal.
    pub fn decide(&self, login: &str, call: &str, operation_id: Uuid) -> Answer {
        answer(&mut self.database().as_login(login), call, operation_id)
    }

    /// What an account has, in base units: posted and held.
    pub fn balance(&self, account: &str) -> (i128, i128) {
        self.balance_in(account, "USDT-TRC20")
    }

    /// The same of another asset.
    pub fn balance_in(&self, account: &str, asset: &str) -> (i128, i128) {
        let row = self.row(
            "select posted::text, held::text, posted - held = available from sluice.balance($1, $2)",
            &[&account, &asset],
        );
        assert!(row.get::<_, bool>(2), "available is what is not held");
        let units =
            |column| -> i128 { row.get::<_, &str>(column).parse().expect("it is a number") };
        (units(0), units(1))
    }

    /// What is booked for a withdrawal, each as `kind debit credit units`.
    pub fn postings_of(&self, operation_id: Uuid) -> Vec<String> {
        self.row(
            "select coalesce(array_agg(concat_ws(' ', kind, debit, credit, units)), '{}') from sluice.postings where operation_id = $1",
            &[&operation_id],
        )
        .get(0)
    }

    /// How its hold stands: `open`, `captured`, `released` or `none`.
    pub fn hold_of(&self, operation_id: Uuid) -> String {
        self.text(
            "select coalesce((select coalesce(ended, 'open') from sluice.holds where operation_id = $1), 'none')",
            operation_id,
        )
    }

    /// Why it was rejected or failed.
    pub fn failure_of(&self, operation_id: Uuid) -> String {
        self.text(
            "select coalesce(failure_reason, '') from sluice.withdrawal($1)",
            operation_id,
        )
    }

    /// One text about a withdrawal.
    pub fn text(&self, query: &str, operation_id: Uuid) -> String {
        self.row(query, &[&operation_id]).get(0)
    }

    /// One row, as the superuser sees it.
    pub fn row(&self, query: &str, arguments: &[&(dyn ToSql + Sync)]) -> Row {
        locked(&self.superuser, |superuser| {
            superuser.query_one(query, arguments)
        })
        .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// How many rows a condition on a table finds.
    pub fn count(&self, rows: &str) -> i64 {
        self.row(&format!("select count(*) from {rows}"), &[])
            .get(0)
    }

    /// The tables agree with each other.
    pub fn assert_sound(&self, when: &str) {
        let query = "select coalesce(string_agg(invariant || ': ' || detail::text, '; '), '') from sluice.verify() where not holds";
        let broken: String = self.row(query, &[]).get(0);
        assert_eq!(broken, "", "{when}");
    }

    /// No connection was ever told of a deadlock.
    pub fn assert_no_deadlock(&self) {
        let log = self.scene.postgres.log();
        assert!(!log.contains("deadlock detected"), "{log}");
    }

    /// Waits until so many sessions wait for a lock.
    pub fn wait_until_waiting(&self, sessions: usize) {
        until(&format!("{sessions} wait for a lock"), || {
            let waiting = self.count("pg_stat_activity where wait_event_type = 'Lock'");
            (waiting == sessions as i64).then_some(())
        });
    }
}

/// The `n`th of our own addresses.
pub fn ours(n: u32) -> String {
    destination(OURS + n).to_string()
}

/// The `n`th of other people's.
pub fn theirs(n: u32) -> String {
    destination(n).to_string()
}

/// Submits; the state in which it leaves the withdrawal.
pub fn submit(
    client: &mut Client,
    operation_id: Uuid,
    account: &str,
    to: &str,
    amount: &str,
) -> Result<String, Error> {
    client
        .query_one(
            "select state::text from sluice.submit($1, $2, $3, account => $4)",
            &[&operation_id, &to, &amount, &account],
        )
        .map(|row| row.get(0))
}

/// Calls a function about a withdrawal.
pub fn answer(client: &mut Client, call: &str, operation_id: Uuid) -> Answer {
    client
        .query_one(call, &[&operation_id])
        .map(|row| row.get(0))
        .map_err(|error| refusal(&error))
}

/// The SQLSTATE and message of what the database refused.
pub fn refusal(error: &Error) -> (String, String) {
    let refused = error
        .as_db_error()
        .unwrap_or_else(|| panic!("the database refuses: {error}"));
    (
        refused.code().code().to_owned(),
        refused.message().to_owned(),
    )
}

/// The SQLSTATE of a refusal.
pub fn code_of(answer: &Answer) -> &str {
    match answer {
        Ok(_) => "",
        Err((code, _)) => code,
    }
}

fn locked<T>(client: &Mutex<Client>, act: impl FnOnce(&mut Client) -> T) -> T {
    act(&mut client.lock().unwrap_or_else(PoisonError::into_inner))
}
