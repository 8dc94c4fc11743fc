//! The MCP server over a workspace (OWN-1 to OWN-12), in both eras, over a real Postgres.

use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use portolan_model::{id::CallId, member::Role, registry::CallOutcome};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    calls::{call, write},
    console::{ids, workspace},
    test_service::{Answer, Browser, TestService},
};

const PATH: &str = "/api/v1/workspaces/acme/mcp";
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const TOOLS: [&str; 5] = [
    "get_call",
    "get_configuration",
    "get_insights",
    "list_error_causes",
    "search_calls",
];

/// An agent with a token.
struct Agent<'a> {
    browser: Browser<'a>,
    token: String,
}

impl<'a> Agent<'a> {
    async fn of(
        service: &'a TestService,
        admin: &Browser<'_>,
        role: Role,
        scopes: &[&str],
    ) -> Agent<'a> {
        let body = json!({"name": "Agent", "role": role, "scopes": scopes, "days": 30});
        let path = "/workspaces/acme/access-tokens";
        let made = admin.call(Method::POST, path, Some(body)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        Agent {
            browser: service.browser(),
            token: made.json()["secret"].as_str().unwrap().to_owned(),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Body::from(body))
            .unwrap();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        self.browser.send(request).await
    }

    /// A message, with what a client sends beside it.
    async fn post(&self, message: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        all.extend_from_slice(headers);
        self.send(Method::POST, PATH, message.to_string(), &all)
            .await
    }

    /// The answer to a request of a revision.
    async fn ask(&self, revision: &str, method: &str, mut params: Value) -> Value {
        let mut headers = vec![("mcp-protocol-version", revision)];
        let name = params["name"].as_str().map(str::to_owned);
        if revision == MODERN {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            headers.push(("mcp-method", method));
            if let Some(name) = &name {
                headers.push(("mcp-name", name));
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(&message, &headers).await;
        assert!(
            answer.headers.get("mcp-session-id").is_none(),
            "there are no sessions"
        );
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/json");
        answer.json()
    }

    async fn tool(&self, revision: &str, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let answer = self.ask(revision, "tools/call", params).await;
        assert!(answer["result"].is_object(), "{name}: {answer}");
        answer["result"].clone()
    }

    /// The answer of a route.
    async fn get(&self, path: &str) -> Answer {
        let path = format!("/api/v1/workspaces/acme{path}");
        self.send(Method::GET, &path, String::new(), &[]).await
    }
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The text of a failure.
fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

/// A workspace with a source and two calls; the second one failed. Its owner, and the failed call.
async fn scene(service: &TestService) -> (Browser<'_>, CallId) {
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let source = json!({"kind": "http", "name": "Pets", "base_url": "https://api.example/v1"});
    let made = ann
        .call(Method::POST, "/workspaces/acme/sources", Some(source))
        .await;
    assert!(made.status.is_success(), "{}", made.text);
    let (tenant, _) = ids(service, &ann, "acme").await;
    let now = service.clock.now();
    let good = call(tenant, now - Duration::minutes(2), "list_pets");
    let mut failed = call(tenant, now - Duration::minutes(1), "get_pet");
    failed.outcome = CallOutcome::UpstreamError;
    failed.error = Some("The API did not answer in time".to_owned());
    let id = failed.id;
    write(service, &[good, failed]).await;
    (ann, id)
}

/// Rules: OWN-1, OWN-2, OWN-3, OWN-5.
#[tokio::test]
async fn each_tool_in_both_eras_gives_the_answer_of_its_route() {
    let service = TestService::open().await;
    let (ann, failed) = scene(&service).await;
    let scopes = ["calls:read", "registry:read"];
    let agent = Agent::of(&service, &ann, Role::Developer, &scopes).await;
    let open = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "agent", "version": "1"}});
    let opened = agent.ask(LEGACY, "initialize", open).await;
    let opened = &opened["result"];
    assert_eq!(opened["protocolVersion"], LEGACY);
    assert_eq!(opened["capabilities"], json!({"tools": {}}));
    assert_eq!(opened["serverInfo"]["title"], "Portolan workspace acme");
    assert!(
        opened["instructions"]
            .as_str()
            .unwrap()
            .contains("search_calls")
    );
    let found = agent.ask(MODERN, "server/discover", json!({})).await;
    assert_eq!(found["result"]["capabilities"], json!({"tools": {}}));
    let calls = [
        (
            "search_calls",
            json!({"outcome": "error"}),
            "/calls?outcome=error".to_owned(),
        ),
        (
            "search_calls",
            json!({"longer_ms": 0.5}),
            "/calls?longer_ms=0.5".to_owned(),
        ),
        (
            "get_call",
            json!({"id": failed}),
            format!("/calls/{failed}"),
        ),
        (
            "get_insights",
            json!({"period": "7d"}),
            "/insights?period=7d".to_owned(),
        ),
        (
            "list_error_causes",
            json!({}),
            "/insights/errors".to_owned(),
        ),
        ("get_configuration", json!({}), "/configuration".to_owned()),
    ];
    for revision in [LEGACY, MODERN] {
        let listed = agent.ask(revision, "tools/list", json!({})).await;
        assert_eq!(names(&listed), TOOLS);
        for tool in listed["result"]["tools"].as_array().unwrap() {
            assert!(tool["title"].is_string() && tool["description"].is_string());
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[schema]["type"], "object", "{tool}");
            }
        }
        for (name, arguments, path) in &calls {
            let result = agent.tool(revision, name, arguments.clone()).await;
            assert!(result.get("isError").is_none(), "{name}: {result}");
            let route = agent.get(path).await;
            assert_eq!(route.status, StatusCode::OK, "{path}: {}", route.text);
            assert_eq!(result["structuredContent"], route.json(), "{name}");
            assert!(result["content"][0]["text"].is_string(), "{name}");
        }
    }
    let file = agent.tool(MODERN, "get_configuration", json!({})).await;
    let route = agent.get("/configuration?format=yaml").await;
    assert_eq!(
        file["content"][0]["text"], route.text,
        "as `portolan export`"
    );
    let errors = agent.tool(MODERN, "list_error_causes", json!({})).await;
    let cause = &errors["structuredContent"]["items"][0];
    assert_eq!(cause["tool_name"], "get_pet");
}

