//! API keys: for clients that cannot do OAuth, in the name of a person or of a service account
//! (AUTH-C17, AUTH-4.8).

use portolan_model::{
    Digest, Timestamp,
    id::{ApiKeyId, ServiceAccountId, TenantId, UserId},
    subject::Subject,
};
use uuid::Uuid;

use crate::{
    EdgeTx, StorageError, SystemTx, TenantTx,
    oauth::{grants::REVOCATION_MEMORY, revocations},
};

/// A key as the console shows it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Which.
    pub id: ApiKeyId,
    /// For whom it speaks.
    pub holder: Subject,
    /// As the person, or the account, is called.
    pub holder_name: String,
    /// As people call the key.
    pub name: String,
    /// Its beginning.
    pub hint: String,
    /// The one server that it opens; `None` is the whole workspace.
    pub resource: Option<String>,
    /// From where it may be used, as CIDR blocks; empty is from everywhere.
    pub networks: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When a node last looked it up: to five minutes.
    pub last_used_at: Option<Timestamp>,
}

/// A key to be written.
#[derive(Debug)]
pub struct NewApiKey<'a> {
    /// Which.
    pub id: ApiKeyId,
    /// Where.
    pub tenant: TenantId,
    /// For whom it speaks.
    pub holder: Subject,
    /// As people call it.
    pub name: &'a str,
    /// Digest by which the key is found.
    pub digest: &'a Digest,
    /// Its beginning.
    pub hint: &'a str,
    /// The one server that it opens.
    pub resource: Option<&'a str>,
    /// From where it may be used.
    pub networks: &'a [String],
    /// Who makes it.
    pub created_by: UserId,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Writes a key.
pub async fn create(
    tx: &mut SystemTx,
    new: &NewApiKey<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (user, account) = match new.holder {
        Subject::User(id) => (Some(id.uuid()), None),
        Subject::Service(id) => (None, Some(id.uuid())),
    };
    sqlx::query!(
        "insert into api_keys (tenant_id, id, user_id, service_account_id, name, digest, hint, resource, networks, created_by, created_at,
           expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9::text[]::cidr[], $10, $11, $12)",
        new.tenant.uuid(),
        new.id.uuid(),
        user,
        account,
        new.name,
        new.digest.as_bytes().as_slice(),
        new.hint,
        new.resource,
        new.networks,
        new.created_by.uuid(),
        now,
        new.expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

fn holder(user: Option<Uuid>, account: Option<Uuid>) -> Result<Subject, StorageError> {
    match (user, account) {
        (Some(id), None) => Ok(Subject::User(UserId::from_uuid(id))),
        (None, Some(id)) => Ok(Subject::Service(ServiceAccountId::from_uuid(id))),
        _ => Err(StorageError::Inconsistent {
            table: "api_keys",
            column: "user_id",
        }),
    }
}

/// Lists the live keys of a tenant, newest first: all of them, or those of one person.
pub async fn list(
    tx: &mut SystemTx,
    tenant: TenantId,
    of: Option<UserId>,
    now: Timestamp,
) -> Result<Vec<ApiKey>, StorageError> {
    let rows = sqlx::query!(
        r#"select k.id, k.user_id, k.service_account_id, coalesce(nullif(u.display_name, ''), e.address, c.name, '') as "holder_name!",
             k.name, k.hint, k.resource, k.networks::text[] as "networks!", k.created_at, k.expires_at, k.last_used_at
           from api_keys k left join users u on u.id = k.user_id left join user_emails e on e.user_id = u.id and e.is_primary
           left join service_accounts a on a.tenant_id = k.tenant_id and a.id = k.service_account_id
           left join oauth_clients c on c.id = a.client_ref
           where k.tenant_id = $1 and ($2::uuid is null or k.user_id = $2) and k.revoked_at is null and k.expires_at > $3
           order by k.created_at desc, k.id desc limit 1000"#,
        tenant.uuid(),
        of.map(UserId::uuid),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ApiKey {
                id: row.id.into(),
                holder: holder(row.user_id, row.service_account_id)?,
                holder_name: row.holder_name,
                name: row.name,
                hint: row.hint,
                resource: row.resource,
                networks: row.networks,
                created_at: row.created_at,
                expires_at: row.expires_at,
                last_used_at: row.last_used_at,
            })
        })
        .collect()
}

/// How many live keys a tenant has (AUTH-M9).
pub async fn count(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from api_keys where tenant_id = $1 and revoked_at is null and expires_at > $2"#,
        tenant.uuid(),
        now,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// A key whose end is near.
#[derive(Debug, Clone)]
pub struct ExpiringKey {
    /// Its tenant.
    pub tenant: TenantId,
    /// Which.
    pub id: ApiKeyId,
    /// Display name.
    pub name: String,
    /// When it expires.
    pub expires_at: Timestamp,
    /// 14, 3 or 1: it expires within so many days.
    pub days: i32,
}

/// Keys that expire within 14, 3 or 1 days and whose workspace has no event of that yet, at most
/// 500. A key whose whole life is not longer than that is left out.
pub async fn expiring(tx: &mut SystemTx, now: Timestamp) -> Result<Vec<ExpiringKey>, StorageError> {
    let rows = sqlx::query!(
        r#"select k.tenant_id, k.id, k.name, k.expires_at, k.days as "days!" from
             (select a.tenant_id, a.id, a.name, a.created_at, a.expires_at,
                     case when a.expires_at <= $1::timestamptz + interval '1 day' then 1
                          when a.expires_at <= $1::timestamptz + interval '3 days' then 3 else 14 end as days
                from api_keys a
               where a.revoked_at is null and a.expires_at > $1 and a.expires_at <= $1::timestamptz + interval '14 days') k
            where k.expires_at - k.created_at > k.days * interval '1 day'
              and not exists (select 1 from events e where e.tenant_id = k.tenant_id
                               and e.once = 'key.expiring key_' || replace(k.id::text, '-', '') || ' ' || k.days)
            order by k.expires_at limit 500"#,
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ExpiringKey {
            tenant: row.tenant_id.into(),
            id: row.id.into(),
            name: row.name,
            expires_at: row.expires_at,
            days: row.days,
        })
        .collect())
}

