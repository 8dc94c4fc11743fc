//! Suspension and deletion of tenants (AUTH-M6). Each raises the tenant's epoch. Nodes refuse
//! access tokens as soon as they receive it. Refresh tokens fail because the tenant is not active.

use portolan_model::{Timestamp, id::TenantId};
use time::Duration;
use uuid::Uuid;

use crate::{
    StorageError, SystemTx,
    oauth::{
        grants::REVOCATION_MEMORY,
        revocations::{self, New, RevocationKind},
    },
    registry::registry_news,
};

/// How long a deletion can be taken back.
pub const GRACE: Duration = Duration::days(30);

/// What becomes of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// All access stops until the tenant is resumed; its members see this message.
    Suspend(&'a str),
    /// It works again.
    Resume,
    /// Nothing works, and after [`GRACE`] it is gone. Its owner can take that back.
    Delete,
    /// The deletion is taken back by an owner, while it can be, unless an operator stopped the
    /// tenant.
    TakeBack,
    /// Deleted by an operator: only an operator restores it. A tenant that was deleted already
    /// keeps its date of destruction.
    Evict,
    /// Any deletion is taken back, while it can be.
    Restore,
}

/// Applies the change in one guarded update and notifies the nodes. False if the tenant's state
/// does not allow it.
pub async fn apply(
    tx: &mut SystemTx,
    tenant: TenantId,
    ending: Ending<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let (from, to): (&[&str], &str) = match ending {
        Ending::Suspend(_) => (&["active"], "suspended"),
        Ending::Resume => (&["suspended"], "active"),
        Ending::Delete => (&["active"], "deleting"),
        Ending::Evict => (&["active", "suspended", "deleting"], "deleting"),
        Ending::TakeBack | Ending::Restore => (&["deleting"], "active"),
    };
    let from: Vec<String> = from.iter().map(|&word| word.to_owned()).collect();
    let (suspended_at, reason) = match ending {
        Ending::Suspend(reason) => (Some(now), Some(reason)),
        Ending::Evict => (Some(now), None),
        _ => (None, None),
    };
    let epoch = sqlx::query_scalar!(
        "update tenants set status = $3, epoch = epoch + 1, registry_revision = registry_revision + 1, suspended_at = $4, suspend_reason = $5,
           delete_after = case when status = 'deleting' and $3 = 'deleting' then delete_after else $6 end
         where id = $1 and status = any($2) and (status <> 'deleting' or (delete_after > $7 and (suspended_at is null or $8))) returning epoch",
        tenant.uuid(),
        &from,
        to,
        suspended_at,
        reason,
        matches!(ending, Ending::Delete | Ending::Evict).then_some(now + GRACE),
        now,
        ending == Ending::Restore,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(epoch) = epoch else {
        return Ok(false);
    };
    if to == "deleting" {
        // Its domains are free for other tenants; this tenant proves them again if it comes back.
        sqlx::query!(
            "update tenant_domains set verified_at = null, missing_since = null where tenant_id = $1",
            tenant.uuid()
        )
        .execute(tx.connection())
        .await?;
    }
    let revocation = New {
        kind: RevocationKind::Tenant,
        reference: &tenant.to_string(),
        tenant: Some(tenant),
        epoch: Some(epoch),
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await?;
    registry_news::ring(tx.connection(), tenant.uuid()).await?;
    Ok(true)
}

/// Finds a tenant whose grace period is over, and locks it until the transaction ends. Skips
/// tenants that another transaction changes, and those in `but`. An insert of a row that
/// references the tenant does not change it: nodes write such rows all the time.
pub async fn overdue(
    tx: &mut SystemTx,
    but: &[TenantId],
    now: Timestamp,
) -> Result<Option<TenantId>, StorageError> {
    let but: Vec<Uuid> = but.iter().copied().map(TenantId::uuid).collect();
    let tenant = sqlx::query_scalar!(
        "select id from tenants where status = 'deleting' and delete_after <= $1 and id <> all($2)
         order by delete_after, id limit 1 for no key update skip locked",
        now,
        &but,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(tenant.map(TenantId::from_uuid))
}

/// Destroys the data keys of a tenant that is [`overdue`], and the secrets sealed under them.
/// Commit this before the rest of the deletion, which is large and can fail.
pub async fn shred(tx: &mut SystemTx, tenant: TenantId) -> Result<(), StorageError> {
    sqlx::query!(
        "delete from source_credentials where tenant_id = $1",
        tenant.uuid()
    )
    .execute(tx.connection())
    .await?;
    // With the accounts at upstream servers and the ways to them.
    sqlx::query!(
        "delete from upstream_sign_ins where tenant_id = $1",
        tenant.uuid()
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from identity_providers where tenant_id = $1",
        tenant.uuid()
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from tenant_deks where tenant_id = $1",
        tenant.uuid()
    )
    .execute(tx.connection())
    .await?;
    registry_news::ring(tx.connection(), tenant.uuid()).await
}

/// Destroys what a tenant has: what [`shred`] destroys, its registry, its members, its grants. Its
/// row, its slugs as tombstones (AUTH-M3) and its audit log stay.
pub async fn purge(tx: &mut SystemTx, tenant: TenantId) -> Result<(), StorageError> {
    // A large tenant takes longer than a request may.
    sqlx::query!("select set_config('statement_timeout', '10min', true)")
        .fetch_one(tx.connection())
        .await?;
    sqlx::query!("select purge_tenant($1)", tenant.uuid())
        .fetch_one(tx.connection())
        .await?;
    registry_news::ring(tx.connection(), tenant.uuid()).await
}
