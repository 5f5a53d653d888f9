//! The rule about commits, against a real PostgreSQL: what is not cleanly acknowledged counts as not made.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sluice_runner::config::DatabaseConfig;
use sluice_runner::database_url::DatabaseUrl;
use sluice_runner::db::{Call, CallError, Database};
use sluice_scenarios::Postgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::run;

const TABLES: &str = "
    create table kept (what text not null);
    create function keep(what text) returns setof text language plpgsql as $$
    begin
        insert into kept values (what);
        if what = 'error' then raise exception 'no %', what using errcode = 'SL001', detail = 'why', hint = 'do'; end if;
        if what = 'warning' then raise warning 'mind the %', what; end if;
        if what = 'notice' then raise notice 'by the way'; end if;
        if what = 'death' then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); end if;
        if what = 'slow' then perform pg_sleep(30); end if;
        return next current_setting('transaction_isolation');
    end $$;
    create function at_commit() returns trigger language plpgsql as $$
    begin
        if new.what = 'bad at commit' then raise exception 'not this one' using errcode = '23514'; end if;
        if new.what = 'death at commit' then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); end if;
        if new.what = 'warning at commit' then raise warning 'too late'; end if;
        return null;
    end $$;
    create constraint trigger judged after insert on kept deferrable initially deferred
        for each row execute function at_commit();
";

const KEEP: Call = Call {
    name: "keep",
    sql: "select keep($1)",
    points: None,
};

/// A server with a database of its own; dropped at the end of the test.
struct Place {
    _postgres: Postgres,
    database: sluice_scenarios::Database,
}

impl Place {
    fn new(settings: &[(&str, &str)]) -> Self {
        let postgres = Postgres::start_with(settings);
        let database = postgres.createdb("commits");
        database
            .superuser()
            .batch_execute(TABLES)
            .expect("the tables can be made");
        Self {
            _postgres: postgres,
            database,
        }
    }

    /// Where the server is: socket directory and port.
    fn address(&self) -> (String, u16) {
        let program = self.database.program("psql");
        let variable = |name: &str| {
            let (_, value) = program
                .get_envs()
                .find(|(key, _)| *key == name)
                .expect("it is set");
            value
                .expect("it has a value")
                .to_string_lossy()
                .into_owned()
        };
        (
            variable("PGHOST"),
            variable("PGPORT").parse().expect("a port"),
        )
    }

    fn connect(&self) -> Database {
        let (host, port) = self.address();
        open(
            &format!("host='{host}' port={port} user=postgres dbname=commits"),
            Duration::from_secs(20),
        )
    }

    fn kept(&self) -> Vec<String> {
        let rows = self
            .database
            .superuser()
            .query("select what from kept order by 1", &[])
            .expect("it can be read");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// From now on every commit waits for a standby that there is not.
    fn lose_the_standby(&self) {
        let mut superuser = self.database.superuser();
        for statement in [
            "alter system set synchronous_standby_names = 'nobody'",
            "select pg_reload_conf()",
        ] {
            superuser
                .batch_execute(statement)
                .expect("the setting can be made");
        }
        sluice_scenarios::wait::until("the setting shows", || {
            let row = superuser.query_one("show synchronous_standby_names", &[]);
            (row.expect("it can be shown").get::<_, String>(0) == "nobody").then_some(())
        });
    }

    /// Waits until a backend of the runner's waits for this, and answers its pid.
    fn waiting(&self, event: &str) -> i32 {
        let mut superuser = self.database.superuser();
        sluice_scenarios::wait::until("the runner's backend waits", || {
            let row = superuser.query_opt(
                "select pid from pg_stat_activity where application_name = 'commit rule' and wait_event = $1",
                &[&event],
            );
            row.expect("it can be asked").map(|row| row.get(0))
        })
    }
}

fn open(text: &str, statement_timeout: Duration) -> Database {
    let url =
        DatabaseUrl::read(text, None, Duration::from_secs(5), &|_| None).expect("it is right");
    Database::new(
        DatabaseConfig {
            url,
            statement_timeout,
        },
        "commit rule".to_owned(),
    )
}

async fn keep(database: &mut Database, what: &str) -> Result<String, CallError> {
    let rows = database
        .call(KEEP, &[(&what, tokio_postgres::types::Type::TEXT)])
        .await?;
    Ok(rows[0].get(0))
}

fn assert_not_committed(outcome: Result<String, CallError>, because: &str) {
    match outcome {
        Err(CallError::NotCommitted { reason, .. }) => {
            assert!(reason.contains(because), "{reason}")
        }
        other => panic!("{other:?} counts as committed"),
    }
}

#[test]
fn a_clean_commit_counts_and_notices_do_no_harm() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        keep(&mut database, "plain").await.expect("it commits");
        keep(&mut database, "notice").await.expect("it commits");
    });
    assert_eq!(place.kept(), ["notice", "plain"]);
}

