//! `POST /oauth/introspect` (RFC 7662; AUTH-R8): a workspace's own service accounts may check
//! whether a token of that workspace is valid. Portolan's nodes do not use it, because they verify
//! tokens themselves (AUTH-4.2). An invalid token is `{"active": false}` and nothing else, whatever
//! the reason.

use axum::{
    Json,
    body::Bytes,
    extract::{RawQuery, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};
use portolan_keys::AccessClaims;
use portolan_model::{client::ClientKind, id::ServiceAccountId, subject::Subject};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, SystemTx,
    oauth::{
        clients as stored, grants,
        revocations::{self, RevocationKind},
        service_accounts::{self, ServiceAccountStatus},
    },
};
use serde::Serialize;
use serde_json::json;

use crate::{clients, error::OAuthError, token::form};

/// A valid token (RFC 7662 §2.2). It contains nothing about the person but the id.
#[derive(Serialize)]
struct Active<'a> {
    active: bool,
    token_type: &'static str,
    scope: &'a str,
    client_id: &'a str,
    sub: Subject,
    aud: &'a str,
    iss: &'a str,
    jti: String,
    iat: i64,
    exp: i64,
}

/// The handler.
pub(crate) async fn introspect(
    State(state): State<AuthState>,
    context: RequestContext,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, OAuthError> {
    let form = form::read_form(query.as_deref(), &headers, body)?;
    let asker = asker(&state, &context, &headers, &form).await?;
    let presented = form
        .first("token")
        .ok_or(OAuthError::invalid_request("token is missing"))?;
    let mut response = match good(&state, &asker, presented).await? {
        Some(claims) => Json(Active {
            active: true,
            token_type: "Bearer",
            scope: &claims.scope,
            client_id: &claims.client_id,
            sub: claims.sub,
            aud: &claims.aud,
            iss: &claims.iss,
            jti: claims.jti.to_string(),
            iat: claims.iat,
            exp: claims.exp,
        })
        .into_response(),
        None => Json(json!({"active": false})).into_response(),
    };
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Authenticates the caller, which must be an enabled service account. Every other caller gets 401
/// (CASE-142).
async fn asker(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &crate::parameters::Parameters,
) -> Result<ServiceAccountStatus, OAuthError> {
    let refused = || clients::refused(headers, "only service accounts may ask about tokens");
    let client = clients::authenticate(state, context, headers, form).await?;
    if client.kind != ClientKind::Service {
        return Err(refused());
    }
    let mut tx = state.store.system(Reason::OAuth).await?;
    service_accounts::standing(&mut tx, client.id)
        .await?
        .filter(|standing| standing.is_active)
        .ok_or_else(refused)
}

/// The claims of a valid token that the caller may see: of its tenant, and for its server if it may
/// use one only.
async fn good(
    state: &AuthState,
    asker: &ServiceAccountStatus,
    presented: &str,
) -> Result<Option<AccessClaims>, OAuthError> {
    let now = state.now();
    let Ok(claims) = state.oauth.verifier.verify(presented, now) else {
        return Ok(None);
    };
    let is_theirs = claims.tid == asker.tenant
        && asker
            .resource
            .as_ref()
            .is_none_or(|resource| *resource == claims.aud);
    // Clock leeway is for nodes; here the time is the issuer's own.
    if !is_theirs || claims.exp <= now.unix_timestamp() {
        return Ok(None);
    }
    let mut tx = state.store.system(Reason::OAuth).await?;
    let ended = [
        (RevocationKind::Jti, claims.jti.to_string()),
        (RevocationKind::Grant, claims.gid.to_string()),
        (RevocationKind::Client, claims.client_id.clone()),
    ];
    if revocations::names_any(&mut tx, &ended, now).await?
        || !has_present_epochs(&mut tx, &claims).await?
    {
        return Ok(None);
    }
    Ok(Some(claims))
}

/// Returns true if the token's subject may still act, and no epoch has changed since the token was
/// issued (AUTH-4.2).
async fn has_present_epochs(tx: &mut SystemTx, claims: &AccessClaims) -> Result<bool, OAuthError> {
    Ok(match claims.sub {
        Subject::User(user) => {
            grants::standing(tx, claims.tid, user)
                .await?
                .is_some_and(|standing| {
                    standing.is_active
                        && standing.user_epoch <= claims.ep.user
                        && standing.tenant_epoch <= claims.ep.tenant
                        && standing.member_epoch <= claims.ep.member
                })
        }
        Subject::Service(account) => standing_of(tx, account).await?.is_some_and(|standing| {
            standing.is_active
                && standing.epoch <= claims.ep.user
                && standing.tenant_epoch <= claims.ep.tenant
        }),
    })
}

async fn standing_of(
    tx: &mut SystemTx,
    account: ServiceAccountId,
) -> Result<Option<ServiceAccountStatus>, OAuthError> {
    match stored::find(tx, &account.to_string()).await? {
        Some(client) => Ok(service_accounts::standing(tx, client.id).await?),
        None => Ok(None),
    }
}
