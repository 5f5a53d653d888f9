//! HTTP: a server for each node, whose connections a fault can leave hanging, close or reset.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::call::{Incoming, Outgoing, Reply};
use crate::endpoint::Endpoint;
use crate::faults::Silence;
use crate::net::Net;
use crate::params::Params;

/// The largest body that java-tron 4.8.2 takes.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The network, shared by servers, clock and control.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Net>>);

impl Shared {
    /// Shares it.
    #[must_use]
    pub fn new(net: Net) -> Self {
        Self(Arc::new(Mutex::new(net)))
    }

    /// The network, for a moment. A panic elsewhere is not spread: the test that caused it fails by itself.
    pub fn lock(&self) -> MutexGuard<'_, Net> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node's server.
#[derive(Clone)]
struct Server {
    net: Shared,
    node: usize,
}

/// The way to cut the connection that a request came over.
#[derive(Clone)]
struct Cut(mpsc::Sender<Silence>);

/// Serves a node until told to stop.
pub async fn serve(
    listener: TcpListener,
    net: Shared,
    node: usize,
    mut stop: watch::Receiver<bool>,
) {
    let server = Server { net, node };
    let router = Router::new()
        .route("/wallet/{endpoint}", any(full))
        .route("/walletsolidity/{endpoint}", any(solid))
        .with_state(server);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        // A connection that broke before it was accepted is the client's matter.
        let Ok((stream, _)) = accepted else {
            continue;
        };
        tokio::spawn(serve_connection(stream, router.clone(), stop.clone()));
    }
}

async fn serve_connection(stream: TcpStream, router: Router, mut stop: watch::Receiver<bool>) {
    let (sender, mut cuts) = mpsc::channel(1);
    let service = TowerToHyperService::new(router.layer(Extension(Cut(sender))));
    let mut connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let how = tokio::select! {
        // A client that went away is no matter of the node's.
        _ = &mut connection => return,
        Some(how) = cuts.recv() => how,
        _ = stop.wait_for(|stop| *stop) => Silence::Close,
    };
    let stream = connection.into_parts().io.into_inner();
    if how == Silence::Reset
        && let Err(error) = stream.set_zero_linger()
    {
        eprintln!("cannot have the connection reset: {error}");
    }
}

async fn full(
    State(server): State<Server>,
    Path(endpoint): Path<String>,
    Extension(cut): Extension<Cut>,
    request: Request,
) -> Response {
    answer(server, false, &endpoint, cut, request).await
}

async fn solid(
    State(server): State<Server>,
    Path(endpoint): Path<String>,
    Extension(cut): Extension<Cut>,
    request: Request,
) -> Response {
    answer(server, true, &endpoint, cut, request).await
}

async fn answer(server: Server, solid: bool, name: &str, cut: Cut, request: Request) -> Response {
    let Some(endpoint) = Endpoint::find(name, solid) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let incoming = match read(&server, solid, endpoint, request).await {
        Ok(incoming) => incoming,
        Err(status) => return status.into_response(),
    };
    // In a task of its own: a client that goes away does not undo what the node has begun (`Manager.pushTransaction`).
    let work = tokio::spawn(work(server, incoming));
    let Ok(outgoing) = work.await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    match outgoing {
        Outgoing::Reply(reply) => respond(reply),
        Outgoing::Silence(how) => {
            if how != Silence::Hold {
                // Full only where the connection is being cut already.
                let _ = cut.0.try_send(how);
            }
            std::future::pending().await
        }
    }
}

async fn work(server: Server, incoming: Incoming) -> Outgoing {
    let pending = server.net.lock().begin(incoming);
    tokio::time::sleep(pending.wait_before()).await;
    let outgoing = server.net.lock().finish(&pending);
    tokio::time::sleep(pending.wait_after()).await;
    outgoing
}

async fn read(
    server: &Server,
    solid: bool,
    endpoint: Endpoint,
    request: Request,
) -> Result<Incoming, StatusCode> {
    let (parts, body) = request.into_parts();
    let params = match parts.method {
        Method::GET if !endpoint.is_broadcast() => {
            Params::of_query(parts.uri.query().unwrap_or_default())
        }
        Method::POST => {
            let body = read_body(body).await?;
            Params::of_body(&body, is_form(&parts.headers))
        }
        _ => return Err(StatusCode::METHOD_NOT_ALLOWED),
    };
    let user_agent = parts
        .headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    Ok(Incoming {
        node: server.node,
        solid,
        endpoint,
        params,
        user_agent,
    })
}

async fn read_body(body: Body) -> Result<Bytes, StatusCode> {
    to_bytes(body, MAX_BODY_BYTES)
        .await
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)
}

fn is_form(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes() == b"application/x-www-form-urlencoded")
}

fn respond(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = if reply.is_json {
        "application/json; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    // java-tron ends every body with a line feed.
    (
        status,
        [(header::CONTENT_TYPE, content_type)],
        format!("{}\n", reply.body),
    )
        .into_response()
}
