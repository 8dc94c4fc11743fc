//! Tenants and their names in URLs.

use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
    member::Role,
    slug::Slug,
};

use crate::{StorageError, SystemTx, TenantTx};

/// A tenant.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its present name in URLs.
    pub slug: Slug,
    /// What people call it.
    pub name: String,
    /// Raised to invalidate every access token of the tenant.
    pub epoch: i32,
    /// Since when.
    pub created_at: Timestamp,
}

/// The constraint that [`create`] violates when the slug is taken, by a tenant of today or of
/// former times (AUTH-M3).
pub const SLUG_TAKEN: &str = "tenant_slugs_pkey";

/// Creates a tenant whose first owner is `owner`. [`StorageError::is_conflict_on`] [`SLUG_TAKEN`]
/// when the slug is not free.
pub async fn create(
    tx: &mut SystemTx,
    name: &str,
    slug: &Slug,
    owner: UserId,
    now: Timestamp,
) -> Result<Tenant, StorageError> {
    let id = TenantId::generate();
    sqlx::query!(
        "insert into tenants (id, name, created_at) values ($1, $2, $3)",
        id.uuid(),
        name,
        now
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into tenant_slugs (slug, tenant_id, state, since) values ($1, $2, 'primary', $3)",
        slug.as_str(),
        id.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into memberships (tenant_id, user_id, role, created_at) values ($1, $2, $3, $4)",
        id.uuid(),
        owner.uuid(),
        Role::Owner.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(Tenant {
        id,
        slug: slug.clone(),
        name: name.to_owned(),
        epoch: 0,
        created_at: now,
    })
}

/// Finds the active tenant by a slug, a present or a former one. The slug in the answer is the
/// present one.
pub async fn by_slug(tx: &mut SystemTx, slug: &str) -> Result<Option<Tenant>, StorageError> {
    let row = sqlx::query!(
        "select t.id, t.name, t.epoch, t.created_at, p.slug
         from tenant_slugs s join tenants t on t.id = s.tenant_id
         join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
         where s.slug = $1 and s.state in ('primary', 'alias') and t.status = 'active'",
        slug,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(Tenant {
            id: TenantId::from_uuid(row.id),
            slug: read_slug(&row.slug)?,
            name: row.name,
            epoch: row.epoch,
            created_at: row.created_at,
        })
    })
    .transpose()
}

/// The active tenant with this id.
pub async fn find(tx: &mut SystemTx, id: TenantId) -> Result<Option<Tenant>, StorageError> {
    let row = sqlx::query!(
        "select t.id, t.name, t.epoch, t.created_at, p.slug
         from tenants t join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
         where t.id = $1 and t.status = 'active'",
        id.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(Tenant {
            id: TenantId::from_uuid(row.id),
            slug: read_slug(&row.slug)?,
            name: row.name,
            epoch: row.epoch,
            created_at: row.created_at,
        })
    })
    .transpose()
}

/// Changes what people call the transaction's tenant. The slug stays.
pub async fn rename(tx: &mut TenantTx, name: &str) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!("update tenants set name = $2 where id = $1", tenant, name)
        .execute(tx.connection())
        .await?;
    Ok(())
}

/// How the servers of a tenant are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// By HTTP+SSE too, the transport of 2024-11-05.
    pub http_sse: bool,
    /// By tokens that name no server: each opens all of them, and not the default one alone
    /// (AUTH-5.4, node rule (c)).
    pub workspace_tokens: bool,
}

impl Default for Reach {
    /// As a new tenant's are.
    fn default() -> Self {
        Self {
            http_sse: true,
            workspace_tokens: true,
        }
    }
}

/// The changes to that; an absent field stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReachChange {
    /// Of [`Reach::http_sse`].
    pub http_sse: Option<bool>,
    /// Of [`Reach::workspace_tokens`].
    pub workspace_tokens: Option<bool>,
}

/// How the servers of the transaction's tenant are reached.
pub async fn reach(tx: &mut TenantTx) -> Result<Reach, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        "select http_sse, workspace_tokens from tenants where id = $1",
        tenant
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(Reach {
        http_sse: row.http_sse,
        workspace_tokens: row.workspace_tokens,
    })
}

/// Applies the given fields. The caller must raise the registry revision, which notifies the nodes.
pub async fn change_reach(tx: &mut TenantTx, change: ReachChange) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "update tenants set http_sse = coalesce($2, http_sse), workspace_tokens = coalesce($3, workspace_tokens) where id = $1",
        tenant,
        change.http_sse,
        change.workspace_tokens
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub(crate) fn read_slug(text: &str) -> Result<Slug, StorageError> {
    text.parse().map_err(|_| StorageError::Inconsistent {
        table: "tenant_slugs",
        column: "slug",
    })
}
