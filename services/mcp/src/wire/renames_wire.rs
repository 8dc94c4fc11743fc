//! Renamed resources of an upstream server (MCP-RE-12, MCP-X-6B), and other parts of its
//! definitions (MCP-EX-4, MCP-X-6I, MCP-IC-1).

use axum::{response::IntoResponse, routing::post};
use portolan_model::registry::{ResourceBody, ResourceShape};
use portolan_storage::registry::resources;

use crate::wire::{
    tasks_wire::{R4, last},
    upstream_tasks_wire::{Heard, heard_of},
    *,
};

fn answer(request: &Value) -> Result<Value, Value> {
    let params = &request["params"];
    Ok(match request["method"].as_str().unwrap() {
        "initialize" => {
            json!({"protocolVersion": R4, "capabilities": {"tools": {}, "resources": {}}, "serverInfo": {"name": "old", "version": "1"}})
        }
        "tools/call" => json!({
            "content": [
                {"type": "resource_link", "uri": "db://a", "name": "a"},
                {"type": "resource_link", "uri": "db://rows/7", "name": "seven"},
                {"type": "resource", "resource": {"uri": "db://b", "text": "b"}},
            ],
            "_meta": {"ui": {"resourceUri": "db://a"}},
        }),
        "resources/read" if params["uri"] == "db://gone/1" => {
            return Err(json!({"code": -32002, "message": "no", "data": {"uri": "db://gone/1"}}));
        }
        "resources/read" => json!({"contents": [{"uri": params["uri"], "text": "t"}]}),
        _ => json!({}),
    })
}

pub(crate) fn servers(heard: &Heard) -> Router {
    let heard = Arc::clone(heard);
    let linking = move |Json(request): Json<Value>| {
        let heard = Arc::clone(&heard);
        async move {
            heard.lock().unwrap().push(request.clone());
            if request["method"] == "server/discover" {
                return StatusCode::BAD_REQUEST.into_response();
            }
            if request.get("id").is_none() {
                return StatusCode::ACCEPTED.into_response();
            }
            let body = match answer(&request) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
                Err(error) => json!({"jsonrpc": "2.0", "id": request["id"], "error": error}),
            };
            ([("mcp-session-id", "theirs")], Json(body)).into_response()
        }
    };
    Router::new().route("/linking", post(linking))
}

const APP: &str = "text/html;profile=mcp-app";

fn published(source: SourceId, own: &str, uri: &str) -> resources::Published {
    let template = own.contains('{');
    resources::Published {
        id: Id::generate(),
        source: Some(source),
        upstream_uri: Some(own.to_owned()),
        upstream: Some(json!({
            "uri": own, "name": own, "icons": [{"src": "https://up.example/i.png"}, {"src": "http://up.example/i.png"}],
            "_meta": {"ui": {"csp": {"connectDomains": []}, "resourceUri": "db://a"}, "a.b/c": 1},
        }).to_string()),
        shape: if template {
            ResourceShape::Template
        } else {
            ResourceShape::Resource
        },
        uri: uri.to_owned(),
        name: own.to_owned(),
        title: String::new(),
        description: String::new(),
        mime_type: Some(APP.to_owned()),
        annotations: json!({}),
        variables: Vec::new(),
        body: ResourceBody::Upstream,
        size: None,
        content: None,
        plan: None,
        version: 1,
    }
}

impl Node {
    /// Publishes a server that links to its resources. Two of them are renamed.
    fn publish_linking(&self) {
        let source = SourceId::generate();
        let own = json!({"name": "look", "_meta": {"ui": {"resourceUri": "db://a"}}});
        let look = PublishedTool {
            plan: json!({"upstream": own}),
            ..tool(source, "look", "/", json!({"type": "object"}))
        };
        let mut row = self.row(vec![look]);
        let mut theirs = self.source();
        theirs.kind = SourceKind::Mcp;
        theirs.base_url = format!("http://{}/linking", self.upstream);
        row.sources = [(source, theirs)].into();
        row.resources = vec![
            published(source, "db://a", "crm://first"),
            published(source, "db://b", "db://b"),
            published(source, "db://rows/{id}", "crm://rows/{id}/all"),
            published(source, "db://gone/{id}", "crm://gone/{id}"),
        ];
        self.serve(row, &LimitSet::default());
    }
}

#[tokio::test]
async fn re_12_tl_15_and_ex_4_clients_see_the_uris_they_know_and_the_server_its_own() {
    let node = Node::start().await;
    node.publish_linking();
    let session = node.initialize(R4).await;
    let called = node
        .call(&session, "tools/call", json!({"name": "look"}))
        .await;
    let result = last(&called)["result"].clone();
    let uris: Vec<&Value> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block.get("uri").unwrap_or(&block["resource"]["uri"]))
        .collect();
    assert_eq!(
        uris,
        ["crm://first", "crm://rows/7/all", "db://b"],
        "MCP-TL-15: a link need not be listed"
    );
    assert_eq!(result["_meta"]["ui"]["resourceUri"], "crm://first");
    let listed = node.call(&session, "tools/list", json!({})).await.json();
    assert_eq!(
        listed["result"]["tools"][0]["_meta"]["ui"]["resourceUri"],
        "crm://first"
    );

    for (uri, own) in [
        ("crm://first", "db://a"),
        ("db://b", "db://b"),
        ("crm://rows/7/all", "db://rows/7"),
        ("crm://rows/a%20b/all", "db://rows/a%20b"),
    ] {
        let read = node
            .call(&session, "resources/read", json!({"uri": uri}))
            .await;
        assert_eq!(
            last(&read)["result"]["contents"],
            json!([{"uri": uri, "text": "t"}])
        );
        let asked = heard_of(&node.heard, "resources/read");
        assert_eq!(asked.last().unwrap()["params"]["uri"], own);
    }
    for unknown in ["db://a", "db://rows/7", "crm://rows/7"] {
        let read = node
            .call(&session, "resources/read", json!({"uri": unknown}))
            .await;
        assert_eq!(last(&read)["error"]["code"], -32002, "{unknown}");
    }
    let gone = node
        .call(&session, "resources/read", json!({"uri": "crm://gone/1"}))
        .await;
    assert_eq!(
        last(&gone)["error"]["data"]["uri"],
        "crm://gone/1",
        "MCP-X-66: an error names it, too"
    );
}

#[tokio::test]
async fn ex_4_x_6i_and_ic_1_what_a_server_says_of_a_resource_is_listed_with_it() {
    let node = Node::start().await;
    node.publish_linking();
    for (revision, knows) in [("2025-03-26", false), (R4, true)] {
        let session = node.initialize(revision).await;
        let listed = node
            .call(&session, "resources/list", json!({}))
            .await
            .json();
        let one = &listed["result"]["resources"][0];
        assert_eq!(
            (&one["uri"], &one["mimeType"]),
            (&json!("crm://first"), &json!(APP))
        );
        assert_eq!(one.get("_meta").is_some(), knows, "{revision}");
        if knows {
            assert_eq!(
                one["_meta"],
                json!({"ui": {"csp": {"connectDomains": []}, "resourceUri": "crm://first"}, "a.b/c": 1})
            );
            assert_eq!(
                one["icons"],
                json!([{"src": "https://up.example/i.png"}]),
                "MCP-IC-2"
            );
        }
    }
}
