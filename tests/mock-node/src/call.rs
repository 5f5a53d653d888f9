//! A call, from its arrival to what goes back over the wire: read, met with the rules for faults, done, written down,
//! answered.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::block::sha256;
use crate::broadcast::Verdict;
use crate::endpoint::Endpoint;
use crate::faults::{CALL_SLOTS, Fault, Silence, Slot};
use crate::json::{self, Fields};
use crate::log::{NO_ANSWER, Request, Sent, worker_of};
use crate::net::Net;
use crate::pack;
use crate::params::{Params, ServletError};
use crate::query::Lens;
use crate::rules::{Struck, Subject};
use crate::text::Tag;
use crate::transaction::Tx;

/// What a lite full node says to a history query.
const LITE: &str = "this API is closed because this node is a lite fullnode";
/// What a node says of an endpoint that its operator closed (`HttpApiAccessFilter`).
const DISABLED: &str = "this API is unavailable due to config";
/// What TronGrid says over its limits.
const OVER_LIMIT: &str =
    "The key exceeds the frequency limit(15), and the query server is suspended for 30s";

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The node asked, from 0.
    pub node: usize,
    /// Under /walletsolidity.
    pub solid: bool,
    /// What is asked.
    pub endpoint: Endpoint,
    /// Its parameters, if they can be read.
    pub params: Result<Params, ServletError>,
    /// The header.
    pub user_agent: Option<String>,
}

/// What goes back.
#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    /// An answer.
    Reply(Reply),
    /// None.
    Silence(Silence),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Whether it claims to be JSON.
    pub is_json: bool,
    /// The body.
    pub body: String,
}

impl Reply {
    fn json(value: &Value) -> Self {
        Self {
            status: 200,
            is_json: true,
            body: value.to_string(),
        }
    }

    fn error(text: &str) -> Self {
        Self::json(&json!({ "Error": text }))
    }

    fn text(status: u16, body: &str) -> Self {
        Self {
            status,
            is_json: false,
            body: body.to_owned(),
        }
    }

    fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

/// A call that was read and met with the rules, and whose work is not done yet.
#[derive(Debug)]
pub struct Pending {
    incoming: Incoming,
    worker: Option<String>,
    tx: Option<Result<Arc<Tx>, ServletError>>,
    subject: Subject,
    struck: Vec<Struck>,
}

impl Pending {
    /// How long, in real time, the work waits.
    #[must_use]
    pub fn wait_before(&self) -> Duration {
        self.delay(true)
    }

    /// How long, in real time, the answer waits after the work.
    #[must_use]
    pub fn wait_after(&self) -> Duration {
        self.delay(false)
    }

    fn delay(&self, wanted: bool) -> Duration {
        match self.fault(Slot::Delay) {
            Some(Fault::Delay { ms, before }) if *before == wanted => Duration::from_millis(*ms),
            Some(_) | None => Duration::ZERO,
        }
    }

    fn fault(&self, slot: Slot) -> Option<&Fault> {
        self.struck
            .iter()
            .map(|struck| &struck.fault)
            .find(|fault| fault.slot() == slot)
    }
}

impl Net {
    /// Reads a call and meets it with the rules.
    pub fn begin(&mut self, incoming: Incoming) -> Pending {
        let root = if incoming.solid {
            "walletsolidity"
        } else {
            "wallet"
        };
        let worker = incoming.user_agent.as_deref().and_then(worker_of);
        self.log.request(Request {
            node: incoming.node,
            path: format!("/{root}/{}", incoming.endpoint.name()),
            worker: worker.clone(),
        });
        let tx = incoming
            .endpoint
            .is_broadcast()
            .then(|| read_transaction(&incoming));
        let sent = tx.as_ref().and_then(|tx| tx.as_ref().ok());
        let asked = incoming
            .params
            .as_ref()
            .ok()
            .and_then(|params| params.bytes("value").ok());
        let subject = Subject {
            endpoint: Some((incoming.endpoint, incoming.solid)),
            node: Some(incoming.node),
            owner: sent.and_then(|tx| tx.owner),
            txid: sent
                .map(|tx| tx.txid)
                .or_else(|| sluice_core::envelope::Txid::from_bytes(&asked?).ok()),
            tag: sent.and_then(|tx| tx.tag()).map(Tag),
            worker: worker.clone(),
            block: number_asked(&incoming),
        };
        let struck = self.faults.strike(&CALL_SLOTS, &subject);
        Pending {
            incoming,
            worker,
            tx,
            subject,
            struck,
        }
    }

