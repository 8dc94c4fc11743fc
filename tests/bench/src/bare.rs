//! The bare servers: the least that axum and hyper need for the same work.

use std::convert::Infallible;
use std::io::Read as _;
use std::net::SocketAddr;

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpSocket;

use crate::{Role, telling};

/// The request to the API of every tool call of the benchmark.
pub(crate) const API_PATH: &str = "/ports/NOBGO";

/// Runs one role until it is killed.
pub(crate) async fn serve(role: &Role) -> Result<()> {
    let router = match role {
        Role::Api => portolan_demo_api::router(),
        Role::Proxy { api } => proxy(*api)?,
        Role::Mcp => mcp(),
        Role::Teller => telling::router(),
        Role::Reverse { server } => reverse(*server)?,
        Role::Fixed { body } => fixed(std::fs::read(body)?.into()),
        Role::Events => Router::new().route("/", get(events)),
    };
    // The parent keeps the other end: when it is gone, however it went, so are we.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let socket = TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    // As many as the product lets wait: where 256 come at once and 128 may, the others come again a second later.
    let listener = socket.listen(1024)?;
    println!("{}", listener.local_addr()?);
    axum::serve(
        axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))),
        router,
    )
    .await?;
    Ok(())
}

/// The envelope, read without its insides.
#[derive(Deserialize)]
struct Message<'a> {
    method: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: &'a RawValue,
}

fn understood(body: &[u8]) -> bool {
    serde_json::from_slice::<Message<'_>>(body).is_ok_and(|message| {
        !message.method.is_empty()
            && !message.id.get().is_empty()
            && !message.params.get().is_empty()
    })
}

#[derive(Clone)]
struct Hop {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
}

fn proxy(api: SocketAddr) -> Result<Router> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(64)
        .build(connector);
    let uri = format!("http://{api}{API_PATH}").parse()?;
    Ok(Router::new()
        .route("/", post(hop))
        .with_state(Hop { client, uri }))
}

async fn hop(State(hop): State<Hop>, body: Bytes) -> Response<Body> {
    if !understood(&body) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let mut request = Request::new(Full::default());
    *request.uri_mut() = hop.uri.clone();
    request.headers_mut().insert(
        "x-api-key",
        HeaderValue::from_static(portolan_demo_api::API_KEY),
    );
    let Ok(answer) = hop.client.request(request).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let status = answer.status();
    match answer.into_body().collect().await {
        Ok(body) => (
            status,
            [(header::CONTENT_TYPE, "application/json")],
            body.to_bytes(),
        )
            .into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// The id that the MCP server gives to every session.
const SESSION: &str = "one-session-for-all-of-them";
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The answer of the MCP server's tool.
const PORT: &str = r#"{"content":[{"type":"text","text":"{\"port_id\":\"NOBGO\",\"name\":\"Bergen\",\"berths\":12}"}]}"#;

fn mcp() -> Router {
    Router::new().route("/mcp", post(answer_as_mcp))
}

/// No more than a server of the session era has to know.
async fn answer_as_mcp(body: Bytes) -> Response<Body> {
    let Ok(message) = serde_json::from_slice::<Told<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = message.id else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = match message.method {
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#
        }
        "tools/list" => {
            r#"{"tools":[{"name":"getPort","inputSchema":{"type":"object","properties":{"port_id":{"type":"string"}},"required":["port_id"]}}]}"#
        }
        "tools/call" => PORT,
        _ => {
            let error = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#
            );
            return as_json(StatusCode::BAD_REQUEST, error.into());
        }
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let mut answer = as_json(StatusCode::OK, body.into());
    if message.method == "initialize" {
        answer
            .headers_mut()
            .insert(SESSION_ID, HeaderValue::from_static(SESSION));
    }
    answer
}

/// The envelope of a request or a notification.
#[derive(Deserialize)]
struct Told<'a> {
    method: &'a str,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

fn as_json(status: StatusCode, body: Bytes) -> Response<Body> {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn reverse(server: SocketAddr) -> Result<Router> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(64)
        .build(connector);
    let uri = format!("http://{server}/mcp").parse()?;
    Ok(Router::new()
        .route("/", post(pass_on))
        .with_state(Hop { client, uri }))
}

async fn pass_on(State(hop): State<Hop>, body: Bytes) -> Response<Body> {
    if !understood(&body) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = hop.uri.clone();
    let headers = request.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    headers.insert(SESSION_ID, HeaderValue::from_static(SESSION));
    let Ok(answer) = hop.client.request(request).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let status = answer.status();
    match answer.into_body().collect().await {
        Ok(body) => as_json(status, body.to_bytes()),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

fn fixed(answer: Bytes) -> Router {
    Router::new()
        .route(
            "/",
            post(|State(answer): State<Bytes>, body: Bytes| async move {
                if understood(&body) {
                    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
                } else {
                    StatusCode::BAD_REQUEST.into_response()
                }
            }),
        )
        .with_state(answer)
}

/// One event, and then nothing but comments.
async fn events() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let first = Event::default().id("0").data("here");
    let events = stream::iter([Ok(first)]).chain(stream::pending());
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// A request for the bare event stream.
pub(crate) fn events_request(address: SocketAddr) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n").into_bytes()
}

/// A request to a bare server, with a message like that of a real client.
pub(crate) fn request(address: SocketAddr) -> Vec<u8> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getPort","arguments":{"port_id":"NOBGO"}}}"#;
    format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
