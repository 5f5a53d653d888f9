//! Following the chain: solid blocks, in order and without a gap, from the block after the last one on file. The database
//! checks every one again; this file sees to it that what is handed in is a chain, and says loudly when it cannot.
//!
//! Near the tip, each look asks for the one next solid block. Farther behind, blocks come in batches from
//! /wallet/getblockbylimitnext, never beyond the solid head, and a batch counts only if its last id is the one that the solid
//! API gives for that number: each block names its predecessor, so all of them are then solid. (/walletsolidity/
//! getblockbylimitnext may answer with blocks that are not: `Chainbase.java`, `getValuesNext`.)

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::block_json::CheckedBlock;
use crate::calls::{Followed, Settled};
use crate::config::FollowConfig;
use crate::crash::{self, Point};
use crate::db::{CallError, Database};
use crate::lease::Moment;
use crate::node::{Node, ReadError};
use crate::nodes::Nodes;
use crate::poll::{Pace, jittered};

/// Up to so many blocks behind, each is asked for by itself: two requests to the solid API are as many as a batch needs.
const FEW: i64 = 2;

/// How long to trust that the tip was reached before asking for the head again.
const TIP_KNOWN: Duration = Duration::from_secs(10);

/// The follower.
pub struct Follower {
    config: FollowConfig,
    database: Database,
    nodes: Arc<Nodes>,
    stop: CancellationToken,
    /// Rung when blocks settled something: there may be work.
    settled: Arc<Notify>,
    /// Which node is read from.
    reading: usize,
    /// When that node last showed its solid head to be the last block on file.
    at_tip: Option<Moment>,
    /// When a block was last read.
    moved: Moment,
    /// What to ask for at once; smaller for a while after an answer was too long.
    batch: i64,
    alarm: Option<Alarm>,
}

/// What a person must look at: the follower cannot go on by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}. {remedy}")]
pub struct Alarm {
    /// Which block, where it is about one.
    pub block: Option<i64>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

impl Alarm {
    /// The alarm about a block whose JSON contradicts itself.
    #[must_use]
    pub fn about_bad_block(error: &ReadError) -> Self {
        let block = match error {
            ReadError::BadBlock { error, .. } => error.number(),
            ReadError::NoAnswer(_) => None,
        };
        Self {
            block,
            what: error.to_string(),
            remedy: BAD_BLOCK,
        }
    }
}

/// Why a look brought nothing, though it should have.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The database could not be asked.
    #[error(transparent)]
    Database(CallError),
    /// No node gave a clean answer.
    #[error("no node gave an answer: {0}")]
    NoAnswer(String),
    /// A person must look.
    #[error(transparent)]
    Alarm(Alarm),
    /// The database follows no chain yet.
    #[error(
        "the database follows no chain yet: run sluice-runner start-block, and the statement that it prints, as a member of sluice_operator"
    )]
    NoStart,
}

const BAD_BLOCK: &str = "Read from another node (--node): a gateway that rewrites or strips transactions gives this. If every \
     node gives the same, the block holds bytes that java-tron's JSON does not show: fetch it over gRPC \
     (protocol.WalletSolidity/GetBlockByNum) and hand its protobuf bytes in with \
     select * from sluice.observe_blocks('by hand', array['\\x…'::bytea]); the follower goes on from there";

const REFUSED_BLOCK: &str = "If its parent is not the last block on file, the node follows another chain than this database, or \
     the database another than it should: compare with sluice-runner start-block --number, and point --node at a node of \
     the right chain";

const OTHER_CHAIN: &str =
    "The node is on another chain than this database: point --node at a node of the right one";

impl Follower {
    /// A follower that has read nothing yet.
    #[must_use]
    pub fn new(
        config: FollowConfig,
        database: Database,
        nodes: Arc<Nodes>,
        stop: CancellationToken,
        settled: Arc<Notify>,
    ) -> Self {
        Self {
            batch: config.batch,
            config,
            database,
            nodes,
            stop,
            settled,
            reading: 0,
            at_tip: None,
            moved: Moment::now(),
            alarm: None,
        }
    }

