//! Public keys at a client's `jwks_uri` (AUTH-C2, AUTH-C3, AUTH-C13). A stranger controls the
//! address, so the guards of metadata documents apply. The database keeps each key set for all
//! nodes, so that neither a busy client nor a flood of unknown key ids causes many fetches.

use std::time::Duration as StdDuration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::ClientKeys;
use portolan_net::egress::{EgressError, EgressRequest};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, StorageError,
    oauth::{
        client_proofs::{self, KeySet},
        clients::Client,
    },
};
use serde_json::Value;
use time::Duration;

use crate::{
    clients::{described, metadata_document, strict_json},
    error::OAuthError,
};

/// Largest key set.
const MAX_BYTES: usize = 64 * 1024;

/// Deadline of a whole fetch (AUTH-C2).
const TIMEOUT: StdDuration = StdDuration::from_secs(5);

/// How long a stored key set is used without a fetch.
const FRESH: Duration = Duration::minutes(10);

/// How long a stored key set is used while its address cannot be reached (AUTH-C4).
const STALE: Duration = Duration::DAY;

/// Least time between two fetches that unknown key ids force (CASE-72).
const PAUSE: Duration = Duration::MINUTE;

/// Seconds after which a client may retry while the address does not answer.
const AGAIN: i64 = 10;

/// Why a fetch found no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The address could not be reached: the stored keys stay valid.
    Away {
        /// Seconds to wait.
        retry_after: i64,
    },
    /// The address answered without keys: the stored keys are not valid any more.
    Gone,
}

impl From<Lost> for OAuthError {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Away { retry_after } => Self::Away { retry_after },
            Lost::Gone => {
                Self::invalid_client("the keys at the jwks_uri of this client could not be read")
            }
        }
    }
}

/// The client's keys: as stored, or fetched again when they are old.
pub(crate) async fn present(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    uri: &str,
) -> Result<ClientKeys, OAuthError> {
    if let Some(kept) = kept(state, client, uri).await?
        && state.now() < kept.fetched_at + FRESH
    {
        return read(&kept.jwks);
    }
    // One of many concurrent requests fetches; the others find the keys that it stored.
    let flight = state.oauth.fetches.flight(uri);
    let _turn = flight.lock().await;
    let known = kept(state, client, uri).await?;
    if let Some(kept) = &known
        && state.now() < kept.fetched_at + FRESH
    {
        return read(&kept.jwks);
    }
    match (fetch(state, context, client, uri).await?, known) {
        (Ok(keys), _) => Ok(keys),
        (Err(Lost::Away { .. }), Some(kept)) if state.now() < kept.fetched_at + STALE => {
            read(&kept.jwks)
        }
        (Err(lost), _) => Err(lost.into()),
    }
}

/// Fetches the client's keys again because one is missing. `None` if any node did so less than a
/// minute ago.
pub(crate) async fn newer(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    uri: &str,
) -> Result<Option<ClientKeys>, OAuthError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    let may_ask = client_proofs::may_ask(&mut tx, client.id, uri, PAUSE, state.now()).await?;
    tx.commit().await?;
    if !may_ask {
        return Ok(None);
    }
    Ok(Some(fetch(state, context, client, uri).await??))
}

async fn kept(
    state: &AuthState,
    client: &Client,
    uri: &str,
) -> Result<Option<KeySet>, StorageError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    client_proofs::key_set(&mut tx, client.id, uri).await
}

fn read(jwks: &Value) -> Result<ClientKeys, OAuthError> {
    ClientKeys::read(jwks).map_err(|_| Lost::Gone.into())
}

