//! An HTTP API behind `portolan attach`: what of it is offered, and what is called
//! (docs/attach.md).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::{Request as Received, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Redirect, Response as Answer},
};
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use portolan_attach::{ApiError, ApiSource, DocumentPlace, api::Api};
use portolan_net::egress::Authorities;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Requests that reached the API.
type Log = Arc<Mutex<Vec<String>>>;

const TOKEN: &str = "a-token-of-this-network";

async fn respond(State((log, elsewhere)): State<(Log, Arc<str>)>, request: Received) -> Answer {
    let headers = request.headers().clone();
    log.lock().unwrap().push(request.uri().to_string());
    let has_token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        == Some(&format!("Bearer {TOKEN}"));
    match request.uri().path() {
        _ if !has_token => StatusCode::UNAUTHORIZED.into_response(),
        "/v1/away" => Redirect::temporary(&elsewhere).into_response(),
        path => {
            axum::Json(json!({"path": path, "sent": format!("Bearer {TOKEN}")})).into_response()
        }
    }
}

async fn serve(elsewhere: String) -> (SocketAddr, Log) {
    let log = Log::default();
    let state = (Arc::clone(&log), Arc::from(elsewhere));
    let router = Router::new().fallback(respond).with_state(state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, log)
}

fn get(id: &str) -> Value {
    json!({"get": {"operationId": id, "responses": {"200": {"description": "Done", "content": {
        "application/json": {"schema": {"type": "object"}},
    }}}}})
}

/// The paths `/p000` and so on, and those that differ.
fn document(plain: usize) -> Value {
    let mut paths = json!({"/away": get("away"), "/items/{id}": get("item")});
    paths["/items/{id}"]["get"]["parameters"] =
        json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    paths["/elsewhere"] = get("elsewhere");
    paths["/elsewhere"]["get"]["servers"] = json!([{"url": "https://api.example.com"}]);
    for n in 0..plain {
        let name = format!("p{n:03}");
        paths[format!("/{name}")] = get(&name);
    }
    json!({
        "openapi": "3.1.0", "info": {"title": "Ledger", "version": "7"}, "paths": paths,
        "servers": [{"url": "https://api.example.com"}],
    })
}

struct Scene {
    api: Api,
    log: Log,
    other: Log,
}

impl Scene {
    async fn of(document: &Value) -> Self {
        let (other_address, other) = serve(String::new()).await;
        let (address, log) = serve(format!("http://{other_address}/v1/items/1")).await;
        let api = load(document, &format!("http://{address}/v1"))
            .await
            .unwrap();
        Self { api, log, other }
    }

    async fn send(&self, method: &str, mut params: Value) -> (StatusCode, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut request = Request::post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            request = request.header("mcp-name", name);
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(request, &body).await
    }

    async fn post(&self, request: http::request::Builder, body: &Value) -> (StatusCode, Value) {
        let request = request
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let answer = self.api.answer(request).await;
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let (status, answer) = self.send("tools/call", params).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["result"].clone()
    }
}

async fn load(document: &Value, base_url: &str) -> Result<Api, ApiError> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {TOKEN}")).unwrap();
    headers.insert(header::AUTHORIZATION, value);
    let source = ApiSource {
        document: DocumentPlace::File(file),
        base_url: base_url.parse().unwrap(),
        headers,
    };
    Api::load(source, &Authorities::default()).await
}

#[tokio::test]
async fn calls_go_below_the_base_url_with_the_credential_and_nowhere_else() {
    let scene = Scene::of(&document(0)).await;
    let result = scene.call("item", json!({"id": "7"})).await;
    assert_eq!(
        result["structuredContent"]["path"], "/v1/items/7",
        "{result}"
    );
    // The credential stays on this machine, also where the API repeats it (REVIEW-S-5).
    assert!(!result.to_string().contains(TOKEN), "{result}");
    assert_eq!(result["resultType"], "complete");

    // Path arguments do not leave the base URL; nothing is sent.
    let escaped = scene.call("item", json!({"id": ".."})).await;
    assert_eq!(escaped["isError"], true, "{escaped}");
    let faulty = scene.call("item", json!({})).await;
    assert_eq!(faulty["isError"], true, "{faulty}");
    assert_eq!(*scene.log.lock().unwrap(), ["/v1/items/7"]);

    // A redirect to another origin is not followed.
    let away = scene.call("away", json!({})).await;
    assert_eq!(away["isError"], true, "{away}");
    assert!(scene.other.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_list_has_pages_in_order_and_leaves_out_operations_of_other_servers() {
    let scene = Scene::of(&document(150)).await;
    let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor: String| json!({"cursor": cursor}));
        let (_, page) = scene.send("tools/list", params).await;
        let tools = page["result"]["tools"].as_array().unwrap();
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        cursor = page["result"]["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((names.len(), pages), (152, 2));
    assert!(names.is_sorted());
    assert!(!names.iter().any(|name| name == "elsewhere"));
}

#[tokio::test]
async fn it_speaks_one_revision_and_refuses_everything_else() {
    let scene = Scene::of(&document(0)).await;
    let (_, discovered) = scene.send("server/discover", json!({})).await;
    let result = &discovered["result"];
    assert_eq!(
        result["supportedVersions"],
        json!(["2026-07-28"]),
        "{result}"
    );
    assert_eq!(result["capabilities"], json!({"tools": {}}));
    let card = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(card["name"], "Ledger");

    let (status, refused) = scene.send("prompts/list", json!({})).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (StatusCode::NOT_FOUND, &json!(-32601))
    );
    let (_, unknown) = scene.send("tools/call", json!({"name": "none"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let initialize = json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }});
    let (status, refused) = scene.post(Request::post("/mcp"), &initialize).await;
    assert!(status.is_client_error(), "{status}");
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let (status, _) = scene.post(Request::get("/mcp"), &json!({})).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn an_api_that_is_away_is_an_error_of_the_call_and_of_the_state() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let api = load(&document(0), &format!("http://{address}"))
        .await
        .unwrap();
    let scene = Scene {
        api,
        log: Log::default(),
        other: Log::default(),
    };
    assert_eq!(scene.api.state().error, None);
    let result = scene.call("item", json!({"id": "7"})).await;
    assert_eq!(result["isError"], true, "{result}");
    assert!(scene.api.state().error.is_some());
}

#[tokio::test]
async fn a_document_or_base_url_that_cannot_be_used_is_refused_in_words() {
    let empty = json!({"openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "paths": {}});
    let swagger = json!({"swagger": "2.0", "paths": {}});
    for (document, base_url, words) in [
        (
            empty,
            "http://10.0.0.5:8080",
            "no operation that can be a tool",
        ),
        (swagger, "http://10.0.0.5:8080", "Swagger 2.0"),
        (
            document(0),
            "http://user:pass@10.0.0.5",
            "user name or password",
        ),
        // The metadata service of a cloud.
        (document(0), "http://169.254.169.254", "--base-url: "),
    ] {
        let error = load(&document, base_url).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
