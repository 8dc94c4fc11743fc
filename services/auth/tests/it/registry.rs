//! The registry through the console's API: documents, tools, credentials, servers, trials. It uses
//! a real Postgres, and a real HTTP API on the loopback address behind the tools.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Form, Json, Router,
    body::Body,
    extract::{Path, State},
    response::IntoResponse,
    routing,
    routing::get,
};
use http::{HeaderMap, Method, Request, StatusCode, header};
use portolan_net::egress::{AllowedDestination, EgressPolicy};
use serde_json::{Value, json};

use crate::test_service::{Answer, Browser, TestService};

/// The API behind the tools.
#[derive(Clone, Default)]
struct Pets {
    tokens_issued: Arc<AtomicUsize>,
}

async fn pet(Path(id): Path<String>, headers: HeaderMap) -> axum::response::Response {
    let key = headers
        .get("x-api-key")
        .and_then(|value| value.to_str().ok());
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    if key != Some("correct-horse-cafe") && bearer != Some("Bearer fetched-token") {
        let shown = key.or(bearer).unwrap_or("nothing").to_owned();
        return (StatusCode::UNAUTHORIZED, format!("you sent {shown}")).into_response();
    }
    match id.as_str() {
        "1" => Json(json!({ "id": 1, "name": "Rex" })).into_response(),
        "broken" => ([(header::CONTENT_TYPE, "application/json")], "<html>").into_response(),
        "odd" => Json(json!({ "id": "odd" })).into_response(),
        _ => (
            StatusCode::NOT_FOUND,
            Json(json!({ "error": "no such pet" })),
        )
            .into_response(),
    }
}

async fn token(
    State(pets): State<Pets>,
    Form(form): Form<Vec<(String, String)>>,
) -> axum::response::Response {
    pets.tokens_issued.fetch_add(1, Ordering::SeqCst);
    let has = |name: &str, value: &str| form.iter().any(|(n, v)| n == name && v == value);
    if has("grant_type", "client_credentials")
        && has("client_id", "me")
        && has("client_secret", "right")
    {
        Json(json!({ "access_token": "fetched-token", "token_type": "Bearer", "expires_in": "3600" })).into_response()
    } else {
        (
            StatusCode::UNAUTHORIZED,
            Json(json!({ "error": "invalid_client" })),
        )
            .into_response()
    }
}

/// Starts the API and a service that may call it, and no other address of this machine.
async fn open() -> (TestService, SocketAddr, Pets) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pets = Pets::default();
    let api = Router::new()
        .route("/v1/pets/{id}", get(pet))
        .route("/v1/echo", routing::post(|headers: HeaderMap, body: String| async move {
            Json(json!({ "type": headers[header::CONTENT_TYPE].to_str().unwrap(), "body": body }))
        }))
        .route("/token", routing::post(token))
        .route("/openapi.json", get(move || async move { Json(document(&format!("http://{address}/v1"))) }))
        .route("/moved.json", get(|| async { axum::response::Redirect::temporary("/openapi.json") }))
        .route("/page", get(|| async { axum::response::Html("<!doctype html>") }))
        .with_state(pets.clone());
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, api).await.unwrap() });
    let allow = vec![AllowedDestination::address(address.ip(), address.port())];
    let service = TestService::open_with(EgressPolicy {
        allow,
        ..EgressPolicy::default()
    })
    .await;
    (service, address, pets)
}

fn document(base_url: &str) -> Value {
    json!({"openapi": "3.0.3", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": base_url}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}}},
    "paths": {
        "/pets/{id}": {"get": {"operationId": "getPet", "summary": "Finds a pet",
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
            "responses": {"200": {"description": "A pet", "content": {"application/json": {"schema":
                {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}}}}}}},
        "/echo": {"post": {"operationId": "echo", "requestBody": {"content": {"application/json": {"schema":
            {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}}}}, "responses": {}}},
        "/far": {"get": {"operationId": "far", "parameters": [{"$ref": "https://example.com/p.json"}], "responses": {}}}
    }})
}