#[test]
fn every_call_is_read_committed_whatever_the_database_defaults_to() {
    let place = Place::new(&[("default_transaction_isolation", "serializable")]);
    let mut database = place.connect();
    assert_eq!(
        run(keep(&mut database, "plain")).expect("it commits"),
        "read committed"
    );
}

#[test]
fn a_refused_call_leaves_nothing_and_the_connection_good() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        let refused = keep(&mut database, "error")
            .await
            .expect_err("it is refused");
        assert!(refused.is_a_verdict());
        assert_eq!(refused.sqlstate(), Some("SL001"));
        let told = refused.to_string();
        assert!(told.contains("no error [SL001]; why; do"), "{told}");
        keep(&mut database, "plain").await.expect("it commits");
    });
    assert_eq!(place.kept(), ["plain"]);
}

#[test]
fn a_deferred_constraint_that_fails_at_commit_is_no_commit() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        assert_not_committed(
            keep(&mut database, "bad at commit").await,
            "not this one [23514]",
        );
        keep(&mut database, "plain")
            .await
            .expect("the next call has a connection of its own");
    });
    assert_eq!(place.kept(), ["plain"]);
}

#[test]
fn a_backend_that_is_terminated_at_commit_is_no_commit() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        assert_not_committed(keep(&mut database, "death at commit").await, "57P01");
        keep(&mut database, "plain")
            .await
            .expect("the next call has a connection of its own");
    });
    assert_eq!(place.kept(), ["plain"]);
}

#[test]
fn a_backend_that_is_terminated_before_the_commit_loses_the_call() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        let lost = keep(&mut database, "death").await.expect_err("it is gone");
        assert!(
            matches!(lost, CallError::Lost { .. }) && !lost.is_a_verdict(),
            "{lost}"
        );
        keep(&mut database, "plain")
            .await
            .expect("the next call has a connection of its own");
    });
    assert_eq!(place.kept(), ["plain"]);
}

#[test]
fn a_warning_before_or_during_the_commit_is_no_commit_though_the_row_is_there() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        assert_not_committed(keep(&mut database, "warning").await, "mind the warning");
        assert_not_committed(keep(&mut database, "warning at commit").await, "too late");
        keep(&mut database, "plain")
            .await
            .expect("an old warning is not held against the next call");
    });
    assert_eq!(place.kept(), ["plain", "warning", "warning at commit"]);
}

#[test]
fn a_cancelled_wait_for_synchronous_replication_is_no_commit() {
    let place = Place::new(&[]);
    // A role that hides warnings, as one might to keep logs quiet.
    place
        .database
        .superuser()
        .batch_execute("alter role postgres set client_min_messages = error")
        .expect("it can be set");
    let mut database = place.connect();
    run(keep(&mut database, "before")).expect("it commits");
    place.lose_the_standby();
    let outcome = std::thread::scope(|scope| {
        let call = scope.spawn(|| run(keep(&mut database, "unreplicated")));
        let pid = place.waiting("SyncRep");
        place
            .database
            .superuser()
            .execute("select pg_cancel_backend($1)", &[&pid])
            .expect("it can be cancelled");
        call.join().expect("the call ends")
    });
    assert_not_committed(outcome, "canceling wait for synchronous replication");
    assert_eq!(
        place.kept(),
        ["before", "unreplicated"],
        "the server did commit: that is the trap"
    );
}

#[test]
fn a_commit_that_is_not_answered_in_time_is_no_commit() {
    let place = Place::new(&[]);
    let (host, port) = place.address();
    let text = format!("host='{host}' port={port} user=postgres dbname=commits");
    let mut database = open(&text, Duration::from_secs(1));
    place.lose_the_standby();
    // statement_timeout does not reach a COMMIT (postgres.c, finish_xact_command): the runner's own patience ends it.
    let outcome = run(keep(&mut database, "unreplicated"));
    assert_not_committed(outcome, "the server said nothing");
}

