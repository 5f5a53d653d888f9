//! Who calls, and what may come of it. A refusal has a SQLSTATE that says why; `XX000` is what a Rust panic and PostgreSQL's own
//! internal errors look like, and never one of them.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use postgres::{Client, Error};
use sluice_scenarios::{Database, Role};

use crate::sql::catalog::Function;

/// Longer than any of these statements may take. Nothing is compiled: on tables without statistics that takes longer than all
/// else, and sluice's own functions are set not to be.
const STATEMENT_TIMEOUT: &str = "30s";

/// SQLSTATEs other than sluice's own that a refusal may have, and why.
const SENSIBLE: &[(&str, &str)] = &[
    ("08P01", "a parameter's bytes that end too early"),
    (
        "0A000",
        "a trigger's function called as another, a set where none may be, a type that no text makes",
    ),
    (
        "21000",
        "a statement that meets one row twice, or a subquery of several rows",
    ),
    (
        "22P02",
        "text that is none of its type: PostgreSQL's own input functions say so",
    ),
    (
        "22P03",
        "bytes of a parameter or a COPY that are none of its type",
    ),
    ("22P04", "a COPY whose lines are no rows"),
    (
        "22P05",
        "JSON with a character that no text of PostgreSQL's holds",
    ),
    ("22001", "a text longer than its column"),
    ("22003", "a number beyond its type"),
    ("22004", "a null where PostgreSQL's own function takes none"),
    ("22007", "text that is no time"),
    ("22008", "a time beyond what times hold"),
    ("22012", "a division by zero, in a statement of ours"),
    ("22015", "an interval beyond what intervals hold"),
    ("22021", "bytes that are no UTF-8"),
    (
        "22023",
        "JSON of another shape, an array of another, or a time zone, for PostgreSQL's own functions",
    ),
    ("22025", "an escape without its character"),
    ("22030", "a JSON object with a key twice"),
    ("22032", "text that is no JSON"),
    ("2202E", "arrays whose parts differ in length"),
    ("23502", "a column that takes no null"),
    ("23505", "a key that stands already"),
    ("23514", "a rule of a table that is written as a check"),
    ("24000", "a cursor that stands on no row"),
    (
        "25001",
        "a statement that a transaction under way does not take",
    ),
    ("25006", "a write in a transaction that only reads"),
    ("25P02", "a statement after one that failed"),
    (
        "27000",
        "a row that a trigger of the same statement has changed",
    ),
    ("34000", "a cursor that there is not"),
    ("3B001", "a savepoint that there is not"),
    ("42501", "a role that may not"),
    ("428C9", "a value for what is generated"),
    (
        "42601",
        "a statement that is none, such as a FETCH of nothing",
    ),
    ("42704", "a type, a setting or an object that there is not"),
    ("42725", "a call that fits two functions"),
    ("42804", "a value of another type"),
    (
        "42809",
        "an object of another kind, such as a view that takes no rows",
    ),
    ("42846", "a type that cannot become another"),
    (
        "42883",
        "a function or an operator that there is not for these types",
    ),
    ("42P03", "a cursor whose name is taken"),
    ("42P05", "a prepared statement whose name is taken"),
    ("42P08", "a parameter whose types contradict each other"),
    ("42P10", "a conflict named by columns that are no key"),
    ("42P13", "a definition that does not hold together"),
    ("42P18", "a parameter or a null whose type nobody says"),
    ("44000", "a row that its view would not show"),
    ("54000", "more than PostgreSQL's own limits"),
    ("54001", "nesting beyond the stack"),
    ("54011", "more columns than a row has"),
    (
        "55000",
        "an object that is not in the state for it, such as a view",
    ),
    (
        "55P03",
        "a lock that another connection of the same session holds",
    ),
];

