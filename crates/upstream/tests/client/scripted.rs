//! A server that answers exactly as a test prescribes.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Body, extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use portolan_net::{
    egress::{AllowedDestination, Egress, EgressPolicy},
    secrets::Secrets,
};
use portolan_upstream::{Client, Endpoint, Limits};
use serde_json::Value;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// Function that makes the answer.
pub(crate) type Say = Box<dyn FnOnce(&Seen) -> Response + Send>;

#[derive(Clone, Default)]
pub(crate) struct Script {
    say: Arc<Mutex<VecDeque<Say>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    script: Script,
}

async fn serve(State(script): State<Script>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let seen = Seen {
        verb: parts.method,
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    script.seen.lock().unwrap().push(seen.clone());
    let say = script.say.lock().unwrap().pop_front();
    say.map_or_else(|| status(500), |say| say(&seen))
}

impl Server {
    /// Answers in this order; what comes beyond it gets 500.
    pub(crate) async fn start(say: Vec<Say>) -> Self {
        let script = Script::default();
        script.say.lock().unwrap().extend(say);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(serve).with_state(script.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, script }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.seen.lock().unwrap().clone()
    }

    /// Method names and verbs, in the order of their coming.
    pub(crate) fn said(&self) -> Vec<String> {
        let name = |seen: &Seen| match seen.method() {
            "" => seen.verb.to_string(),
            method => method.to_owned(),
        };
        self.seen().iter().map(name).collect()
    }

    pub(crate) fn client(&self, limits: Limits) -> Client {
        let allow = vec![AllowedDestination::address(
            self.address.ip(),
            self.address.port(),
        )];
        let policy = EgressPolicy {
            allow,
            ..EgressPolicy::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer ours".parse().unwrap());
        let endpoint = Endpoint {
            url: format!("http://{}/mcp", self.address).parse().unwrap(),
            headers,
            secrets: Secrets::default(),
            limits,
        };
        Client::new(Egress::new(policy).unwrap(), endpoint)
    }
}

pub(crate) fn status(code: u16) -> Response {
    Response::builder()
        .status(code)
        .body(Body::empty())
        .unwrap()
}

pub(crate) fn json(code: u16, value: &Value) -> Response {
    Response::builder()
        .status(StatusCode::from_u16(code).unwrap())
        .header("content-type", "application/json; charset=latin1")
        .body(Body::from(value.to_string()))
        .unwrap()
}

/// JSON that no value can be.
pub(crate) fn raw(body: String) -> Response {
    Response::builder()
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap()
}

/// The answer to what was asked.
pub(crate) fn result(result: Value) -> Say {
    Box::new(move |seen| {
        json(
            200,
            &serde_json::json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result}),
        )
    })
}

/// The refusal of what was asked.
pub(crate) fn error(http: u16, error: Value) -> Say {
    Box::new(move |seen| {
        json(
            http,
            &serde_json::json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": error}),
        )
    })
}

pub(crate) fn plain(code: u16) -> Say {
    Box::new(move |_| status(code))
}

/// Pieces of an event stream; `$ID` stands for the id of the request. It stays open at its end if
/// `open`.
pub(crate) fn events(pieces: &'static [&'static str], open: bool) -> Say {
    Box::new(move |seen| stream(pieces, &seen.body["id"].to_string(), open))
}

pub(crate) fn stream(pieces: &'static [&'static str], id: &str, open: bool) -> Response {
    let pieces: Vec<Result<Bytes, std::io::Error>> = pieces
        .iter()
        .map(|piece| Ok(Bytes::from(piece.replace("$ID", id))))
        .collect();
    let (sender, receiver) = tokio::sync::mpsc::channel(64);
    for piece in pieces {
        sender.try_send(piece).unwrap();
    }
    if open {
        Box::leak(Box::new(sender));
    }
    let body = Body::from_stream(Receiver(receiver));
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(body)
        .unwrap()
}

struct Receiver(tokio::sync::mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl futures_util::Stream for Receiver {
    type Item = Result<Bytes, std::io::Error>;
    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
