//! Members of tenants, and their roles.

use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
    member::Role,
};

use crate::{
    StorageError, SystemTx,
    platform::tenants::{Tenant, read_slug},
};

/// A tenant that a person belongs to.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The tenant.
    pub tenant: Tenant,
    /// The person's role.
    pub role: Role,
    /// Raised to invalidate the access tokens of this membership.
    pub epoch: i32,
}

/// A tenant of a person that does not work now.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// The tenant.
    pub tenant: Tenant,
    /// The person's role.
    pub role: Role,
    /// Stopped by an operator: no owner takes that back.
    pub is_by_operator: bool,
    /// The operator's message to the members.
    pub message: Option<String>,
    /// When it will be destroyed, if it was deleted.
    pub delete_after: Option<Timestamp>,
}

/// The suspended tenants of a person, and those that were deleted and are still there (AUTH-M6), by
/// name.
pub async fn stopped_of(tx: &mut SystemTx, user: UserId) -> Result<Vec<Stopped>, StorageError> {
    let rows = sqlx::query!(
        "select t.id, t.name, t.epoch, t.created_at, t.suspended_at, t.suspend_reason, t.delete_after, p.slug, m.role
         from memberships m join tenants t on t.id = m.tenant_id and t.status in ('suspended', 'deleting')
         join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
         where m.user_id = $1 and m.status = 'active'
         order by lower(t.name), t.id",
        user.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Stopped {
                tenant: Tenant {
                    id: TenantId::from_uuid(row.id),
                    slug: read_slug(&row.slug)?,
                    name: row.name,
                    epoch: row.epoch,
                    created_at: row.created_at,
                },
                role: read_role(&row.role)?,
                is_by_operator: row.suspended_at.is_some(),
                message: row.suspend_reason.filter(|text| !text.is_empty()),
                delete_after: row.delete_after,
            })
        })
        .collect()
}

/// A member as the console shows it.
#[derive(Debug, Clone)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// As they call themselves.
    pub display_name: String,
    /// Primary address, as typed.
    pub email: String,
    /// Role.
    pub role: Role,
    /// Since when.
    pub since: Timestamp,
}

/// The active tenants of a person, by name.
pub async fn workspaces_of(
    tx: &mut SystemTx,
    user: UserId,
) -> Result<Vec<Workspace>, StorageError> {
    let rows = sqlx::query!(
        "select t.id, t.name, t.epoch, t.created_at, p.slug, m.role, m.epoch as member_epoch
         from memberships m join tenants t on t.id = m.tenant_id and t.status = 'active'
         join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
         where m.user_id = $1 and m.status = 'active'
         order by lower(t.name), t.id",
        user.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Workspace {
                tenant: Tenant {
                    id: TenantId::from_uuid(row.id),
                    slug: read_slug(&row.slug)?,
                    name: row.name,
                    epoch: row.epoch,
                    created_at: row.created_at,
                },
                role: read_role(&row.role)?,
                epoch: row.member_epoch,
            })
        })
        .collect()
}

/// The tenant that a slug names, if the person belongs to it. An unknown slug and a stranger's slug
/// are the same `None` (AUTH-M2).
pub async fn workspace_of(
    tx: &mut SystemTx,
    user: UserId,
    slug: &str,
) -> Result<Option<Workspace>, StorageError> {
    let row = sqlx::query!(
        "select t.id, t.name, t.epoch, t.created_at, p.slug, m.role, m.epoch as member_epoch
         from tenant_slugs s join tenants t on t.id = s.tenant_id and t.status = 'active'
         join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
         join memberships m on m.tenant_id = t.id and m.user_id = $1 and m.status = 'active'
         where s.slug = $2 and s.state in ('primary', 'alias')",
        user.uuid(),
        slug,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(Workspace {
            tenant: Tenant {
                id: TenantId::from_uuid(row.id),
                slug: read_slug(&row.slug)?,
                name: row.name,
                epoch: row.epoch,
                created_at: row.created_at,
            },
            role: read_role(&row.role)?,
            epoch: row.member_epoch,
        })
    })
    .transpose()
}

