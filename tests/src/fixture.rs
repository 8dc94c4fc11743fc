//! The API behind the tools of most tests: small, strict about its token, and able to misbehave in each way that a real API does.
//!
//! Its OpenAPI document also describes the operations that the official conformance suite requires
//! by name.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{asker, held::Held};

/// The bearer token that the API accepts.
pub const TOKEN: &str = "fixture-api-token";

/// Operations that only make the list long: with a page of ten, it has several pages.
pub const SHELVES: usize = 24;

/// A red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
/// A header without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

type Counts = Arc<Mutex<BTreeMap<String, usize>>>;
/// Counts of requests by path, and whether the token is refused.
type Guarded = (Counts, Arc<AtomicBool>);

/// A running API. Stops when dropped.
#[derive(Debug)]
pub struct FixtureApi {
    address: SocketAddr,
    counts: Counts,
    revoked: Arc<AtomicBool>,
    /// Requests that wait for the test, and what was executed.
    pub held: Held,
    _stop: oneshot::Sender<()>,
}

impl FixtureApi {
    /// Starts it on a free loopback port.
    pub fn start() -> Result<Self> {
        let counts = Counts::default();
        let held = Held::default();
        let revoked = Arc::<AtomicBool>::default();
        let router = router((counts.clone(), Arc::clone(&revoked)), &held);
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, started) = mpsc::channel();
        // A thread with a runtime of its own: it lives as long as the value, whichever test runtime made it.
        thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
                let _ = sender.send(listener.local_addr()?);
                tokio::select! {
                    outcome = async { axum::serve(listener, router).await } => outcome.context("the fixture API ended"),
                    _ = stopped => Ok(()),
                }
            })
        });
        let address = started
            .recv_timeout(Duration::from_secs(10))
            .context("the fixture API did not start")?;
        Ok(Self {
            address,
            counts,
            revoked,
            held,
            _stop: stop,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its calls go.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.counts
            .lock()
            .map_or(0, |counts| counts.get(path).copied().unwrap_or(0))
    }

    /// From now on the token is refused, or accepted again.
    pub fn revoke(&self, revoked: bool) {
        self.revoked.store(revoked, Ordering::SeqCst);
    }

    /// The address of the MCP server beside it ([`asker`]).
    pub fn asker_url(&self) -> String {
        format!("{}{}", self.base_url(), asker::PATH)
    }

    /// Its OpenAPI 3.1 document.
    pub fn document(&self) -> Value {
        document(&self.base_url())
    }
}

fn router(guarded: Guarded, held: &Held) -> Router {
    Router::new()
        .route("/echo", post(|Json(body): Json<Value>| async move { Json(json!({"message": body["message"], "length": body["message"].as_str().map_or(0, str::len)})) }))
        .route("/things/{id}", get(thing).delete(|| async { StatusCode::NO_CONTENT }))
        .route("/things", post(|Json(body): Json<Value>| async move { (StatusCode::CREATED, Json(json!({"id": 7, "name": body["name"]}))) }))
        .route("/search", get(|Query(query): Query<Vec<(String, String)>>| async move { Json(json!({"query": query})) }))
        .route("/shelves/{number}", get(|Path(number): Path<u32>| async move { Json(json!({"shelf": number})) }))
        .route("/slow", get(slow))
        .route("/huge", get(|| async { ([(header::CONTENT_TYPE, "text/plain")], Body::from(vec![b'x'; 32 * 1024 * 1024])) }))
        .route("/garbage", get(|| async { ([(header::CONTENT_TYPE, "application/json")], "{\"half\": ") }))
        .route("/broken", get(|| async { (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({"error": "the harbour is closed"}))) }))
        .route("/flaky", post(|| async { (StatusCode::SERVICE_UNAVAILABLE, "try later") }))
        .route("/elsewhere", get(|| async { Redirect::temporary("http://169.254.169.254/latest/meta-data/") }))
        .route("/headers", get(|headers: HeaderMap| async move { Json(seen(&headers)) }))
        .route("/conformance/text", get(|| async { "This is a simple text response for testing." }))
        .route("/conformance/image", get(|| async { bytes("image/png", PNG) }))
        .route("/conformance/audio", get(|| async { bytes("audio/wav", WAV) }))
        .route("/conformance/file", get(|| async { bytes("application/octet-stream", PNG) }))
        .route("/conformance/error", get(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "This tool intentionally returns an error for testing") }))
        .route("/conformance/schema", post(|Json(body): Json<Value>| async move { Json(body) }))
        .route("/conformance/header", get(|| async { "ok" }))
        .merge(held.router())
        .layer(middleware::from_fn_with_state(guarded, guard))
        .merge(asker::router(held))
}

