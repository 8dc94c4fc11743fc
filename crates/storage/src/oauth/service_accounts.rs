//! Service accounts, which act in a tenant without a person (AUTH-C17, AUTH-T12). The OAuth client
//! of an account is a row of `oauth_clients`; its id on the wire is the account's.

use portolan_model::{
    Timestamp,
    client::AuthMethod,
    id::{ClientId, ServiceAccountId, TenantId, UserId},
};
use serde_json::Value;

use crate::{
    StorageError, SystemTx,
    oauth::{client_secrets::NOTED_EVERY, grants::REVOCATION_MEMORY, revocations},
};

/// An account as the console shows it.
#[derive(Debug, Clone)]
pub struct ServiceAccount {
    /// Its id, also its `client_id`.
    pub id: ServiceAccountId,
    /// Its OAuth client.
    pub client: ClientId,
    /// As people call it.
    pub name: String,
    /// How it proves itself.
    pub auth_method: AuthMethod,
    /// What its client registered: `jwks` or `jwks_uri`, if it proves itself by key.
    pub metadata: Value,
    /// The one server that it may use; `None` is the whole workspace.
    pub resource: Option<String>,
    /// Who made it.
    pub created_by: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// Since when it is switched off.
    pub disabled_at: Option<Timestamp>,
    /// When it last got a token, to a few seconds.
    pub last_used_at: Option<Timestamp>,
}

/// An account to be written.
#[derive(Debug)]
pub struct NewServiceAccount<'a> {
    /// Its id.
    pub id: ServiceAccountId,
    /// Its OAuth client, which is there already.
    pub client: ClientId,
    /// Whose.
    pub tenant: TenantId,
    /// The one server that it may use.
    pub resource: Option<&'a str>,
    /// Who makes it.
    pub created_by: UserId,
}

/// Locks the creation of accounts and API keys in a tenant until the transaction ends. Without the
/// lock, two concurrent counts could both be below the limit.
pub async fn take_turn(tx: &mut SystemTx, tenant: TenantId) -> Result<(), StorageError> {
    sqlx::query_scalar!(
        "select id from tenants where id = $1 for no key update",
        tenant.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(())
}

/// Writes an account.
pub async fn create(
    tx: &mut SystemTx,
    new: &NewServiceAccount<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into service_accounts (tenant_id, id, client_ref, resource, created_by, created_at) values ($1, $2, $3, $4, $5, $6)",
        new.tenant.uuid(),
        new.id.uuid(),
        new.client.uuid(),
        new.resource,
        new.created_by.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The accounts of a tenant by name.
pub async fn list(
    tx: &mut SystemTx,
    tenant: TenantId,
) -> Result<Vec<ServiceAccount>, StorageError> {
    let rows = sqlx::query!(
        r#"select a.id, a.client_ref, c.name, c.auth_method, c.metadata, a.resource, u.display_name as "created_by?", a.created_at,
             a.disabled_at, a.last_used_at
           from service_accounts a join oauth_clients c on c.id = a.client_ref left join users u on u.id = a.created_by
           where a.tenant_id = $1 order by lower(c.name), a.id"#,
        tenant.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ServiceAccount {
                id: row.id.into(),
                client: row.client_ref.into(),
                name: row.name,
                auth_method: AuthMethod::parse(&row.auth_method).ok_or(
                    StorageError::Inconsistent {
                        table: "oauth_clients",
                        column: "auth_method",
                    },
                )?,
                metadata: row.metadata,
                resource: row.resource,
                created_by: row.created_by,
                created_at: row.created_at,
                disabled_at: row.disabled_at,
                last_used_at: row.last_used_at,
            })
        })
        .collect()
}

