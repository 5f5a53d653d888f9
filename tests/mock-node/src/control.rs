//! The control path: the same abilities as the library's handle, as JSON over HTTP on a port of its own. A request that
//! cannot be done is answered 400 `{"error": …}`; one that moves the network is answered with its status.
//!
//! | Request | Body (what has a default may be left out) |
//! |---|---|
//! | GET /control/status | |
//! | POST /control/produce | `{"blocks": 1}` |
//! | POST /control/step | `{"ms": 60000}` |
//! | POST /control/miss | `{"slots": 2}` |
//! | POST /control/clock | `{"mode": "real"}`, `{"mode": "stepped"}` or `{"mode": "factor", "factor": 20}` |
//! | POST /control/solidity | `{"stalled": true, "lag": 19}` |
//! | POST /control/fork (or reorg) | `{"depth": 3, "blocks": 4, "missed": 0, "drop": [txid], "place": {txid: 1}, "results": {txid: "REVERT"}, "stay": [node]}` |
//! | GET, DELETE /control/faults | |
//! | POST /control/faults | a [`Rule`], or a list of them: all are added or none |
//! | DELETE /control/faults/{id} | |
//! | POST /control/wallets | `{"kind": "hmac", "owner": "T…", "key": hex}` or `{"kind": "secp256k1", "owner": "T…", "signer": "T…", "permission_id": 0}` |
//! | POST /control/nodes/{n} | any of [`NodeSettings`](crate::config::NodeSettings), such as `{"lag": 3, "gossip": false}` |
//! | POST /control/inject | `{"transaction": hex}`: to the producers, past every node |
//! | POST /control/evict | `{"txid": hex}`: out of every pool |
//! | GET /control/log | `?txid=…&tag=…&worker=…&node=…&after=seq`: calls that brought transactions |
//! | GET /control/transactions, …/{txid} | what became of each |
//! | GET /control/tags | the transactions and successes of each operation |
//! | GET /control/totals | what each payer's successful transfers come to |
//! | GET /control/requests | how often each path was called |
//! | GET /control/blocks/{number} | its `protocol.Block` bytes |

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_core::address::Address;
use sluice_core::envelope::Txid;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};

use crate::clock::ClockMode;
use crate::fork::ForkPlan;
use crate::handle::Hand;
use crate::http::Shared;
use crate::outcome::Outcome;
use crate::report::LogFilter;
use crate::rules::Rule;
use crate::text;
use crate::wallets::Signer;

/// The largest body that is read: a list of rules, or a transaction.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The most blocks that a request makes: more would keep the network from everybody else for minutes.
const MOST_BLOCKS: u64 = 20_000;

/// A request that cannot be done, and why.
struct Refused(String);

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Self(rejection.body_text())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": self.0 }))).into_response()
    }
}

/// A JSON body, whatever its content type says; none counts as `{}`.
struct Body<T>(T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Refused> {
        let bytes = to_bytes(request.into_body(), MAX_BODY_BYTES)
            .await
            .map_err(|error| Refused(error.to_string()))?;
        let json = if bytes.is_empty() {
            b"{}".as_slice()
        } else {
            &bytes
        };
        serde_json::from_slice(json)
            .map(Self)
            .map_err(|error| Refused(error.to_string()))
    }
}

type Answer<T> = Result<Json<T>, Refused>;

/// Serves the control path until told to stop.
pub async fn serve(
    listener: TcpListener,
    net: Shared,
    wake: Arc<Notify>,
    mut stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/control/status", get(status))
        .route("/control/produce", post(produce))
        .route("/control/step", post(step))
        .route("/control/miss", post(miss))
        .route("/control/clock", post(clock))
        .route("/control/solidity", post(solidity))
        .route("/control/fork", post(fork))
        .route("/control/reorg", post(fork))
        .route(
            "/control/faults",
            get(faults).post(add_faults).delete(clear_faults),
        )
        .route("/control/faults/{id}", delete(remove_fault))
        .route("/control/wallets", post(register))
        .route("/control/nodes/{node}", post(node))
        .route("/control/inject", post(inject))
        .route("/control/evict", post(evict))
        .route("/control/log", get(log))
        .route("/control/transactions", get(transactions))
        .route("/control/transactions/{txid}", get(transaction))
        .route("/control/tags", get(tags))
        .route("/control/totals", get(totals))
        .route("/control/requests", get(requests))
        .route("/control/blocks/{number}", get(block))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                Json(json!({ "error": "no such path" })),
            )
        })
        .with_state(Hand { net, wake });
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            // An error means that the sender is gone: stop as well.
            let _ = stop.wait_for(|stop| *stop).await;
        })
        .await
}

