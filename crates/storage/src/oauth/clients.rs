//! OAuth clients: registered by themselves, by metadata document, or by hand (AUTH-1.4, AUTH-3.4).

use portolan_model::{
    Digest, Timestamp,
    client::{AuthMethod, ClientKind},
    id::{ClientId, TenantId},
};
use serde_json::Value;
use uuid::Uuid;

use crate::{StorageError, SystemTx, oauth::client_secrets};

/// A client as stored.
#[derive(Debug, Clone)]
pub struct Client {
    /// Our name for the row.
    pub id: ClientId,
    /// The `client_id` on the wire: an opaque id, or the URL of its metadata document.
    pub client_id: String,
    /// How it came to be.
    pub kind: ClientKind,
    /// The tenant it was registered for; `None` for all that registered themselves.
    pub tenant: Option<TenantId>,
    /// As it calls itself, already cleaned for display.
    pub name: String,
    /// The registered metadata.
    pub metadata: Value,
    /// Digest of the metadata.
    pub metadata_digest: Digest,
    /// How it proves itself.
    pub auth_method: AuthMethod,
    /// `authorization_code`, `refresh_token`.
    pub grant_types: Vec<String>,
    /// Where it may be answered (AUTH-A3).
    pub redirect_uris: Vec<String>,
    /// Blocked by an operator.
    pub is_blocked: bool,
}

impl Client {
    /// True if it registered for `grant_type`.
    pub fn has_grant_type(&self, grant_type: &str) -> bool {
        self.grant_types.iter().any(|known| known == grant_type)
    }
}

/// A client to be written.
#[derive(Debug)]
pub struct NewClient<'a> {
    /// Row id.
    pub id: ClientId,
    /// Wire id.
    pub client_id: &'a str,
    /// How it came to be.
    pub kind: ClientKind,
    /// For which tenant.
    pub tenant: Option<TenantId>,
    /// Display name.
    pub name: &'a str,
    /// The registered metadata.
    pub metadata: &'a Value,
    /// For de-duplication (AUTH-C10) and change detection (AUTH-C5).
    pub metadata_digest: Digest,
    /// How it proves itself.
    pub auth_method: AuthMethod,
    /// `web` or `native`.
    pub application_type: &'a str,
    /// Grant types.
    pub grant_types: &'a [String],
    /// Redirect URIs.
    pub redirect_uris: &'a [String],
    /// Its secret, if it has one: the digest and the beginning.
    pub secret: Option<(Digest, &'a str)>,
    /// Network block it came from.
    pub ip_block: Option<&'a str>,
}

/// As the database gives it.
pub(crate) struct ClientRow {
    pub(crate) id: Uuid,
    pub(crate) client_id: String,
    pub(crate) kind: String,
    pub(crate) tenant_id: Option<Uuid>,
    pub(crate) name: String,
    pub(crate) metadata: Value,
    pub(crate) metadata_digest: Vec<u8>,
    pub(crate) auth_method: String,
    pub(crate) grant_types: Vec<String>,
    pub(crate) status: String,
    pub(crate) redirect_uris: Vec<String>,
}

impl TryFrom<ClientRow> for Client {
    type Error = StorageError;

    fn try_from(row: ClientRow) -> Result<Self, StorageError> {
        let inconsistent = |column| StorageError::Inconsistent {
            table: "oauth_clients",
            column,
        };
        Ok(Self {
            id: row.id.into(),
            client_id: row.client_id,
            kind: ClientKind::ALL
                .into_iter()
                .find(|kind| kind.as_str() == row.kind)
                .ok_or(inconsistent("kind"))?,
            tenant: row.tenant_id.map(TenantId::from_uuid),
            name: row.name,
            metadata: row.metadata,
            metadata_digest: Digest::from_slice(&row.metadata_digest)
                .ok_or(inconsistent("metadata_digest"))?,
            auth_method: AuthMethod::parse(&row.auth_method).ok_or(inconsistent("auth_method"))?,
            grant_types: row.grant_types,
            redirect_uris: row.redirect_uris,
            is_blocked: row.status != "active",
        })
    }
}