    /// Does the work of a call and answers it.
    pub fn finish(&mut self, pending: &Pending) -> Outgoing {
        match &pending.tx {
            Some(tx) => self.finish_broadcast(pending, tx),
            None => self.finish_query(pending),
        }
    }

    // Questions

    fn finish_query(&mut self, pending: &Pending) -> Outgoing {
        if let Some(outgoing) = lie(pending.fault(Slot::Way)) {
            return outgoing;
        }
        let asked = &pending.incoming;
        let settings = &self.nodes[asked.node].settings;
        if settings
            .disabled
            .iter()
            .any(|name| name == asked.endpoint.name())
        {
            return Outgoing::Reply(Reply::error(DISABLED).with_status(404));
        }
        if settings.lite && asked.endpoint.is_history() {
            return Outgoing::Reply(Reply::text(200, LITE));
        }
        let lens = self.lens(pending);
        let params = match &asked.params {
            Ok(params) => params,
            Err(error) => return Outgoing::Reply(Reply::error(&error.0)),
        };
        match self.query(&lens, asked.endpoint, params) {
            Ok(value) => Outgoing::Reply(shaped(value, pending.fault(Slot::Shape))),
            Err(error) => Outgoing::Reply(Reply::error(&error.0)),
        }
    }

    fn lens(&self, pending: &Pending) -> Lens {
        let asked = &pending.incoming;
        let node = match pending.fault(Slot::Backend) {
            Some(Fault::Backend { node }) if *node < self.nodes.len() => *node,
            Some(_) | None => asked.node,
        };
        let behind = match pending.fault(Slot::Height) {
            Some(Fault::Behind { blocks }) => *blocks,
            Some(_) | None => 0,
        };
        let head = self.nodes[node].view.head().number;
        let top = if asked.solid {
            self.solid_height(node)
        } else {
            head
        };
        let top = (top - behind).max(0);
        let leaks = pending.fault(Slot::Leak).is_some() || self.nodes[node].settings.leaks_unsolid;
        Lens {
            node,
            solid: asked.solid,
            top,
            list_top: if leaks { head } else { top },
            subject: pending.subject.clone(),
        }
    }

    // Broadcasts

    fn finish_broadcast(
        &mut self,
        pending: &Pending,
        tx: &Result<Arc<Tx>, ServletError>,
    ) -> Outgoing {
        let way = pending.fault(Slot::Way);
        let node = pending.incoming.node;
        let closed = self.nodes[node]
            .settings
            .disabled
            .iter()
            .any(|name| name == pending.incoming.endpoint.name());
        let mut verdict = None;
        if let Ok(tx) = tx {
            self.log.open(tx);
            if !closed && way.is_none_or(keeps) {
                let local_only = pending.fault(Slot::Gossip).is_some();
                verdict = Some(self.broadcast(node, tx, local_only));
                if let Some(Fault::Evict { after_ms }) = pending.fault(Slot::Evict) {
                    self.evict_later(tx, *after_ms);
                }
            }
        }

        let visible = pending.incoming.params.as_ref().is_ok_and(Params::visible);
        let hex = pending.incoming.endpoint == Endpoint::BroadcastHex;
        let truth = match (tx, &verdict) {
            (Err(error), _) => Reply::error(&error.0),
            (Ok(_), None) if closed => Reply::error(DISABLED).with_status(404),
            (Ok(tx), verdict) => {
                let (code, message, result) = said(way, verdict.as_ref());
                let value = if hex {
                    hex_answer(tx, &code, &message, result)
                } else {
                    message_answer(tx, &code, &message, result, visible)
                };
                shaped(value, pending.fault(Slot::Shape))
            }
        };
        let outgoing = match way {
            Some(Fault::Answer { .. }) | None => Outgoing::Reply(truth),
            Some(_) => lie(way).unwrap_or(Outgoing::Reply(truth)),
        };
        self.write_down(pending, tx, verdict.as_ref(), &outgoing);
        outgoing
    }

