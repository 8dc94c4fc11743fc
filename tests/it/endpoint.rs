//! Admission order and era selection on the wire (`docs/revisions.md`, section 2), sessions,
//! streams, lists.

use anyhow::Result;
use futures_util::StreamExt;
use portolan_tests::{
    mcp::{LEGACY, MODERN, McpClient, modern_message},
    scene::Scene,
    stack::Stack,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn e1_checks_come_in_order_so_that_the_first_fault_decides() -> Result<()> {
    let scene = Scene::new().await?;
    let anonymous = McpClient::new(&scene.published.url)?;

    // Host before everything else; on loopback a foreign name is refused (MCP-T-3).
    let answer = anonymous
        .clone()
        .with("host", "attacker.example")?
        .message(&json!({}))
        .await?;
    assert!(
        matches!(answer.status.as_u16(), 403 | 421),
        "a foreign host: {}",
        answer.status
    );
    // Origin before the method and the token (MCP-T-2).
    let answer = anonymous
        .clone()
        .with("origin", "https://attacker.example")?
        .send(Method::PUT)
        .await?;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let answer = scene
        .mcp
        .clone()
        .with("origin", "null")?
        .request("ping", json!({}))
        .await?;
    assert_eq!(
        answer.status,
        StatusCode::FORBIDDEN,
        "a null origin is nobody's"
    );
    // The method before the token (MCP-T-5).
    let answer = anonymous.send(Method::PUT).await?;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.header("allow"), "POST, GET, DELETE, OPTIONS");
    // The token before the body is read.
    let answer = anonymous.post("text/plain", "not json").await?;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    // Content type before Accept (MCP-T-6).
    let answer = scene
        .mcp
        .clone()
        .with("accept", "text/html")?
        .post("text/plain", "not json")
        .await?;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    // Accept before size and parse (MCP-T-7).
    let answer = scene
        .mcp
        .clone()
        .with("accept", "text/html")?
        .post("application/json", "not json")
        .await?;
    assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE);
    // Size before parse (MCP-J-19).
    let answer = scene
        .mcp
        .post("application/json", vec![b' '; 5 * 1024 * 1024])
        .await?;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    // Parse before shape (MCP-J-1, MCP-J-7): the id could not be read, so there is none.
    let answer = scene
        .mcp
        .post("application/json; charset=utf-8", "{\"jsonrpc\":")
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32700)
    );
    assert!(answer.json.get("id").is_none(), "{}", answer.text);
    // Shape before era.
    let answer = scene
        .mcp
        .message(&json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}))
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    Ok(())
}

#[tokio::test]
async fn e1_without_a_token_every_server_answers_alike() -> Result<()> {
    let scene = Scene::new().await?;
    let known = McpClient::new(&scene.published.url)?
        .request("ping", json!({}))
        .await?;
    assert_eq!(known.status, StatusCode::UNAUTHORIZED);
    assert_eq!(known.header("cache-control"), "no-store");
    let metadata = scene
        .published
        .url
        .replace("/t/", "/.well-known/oauth-protected-resource/t/");
    assert_eq!(
        known.header("www-authenticate"),
        format!("Bearer resource_metadata=\"{metadata}\", scope=\"mcp\"")
    );

    let elsewhere = scene.stack.url().join("/t/nobody/nothing/mcp")?;
    let unknown = McpClient::new(elsewhere.as_str())?
        .request("ping", json!({}))
        .await?;
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED, "README point 5");
    assert_eq!(
        unknown
            .header("www-authenticate")
            .replace("nobody/nothing", "harbour/fixture"),
        known.header("www-authenticate")
    );
    // With a good token the unknown server is not there.
    let answer = scene
        .mcp
        .clone()
        .at(elsewhere.as_str())
        .request("ping", json!({}))
        .await?;
    assert!(
        matches!(answer.status.as_u16(), 401 | 404),
        "{}",
        answer.status
    );
    Ok(())
}

#[tokio::test]
async fn j_malformed_messages_get_exact_codes() -> Result<()> {
    let scene = Scene::new().await?;
    let cases = [
        (
            "J-2 a null id",
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
        ),
        (
            "J-2 a fractional id",
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            -32600,
        ),
        (
            "J-10 params as an array",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            -32600,
        ),
        (
            "J-11 a duplicate member",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
            -32600,
        ),
        (
            "J-16 an array outside 2025-03-26",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
        ),
        ("J-1 broken UTF-8", "\u{0}", -32700),
        ("no JSON object", "17", -32600),
    ];
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    for (rule, body, code) in cases {
        let answer = session.post("application/json", body).await?;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::BAD_REQUEST, code),
            "{rule}: {}",
            answer.text
        );
    }
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}{}}}",
        "{\"a\":".repeat(80),
        "1".to_owned() + &"}".repeat(80)
    );
    let answer = session.post("application/json", deep).await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600),
        "J-19 depth: {}",
        answer.text
    );
    Ok(())
}

