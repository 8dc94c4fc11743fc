//! `POST /oauth/token` (RFC 6749 §3.2; AUTH-1.3).

pub(crate) mod api_access;
pub(crate) mod code;
pub(crate) mod exchange;
pub(crate) mod form;
pub(crate) mod issue;
pub(crate) mod refresh;
pub(crate) mod service;
pub(crate) mod trail;
pub(crate) mod workspace_token;

use axum::{
    body::Bytes,
    extract::{RawQuery, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::HeaderMap;
use portolan_site::{request_context::RequestContext, state::AuthState};

use crate::{
    clients,
    error::{ErrorCode, OAuthError},
    token::{
        form::{Tokens, read_form},
        trail::Trail,
    },
};

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
        // Boxed, as the exchange is, because they are rare and larger than the rest of the future.
        Some("client_credentials") if workspace_token::is_wanted(state, &form) => Ok((
            "client_credentials",
            Box::pin(api_access::grant(state, context, headers, &form)).await?,
        )),
        Some("client_credentials") => Ok((
            "client_credentials",
            service::grant(state, context, headers, &form).await?,
        )),
        Some(exchange::GRANT_TYPE) => Ok((
            "token_exchange",
            Box::pin(exchange::exchange(state, context, &form)).await?,
        )),
        Some(_) => Err(OAuthError::refused(
            ErrorCode::UnsupportedGrantType,
            "use authorization_code, refresh_token, client_credentials or urn:ietf:params:oauth:grant-type:token-exchange",
        )),
    }
}
