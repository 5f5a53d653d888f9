//! What each command does with the parts: who runs beside whom, when they end, and with which exit code.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cli::Command;
use crate::config::{Config, DatabaseConfig, duration};
use crate::cycle::Cycle;
use crate::db::{CallError, Database};
use crate::follower::{Alarm, FollowError, Follower};
use crate::node::ReadError;
use crate::nodes::Nodes;
use crate::poll::{Pace, retry_pace};
use crate::settings::ConfigError;
use crate::signer::Signers;

/// In `drain --once`: how many rounds may pass in which something is due and nothing happens.
const IDLE_ROUNDS: usize = 10;

/// Why a command ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A setting will not do.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The command line will not do.
    #[error("{0}")]
    Usage(String),
    /// A person must look at the chain.
    #[error(transparent)]
    Alarm(#[from] Alarm),
    /// `drain` cannot end.
    #[error("{0}")]
    Undrained(String),
    /// The database will not have us; trying again will not help.
    #[error("{0}")]
    Database(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// As `--help` lists them.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Database(_) | Self::Other(_) => 1,
            Self::Config(_) | Self::Usage(_) => 2,
            Self::Alarm(_) => 3,
            Self::Undrained(_) => 4,
        })
    }
}

/// What all commands that stay share.
struct Parts {
    config: Config,
    database: DatabaseConfig,
    nodes: Arc<Nodes>,
    stop: CancellationToken,
    settled: Arc<Notify>,
}

/// Does what was asked.
pub async fn perform(command: Command, config: Config) -> Result<(), Failure> {
    match command {
        Command::StartBlock { number } => start_block(&config, number).await,
        Command::Run => run(Parts::new(config)?).await,
        Command::Follow => follow(Parts::new(config)?).await,
        Command::Drain {
            once,
            give_up_after,
        } => {
            let patience = give_up_after
                .map(|text| duration(&text, "10ms", "24h"))
                .transpose()
                .map_err(|complaint| Failure::Usage(format!("--give-up-after: {complaint}")))?;
            let parts = Parts::new(config)?;
            let timer =
                patience.map(|patience| tokio::spawn(stop_after(patience, parts.stop.clone())));
            if once {
                drain_once(parts).await?;
            } else {
                drain(parts).await?;
            }
            match (patience, timer) {
                (Some(patience), Some(timer)) if timer.is_finished() => Err(Failure::Undrained(
                    format!("not drained within {patience:?}"),
                )),
                _ => Ok(()),
            }
        }
        #[cfg(feature = "failpoints")]
        Command::CrashPoints => {
            let names: Vec<&str> = crate::crash::Point::ALL
                .iter()
                .map(|point| point.name())
                .collect();
            print(&names.join("\n"))
        }
    }
}

impl Parts {
    fn new(config: Config) -> Result<Self, Failure> {
        if config.shows_password() {
            warn!(
                "--database holds a password, which every user of this machine can read: use --database-password or a password file"
            );
        }
        let stop = CancellationToken::new();
        stop_on_signals(stop.clone())
            .map_err(|error| Failure::Other(format!("no signal can be waited for: {error}")))?;
        Ok(Self {
            database: config.database(|name| std::env::var(name).ok())?,
            nodes: Arc::new(config.nodes()?),
            settled: Arc::new(Notify::new()),
            stop,
            config,
        })
    }

    /// A database session of its own for each part of the runner.
    fn open(&self) -> Database {
        Database::new(
            self.database.clone(),
            format!("sluice-runner {}", self.config.work.worker_id),
        )
    }

    fn follower(&self) -> Follower {
        Follower::new(
            self.config.follow,
            self.open(),
            Arc::clone(&self.nodes),
            self.stop.clone(),
            Arc::clone(&self.settled),
        )
    }

    fn cycle(&self) -> Result<Cycle, Failure> {
        let signers = Signers::from_rules(&self.config.wallets)
            .map_err(|(rule, error)| self.config.wallet_complaint(&rule, &error))?;
        if signers.names().is_empty() {
            warn!("no --wallet is given: this runner can sign for none");
        }
        for (wallet, signer) in signers.names() {
            info!(wallet, signer, "signs");
        }
        Ok(Cycle::new(
            self.config.work.clone(),
            self.open(),
            signers,
            Arc::clone(&self.nodes),
            self.stop.clone(),
        ))
    }

