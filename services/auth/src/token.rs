//! `POST /oauth/token` (RFC 6749 §3.2; AUTH-1.3).

mod code;
mod issue;
mod refresh;
pub(crate) mod service;
mod trail;

use axum::{
    Json,
    body::Bytes,
    extract::{RawQuery, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};
use portolan_keys::Secret;
use serde::Serialize;

use crate::{
    clients,
    error::{ErrorCode, OAuthError},
    parameters::{self, Parameters},
    request_context::RequestContext,
    state::AuthState,
};

use self::trail::Trail;

/// A successful response (AUTH-T9). It has no nulls and nothing about the person.
struct Tokens {
    access: Secret<String>,
    expires_in: i64,
    scope: String,
    refresh: Option<Secret<String>>,
}

#[derive(Serialize)]
struct Body<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
}

impl IntoResponse for Tokens {
    fn into_response(self) -> Response {
        let body = Body {
            access_token: self.access.expose(),
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

/// The handler.
pub(crate) async fn token(
    State(state): State<AuthState>,
    context: RequestContext,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, OAuthError> {
    let mut trail = Trail::default();
    let answer = grant(
        &state,
        &context,
        query.as_deref(),
        &headers,
        body,
        &mut trail,
    )
    .await;
    trail.record(&state, &context, answer.as_ref().err()).await;
    let (grant_type, outcome) = match &answer {
        Ok((grant_type, _)) => (*grant_type, "ok"),
        Err(error) => ("", error.outcome()),
    };
    metrics::counter!("oauth_token_total", "grant" => grant_type, "outcome" => outcome)
        .increment(1);
    if let Err(error) = &answer {
        tracing::info!(%error, request_id = context.request_id, "token request refused");
    }
    answer.map(|(_, tokens)| tokens.into_response())
}

async fn grant(
    state: &AuthState,
    context: &RequestContext,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    trail: &mut Trail,
) -> Result<(&'static str, Tokens), OAuthError> {
    let form = read_form(query, headers, body)?;
    trail.read(state, headers, &form);
    match form.first("grant_type") {
        None => Err(OAuthError::invalid_request("grant_type is missing")),
        Some("authorization_code") => {
            let client = clients::authenticate(state, context, headers, &form).await?;
            trail.client_name = Some(client.name.clone());
            Ok((
                "authorization_code",
                code::redeem(state, context, &client, &form, trail).await?,
            ))
        }
        Some("refresh_token") => {
            if let Some(tokens) = refresh::at_once(state, context, headers, &form, trail).await? {
                return Ok(("refresh_token", tokens));
            }
            // The client comes first: one that is deleted has to register again, whatever its token
            // looks like (AUTH-C12). Then comes the token's form, so that malformed tokens need no
            // query (AUTH-K6).
            let (client, tx) = clients::authenticate_in(state, context, headers, &form).await?;
            trail.client_name = Some(client.name.clone());
            let presented = refresh::read(&form)?;
            Ok((
                "refresh_token",
                refresh::refresh(state, context, tx, &client, &form, &presented, trail).await?,
            ))
        }
        Some("client_credentials") => Ok((
            "client_credentials",
            service::grant(state, context, headers, &form).await?,
        )),
        Some(_) => Err(OAuthError::refused(
            ErrorCode::UnsupportedGrantType,
            "use authorization_code, refresh_token or client_credentials",
        )),
    }
}

/// Parameters that must come in the body, because proxies log query strings (CASE-56).
const BODY_ONLY: [&str; 10] = [
    "grant_type",
    "code",
    "code_verifier",
    "client_id",
    "client_secret",
    "client_assertion",
    "refresh_token",
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
fn read_resource(
    state: &AuthState,
    form: &Parameters,
) -> Result<Option<portolan_model::resource::Resource>, OAuthError> {
    use portolan_model::resource::Asked;
    let refused = |description| OAuthError::refused(ErrorCode::InvalidTarget, description);
    let mut asked = form.all("resource");
    match (asked.next(), asked.next()) {
        (_, Some(_)) => Err(refused("one resource at a time")),
        (None, None) => Ok(None),
        (Some(text), None) => match state.oauth.resources.read(text) {
            Ok(Asked::Named(resource)) => Ok(Some(resource)),
            Ok(Asked::Origin) => Ok(None),
            Err(_) => Err(refused("resource is not an MCP server here")),
        },
    }
}