/// Parts of messages with which others than we refuse as `XX000`, whether that may be told to members of sluice's roles, who call
/// little, and why it is theirs to say.
const OF_OTHERS: &[(&str, bool, &str)] = &[
    (
        "must not be null",
        false,
        "pgrx: a function within takes every argument, and its callers give them",
    ),
    (
        "PgTrigger::from_fcinfo failed: NotTrigger",
        false,
        "pgrx: a trigger's function is called as another",
    ),
    (
        "a text version of jsonb must be a valid json",
        false,
        "pgrx: its jsonb nests less deep than PostgreSQL's",
    ),
    (
        "unsupported jsonb version number",
        true,
        "PostgreSQL: a parameter's bytes are no jsonb",
    ),
];

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A login of one of sluice's roles.
    Member(Role),
    /// The owner of tables and functions, whom the guard does not bind in all.
    Owner,
    /// The superuser.
    Superuser,
}

impl Who {
    /// Everybody.
    pub const ALL: [Self; 8] = [
        Self::Member(Role::App),
        Self::Member(Role::Runner),
        Self::Member(Role::Approver),
        Self::Member(Role::Voucher),
        Self::Member(Role::Operator),
        Self::Member(Role::Auditor),
        Self::Owner,
        Self::Superuser,
    ];

    /// Whether what it writes is bound by every rule. The owner and a superuser may put rows there as a restore does.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::Member(_))
    }

    /// Whether privileges let it call this function.
    #[must_use]
    pub fn may_call(self, function: &Function) -> bool {
        match self {
            Self::Member(role) => function.callers.iter().any(|login| login == role.login()),
            Self::Owner | Self::Superuser => true,
        }
    }
}

/// A connection.
pub struct Session {
    /// Who it is.
    pub who: Who,
    database: Database,
    client: Client,
    backend: i32,
    /// What it was last told.
    last: String,
    found: Vec<String>,
}

/// How a statement ended: it was done, or refused with this SQLSTATE.
pub type Outcome = Result<(), String>;

impl Session {
    /// Connects.
    ///
    /// # Panics
    /// Where that is not possible.
    #[must_use]
    pub fn open(database: &Database, who: Who) -> Self {
        let mut client = match who {
            Who::Member(role) => database.as_role(role),
            Who::Owner | Who::Superuser => database.superuser(),
        };
        let backend = client
            .query_one("select pg_backend_pid()", &[])
            .expect("a backend has a number")
            .get(0);
        client
            .batch_execute(&format!(
                "set statement_timeout = '{STATEMENT_TIMEOUT}'; set client_min_messages = 'error'; set jit = off; select setseed(0.5)"
            ))
            .expect("settings can be set");
        if who == Who::Owner {
            client
                .batch_execute("set role sluice_owner")
                .expect("a superuser may be anybody");
        }
        Self {
            who,
            database: database.clone(),
            client,
            backend,
            last: String::new(),
            found: vec![],
        }
    }

    /// Says it, and judges the answer. What comes back is read as text, or as the binary protocol has it.
    ///
    /// # Panics
    /// Where there is none: the connection has ended.
    pub fn say(&mut self, statement: &str, binary: bool) -> Outcome {
        self.last = statement.to_owned();
        let answer = if binary {
            self.client.query(statement, &[]).map(drop)
        } else {
            self.client.simple_query(statement).map(drop)
        };
        self.judged(answer)
    }

    /// Says it with these bytes as parameters, each as its type's binary form.
    ///
    /// # Panics
    /// Where there is none: the connection has ended.
    pub fn say_with(&mut self, statement: &str, parameters: &[raw::Bytes]) -> Outcome {
        self.last = format!("{statement} with {parameters:?}");
        let parameters: Vec<&(dyn postgres::types::ToSql + Sync)> = parameters
            .iter()
            .map(|bytes| bytes as &(dyn postgres::types::ToSql + Sync))
            .collect();
        let answer = self.client.query(statement, &parameters).map(drop);
        self.judged(answer)
    }

