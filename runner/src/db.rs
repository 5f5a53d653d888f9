//! Connections to the database, and the one rule about commits: a transaction counts only after a COMMIT that came back
//! without an error and without a WARNING. Whatever else happens, its outcome is unknown, and nothing that it answered may
//! be used.
//!
//! The WARNING is no pedantry. A cancelled wait for synchronous replication is answered with one and then with COMMIT
//! (`syncrep.c`, `SyncRepWaitForLSN`): the row is there, and a failover may take it back.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row};
use tracing::debug;

use crate::config::DatabaseConfig;
use crate::crash::{self, Point};

/// A parameter and its type.
pub type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A call of one of the database's functions, in a transaction of its own.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// For errors and logs.
    pub name: &'static str,
    /// One statement.
    pub sql: &'static str,
    /// The crash points before and after its COMMIT; `None` for calls that only read.
    pub points: Option<(Point, Point)>,
}

/// Why a call's answer may not be used.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The database said no to the call itself: nothing of it is on file.
    #[error("{call} was refused: {}", describe(.error))]
    Refused {
        /// Which call.
        call: &'static str,
        /// What the database said.
        error: Box<DbError>,
    },
    /// The COMMIT was not cleanly acknowledged: it counts as not made, though it may have been.
    #[error("{call} counts as not committed: {reason}")]
    NotCommitted {
        /// Which call.
        call: &'static str,
        /// An error, a warning or a lost connection.
        reason: String,
    },
    /// There is no connection, or it broke before the COMMIT was sent: nothing of the call is on file.
    #[error("{call} could not be made: {reason}")]
    Lost {
        /// Which call.
        call: &'static str,
        /// What happened.
        reason: String,
        /// What the server said when it refused the connection or ended it.
        code: Option<String>,
    },
    /// The call was made, and its answer is not what this version of the runner understands.
    #[error("the answer of {call} is not understood: {reason}")]
    Foreign {
        /// Which call.
        call: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl CallError {
    /// The SQLSTATE, where the server gave one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Refused { error, .. } => Some(error.code().code()),
            Self::Lost { code, .. } => code.as_deref(),
            Self::NotCommitted { .. } | Self::Foreign { .. } => None,
        }
    }

    /// Whether the database looked at what was asked and said no, rather than being busy, shutting down or short of
    /// something (classes of SQLSTATE: `errcodes-appendix.html`).
    #[must_use]
    pub fn is_a_verdict(&self) -> bool {
        const CIRCUMSTANCES: [&str; 7] = ["08", "25", "40", "53", "55", "57", "58"];
        match self {
            Self::Refused { error, .. } => !CIRCUMSTANCES
                .iter()
                .any(|class| error.code().code().starts_with(class)),
            Self::NotCommitted { .. } | Self::Lost { .. } | Self::Foreign { .. } => false,
        }
    }
}

/// What the database said, in one line: message, detail, hint, SQLSTATE.
fn describe(error: &DbError) -> String {
    let mut text = format!("{} [{}]", error.message(), error.code().code());
    for more in [error.detail(), error.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(more);
    }
    text.replace('\n', " ")
}

/// The database, connected to when it is needed.
pub struct Database {
    config: DatabaseConfig,
    application_name: String,
    session: Option<Session>,
}

/// One connection.
struct Session {
    client: Client,
    warnings: Arc<Mutex<Vec<String>>>,
    driver: AbortHandle,
}

impl Drop for Session {
    fn drop(&mut self) {
        // The socket closes with the driver, and the server rolls back what was open.
        self.driver.abort();
    }
}

/// A step of a call that went wrong.
enum StepError {
    Server(Box<DbError>),
    Connection(String),
}

impl Database {
    /// A database that will be connected to by the first call. `application_name` shows in `pg_stat_activity`.
    #[must_use]
    pub fn new(config: DatabaseConfig, application_name: String) -> Self {
        Self {
            config,
            application_name,
            session: None,
        }
    }

