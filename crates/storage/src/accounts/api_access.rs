//! Access of service accounts to the management API (API-23 to API-25).

use portolan_model::{
    Timestamp,
    api_scope::ApiScope,
    id::{ServiceAccountId, TenantId},
    member::Role,
};
use uuid::Uuid;

use crate::{
    StorageError, SystemTx,
    accounts::{
        access_tokens::{self, IssuedToken, Issuer, read_scopes},
        members::read_role,
    },
};

/// The rights of the tokens that a service account gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAccess {
    /// The account.
    pub account: ServiceAccountId,
    /// Role of a token.
    pub role: Role,
    /// Scopes of a token.
    pub scopes: Vec<ApiScope>,
    /// Time of its last change.
    pub changed_at: Timestamp,
    /// Time of the last token.
    pub last_used_at: Option<Timestamp>,
}

struct AccessRow {
    account_id: Uuid,
    role: String,
    scopes: Vec<String>,
    changed_at: Timestamp,
    last_used_at: Option<Timestamp>,
}

impl TryFrom<AccessRow> for ApiAccess {
    type Error = StorageError;

    fn try_from(row: AccessRow) -> Result<Self, StorageError> {
        Ok(Self {
            account: row.account_id.into(),
            role: read_role(&row.role)?,
            scopes: read_scopes(&row.scopes),
            changed_at: row.changed_at,
            last_used_at: row.last_used_at,
        })
    }
}

/// The access of each service account of a tenant that has some.
pub async fn list(tx: &mut SystemTx, tenant: TenantId) -> Result<Vec<ApiAccess>, StorageError> {
    let rows = sqlx::query_as!(
        AccessRow,
        "select account_id, role, scopes, changed_at, last_used_at from api_access
         where tenant_id = $1",
        tenant.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter().map(ApiAccess::try_from).collect()
}

/// Gives an account access in place of what it had, which ends with its tokens. False if there is no
/// such account. Its row is locked: two changes follow one another.
pub async fn give(
    tx: &mut SystemTx,
    tenant: TenantId,
    account: ServiceAccountId,
    (role, scopes): (Role, &[ApiScope]),
    now: Timestamp,
) -> Result<bool, StorageError> {
    let found = sqlx::query_scalar!(
        "select id from service_accounts where tenant_id = $1 and id = $2 for no key update",
        tenant.uuid(),
        account.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    if found.is_none() {
        return Ok(false);
    }
    take_away(tx, tenant, account).await?;
    let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into api_access (tenant_id, account_id, role, scopes, changed_at)
         values ($1, $2, $3, $4, $5)",
        tenant.uuid(),
        account.uuid(),
        role.as_str(),
        &scopes,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(true)
}

/// Takes the access of an account away, with the tokens that it got. False if it had none.
pub async fn take_away(
    tx: &mut SystemTx,
    tenant: TenantId,
    account: ServiceAccountId,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "delete from api_access where tenant_id = $1 and account_id = $2",
        tenant.uuid(),
        account.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The access of an account, if `slug` names its tenant. The caller cannot distinguish an account
/// without access from an unknown slug, or from that of another tenant.
pub async fn of_account(
    tx: &mut SystemTx,
    tenant: TenantId,
    account: ServiceAccountId,
    slug: &str,
) -> Result<Option<ApiAccess>, StorageError> {
    let row = sqlx::query_as!(
        AccessRow,
        "select a.account_id, a.role, a.scopes, a.changed_at, a.last_used_at
         from api_access a
         join tenant_slugs s on s.tenant_id = a.tenant_id and s.state in ('primary', 'alias')
         where a.tenant_id = $1 and a.account_id = $2 and s.slug = $3",
        tenant.uuid(),
        account.uuid(),
        slug,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(ApiAccess::try_from).transpose()
}

/// Writes a token of an account, with the account's name and the role of its access. False if the
/// access was changed or taken away since it was read, or if the account is off or has another
/// epoch. The row of the access is locked, so that a change waits and ends the token; a later epoch
/// ends it too.
pub async fn issue(
    tx: &mut SystemTx,
    tenant: TenantId,
    (access, epoch, name): (&ApiAccess, i32, &str),
    token: &IssuedToken<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update api_access x set last_used_at = $4 from service_accounts a
         where x.tenant_id = $1 and x.account_id = $2 and x.changed_at = $3
           and a.tenant_id = x.tenant_id and a.id = x.account_id
           and a.epoch = $5 and a.disabled_at is null",
        tenant.uuid(),
        access.account.uuid(),
        access.changed_at,
        now,
        epoch,
    )
    .execute(tx.connection())
    .await?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    let issuer = Issuer::Account(access.account, epoch);
    access_tokens::issue(tx, tenant, (issuer, name, access.role), token, now).await?;
    Ok(true)
}