/// Counts requests, and refuses those without the token.
async fn guard(State((counts, revoked)): State<Guarded>, request: Request, next: Next) -> Response {
    if let Ok(mut counts) = counts.lock() {
        *counts.entry(request.uri().path().to_owned()).or_default() += 1;
    }
    let expected = format!("Bearer {TOKEN}");
    let is_wrong = request
        .headers()
        .get(header::AUTHORIZATION)
        .is_none_or(|value| value.as_bytes() != expected.as_bytes());
    if is_wrong || revoked.load(Ordering::SeqCst) {
        return (
            StatusCode::UNAUTHORIZED,
            Json(json!({"error": "token missing or wrong"})),
        )
            .into_response();
    }
    next.run(request).await
}

async fn thing(Path(id): Path<i64>) -> Response {
    if id >= 100 {
        return (
            StatusCode::NOT_FOUND,
            Json(json!({"error": format!("there is no thing {id}")})),
        )
            .into_response();
    }
    Json(json!({"id": id, "name": format!("thing {id}")})).into_response()
}

async fn slow() -> &'static str {
    // Longer than any deadline under test; the caller hangs up.
    tokio::time::sleep(Duration::from_secs(600)).await;
    "late"
}

fn bytes(kind: &'static str, base64: &str) -> Response {
    let body = STANDARD.decode(base64).map(Bytes::from).unwrap_or_default();
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

fn seen(headers: &HeaderMap) -> Value {
    let names: BTreeMap<&str, &str> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    json!({ "headers": names })
}

/// An operation that takes nothing and answers with something that is not JSON.
fn plain(id: &str, summary: &str, media_type: &str) -> Value {
    json!({"get": {"operationId": id, "summary": summary, "responses": {"200": {"description": "Done", "content": {media_type: {}}}}}})
}

fn document(base_url: &str) -> Value {
    let object = |properties: Value| json!({"200": {"description": "Done", "content": {"application/json": {"schema": {"type": "object", "properties": properties}}}}});
    let mut paths = json!({
        "/echo": {"post": {
            "operationId": "echo_message", "summary": "Says it again",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "required": ["message"], "properties": {"message": {"type": "string", "description": "What to say"}}}}}},
            "responses": object(json!({"message": {"type": "string"}, "length": {"type": "integer"}}))}},
        "/things/{id}": {
            "get": {"operationId": "get_thing", "summary": "Finds one thing",
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
                "responses": object(json!({"id": {"type": "integer"}, "name": {"type": "string"}}))},
            "delete": {"operationId": "delete_thing", "summary": "Removes one thing",
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
                "responses": {"204": {"description": "Gone"}}}},
        "/things": {"post": {"operationId": "create_thing", "summary": "Makes a thing",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}},
            "responses": {"201": {"description": "Made"}}}},
        "/search": {"get": {"operationId": "search_things", "summary": "Finds things",
            "parameters": [
                {"name": "q", "in": "query", "schema": {"type": "string"}},
                {"name": "tags", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}},
                {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object", "properties": {"colour": {"type": "string"}}}}],
            "responses": object(json!({"query": {"type": "array"}}))}},
        "/slow": plain("slow_answer", "Answers after ten minutes", "text/plain"),
        "/huge": plain("huge_answer", "Answers with 32 MiB", "text/plain"),
        "/garbage": plain("garbage_answer", "Promises JSON and breaks off", "application/json"),
        "/broken": plain("broken_answer", "Fails", "application/json"),
        "/elsewhere": plain("elsewhere_answer", "Points to the metadata service of a cloud", "text/plain"),
        "/headers": plain("show_headers", "Shows what arrived", "application/json"),
        "/flaky": {"post": {"operationId": "flaky_order", "summary": "Is never ready", "responses": {"200": {"description": "Done"}}}},
        "/conformance/text": plain("test_simple_text", "A sentence", "text/plain"),
        "/conformance/image": plain("test_image_content", "A red pixel", "image/png"),
        "/conformance/audio": plain("test_audio_content", "Silence", "audio/wav"),
        "/conformance/file": plain("test_embedded_resource", "A file", "application/octet-stream"),
        "/conformance/error": plain("test_error_handling", "Always fails", "text/plain"),
        "/conformance/schema": {"post": {"operationId": "json_schema_2020_12_tool", "summary": "Tool with JSON Schema 2020-12 features",
            "requestBody": {"required": true, "content": {"application/json": {"schema": conformance_schema()}}},
            "responses": {"200": {"description": "Done"}}}}
    });
    for number in 0..SHELVES {
        paths[format!("/shelves/{number}")] = json!({"get": {
            "operationId": format!("list_shelf_{number:02}"), "summary": format!("What is on shelf {number}"),
            "responses": object(json!({"shelf": {"type": "integer"}}))}});
    }
    Held::describe(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Fixture", "version": "1.0.0", "description": "The API of the end-to-end tests."},
        "servers": [{"url": base_url}],
        "components": {"schemas": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths
    })
}

/// The schema that the conformance suite checks, keyword by keyword. The entry that it expects in
/// `$defs` is a component here: the import moves it.
fn conformance_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "name": {"type": "string"}, "address": {"$ref": "#/components/schemas/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    })
}
