//! The work on withdrawals: claim, sign, record, send, record. The database decides all of it; this file keeps no more than
//! what is under way, and drops a task without a word to anybody the moment it is no longer ours.
//!
//! Signing and sending run beside each other, bounded; what has finished is recorded in sets. Three things end a task early:
//! its lease is over by our own clock, the database answers that the claim is another's, or a commit was not cleanly
//! acknowledged. In each the withdrawal comes back by itself when its lease has passed in the database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sluice_core::broadcast::{BroadcastCode, BroadcastVerdict};
use sluice_core::envelope::{Txid, signed_transaction};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::calls::{Action, BroadcastResult, Claimed, Recorded, SignatureResult, Task, Unsigned};
use crate::config::WorkConfig;
use crate::crash::{self, Point};
use crate::db::{CallError, Database};
use crate::lease::{Lease, Moment};
use crate::node::Answer;
use crate::nodes::Nodes;
use crate::poll::Pace;
use crate::signer::{Digest, SignerError, Signers};

/// After the first result, how long to wait for others to record together with it.
const GATHER: Duration = Duration::from_millis(10);

/// How long the database's lease is taken as known.
const LEASE_KNOWN: Duration = Duration::from_secs(60);

/// How long a withdrawal is put off that no signer could sign.
const UNSIGNED_PAUSE: Duration = Duration::from_secs(5);

/// The worker.
pub struct Cycle {
    config: WorkConfig,
    database: Database,
    signers: Signers,
    nodes: Arc<Nodes>,
    stop: CancellationToken,
    /// The database's lease, and when it was asked for.
    lease: Option<(Duration, Moment)>,
    held: HashMap<Uuid, Held>,
    finished: Finished,
    signing: JoinSet<Signed>,
    sending: JoinSet<Sent>,
    sign_permits: Arc<Semaphore>,
    send_permits: Arc<Semaphore>,
}

/// A claim that is worked on.
struct Held {
    fencing_token: i64,
    lease: Lease,
}

/// How a signing ended.
struct Signed {
    task: Task,
    outcome: Result<Vec<u8>, NotDone<SignerError>>,
}

/// How a send ended.
struct Sent {
    task: Task,
    outcome: Result<Answer, NotDone<std::convert::Infallible>>,
}

/// Why a task was not done.
enum NotDone<E> {
    /// Its lease was over before, or too nearly over to begin.
    LeasePassed,
    /// Tried, and failed.
    Failed(E),
}

/// What is ready to be recorded.
#[derive(Default)]
struct Finished {
    signed: Vec<Signed>,
    sent: Vec<Sent>,
}

impl Cycle {
    /// A worker that does nothing yet.
    #[must_use]
    pub fn new(
        config: WorkConfig,
        database: Database,
        signers: Signers,
        nodes: Arc<Nodes>,
        stop: CancellationToken,
    ) -> Self {
        let permits = || Arc::new(Semaphore::new(config.concurrency));
        Self {
            sign_permits: permits(),
            send_permits: permits(),
            config,
            database,
            signers,
            nodes,
            stop,
            lease: None,
            held: HashMap::new(),
            finished: Finished::default(),
            signing: JoinSet::new(),
            sending: JoinSet::new(),
        }
    }

    /// The database, for calls between two rounds of work.
    pub fn database(&mut self) -> &mut Database {
        &mut self.database
    }

