//! The fixtures behind the tests are what they say: servers of their era, made by the official SDKs.

use anyhow::{Context, Result};
use portolan_tests::upstream::{Fixture, Upstream};
use serde_json::{Value, json};

const META: &str = "io.modelcontextprotocol";

struct Talk {
    http: reqwest::Client,
    url: String,
}

impl Talk {
    fn with(upstream: &Upstream) -> Result<Self> {
        Ok(Self {
            http: reqwest::Client::builder().build()?,
            url: upstream.url(),
        })
    }

    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Result<reqwest::Response> {
        let mut request = self
            .http
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.send().await?)
    }

    /// A request of the stateless era, and its last message.
    async fn modern(&self, method: &str, name: &str, mut params: Value) -> Result<Value> {
        params["_meta"] = json!({
            (format!("{META}/protocolVersion")): "2026-07-28",
            (format!("{META}/clientCapabilities")): { "elicitation": {} },
        });
        let mut headers = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        if !name.is_empty() {
            headers.push(("Mcp-Name", name));
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        last(self.post(&headers, &body).await?).await
    }

    /// The id of a fresh session, and the result of `initialize`.
    async fn initialize(&self) -> Result<(String, Value)> {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        }});
        let answer = self.post(&[], &body).await?;
        let id = answer
            .headers()
            .get("mcp-session-id")
            .context("a session")?;
        let id = id.to_str()?.to_owned();
        Ok((id, last(answer).await?))
    }
}

/// The last message of an answer, whatever its form.
async fn last(answer: reqwest::Response) -> Result<Value> {
    let text = answer.text().await?;
    let json = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .next_back()
        .unwrap_or(&text);
    serde_json::from_str(json).with_context(|| text.clone())
}

#[tokio::test]
async fn fixtures_of_the_session_era_keep_what_belongs_to_a_session() -> Result<()> {
    for fixture in [
        Fixture::TypeScript1,
        Fixture::Python1,
        Fixture::Python2,
        Fixture::Rmcp,
    ] {
        let upstream = Upstream::start(fixture)?;
        let talk = Talk::with(&upstream)?;
        let (session, told) = talk.initialize().await?;
        assert_eq!(
            told["result"]["protocolVersion"], "2025-11-25",
            "{fixture:?}"
        );
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(
            talk.post(&headers, &ready).await?.status(),
            202,
            "{fixture:?}"
        );
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "test_simple_text", "arguments": {} } });
        let answer = last(talk.post(&headers, &call).await?).await?;
        let text = "This is a simple text response for testing.";
        assert_eq!(
            answer["result"]["content"][0]["text"], text,
            "{fixture:?}: {answer}"
        );
        let seen = upstream.seen_of("tools/call");
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].header("mcp-session-id"), Some(session.as_str()));
    }
    Ok(())
}

#[tokio::test]
async fn fixtures_of_the_stateless_era_ask_for_input_and_take_it() -> Result<()> {
    let tool = "test_input_required_result_elicitation";
    for fixture in [Fixture::TypeScript2, Fixture::Python2, Fixture::Rmcp] {
        let upstream = Upstream::start(fixture)?;
        let talk = Talk::with(&upstream)?;
        let discovered = talk.modern("server/discover", "", json!({})).await?;
        let versions = &discovered["result"]["supportedVersions"];
        assert!(
            versions.to_string().contains("2026-07-28"),
            "{fixture:?}: {discovered}"
        );
        let params = json!({ "name": tool, "arguments": {} });
        let asked = talk.modern("tools/call", tool, params.clone()).await?;
        assert_eq!(
            asked["result"]["resultType"], "input_required",
            "{fixture:?}: {asked}"
        );
        assert_eq!(
            asked["result"]["inputRequests"]["user_name"]["method"],
            "elicitation/create"
        );
        let mut retry = params;
        retry["inputResponses"] =
            json!({ "user_name": { "action": "accept", "content": { "name": "Ann" } } });
        if let Some(state) = asked["result"].get("requestState") {
            retry["requestState"] = state.clone();
        }
        let answer = talk.modern("tools/call", tool, retry).await?;
        assert_eq!(
            answer["result"]["content"][0]["text"], "Hello, Ann!",
            "{fixture:?}: {answer}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_old_fixture_says_where_to_post() -> Result<()> {
    let upstream = Upstream::start_for_token(Fixture::HttpSse, "canary")?;
    let http = reqwest::Client::builder().build()?;
    assert_eq!(http.get(upstream.url()).send().await?.status(), 401);
    let mut stream = http
        .get(upstream.url())
        .bearer_auth("canary")
        .send()
        .await?;
    let first = stream.chunk().await?.context("an event")?;
    let first = std::str::from_utf8(&first)?;
    assert!(
        first.starts_with("event: endpoint\ndata: /messages?sessionId="),
        "{first}"
    );
    Ok(())
}

#[tokio::test]
async fn a_recorder_cuts_refuses_and_forgets() -> Result<()> {
    let mut upstream = Upstream::start(Fixture::TypeScript2)?;
    let talk = Talk::with(&upstream)?;
    let slow = json!({ "name": "test_slow", "arguments": { "milliseconds": 60_000 } });
    let (broken, ()) = tokio::join!(talk.modern("tools/call", "test_slow", slow), async {
        while upstream.seen_of("tools/call").is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        upstream.cut();
    });
    assert!(broken.is_err(), "{broken:?}");
    upstream.forget();
    // The server behind saw its client go.
    let count = json!({ "name": "test_cancelled", "arguments": {} });
    let mut answer = Value::Null;
    for _ in 0..100 {
        answer = talk
            .modern("tools/call", "test_cancelled", count.clone())
            .await?;
        if answer["result"]["content"][0]["text"] == "1" {
            break;
        }
    }
    assert_eq!(answer["result"]["content"][0]["text"], "1", "{answer}");
    upstream.refuse(Some(axum::http::StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(talk.post(&[], &json!({})).await?.status(), 503);
    assert_eq!(
        upstream
            .seen()
            .last()
            .and_then(|seen| seen.status)
            .map(|status| status.as_u16()),
        Some(503)
    );
    upstream.refuse(None);
    upstream.kill()?;
    assert_eq!(talk.post(&[], &json!({})).await?.status(), 502);
    Ok(())
}