/// Rule: OWN-6.
#[tokio::test]
async fn calls_of_several_pages_come_by_cursor() {
    let service = TestService::open().await;
    let (ann, _) = scene(&service).await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let now = service.clock.now();
    let many: Vec<_> = (0..60)
        .map(|index| call(tenant, now - Duration::seconds(index), "many"))
        .collect();
    write(&service, &many).await;
    let agent = Agent::of(&service, &ann, Role::Viewer, &["calls:read"]).await;
    let mut arguments = json!({"tool": "many"});
    let first = agent.tool(MODERN, "search_calls", arguments.clone()).await;
    let first = &first["structuredContent"];
    assert_eq!(first["items"].as_array().unwrap().len(), 50);
    arguments["cursor"] = first["next_cursor"].clone();
    let second = agent.tool(LEGACY, "search_calls", arguments).await;
    let second = &second["structuredContent"];
    assert_eq!(second["items"].as_array().unwrap().len(), 10);
    let wrong = agent
        .tool(MODERN, "search_calls", json!({"cursor": "x"}))
        .await;
    assert!(failure(&wrong).contains("invalid_cursor"));
}

/// Rule: OWN-4.
#[tokio::test]
async fn a_tool_without_its_scope_is_hidden_and_refused() {
    let service = TestService::open().await;
    let (ann, failed) = scene(&service).await;
    let reader = Agent::of(&service, &ann, Role::Developer, &["calls:read"]).await;
    let writer = Agent::of(&service, &ann, Role::Developer, &["registry:write"]).await;
    let other = Agent::of(&service, &ann, Role::Admin, &["audit:read"]).await;
    for revision in [LEGACY, MODERN] {
        let listed = reader.ask(revision, "tools/list", json!({})).await;
        assert!(!names(&listed).contains(&"get_configuration"), "{listed}");
        assert_eq!(names(&listed).len(), 4);
        let listed = writer.ask(revision, "tools/list", json!({})).await;
        assert_eq!(names(&listed), ["get_configuration"]);
        let listed = other.ask(revision, "tools/list", json!({})).await;
        assert!(names(&listed).is_empty(), "{listed}");
        let refused = reader.tool(revision, "get_configuration", json!({})).await;
        let text = failure(&refused);
        assert!(
            text.contains("insufficient_scope") && text.contains("registry:read"),
            "{text}"
        );
        let refused = other
            .tool(revision, "get_call", json!({"id": failed}))
            .await;
        assert!(failure(&refused).contains("calls:read"));
    }
    let viewer = Agent::of(&service, &ann, Role::Viewer, &["registry:read"]).await;
    let refused = viewer.tool(MODERN, "get_configuration", json!({})).await;
    assert!(failure(&refused).contains("code: forbidden"));
}