    /// Claims and works until nothing is due and nothing is held, or until told to stop; answers how many tasks it claimed.
    ///
    /// An error is one of the database's; what is under way stays so, and the next call goes on with it.
    pub async fn work_off(&mut self) -> Result<usize, CallError> {
        let mut claimed = 0;
        let mut pace = Pace::new(self.config.poll_min, self.config.poll_max);
        let mut next_claim = Moment::now();
        while !self.stop.is_cancelled() {
            let room = self.config.batch - self.held.len();
            if room > 0 && next_claim.remaining().is_zero() {
                let got = self.claim(room).await?;
                claimed += got;
                if got == 0 && self.held.is_empty() {
                    break;
                }
                if got > 0 {
                    pace.quicken();
                }
                // A full answer says that there is more.
                next_claim = if got == room {
                    Moment::now()
                } else {
                    Moment::now().plus(pace.next_pause())
                };
            }
            let until_claim = if self.held.len() < self.config.batch {
                next_claim.remaining()
            } else {
                Duration::MAX
            };
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = gather(&mut self.signing, &mut self.sending, &mut self.finished) => {}
                () = tokio::time::sleep(until_claim) => {}
            }
            self.record().await?;
        }
        Ok(claimed)
    }

    /// Finishes what is under way as far as the grace and the leases allow, and releases the rest. Never fails: what cannot
    /// be released comes back by its lease.
    pub async fn wind_down(&mut self) {
        let longest = self
            .held
            .values()
            .map(|held| held.lease.remaining())
            .max()
            .unwrap_or_default();
        let end = Moment::now().plus(self.config.stop_grace.min(longest));
        while !self.held.is_empty() && !end.remaining().is_zero() {
            tokio::select! {
                () = gather(&mut self.signing, &mut self.sending, &mut self.finished) => {}
                () = tokio::time::sleep(end.remaining()) => break,
            }
            if let Err(error) = self.record().await {
                warn!(%error, "what was held is left to its lease");
                self.held.clear();
            }
        }
        self.signing.abort_all();
        self.sending.abort_all();
        let held: Vec<(Uuid, i64)> = self
            .held
            .drain()
            .map(|(id, held)| (id, held.fencing_token))
            .collect();
        if held.is_empty() {
            return;
        }
        match self.database.release(&self.config.worker_id, &held).await {
            Ok(released) => info!(
                held = held.len(),
                released, "released what was not finished"
            ),
            Err(error) => warn!(%error, held = held.len(), "not released: left to their leases"),
        }
    }

    async fn claim(&mut self, room: usize) -> Result<usize, CallError> {
        let of_database = self.database_lease().await?;
        // The claim names its lease, so that a setting changed meanwhile cannot make the database's count shorter than ours.
        let length = self.config.lease.unwrap_or(of_database);
        let start = Moment::now();
        let rows = self
            .database
            .claim(&self.config.worker_id, room, length)
            .await?;
        let lease = Lease::starting(start, length);
        let count = rows.len();
        let mut to_sign = 0;
        let mut to_send = 0;
        for row in rows {
            match row {
                Claimed::Task(task) => {
                    match task.action {
                        Action::Sign => to_sign += 1,
                        Action::Broadcast => to_send += 1,
                    }
                    self.begin(task, lease);
                }
                Claimed::Unusable {
                    operation_id,
                    fencing_token,
                    reason,
                } => {
                    warn!(%operation_id, fencing_token, reason, "a task that cannot be done: left to its lease");
                }
            }
        }
        if count > 0 {
            info!(
                claimed = count,
                to_sign,
                to_send,
                held = self.held.len(),
                took_ms = ms(start),
                "claimed"
            );
        }
        Ok(count)
    }

    /// The lease that the database's settings name: what every write of ours renews a claim by.
    async fn database_lease(&mut self) -> Result<Duration, CallError> {
        if let Some((length, asked)) = self.lease
            && asked.elapsed() < LEASE_KNOWN
        {
            return Ok(length);
        }
        let length = self.database.runner_state().await?.lease;
        self.lease = Some((length, Moment::now()));
        Ok(length)
    }

    /// Starts on a task, which takes the place of any earlier claim of the same withdrawal.
    fn begin(&mut self, task: Task, lease: Lease) {
        let held = Held {
            fencing_token: task.fencing_token,
            lease,
        };
        if self.held.insert(task.operation_id, held).is_some() {
            debug!(operation_id = %task.operation_id, "claimed anew while an earlier claim was under way");
        }
        match task.action {
            Action::Sign => {
                let work = sign(
                    task,
                    lease,
                    self.signers.clone(),
                    Arc::clone(&self.sign_permits),
                    self.config.sign_timeout,
                );
                self.signing.spawn(work);
            }
            Action::Broadcast => {
                self.sending.spawn(send(
                    task,
                    lease,
                    Arc::clone(&self.nodes),
                    Arc::clone(&self.send_permits),
                ));
            }
        }
    }

    async fn record(&mut self) -> Result<(), CallError> {
        let finished = std::mem::take(&mut self.finished);
        // Both are tried: that one cannot be recorded says nothing about the other.
        let signatures = self.record_signed(finished.signed).await;
        let answers = self.record_sent(finished.sent).await;
        signatures.and(answers)
    }

    async fn record_signed(&mut self, signed: Vec<Signed>) -> Result<(), CallError> {
        let mut results = vec![];
        let mut unsigned = vec![];
        for Signed { task, outcome } in signed {
            let Some(lease) = self.still_held(&task, "signed") else {
                continue;
            };
            let (operation_id, fencing_token, txid) =
                (task.operation_id, task.fencing_token, task.txid);
            self.held.remove(&operation_id);
            match outcome {
                // A signature whose lease is over is no longer ours to file: whoever claims next is offered the same digest.
                Ok(_) | Err(NotDone::Failed(_)) if !lease.holds() => {
                    lease_passed(&task, lease, "signed");
                }
                Err(NotDone::LeasePassed) => lease_passed(&task, lease, "signed"),
                Ok(signature) => results.push(SignatureResult {
                    operation_id,
                    fencing_token,
                    txid,
                    signature,
                }),
                Err(NotDone::Failed(error)) => {
                    warn!(%operation_id, %txid, wallet = %task.wallet, %error, "not signed");
                    unsigned.push(Unsigned {
                        operation_id,
                        fencing_token,
                        reason: format!("signer: {error}"),
                    });
                }
            }
        }
        self.put_off(&unsigned).await;
        self.file_signatures(&results).await
    }

    /// Puts off what nobody could sign. That it cannot be put off costs no more than a lease's time.
    async fn put_off(&mut self, unsigned: &[Unsigned]) {
        if unsigned.is_empty() {
            return;
        }
        let worker_id = &self.config.worker_id;
        if let Err(error) = self
            .database
            .postpone(worker_id, unsigned, UNSIGNED_PAUSE)
            .await
        {
            warn!(%error, unsigned = unsigned.len(), "not put off: left to their leases");
        }
    }

    async fn file_signatures(&mut self, results: &[SignatureResult]) -> Result<(), CallError> {
        if results.is_empty() {
            return Ok(());
        }
        let (of_database, _) = self.lease.expect("a claim came before, and asked for it");
        let start = Moment::now();
        let worker_id = &self.config.worker_id;
        let filed = self.database.record_signatures(worker_id, results).await;
        if filed.is_err() {
            for result in results {
                warn!(operation_id = %result.operation_id, txid = %result.txid, "signature not on file: dropped, nothing is sent");
            }
        }
        let recorded = filed?;
        let fenced = count_fenced(&recorded, results.iter().map(|result| &result.txid));
        // The write has renewed the claim by the database's own lease.
        let lease = Lease::starting(start, of_database);
        let mut to_send = 0;
        for next in recorded.into_iter().filter_map(|row| row.next) {
            match next {
                Claimed::Task(task) if task.action == Action::Broadcast => {
                    to_send += 1;
                    self.begin(task, lease);
                }
                other => {
                    warn!(
                        ?other,
                        "the answer to a signature is no send: left to its lease"
                    );
                }
            }
        }
        info!(
            signatures = results.len(),
            to_send,
            fenced,
            took_ms = ms(start),
            "recorded signatures"
        );
        Ok(())
    }

    async fn record_sent(&mut self, sent: Vec<Sent>) -> Result<(), CallError> {
        let mut results = vec![];
        for Sent { task, outcome } in sent {
            let Some(lease) = self.still_held(&task, "sent") else {
                continue;
            };
            let (operation_id, fencing_token, txid) =
                (task.operation_id, task.fencing_token, task.txid);
            self.held.remove(&operation_id);
            // An answer is filed however late it comes: nothing is done with it here, and the database knows whose word counts.
            match outcome {
                Ok(Answer {
                    node,
                    code,
                    message,
                }) => {
                    report(&task, &node, &code, &message);
                    results.push(BroadcastResult {
                        operation_id,
                        fencing_token,
                        txid,
                        node,
                        code,
                        message,
                    });
                }
                Err(NotDone::LeasePassed) => lease_passed(&task, lease, "sent"),
                Err(NotDone::Failed(never)) => match never {},
            }
        }
        self.file_answers(&results).await
    }

    async fn file_answers(&mut self, results: &[BroadcastResult]) -> Result<(), CallError> {
        if results.is_empty() {
            return Ok(());
        }
        let start = Moment::now();
        let worker_id = &self.config.worker_id;
        let filed = self.database.record_broadcasts(worker_id, results).await;
        if filed.is_err() {
            for result in results {
                warn!(
                    operation_id = %result.operation_id, txid = %result.txid, node = result.node, code = %result.code.name(),
                    "sent, and the answer is not on file: the same bytes will be sent again"
                );
            }
        }
        let fenced = count_fenced(&filed?, results.iter().map(|result| &result.txid));
        info!(
            answers = results.len(),
            fenced,
            codes = tally(results),
            took_ms = ms(start),
            "recorded answers"
        );
        Ok(())
    }

    /// The lease of a finished task, if the claim it belongs to is still the one that is held.
    fn still_held(&self, task: &Task, done: &'static str) -> Option<Lease> {
        match self.held.get(&task.operation_id) {
            Some(held) if held.fencing_token == task.fencing_token => Some(held.lease),
            Some(_) | None => {
                debug!(operation_id = %task.operation_id, txid = %task.txid, fencing_token = task.fencing_token, done, "under an earlier claim: dropped");
                None
            }
        }
    }
}