    /// Follows until told to stop. An alarm is kept and tried again, ever less often.
    pub async fn run(&mut self) {
        let mut retry = retry_pace();
        while let Some(looked) = self.look_unless_stopped().await {
            if let Err(error) = &looked {
                self.report(error);
            }
            self.rest(looked, &mut retry).await;
        }
    }

    /// Follows until told to stop, or until a person must look.
    pub async fn run_until_alarm(&mut self) -> Result<(), Alarm> {
        let mut retry = retry_pace();
        while let Some(looked) = self.look_unless_stopped().await {
            if let Err(error) = &looked {
                self.report(error);
            }
            if let Err(FollowError::Alarm(alarm)) = looked {
                return Err(alarm);
            }
            self.rest(looked, &mut retry).await;
        }
        Ok(())
    }

    /// Reads up to the solid head that a node shows now; answers how many blocks were handed in.
    pub async fn catch_up(&mut self) -> Result<usize, FollowError> {
        self.at_tip = None;
        let mut read = 0;
        while !self.stop.is_cancelled() {
            match self.look().await? {
                0 => break,
                blocks => read += blocks,
            }
        }
        Ok(read)
    }

    /// Hands in the next blocks, if there are any; answers how many.
    async fn look(&mut self) -> Result<usize, FollowError> {
        let state = self
            .database
            .runner_state()
            .await
            .map_err(FollowError::Database)?;
        let followed = state.followed.ok_or(FollowError::NoStart)?;
        let Some((node, blocks)) = self.read_after(followed).await? else {
            return Ok(0);
        };
        let number = self.hand_in(&node, &blocks).await?;
        self.moved = Moment::now();
        if let Some(alarm) = self.alarm.take() {
            info!(
                alarm = false,
                block = alarm.block,
                "the follower goes on, the alarm is over"
            );
        }
        Ok(number)
    }

    /// The blocks after the last one on file, from the first node that has them, beginning with the one read from before.
    async fn read_after(
        &mut self,
        followed: Followed,
    ) -> Result<Option<(Node, Vec<CheckedBlock>)>, FollowError> {
        let nodes = Arc::clone(&self.nodes);
        let count = nodes.all().len();
        let mut no_answers = vec![];
        let mut alarm = None;
        let mut at_tip = false;
        for index in (0..count)
            .map(|step| (self.reading + step) % count)
            .collect::<Vec<_>>()
        {
            let node = &nodes.all()[index];
            match self.read_from(node, followed).await {
                Ok(blocks) if blocks.is_empty() => {
                    at_tip = true;
                    // Its head stands still: perhaps the node does, and not the chain.
                    if self.moved.elapsed() < self.config.stalled {
                        break;
                    }
                }
                Ok(blocks) => {
                    if index != self.reading {
                        info!(node = node.name(), "reading from this node now");
                        self.reading = index;
                    }
                    return Ok(Some((node.clone(), blocks)));
                }
                Err(FollowError::Alarm(bad)) => {
                    warn!(
                        node = node.name(),
                        block = bad.block,
                        what = bad.what,
                        "a block that cannot be used"
                    );
                    alarm.get_or_insert(bad);
                }
                Err(FollowError::NoAnswer(reason)) => no_answers.push(reason),
                Err(error @ (FollowError::Database(_) | FollowError::NoStart)) => {
                    return Err(error);
                }
            }
            self.at_tip = None;
        }
        match alarm {
            Some(alarm) => Err(FollowError::Alarm(alarm)),
            None if at_tip => Ok(None),
            None => Err(FollowError::NoAnswer(no_answers.join("; "))),
        }
    }