    fn evict_later(&mut self, tx: &Tx, after_ms: i64) {
        let at = self.clock.now().saturating_add(after_ms);
        for holder in self.holders() {
            self.pool_mut(holder).evict_at(&tx.txid, at);
        }
    }

    fn write_down(
        &mut self,
        pending: &Pending,
        tx: &Result<Arc<Tx>, ServletError>,
        verdict: Option<&Verdict>,
        outgoing: &Outgoing,
    ) {
        let (answered, message) = match outgoing {
            Outgoing::Silence(_) => (NO_ANSWER.to_owned(), String::new()),
            Outgoing::Reply(reply) => in_words(reply, pending.incoming.endpoint),
        };
        let tx = tx.as_ref().ok();
        self.log.sent(Sent {
            seq: 0,
            at_ms: self.clock.now(),
            wall_ms: wall_ms(),
            node: pending.incoming.node,
            endpoint: pending.incoming.endpoint.name().to_owned(),
            worker: pending.worker.clone(),
            txid: tx.map(|tx| tx.txid),
            tag: tx.and_then(|tx| tx.tag()).map(Tag),
            owner: tx.and_then(|tx| tx.owner),
            answered,
            message,
            judged: verdict.map(|verdict| verdict.code.to_owned()),
            kept: verdict.is_some_and(|verdict| verdict.kept),
            accepted: verdict.is_some_and(|verdict| verdict.accepted),
            faults: pending
                .struck
                .iter()
                .map(|struck| struck.fault.name())
                .collect(),
        });
    }
}

/// The machine's time, in milliseconds since the Unix epoch.
#[must_use]
pub fn wall_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn read_transaction(incoming: &Incoming) -> Result<Arc<Tx>, ServletError> {
    let params = incoming.params.as_ref().map_err(Clone::clone)?;
    let null = || ServletError::of("java.lang.NullPointerException", "null");
    if *params == Params::Nothing {
        return Err(null());
    }
    if incoming.endpoint == Endpoint::BroadcastTransaction {
        return pack::transaction(&params.body(), params.visible())
            .map(Arc::new)
            .map_err(|_| null());
    }
    let bytes = params.bytes("transaction")?;
    Tx::decode(&bytes).map(Arc::new).map_err(|error| {
        ServletError::of(
            "com.google.protobuf.InvalidProtocolBufferException",
            &error.to_string(),
        )
    })
}

fn number_asked(incoming: &Incoming) -> Option<i64> {
    let params = incoming.params.as_ref().ok()?;
    match incoming.endpoint {
        Endpoint::BlockByNum | Endpoint::TransactionInfoByBlockNum => params.integer("num").ok(),
        Endpoint::Block => params.text("id_or_num")?.parse().ok(),
        _ => None,
    }
}

/// Whether the node does its work before it lies.
fn keeps(way: &Fault) -> bool {
    match way {
        Fault::AcceptThenTimeout { .. } => true,
        Fault::Answer { keep, .. }
        | Fault::Body { keep, .. }
        | Fault::Empty { keep }
        | Fault::Error { keep, .. }
        | Fault::Status { keep, .. } => *keep,
        _ => false,
    }
}

/// What is said of a transaction: code, message, result.
fn said(way: Option<&Fault>, verdict: Option<&Verdict>) -> (String, String, bool) {
    match (way, verdict) {
        (
            Some(Fault::Answer {
                code,
                message,
                result,
                ..
            }),
            _,
        ) => (
            code.clone(),
            message.clone(),
            result.unwrap_or(code == "SUCCESS"),
        ),
        (_, Some(verdict)) => (
            verdict.code.to_owned(),
            verdict.message.clone(),
            verdict.code == "SUCCESS",
        ),
        (_, None) => (String::new(), String::new(), false),
    }
}

/// `BroadcastHexServlet`: every key, always.
fn hex_answer(tx: &Tx, code: &str, message: &str, result: bool) -> Value {
    json!({
        "result": result,
        "code": code,
        "message": message,
        "transaction": json::bare_transaction(tx).to_string(),
        "txid": tx.txid.to_string(),
    })
}

/// `BroadcastServlet`: `Return` as a message, so `result` false and `code` SUCCESS are left out.
fn message_answer(tx: &Tx, code: &str, message: &str, result: bool, visible: bool) -> Value {
    let mut fields = Fields::default();
    if result {
        fields = fields.always("result", true);
    }
    if code != "SUCCESS" {
        fields = fields.text("code", code);
    }
    fields
        .text("message", &json::text(message, visible))
        .always("txid", tx.txid.to_string())
        .build()
}

/// What goes back in place of the truth; none where the fault leaves the truth alone.
fn lie(way: Option<&Fault>) -> Option<Outgoing> {
    let reply = match way? {
        Fault::AcceptThenTimeout { how } | Fault::DropThenTimeout { how } => {
            return Some(Outgoing::Silence(*how));
        }
        Fault::Body {
            status,
            json: Some(value),
            ..
        } => Reply::json(value).with_status(*status),
        Fault::Body {
            status,
            json: None,
            text,
            ..
        } => Reply::text(*status, text),
        Fault::Empty { .. } => Reply::json(&json!({})),
        Fault::Error { message, .. } => Reply::error(message),
        Fault::Status { status: 404, .. } => Reply::error(DISABLED).with_status(404),
        Fault::Status { status, .. } if [403, 429, 503].contains(status) => {
            Reply::error(OVER_LIMIT).with_status(*status)
        }
        Fault::Status { status, .. } => Reply::text(
            *status,
            &format!("<html><body><h1>HTTP {status}</h1></body></html>"),
        ),
        Fault::Lite {} => Reply::text(200, LITE),
        _ => return None,
    };
    Some(Outgoing::Reply(reply))
}

/// The true answer as a fault garbles it.
fn shaped(mut value: Value, shape: Option<&Fault>) -> Reply {
    match shape {
        Some(Fault::Patch { merge }) => merge_patch(&mut value, merge),
        Some(Fault::WrongTxid {}) => {
            for key in ["txid", "txID"] {
                if let Some(id) = value.get_mut(key) {
                    let other = sha256(id.as_str().unwrap_or_default().as_bytes());
                    *id = hex::encode(other).into();
                }
            }
        }
        Some(Fault::Missing { fields }) => {
            if let Value::Object(map) = &mut value {
                map.retain(|key, _| !fields.contains(key));
            }
        }
        Some(Fault::Truncated {}) => {
            let mut reply = Reply::json(&value);
            reply.body = reply
                .body
                .chars()
                .take(reply.body.chars().count() / 2)
                .collect();
            return reply;
        }
        Some(_) | None => {}
    }
    Reply::json(&value)
}

/// RFC 7396.
fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(target) = target else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge_patch(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// A broadcast's answer for the log: its code, or what came in place of one.
fn in_words(reply: &Reply, endpoint: Endpoint) -> (String, String) {
    if reply.status != 200 {
        return (format!("HTTP {}", reply.status), String::new());
    }
    let Ok(value) = serde_json::from_str::<Value>(&reply.body) else {
        return ("not JSON".to_owned(), reply.body.clone());
    };
    if let Some(error) = value.get("Error").and_then(Value::as_str) {
        return ("Error".to_owned(), error.to_owned());
    }
    let message = value
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match value.get("code").and_then(Value::as_str) {
        Some(code) => (code.to_owned(), message),
        None if endpoint == Endpoint::BroadcastTransaction
            && value.get("result") == Some(&Value::Bool(true)) =>
        {
            ("SUCCESS".to_owned(), message)
        }
        None => ("no code".to_owned(), message),
    }
}