    /// Copies these bytes into a table through psql, as a dump does; in a transaction of its own.
    ///
    /// # Panics
    /// Where psql has no answer: its connection has ended.
    pub fn copy(&mut self, statement: &str, bytes: &[u8]) -> Outcome {
        let beginning = &bytes[..bytes.len().min(2000)];
        self.last = format!("{statement} of {}", String::from_utf8_lossy(beginning));
        let mut psql = self.database.program("psql");
        psql.args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=sqlstate",
        ]);
        // Our own transaction may hold what this one waits for.
        psql.env(
            "PGOPTIONS",
            format!("-c lock_timeout=500ms -c statement_timeout={STATEMENT_TIMEOUT}"),
        );
        match self.who {
            Who::Member(role) => drop(psql.env("PGUSER", role.login())),
            Who::Owner => drop(psql.args(["-c", "set role sluice_owner"])),
            Who::Superuser => {}
        }
        psql.args(["-c", "begin", "-c", statement]);
        if self.who.is_bound() {
            psql.args(["-c", "commit"]);
        }
        let mut psql = psql
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql can be started");
        let mut input = psql.stdin.take().expect("its input is ours");
        // A refused COPY may have ended before all of it was read.
        let _read_to_the_end = input.write_all(bytes);
        drop(input);
        let ended = psql.wait_with_output().expect("psql ends");
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let code = said
            .lines()
            .find_map(|line| line.split_once("ERROR:  "))
            .map(|(_, code)| code.trim().to_owned());
        let Some(code) = code else {
            panic!("{}: {said}", self.accused());
        };
        self.refused(code, "")
    }

    fn judged(&mut self, answer: Result<(), Error>) -> Outcome {
        let Err(error) = answer else {
            return Ok(());
        };
        let Some(refusal) = error.as_db_error() else {
            panic!("{}: {error:?}", self.accused());
        };
        let (code, message) = (
            refusal.code().code().to_owned(),
            refusal.message().to_owned(),
        );
        self.refused(code, &message)
    }

    fn refused(&mut self, code: String, message: &str) -> Outcome {
        let sensible = SENSIBLE.iter().any(|(sensible, _)| *sensible == code);
        let by_others = code == "XX000"
            && OF_OTHERS.iter().any(|(text, members_too, _)| {
                message.contains(text) && (*members_too || !self.who.is_bound())
            });
        if !(by_others || sensible || code.starts_with("SL")) {
            self.found
                .push(format!("{}: {code} {message}", self.accused()));
        }
        Err(code)
    }

    /// Every refusal so far must have been one that may come.
    ///
    /// # Panics
    /// With those that were not.
    pub fn assert_sensible(&self, seed: u64) {
        let some: Vec<&str> = self.found.iter().take(20).map(String::as_str).collect();
        assert!(
            some.is_empty(),
            "SEED={seed}: {} refusals that say nothing of use:\n\n{}",
            self.found.len(),
            some.join("\n\n")
        );
    }

    fn accused(&self) -> String {
        let shown: String = self.last.chars().take(6000).collect();
        format!("{:?} said\n{shown}\nand was told", self.who)
    }

    /// How much memory of its own the backend has, in kilobytes: what it shares with others is left out.
    ///
    /// # Panics
    /// Where there is no backend any more.
    #[must_use]
    pub fn memory_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.backend))
            .expect("the backend lives");
        status
            .lines()
            .find_map(|line| {
                line.strip_prefix("RssAnon:")?
                    .trim()
                    .strip_suffix(" kB")?
                    .parse()
                    .ok()
            })
            .expect("the kernel says how much a process has")
    }
}

/// Parameters that are bytes, whatever their type: what a driver with an error of its own might send.
pub mod raw {
    use std::error::Error;

    use postgres::types::private::BytesMut;
    use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

    /// The bytes, or null.
    #[derive(Debug, Clone)]
    pub struct Bytes(pub Option<Vec<u8>>);

    impl ToSql for Bytes {
        fn to_sql(
            &self,
            _: &Type,
            out: &mut BytesMut,
        ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
            match &self.0 {
                None => Ok(IsNull::Yes),
                Some(bytes) => {
                    out.extend_from_slice(bytes);
                    Ok(IsNull::No)
                }
            }
        }

        fn accepts(_: &Type) -> bool {
            true
        }

        to_sql_checked!();
    }
}
