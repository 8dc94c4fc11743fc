//! Clients that administrators of a tenant registered for it (AUTH-C16). Secrets are in
//! [`crate::oauth::client_secrets`]; whether one is switched off is a decision of
//! [`crate::oauth::client_admission`], so that it means the same as with every other client.

use portolan_model::{
    Timestamp,
    client::AuthMethod,
    id::{ClientId, TenantId},
};
use serde_json::Value;

use crate::{StorageError, SystemTx};

/// A client as the console shows it.
#[derive(Debug, Clone)]
pub struct RegisteredClient {
    /// Our name for the row.
    pub id: ClientId,
    /// Its `client_id` on the wire.
    pub client_id: String,
    /// As people call it.
    pub name: String,
    /// How it proves itself.
    pub auth_method: AuthMethod,
    /// `jwks` or `jwks_uri`, if it proves itself by key.
    pub metadata: Value,
    /// Where it may be answered.
    pub redirect_uris: Vec<String>,
    /// Switched off.
    pub is_blocked: bool,
    /// Blocked by an operator.
    pub is_stopped: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last allowed something.
    pub last_used_at: Option<Timestamp>,
    /// Live grants.
    pub apps: i64,
}

/// The clients of a tenant by name.
pub async fn list(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<RegisteredClient>, StorageError> {
    let rows = sqlx::query!(
        r#"select c.id, c.client_id, c.name, c.auth_method, c.metadata, c.status, c.created_at,
             (select max(n.used_at) from grants g join grant_uses n on n.tenant_id = g.tenant_id and n.grant_id = g.id
               where g.client_ref = c.id) as last_used_at,
             array(select uri from oauth_client_redirects where client_ref = c.id order by uri) as "redirect_uris!",
             exists (select 1 from client_decisions d where d.tenant_id = $1 and d.client_ref = c.id and d.decision = 'blocked') as "is_blocked!",
             (select count(*) from grants g where g.client_ref = c.id and g.revoked_at is null and g.expires_at > $2) as "apps!"
           from oauth_clients c where c.tenant_id = $1 and c.kind = 'static' and c.status <> 'deleted' order by lower(c.name), c.id"#,
        tenant.uuid(),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(RegisteredClient {
                id: row.id.into(),
                client_id: row.client_id,
                name: row.name,
                auth_method: AuthMethod::parse(&row.auth_method).ok_or(
                    StorageError::Inconsistent {
                        table: "oauth_clients",
                        column: "auth_method",
                    },
                )?,
                metadata: row.metadata,
                redirect_uris: row.redirect_uris,
                is_blocked: row.is_blocked,
                is_stopped: row.status != "active",
                created_at: row.created_at,
                last_used_at: row.last_used_at,
                apps: row.apps,
            })
        })
        .collect()
}

/// Calls it something else, or answers it elsewhere.
pub async fn change(
    tx: &mut SystemTx,
    client: ClientId,
    name: &str,
    redirect_uris: &[String],
) -> Result<(), StorageError> {
    sqlx::query!(
        "update oauth_clients set name = $2 where id = $1",
        client.uuid(),
        name
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from oauth_client_redirects where client_ref = $1 and uri <> all($2)",
        client.uuid(),
        redirect_uris,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into oauth_client_redirects (client_ref, uri) select $1, uri from unnest($2::text[]) as uri on conflict do nothing",
        client.uuid(),
        redirect_uris,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Deletes the client, so that it is unknown from now on. End its grants first; they still refer to
/// its row, which stays.
pub async fn delete(
    tx: &mut SystemTx,
    client: ClientId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update oauth_clients set status = 'deleted' where id = $1",
        client.uuid()
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "update oauth_client_secrets set revoked_at = $2 where client_ref = $1 and revoked_at is null",
        client.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
