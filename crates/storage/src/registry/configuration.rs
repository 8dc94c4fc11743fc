//! Configuration as code: the owners of objects, and plans that are applied once (CONF-6, CONF-8).

use portolan_model::{
    Digest, Timestamp,
    id::{Id, PlanId, ResourceId, ServerId},
};
use time::Duration;
use uuid::Uuid;

use crate::{
    StorageError, TenantTx,
    registry::trash::{DeletedKind, KEPT, Restorable},
};

/// How long a plan can be applied.
pub const VALID: Duration = Duration::minutes(30);

/// Plans that a workspace keeps: older ones end early.
const MOST_PLANS: i64 = 20;

/// The revision of the registry.
pub async fn revision(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        "select registry_revision from tenants where id = $1",
        tenant
    )
    .fetch_one(tx.connection())
    .await?)
}

/// The revision of the registry, which nothing else raises until the transaction ends.
pub async fn lock_revision(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        "select registry_revision from tenants where id = $1 for no key update",
        tenant
    )
    .fetch_one(tx.connection())
    .await?)
}

/// An object that a file owns.
#[derive(Debug, Clone)]
pub struct Owned {
    /// Its kind.
    pub kind: DeletedKind,
    /// Its id within its kind.
    pub id: Uuid,
    /// Name of the file.
    pub owner: String,
}

/// All objects that files own.
pub async fn owned(tx: &mut TenantTx) -> Result<Vec<Owned>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Owned,
        r#"select kind as "kind!: DeletedKind", id as "id!", managed_by as "owner!"
             from (select 'source' as kind, id, managed_by from sources
                    where tenant_id = $1 and deleted_at is null
                   union all
                   select 'server', id, managed_by from servers
                    where tenant_id = $1 and deleted_at is null
                   union all
                   select 'prompt', id, managed_by from prompts
                    where tenant_id = $1 and deleted_at is null and source_id is null
                   union all
                   select 'resource', id, managed_by from resources
                    where tenant_id = $1 and deleted_at is null and source_id is null) as own
            where managed_by is not null"#,
        tenant
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Makes a file the owner of an object.
pub async fn set_owner<K: Restorable>(
    tx: &mut TenantTx,
    id: Id<K>,
    owner: &str,
) -> Result<(), StorageError> {
    let (tenant, id) = (tx.tenant().uuid(), id.uuid());
    macro_rules! own {
        ($table:literal) => {
            sqlx::query!(
                "update " + $table + " set managed_by = $3 where tenant_id = $1 and id = $2",
                tenant,
                id,
                owner
            )
        };
    }
    let own = match K::DELETED {
        DeletedKind::Source => own!("sources"),
        DeletedKind::Server => own!("servers"),
        DeletedKind::Prompt => own!("prompts"),
        DeletedKind::Resource => own!("resources"),
    };
    own.execute(tx.connection()).await?;
    Ok(())
}

/// The server with this slug that was deleted and can be restored.
pub async fn deleted_server(
    tx: &mut TenantTx,
    slug: &str,
    now: Timestamp,
) -> Result<Option<ServerId>, StorageError> {
    let tenant = tx.tenant().uuid();
    let found = sqlx::query_scalar!(
        "select id from servers where tenant_id = $1 and slug = $2 and deleted_at > $3 and name <> ''",
        tenant,
        slug,
        now - KEPT
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(found.map(ServerId::from_uuid))
}

/// The content of a text or file.
#[derive(Debug, Clone)]
pub struct Content {
    /// The resource.
    pub id: ResourceId,
    /// SHA-256, hexadecimal.
    pub digest: String,
    /// The bytes, unless there are more than asked for.
    pub bytes: Option<Vec<u8>>,
}

/// The contents of all resources that were written here, each with up to `most` bytes.
pub async fn contents(tx: &mut TenantTx, most: i32) -> Result<Vec<Content>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select id, encode(sha256(content), 'hex') as "digest!",
                  case when octet_length(content) <= $2 then content end as bytes
             from resources
            where tenant_id = $1 and source_id is null and deleted_at is null and content is not null"#,
        tenant,
        most
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Content {
            id: ResourceId::from_uuid(row.id),
            digest: row.digest,
            bytes: row.bytes,
        })
        .collect())
}

/// A plan to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewPlan<'a> {
    /// Id.
    pub id: PlanId,
    /// Name of the file.
    pub owner: &'a str,
    /// Revision that the changes were computed on.
    pub base_revision: i64,
    /// SHA-256 of the changes.
    pub changes_digest: Digest,
    /// File, documents and secrets, sealed.
    pub sealed: &'a [u8],
}

/// Keeps a plan, and ends the oldest ones beyond the bound.
pub async fn insert_plan(
    tx: &mut TenantTx,
    new: &NewPlan<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into configuration_plans (tenant_id, id, owner, base_revision, changes_digest, sealed, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        tenant,
        new.id.uuid(),
        new.owner,
        new.base_revision,
        &new.changes_digest.as_bytes()[..],
        new.sealed,
        now,
        now + VALID,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from configuration_plans where tenant_id = $1 and id in
           (select id from configuration_plans where tenant_id = $1
             order by created_at desc, id desc offset $2)",
        tenant,
        MOST_PLANS
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the file.
    pub owner: String,
    /// Revision that the changes were computed on.
    pub base_revision: i64,
    /// SHA-256 of the changes.
    pub changes_digest: Vec<u8>,
    /// File, documents and secrets, sealed.
    pub sealed: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Reads a plan that can still be applied, without using it up.
pub async fn find_plan(
    tx: &mut TenantTx,
    id: PlanId,
    now: Timestamp,
) -> Result<Option<Plan>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Plan,
        "select owner, base_revision, changes_digest, sealed, created_at from configuration_plans
          where tenant_id = $1 and id = $2 and applied_at is null and expires_at > $3",
        tenant,
        id.uuid(),
        now
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Uses a plan up. False if it was applied before, or its time is over.
pub async fn take_plan(
    tx: &mut TenantTx,
    id: PlanId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update configuration_plans set applied_at = $3, sealed = ''
          where tenant_id = $1 and id = $2 and applied_at is null and expires_at > $3",
        tenant,
        id.uuid(),
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// True if there is such a plan that was applied, or whose time is over.
pub async fn is_over(tx: &mut TenantTx, id: PlanId) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let found = sqlx::query_scalar!(
        "select id from configuration_plans where tenant_id = $1 and id = $2",
        tenant,
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(found.is_some())
}