/// Rule: OWN-9.
#[tokio::test]
async fn a_call_of_another_workspace_is_not_found() {
    let service = TestService::open().await;
    let (ann, own) = scene(&service).await;
    let bob = service.person("bob@lagoon.example").await;
    workspace(&bob, "lagoon").await;
    let (lagoon, _) = ids(&service, &bob, "lagoon").await;
    let foreign = call(lagoon, service.clock.now(), "secret_tool");
    let id = foreign.id;
    write(&service, &[foreign]).await;
    let agent = Agent::of(&service, &ann, Role::Admin, &["calls:read"]).await;
    let mut texts = Vec::new();
    for id in [
        id.to_string(),
        format!("call_{}", "0".repeat(32)),
        "x".to_owned(),
    ] {
        let refused = agent.tool(MODERN, "get_call", json!({"id": id})).await;
        texts.push(failure(&refused).to_owned());
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "one text for all: {texts:?}");
    let known = agent.tool(MODERN, "get_call", json!({"id": own})).await;
    assert_eq!(known["structuredContent"]["tool_name"], "get_pet");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let json = [("content-type", "application/json")];
    let mut answers = Vec::new();
    for slug in ["lagoon", "nothing"] {
        let path = format!("/api/v1/workspaces/{slug}/mcp");
        let answer = agent
            .send(Method::POST, &path, message.to_string(), &json)
            .await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        answers.push(answer.text);
    }
    assert_eq!(answers[0], answers[1]);
}

/// Rule: OWN-10.
#[tokio::test]
async fn no_tool_changes_the_workspace() {
    let service = TestService::open().await;
    let (ann, failed) = scene(&service).await;
    let scopes = ["calls:read", "registry:write"];
    let agent = Agent::of(&service, &ann, Role::Admin, &scopes).await;
    let routes = [
        "/audit",
        "/calls",
        "/insights",
        "/configuration",
        "/sources",
        "/servers",
        "/webhooks",
        "/alerts",
        "/members",
        "/limits",
    ];
    let mut before = Vec::new();
    for path in routes {
        let path = format!("/workspaces/acme{path}");
        before.push(ann.call(Method::GET, &path, None).await.text);
    }
    for name in TOOLS {
        let arguments = match name {
            "get_call" => json!({"id": failed}),
            _ => json!({}),
        };
        let result = agent.tool(MODERN, name, arguments).await;
        assert!(result.get("isError").is_none(), "{name}: {result}");
    }
    for (path, before) in routes.into_iter().zip(before) {
        let path = format!("/workspaces/acme{path}");
        assert_eq!(
            ann.call(Method::GET, &path, None).await.text,
            before,
            "{path}"
        );
    }
}

/// Rule: OWN-7.
#[tokio::test]
async fn wrong_arguments_are_named_and_the_tool_can_be_called_again() {
    let service = TestService::open().await;
    let (ann, _) = scene(&service).await;
    let agent = Agent::of(&service, &ann, Role::Viewer, &["calls:read"]).await;
    for (name, arguments, wanted) in [
        ("search_calls", json!({"tols": "x"}), "/tols"),
        ("search_calls", json!({"longer_ms": "long"}), "/longer_ms"),
        (
            "search_calls",
            json!({"outcome": "bad"}),
            "argument: outcome",
        ),
        (
            "search_calls",
            json!({"from": "yesterday"}),
            "code: invalid_filter",
        ),
        ("get_call", json!({}), "/id"),
        ("get_insights", json!({"period": "1y"}), "/period"),
    ] {
        for revision in [LEGACY, MODERN] {
            let refused = agent.tool(revision, name, arguments.clone()).await;
            let text = failure(&refused);
            assert!(text.contains(wanted), "{name} {arguments}: {text}");
        }
    }
    // MCP-TL-17.
    let params = json!({"name": "get_call", "arguments": {}});
    let refused = agent.ask("2025-06-18", "tools/call", params).await;
    assert_eq!(refused["error"]["code"], -32602);
    // MCP-TL-16.
    for revision in [LEGACY, MODERN] {
        let params = json!({"name": "delete_call"});
        let refused = agent.ask(revision, "tools/call", params).await;
        assert_eq!(refused["error"]["message"], "Unknown tool: delete_call");
        let refused = agent.ask(revision, "prompts/list", json!({})).await;
        assert_eq!(refused["error"]["code"], -32601);
        let refused = agent
            .ask(revision, "tools/list", json!({"cursor": "x"}))
            .await;
        assert_eq!(refused["error"]["code"], -32602);
    }
}

