//! Admission at a server without sessions, in both eras.

use portolan_protocol::capability::ServerCapabilities;
use portolan_protocol::header::Headers;
use portolan_protocol::negotiate::standalone::{self, Standalone};
use portolan_protocol::{Body, Method, Refusal, Revision};
use serde_json::{Value, json};

use crate::{modern, tree};

const V5: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn post(body: &Value, headers: &[(&str, &str)]) -> Result<Standalone, Refusal> {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    let headers = Headers::collect(headers);
    Body::parse(body.to_string().into()).and_then(|body| standalone::admit(body, &headers))
}

/// Revision and method of an admitted request.
fn spoken(body: &Value, headers: &[(&str, &str)]) -> (Revision, Method) {
    match post(body, headers) {
        Ok(Standalone::Request(request)) => (request.revision, request.method),
        other => panic!("{body} {headers:?}: {other:?}"),
    }
}

/// Status and code of a refusal.
fn refused(body: &Value, headers: &[(&str, &str)]) -> (u16, i32) {
    match post(body, headers) {
        Err(refusal) => (refusal.status, refusal.code()),
        other => panic!("{body} {headers:?}: {other:?}"),
    }
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" })
}

/// Rules: MCP-T-46, MCP-T-47, MCP-T-48, MCP-E-6.
#[test]
fn a_request_without_session_has_the_revision_it_names() {
    let named = |version: &'static str| [("MCP-Protocol-Version", version)];
    assert_eq!(
        spoken(&list(), &[]),
        (Revision::V2025_03_26, Method::ToolsList)
    );
    for revision in Revision::ALL
        .into_iter()
        .filter(|one| *one < Revision::V2026_07_28)
    {
        let headers = named(revision.as_str());
        assert_eq!(spoken(&list(), &headers), (revision, Method::ToolsList));
        let mut body = list();
        body["params"] = json!({ "_meta": {
            "io.modelcontextprotocol/protocolVersion": revision.as_str() } });
        assert_eq!(spoken(&body, &[]).0, revision);
    }
    let session = [
        ("MCP-Protocol-Version", "2025-06-18"),
        ("Mcp-Session-Id", "abc"),
    ];
    assert_eq!(spoken(&list(), &session).0, Revision::V2025_06_18);
    assert_eq!(refused(&list(), &named("1999-01-01")), (400, -32022));
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    assert_eq!(
        spoken(&initialize, &named("nonsense")).1,
        Method::Initialize
    );
    assert_eq!(refused(&initialize, &[V5]), (400, -32020));
}

/// Rules: MCP-E-2, MCP-E-7, MCP-E-10.
#[test]
fn a_modern_request_without_session_keeps_its_ladder() {
    let request = modern("tools/list", json!({}));
    let good = [V5, ("Mcp-Method", "tools/list")];
    assert_eq!(
        spoken(&request, &good),
        (Revision::V2026_07_28, Method::ToolsList)
    );
    assert_eq!(refused(&request, &[V5]), (400, -32020));
    assert_eq!(refused(&list(), &[V5]), (400, -32602));
    let unknown = modern("ping", json!({}));
    assert_eq!(
        refused(&unknown, &[V5, ("Mcp-Method", "ping")]),
        (404, -32601)
    );
}

/// Rules: MCP-E-13, MCP-E-14.
#[test]
fn a_notification_without_session_is_taken_and_a_response_not() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert!(matches!(post(&note, &[]), Ok(Standalone::Notification)));
    assert!(matches!(post(&note, &[V5]), Ok(Standalone::Notification)));
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(refused(&response, &[]), (400, -32600));
    let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/unknown" });
    assert_eq!(refused(&unknown, &[]), (200, -32601));
}

/// Rules: MCP-J-14, MCP-J-16.
#[test]
fn a_batch_without_session_has_an_answer_for_each_request() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let unknown = json!({ "jsonrpc": "2.0", "id": "b", "method": "tools/unknown" });
    let batch = json!([list(), note, unknown]);
    let Ok(Standalone::Batch(requests)) = post(&batch, &[]) else {
        panic!("a batch of 2025-03-26");
    };
    let [Ok(first), Err(second)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(first.method, Method::ToolsList);
    assert_eq!(second.code(), -32601);
    assert!(matches!(
        post(&json!([note]), &[]),
        Ok(Standalone::Notification)
    ));
    let later = [("MCP-Protocol-Version", "2025-06-18")];
    assert_eq!(refused(&batch, &later), (400, -32600));
    let responses = json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }]);
    assert_eq!(refused(&responses, &[]), (400, -32600));
}

/// A server without streams announces nothing.
#[test]
fn lists_without_announcements_are_plain_capabilities() {
    let capabilities = ServerCapabilities {
        tools: true,
        resources: true,
        prompts: true,
        ..ServerCapabilities::default()
    };
    for revision in Revision::ALL {
        let mut out = Vec::new();
        capabilities.write(revision, &mut out);
        let plain = json!({ "tools": {}, "resources": {}, "prompts": {} });
        assert_eq!(tree(&out), plain, "{revision}");
    }
}