async fn workspace(service: &TestService) -> Browser<'_> {
    let ann = service.person("ann@acme.example").await;
    created(
        ann.call(
            Method::POST,
            "/workspaces",
            Some(json!({ "name": "Acme", "slug": "acme" })),
        )
        .await,
    );
    ann
}

fn created(answer: Answer) -> Value {
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()
}

fn fine(answer: Answer) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()
}

fn refused(answer: Answer, status: StatusCode, code: &str) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text);
    let body = answer.json();
    assert_eq!(body["error"]["code"], code, "{body}");
    body["error"].clone()
}

const WS: &str = "/workspaces/acme";

async fn post(ann: &Browser<'_>, path: &str, body: Value) -> Answer {
    ann.call(Method::POST, &format!("{WS}{path}"), Some(body))
        .await
}

async fn source(ann: &Browser<'_>, address: SocketAddr) -> String {
    let text = document(&format!("http://{address}/v1")).to_string();
    let source = created(
        post(
            ann,
            "/sources",
            json!({"kind": "openapi", "name": "Pets", "input": {"kind": "text", "text": text}}),
        )
        .await,
    );
    source["id"].as_str().unwrap().to_owned()
}

async fn tool(ann: &Browser<'_>, name: &str) -> String {
    let tools = fine(ann.call(Method::GET, &format!("{WS}/tools"), None).await);
    let found = tools["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {tools}"))["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn attempt(ann: &Browser<'_>, tool: &str, arguments: Value) -> Value {
    fine(
        post(
            ann,
            &format!("/tools/{tool}/try"),
            json!({ "arguments": arguments }),
        )
        .await,
    )
}