#[tokio::test]
async fn e3_to_e6_legacy_requests_open_and_need_a_session() -> Result<()> {
    let scene = Scene::new().await?;
    // MCP-E-3: a modern header on initialize contradicts it.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let answer = scene
        .mcp
        .clone()
        .with("mcp-protocol-version", MODERN)?
        .message(&initialize)
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32020)
    );
    // MCP-E-4: a modern header without the envelope.
    let answer = scene
        .mcp
        .clone()
        .with("mcp-protocol-version", MODERN)?
        .request("tools/list", json!({}))
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32602)
    );
    // MCP-E-5: neither.
    let answer = scene.mcp.request("tools/list", json!({})).await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    assert_eq!(answer.json["id"], 1);
    // MCP-E-6: a legacy version in the modern key is legacy, and lacks a session.
    let answer = scene
        .mcp
        .request(
            "tools/list",
            json!({"_meta": {"io.modelcontextprotocol/protocolVersion": LEGACY}}),
        )
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    // MCP-L-2: what we do not speak is answered with the latest legacy revision, the modern one
    // included.
    for (asked, given) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        (LEGACY, LEGACY),
        (MODERN, LEGACY),
        ("1999-01-01", LEGACY),
    ] {
        let (_, result) = scene.mcp.initialize(asked).await?;
        assert_eq!(result["protocolVersion"], given, "asked for {asked}");
    }
    // MCP-L-9: initialize inside a session.
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = session.message(&initialize).await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    // MCP-E-13: an answer without a question.
    let answer = scene
        .mcp
        .message(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}))
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    assert!(answer.json.get("id").is_none());
    Ok(())
}

#[tokio::test]
async fn e7_the_modern_ladder_names_the_first_fault() -> Result<()> {
    let scene = Scene::new().await?;
    let list = modern_message("tools/list", json!({}));
    let modern = scene.mcp.modern_client("tools/list", &json!({}))?;
    let with_meta = |change: &dyn Fn(&mut Value)| {
        let mut message = list.clone();
        change(&mut message["params"]["_meta"]);
        message
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";

    let answer = modern
        .message(&with_meta(&|meta| meta[version] = json!(7)))
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32602),
        "(1) version not a string"
    );
    let answer = modern
        .clone()
        .with("mcp-protocol-version", LEGACY)?
        .message(&list)
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32020),
        "(2) header and body differ"
    );
    let answer = modern
        .clone()
        .with("mcp-protocol-version", "")?
        .message(&list)
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32020),
        "(2) header absent"
    );
    let answer = modern
        .clone()
        .with("mcp-method", "ping")?
        .message(&list)
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32020),
        "(3) Mcp-Method differs"
    );
    let answer = modern
        .clone()
        .with("mcp-protocol-version", "2099-01-01")?
        .message(&with_meta(&|meta| meta[version] = json!("2099-01-01")))
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32022),
        "(4) unknown version"
    );
    assert_eq!(
        answer.json["error"]["data"]["requested"], "2099-01-01",
        "MCP-L-16"
    );
    assert_eq!(
        answer.json["error"]["data"]["supported"][0], MODERN,
        "MCP-L-18"
    );
    let answer = modern
        .message(&with_meta(&|meta| meta[capabilities] = json!([])))
        .await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32602),
        "(5) capabilities not an object"
    );
    assert_eq!(answer.json["id"], 1, "MCP-E-9");
    for gone in [
        "ping",
        "initialize",
        "logging/setLevel",
        "tasks/list",
        "no/such/method",
    ] {
        let answer = scene.mcp.modern(gone, json!({})).await?;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::NOT_FOUND, -32601),
            "(6) E-10 {gone}: {}",
            answer.text
        );
    }
    // MCP-E-8: clientInfo may be missing; MCP-E-12: a session id is ignored and not echoed.
    let answer = modern
        .clone()
        .with("mcp-session-id", "whatever")?
        .message(&with_meta(&|meta| {
            meta.as_object_mut()
                .expect("an object")
                .remove("io.modelcontextprotocol/clientInfo");
        }))
        .await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.header("mcp-session-id"), "");
    assert_eq!(answer.json["result"]["resultType"], "complete", "MCP-J-17");
    Ok(())
}

#[tokio::test]
async fn l17_discover_names_every_revision_and_lists_are_cacheable() -> Result<()> {
    let scene = Scene::new().await?;
    let answer = scene.mcp.modern("server/discover", json!({})).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let result = &answer.json["result"];
    assert_eq!(result["supportedVersions"][0], MODERN);
    assert!(result["capabilities"]["tools"].is_object(), "{result}");
    assert!(result["capabilities"].get("tasks").is_none(), "MCP-L-23");
    assert!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string(),
        "MCP-J-18"
    );
    let answer = scene.mcp.modern("tools/list", json!({})).await?;
    assert!(
        answer.json["result"]["ttlMs"].is_number()
            && answer.json["result"]["cacheScope"].is_string(),
        "{}",
        answer.text
    );
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let answer = scene.mcp.modern(method, json!({})).await?;
        assert_eq!(
            answer.json["result"][member],
            json!([]),
            "{method} is empty but served: {}",
            answer.text
        );
    }
    Ok(())
}