    async fn read_from(
        &mut self,
        node: &Node,
        followed: Followed,
    ) -> Result<Vec<CheckedBlock>, FollowError> {
        let first = followed.number + 1;
        if self.at_tip.is_some_and(|since| since.elapsed() < TIP_KNOWN) {
            let next = node.solid_block(first).await.map_err(read_error)?;
            return follows_on(next.into_iter().collect(), followed);
        }
        let head = node.solid_head().await.map_err(read_error)?;
        if head.number == followed.number && head.id != followed.id {
            return Err(FollowError::Alarm(Alarm {
                block: Some(head.number),
                what: format!(
                    "{}: solid block {} is {}, the one on file is {}",
                    node.name(),
                    head.number,
                    hex::encode(head.id),
                    hex::encode(followed.id)
                ),
                remedy: OTHER_CHAIN,
            }));
        }
        if head.number < first {
            self.at_tip = Some(Moment::now());
            return Ok(vec![]);
        }
        self.at_tip = None;
        let last = head.number.min(first + self.batch - 1);
        let blocks = if last - first < FEW {
            self.one_by_one(node, first, last, head).await?
        } else {
            match self.in_a_batch(node, first, last, &head).await {
                Ok(blocks) => blocks,
                // A node that hands out no ranges, or a chain that has just been reorganised above the solid head.
                Err(FollowError::NoAnswer(reason)) => {
                    debug!(reason, "no batch of blocks: reading them one by one");
                    self.batch = (self.batch / 2).max(1);
                    self.one_by_one(node, first, first, head).await?
                }
                Err(error) => return Err(error),
            }
        };
        follows_on(blocks, followed)
    }

    async fn one_by_one(
        &self,
        node: &Node,
        first: i64,
        last: i64,
        head: CheckedBlock,
    ) -> Result<Vec<CheckedBlock>, FollowError> {
        let mut blocks = vec![];
        for number in first..=last.min(head.number - 1) {
            match node.solid_block(number).await.map_err(read_error)? {
                Some(block) => blocks.push(block),
                None => {
                    return Err(FollowError::NoAnswer(format!(
                        "{}: no block {number}, though its head is {}",
                        node.name(),
                        head.number
                    )));
                }
            }
        }
        if last == head.number {
            blocks.push(head);
        }
        Ok(blocks)
    }

    async fn in_a_batch(
        &mut self,
        node: &Node,
        first: i64,
        last: i64,
        head: &CheckedBlock,
    ) -> Result<Vec<CheckedBlock>, FollowError> {
        let blocks = node.blocks(first, last).await.map_err(read_error)?;
        let newest = blocks
            .last()
            .expect("a node's list of blocks is never empty");
        let solid_id = if newest.number == head.number {
            head.id
        } else {
            match node.solid_block(newest.number).await.map_err(read_error)? {
                Some(solid) => solid.id,
                None => {
                    return Err(FollowError::NoAnswer(format!(
                        "{}: no solid block {}",
                        node.name(),
                        newest.number
                    )));
                }
            }
        };
        if solid_id != newest.id {
            return Err(FollowError::NoAnswer(format!(
                "{}: block {} of its batch is not the solid one",
                node.name(),
                newest.number
            )));
        }
        self.batch = (self.batch * 2).min(self.config.batch);
        Ok(blocks)
    }

    /// Hands the blocks to the database; where it refuses them, one by one, so that all before the culprit count and the
    /// alarm names it.
    async fn hand_in(
        &mut self,
        node: &Node,
        blocks: &[CheckedBlock],
    ) -> Result<usize, FollowError> {
        match self.observe(node, blocks).await {
            Err(error) if error.is_a_verdict() && blocks.len() > 1 => {
                warn!(%error, blocks = blocks.len(), "a batch of blocks was refused: handing them in one by one");
                for block in blocks {
                    self.observe(node, std::slice::from_ref(block))
                        .await
                        .map_err(|error| refused(node, block, error))?;
                }
            }
            Err(error) => return Err(refused(node, &blocks[0], error)),
            Ok(()) => {}
        }
        Ok(blocks.len())
    }