#[tokio::test]
async fn a_document_is_previewed_imported_and_called() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let url = format!("http://{address}/moved.json");
    let preview = fine(
        post(
            &ann,
            "/imports/preview",
            json!({"input": {"kind": "url", "url": url}}),
        )
        .await,
    );
    assert_eq!(
        preview["security"][0],
        json!({"kind": "api_key", "name": "X-Api-Key", "location": "header"})
    );
    assert_eq!(preview["base_url"], format!("http://{address}/v1"));
    let operations = preview["operations"].as_array().unwrap();
    assert_eq!(
        operations
            .iter()
            .map(|o| o["status"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["tool", "tool", "left_out"]
    );
    assert!(
        operations[2]["reason"]
            .as_str()
            .unwrap()
            .contains("https://example.com/p.json"),
        "{}",
        operations[2]
    );

    let source = created(
        post(
            &ann,
            "/sources",
            json!({"kind": "openapi", "name": "Pets", "input": {"kind": "url", "url": url},
        "operations": ["GET /pets/{id}"]}),
        )
        .await,
    );
    assert_eq!(
        (&source["tool_count"], &source["enabled_tool_count"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(source["document_digest"], preview["digest"]);
    let id = source["id"].as_str().unwrap();
    let get_pet = tool(&ann, "getPet").await;

    let without = attempt(&ann, &get_pet, json!({"id": "1"})).await;
    assert_eq!(
        (&without["ok"], &without["status"]),
        (&json!(false), &json!(401))
    );
    assert!(
        without["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("a person can set it in the console"),
        "{without}"
    );

    let key = json!({"kind": "api_key", "in": "header", "name": "X-Api-Key", "value": " correct-horse-cafe\n"});
    let set = fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(key),
        )
        .await,
    );
    assert_eq!(set["hint"], "X-Api-Key: ••••cafe");
    let shown = ann
        .call(Method::GET, &format!("{WS}/sources/{id}"), None)
        .await;
    assert!(
        !shown.text.contains("correct-horse"),
        "the secret never comes back"
    );

    let answer = attempt(&ann, &get_pet, json!({"id": "1"})).await;
    assert_eq!(
        answer["structured_content"],
        json!({"id": 1, "name": "Rex"})
    );
    assert_eq!(
        answer["content"],
        json!([{"type": "text", "text": "{\"id\":1,\"name\":\"Rex\"}"}])
    );
    let request = &answer["request"];
    assert_eq!(
        (&request["method"], &request["url"], &request["body"]),
        (
            &json!("GET"),
            &json!(format!("http://{address}/v1/pets/1")),
            &Value::Null
        )
    );
    let headers = request["headers"].as_array().unwrap();
    let key = json!({"name": "x-api-key", "value": "••••"});
    assert!(headers.contains(&key), "{request}");
    assert_eq!(answer["response"]["status"], 200);
    assert_eq!(
        answer["response"]["body"],
        json!({"text": "{\"id\":1,\"name\":\"Rex\"}", "bytes": 21})
    );
    assert!(!answer.to_string().contains("correct-horse"), "{answer}");
    let echo = tool(&ann, "echo").await;
    let echoed = attempt(&ann, &echo, json!({"text": "ahoy"})).await;
    let sent = json!({"text": "{\"text\":\"ahoy\"}", "bytes": 15});
    assert_eq!(echoed["request"]["body"], sent, "bug 20");
    let rejected = attempt(&ann, &echo, json!({})).await;
    assert_eq!(rejected.get("request"), None, "nothing was sent");

    // Succeeded, failed and rejected calls are counted apart, as the list of calls shows them.
    let overview = fine(ann.call(Method::GET, &format!("{WS}/overview"), None).await);
    let counted = &overview["calls_24h"];
    assert_eq!(
        (&counted["total"], &counted["errors"], &counted["rejected"]),
        (&json!(4), &json!(1), &json!(1)),
        "{counted}"
    );
    let hours = counted["by_hour"].as_array().unwrap();
    let sum = |name: &str| {
        hours
            .iter()
            .map(|hour| hour[name].as_i64().unwrap())
            .sum::<i64>()
    };
    assert_eq!((sum("calls"), sum("errors"), sum("rejected")), (4, 1, 1));

    let calls = fine(ann.call(Method::GET, &format!("{WS}/calls"), None).await);
    let outcomes: Vec<&str> = calls["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        ["invalid_arguments", "ok", "ok", "tool_error"],
        "newest first"
    );
    let audit = fine(ann.call(Method::GET, &format!("{WS}/audit"), None).await);
    let actions: Vec<_> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["action"].clone())
        .collect();
    assert_eq!(
        actions[..2],
        [json!("credential.set"), json!("source.created")]
    );
}

#[tokio::test]
async fn what_goes_wrong_in_a_call_is_said_honestly() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let id = source(&ann, address).await;
    let key = json!({"kind": "api_key", "in": "header", "name": "X-Api-Key", "value": "correct-horse-cafe"});
    fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(key),
        )
        .await,
    );
    let get_pet = tool(&ann, "getPet").await;

    let faults = attempt(&ann, &get_pet, json!({"id": 1, "x": 2})).await;
    assert_eq!(
        faults["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["path"].as_str().unwrap())
            .collect::<Vec<_>>()
            .len(),
        2
    );
    assert!(faults.get("request").is_none(), "nothing was sent");
    let dots = attempt(&ann, &get_pet, json!({"id": ".."})).await;
    assert_eq!(dots["errors"][0]["path"], "/id");
    let missing = attempt(&ann, &get_pet, json!({"id": "7"})).await;
    assert!(
        missing["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("The API answered 404 Not Found."),
        "{missing}"
    );
    let broken = attempt(&ann, &get_pet, json!({"id": "broken"})).await;
    assert!(
        broken["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("not usable JSON"),
        "{broken}"
    );
    let odd = attempt(&ann, &get_pet, json!({"id": "odd"})).await;
    assert!(
        odd["is_error"] == true
            && odd["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("/id is a string"),
        "MCP-TL-12: {odd}"
    );

    let wrong = json!({"kind": "api_key", "in": "header", "name": "X-Api-Key", "value": "wrong-but-secret"});
    fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(wrong),
        )
        .await,
    );
    let echoed = attempt(&ann, &get_pet, json!({"id": "1"})).await;
    let text = echoed["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("you sent ••••") && !text.contains("wrong-but-secret"),
        "{text}"
    );
}

#[tokio::test]
async fn client_credentials_are_fetched_and_their_refusal_is_told() {
    let (service, address, pets) = open().await;
    let ann = workspace(&service).await;
    let id = source(&ann, address).await;
    let get_pet = tool(&ann, "getPet").await;
    let with = |secret: &str| {
        json!({"kind": "oauth_client_credentials", "token_url": format!("http://{address}/token"),
        "client_id": "me", "client_secret": secret, "auth": "post"})
    };
    fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(with("right")),
        )
        .await,
    );
    assert_eq!(
        attempt(&ann, &get_pet, json!({"id": "1"})).await["structured_content"]["name"],
        "Rex"
    );
    assert_eq!(pets.tokens_issued.load(Ordering::SeqCst), 1);
    fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(with("wrong")),
        )
        .await,
    );
    let refused = attempt(&ann, &get_pet, json!({"id": "1"})).await;
    assert!(
        refused["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("401, invalid_client"),
        "{refused}"
    );
}