#[tokio::test]
async fn pg_a_long_list_comes_in_pages_and_a_wrong_cursor_is_refused() -> Result<()> {
    let scene = Scene::with(Stack::builder().setting("page_size", 7)).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let (mut names, mut cursor, mut pages) = (Vec::new(), None::<String>, 0);
    loop {
        let params = cursor
            .as_ref()
            .map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let answer = session.request("tools/list", params).await?;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let tools = answer.json["result"]["tools"]
            .as_array()
            .expect("tools")
            .clone();
        assert!(tools.len() <= 7, "a page holds at most page_size tools");
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()),
        );
        pages += 1;
        match answer.json["result"]["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert!(
        pages > 3 && names.contains(&"list_shelf_23".to_owned()),
        "{pages} pages: {names:?}"
    );
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "no tool twice");
    let answer = session
        .request("tools/list", json!({"cursor": "made up"}))
        .await?;
    assert_eq!(answer.code(), -32602, "{}", answer.text);
    Ok(())
}

#[tokio::test]
async fn t_sessions_end_with_delete_and_forged_ids_are_404() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    assert_eq!(
        session.request("ping", json!({})).await?.json["result"],
        json!({}),
        "PI"
    );
    // A notification gets 202 and no body (MCP-J-8).
    let answer = session.message(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})).await?;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::ACCEPTED, "")
    );
    let answer = scene
        .mcp
        .clone()
        .with("mcp-session-id", "forged")?
        .request("ping", json!({}))
        .await?;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let answer = session.send(Method::DELETE).await?;
    assert!(answer.status.is_success(), "{}", answer.status);
    let answer = session.request("ping", json!({})).await?;
    assert_eq!(
        answer.status,
        StatusCode::NOT_FOUND,
        "after DELETE the session is gone"
    );
    Ok(())
}

#[tokio::test]
async fn t_get_is_a_real_event_stream() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let response = session
        .clone()
        .with("accept", "text/event-stream")?
        .open_stream()
        .await?;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no", "MCP-T-8");
    // Something arrives at once, so that proxies and clients see a living stream: a priming event or a comment.
    let mut body = response.bytes_stream();
    let first = tokio::time::timeout(std::time::Duration::from_secs(20), body.next()).await?;
    assert!(first.is_some_and(|chunk| chunk.is_ok_and(|bytes| !bytes.is_empty())));
    Ok(())
}

/// A person who opens the address in a browser reads how to connect; the answer is the same where there is no server.
#[tokio::test]
async fn a_browser_that_opens_the_address_gets_the_page_that_says_how_to_connect() -> Result<()> {
    let scene = Scene::new().await?;
    let url = &scene.published.url;
    let elsewhere = url.replace("/mcp", "-not-there/mcp");
    let mut pages = Vec::new();
    for url in [url, &elsewhere] {
        let browser = McpClient::new(url)?.with("accept", "text/html,*/*;q=0.8")?;
        let page = browser.open_stream().await?;
        assert_eq!(page.status(), StatusCode::UNAUTHORIZED);
        let header = |name: &str| page.headers()[name].to_str().unwrap_or_default().to_owned();
        assert_eq!(header("content-type"), "text/html; charset=utf-8");
        assert!(header("www-authenticate").contains("resource_metadata="));
        let policy = header("content-security-policy");
        assert!(
            policy.contains("style-src 'sha256-") && !policy.contains("sandbox"),
            "{policy}"
        );
        assert_eq!(header("cache-control"), "no-store");
        let text = page.text().await?;
        assert!(text.contains(&format!(
            "claude mcp add --transport http {} {url}",
            server(url)
        )));
        pages.push(text.replace(url, "").replace(server(url), "").len());
    }
    // But for the name in the links of editors, which is encoded.
    assert!(pages[0].abs_diff(pages[1]) < 100, "{pages:?}");
    Ok(())
}

/// The last but one segment.
fn server(url: &str) -> &str {
    url.rsplit('/').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn t11_browsers_of_the_inspector_get_cors_and_slash_is_the_same_endpoint() -> Result<()> {
    let scene = Scene::new().await?;
    let preflight = McpClient::new(&scene.published.url)?
        .with(
            "origin",
            scene.stack.url().origin().ascii_serialization().as_str(),
        )?
        .with("access-control-request-method", "POST")?
        .with(
            "access-control-request-headers",
            "authorization,content-type,mcp-protocol-version,mcp-param-region",
        )?;
    let answer = preflight.send(Method::OPTIONS).await?;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let allowed = answer
        .header("access-control-allow-headers")
        .to_ascii_lowercase();
    assert!(
        allowed.contains("authorization") && allowed.contains("mcp-protocol-version"),
        "{allowed}"
    );
    let (session, _) = scene
        .mcp
        .clone()
        .at(&format!("{}/", scene.published.url))
        .initialize(LEGACY)
        .await?;
    assert_eq!(
        session.request("ping", json!({})).await?.status,
        StatusCode::OK
    );
    Ok(())
}
