//! Stored credentials of sources: the data key of a tenant, opening, and states.

use portolan_http_tools::{CredentialSlot, Proof};
use portolan_keys::{
    KeysError, OpenError,
    vault::{credential_place, data_key_owner},
};
use portolan_model::id::{SourceId, TenantId};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        credential_states::CredentialState,
        credentials::{self, WrappedKey},
    },
};
use time::OffsetDateTime;
use uuid::Uuid;

/// The state that an answer proves.
pub fn state_of(proof: Proof) -> CredentialState {
    match proof {
        Proof::Works => CredentialState::Works,
        Proof::Refused(status) => CredentialState::Refused(status),
    }
}

/// The workspace's newest data key, created if there is none.
pub async fn data_key<E: From<StorageError> + From<KeysError>>(
    state: &AuthState,
    tx: &mut TenantTx,
    tenant: TenantId,
    now: OffsetDateTime,
) -> Result<WrappedKey, E> {
    if let Some(key) = credentials::newest_data_key(tx).await? {
        return Ok(key);
    }
    let id = Uuid::now_v7();
    let owner = data_key_owner(tenant.uuid().into_bytes(), id.into_bytes());
    let (_, wrapped) = state.keys.new_data_key(&owner)?;
    let key = WrappedKey { id, wrapped };
    credentials::insert_data_key(tx, &key, now).await?;
    Ok(key)
}

/// Opens a source's credential for a call from the console.
pub async fn open(
    state: &AuthState,
    tx: &mut TenantTx,
    tenant: TenantId,
    source: SourceId,
) -> Result<Option<CredentialSlot>, ConsoleError> {
    let Some(stored) = credentials::find(tx, source).await? else {
        return Ok(None);
    };
    let now = state.now();
    let tenant_bytes = tenant.uuid().into_bytes();
    let fault = |error: OpenError| ConsoleError::internal("credential", error);
    let owner = data_key_owner(tenant_bytes, stored.key.id.into_bytes());
    let data_key = state
        .keys
        .open_data_key(&owner, &stored.key.wrapped, now)
        .map_err(fault)?;
    let place = credential_place(tenant_bytes, source.uuid().into_bytes(), stored.version);
    let plaintext = data_key.open(&place, &stored.sealed, now).map_err(fault)?;
    let credential = serde_json::from_slice(plaintext.expose())
        .map_err(|_| ConsoleError::internal("credential", "a sealed credential does not read"))?;
    let key = format!("{source}/{}", stored.version);
    Ok(Some(CredentialSlot::new(key, credential)))
}