/// Passes bytes on between a client and the server until the client says `commit`, which it passes on, too; then it cuts the
/// client off.
async fn cut_after_commit(listener: TcpListener, server: SocketAddr, armed: Arc<AtomicBool>) {
    loop {
        let (mut client, _) = listener.accept().await.expect("a client comes");
        let mut upstream = TcpStream::connect(server)
            .await
            .expect("the server is there");
        let armed = Arc::clone(&armed);
        tokio::spawn(async move {
            let mut from_client = vec![0; 65536];
            let mut from_server = vec![0; 65536];
            loop {
                tokio::select! {
                    read = client.read(&mut from_client) => {
                        let count = read.unwrap_or(0);
                        if count == 0 || upstream.write_all(&from_client[..count]).await.is_err() { return }
                        let says_commit = from_client[..count].windows(7).any(|bytes| bytes == b"commit\0");
                        if says_commit && armed.swap(false, Ordering::SeqCst) {
                            // The server has answered when it can be read from; the client never learns.
                            upstream.readable().await.expect("the server answers");
                            return;
                        }
                    }
                    read = upstream.read(&mut from_server) => {
                        let count = read.unwrap_or(0);
                        if count == 0 || client.write_all(&from_server[..count]).await.is_err() { return }
                    }
                }
            }
        });
    }
}

#[test]
fn a_connection_cut_between_commit_and_its_answer_is_no_commit() {
    let place = Place::new(&[]);
    place
        .database
        .superuser()
        .batch_execute("create role carrier login superuser password 'secret'")
        .expect("a role");
    let (_, port) = place.address();
    let outcome = run(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let proxy = listener.local_addr().expect("it has an address");
        let armed = Arc::new(AtomicBool::new(true));
        let cutter = tokio::spawn(cut_after_commit(
            listener,
            SocketAddr::from(([127, 0, 0, 1], port)),
            Arc::clone(&armed),
        ));
        let text = format!(
            "host=127.0.0.1 port={} user=carrier password=secret dbname=commits",
            proxy.port()
        );
        let mut database = open(&text, Duration::from_secs(20));
        let outcome = keep(&mut database, "cut off").await;
        keep(&mut database, "next")
            .await
            .expect("the next call has a connection of its own");
        cutter.abort();
        outcome
    });
    assert_not_committed(outcome, "");
    assert_eq!(
        place.kept(),
        ["cut off", "next"],
        "the server did commit: that is the trap"
    );
}

#[test]
fn a_call_that_is_given_up_halfway_leaves_nothing() {
    let place = Place::new(&[]);
    let mut database = place.connect();
    run(async {
        let given_up =
            tokio::time::timeout(Duration::from_millis(300), keep(&mut database, "slow")).await;
        assert!(given_up.is_err());
        keep(&mut database, "plain")
            .await
            .expect("the next call has a connection of its own");
    });
    assert_eq!(place.kept(), ["plain"]);
}

#[test]
fn a_server_that_says_nothing_is_lost_after_a_while() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let mut database = open(
            &format!("host=127.0.0.1 port={port} user=u dbname=d"),
            Duration::from_secs(1),
        );
        let start = Instant::now();
        let lost = keep(&mut database, "plain")
            .await
            .expect_err("nobody answers");
        assert!(matches!(lost, CallError::Lost { .. }), "{lost}");
        assert!(start.elapsed() < Duration::from_secs(20));
    });
}

#[test]
fn a_busy_or_failing_server_has_given_no_verdict() {
    let place = Place::new(&[]);
    place.database.superuser().batch_execute("create function raise(code text) returns text language plpgsql as $$ begin raise exception using errcode = code; end $$").expect("a function");
    const RAISE: Call = Call {
        name: "raise",
        sql: "select raise($1)",
        points: None,
    };
    let mut database = place.connect();
    let mut verdict = |code: &str| {
        let outcome = run(database.call(RAISE, &[(&code, tokio_postgres::types::Type::TEXT)]));
        outcome.expect_err("it is refused").is_a_verdict()
    };
    for circumstance in [
        "40001", "40P01", "55P03", "57014", "53100", "25006", "58030",
    ] {
        assert!(!verdict(circumstance), "{circumstance}");
    }
    for judgement in ["P0001", "22023", "23514", "SL007", "42501"] {
        assert!(verdict(judgement), "{judgement}");
    }
}