    async fn observe(&mut self, node: &Node, blocks: &[CheckedBlock]) -> Result<(), CallError> {
        crash::point(Point::ObserveBefore);
        let start = Moment::now();
        let bytes: Vec<&[u8]> = blocks.iter().map(|block| block.bytes.as_slice()).collect();
        let settled = self.database.observe(node.name(), &bytes).await?;
        let newest = blocks
            .last()
            .expect("blocks are handed in, not their absence");
        let took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        if blocks.len() > 1 || !settled.is_empty() {
            info!(
                blocks = blocks.len(),
                newest = newest.number,
                settled = settled.len(),
                node = node.name(),
                took_ms,
                "observed"
            );
        } else {
            debug!(
                block = newest.number,
                node = node.name(),
                took_ms,
                "observed"
            );
        }
        settled.iter().for_each(tell);
        if !settled.is_empty() {
            self.settled.notify_one();
        }
        Ok(())
    }

    fn report(&mut self, error: &FollowError) {
        match error {
            FollowError::Alarm(alarm) => {
                error!(
                    alarm = true,
                    block = alarm.block,
                    what = alarm.what,
                    remedy = alarm.remedy,
                    "the follower stands still"
                );
                self.alarm = Some(alarm.clone());
            }
            FollowError::Database(_) | FollowError::NoAnswer(_) | FollowError::NoStart => {
                warn!(%error, alarm = self.alarm.is_some(), "no block was read");
            }
        }
    }

    /// A look, given up when told to stop: what it had begun in the database is rolled back, or is on file and harmless.
    async fn look_unless_stopped(&mut self) -> Option<Result<usize, FollowError>> {
        let stop = self.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            looked = self.look() => Some(looked),
        }
    }

    async fn rest(&self, looked: Result<usize, FollowError>, retry: &mut Pace) {
        let pause = match looked {
            Ok(0) => jittered(self.config.poll),
            Ok(_) => Duration::ZERO,
            Err(_) => retry.next_pause(),
        };
        if looked.is_ok() {
            retry.quicken();
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The pauses after looks that failed.
fn retry_pace() -> Pace {
    Pace::new(Duration::from_millis(500), Duration::from_secs(60))
}

/// Blocks that begin where the last one on file ends, or an alarm: solid blocks never change, so this is another chain.
fn follows_on(
    blocks: Vec<CheckedBlock>,
    followed: Followed,
) -> Result<Vec<CheckedBlock>, FollowError> {
    match blocks.first() {
        Some(first) if first.parent_id != followed.id => Err(FollowError::Alarm(Alarm {
            block: Some(first.number),
            what: format!(
                "solid block {} ({}) names {} as its parent, the block on file is {}",
                first.number,
                hex::encode(first.id),
                hex::encode(first.parent_id),
                hex::encode(followed.id)
            ),
            remedy: OTHER_CHAIN,
        })),
        Some(_) | None => Ok(blocks),
    }
}

fn read_error(error: ReadError) -> FollowError {
    match error {
        ReadError::NoAnswer(no_answer) => FollowError::NoAnswer(no_answer.to_string()),
        bad @ ReadError::BadBlock { .. } => FollowError::Alarm(Alarm::about_bad_block(&bad)),
    }
}

fn refused(node: &Node, block: &CheckedBlock, error: CallError) -> FollowError {
    if !error.is_a_verdict() {
        return FollowError::Database(error);
    }
    FollowError::Alarm(Alarm {
        block: Some(block.number),
        what: format!(
            "the database refused block {} ({}) of {}: {error}",
            block.number,
            hex::encode(block.id),
            node.name()
        ),
        remedy: REFUSED_BLOCK,
    })
}

fn tell(settled: &Settled) {
    let txid = settled.txid.map(|txid| txid.to_string());
    info!(operation_id = %settled.operation_id, state = %settled.state, txid, block = settled.block_number, "settled");
}