#[tokio::test]
async fn bad_input_gets_a_sentence_and_a_field() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let preview = |input: Value| post(&ann, "/imports/preview", json!({ "input": input }));
    let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;

    let error = refused(
        preview(json!({"kind": "text", "text": "{\n \"openapi\": \"3.0.0\",\n}x"})).await,
        unprocessable,
        "document_invalid",
    );
    assert_eq!(error["details"]["problems"][0]["line"], 3, "{error}");
    refused(
        preview(json!({"kind": "text", "text": "swagger: '2.0'"})).await,
        unprocessable,
        "document_invalid",
    );
    refused(
        preview(json!({"kind": "url", "url": format!("http://{address}/page")})).await,
        unprocessable,
        "document_invalid",
    );
    refused(
        preview(json!({"kind": "url", "url": "http://169.254.169.254/latest"})).await,
        unprocessable,
        "document_url_refused",
    );
    refused(
        preview(json!({"kind": "url", "url": "no"})).await,
        unprocessable,
        "document_url_refused",
    );
    refused(
        preview(json!({"kind": "url", "url": format!("http://{address}/nowhere")})).await,
        StatusCode::BAD_GATEWAY,
        "document_unreachable",
    );
    let huge = refused(
        preview(json!({"kind": "text", "text": " ".repeat(11 * 1024 * 1024)})).await,
        unprocessable,
        "document_invalid",
    );
    assert!(huge["message"].as_str().unwrap().contains("10 MiB"));

    let new = |base_url: &str| {
        post(
            &ann,
            "/sources",
            json!({"kind": "http", "name": "X", "base_url": base_url}),
        )
    };
    for url in [
        "example.com",
        "ftp://example.com",
        "http://127.0.0.1:1/",
        "https://user:pw@example.com",
        "https://{host}.example.com",
    ] {
        let error = refused(new(url).await, unprocessable, "base_url_invalid");
        assert_eq!(error["field"], "base_url", "{url}");
    }
    let id = source(&ann, address).await;
    let credential = |body: Value| async {
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(body),
        )
        .await
    };
    let error = refused(
        credential(json!({"kind": "bearer", "token": "a\nb"})).await,
        unprocessable,
        "credential_invalid",
    );
    assert_eq!(error["field"], "token");
    refused(
        credential(json!({"kind": "magic"})).await,
        unprocessable,
        "invalid_body",
    );
    refused(
        post(
            &ann,
            "/sources/src_00000000000000000000000000000000/reimport/preview",
            json!({"input": {"kind": "text", "text": ""}}),
        )
        .await,
        StatusCode::NOT_FOUND,
        "not_found",
    );
    let patch = json!({"settings": {"timeout_ms": 1, "max_response_bytes": 4096, "follow_redirects": "none"}});
    let error = refused(
        ann.call(Method::PATCH, &format!("{WS}/sources/{id}"), Some(patch))
            .await,
        unprocessable,
        "settings_invalid",
    );
    assert_eq!(error["field"], "settings.timeout_ms");
}

