//! Accounts at other services by which people sign in here (AUTH-F3 to AUTH-F6).

use portolan_model::{
    Timestamp,
    id::{IdentityLinkId, TenantId, UserId},
};

use crate::{StorageError, SystemTx};

/// The key of an identity at a provider. It is never an address or a login name (AUTH-F3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Whose provider says so, if it is one of a tenant: it speaks for that tenant alone (AUTH-F7).
    pub tenant: Option<TenantId>,
    /// Name or id of the provider.
    pub provider: &'a str,
    /// Who issued it.
    pub issuer: &'a str,
    /// Whom it is about, there.
    pub subject: &'a str,
}

/// The person and link that an identity belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The link.
    pub link: IdentityLinkId,
    /// Whose.
    pub user: UserId,
    /// Whether that person may sign in.
    pub is_active: bool,
}

/// A link, as its person sees it.
#[derive(Debug, Clone)]
pub struct Linked {
    /// Its id.
    pub id: IdentityLinkId,
    /// The tenant of the provider, if it is a tenant's own.
    pub tenant: Option<TenantId>,
    /// That tenant's name.
    pub tenant_name: Option<String>,
    /// Name or id of the provider.
    pub provider: String,
    /// Who issued it.
    pub issuer: String,
    /// How the person knows the account there.
    pub label: String,
    /// Since when.
    pub created_at: Timestamp,
    /// When it was last signed in with.
    pub last_used_at: Option<Timestamp>,
}

/// Whose identity it is.
pub async fn holder(
    tx: &mut SystemTx,
    identity: &Identity<'_>,
) -> Result<Option<Holder>, StorageError> {
    let row = sqlx::query!(
        r#"select l.id, l.user_id, (u.status = 'active' and u.verified_at is not null) as "is_active!"
           from identity_links l join users u on u.id = l.user_id
           where l.tenant_id is not distinct from $1 and l.provider = $2 and l.issuer = $3 and l.subject = $4"#,
        identity.tenant.map(TenantId::uuid),
        identity.provider,
        identity.issuer,
        identity.subject,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Holder {
        link: row.id.into(),
        user: row.user_id.into(),
        is_active: row.is_active,
    }))
}

/// Links an identity to a person. [`StorageError::is_conflict_on`] `identity_links_key` when it is
/// already linked.
pub async fn link(
    tx: &mut SystemTx,
    user: UserId,
    identity: &Identity<'_>,
    (label, email_seen): (&str, Option<&str>),
    now: Timestamp,
) -> Result<IdentityLinkId, StorageError> {
    let id = IdentityLinkId::generate();
    sqlx::query!(
        "insert into identity_links (id, user_id, tenant_id, provider, issuer, subject, label, email_seen, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        id.uuid(),
        user.uuid(),
        identity.tenant.map(TenantId::uuid),
        identity.provider,
        identity.issuer,
        identity.subject,
        label,
        email_seen,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// Notes a sign-in, and how the account calls itself now.
pub async fn used(
    tx: &mut SystemTx,
    link: IdentityLinkId,
    label: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update identity_links set last_used_at = $2, label = $3 where id = $1",
        link.uuid(),
        now,
        label,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The identities of a person, oldest first.
pub async fn of_user(tx: &mut SystemTx, user: UserId) -> Result<Vec<Linked>, StorageError> {
    let rows = sqlx::query!(
        r#"select l.id, l.tenant_id, t.name as "tenant_name?", l.provider, l.issuer, l.label, l.created_at, l.last_used_at
           from identity_links l left join tenants t on t.id = l.tenant_id
           where l.user_id = $1 order by l.created_at, l.id"#,
        user.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Linked {
            id: row.id.into(),
            tenant: row.tenant_id.map(TenantId::from_uuid),
            tenant_name: row.tenant_name,
            provider: row.provider,
            issuer: row.issuer,
            label: row.label,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
        })
        .collect())
}

/// Removes one of a person's identities. Returns its provider; `None` if it is not theirs.
pub async fn unlink(
    tx: &mut SystemTx,
    user: UserId,
    id: IdentityLinkId,
) -> Result<Option<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "delete from identity_links where id = $1 and user_id = $2 returning provider",
        id.uuid(),
        user.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Removes all of them.
pub async fn unlink_all(tx: &mut SystemTx, user: UserId) -> Result<u64, StorageError> {
    let done = sqlx::query!("delete from identity_links where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    Ok(done.rows_affected())
}
