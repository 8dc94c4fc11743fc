//! The published keys, and the rotation of the signing key (AUTH-J1, AUTH-J2, AUTH-J4).

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::{
    Keys, KeysError, PublicJwk, digest,
    ring::{
        self, HandOver, KeyState, KeyTimes, NewKeyPair, PublishedKey, RETIRING_FOR, SigningKey,
        plan,
    },
};
use portolan_model::Timestamp;
use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError, SystemTx,
    oauth::{
        grants::REVOCATION_MEMORY,
        revocations::{self, New, RevocationKind},
        signing_keys::{self, StoredKey},
    },
};

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

/// Why keys could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The database failed.
    #[error("signing keys could not be read or written")]
    Storage(#[from] StorageError),
    /// The crypto library failed, or a row is sealed under another master secret.
    #[error("signing keys could not be made or opened")]
    Keys(#[from] KeysError),
    /// A row does not hold a key.
    #[error("a stored public key is not readable")]
    Json(#[from] serde_json::Error),
    /// The key does not exist, or was removed before.
    #[error("there is no such key")]
    Unknown,
    /// There is no standby key. [`rotate`] makes one every hour.
    #[error("no key stands by")]
    NoStandby,
    /// The caller's master secret differs from that of the nodes, so no node could open a key that
    /// is made here.
    #[error("this master secret does not open the signing keys")]
    Foreign,
}

/// Makes missing keys, loads the signing keys, and passes the public halves to this process's
/// verifier.
///
/// Called at start, before the service is ready, and every hour.
pub async fn rotate(state: &AuthState) -> Result<(), RotationError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::KeyRotation).await?;
    let stored = ensure(&mut tx, &state.keys, now).await?;
    tx.commit().await?;
    take(state, &stored, now)
}

/// Reads the keys again and makes none. Called on a notification of changed keys, and every minute,
/// because an operator's command or another node may have changed them.
pub async fn reload(state: &AuthState) -> Result<(), RotationError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::KeyRotation).await?;
    let stored = signing_keys::list(&mut tx, now).await?;
    take(state, &stored, now)
}

/// Signs, publishes and verifies with these keys from now on. A key that does not open signs
/// nothing here, as long as another key does. Otherwise a single row would keep every process from
/// loading the others. The key is published all the same, because nodes accept tokens that another
/// node signed with it (AUTH-J4).
fn take(state: &AuthState, stored: &[StoredKey], now: Timestamp) -> Result<(), RotationError> {
    let published = stored
        .iter()
        .map(|row| {
            Ok(PublishedKey {
                public: serde_json::from_value(row.public_jwk.clone())?,
                times: times_of(row),
            })
        })
        .collect::<Result<Vec<_>, RotationError>>()?;
    let mut keys = Vec::with_capacity(stored.len());
    let mut fault = None;
    for row in stored {
        match open(&state.keys, row, now) {
            Ok(key) => keys.push(key),
            Err(error) => {
                tracing::error!(
                    kid = row.kid,
                    error = &error as &dyn std::error::Error,
                    "a signing key does not open"
                );
                fault = Some(error);
            }
        }
    }
    if let Some(fault) = fault
        && !keys.iter().any(|key| key.state(now) == KeyState::Active)
    {
        return Err(fault);
    }
    state.signing_keys.replace_and_publish(published, keys);
    // Verification needs public keys only, and so does not depend on the private keys that this
    // process can open.
    let jwks = state.signing_keys.jwks(now);
    state.oauth.verifier.set_keys(&jwks)?;
    Ok(())
}

fn open(keys: &Keys, row: &StoredKey, now: Timestamp) -> Result<SigningKey, RotationError> {
    let public: PublicJwk = serde_json::from_value(row.public_jwk.clone())?;
    Ok(SigningKey::open(
        keys,
        public,
        &row.private_sealed,
        times_of(row),
        now,
    )?)
}

/// Makes missing keys. One of several nodes makes them; the others wait for its lock and find them.
async fn ensure(
    tx: &mut SystemTx,
    keys: &Keys,
    now: Timestamp,
) -> Result<Vec<StoredKey>, RotationError> {
    let mut stored = signing_keys::list(tx, now).await?;
    if !plan(&times(&stored), now).is_empty() {
        signing_keys::lock_rotation(tx).await?;
        // Read again under the lock, because another node may have been first.
        stored = signing_keys::list(tx, now).await?;
        for times in plan(&times(&stored), now) {
            make(tx, keys, times, now).await?;
        }
        stored = signing_keys::list(tx, now).await?;
    }
    Ok(stored)
}