#[tokio::test]
async fn a_document_imported_again_shows_its_difference_first() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let id = source(&ann, address).await;
    let echo = tool(&ann, "echo").await;
    fine(
        ann.call(
            Method::PATCH,
            &format!("{WS}/tools/{echo}"),
            Some(json!({"title": "Ours"})),
        )
        .await,
    );

    let mut changed = document(&format!("http://{address}/v1"));
    changed["paths"]["/pets/{id}"] = Value::Null;
    changed["paths"]["/new"] = json!({"get": {"operationId": "getPet", "responses": {}}});
    changed["paths"]["/echo"]["post"]["requestBody"]["content"]["application/json"]["schema"]["required"] =
        json!([]);
    let input = json!({"kind": "text", "text": changed.to_string()});
    let preview = fine(
        post(
            &ann,
            &format!("/sources/{id}/reimport/preview"),
            json!({"input": input}),
        )
        .await,
    );
    assert_eq!(preview["added"][0]["key"], "GET /new");
    assert_eq!(preview["removed"][0]["key"], "GET /pets/{id}");
    assert_eq!(
        preview["changed"][0]["changes"][0],
        "`text` is optional now."
    );

    let stale = json!({"input": {"kind": "text", "text": document("http://x.example").to_string()}, "digest": preview["digest"]});
    refused(
        post(&ann, &format!("/sources/{id}/reimport"), stale).await,
        StatusCode::CONFLICT,
        "document_changed",
    );
    let source = fine(
        post(
            &ann,
            &format!("/sources/{id}/reimport"),
            json!({"input": input, "digest": preview["digest"]}),
        )
        .await,
    );
    assert_eq!(source["document_digest"], preview["digest"]);
    let shown = fine(
        ann.call(Method::GET, &format!("{WS}/tools/{echo}"), None)
            .await,
    );
    assert_eq!(
        (&shown["title"], &shown["customised"]),
        (&json!("Ours"), &json!(true)),
        "what the workspace wrote stays"
    );
    let tools = fine(
        ann.call(Method::GET, &format!("{WS}/sources/{id}/tools"), None)
            .await,
    );
    let states: Vec<_> = tools["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["path"].clone(), t["state"].clone()))
        .collect();
    assert!(
        states.contains(&(json!("/pets/{id}"), json!("removed"))),
        "{states:?}"
    );
    assert!(
        states.contains(&(json!("/new"), json!("active"))),
        "{states:?}"
    );
}