/// A key that was revoked.
#[derive(Debug, Clone, Copy)]
pub struct Revoked {
    /// Which.
    pub id: ApiKeyId,
    /// Where.
    pub tenant: TenantId,
}

/// Revokes a key of a tenant, once. With `of`, only a key of that person. The nodes are notified
/// when the caller commits.
pub async fn revoke(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: ApiKeyId,
    of: Option<UserId>,
    now: Timestamp,
) -> Result<Option<Revoked>, StorageError> {
    let done = sqlx::query!(
        "update api_keys set revoked_at = $4
         where tenant_id = $1 and id = $2 and ($3::uuid is null or user_id = $3) and revoked_at is null",
        tenant.uuid(),
        id.uuid(),
        of.map(UserId::uuid),
        now,
    )
    .execute(tx.connection())
    .await?;
    if done.rows_affected() == 0 {
        return Ok(None);
    }
    publish(tx, Revoked { id, tenant }, now).await.map(Some)
}

/// Revokes the key with this digest, once. Its bearer needs no other right, so a finder can revoke
/// a leaked key.
pub async fn revoke_presented(
    tx: &mut SystemTx,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<Revoked>, StorageError> {
    let row = sqlx::query!(
        "update api_keys set revoked_at = $2 where digest = $1 and revoked_at is null returning id, tenant_id",
        digest.as_bytes().as_slice(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let revoked = Revoked {
        id: row.id.into(),
        tenant: row.tenant_id.into(),
    };
    publish(tx, revoked, now).await.map(Some)
}

async fn publish(
    tx: &mut SystemTx,
    revoked: Revoked,
    now: Timestamp,
) -> Result<Revoked, StorageError> {
    let revocation = revocations::New {
        // The key is the client of its calls (AUTH-4.8).
        kind: revocations::RevocationKind::Client,
        reference: &revoked.id.to_string(),
        tenant: Some(revoked.tenant),
        epoch: None,
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await?;
    Ok(revoked)
}

/// The access that a valid key gives, and the epochs as they were when it was read (AUTH-4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedKey {
    /// Which key.
    pub id: ApiKeyId,
    /// Where.
    pub tenant: TenantId,
    /// The tenant's present slug.
    pub slug: String,
    /// For whom it speaks.
    pub holder: Subject,
    /// The one server that it opens; `None` is the whole workspace.
    pub resource: Option<String>,
    /// From where it may be used; empty is from everywhere.
    pub networks: Vec<String>,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Epoch of the person, or of the account.
    pub epoch: i32,
    /// Epoch of the tenant.
    pub tenant_epoch: i32,
    /// Epoch of the membership; 0 for an account.
    pub member_epoch: i32,
}

/// Finds the tenant of a presented key; `None` if it is unknown. [`open`] checks whether it is
/// valid.
pub async fn tenant_of(tx: &mut EdgeTx, digest: &Digest) -> Result<Option<TenantId>, StorageError> {
    // Row-level security of the edge scope shows the one row of this digest.
    sqlx::query!(
        "select set_config('app.presented', encode($1, 'hex'), true)",
        digest.as_bytes().as_slice(),
    )
    .fetch_one(tx.connection())
    .await?;
    let tenant = sqlx::query_scalar!(
        "select tenant_id from api_keys where digest = $1",
        digest.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(tenant.map(TenantId::from_uuid))
}

/// Looks up a presented key of the transaction's tenant and records its use.
/// `None` if the key is unknown, revoked or expired, or if its owner may not act in the tenant any
/// more. The caller cannot tell these cases apart.
pub async fn open(
    tx: &mut TenantTx,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<OpenedKey>, StorageError> {
    let row = sqlx::query!(
        r#"update api_keys k set last_used_at = $2
           from tenants t join tenant_slugs s on s.tenant_id = t.id and s.state = 'primary'
           where k.tenant_id = $3 and k.digest = $1 and k.revoked_at is null and k.expires_at > $2 and t.id = k.tenant_id
             and t.status = 'active'
           returning k.id, k.tenant_id, s.slug, k.user_id, k.service_account_id, k.resource, k.networks::text[] as "networks!", k.expires_at,
             t.epoch as tenant_epoch"#,
        digest.as_bytes().as_slice(),
        now,
        tx.tenant().uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let holder = holder(row.user_id, row.service_account_id)?;
    let epochs = match holder {
        Subject::User(user) => crate::oauth::grants::standing(tx, row.tenant_id.into(), user)
            .await?
            .filter(|standing| standing.is_active)
            .map(|standing| (standing.user_epoch, standing.member_epoch)),
        Subject::Service(account) => sqlx::query_scalar!(
            "select epoch from service_accounts where tenant_id = $1 and id = $2 and disabled_at is null",
            row.tenant_id,
            account.uuid(),
        )
        .fetch_optional(tx.connection())
        .await?
        .map(|epoch| (epoch, 0)),
    };
    Ok(epochs.map(|(epoch, member_epoch)| OpenedKey {
        id: row.id.into(),
        tenant: row.tenant_id.into(),
        slug: row.slug,
        holder,
        resource: row.resource,
        networks: row.networks,
        expires_at: row.expires_at,
        epoch,
        tenant_epoch: row.tenant_epoch,
        member_epoch,
    }))
}