/// The client with this wire id.
pub async fn find(tx: &mut SystemTx, client_id: &str) -> Result<Option<Client>, StorageError> {
    let row = sqlx::query_as!(
        ClientRow,
        r#"select id, client_id, kind, tenant_id, name, metadata, metadata_digest, auth_method, grant_types, status,
             array(select uri from oauth_client_redirects where client_ref = oauth_clients.id order by uri) as "redirect_uris!"
           from oauth_clients where client_id = $1 and status <> 'deleted'"#,
        client_id,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(Client::try_from).transpose()
}

/// The client of this row.
pub async fn get(tx: &mut SystemTx, id: ClientId) -> Result<Client, StorageError> {
    let row = sqlx::query_as!(
        ClientRow,
        r#"select id, client_id, kind, tenant_id, name, metadata, metadata_digest, auth_method, grant_types, status,
             array(select uri from oauth_client_redirects where client_ref = oauth_clients.id order by uri) as "redirect_uris!"
           from oauth_clients where id = $1"#,
        id.uuid(),
    )
    .fetch_one(tx.connection())
    .await?;
    row.try_into()
}

/// The clients of these rows.
pub async fn many(tx: &mut SystemTx, ids: &[ClientId]) -> Result<Vec<Client>, StorageError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_as!(
        ClientRow,
        r#"select id, client_id, kind, tenant_id, name, metadata, metadata_digest, auth_method, grant_types, status,
             array(select uri from oauth_client_redirects where client_ref = oauth_clients.id order by uri) as "redirect_uris!"
           from oauth_clients where id = any($1)"#,
        &ids,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter().map(Client::try_from).collect()
}

/// Writes a client. An equal registration of a public dynamic client gives the one that is there
/// already (AUTH-C10), also when two arrive at once.
pub async fn register(
    tx: &mut SystemTx,
    new: &NewClient<'_>,
    now: Timestamp,
) -> Result<Client, StorageError> {
    let inserted = sqlx::query_scalar!(
        "insert into oauth_clients (id, client_id, kind, tenant_id, name, metadata, metadata_digest, auth_method, application_type,
           grant_types, created_ip_block, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         on conflict (metadata_digest) where kind = 'dynamic' and auth_method = 'none' do nothing
         returning id",
        new.id.uuid(),
        new.client_id,
        new.kind.as_str(),
        new.tenant.map(TenantId::uuid),
        new.name,
        new.metadata,
        new.metadata_digest.as_bytes().as_slice(),
        new.auth_method.as_str(),
        new.application_type,
        new.grant_types,
        new.ip_block,
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(id) = inserted else {
        // Who registers again means to go on: that is a use (AUTH-C11).
        let id = sqlx::query_scalar!(
            "update oauth_clients set last_used_at = $2 where metadata_digest = $1 and kind = 'dynamic' and auth_method = 'none' returning id",
            new.metadata_digest.as_bytes().as_slice(),
            now,
        )
        .fetch_one(tx.connection())
        .await?;
        return get(tx, id.into()).await;
    };
    insert_redirects(tx, id, new.redirect_uris).await?;
    if let Some((digest, hint)) = new.secret {
        client_secrets::add(tx, id.into(), &digest, hint, now).await?;
    }
    get(tx, id.into()).await
}

/// Replaces what a metadata document says about its client (AUTH-C5).
pub async fn replace_metadata(
    tx: &mut SystemTx,
    id: ClientId,
    new: &NewClient<'_>,
) -> Result<Client, StorageError> {
    sqlx::query!(
        "update oauth_clients set name = $2, metadata = $3, metadata_digest = $4, auth_method = $5, application_type = $6, grant_types = $7
         where id = $1",
        id.uuid(),
        new.name,
        new.metadata,
        new.metadata_digest.as_bytes().as_slice(),
        new.auth_method.as_str(),
        new.application_type,
        new.grant_types,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from oauth_client_redirects where client_ref = $1",
        id.uuid()
    )
    .execute(tx.connection())
    .await?;
    insert_redirects(tx, id.uuid(), new.redirect_uris).await?;
    get(tx, id).await
}

/// Replaces what the console says about a client.
pub async fn set_metadata(
    tx: &mut SystemTx,
    id: ClientId,
    metadata: &Value,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update oauth_clients set metadata = $2 where id = $1",
        id.uuid(),
        metadata
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

async fn insert_redirects(
    tx: &mut SystemTx,
    id: Uuid,
    uris: &[String],
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into oauth_client_redirects (client_ref, uri) select $1, uri from unnest($2::text[]) as uri on conflict do nothing",
        id,
        uris,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Notes that the client had a grant: from now on its registration is kept for ever (AUTH-C11).
pub async fn note_granted(
    tx: &mut SystemTx,
    id: ClientId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update oauth_clients set ever_granted = true, last_used_at = $2 where id = $1",
        id.uuid(),
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Registrations from a network block since `since`: the limit of AUTH-C8 counts rows, so that it
/// holds across nodes.
pub async fn count_registered_since(
    tx: &mut SystemTx,
    ip_block: &str,
    since: Timestamp,
) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from oauth_clients where created_ip_block = $1 and created_at > $2 and kind = 'dynamic'"#,
        ip_block,
        since,
    )
    .fetch_one(tx.connection())
    .await?)
}
