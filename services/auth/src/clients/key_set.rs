//! Public keys at a client's `jwks_uri` (`auth.md` C2, C3, C13). The address is a stranger's: the same guards as for metadata
//! documents hold. What was read is kept for all nodes, so that neither a busy client nor a flood of unknown key ids asks often.

use std::time::Duration as StdDuration;

use http::{HeaderValue, StatusCode, header};
use portolan_keys::ClientKeys;
use portolan_net::egress::EgressRequest;
use portolan_storage::{
    Reason,
    client_proofs::{self, KeySet},
    clients::Client,
};
use serde_json::Value;
use time::Duration;

use super::{metadata_document, strict_json};
use crate::{error::OAuthError, state::AuthState};

/// Largest key set.
const MAX_BYTES: usize = 64 * 1024;
/// Whole fetch (C2).
const TIMEOUT: StdDuration = StdDuration::from_secs(5);
/// So long what was read is used without asking.
const FRESH: Duration = Duration::minutes(10);
/// So long it is used when asking fails (C4).
const STALE: Duration = Duration::DAY;
/// Between two fetches that unknown key ids force (case 72).
const PAUSE: Duration = Duration::MINUTE;

const NOT_THERE: OAuthError =
    OAuthError::invalid_client("the keys at the jwks_uri of this client could not be read");

/// The client's keys: as kept, or read anew when they are old.
pub(super) async fn present(
    state: &AuthState,
    client: &Client,
    uri: &str,
) -> Result<ClientKeys, OAuthError> {
    if let Some(kept) = kept(state, client).await?
        && state.now() < kept.fetched_at + FRESH
    {
        return read(&kept.jwks);
    }
    // Of many requests at once one asks; the others find what it kept.
    let flight = state.oauth.fetches.flight(uri);
    let _turn = flight.lock().await;
    let known = kept(state, client).await?;
    if let Some(kept) = &known
        && state.now() < kept.fetched_at + FRESH
    {
        return read(&kept.jwks);
    }
    match fetch(state, client, uri).await {
        Ok(keys) => Ok(keys),
        Err(refusal) => match known {
            Some(kept) if state.now() < kept.fetched_at + STALE => read(&kept.jwks),
            _ => Err(refusal),
        },
    }
}

/// The client's keys read anew because one is missing; `None` if they were asked for less than a minute ago, on any node.
pub(super) async fn newer(
    state: &AuthState,
    client: &Client,
    uri: &str,
) -> Result<Option<ClientKeys>, OAuthError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    let may_ask = client_proofs::may_ask(&mut tx, client.id, PAUSE, state.now()).await?;
    tx.commit().await?;
    if !may_ask {
        return Ok(None);
    }
    fetch(state, client, uri).await.map(Some)
}

async fn kept(state: &AuthState, client: &Client) -> Result<Option<KeySet>, OAuthError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    Ok(client_proofs::key_set(&mut tx, client.id).await?)
}

fn read(jwks: &Value) -> Result<ClientKeys, OAuthError> {
    ClientKeys::read(jwks).map_err(|_| NOT_THERE)
}

async fn fetch(state: &AuthState, client: &Client, uri: &str) -> Result<ClientKeys, OAuthError> {
    let now = state.now();
    let failed = |why: &dyn std::error::Error| {
        tracing::warn!(client.id = %client.id, error = %crate::error::chain(why), "keys of a client not loaded");
        NOT_THERE
    };
    if let Err(wait) = state.oauth.key_fetches.take(&client.id.to_string(), now) {
        return Err(OAuthError::TooMany {
            retry_after: wait.whole_seconds() + 1,
        });
    }
    let url = metadata_document::check_url(uri).map_err(|fault| failed(&fault))?;
    let host = state.oauth.fetches.host(url.host_str().unwrap_or_default());
    let _permit = host
        .try_acquire()
        .map_err(|_| OAuthError::TooMany { retry_after: 2 })?;
    let mut request = EgressRequest::get(url);
    request.timeout = TIMEOUT;
    request.max_response_bytes = MAX_BYTES;
    request.headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/jwk-set+json, application/json"),
    );
    let answer = state
        .egress
        .send(request)
        .await
        .map_err(|error| failed(&error))?;
    if answer.status != StatusCode::OK
        || !metadata_document::is_json(&answer.headers)
        || answer.headers.contains_key(header::CONTENT_ENCODING)
    {
        tracing::warn!(client.id = %client.id, status = answer.status.as_u16(), "keys of a client not loaded");
        return Err(NOT_THERE);
    }
    let jwks = strict_json::object(&answer.body)
        .map(Value::Object)
        .ok_or(NOT_THERE)?;
    let keys = ClientKeys::read(&jwks).map_err(|error| failed(&error))?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    client_proofs::keep_key_set(&mut tx, client.id, &jwks, now).await?;
    tx.commit().await?;
    Ok(keys)
}
