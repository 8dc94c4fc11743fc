//! Public keys at a client's `jwks_uri` (`auth.md` C2, C3, C13). The address is a stranger's: the same guards as for metadata
//! documents hold. What was read is kept for all nodes, so that neither a busy client nor a flood of unknown key ids asks often.

use std::time::Duration as StdDuration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::ClientKeys;
use portolan_net::egress::{EgressError, EgressRequest};
use portolan_storage::{
    Reason, StorageError,
    client_proofs::{self, KeySet},
    clients::Client,
};
use serde_json::Value;
use time::Duration;

use super::{described, metadata_document, strict_json};
use crate::{error::OAuthError, state::AuthState, visitor::Visitor};

/// Largest key set.
const MAX_BYTES: usize = 64 * 1024;
/// Whole fetch (C2).
const TIMEOUT: StdDuration = StdDuration::from_secs(5);
/// So long what was read is used without asking.
const FRESH: Duration = Duration::minutes(10);
/// So long it is used while nobody can be asked (C4).
const STALE: Duration = Duration::DAY;
/// Between two fetches that unknown key ids force (case 72).
const PAUSE: Duration = Duration::MINUTE;
/// Seconds to wait while the address does not answer.
const AGAIN: i64 = 10;

/// Why a fetch found no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// Nobody could be asked: what was read before is as good as it was.
    Away {
        /// Seconds to wait.
        retry_after: i64,
    },
    /// The address answered, and has no keys: what it had is not good any more.
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

/// The client's keys: as kept, or read anew when they are old.
pub(super) async fn present(
    state: &AuthState,
    visitor: &Visitor,
    client: &Client,
    uri: &str,
) -> Result<ClientKeys, OAuthError> {
    if let Some(kept) = kept(state, client, uri).await?
        && state.now() < kept.fetched_at + FRESH
    {
        return read(&kept.jwks);
    }
    // Of many requests at once one asks; the others find what it kept.
    let flight = state.oauth.fetches.flight(uri);
    let _turn = flight.lock().await;
    let known = kept(state, client, uri).await?;
    if let Some(kept) = &known
        && state.now() < kept.fetched_at + FRESH
    {
        return read(&kept.jwks);
    }
    match (fetch(state, visitor, client, uri).await?, known) {
        (Ok(keys), _) => Ok(keys),
        (Err(Lost::Away { .. }), Some(kept)) if state.now() < kept.fetched_at + STALE => {
            read(&kept.jwks)
        }
        (Err(lost), _) => Err(lost.into()),
    }
}

/// The client's keys read anew because one is missing; `None` if they were asked for less than a minute ago, on any node.
pub(super) async fn newer(
    state: &AuthState,
    visitor: &Visitor,
    client: &Client,
    uri: &str,
) -> Result<Option<ClientKeys>, OAuthError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    let may_ask = client_proofs::may_ask(&mut tx, client.id, uri, PAUSE, state.now()).await?;
    tx.commit().await?;
    if !may_ask {
        return Ok(None);
    }
    Ok(Some(fetch(state, visitor, client, uri).await??))
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

/// Asks, and keeps what is there; what is gone is forgotten, so that it does not come back when next nobody can be asked.
async fn fetch(
    state: &AuthState,
    visitor: &Visitor,
    client: &Client,
    uri: &str,
) -> Result<Result<ClientKeys, Lost>, StorageError> {
    // Boxed: it is rare, and larger than all the rest.
    let asked = Box::pin(ask(state, visitor, client, uri)).await;
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
    visitor: &Visitor,
    client: &Client,
    uri: &str,
) -> Result<(Value, ClientKeys), Lost> {
    let failed = |why: &dyn std::error::Error| {
        tracing::warn!(client.id = %client.id, error = %crate::error::chain(why), "keys of a client not loaded");
    };
    let later = |wait: Duration| Lost::Away {
        retry_after: wait.whole_seconds() + 1,
    };
    metadata_document::take_fetch(state, visitor).map_err(later)?;
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
            // Asking again would not help.
            EgressError::TooLarge { .. } | EgressError::BlockedUrl { .. } => Lost::Gone,
            _ => Lost::Away { retry_after: AGAIN },
        }
    })?;
    keys_in(answer.status, &answer.headers, &answer.body).inspect_err(|_| {
        tracing::warn!(client.id = %client.id, status = answer.status.as_u16(), "keys of a client not loaded");
    })
}

/// The keys in an answer. A host in trouble, or one that wants to be asked less often, says nothing about the keys.
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
