//! A throwaway PostgreSQL: its own data directory, socket and port, durable as a real one is, gone when dropped.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use postgres::{Client, Config, NoTls};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use uuid::Uuid;

use crate::place::{as_postgres, postgres_program, scratch};
use crate::proxy::Proxy;
use crate::wait::until;

const SUPERUSER: &str = "postgres";

/// How a server is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are ended, and everything is written.
    Fast,
    /// As in a crash: the next start recovers from the log.
    Immediate,
}

/// A role of sluice, of which each cluster has a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May submit withdrawals.
    App,
    /// Works on them.
    Runner,
    /// May approve them.
    Approver,
    /// Submits for its own users.
    Voucher,
    /// Sets up, pauses, resumes.
    Operator,
    /// Reads.
    Auditor,
}

impl Role {
    const ALL: [Self; 6] = [
        Self::App,
        Self::Runner,
        Self::Approver,
        Self::Voucher,
        Self::Operator,
        Self::Auditor,
    ];

    /// The role, which cannot log in.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::App => "sluice_app",
            Self::Runner => "sluice_runner",
            Self::Approver => "sluice_approver",
            Self::Voucher => "sluice_voucher",
            Self::Operator => "sluice_operator",
            Self::Auditor => "sluice_auditor",
        }
    }

    /// A login that is a member of it and of nothing else.
    #[must_use]
    pub const fn login(self) -> &'static str {
        match self {
            Self::App => "test_app",
            Self::Runner => "test_runner",
            Self::Approver => "test_approver",
            Self::Voucher => "test_voucher",
            Self::Operator => "test_operator",
            Self::Auditor => "test_auditor",
        }
    }
}

/// A PostgreSQL server. It must be dropped by the thread that started it, or one that this one outlives: its end is the
/// server's.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    port: u16,
    password: String,
    settings: Vec<(String, String)>,
    server: Option<Child>,
}

/// A database of such a server: what it takes to connect to it, in as many threads as a scenario likes.
#[derive(Debug, Clone)]
pub struct Database {
    name: String,
    socket: PathBuf,
    port: u16,
    /// Where `url` leads to instead.
    proxy_port: Option<u16>,
    password: String,
}