    /// Waits until the database answers, and ends where it never will.
    async fn greet(&self) -> Result<(), Failure> {
        let nodes: Vec<&str> = self
            .nodes
            .all()
            .iter()
            .map(crate::node::Node::name)
            .collect();
        info!(
            version = env!("CARGO_PKG_VERSION"), worker_id = self.config.work.worker_id, database = %self.database.url, nodes = nodes.join(" "),
            "sluice-runner starts"
        );
        let mut database = self.open();
        let mut pace = retry_pace();
        while !self.stop.is_cancelled() {
            let Err(error) = database.runner_state().await else {
                return Ok(());
            };
            if let Some(failure) = hopeless(&error, &self.database) {
                return Err(failure);
            }
            warn!(%error, "the database does not answer yet");
            self.rest(pace.next_pause()).await;
        }
        Ok(())
    }

    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.settled.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// What is wrong with a database that will answer the same tomorrow.
fn hopeless(error: &CallError, database: &DatabaseConfig) -> Option<Failure> {
    if matches!(error, CallError::Foreign { .. }) {
        return Some(Failure::Database(format!(
            "{error}. The extension there and this runner are of different versions: upgrade the older"
        )));
    }
    let user = database.url.postgres.get_user().unwrap_or("its user");
    let remedy = match error.sqlstate()? {
        "3F000" | "42883" => {
            "run create extension sluice there, or point --database at the database that has it"
                .to_owned()
        }
        "42501" => format!("run grant sluice_runner to {user} there"),
        code if code.starts_with("28") => {
            "check the user and the password (--database, --database-password)".to_owned()
        }
        "3D000" => "check the database's name (--database)".to_owned(),
        _ => return None,
    };
    Some(Failure::Database(format!("{error}. {remedy}")))
}

async fn run(parts: Parts) -> Result<(), Failure> {
    let mut cycle = parts.cycle()?;
    parts.greet().await?;
    let follower = parts.config.follows.then(|| {
        let mut follower = parts.follower();
        // Should the follower break, the worker ends as well, and the failure is told: nothing is paid on blind.
        let stop_with_it = parts.stop.clone().drop_guard();
        tokio::spawn(async move {
            let _stop_with_it = stop_with_it;
            follower.run().await;
        })
    });
    work(&parts, &mut cycle, async |_| Ok(false)).await?;
    info!("told to stop");
    cycle.wind_down().await;
    joined(follower).await?;
    info!("stopped");
    Ok(())
}

async fn follow(parts: Parts) -> Result<(), Failure> {
    parts.greet().await?;
    parts.follower().run_until_alarm().await?;
    info!("stopped");
    Ok(())
}

async fn drain(parts: Parts) -> Result<(), Failure> {
    let mut cycle = parts.cycle()?;
    parts.greet().await?;
    let follower = parts.config.follows.then(|| {
        let mut follower = parts.follower();
        // An alarm ends the worker as well: without blocks nothing is ever terminal.
        let stop_with_it = parts.stop.clone().drop_guard();
        tokio::spawn(async move {
            let _stop_with_it = stop_with_it;
            follower.run_until_alarm().await
        })
    });
    let drained = work(&parts, &mut cycle, async |database| {
        let workload = database.workload().await?;
        let drained = workload.due == 0 && workload.waiting == 0;
        if drained {
            info!(parked = workload.parked, "drained");
        }
        Ok(drained)
    })
    .await;
    parts.stop.cancel();
    cycle.wind_down().await;
    joined(follower).await?.unwrap_or(Ok(()))?;
    drained
}

/// Works until told to stop, or until `done`, asked whenever nothing is due and nothing held.
async fn work(
    parts: &Parts,
    cycle: &mut Cycle,
    mut done: impl AsyncFnMut(&mut Database) -> Result<bool, CallError>,
) -> Result<(), Failure> {
    let mut idle = Pace::new(parts.config.work.poll_min, parts.config.work.poll_max);
    let mut retry = retry_pace();
    while !parts.stop.is_cancelled() {
        let round = match cycle.work_off().await {
            Ok(claimed) if parts.stop.is_cancelled() => Ok((claimed, false)),
            Ok(claimed) => done(cycle.database()).await.map(|done| (claimed, done)),
            Err(error) => Err(error),
        };
        let pause = match round {
            Ok((_, true)) => return Ok(()),
            Ok((claimed, false)) => {
                retry.quicken();
                if claimed > 0 {
                    idle.quicken();
                }
                idle.next_pause()
            }
            Err(error) => {
                warn!(%error, "a call to the database failed");
                retry.next_pause()
            }
        };
        parts.rest(pause).await;
    }
    Ok(())
}

/// Follows to the solid head and works off what is due, in turn, until a round finds neither.
async fn drain_once(parts: Parts) -> Result<(), Failure> {
    let mut cycle = parts.cycle()?;
    parts.greet().await?;
    let mut follower = parts.follower();
    let mut retry = retry_pace();
    let mut idle = 0;
    let mut due_before = 0;
    let drained = loop {
        if parts.stop.is_cancelled() {
            break Ok(());
        }
        let pause = match once(&parts, &mut follower, &mut cycle).await {
            Ok(Round {
                moved: false,
                due: 0,
            }) => break Ok(()),
            Ok(Round { moved, due }) => {
                retry.quicken();
                idle = if moved || due != due_before {
                    0
                } else {
                    idle + 1
                };
                due_before = due;
                if idle > IDLE_ROUNDS {
                    break Err(Failure::Undrained(format!(
                        "{due} withdrawals are due, and no claim takes them: select * from sluice.stuck says why"
                    )));
                }
                if idle == 0 {
                    Duration::ZERO
                } else {
                    parts.config.work.poll_min
                }
            }
            Err(FollowError::Alarm(alarm)) => break Err(alarm.into()),
            Err(error @ FollowError::NoStart) => break Err(Failure::Other(error.to_string())),
            Err(error @ (FollowError::Database(_) | FollowError::NoAnswer(_))) => {
                warn!(%error, "a round that found no answer");
                retry.next_pause()
            }
        };
        parts.rest(pause).await;
    };
    cycle.wind_down().await;
    drained
}

/// What a round of `drain --once` found.
struct Round {
    moved: bool,
    due: i64,
}

async fn once(
    parts: &Parts,
    follower: &mut Follower,
    cycle: &mut Cycle,
) -> Result<Round, FollowError> {
    let blocks = if parts.config.follows {
        follower.catch_up().await?
    } else {
        0
    };
    let claimed = cycle.work_off().await.map_err(FollowError::Database)?;
    let workload = cycle
        .database()
        .workload()
        .await
        .map_err(FollowError::Database)?;
    Ok(Round {
        moved: blocks > 0 || claimed > 0,
        due: workload.due,
    })
}

async fn start_block(config: &Config, number: Option<i64>) -> Result<(), Failure> {
    let nodes = config.nodes()?;
    let node = nodes.all().first().expect("there is at least one node");
    let genesis = node.solid_block(0).await.map_err(unread)?;
    let genesis = genesis.ok_or_else(|| {
        Failure::Other(format!("{} has no block 0: ask a full node", node.name()))
    })?;
    let block = match number {
        None => node.solid_head().await.map_err(unread)?,
        Some(number) => node
            .solid_block(number)
            .await
            .map_err(unread)?
            .ok_or_else(|| {
                Failure::Other(format!("{} has no solid block {number}", node.name()))
            })?,
    };
    info!(
        node = node.name(),
        number = block.number,
        id = hex::encode(block.id),
        time_ms = block.timestamp.0,
        genesis = hex::encode(genesis.id),
        "the first block to follow"
    );
    print(&format!(
        "select sluice.follow_from('\\x{}','\\x{}');",
        hex::encode(&block.bytes),
        hex::encode(genesis.id)
    ))
}

fn unread(error: ReadError) -> Failure {
    match error {
        ReadError::NoAnswer(no_answer) => Failure::Other(no_answer.to_string()),
        bad @ ReadError::BadBlock { .. } => Failure::Alarm(Alarm::about_bad_block(&bad)),
    }
}

fn print(line: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}")
        .map_err(|error| Failure::Other(format!("standard output: {error}")))
}

async fn stop_after(patience: Duration, stop: CancellationToken) {
    tokio::time::sleep(patience).await;
    stop.cancel();
}

/// The first SIGTERM or SIGINT asks for an orderly end; a second one does not wait for it.
fn stop_on_signals(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        for already in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if already {
                warn!("told to stop again: what is held is left to its lease");
                std::process::exit(130);
            }
            stop.cancel();
        }
    });
    Ok(())
}

/// What a task of ours came to; its panic, if it had one, is a failure of the whole.
async fn joined<T>(task: Option<JoinHandle<T>>) -> Result<Option<T>, Failure> {
    match task {
        None => Ok(None),
        Some(task) => task
            .await
            .map(Some)
            .map_err(|error| Failure::Other(format!("the follower broke: {error}"))),
    }
}
