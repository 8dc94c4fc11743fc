//! Tests of the crate's public interface: rules by id, the official schemas, and laws that hold for
//! all inputs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admission;
mod asking;
mod errors;
mod fields;
mod framing;
mod headers;
mod laws;
mod metadata;
mod schema;
mod shaping;
mod standalone;
mod streams;
mod tasks;
mod translating;
mod translation_laws;
mod visible;

use portolan_protocol::header::Headers;
use portolan_protocol::negotiate::{self, Admitted};
use portolan_protocol::{Body, Identity, Refusal};
use serde_json::{Value, json};

/// Our own name card, with everything that some revision knows.
fn identity() -> Identity {
    let mut card = portolan_protocol::initialize::Implementation::new("portolan", "0.1.0");
    card.title = Some("Portolan".into());
    card.description = Some("Tools of a tenant".into());
    card.website_url = Some("https://example.com/".into());
    card.icons = vec![portolan_protocol::initialize::Icon {
        src: "https://example.com/icon.png".into(),
        mime_type: Some("image/png".into()),
        sizes: vec!["48x48".into()],
        theme: Some("light".into()),
    }];
    Identity::new(&card)
}

fn tree(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

/// Admits `body` with `headers`, as a POST.
fn post(body: &Value, headers: &[(&str, &str)]) -> Result<Admitted, Refusal> {
    let headers = Headers::collect(
        headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes())),
    );
    Body::parse(body.to_string().into()).and_then(|body| negotiate::admit(body, &headers))
}

/// Status, code and id of a refusal.
fn face(result: Result<Admitted, Refusal>) -> (u16, i64, Option<Value>) {
    let refusal = result.expect_err("it must be refused");
    let body = tree(&refusal.body());
    assert_eq!(body["jsonrpc"], "2.0");
    assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    (
        refusal.status,
        body["error"]["code"].as_i64().unwrap(),
        body.get("id").cloned(),
    )
}

/// A sound modern request.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}
