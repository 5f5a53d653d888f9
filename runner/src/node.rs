//! One TRON node over java-tron's HTTP API. Anything but a clean answer is *no answer*: a status other than 200, a time-out,
//! a body that is too long or not JSON, `{"Error": …}` with status 200, a missing field, another transaction's id. It
//! says nothing about what was asked, least of all that a transaction was refused.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use sluice_core::broadcast::BroadcastCode;
use sluice_core::envelope::Txid;

use crate::block_json::{BlockJsonError, CheckedBlock, checked_block};

/// The most blocks that java-tron hands out at once (`GetBlockByLimitNextServlet.java`).
pub const MOST_BLOCKS: i64 = 100;

/// How much of what a node said is kept.
const LONGEST_REMARK: usize = 300;

/// Limits of every request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the first byte sent to the last received, for reads.
    pub read_timeout: Duration,
    /// The same, for a broadcast.
    pub send_timeout: Duration,
    /// The longest body taken, in bytes.
    pub max_response: u64,
}

/// Where a node is, and how to speak to it.
#[derive(Clone)]
pub struct Node {
    name: String,
    full: Url,
    solid: Url,
    client: reqwest::Client,
    limits: Limits,
}

/// No answer, and why, in words fit for a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no answer from {node}: {reason}")]
pub struct NoAnswer {
    /// Which node.
    pub node: String,
    /// What came instead.
    pub reason: Reason,
}

/// What came instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The connection was never made: not a byte of the request has left.
    #[error("not connected: {0}")]
    NotConnected(String),
    /// The time was over.
    #[error("nothing within {0:?}")]
    TimedOut(Duration),
    /// The connection broke.
    #[error("{0}")]
    Broken(String),
    /// A status other than 200, with the beginning of the body.
    #[error("HTTP {status} {body:?}")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// More than is taken.
    #[error("a body of more than {0} bytes")]
    TooLong(u64),
    /// Not JSON; the beginning of it.
    #[error("not JSON: {0:?}")]
    NotJson(String),
    /// `{"Error": …}`
    #[error("Error {0:?}")]
    Error(String),
    /// JSON without what was asked for.
    #[error("{0}")]
    Unclear(String),
}

/// A node's word about a broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Who was asked.
    pub node: String,
    /// What it said; `NoAnswer` where it said nothing.
    pub code: BroadcastCode,
    /// The text beside the code, or why there is no answer.
    pub message: String,
}

/// Why a block could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing was said.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// A block that contradicts itself.
    #[error("{node}: {error}")]
    BadBlock {
        /// Who sent it.
        node: String,
        /// What is wrong with it.
        error: BlockJsonError,
    },
}

impl Node {
    /// A node with its full API at `full` and its solid API at `solid` (often the same).
    #[must_use]
    pub fn new(full: Url, solid: Url, client: reqwest::Client, limits: Limits) -> Self {
        Self {
            name: name_of(&full),
            full,
            solid,
            client,
            limits,
        }
    }

    /// Host and port. The rest of a URL may hold a customer's key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hands a signed transaction to the node, within `time` or the configured time-out, whichever is shorter.
    ///
    /// An error only where no connection came about, so that another node may be asked at once; whatever else goes wrong
    /// is the answer `NO_ANSWER`, for the bytes may have arrived.
    pub async fn broadcast(
        &self,
        transaction: &[u8],
        txid: &Txid,
        time: Duration,
    ) -> Result<Answer, NoAnswer> {
        let body = json!({ "transaction": hex::encode(transaction) });
        let time = time.min(self.limits.send_timeout);
        let said = match self
            .post(&self.full, "wallet/broadcasthex", &body, time)
            .await
        {
            Ok(json) => broadcast_answer(&json, txid).map_err(Reason::Unclear),
            Err(not_connected @ Reason::NotConnected(_)) => {
                return Err(self.no_answer(not_connected));
            }
            Err(reason) => Err(reason),
        };
        let (code, message) =
            // Quoted, what cannot be printed becomes longer.
            said.unwrap_or_else(|reason| {
                (BroadcastCode::NoAnswer, remark(reason.to_string().as_bytes()))
            });
        Ok(Answer {
            node: self.name.clone(),
            code,
            message,
        })
    }

    /// The newest solid block.
    pub async fn solid_head(&self) -> Result<CheckedBlock, ReadError> {
        let json = self
            .ask(&self.solid, "walletsolidity/getnowblock", &json!({}))
            .await?;
        self.block(json).await
    }

