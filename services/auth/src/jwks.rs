//! The published keys, and the rotation of what signs (`auth.md` J1, J2, J4).

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::{
    KeysError, PublicJwk, digest,
    ring::{KeyTimes, NewKeyPair, SigningKey, plan},
};
use portolan_storage::{Reason, StorageError, SystemTx, signing_keys};

use crate::state::AuthState;

/// `GET /oauth/jwks.json`
pub(crate) async fn jwks(State(state): State<AuthState>, headers: HeaderMap) -> Response {
    let body = match serde_json::to_vec(&state.signing_keys.jwks(state.now())) {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, "JWKS could not be written");
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    };
    let etag = format!(
        "\"{}\"",
        URL_SAFE_NO_PAD.encode(&digest(&body).as_bytes()[..12])
    );
    let known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let unchanged = known
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().trim_start_matches("W/") == etag);
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=300, stale-if-error=86400"),
    );
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Keys could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// From the database.
    #[error("signing keys could not be read or written")]
    Storage(#[from] StorageError),
    /// From the crypto library, or a row sealed under another master secret.
    #[error("signing keys could not be made or opened")]
    Keys(#[from] KeysError),
    /// A row does not hold a key.
    #[error("a stored public key is not readable")]
    Json(#[from] serde_json::Error),
}

/// Makes the keys that are missing, loads what is there, and gives the public halves to this process's verifier.
///
/// To be called at start, before the service is ready, and every hour. Of several nodes one makes the keys: the others wait for
/// its lock and find them.
pub async fn rotate(state: &AuthState) -> Result<(), RotationError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::KeyRotation).await?;
    let mut stored = signing_keys::list(&mut tx, now).await?;
    if !plan(&times(&stored), now).is_empty() {
        signing_keys::lock_rotation(&mut tx).await?;
        // Again under the lock: another node may have been first.
        stored = signing_keys::list(&mut tx, now).await?;
        for times in plan(&times(&stored), now) {
            make(state, &mut tx, times).await?;
        }
        stored = signing_keys::list(&mut tx, now).await?;
    }
    tx.commit().await?;

    let keys = stored
        .iter()
        .map(|row| {
            let public: PublicJwk = serde_json::from_value(row.public_jwk.clone())?;
            Ok(SigningKey::open(
                &state.keys,
                public,
                &row.private_sealed,
                times_of(row),
                now,
            )?)
        })
        .collect::<Result<Vec<_>, RotationError>>()?;
    state.signing_keys.replace(keys);
    state
        .oauth
        .verifier
        .set_keys(&state.signing_keys.jwks(now))?;
    Ok(())
}

async fn make(state: &AuthState, tx: &mut SystemTx, times: KeyTimes) -> Result<(), RotationError> {
    let pair = NewKeyPair::generate()?;
    let row = signing_keys::StoredKey {
        kid: pair.public.kid().to_owned(),
        public_jwk: serde_json::to_value(&pair.public)?,
        private_sealed: pair.sealed_private(&state.keys)?,
        publish_at: times.publish_at,
        sign_from: times.sign_from,
        sign_until: times.sign_until,
        gone_at: times.gone_at,
    };
    signing_keys::insert(tx, &row, state.now()).await?;
    tracing::info!(kid = row.kid, sign_from = %row.sign_from, "signing key made");
    Ok(())
}

fn times(rows: &[signing_keys::StoredKey]) -> Vec<KeyTimes> {
    rows.iter().map(times_of).collect()
}

fn times_of(row: &signing_keys::StoredKey) -> KeyTimes {
    KeyTimes {
        publish_at: row.publish_at,
        sign_from: row.sign_from,
        sign_until: row.sign_until,
        gone_at: row.gone_at,
    }
}