/// Makes the standby key the signing key, on an operator's command (AUTH-J2). The change takes
/// effect once the standby has been published for a day, which it usually has. The new signing key
/// gets a standby of its own. Returns the key that takes over.
pub async fn hand_over(
    tx: &mut SystemTx,
    keys: &Keys,
    now: Timestamp,
) -> Result<StoredKey, RotationError> {
    signing_keys::lock_rotation(tx).await?;
    let stored = ensure(tx, keys, now).await?;
    if stored.iter().any(|row| open(keys, row, now).is_err()) {
        return Err(RotationError::Foreign);
    }
    let standby = move_times(tx, stored, now, HandOver::WhenPublished).await?;
    ensure(tx, keys, now).await?;
    Ok(standby)
}

/// Removes a key (AUTH-J3). Nodes refuse the tokens that it signed as soon as they receive the
/// revocation. If no other key signs, the standby does so at once. Refresh tokens are not signed
/// and stay valid. Returns the id of the key that signs now.
///
/// Refused if the caller cannot open any key, or not the one that would sign. Other keys that do
/// not open may be those to remove.
pub async fn remove(
    tx: &mut SystemTx,
    keys: &Keys,
    kid: &str,
    now: Timestamp,
) -> Result<String, RotationError> {
    signing_keys::lock_rotation(tx).await?;
    let before = signing_keys::list(tx, now).await?;
    if !before.is_empty() && !before.iter().any(|row| open(keys, row, now).is_ok()) {
        return Err(RotationError::Foreign);
    }
    if !signing_keys::deny(tx, kid, now).await? {
        return Err(RotationError::Unknown);
    }
    let revocation = New {
        kind: RevocationKind::Kid,
        reference: kid,
        tenant: None,
        epoch: None,
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await?;
    let left = signing_keys::list(tx, now).await?;
    if active(&left, now).is_none() && !left.is_empty() {
        // Without a standby `ensure` makes a key that signs at once.
        match move_times(tx, left, now, HandOver::AtOnce).await {
            Ok(_) | Err(RotationError::NoStandby) => {}
            Err(error) => return Err(error),
        }
    }
    let stored = ensure(tx, keys, now).await?;
    let signs = active(&stored, now).ok_or(RotationError::NoStandby)?;
    open(keys, signs, now).map_err(|_| RotationError::Foreign)?;
    // A standby that was made just now signs in a day. The signing key continues until then, even
    // if its end was near.
    let next = stored
        .iter()
        .filter(|row| times_of(row).state(now) == KeyState::Pending)
        .map(|row| row.sign_from)
        .min();
    if let Some(next) = next.filter(|next| signs.sign_until < *next) {
        let longer = StoredKey {
            sign_until: next,
            gone_at: next + RETIRING_FOR,
            ..signs.clone()
        };
        signing_keys::set_times(tx, &longer).await?;
    }
    Ok(signs.kid.clone())
}

/// The key that signs at `now`.
fn active(stored: &[StoredKey], now: Timestamp) -> Option<&StoredKey> {
    stored
        .iter()
        .filter(|row| times_of(row).state(now) == KeyState::Active)
        .max_by_key(|row| row.sign_from)
}

/// Writes the times that [`ring::hand_over`] returns, and returns the key that takes over.
async fn move_times(
    tx: &mut SystemTx,
    stored: Vec<StoredKey>,
    now: Timestamp,
    when: HandOver,
) -> Result<StoredKey, RotationError> {
    let before = times(&stored);
    let after = ring::hand_over(&before, now, when).ok_or(RotationError::NoStandby)?;
    let mut next = None;
    for ((mut row, before), after) in stored.into_iter().zip(before).zip(after) {
        row.sign_from = after.sign_from;
        row.sign_until = after.sign_until;
        row.gone_at = after.gone_at;
        if before != after {
            signing_keys::set_times(tx, &row).await?;
        }
        if before.state(now) == KeyState::Pending
            && next
                .as_ref()
                .is_none_or(|next: &StoredKey| row.sign_from < next.sign_from)
        {
            next = Some(row);
        }
    }
    next.ok_or(RotationError::NoStandby)
}

async fn make(
    tx: &mut SystemTx,
    keys: &Keys,
    times: KeyTimes,
    now: Timestamp,
) -> Result<(), RotationError> {
    let pair = NewKeyPair::generate()?;
    let row = StoredKey {
        kid: pair.public.kid().to_owned(),
        public_jwk: serde_json::to_value(&pair.public)?,
        private_sealed: pair.sealed_private(keys)?,
        publish_at: times.publish_at,
        sign_from: times.sign_from,
        sign_until: times.sign_until,
        gone_at: times.gone_at,
    };
    signing_keys::insert(tx, &row, now).await?;
    tracing::info!(kid = row.kid, sign_from = %row.sign_from, "signing key made");
    Ok(())
}

fn times(rows: &[StoredKey]) -> Vec<KeyTimes> {
    rows.iter().map(times_of).collect()
}

fn times_of(row: &StoredKey) -> KeyTimes {
    KeyTimes {
        publish_at: row.publish_at,
        sign_from: row.sign_from,
        sign_until: row.sign_until,
        gone_at: row.gone_at,
    }
}