#[tokio::test]
async fn a_tool_made_by_hand_works_like_an_imported_one() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let source = created(
        post(
            &ann,
            "/sources",
            json!({"kind": "http", "name": "By hand", "base_url": format!("http://{address}/v1/")}),
        )
        .await,
    );
    let path = format!("/sources/{}/tools", source["id"].as_str().unwrap());
    let definition = |name: &str, content_type: &str| {
        json!({"name": name, "description": "Echoes.", "method": "POST", "path": "/echo", "parameters": [],
        "body": {"content_type": content_type, "required": true, "schema": {"type": "object", "properties": {"a b": {"type": "string"}}}}})
    };
    let made = created(post(&ann, &path, definition("echo", "application/json")).await);
    assert_eq!(
        (&made["method"], &made["path"], &made["definition"]["name"]),
        (&json!("POST"), &json!("/echo"), &json!("echo"))
    );
    refused(
        post(&ann, &path, definition("Echo", "application/json")).await,
        StatusCode::CONFLICT,
        "name_taken",
    );
    created(post(&ann, &path, definition("echo_two", "application/json")).await);
    let error = refused(
        post(
            &ann,
            &path,
            json!({"name": "x", "description": "d", "method": "GET", "path": "/a/{id}"}),
        )
        .await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "definition_invalid",
    );
    assert_eq!(error["field"], "parameters");

    let id = made["id"].as_str().unwrap();
    let sent = attempt(&ann, id, json!({"a_b": "x"})).await;
    assert_eq!(
        sent["structured_content"],
        json!({"type": "application/json", "body": "{\"a b\":\"x\"}"})
    );
    let form = definition("echo", "application/x-www-form-urlencoded");
    fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/tools/{id}/definition"),
            Some(form),
        )
        .await,
    );
    let sent = attempt(&ann, id, json!({"a_b": "x y"})).await;
    assert_eq!(
        sent["structured_content"],
        json!({"type": "application/x-www-form-urlencoded", "body": "a%20b=x%20y"})
    );
    assert_eq!(
        ann.call(Method::DELETE, &format!("{WS}/tools/{id}"), None)
            .await
            .status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        ann.call(Method::GET, &format!("{WS}/tools/{id}"), None)
            .await
            .status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_server_is_made_published_renamed_and_brought_back() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let id = source(&ann, address).await;
    let (get_pet, echo) = (tool(&ann, "getPet").await, tool(&ann, "echo").await);
    let new = |slug: &str| json!({"name": "Pet Store", "slug": slug, "tool_ids": [get_pet, echo]});
    let server = created(post(&ann, "/servers", new("pets")).await);
    assert_eq!(
        (&server["status"], &server["tool_count"]),
        (&json!("draft"), &json!(2))
    );
    assert_eq!(server["url"], "https://portolan.test/t/acme/pets/mcp");
    refused(
        post(&ann, "/servers", new("pets")).await,
        StatusCode::CONFLICT,
        "slug_taken",
    );
    refused(
        post(&ann, "/servers", new("A")).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "slug_invalid",
    );
    let server_id = server["id"].as_str().unwrap();
    let tools = format!("{WS}/servers/{server_id}/tools");

    let clash = json!({"tools": [{"tool_id": get_pet, "published_name": "same"}, {"tool_id": echo, "published_name": "same"}]});
    let error = refused(
        ann.call(Method::PUT, &tools, Some(clash)).await,
        StatusCode::CONFLICT,
        "name_clash",
    );
    assert_eq!(error["details"]["names"], json!(["same"]));
    let foreign = json!({"tools": [{"tool_id": "tol_00000000000000000000000000000000", "published_name": "x"}]});
    refused(
        ann.call(Method::PUT, &tools, Some(foreign)).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "tool_unknown",
    );

    fine(
        ann.call(
            Method::PATCH,
            &format!("{WS}/tools/{get_pet}"),
            Some(json!({"name": "find_pet"})),
        )
        .await,
    );
    let detail = fine(
        ann.call(Method::GET, &format!("{WS}/servers/{server_id}"), None)
            .await,
    );
    let names: Vec<_> = detail["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["published_name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["echo", "find_pet"], "a rename is followed");
    refused(
        ann.call(
            Method::PATCH,
            &format!("{WS}/tools/{echo}"),
            Some(json!({"name": "find_pet"})),
        )
        .await,
        StatusCode::CONFLICT,
        "name_clash",
    );
    fine(
        ann.call(
            Method::PATCH,
            &format!("{WS}/tools/{get_pet}"),
            Some(json!({"name": null})),
        )
        .await,
    );

    fine(
        post(
            &ann,
            "/tools/enabled",
            json!({"ids": [get_pet, echo], "enabled": false}),
        )
        .await,
    );
    let detail = fine(
        ann.call(Method::GET, &format!("{WS}/servers/{server_id}"), None)
            .await,
    );
    assert_eq!(detail["warnings"].as_array().unwrap().len(), 2, "{detail}");

    assert_eq!(
        fine(post(&ann, &format!("/servers/{server_id}/publish"), json!({})).await)["status"],
        "published"
    );
    assert_eq!(
        fine(post(&ann, &format!("/servers/{server_id}/pause"), json!({})).await)["status"],
        "paused"
    );
    let connection = fine(
        ann.call(
            Method::GET,
            &format!("{WS}/servers/{server_id}/connection"),
            None,
        )
        .await,
    );
    assert_eq!(connection["clients"].as_array().unwrap().len(), 14);

    assert!(
        fine(
            ann.call(Method::DELETE, &format!("{WS}/servers/{server_id}"), None)
                .await
        )["undo_until"]
            .is_string()
    );
    assert_eq!(
        ann.call(Method::GET, &format!("{WS}/servers/{server_id}"), None)
            .await
            .status,
        StatusCode::NOT_FOUND
    );
    fine(post(&ann, &format!("/servers/{server_id}/restore"), json!({})).await);
    assert!(
        fine(
            ann.call(Method::DELETE, &format!("{WS}/sources/{id}"), None)
                .await
        )["undo_until"]
            .is_string()
    );
    service.wait(time::Duration::days(1));
    let trash = fine(ann.call(Method::GET, &format!("{WS}/trash"), None).await);
    let entry = &trash["items"][0];
    assert_eq!(
        (&entry["kind"], &entry["id"]),
        (&json!("source"), &json!(id))
    );
    assert!(entry["restorable_until"].is_string(), "{trash}");
    fine(post(&ann, &format!("/sources/{id}/restore"), json!({})).await);
    let trash = fine(ann.call(Method::GET, &format!("{WS}/trash"), None).await);
    assert_eq!(trash["items"], json!([]));
}

