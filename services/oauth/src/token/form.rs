//! Form and answer of the token endpoint. Revocation and introspection read the same form.

use axum::{
    Json,
    body::Bytes,
    extract::rejection::BytesRejection,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};
use portolan_keys::Secret;
use portolan_site::state::AuthState;
use serde::Serialize;

use crate::{
    error::{ErrorCode, OAuthError},
    parameters::{self, Parameters},
};

/// A successful response (AUTH-T9). It has no nulls and nothing about the person.
pub(crate) struct Tokens {
    pub(crate) access: Secret<String>,
    /// Of a token exchange alone (RFC 8693 §2.2.1).
    pub(crate) issued_token_type: Option<&'static str>,
    pub(crate) expires_in: i64,
    pub(crate) scope: String,
    pub(crate) refresh: Option<Secret<String>>,
}

#[derive(Serialize)]
pub(crate) struct TokenRequestBody<'a> {
    access_token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_token_type: Option<&'static str>,
    token_type: &'static str,
    expires_in: i64,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
}

impl IntoResponse for Tokens {
    fn into_response(self) -> Response {
        let body = TokenRequestBody {
            access_token: self.access.expose(),
            issued_token_type: self.issued_token_type,
            token_type: "Bearer",
            expires_in: self.expires_in,
            scope: &self.scope,
            refresh_token: self.refresh.as_ref().map(|token| token.expose().as_str()),
        };
        let mut response = Json(body).into_response();
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
            .headers_mut()
            .insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        response
    }
}

/// Parameters that must come in the body, because proxies log query strings (CASE-56).
pub(crate) const BODY_ONLY: [&str; 11] = [
    "grant_type",
    "code",
    "code_verifier",
    "client_id",
    "client_secret",
    "client_assertion",
    "refresh_token",
    "subject_token",
    "redirect_uri",
    "resource",
    "token",
];

/// Reads the form and applies AUTH-T8, for this endpoint and revocation.
pub(crate) fn read_form(
    query: Option<&str>,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Parameters, OAuthError> {
    let body = body.map_err(|rejection| match rejection.into_response().status() {
        http::StatusCode::PAYLOAD_TOO_LARGE => OAuthError::TooLarge,
        _ => OAuthError::invalid_request("the body could not be read"),
    })?;
    if let Some(query) = query {
        let query = Parameters::parse(query.as_bytes());
        if BODY_ONLY.iter().any(|name| query.first(name).is_some()) {
            return Err(OAuthError::invalid_request(
                "send parameters in the body, not in the query",
            ));
        }
    }
    if !parameters::is_form(headers) {
        return Err(OAuthError::invalid_request(
            "send the parameters as application/x-www-form-urlencoded",
        ));
    }
    let form = Parameters::parse(&body);
    if form.has_repeated() {
        return Err(OAuthError::invalid_request("a parameter is repeated"));
    }
    Ok(form)
}

/// Reads the one `resource` of a token request in canonical form. Two values, or a foreign one, are
/// `invalid_target`.
pub(crate) fn read_resource(
    state: &AuthState,
    form: &Parameters,
) -> Result<Option<portolan_model::resource::Resource>, OAuthError> {
    use portolan_model::resource::RequestedResource;
    let refused = |description| OAuthError::refused(ErrorCode::InvalidTarget, description);
    let mut asked = form.all("resource");
    match (asked.next(), asked.next()) {
        (_, Some(_)) => Err(refused("one resource at a time")),
        (None, None) => Ok(None),
        (Some(text), None) => match state.oauth.resources.read(text) {
            Ok(RequestedResource::Named(resource)) => Ok(Some(resource)),
            Ok(RequestedResource::Origin) => Ok(None),
            Err(_) => Err(refused("resource is not an MCP server here")),
        },
    }
}
