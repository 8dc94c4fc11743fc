//! Sealed values: tokens together with the client that they belong to, and a source's client.

use portolan_keys::{Keys, KeysError, OpenError, vault};
use portolan_model::{
    Timestamp,
    id::{IdentityProviderId, SourceId, TenantId},
};
use portolan_storage::registry::credentials::WrappedKey;
use portolan_upstream::oauth::{ClientIdentity, Tokens};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Tokens and the client that they belong to (MCP-AU-7): a connection knows all that its renewal
/// needs.
#[derive(Clone, Serialize, Deserialize)]
pub struct Held {
    /// Our client at the authorization server.
    pub client: ClientIdentity,
    /// The access token.
    pub access: String,
    /// The refresh token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// The client itself gets tokens, no person is behind them.
    #[serde(default)]
    pub client_credentials: bool,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl Held {
    /// The same with new tokens; a server that gives no new refresh token means the old one
    /// (RFC 6749 §6).
    #[must_use]
    pub fn with(self, tokens: Tokens) -> Self {
        Self {
            access: tokens.access,
            refresh: tokens.refresh.or(self.refresh),
            ..self
        }
    }

    /// Tokens are renewed without a person.
    pub fn is_renewable(&self) -> bool {
        self.client_credentials || self.refresh.is_some()
    }
}

/// A seal is broken, or what is in it does not read.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// It does not open.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// It cannot be sealed.
    #[error("{0}")]
    Seal(#[from] KeysError),
    /// It is not what it should be.
    #[error("a sealed value does not read")]
    Unreadable,
}

fn place(label: &[u8], tenant: TenantId, of: Uuid, version: i32) -> Vec<u8> {
    let place = vault::credential_place(tenant.uuid().into_bytes(), of.into_bytes(), version);
    [label, b"\0", &place].concat()
}

fn data_key(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    now: Timestamp,
) -> Result<portolan_keys::DataKey, OpenError> {
    let owner = vault::data_key_owner(tenant.uuid().into_bytes(), key.id.into_bytes());
    keys.open_data_key(&owner, &key.wrapped, now)
}

fn seal_at<T: Serialize>(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    place: &[u8],
    value: &T,
    now: Timestamp,
) -> Result<Vec<u8>, SealError> {
    let text = serde_json::to_vec(value).map_err(|_| SealError::Unreadable)?;
    Ok(data_key(keys, tenant, key, now)?.seal(place, &text)?)
}

fn open_at<T: for<'de> Deserialize<'de>>(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    place: &[u8],
    sealed: &[u8],
    now: Timestamp,
) -> Result<T, SealError> {
    let text = data_key(keys, tenant, key, now)?.open(place, sealed, now)?;
    serde_json::from_slice(text.expose()).map_err(|_| SealError::Unreadable)
}

/// Seals the tokens of a connection for one version of its row.
///
/// # Errors
/// [`SealError`].
pub fn seal(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    (connection, version): (Uuid, i32),
    held: &Held,
    now: Timestamp,
) -> Result<Vec<u8>, SealError> {
    let place = place(b"connection", tenant, connection, version);
    seal_at(keys, tenant, key, &place, held, now)
}

/// Opens what [`seal`] sealed for the same row and version.
///
/// # Errors
/// [`SealError`].
pub fn open(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    (connection, version): (Uuid, i32),
    sealed: &[u8],
    now: Timestamp,
) -> Result<Held, SealError> {
    let place = place(b"connection", tenant, connection, version);
    open_at(keys, tenant, key, &place, sealed, now)
}

/// Seals the client that a tenant is at a source's authorization server.
///
/// # Errors
/// [`SealError`].
pub fn seal_client(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    (source, version): (SourceId, i32),
    client: &ClientIdentity,
    now: Timestamp,
) -> Result<Vec<u8>, SealError> {
    let place = place(b"client", tenant, source.uuid(), version);
    seal_at(keys, tenant, key, &place, client, now)
}

/// Opens what [`seal_client`] sealed.
///
/// # Errors
/// [`SealError`].
pub fn open_client(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    (source, version): (SourceId, i32),
    sealed: &[u8],
    now: Timestamp,
) -> Result<ClientIdentity, SealError> {
    let place = place(b"client", tenant, source.uuid(), version);
    open_at(keys, tenant, key, &place, sealed, now)
}

/// Seals the secret that we have at a tenant's provider of accounts.
///
/// # Errors
/// [`SealError`].
pub fn seal_provider_secret(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    (provider, version): (IdentityProviderId, i32),
    secret: &str,
    now: Timestamp,
) -> Result<Vec<u8>, SealError> {
    let place = place(b"identity-provider", tenant, provider.uuid(), version);
    seal_at(keys, tenant, key, &place, &secret, now)
}

/// Opens what [`seal_provider_secret`] sealed.
///
/// # Errors
/// [`SealError`].
pub fn open_provider_secret(
    keys: &Keys,
    tenant: TenantId,
    key: &WrappedKey,
    (provider, version): (IdentityProviderId, i32),
    sealed: &[u8],
    now: Timestamp,
) -> Result<String, SealError> {
    let place = place(b"identity-provider", tenant, provider.uuid(), version);
    open_at(keys, tenant, key, &place, sealed, now)
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;
    use time::OffsetDateTime;

    use super::*;

    #[test]
    fn case_166_tokens_open_only_in_their_own_row_version_and_tenant() {
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let now = OffsetDateTime::now_utc();
        let (acme, beta) = (TenantId::generate(), TenantId::generate());
        let key = |tenant: TenantId| {
            let id = Uuid::now_v7();
            let owner = vault::data_key_owner(tenant.uuid().into_bytes(), id.into_bytes());
            let (_, wrapped) = keys.new_data_key(&owner).unwrap();
            WrappedKey { id, wrapped }
        };
        let (own, theirs) = (key(acme), key(beta));
        let held = Held {
            client: ClientIdentity::public("c"),
            access: "planted-access".to_owned(),
            refresh: Some("planted-refresh".to_owned()),
            client_credentials: false,
        };
        let row = (Uuid::now_v7(), 3);
        let sealed = seal(&keys, acme, &own, row, &held, now).unwrap();
        assert!(!sealed.windows(7).any(|part| part == b"planted"));
        let opened = open(&keys, acme, &own, row, &sealed, now).unwrap();
        assert_eq!(opened.access, held.access);
        assert!(
            open(&keys, acme, &own, (row.0, 4), &sealed, now).is_err(),
            "another version"
        );
        assert!(
            open(&keys, acme, &own, (Uuid::now_v7(), 3), &sealed, now).is_err(),
            "another row"
        );
        assert!(
            open(&keys, beta, &theirs, row, &sealed, now).is_err(),
            "another tenant"
        );
        assert!(
            open(&keys, beta, &own, row, &sealed, now).is_err(),
            "a key of another tenant"
        );
        let source = (SourceId::from_uuid(row.0), 3);
        assert!(
            open_client(&keys, acme, &own, source, &sealed, now).is_err(),
            "tokens are no client"
        );
        assert!(!format!("{held:?}").contains("planted"));
    }
}