#[tokio::test]
async fn a_new_host_loses_the_credential_that_was_given_for_the_old_one() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let id = source(&ann, address).await;
    let key = json!({"kind": "bearer", "token": "for-this-host-only"});
    fine(
        ann.call(
            Method::PUT,
            &format!("{WS}/sources/{id}/credential"),
            Some(key),
        )
        .await,
    );
    let path = format!("{WS}/sources/{id}");
    let same = fine(
        ann.call(
            Method::PATCH,
            &path,
            Some(json!({"base_url": format!("http://{address}/v2")})),
        )
        .await,
    );
    assert!(same["credential"].is_object());
    let moved = fine(
        ann.call(
            Method::PATCH,
            &path,
            Some(json!({"base_url": "https://collector.example"})),
        )
        .await,
    );
    assert!(moved["credential"].is_null());
}

#[tokio::test]
async fn case_106_the_registry_of_others_does_not_exist() {
    let (service, address, _) = open().await;
    let ann = workspace(&service).await;
    let id = source(&ann, address).await;
    let echo = tool(&ann, "echo").await;
    let bob = service.person("bob@beta.example").await;
    created(
        bob.call(
            Method::POST,
            "/workspaces",
            Some(json!({ "name": "Beta", "slug": "beta" })),
        )
        .await,
    );
    for (method, path) in [
        (Method::GET, format!("/workspaces/acme/sources/{id}")),
        (Method::GET, format!("/workspaces/beta/sources/{id}")),
        (Method::DELETE, format!("/workspaces/beta/sources/{id}")),
        (Method::GET, format!("/workspaces/beta/tools/{echo}")),
        (
            Method::DELETE,
            format!("/workspaces/beta/sources/{id}/credential"),
        ),
    ] {
        assert_eq!(
            bob.call(method, &path, None).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let steal = json!({"name": "Mine", "slug": "mine", "tool_ids": [echo]});
    let answer = bob
        .call(Method::POST, "/workspaces/beta/servers", Some(steal))
        .await;
    refused(answer, StatusCode::UNPROCESSABLE_ENTITY, "tool_unknown");
    let form =
        Request::post("/api/v1/workspaces/acme/sources").header(header::CONTENT_TYPE, "text/plain");
    assert_eq!(
        ann.send(form.body(Body::from("{}")).unwrap()).await.status,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "AUTH-S5"
    );
}
