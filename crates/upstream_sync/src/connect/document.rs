//! Our client metadata document (MCP-AU-6, MCP-AC-12), which other authorization servers read.

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use portolan_model::id::SourceId;
use portolan_site::state::AuthState;
use portolan_upstream::oauth::{AuthMethod, Registration};
use serde_json::json;

use crate::connect::flow::{document_url, redirect_uri};

/// Returns the same document for every source, known or not, so that it does not reveal which
/// exist.
pub(crate) async fn show(State(state): State<AuthState>, Path(source): Path<String>) -> Response {
    let Ok(source) = source.parse::<SourceId>() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let Some(client_id) = document_url(&state.site, source) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let redirect_uri = redirect_uri(&state.site, source);
    let ourselves = Registration {
        client_name: crate::connect::flow::CLIENT_NAME,
        client_uri: state.site.origin(),
        redirect_uri: &redirect_uri,
        scope: None,
    };
    let mut document = ourselves.document(AuthMethod::None);
    document["client_id"] = json!(client_id);
    let headers = [
        (header::CACHE_CONTROL, "public, max-age=3600"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, Json(document)).into_response()
}
