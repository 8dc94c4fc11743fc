//! Protected resource metadata (RFC 9728; AUTH-E3, MCP-AM-1…MCP-AM-9): one document per path.
//!
//! Each is made from the path alone, so that it does not reveal which tenants exist.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::Method;
use portolan_model::{scope, slug::Slug};
use portolan_net::layers::Arrival;
use serde_json::json;

use crate::{
    error,
    http::state::McpState,
    target::{Target, Transport},
};

/// The path prefix of the documents.
pub(crate) const PREFIX: &str = "/.well-known/oauth-protected-resource";

/// Answers every path below [`PREFIX`].
///
/// The root itself is 404, because its document would name a resource that no client asked for.
pub(crate) async fn document(State(state): State<McpState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return error::only_get();
    }
    let path = parts.uri.path().strip_prefix(PREFIX);
    match path.and_then(|path| describe(state.site().issuer(), path)) {
        Some(body) => {
            let target = path.and_then(Target::parse);
            if let (Some(target), Some(arrival)) = (target, parts.extensions.get::<Arrival>()) {
                let now = state.clock.now();
                state
                    .connection_diagnostics
                    .read_metadata(&target, &parts, arrival, now);
            }
            error::document(body)
        }
        None => error::no_document(),
    }
}

fn describe(issuer: &str, path: &str) -> Option<Vec<u8>> {
    let target = Target::parse(path)?;
    // Users never enter the second address of the two-endpoint transport.
    if target.transport == Transport::Messages {
        return None;
    }
    let well_formed = |slug: &str| slug.parse::<Slug>().is_ok();
    if !target.tenant.is_none_or(well_formed) || !target.server.is_none_or(well_formed) {
        return None;
    }
    let name = match (target.tenant, target.server) {
        (Some(tenant), Some(server)) => format!("MCP server {server} of workspace {tenant}"),
        (Some(tenant), None) => format!("MCP workspace {tenant}"),
        (None, _) => "MCP workspace of your choice".to_owned(),
    };
    let document = json!({
        "resource": format!("{issuer}{path}"),
        "authorization_servers": [issuer],
        "scopes_supported": [scope::MCP],
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    });
    serde_json::to_vec(&document).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e3_the_document_echoes_the_form_of_the_url_that_was_asked() {
        for path in [
            "/t/acme/github/mcp",
            "/t/acme/github/mcp/",
            "/t/acme/mcp",
            "/mcp",
        ] {
            let body = describe("https://mcp.example.com", path).unwrap();
            let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                document["resource"],
                format!("https://mcp.example.com{path}")
            );
            assert_eq!(
                document["authorization_servers"],
                json!(["https://mcp.example.com"]),
                "AUTH-E1: byte for byte"
            );
            assert_eq!(document["scopes_supported"], json!(["mcp"]), "MCP-AM-7");
        }
    }

    #[test]
    fn am_9_what_is_no_server_url_has_no_document() {
        for path in [
            "",
            "/",
            "/messages",
            "/t/acme",
            "/t/ACME/github/mcp",
            "/t/acme/github/mcp/more",
            "/t/admin/github/mcp",
        ] {
            assert!(
                describe("https://mcp.example.com", path).is_none(),
                "{path}"
            );
        }
    }
}