/// The person's role in a tenant; `None` for a stranger or a former member.
pub async fn role_of(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
) -> Result<Option<Role>, StorageError> {
    let role = sqlx::query_scalar!(
        "select role from memberships where tenant_id = $1 and user_id = $2 and status = 'active'",
        tenant.uuid(),
        user.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    role.as_deref().map(read_role).transpose()
}

/// Lists active members of a tenant, strongest role first, then by name. It reads people's names,
/// which the tenant's role cannot read, hence the system scope. The tenant is an argument and comes
/// from a checked [`Workspace`].
pub async fn list(tx: &mut SystemTx, tenant: TenantId) -> Result<Vec<Member>, StorageError> {
    let rows = sqlx::query!(
        "select m.user_id, u.display_name, e.address, m.role, m.created_at
         from memberships m join users u on u.id = m.user_id
         join user_emails e on e.user_id = u.id and e.is_primary
         where m.tenant_id = $1 and m.status = 'active'
         order by array_position(array['owner', 'admin', 'developer', 'member', 'viewer'], m.role), lower(u.display_name), m.user_id",
        tenant.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Member {
                user: UserId::from_uuid(row.user_id),
                display_name: row.display_name,
                email: row.address,
                role: read_role(&row.role)?,
                since: row.created_at,
            })
        })
        .collect()
}

/// The constraint that [`set_role`] or [`end`] violates at commit when it would leave the tenant
/// without an owner (AUTH-M1, CASE-162).
pub const LAST_OWNER: &str = "memberships_owner";

/// Adds a member, or lets a former one back in. Raises the membership's epoch when it existed.
pub async fn add(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into memberships (tenant_id, user_id, role, created_at) values ($1, $2, $3, $4)
         on conflict (tenant_id, user_id) do update
           set role = excluded.role, status = 'active', ended_at = null, epoch = memberships.epoch + 1,
             rejoined_at = case when memberships.status = 'active' then memberships.rejoined_at else excluded.created_at end",
        tenant.uuid(),
        user.uuid(),
        role.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Changes a member's role and raises the membership's epoch, which is returned; `None` for a
/// stranger.
pub async fn set_role(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
    role: Role,
) -> Result<Option<i32>, StorageError> {
    Ok(sqlx::query_scalar!(
        "update memberships set role = $3, epoch = epoch + 1 where tenant_id = $1 and user_id = $2 and status = 'active' returning epoch",
        tenant.uuid(),
        user.uuid(),
        role.as_str(),
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Ends a membership and raises its epoch, which is returned; `None` for a stranger.
pub async fn end(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<Option<i32>, StorageError> {
    // Delete accounts that the person linked for calls here.
    sqlx::query!(
        "delete from upstream_connections where tenant_id = $1 and owner_id = $2",
        tenant.uuid(),
        user.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(sqlx::query_scalar!(
        "update memberships set status = 'ended', ended_at = $3, epoch = epoch + 1
         where tenant_id = $1 and user_id = $2 and status = 'active' returning epoch",
        tenant.uuid(),
        user.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?)
}

pub(crate) fn read_role(text: &str) -> Result<Role, StorageError> {
    text.parse().map_err(|_| StorageError::Inconsistent {
        table: "memberships",
        column: "role",
    })
}

/// Returns whether a person with this proved address is an active member.
pub async fn is_member(
    tx: &mut SystemTx,
    tenant: TenantId,
    address_norm: &str,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from memberships m join user_emails e on e.user_id = m.user_id and e.verified_at is not null
             where m.tenant_id = $1 and m.status = 'active' and e.address_norm = $2) as "is!""#,
        tenant.uuid(),
        address_norm,
    )
    .fetch_one(tx.connection())
    .await?)
}