    /// The solid block with this number, or `None` where the node has none (yet).
    pub async fn solid_block(&self, number: i64) -> Result<Option<CheckedBlock>, ReadError> {
        let json = self
            .ask(
                &self.solid,
                "walletsolidity/getblockbynum",
                &json!({ "num": number }),
            )
            .await?;
        if json.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(None);
        }
        let block = self.block(json).await?;
        self.expect_number(&block, number)?;
        Ok(Some(block))
    }

    /// Blocks `first..=last` as the node's present chain has them, possibly fewer, never none: consecutive, each naming its
    /// predecessor. Not necessarily solid: the caller compares the last one's id with the solid one.
    pub async fn blocks(&self, first: i64, last: i64) -> Result<Vec<CheckedBlock>, ReadError> {
        let range = json!({ "startNum": first, "endNum": last + 1 });
        let mut json = self
            .ask(&self.full, "wallet/getblockbylimitnext", &range)
            .await?;
        let Some(Value::Array(list)) = json.get_mut("block").map(Value::take) else {
            return Err(self.unclear("an answer without a list of blocks").into());
        };
        let blocks = self
            .off_the_async_threads(move || {
                list.iter()
                    .map(checked_block)
                    .collect::<Result<Vec<_>, _>>()
            })
            .await?;
        let Some(newest) = blocks.last() else {
            return Err(self.unclear("an empty list of blocks").into());
        };
        if newest.number > last {
            return Err(self.unclear("blocks beyond those asked for").into());
        }
        for (block, number) in blocks.iter().zip(first..) {
            self.expect_number(block, number)?;
        }
        if blocks
            .windows(2)
            .any(|pair| pair[1].parent_id != pair[0].id)
        {
            return Err(self
                .unclear("blocks that do not follow from each other")
                .into());
        }
        Ok(blocks)
    }

    async fn block(&self, json: Value) -> Result<CheckedBlock, ReadError> {
        self.off_the_async_threads(move || checked_block(&json))
            .await
    }

    /// Runs what may take a tenth of a second of computing where it holds up no timer and no connection.
    async fn off_the_async_threads<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, BlockJsonError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let done = tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
        done.map_err(|error| {
            if error.contradicts_itself() {
                ReadError::BadBlock {
                    node: self.name.clone(),
                    error,
                }
            } else {
                self.unclear(&error.to_string()).into()
            }
        })
    }

    fn expect_number(&self, block: &CheckedBlock, number: i64) -> Result<(), NoAnswer> {
        if block.number == number {
            return Ok(());
        }
        Err(self.unclear(&format!(
            "block {} where {number} was asked for",
            block.number
        )))
    }

    async fn ask(&self, base: &Url, path: &str, body: &Value) -> Result<Value, NoAnswer> {
        self.post(base, path, body, self.limits.read_timeout)
            .await
            .map_err(|reason| self.no_answer(reason))
    }

    async fn post(
        &self,
        base: &Url,
        path: &str,
        body: &Value,
        time: Duration,
    ) -> Result<Value, Reason> {
        let mut url = base.clone();
        url.path_segments_mut()
            .expect("configuration takes only http URLs, which have a path")
            .pop_if_empty()
            .extend(path.split('/'));
        let broken = |error: reqwest::Error| match error {
            error if error.is_timeout() && !error.is_connect() => Reason::TimedOut(time),
            error if error.is_connect() => Reason::NotConnected(causes(&error.without_url())),
            error => Reason::Broken(causes(&error.without_url())),
        };
        let request = self
            .client
            .post(url)
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .body(body.to_string())
            .timeout(time);
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if (bytes.len() + chunk.len()) as u64 > self.limits.max_response {
                return Err(Reason::TooLong(self.limits.max_response));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status != reqwest::StatusCode::OK {
            return Err(Reason::Status {
                status: status.as_u16(),
                body: remark(&bytes),
            });
        }
        let json: Value =
            serde_json::from_slice(&bytes).map_err(|_| Reason::NotJson(remark(&bytes)))?;
        match json.get("Error") {
            None => Ok(json),
            Some(error) => Err(Reason::Error(remark(
                error.as_str().unwrap_or_default().as_bytes(),
            ))),
        }
    }

    fn no_answer(&self, reason: Reason) -> NoAnswer {
        NoAnswer {
            node: self.name.clone(),
            reason,
        }
    }

    fn unclear(&self, what: &str) -> NoAnswer {
        self.no_answer(Reason::Unclear(what.to_owned()))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.name)
    }
}

/// Reads what /wallet/broadcasthex said (`BroadcastHexServlet.java` writes all these keys, always), if it is about `txid` and
/// does not contradict itself.
fn broadcast_answer(json: &Value, txid: &Txid) -> Result<(BroadcastCode, String), String> {
    let text = |key: &str| {
        json.get(key)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("an answer without {key}"))
    };
    let result = json
        .get("result")
        .and_then(Value::as_bool)
        .ok_or("an answer without result")?;
    // A name that nobody has given is a stranger's word like any other.
    let code = BroadcastCode::from_name(&remark(text("code")?.as_bytes()));
    let message = text("message")?;
    let about = text("txid")?;
    if !about.eq_ignore_ascii_case(&txid.to_string()) {
        return Err(format!(
            "an answer about another transaction, {}",
            remark(about.as_bytes())
        ));
    }
    if result != (code == BroadcastCode::Success) {
        return Err(format!(
            "an answer that contradicts itself: result {result} with code {}",
            remark(code.name().as_bytes())
        ));
    }
    Ok((code, remark(message.as_bytes())))
}

/// The beginning of what a stranger said, fit for a log and for PostgreSQL's text.
fn remark(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST_REMARK)])
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST_REMARK)
        .collect()
}

/// An error with what caused it; its own text often leaves out the only part that helps.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    remark(text.as_bytes())
}

fn name_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