async fn status(State(hand): State<Hand>) -> impl IntoResponse {
    Json(hand.status())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Produce {
    #[serde(default = "one")]
    blocks: u64,
}

fn one() -> u64 {
    1
}

async fn produce(State(hand): State<Hand>, Body(body): Body<Produce>) -> Answer<impl Serialize> {
    few("blocks", body.blocks)?;
    hand.produce(body.blocks);
    Ok(Json(hand.status()))
}

fn few(name: &str, blocks: u64) -> Result<(), Refused> {
    if blocks > MOST_BLOCKS {
        return Err(Refused(format!(
            "{name}: {blocks} blocks are more than the {MOST_BLOCKS} of one request"
        )));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    ms: u64,
}

async fn step(State(hand): State<Hand>, Body(body): Body<Step>) -> Answer<impl Serialize> {
    few("ms", hand.blocks_due_in(body.ms))?;
    hand.step(body.ms);
    Ok(Json(hand.status()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Miss {
    slots: u32,
}

async fn miss(State(hand): State<Hand>, Body(body): Body<Miss>) -> impl IntoResponse {
    hand.miss(body.slots);
    Json(hand.status())
}

async fn clock(State(hand): State<Hand>, Body(mode): Body<ClockMode>) -> Answer<impl Serialize> {
    hand.set_clock(mode)?;
    Ok(Json(hand.status()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Solidity {
    stalled: Option<bool>,
    lag: Option<u32>,
}

async fn solidity(State(hand): State<Hand>, Body(body): Body<Solidity>) -> impl IntoResponse {
    if let Some(stalled) = body.stalled {
        hand.stall_solidity(stalled);
    }
    if let Some(lag) = body.lag {
        hand.set_solidity_lag(lag);
    }
    Json(hand.status())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fork {
    depth: u32,
    blocks: Option<u32>,
    #[serde(default)]
    missed: u32,
    #[serde(default)]
    drop: Vec<String>,
    #[serde(default)]
    place: HashMap<String, u32>,
    #[serde(default)]
    results: HashMap<String, String>,
    #[serde(default)]
    stay: Vec<usize>,
}

async fn fork(State(hand): State<Hand>, Body(body): Body<Fork>) -> Answer<impl Serialize> {
    let plan = ForkPlan {
        drop: body
            .drop
            .iter()
            .map(|text| txid(text))
            .collect::<Result<HashSet<_>, _>>()?,
        place: body
            .place
            .iter()
            .map(|(text, place)| Ok((txid(text)?, i64::from(*place))))
            .collect::<Result<HashMap<_, _>, Refused>>()?,
        results: body
            .results
            .iter()
            .map(|(text, result)| Ok((txid(text)?, outcome(result)?)))
            .collect::<Result<HashMap<_, _>, Refused>>()?,
    };
    let blocks = body.blocks.unwrap_or(body.depth.saturating_add(1));
    few("blocks", blocks.into())?;
    Ok(Json(hand.fork(
        body.depth,
        blocks,
        body.missed,
        plan,
        &body.stay,
    )?))
}

fn txid(text: &str) -> Result<Txid, Refused> {
    text.parse()
        .map_err(|error| Refused(format!("{text:?} is no txid: {error}")))
}

fn outcome(text: &str) -> Result<Outcome, Refused> {
    Outcome::parse(text).ok_or_else(|| Refused(format!("{text:?} is no result of a transaction")))
}

async fn faults(State(hand): State<Hand>) -> impl IntoResponse {
    let net = hand.net.lock();
    Json(json!({ "rules": net.faults.rules(), "struck": net.faults.struck() }))
}

/// One rule, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Value>),
    One(Value),
}

async fn add_faults(State(hand): State<Hand>, Body(body): Body<OneOrMany>) -> Answer<Value> {
    let values = match body {
        OneOrMany::Many(values) => values,
        OneOrMany::One(value) => vec![value],
    };
    let rules = values
        .into_iter()
        .map(|value| serde_json::from_value::<Rule>(value).map_err(|error| error.to_string()))
        .collect::<Result<Vec<_>, _>>()?;
    let ids = hand.add_faults(rules)?;
    Ok(Json(json!({ "ids": ids })))
}

async fn clear_faults(State(hand): State<Hand>) -> impl IntoResponse {
    hand.clear_faults();
    Json(json!({}))
}

async fn remove_fault(State(hand): State<Hand>, Path(id): Path<u64>) -> Answer<Value> {
    if hand.remove_fault(id) {
        Ok(Json(json!({})))
    } else {
        Err(Refused(format!("there is no rule {id}")))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
enum Register {
    Hmac {
        #[serde(with = "text::value")]
        owner: Address,
        key: String,
    },
    Secp256k1 {
        #[serde(with = "text::value")]
        owner: Address,
        #[serde(with = "text::value")]
        signer: Address,
        #[serde(default)]
        permission_id: i32,
    },
}

async fn register(State(hand): State<Hand>, Body(body): Body<Register>) -> Answer<Value> {
    match body {
        Register::Hmac { owner, key } => {
            let key = hex::decode(key).map_err(|_| Refused("the key is not hex".to_owned()))?;
            hand.register(owner, Signer::Hmac { key });
        }
        Register::Secp256k1 {
            owner,
            signer,
            permission_id,
        } => {
            hand.register(
                owner,
                Signer::Secp256k1 {
                    signer,
                    permission_id,
                },
            );
        }
    }
    Ok(Json(json!({})))
}

/// Settings that are not named stay as they are.
async fn node(
    State(hand): State<Hand>,
    Path(node): Path<usize>,
    Body(changes): Body<serde_json::Map<String, Value>>,
) -> Answer<impl Serialize> {
    hand.change_node_json(node, changes)?;
    Ok(Json(hand.status()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inject {
    transaction: String,
}

async fn inject(State(hand): State<Hand>, Body(body): Body<Inject>) -> Answer<Value> {
    let bytes = hex::decode(body.transaction)
        .map_err(|_| Refused("the transaction is not hex".to_owned()))?;
    let txid = hand.inject(&bytes)?;
    Ok(Json(json!({ "txid": txid.to_string() })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evict {
    #[serde(with = "text::value")]
    txid: Txid,
}

async fn evict(State(hand): State<Hand>, Body(body): Body<Evict>) -> impl IntoResponse {
    Json(json!({ "pools": hand.evict(&body.txid) }))
}

async fn log(
    State(hand): State<Hand>,
    filter: Result<Query<LogFilter>, QueryRejection>,
) -> Answer<impl Serialize> {
    let Query(filter) = filter?;
    Ok(Json(hand.sends(&filter)))
}

async fn transactions(State(hand): State<Hand>) -> impl IntoResponse {
    Json(hand.transactions())
}

async fn transaction(State(hand): State<Hand>, Path(id): Path<String>) -> Answer<impl Serialize> {
    let id = txid(&id)?;
    let report = hand.transaction(&id);
    Ok(Json(
        report.ok_or_else(|| Refused(format!("nobody has sent {id}")))?,
    ))
}

async fn tags(State(hand): State<Hand>) -> impl IntoResponse {
    Json(hand.tags())
}

async fn totals(State(hand): State<Hand>) -> impl IntoResponse {
    Json(hand.totals())
}

async fn requests(State(hand): State<Hand>) -> impl IntoResponse {
    let rows: Vec<_> = hand
        .requests()
        .into_iter()
        .map(|(request, count)| {
            json!({
                "node": request.node,
                "path": request.path,
                "worker": request.worker,
                "count": count,
            })
        })
        .collect();
    Json(rows)
}

async fn block(State(hand): State<Hand>, Path(number): Path<i64>) -> Answer<Value> {
    let net = hand.net.lock();
    let block = net
        .trunk
        .at(number)
        .ok_or_else(|| Refused(format!("there is no block {number}")))?;
    Ok(Json(json!({
        "number": block.number,
        "id": hex::encode(block.id),
        "timestamp_ms": block.timestamp,
        "bytes": hex::encode(block.bytes()),
    })))
}