    /// Makes a call in one READ COMMITTED transaction of its own. The rows may be used: the transaction is committed.
    pub async fn call(
        &mut self,
        call: Call,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, CallError> {
        // Taken out and put back only where all is well: whatever goes wrong, or if this future is dropped halfway, the
        // connection goes and with it the transaction.
        let session = match self.session.take() {
            Some(session) if !session.client.is_closed() => session,
            Some(_) | None => self.connect(call.name).await?,
        };
        let outcome = self.in_transaction(&session, call, parameters).await;
        match &outcome {
            Ok(_) | Err(CallError::Refused { .. }) => self.session = Some(session),
            Err(
                CallError::NotCommitted { .. } | CallError::Lost { .. } | CallError::Foreign { .. },
            ) => {}
        }
        outcome
    }

    async fn in_transaction(
        &self,
        session: &Session,
        call: Call,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, CallError> {
        let client = &session.client;
        session.take_warnings();
        let lost = |reason| CallError::Lost {
            call: call.name,
            reason,
            code: None,
        };
        let begun = self
            .step(client.batch_execute("begin isolation level read committed"))
            .await;
        let answered = match begun {
            Ok(()) => self.step(client.query_typed(call.sql, parameters)).await,
            Err(error) => Err(error),
        };
        let rows = match answered {
            Ok(rows) => rows,
            Err(StepError::Connection(reason)) => return Err(lost(reason)),
            Err(StepError::Server(error)) => {
                return match self.step(client.batch_execute("rollback")).await {
                    Ok(()) => Err(CallError::Refused {
                        call: call.name,
                        error,
                    }),
                    // FATAL: the server said why, and closed.
                    Err(_) => Err(CallError::Lost {
                        call: call.name,
                        reason: describe(&error),
                        code: Some(error.code().code().to_owned()),
                    }),
                };
            }
        };
        if let Some((before, _)) = call.points {
            crash::point(before);
        }
        let committed = self.step(client.batch_execute("commit")).await;
        if let Some((_, after)) = call.points {
            crash::point(after);
        }
        // The driver notes a notice before it passes on the answer that follows it, so every warning is here by now.
        let warnings = session.take_warnings();
        let reason = match committed {
            Ok(()) if warnings.is_empty() => return Ok(rows),
            Ok(()) => warnings.join("; "),
            Err(StepError::Server(error)) => describe(&error),
            Err(StepError::Connection(reason)) => reason,
        };
        Err(CallError::NotCommitted {
            call: call.name,
            reason,
        })
    }

    /// Waits for a step, a little longer than the server may take for a statement: one that is gone without a word answers
    /// nothing at all, and a COMMIT that waits for a standby knows no time-out (`postgres.c`, `finish_xact_command`).
    async fn step<T>(
        &self,
        step: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StepError> {
        let patience = self.config.statement_timeout + Duration::from_secs(5);
        match tokio::time::timeout(patience, step).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(step_error(&error)),
            Err(_) => Err(StepError::Connection(format!(
                "the server said nothing for {patience:?}"
            ))),
        }
    }

    async fn connect(&self, call: &'static str) -> Result<Session, CallError> {
        let lost = |error: StepError| match error {
            StepError::Server(error) => CallError::Lost {
                call,
                reason: describe(&error),
                code: Some(error.code().code().to_owned()),
            },
            StepError::Connection(reason) => CallError::Lost {
                call,
                reason,
                code: None,
            },
        };
        let mut postgres = self.config.url.postgres.clone();
        postgres.application_name(&self.application_name);
        let connecting = postgres.connect(self.config.url.tls.clone());
        let (client, mut connection) = self.step(connecting).await.map_err(lost)?;
        let warnings = Arc::new(Mutex::new(vec![]));
        let noted = Arc::clone(&warnings);
        let driver = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notice(notice) = message {
                    note(&noted, &notice);
                }
            }
        });
        let session = Session {
            client,
            warnings,
            driver: driver.abort_handle(),
        };
        // client_min_messages above all: a role or database set to `error` would hide the warning that a commit may be
        // taken back. The time-outs keep a lost runner from holding locks; a session between two calls is not lost.
        let timeout = self.config.statement_timeout.as_millis();
        let settings = format!(
            "set client_min_messages = warning; set statement_timeout = {timeout}; set lock_timeout = {timeout}; \
             set idle_in_transaction_session_timeout = {}; set idle_session_timeout = 0",
            2 * timeout
        );
        self.step(session.client.batch_execute(&settings))
            .await
            .map_err(lost)?;
        debug!(database = %self.config.url, "connected");
        Ok(session)
    }
}

impl Session {
    fn take_warnings(&self) -> Vec<String> {
        std::mem::take(
            &mut self
                .warnings
                .lock()
                .expect("nobody panics while holding this lock"),
        )
    }
}

/// Keeps what is a warning or worse; the rest is talk.
fn note(warnings: &Mutex<Vec<String>>, notice: &DbError) {
    match notice.parsed_severity() {
        Some(Severity::Notice | Severity::Debug | Severity::Info | Severity::Log) => {
            debug!(notice = notice.message(), "the database remarks");
        }
        Some(Severity::Warning | Severity::Error | Severity::Fatal | Severity::Panic) | None => {
            let text = format!("{} {}", notice.severity(), describe(notice));
            warnings
                .lock()
                .expect("nobody panics while holding this lock")
                .push(text);
        }
    }
}

fn step_error(error: &tokio_postgres::Error) -> StepError {
    if let Some(error) = error.as_db_error() {
        return StepError::Server(Box::new(error.clone()));
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    StepError::Connection(text)
}