/// Says which results were another's to write, and counts them.
fn count_fenced<'a>(recorded: &[Recorded], txids: impl Iterator<Item = &'a Txid>) -> usize {
    let fenced = recorded
        .iter()
        .zip(txids)
        .filter(|(row, _)| row.state.is_none());
    fenced
        .inspect(|(row, txid)| {
            warn!(operation_id = %row.operation_id, %txid, "fenced out: the claim is no longer ours, dropped");
        })
        .count()
}

/// Waits for a result, and a little longer for others. Pending for ever while nothing is under way. What was gathered is
/// not lost when the wait is given up halfway.
async fn gather(
    signing: &mut JoinSet<Signed>,
    sending: &mut JoinSet<Sent>,
    finished: &mut Finished,
) {
    if finished.signed.is_empty() && finished.sent.is_empty() {
        tokio::select! {
            Some(signed) = signing.join_next() => finished.signed.push(unbroken(signed)),
            Some(sent) = sending.join_next() => finished.sent.push(unbroken(sent)),
            else => std::future::pending().await,
        }
    }
    if !signing.is_empty() || !sending.is_empty() {
        tokio::time::sleep(GATHER).await;
    }
    while let Some(signed) = signing.try_join_next() {
        finished.signed.push(unbroken(signed));
    }
    while let Some(sent) = sending.try_join_next() {
        finished.sent.push(unbroken(sent));
    }
}

