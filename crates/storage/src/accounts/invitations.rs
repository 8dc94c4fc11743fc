//! Invitations to a tenant (AUTH-M5): bound to an address, used once, for a week.

use portolan_model::{
    Digest, Timestamp,
    email::EmailAddress,
    id::{InvitationId, TenantId, UserId},
    member::Role,
};
use time::Duration;

use crate::{StorageError, SystemTx, accounts::members::read_role};

/// How long an invitation works.
pub const LIFE: Duration = Duration::days(7);

/// An invitation that can be accepted.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// Its id. It opens nothing by itself.
    pub id: InvitationId,
    /// Where to.
    pub tenant: TenantId,
    /// What people call that workspace.
    pub tenant_name: String,
    /// Its name in URLs.
    pub slug: String,
    /// To whom, as typed.
    pub address: String,
    /// To whom, in the form that is compared.
    pub address_norm: String,
    /// As what, at most.
    pub role: Role,
    /// Who invites.
    pub inviter: UserId,
    /// As they call themselves.
    pub inviter_name: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
}

/// An invitation to be written.
#[derive(Debug)]
pub struct NewInvitation<'a> {
    /// Its id.
    pub id: InvitationId,
    /// Where to.
    pub tenant: TenantId,
    /// To whom.
    pub address: &'a EmailAddress,
    /// As what.
    pub role: Role,
    /// Digest of the link's token.
    pub digest: &'a Digest,
    /// Who invites.
    pub inviter: UserId,
}

/// Opens an invitation; the open one for the same address goes. True if there was one that still
/// worked.
pub async fn open(
    tx: &mut SystemTx,
    new: &NewInvitation<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    // Two at once take turns, or one of them would meet the unique index.
    sqlx::query!(
        "select id from tenants where id = $1 for no key update",
        new.tenant.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    let replaced = sqlx::query_scalar!(
        "update invitations set revoked_at = $3 where tenant_id = $1 and address_norm = $2 and accepted_at is null and revoked_at is null
         returning expires_at",
        new.tenant.uuid(),
        new.address.normalised(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    sqlx::query!(
        "insert into invitations (id, tenant_id, address, address_norm, role, digest, inviter_id, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        new.id.uuid(),
        new.tenant.uuid(),
        new.address.as_typed(),
        new.address.normalised(),
        new.role.as_str(),
        new.digest.as_bytes(),
        new.inviter.uuid(),
        now,
        now + LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(replaced.is_some_and(|until| until > now))
}

struct InvitationRow {
    id: uuid::Uuid,
    tenant_id: uuid::Uuid,
    tenant_name: String,
    slug: String,
    address: String,
    address_norm: String,
    role: String,
    inviter_id: uuid::Uuid,
    inviter_name: String,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl TryFrom<InvitationRow> for Invitation {
    type Error = StorageError;

    fn try_from(row: InvitationRow) -> Result<Self, StorageError> {
        Ok(Self {
            id: row.id.into(),
            tenant: row.tenant_id.into(),
            tenant_name: row.tenant_name,
            slug: row.slug,
            address: row.address,
            address_norm: row.address_norm,
            role: read_role(&row.role)?,
            inviter: row.inviter_id.into(),
            inviter_name: row.inviter_name,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

/// The open invitations of a tenant, newest first.
pub async fn list(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<Invitation>, StorageError> {
    let rows = sqlx::query_as!(
        InvitationRow,
        "select i.id, i.tenant_id, t.name as tenant_name, s.slug, i.address, i.address_norm, i.role, i.inviter_id,
           u.display_name as inviter_name, i.created_at, i.expires_at
         from invitations i join tenants t on t.id = i.tenant_id and t.status = 'active'
         join tenant_slugs s on s.tenant_id = t.id and s.state = 'primary' join users u on u.id = i.inviter_id
         where i.tenant_id = $1 and i.accepted_at is null and i.revoked_at is null and i.expires_at > $2
         order by i.created_at desc, i.id desc limit 500",
        tenant.uuid(),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter().map(Invitation::try_from).collect()
}

/// The open invitation with this id.
pub async fn find(
    tx: &mut SystemTx,
    id: InvitationId,
    now: Timestamp,
) -> Result<Option<Invitation>, StorageError> {
    let row = sqlx::query_as!(
        InvitationRow,
        "select i.id, i.tenant_id, t.name as tenant_name, s.slug, i.address, i.address_norm, i.role, i.inviter_id,
           u.display_name as inviter_name, i.created_at, i.expires_at
         from invitations i join tenants t on t.id = i.tenant_id and t.status = 'active'
         join tenant_slugs s on s.tenant_id = t.id and s.state = 'primary' join users u on u.id = i.inviter_id
         where i.id = $1 and i.accepted_at is null and i.revoked_at is null and i.expires_at > $2",
        id.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(Invitation::try_from).transpose()
}

/// The open invitation whose link this is.
pub async fn find_by_link(
    tx: &mut SystemTx,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<Invitation>, StorageError> {
    let id = sqlx::query_scalar!(
        "select id from invitations where digest = $1",
        digest.as_bytes()
    )
    .fetch_optional(tx.connection())
    .await?;
    match id {
        Some(id) => find(tx, id.into(), now).await,
        None => Ok(None),
    }
}

/// Accepts an invitation, once. False if it was accepted, revoked, replaced or is too old.
pub async fn accept(
    tx: &mut SystemTx,
    id: InvitationId,
    user: UserId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update invitations set accepted_at = $3, accepted_by = $2
         where id = $1 and accepted_at is null and revoked_at is null and expires_at > $3",
        id.uuid(),
        user.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Revokes an open invitation of a tenant. Returns to whom it went; `None` if there is none.
pub async fn revoke(
    tx: &mut SystemTx,
    tenant: TenantId,
    id: InvitationId,
    now: Timestamp,
) -> Result<Option<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "update invitations set revoked_at = $3
         where id = $2 and tenant_id = $1 and accepted_at is null and revoked_at is null returning address",
        tenant.uuid(),
        id.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// How many invitations a tenant has sent since a time (AUTH-M9).
pub async fn count_since(
    tx: &mut SystemTx,
    tenant: TenantId,
    since: Timestamp,
) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from invitations where tenant_id = $1 and created_at > $2"#,
        tenant.uuid(),
        since,
    )
    .fetch_one(tx.connection())
    .await?)
}
