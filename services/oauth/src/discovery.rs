//! Authorization server metadata (RFC 8414; AUTH-E1, AUTH-E2, AUTH-5.3). It lists only what this
//! service supports.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use portolan_keys::assertion::ALGORITHMS;
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::platform::connect_events::Step;
use serde::Serialize;

use crate::{
    connection_diagnostics::{self, DescribeStep},
    token::exchange,
};

/// The document. Members that do not apply are left out, because clients with strict schemas refuse
/// `null`.
#[derive(Debug, Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    registration_endpoint: Option<String>,
    revocation_endpoint: String,
    introspection_endpoint: String,
    jwks_uri: String,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 4],
    code_challenge_methods_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 4],
    token_endpoint_auth_signing_alg_values_supported: [&'static str; 4],
    revocation_endpoint_auth_methods_supported: [&'static str; 4],
    revocation_endpoint_auth_signing_alg_values_supported: [&'static str; 4],
    introspection_endpoint_auth_methods_supported: [&'static str; 2],
    introspection_endpoint_auth_signing_alg_values_supported: [&'static str; 4],
    scopes_supported: [&'static str; 2],
    authorization_response_iss_parameter_supported: bool,
    client_id_metadata_document_supported: bool,
}

const AUTH_METHODS: [&str; 4] = [
    "none",
    "client_secret_basic",
    "client_secret_post",
    "private_key_jwt",
];

/// `GET /.well-known/oauth-authorization-server`
pub(crate) async fn metadata(State(state): State<AuthState>, context: RequestContext) -> Response {
    let step = connection_diagnostics::step(&state, &context, Step::ServerMetadata);
    state.oauth.recorder.record(step);
    let at = |path: &str| state.site.url(path);
    let document = Metadata {
        issuer: state.site.issuer(),
        authorization_endpoint: at("/oauth/authorize"),
        token_endpoint: at("/oauth/token"),
        registration_endpoint: state
            .oauth
            .config
            .dynamic_registration
            .then(|| at("/oauth/register")),
        revocation_endpoint: at("/oauth/revoke"),
        introspection_endpoint: at("/oauth/introspect"),
        jwks_uri: at("/oauth/jwks.json"),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            exchange::GRANT_TYPE,
        ],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: AUTH_METHODS,
        token_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
        revocation_endpoint_auth_methods_supported: AUTH_METHODS,
        revocation_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
        introspection_endpoint_auth_methods_supported: ["client_secret_basic", "private_key_jwt"],
        introspection_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
        scopes_supported: ["mcp", "offline_access"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
    };
    let mut response = Json(document).into_response();
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=300"),
    );
    response
}

/// Refuses the document of OpenID providers, because this service is none (AUTH-E2).
pub(crate) async fn no_openid(State(state): State<AuthState>, context: RequestContext) -> Response {
    let step = connection_diagnostics::step(&state, &context, Step::ServerMetadata)
        .refused(Some("E2"), "there is no openid-configuration here");
    state.oauth.recorder.record(step);
    not_found().await
}

/// Answers every other document below `/.well-known` with 404 in JSON, whatever the method, so that
/// clients try the next form. A 200 under a path-suffixed name would carry an issuer that does not
/// match its URL, and strict clients would stop there (AUTH-E2, AUTH-E4).
pub(crate) async fn not_found() -> Response {
    (
        StatusCode::NOT_FOUND,
        Json(serde_json::json!({"error": "not_found"})),
    )
        .into_response()
}