/// The result of a task that cannot have been aborted, for nothing is while results are gathered; a panic goes on.
fn unbroken<T>(joined: Result<T, tokio::task::JoinError>) -> T {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn sign(
    task: Task,
    lease: Lease,
    signers: Signers,
    permits: Arc<Semaphore>,
    timeout: Duration,
) -> Signed {
    let _permit = permits
        .acquire()
        .await
        .expect("the semaphore is never closed");
    crash::point(Point::SignBefore);
    if !lease.holds() {
        return Signed {
            task,
            outcome: Err(NotDone::LeasePassed),
        };
    }
    let digest = Digest {
        txid: &task.txid,
        raw_data: &task.raw_data,
    };
    let time = timeout.min(lease.remaining());
    let outcome = match tokio::time::timeout(time, signers.sign(&task.wallet, digest)).await {
        Ok(answer) => answer.map_err(NotDone::Failed),
        Err(_) => Err(NotDone::Failed(SignerError::Late)),
    };
    crash::point(Point::SignAfter);
    Signed { task, outcome }
}

async fn send(task: Task, lease: Lease, nodes: Arc<Nodes>, permits: Arc<Semaphore>) -> Sent {
    let _permit = permits
        .acquire()
        .await
        .expect("the semaphore is never closed");
    crash::point(Point::SendBefore);
    if !lease.has_time_to_send() {
        return Sent {
            task,
            outcome: Err(NotDone::LeasePassed),
        };
    }
    let signature = task
        .signature
        .as_deref()
        .expect("a task to send is read with a signature or not at all");
    let transaction = signed_transaction(&task.raw_data, signature);
    let answer = nodes
        .broadcast(&transaction, &task.txid, lease.remaining())
        .await;
    crash::point(Point::SendAfter);
    Sent {
        task,
        outcome: Ok(answer),
    }
}

fn report(task: &Task, node: &str, code: &BroadcastCode, message: &str) {
    let (operation_id, txid, code_name) = (task.operation_id, task.txid, code.name());
    match code.verdict() {
        BroadcastVerdict::Accepted => {
            debug!(%operation_id, %txid, node, code = %code_name, said = message, "sent")
        }
        BroadcastVerdict::Refused | BroadcastVerdict::NoAnswer | BroadcastVerdict::Busy => {
            warn!(%operation_id, %txid, node, code = %code_name, said = message, "sent, and not taken: the same bytes will be sent again");
        }
    }
}

fn lease_passed(task: &Task, lease: Lease, done: &'static str) {
    warn!(
        operation_id = %task.operation_id, txid = %task.txid, lease = ?lease.length(), done,
        "not {done}: the lease was over. If this happens often, the lease is too short for signer and nodes, or the batch too large",
    );
}

fn tally(results: &[BroadcastResult]) -> String {
    let mut counts = BTreeMap::new();
    for result in results {
        *counts.entry(result.code.name()).or_insert(0) += 1;
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(code, count)| format!("{count} {code}"))
        .collect();
    parts.join(", ")
}

fn ms(since: Moment) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