/// Fetches the keys and stores them. Removed keys are deleted, so that they do not return when the
/// address cannot be reached.
async fn fetch(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    uri: &str,
) -> Result<Result<ClientKeys, Lost>, StorageError> {
    // Boxed, because it is rare and larger than the rest of the future.
    let asked = Box::pin(ask(state, context, client, uri)).await;
    match &asked {
        Ok((jwks, _)) => {
            let mut tx = state.store.system(Reason::OAuth).await?;
            client_proofs::keep_key_set(&mut tx, client.id, uri, jwks, state.now()).await?;
            tx.commit().await?;
        }
        Err(Lost::Gone) => {
            let mut tx = state.store.system(Reason::OAuth).await?;
            client_proofs::forget_key_set(&mut tx, client.id).await?;
            tx.commit().await?;
        }
        Err(Lost::Away { .. }) => {}
    }
    Ok(asked.map(|(_, keys)| keys))
}

async fn ask(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    uri: &str,
) -> Result<(Value, ClientKeys), Lost> {
    let failed = |why: &dyn std::error::Error| {
        tracing::warn!(client.id = %client.id, error = %portolan_site::error_chain::chain(why), "keys of a client not loaded");
    };
    let later = |wait: Duration| Lost::Away {
        retry_after: wait.whole_seconds() + 1,
    };
    metadata_document::take_fetch(state, context).map_err(later)?;
    state
        .oauth
        .key_fetches
        .take(&client.id.to_string(), state.now())
        .map_err(later)?;
    let url = described::check_url(uri).map_err(|fault| {
        failed(&fault);
        Lost::Gone
    })?;
    let host = state.oauth.fetches.host(url.host_str().unwrap_or_default());
    let _permit = host
        .try_acquire()
        .map_err(|_| Lost::Away { retry_after: 2 })?;
    let mut request = EgressRequest::get(url);
    request.timeout = TIMEOUT;
    request.max_response_bytes = MAX_BYTES;
    request.headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/jwk-set+json, application/json"),
    );
    let answer = state.egress.send(request).await.map_err(|error| {
        failed(&error);
        match error {
            // A retry would not help.
            EgressError::TooLarge { .. } | EgressError::BlockedUrl { .. } => Lost::Gone,
            _ => Lost::Away { retry_after: AGAIN },
        }
    })?;
    keys_in(answer.status, &answer.headers, &answer.body).inspect_err(|_| {
        tracing::warn!(client.id = %client.id, status = answer.status.as_u16(), "keys of a client not loaded");
    })
}

/// Reads the keys in an answer. A server error or a rate limit says nothing about the keys.
fn keys_in(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(Value, ClientKeys), Lost> {
    if status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
    {
        return Err(Lost::Away { retry_after: AGAIN });
    }
    if status != StatusCode::OK
        || !metadata_document::is_json(headers)
        || headers.contains_key(header::CONTENT_ENCODING)
    {
        return Err(Lost::Gone);
    }
    let jwks = Value::Object(strict_json::object(body).ok_or(Lost::Gone)?);
    let keys = ClientKeys::read(&jwks).map_err(|_| Lost::Gone)?;
    Ok((jwks, keys))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t10_a_host_in_trouble_is_away_and_one_without_keys_has_none() {
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let good = json!({ "keys": [key] }).to_string();
        let read = |status, content_type: &'static str, body: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            keys_in(status, &headers, body.as_bytes()).map(|_| ())
        };
        let plain = "application/json";
        assert_eq!(
            read(StatusCode::OK, "application/jwk-set+json", &good),
            Ok(())
        );
        for away in [500, 502, 503, 429, 408] {
            let status = StatusCode::from_u16(away).unwrap();
            assert!(
                matches!(read(status, plain, &good), Err(Lost::Away { .. })),
                "{away}"
            );
        }
        for gone in [201, 302, 401, 404, 410] {
            let status = StatusCode::from_u16(gone).unwrap();
            assert_eq!(read(status, plain, &good), Err(Lost::Gone), "{gone}");
        }
        for (content_type, body) in [
            ("text/html", good.as_str()),
            (plain, "<html>"),
            (plain, r#"{"keys": []}"#),
            (plain, r#"{"keys": [{"kty": "oct", "k": "AA"}]}"#),
        ] {
            assert_eq!(
                read(StatusCode::OK, content_type, body),
                Err(Lost::Gone),
                "{body}"
            );
        }
    }
}
