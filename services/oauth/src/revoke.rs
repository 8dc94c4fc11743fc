//! `POST /oauth/revoke` (RFC 7009; AUTH-R1 to AUTH-R4). It answers 200 after the commit for
//! everything except the client's own faults.

use axum::{
    body::Bytes,
    extract::{RawQuery, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_cluster::revocations::Revocation;
use portolan_keys::{AccessClaims, SecretToken, TokenForm};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::{GrantId, TenantId},
};
use portolan_site::{request_context::RequestContext, revocation, state::AuthState};
use portolan_storage::{
    Reason,
    oauth::{
        api_keys,
        clients::Client,
        grants, refresh_tokens,
        revocations::{self, RevocationKind},
    },
    platform::audit,
};
use serde_json::json;
use time::Duration;

use crate::{clients, error::OAuthError, token::form};

/// The handler.
pub(crate) async fn revoke(
    State(state): State<AuthState>,
    context: RequestContext,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, OAuthError> {
    let form = form::read_form(query.as_deref(), &headers, body)?;
    let presented = form
        .first("token")
        .ok_or(OAuthError::invalid_request("token is missing"));
    // A presented API key may be revoked without a client: the finder of a leaked key has none
    // (AUTH-C17).
    if let Ok(token) = presented
        && let Some(key) = SecretToken::parse(TokenForm::ApiKey, token)
    {
        revoke_api_key(&state, &context, &key).await?;
        return Ok(done());
    }
    let client = clients::authenticate(&state, &context, &headers, &form).await?;
    let presented = presented?;
    // `token_type_hint` only orders a search (R3). Our tokens show their type, so no search is
    // needed.
    if let Some(refresh) = SecretToken::parse(TokenForm::Refresh, presented) {
        revoke_grant(&state, &context, &client, &refresh).await?;
    } else if let Ok(claims) = state.oauth.verifier.verify(presented, state.now()) {
        revoke_access_token(&state, &context, &client, &claims).await?;
    }
    Ok(done())
}

fn done() -> Response {
    (
        StatusCode::OK,
        [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))],
    )
        .into_response()
}

/// Revokes an API key, once. The response for an unknown key is the same.
async fn revoke_api_key(
    state: &AuthState,
    context: &RequestContext,
    key: &SecretToken,
) -> Result<(), OAuthError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    let Some(revoked) = api_keys::revoke_presented(&mut tx, &key.digest(), now).await? else {
        return Ok(());
    };
    let event = Event {
        tenant: Some(revoked.tenant),
        actor: Actor::Anonymous,
        action: "api_key.revoked",
        target_kind: "api_key",
        target_id: revoked.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({"by": "whoever holds it"}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    revocation::notify_key_ended(state, revoked.id);
    Ok(())
}

/// Revokes the whole grant of a refresh token (R4).
async fn revoke_grant(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    token: &SecretToken,
) -> Result<(), OAuthError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    let Some(id) = refresh_tokens::grant_of(&mut tx, &token.digest()).await? else {
        return Ok(());
    };
    let Some(grant) = grants::find(&mut tx, id).await? else {
        return Ok(());
    };
    let own = grant.client == client.id;
    let revoked = own && grants::revoke(&mut tx, id, "revoked_by_client", now).await?;
    if revoked || !own {
        audit::record(
            &mut tx,
            &event(grant.tenant, client, id, own),
            &context.origin(),
            now,
        )
        .await?;
    }
    tx.commit().await?;
    if revoked {
        state
            .oauth
            .revocations
            .insert(Revocation::Grant(id), now + grants::REVOCATION_MEMORY);
    }
    Ok(())
}

/// Revokes one access token (R4).
async fn revoke_access_token(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    claims: &AccessClaims,
) -> Result<(), OAuthError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    let own = claims.client_id == client.client_id;
    let expires_at = now
        + Duration::seconds(claims.exp - now.unix_timestamp()).max(Duration::ZERO)
        + Duration::minutes(5);
    if own {
        let jti = claims.jti.to_string();
        let new = revocations::New {
            kind: RevocationKind::Jti,
            reference: &jti,
            tenant: Some(claims.tid),
            epoch: None,
            expires_at,
        };
        revocations::insert(&mut tx, &new).await?;
    } else {
        audit::record(
            &mut tx,
            &event(claims.tid, client, claims.gid, false),
            &context.origin(),
            now,
        )
        .await?;
    }
    tx.commit().await?;
    if own {
        state
            .oauth
            .revocations
            .insert(Revocation::Token(claims.jti), expires_at);
    }
    Ok(())
}

fn event(tenant: TenantId, client: &Client, grant: GrantId, own: bool) -> Event {
    Event {
        tenant: Some(tenant),
        actor: Actor::Anonymous,
        action: if own {
            "grant.revoked"
        } else {
            "grant.revocation_refused"
        },
        target_kind: "grant",
        target_id: grant.to_string(),
        outcome: if own { Outcome::Ok } else { Outcome::Refused },
        detail: json!({"client_id": client.client_id}),
    }
}