/// Rules: OWN-1, OWN-11 (MCP-T-2, MCP-T-5, MCP-T-6, MCP-T-7).
#[tokio::test]
async fn requests_of_other_forms_are_refused_before_they_are_read() {
    let service = TestService::open().await;
    let (ann, _) = scene(&service).await;
    let agent = Agent::of(&service, &ann, Role::Viewer, &["calls:read"]).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (origin, status) in [
        ("https://portolan.test", StatusCode::OK),
        ("https://evil.example", StatusCode::FORBIDDEN),
        ("null", StatusCode::FORBIDDEN),
    ] {
        let answer = agent.post(&list, &[("origin", origin)]).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.text);
    }
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = agent.send(method, PATH, String::new(), &[]).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers[header::ALLOW], "POST");
    }
    for (name, value, status) in [
        (
            "content-type",
            "text/plain",
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (
            "content-encoding",
            "gzip",
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        ("accept", "text/html", StatusCode::NOT_ACCEPTABLE),
        (
            "mcp-protocol-version",
            "1999-01-01",
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let answer = agent.post(&list, &[(name, value)]).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.text);
    }
    let events = agent.post(&list, &[("accept", "text/event-stream")]).await;
    assert_eq!(events.headers[header::CONTENT_TYPE], "text/event-stream");
    assert!(events.text.contains("data: {"), "{}", events.text);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = agent.post(&note, &[]).await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::ACCEPTED, "")
    );
    let large =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y".repeat(1 << 20)}});
    let answer = agent.post(&large, &[]).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    let body = "{".to_owned();
    let json = [("content-type", "application/json")];
    let answer = agent.send(Method::POST, PATH, body, &json).await;
    assert_eq!(answer.json()["error"]["code"], -32700);
}

/// Rule: OWN-2.
#[tokio::test]
async fn a_request_without_token_learns_what_to_send() {
    let service = TestService::open().await;
    let (ann, _) = scene(&service).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let path = "/workspaces/acme/mcp";
    let stranger = service.browser();
    let refused = stranger.call(Method::POST, path, Some(list.clone())).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let challenge = &refused.headers[header::WWW_AUTHENTICATE];
    assert_eq!(challenge, r#"Bearer realm="portolan""#);
    assert!(refused.text.contains("ptlw_"), "{}", refused.text);
    let refused = ann.call(Method::POST, path, Some(list)).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(refused.json()["error"]["code"], "token_only");
}

/// Rules: OWN-8, API-10.
#[tokio::test]
async fn each_request_of_a_batch_counts_to_the_rate_of_its_token() {
    let service = TestService::open().await;
    let (ann, _) = scene(&service).await;
    let agent = Agent::of(&service, &ann, Role::Viewer, &["calls:read"]).await;
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let answer = agent.post(&ping(0), &[]).await;
    assert_eq!(answer.json()["result"], json!({}));
    let batch = Value::Array((0..100).map(ping).collect());
    let mut refused = Vec::new();
    for _ in 0..3 {
        let answers = agent.post(&batch, &[]).await.json();
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 100);
        let over = answers.iter().filter(|one| one["error"].is_object());
        refused.extend(over.cloned());
    }
    assert_eq!(refused.len(), 1, "300 at once, and one before");
    assert_eq!(refused[0]["error"]["code"], -32014);
    assert_eq!(refused[0]["id"], 99);
    let answer = agent.post(&ping(1), &[]).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
}