impl Postgres {
    /// Starts one, with PostgreSQL's own defaults.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with these settings.
    #[must_use]
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_in(scratch("pg"), settings)
    }

    /// Starts one with these settings and everything that it writes in this directory.
    #[must_use]
    pub fn start_in(directory: TempDir, settings: &[(&str, &str)]) -> Self {
        let password = make_data(&directory);
        let mut new = Self {
            directory,
            port: 0,
            password,
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            server: None,
        };
        new.launch();
        new
    }

    /// Starts it again after [`Postgres::stop`], on another port.
    pub fn launch(&mut self) {
        assert!(self.server.is_none(), "PostgreSQL runs already");
        // The port is free when it is chosen; if another process takes it before PostgreSQL does, another is chosen.
        while self.server.is_none() {
            self.port = free_port();
            let mut server = self.spawn();
            let template = self.database("template1");
            let ready = until("PostgreSQL takes connections", || {
                if let Some(status) = server
                    .try_wait()
                    .expect("a child can be asked for its status")
                {
                    assert!(
                        self.log().contains("could not bind"),
                        "PostgreSQL ended with {status}:\n{}",
                        self.log()
                    );
                    return Some(false);
                }
                template.try_superuser().is_ok().then_some(true)
            });
            self.server = ready.then_some(server);
        }
    }

    fn spawn(&self) -> Child {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.path().join("log"))
            .expect("the server's log can be opened");
        let mut command = as_postgres(&postgres_program("postgres"), "INT");
        command.arg("-D").arg(self.directory.path().join("data"));
        for (name, value) in self.base_settings() {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .spawn()
            .expect("PostgreSQL can be started")
    }

    fn base_settings(&self) -> [(&'static str, String); 5] {
        [
            ("port", self.port.to_string()),
            ("listen_addresses", "127.0.0.1".to_owned()),
            (
                "unix_socket_directories",
                self.directory.path().display().to_string(),
            ),
            ("log_line_prefix", "%m [%p] %q%u@%d ".to_owned()),
            ("timezone", "UTC".to_owned()),
        ]
    }

    /// Whether it was started, and not stopped since.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.server.is_some()
    }

    /// Whether it has ended by itself, as after a crash from which it could not recover.
    pub fn has_ended(&mut self) -> bool {
        self.server.as_mut().is_some_and(|server| {
            server
                .try_wait()
                .expect("a child can be asked for its status")
                .is_some()
        })
    }

    /// Stops it and waits until it has.
    pub fn stop(&mut self, how: Stop) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        let signal = match how {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        };
        let ended = server
            .try_wait()
            .expect("a child can be asked for its status");
        if ended.is_none() {
            kill_process(Pid::from_child(&server), signal).expect("the server can be signalled");
        }
        server.wait().expect("a child can be waited for");
    }

    /// A database, which need not exist yet.
    #[must_use]
    pub fn database(&self, name: &str) -> Database {
        Database {
            name: name.to_owned(),
            socket: self.directory.path().to_owned(),
            port: self.port,
            proxy_port: None,
            password: self.password.clone(),
        }
    }

    /// Makes an empty database.
    pub fn createdb(&self, name: &str) -> Database {
        self.database("template1")
            .superuser()
            .batch_execute(&format!("create database {name}"))
            .unwrap_or_else(|error| panic!("database {name}: {error}"));
        self.database(name)
    }

    /// Makes a database with the extension in it, and a login for each of its roles.
    pub fn createdb_with_sluice(&self, name: &str) -> Database {
        let database = self.createdb(name);
        database
            .superuser()
            .batch_execute("create extension sluice")
            .expect("the extension can be created");
        self.create_logins();
        database
    }

    /// Makes a login for each of sluice's roles, where there is none yet.
    pub fn create_logins(&self) {
        let mut superuser = self.database("template1").superuser();
        for role in Role::ALL {
            let (login, group, password) = (role.login(), role.group(), &self.password);
            let exists = superuser.query_opt("select from pg_roles where rolname = $1", &[&login]);
            if exists.expect("roles can be looked up").is_none() {
                superuser
                    .batch_execute(&format!(
                        "create role {login} login password '{password}' in role {group}"
                    ))
                    .unwrap_or_else(|error| panic!("role {login}: {error}"));
            }
        }
    }

    /// What the server has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).expect("the server's log can be read")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "the end of what PostgreSQL logged:\n{}",
                end_of(&self.log())
            );
        }
        self.stop(Stop::Immediate);
    }
}

impl Database {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connects as the superuser.
    #[must_use]
    pub fn superuser(&self) -> Client {
        self.try_superuser()
            .unwrap_or_else(|error| panic!("superuser at {}: {error}", self.name))
    }

    /// Connects as the superuser, if the server can be reached.
    pub fn try_superuser(&self) -> Result<Client, postgres::Error> {
        self.config(SUPERUSER).connect(NoTls)
    }

    /// Connects as a member of one of sluice's roles.
    #[must_use]
    pub fn as_role(&self, role: Role) -> Client {
        self.try_as_role(role)
            .unwrap_or_else(|error| panic!("{} at {}: {error}", role.login(), self.name))
    }

    /// Connects as a member of one of sluice's roles, if the server can be reached.
    pub fn try_as_role(&self, role: Role) -> Result<Client, postgres::Error> {
        self.config(role.login()).connect(NoTls)
    }

    /// Connects as this login, which a scenario made.
    #[must_use]
    pub fn as_login(&self, login: &str) -> Client {
        self.config(login)
            .connect(NoTls)
            .unwrap_or_else(|error| panic!("{login} at {}: {error}", self.name))
    }

    fn config(&self, user: &str) -> Config {
        let mut config = Config::new();
        config
            .host_path(&self.socket)
            .port(self.port)
            .user(user)
            .dbname(&self.name);
        config
    }

    /// The port on which the server takes connections over TCP.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The same database, with its [`Database::url`] leading through a proxy.
    #[must_use]
    pub fn through(&self, proxy: &Proxy) -> Self {
        Self {
            proxy_port: Some(proxy.port()),
            ..self.clone()
        }
    }

