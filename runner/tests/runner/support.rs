//! What these tests share: a node that answers whatever a test says, and a database without the extension.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use sluice_runner::node::{Limits, Node};

/// What a node answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// 200 and this JSON.
    Json(Value),
    /// A status and a plain body.
    Text(u16, String),
    /// Nothing, for ever.
    Silence,
    /// The connection ends in the middle of the body.
    Broken,
    /// A body of so many bytes.
    Long(usize),
}

/// What a node was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub body: Value,
}

type Script = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A node over HTTP that does what its script says, and remembers what it was asked.
pub struct ScriptedNode {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    server: tokio::task::AbortHandle,
}

impl ScriptedNode {
    pub async fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let asked = Arc::new(Mutex::new(vec![]));
        let state: (Script, Arc<Mutex<Vec<Asked>>>) = (Arc::new(script), Arc::clone(&asked));
        let router = Router::new().fallback(answer).with_state(state);
        let server = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("a server serves")
        });
        Self {
            address,
            asked,
            server: server.abort_handle(),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics here").clone()
    }
}

impl Drop for ScriptedNode {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    State((script, asked)): State<(Script, Arc<Mutex<Vec<Asked>>>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 24)
        .await
        .expect("the runner sends whole bodies");
    let body = serde_json::from_slice(&bytes).expect("the runner sends JSON");
    let question = Asked {
        path: parts.uri.path().to_owned(),

        body,
    };
    asked
        .lock()
        .expect("no test panics here")
        .push(question.clone());
    match script(&question) {
        Reply::Json(json) => axum::Json(json).into_response(),
        Reply::Text(status, text) => {
            (StatusCode::from_u16(status).expect("a status"), text).into_response()
        }
        Reply::Silence => std::future::pending().await,
        Reply::Broken => {
            let response = Response::builder().header("content-length", "1000");
            response.body(Body::from("{")).expect("a response")
        }
        Reply::Long(bytes) => vec![b' '; bytes].into_response(),
    }
}

pub const LIMITS: Limits = Limits {
    read_timeout: Duration::from_millis(400),
    send_timeout: Duration::from_millis(400),
    max_response: 1 << 20,
};

/// A client of the node at these addresses.
pub fn node(full: &str, solid: &str) -> Node {
    let url = |text: &str| text.parse().expect("a test's URL");
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    Node::new(url(full), url(solid), client, LIMITS)
}

/// Runs a test's asynchronous part.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// The published vectors.
pub fn vectors() -> Value {
    let text = include_str!("../../../tests/vectors/public.json");
    serde_json::from_str(text).expect("the vectors are JSON")
}

/// Bytes from the hex of a vector or of a test.
pub fn unhex(text: impl AsRef<str>) -> Vec<u8> {
    hex::decode(text.as_ref()).expect("hex")
}
