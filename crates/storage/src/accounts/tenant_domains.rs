//! Mail domains of tenants, proved by a record in the DNS (AUTH-F7).

use portolan_model::{
    Timestamp,
    id::{TenantDomainId, TenantId},
};
use time::Duration;

use crate::{StorageError, SystemTx, TenantTx};

/// Domains of one tenant.
pub const MAX: i64 = 50;
/// A proved domain is looked at again after this long.
const AGAIN: Duration = Duration::days(7);
/// One whose record was missing, after this long.
const SOON: Duration = Duration::days(1);
/// It is given up when the record has been missing for so long.
const PATIENCE: Duration = Duration::days(3);
/// Proof also ends when no DNS server has answered for this long.
const SILENCE: Duration = Duration::days(30);

/// A domain.
#[derive(Debug, Clone)]
pub struct Domain {
    /// Its id.
    pub id: TenantDomainId,
    /// In small letters and punycode.
    pub domain: String,
    /// Token that the DNS record must hold.
    pub token: String,
    /// Since when it is proved.
    pub verified_at: Option<Timestamp>,
    /// When it was last looked at.
    pub checked_at: Option<Timestamp>,
    /// Since when the record of a proved domain is missing.
    pub missing_since: Option<Timestamp>,
}

/// The domains of a tenant, by name.
pub async fn list(tx: &mut TenantTx) -> Result<Vec<Domain>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        "select id, domain, txt_token, verified_at, checked_at, missing_since from tenant_domains where tenant_id = $1 order by domain",
        tenant,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Domain {
            id: row.id.into(),
            domain: row.domain,
            token: row.txt_token,
            verified_at: row.verified_at,
            checked_at: row.checked_at,
            missing_since: row.missing_since,
        })
        .collect())
}

/// Adds one, unproved. [`StorageError::is_conflict_on`] `tenant_domains_tenant_id_domain_key` when
/// it is there.
pub async fn add(
    tx: &mut TenantTx,
    domain: &str,
    token: &str,
    now: Timestamp,
) -> Result<TenantDomainId, StorageError> {
    let (tenant, id) = (tx.tenant().uuid(), TenantDomainId::generate());
    sqlx::query!(
        "insert into tenant_domains (tenant_id, id, domain, txt_token, created_at) values ($1, $2, $3, $4, $5)",
        tenant,
        id.uuid(),
        domain,
        token,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// Removes one. Returns its name; `None` if there is none of this id.
pub async fn remove(tx: &mut TenantTx, id: TenantDomainId) -> Result<Option<String>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        "delete from tenant_domains where tenant_id = $1 and id = $2 returning domain",
        tenant,
        id.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Records that the DNS record is there. [`StorageError::is_conflict_on`] `tenant_domains_verified`
/// when another tenant has proved the domain.
pub async fn found(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: TenantDomainId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update tenant_domains set verified_at = coalesce(verified_at, $3), checked_at = $3, next_check_at = $4, missing_since = null
         where tenant_id = $1 and id = $2",
        tenant.uuid(),
        id.uuid(),
        now,
        now + AGAIN,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Records that the DNS record is missing. A proved domain loses its proof when the record has been
/// missing for three days; true then.
pub async fn missed(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: TenantDomainId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let given_up = sqlx::query_scalar!(
        r#"update tenant_domains set checked_at = $3, next_check_at = $5,
             missing_since = case when verified_at is null then null else coalesce(missing_since, $3) end,
             verified_at = case when missing_since <= $4 then null else verified_at end
           where tenant_id = $1 and id = $2
           returning coalesce(missing_since <= $4 and verified_at is null, false) as "given_up!""#,
        tenant.uuid(),
        id.uuid(),
        now,
        now - PATIENCE,
        now + SOON,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(given_up.unwrap_or_default())
}

/// Claims a proved domain that is due for a check. No other caller gets it for a day.
pub async fn due(
    tx: &mut SystemTx,
    now: Timestamp,
) -> Result<Option<(TenantId, Domain)>, StorageError> {
    let row = sqlx::query!(
        "update tenant_domains d set next_check_at = $2 from (
           select tenant_id, id from tenant_domains where verified_at is not null and next_check_at <= $1
           order by next_check_at limit 1 for update skip locked
         ) due where d.tenant_id = due.tenant_id and d.id = due.id
         returning d.tenant_id, d.id, d.domain, d.txt_token, d.verified_at, d.checked_at, d.missing_since",
        now,
        now + SOON,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| {
        let domain = Domain {
            id: row.id.into(),
            domain: row.domain,
            token: row.txt_token,
            verified_at: row.verified_at,
            checked_at: row.checked_at,
            missing_since: row.missing_since,
        };
        (row.tenant_id.into(), domain)
    }))
}

/// Records that no DNS server answered. A domain without an answer for thirty days loses its proof;
/// true then.
pub async fn unanswered(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: TenantDomainId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update tenant_domains set verified_at = null where tenant_id = $1 and id = $2 and verified_at is not null and checked_at < $3",
        tenant.uuid(),
        id.uuid(),
        now - SILENCE,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The tenant that has proved a domain, and the token in its record.
pub async fn holder(
    tx: &mut SystemTx,
    domain: &str,
) -> Result<Option<(TenantId, TenantDomainId, String)>, StorageError> {
    let row = sqlx::query!(
        "select tenant_id, id, txt_token from tenant_domains where domain = $1 and verified_at is not null",
        domain,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.tenant_id.into(), row.id.into(), row.txt_token)))
}

/// Takes a domain from a tenant whose record has gone.
pub async fn lose(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: TenantDomainId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update tenant_domains set verified_at = null, missing_since = null, checked_at = $3 where tenant_id = $1 and id = $2",
        tenant.uuid(),
        id.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Whether this tenant has proved this domain.
pub async fn is_proved(
    tx: &mut SystemTx,
    tenant: TenantId,
    domain: &str,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from tenant_domains where tenant_id = $1 and domain = $2 and verified_at is not null) as "is!""#,
        tenant.uuid(),
        domain,
    )
    .fetch_one(tx.connection())
    .await?)
}