    /// How a process in another place connects as a member of that role: over TCP, with a password.
    #[must_use]
    pub fn url(&self, role: Role) -> String {
        format!(
            "postgresql://{}:{}@127.0.0.1:{}/{}",
            role.login(),
            self.password,
            self.proxy_port.unwrap_or(self.port),
            self.name
        )
    }

    /// A client program of PostgreSQL, such as `pg_dump`, that works on this database as the superuser.
    #[must_use]
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(postgres_program(name));
        command
            .env("PGHOST", &self.socket)
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", SUPERUSER)
            .env("PGDATABASE", &self.name);
        command
    }

    /// What `sluice.verify()` finds wrong.
    #[must_use]
    pub fn broken_invariants(&self) -> Vec<String> {
        let rows = self.superuser().query(
            "select invariant || ': ' || detail::text from sluice.verify() where not holds",
            &[],
        );
        rows.expect("the invariants can be looked at")
            .iter()
            .map(|row| row.get(0))
            .collect()
    }

    /// Makes the clock of sluice stand at this moment, in milliseconds since the Unix epoch.
    pub fn set_clock_ms(&self, now_ms: i64) {
        let written = self
            .superuser()
            .query_one("select to_timestamp($1::bigint / 1000.0)::text", &[&now_ms]);
        let now: String = written.expect("a time can be written").get(0);
        self.set_clock(&now);
    }

    /// Sets the clock of sluice, in every session: an instant at which it stands, or an interval by which it is off.
    ///
    /// The server's postmaster signals all its children before it forks the next, so once a new session sees the new value,
    /// every older one sees it in its next statement.
    pub fn set_clock(&self, now: &str) {
        // ALTER SYSTEM checks a value only where the library that knows the setting is loaded, and takes no parameters.
        let quoted = now.replace('\'', "''");
        let mut superuser = self.superuser();
        for statement in [
            "load 'sluice'",
            &format!("alter system set sluice.now = '{quoted}'"),
            "select pg_reload_conf()",
        ] {
            superuser
                .batch_execute(statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        until("a new session sees the new clock", || {
            let row = self
                .superuser()
                .query_one("select current_setting('sluice.now', true)", &[]);
            let seen: Option<String> = row.expect("a setting can be read").get(0);
            (seen.as_deref() == Some(now)).then_some(())
        });
    }
}

/// Makes a data directory in this directory, and returns the superuser's password. Making one takes a second of two that a scenario
/// has; so the first of a run (SLUICE_TMP, which `scripts/test` clears away) is kept, and the others are copies of it.
fn make_data(directory: &TempDir) -> String {
    let Some(run) = env::var_os("SLUICE_TMP") else {
        return initdb(directory);
    };
    let template = Path::new(&run).join("data-template");
    if !template.exists() {
        let fresh = scratch("new-template");
        initdb(&fresh);
        // Whoever comes first puts it there; who comes second has made one in vain.
        if fs::rename(fresh.path(), &template).is_ok() {
            let _moved = fresh.keep();
        }
    }
    let copied = as_postgres(Path::new("cp"), "TERM")
        .arg("-a")
        .arg(template.join("data"))
        .arg(directory.path())
        .output()
        .expect("cp can be started");
    assert!(
        copied.status.success(),
        "cp: {}",
        String::from_utf8_lossy(&copied.stderr)
    );
    fs::read_to_string(template.join("password")).expect("the superuser's password can be read")
}

/// Makes one from nothing.
fn initdb(directory: &TempDir) -> String {
    let password = Uuid::new_v4().simple().to_string();
    let password_file = directory.path().join("password");
    fs::write(&password_file, &password).expect("the superuser's password can be written");
    let made = as_postgres(&postgres_program("initdb"), "TERM")
        .args([
            "--no-sync",
            "--encoding=UTF8",
            "--no-locale",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
        ])
        .arg(format!("--username={SUPERUSER}"))
        .arg(format!("--pwfile={}", password_file.display()))
        .arg("-D")
        .arg(directory.path().join("data"))
        .output()
        .expect("initdb can be started");
    assert!(
        made.status.success(),
        "initdb: {}",
        String::from_utf8_lossy(&made.stderr)
    );
    password
}

fn end_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("there is a free port")
        .port()
}