/// Calls it something else.
pub async fn rename(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: ServiceAccountId,
    name: &str,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update oauth_clients c set name = $3 from service_accounts a where a.client_ref = c.id and a.tenant_id = $1 and a.id = $2",
        tenant.uuid(),
        id.uuid(),
        name,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Switches an account off or on. Its earlier tokens are refused at once, and for good. Returns the
/// epoch from which tokens are valid. `None` if the account does not exist or is in that state
/// already.
pub async fn set_disabled(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: ServiceAccountId,
    is_disabled: bool,
    now: Timestamp,
) -> Result<Option<i32>, StorageError> {
    let epoch = sqlx::query_scalar!(
        "update service_accounts set disabled_at = case when $3 then $4::timestamptz end, epoch = epoch + 1
         where tenant_id = $1 and id = $2 and (disabled_at is null) = $3 returning epoch",
        tenant.uuid(),
        id.uuid(),
        is_disabled,
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    if let Some(epoch) = epoch {
        publish(tx, tenant, id, epoch, now).await?;
    }
    Ok(epoch)
}

/// Ends every token of an account whose secret or keys were withdrawn. The account can get new
/// tokens. `None` if there is no such account.
pub async fn end_tokens(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: ServiceAccountId,
    now: Timestamp,
) -> Result<Option<i32>, StorageError> {
    let epoch = sqlx::query_scalar!(
        "update service_accounts set epoch = epoch + 1 where tenant_id = $1 and id = $2 returning epoch",
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    if let Some(epoch) = epoch {
        publish(tx, tenant, id, epoch, now).await?;
    }
    Ok(epoch)
}

/// Removes an account with its client, secrets and API keys. Returns the epoch below which its
/// tokens are refused, which covers all of them. `None` if there is no such account.
pub async fn delete(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: ServiceAccountId,
    now: Timestamp,
) -> Result<Option<i32>, StorageError> {
    let epoch = end_tokens(tx, tenant, id, now).await?;
    if epoch.is_some() {
        sqlx::query!(
            "delete from oauth_clients where id = (select client_ref from service_accounts where tenant_id = $1 and id = $2)",
            tenant.uuid(),
            id.uuid(),
        )
        .execute(tx.connection())
        .await?;
    }
    Ok(epoch)
}

async fn publish(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: ServiceAccountId,
    epoch: i32,
    now: Timestamp,
) -> Result<(), StorageError> {
    let revocation = revocations::New {
        kind: revocations::RevocationKind::Service,
        reference: &id.to_string(),
        tenant: Some(tenant),
        epoch: Some(epoch),
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await
}

/// What decides whether an account may act, and the epochs that go into its token (AUTH-4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccountStatus {
    /// Which account.
    pub id: ServiceAccountId,
    /// Where.
    pub tenant: TenantId,
    /// The tenant's present slug.
    pub slug: String,
    /// Neither it nor the tenant is switched off.
    pub is_active: bool,
    /// The one server that it may use.
    pub resource: Option<String>,
    /// `service_accounts.epoch`.
    pub epoch: i32,
    /// `tenants.epoch`.
    pub tenant_epoch: i32,
}

/// The standing of the account whose client this is.
pub async fn standing(
    tx: &mut SystemTx,
    client: ClientId,
) -> Result<Option<ServiceAccountStatus>, StorageError> {
    let row = sqlx::query!(
        r#"select a.id, a.tenant_id, s.slug, (a.disabled_at is null and t.status = 'active') as "is_active!", a.resource, a.epoch,
             t.epoch as tenant_epoch
           from service_accounts a join tenants t on t.id = a.tenant_id
           join tenant_slugs s on s.tenant_id = t.id and s.state = 'primary' where a.client_ref = $1"#,
        client.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| ServiceAccountStatus {
        id: row.id.into(),
        tenant: row.tenant_id.into(),
        slug: row.slug,
        is_active: row.is_active,
        resource: row.resource,
        epoch: row.epoch,
        tenant_epoch: row.tenant_epoch,
    }))
}

/// Notes that the account got a token, if the last note is some seconds old.
pub async fn note_used(
    tx: &mut SystemTx,
    id: ServiceAccountId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update service_accounts set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $3)",
        id.uuid(),
        now,
        now - NOTED_EVERY,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
