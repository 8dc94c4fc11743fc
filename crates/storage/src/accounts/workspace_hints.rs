//! The workspace picker of the consent page: what a person may choose, and what is preselected
//! (AUTH-N3, AUTH-5.5).

use std::str::FromStr;

use portolan_model::{
    Timestamp,
    id::{ClientId, TenantId, UserId},
    member::Role,
};

use crate::{StorageError, SystemTx};

/// A workspace with the person as an active member.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The tenant.
    pub tenant: TenantId,
    /// Its current slug.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// The person's role.
    pub role: Role,
}

/// Active workspaces of the person. The first is what to preselect: the one this client was last
/// seen to want, else the one in which the person last allowed something, else by name.
pub async fn choices(
    tx: &mut SystemTx,
    user: UserId,
    client: ClientId,
) -> Result<Vec<Choice>, StorageError> {
    let rows = sqlx::query!(
        r#"select t.id, s.slug, t.name, m.role
           from memberships m
             join tenants t on t.id = m.tenant_id and t.status = 'active'
             join tenant_slugs s on s.tenant_id = t.id and s.state = 'primary'
             left join workspace_hints h on h.client_ref = $2 and h.user_id = $1 and h.tenant_id = t.id
           where m.user_id = $1 and m.status = 'active'
           order by h.seen_at desc nulls last,
             (select max(g.created_at) from grants g where g.tenant_id = t.id and g.user_id = $1) desc nulls last,
             lower(t.name), t.id
           limit 200"#,
        user.uuid(),
        client.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Choice {
                tenant: row.id.into(),
                slug: row.slug,
                name: row.name,
                role: Role::from_str(&row.role).map_err(|_| StorageError::Inconsistent {
                    table: "memberships",
                    column: "role",
                })?,
            })
        })
        .collect()
}

/// The tenant that a slug of a URL names, if the person is an active member: current name or alias.
/// Unknown and foreign look the same (CASE-96).
pub async fn choice_by_slug(
    tx: &mut SystemTx,
    user: UserId,
    slug: &str,
) -> Result<Option<Choice>, StorageError> {
    let row = sqlx::query!(
        r#"select t.id, p.slug, t.name, m.role
           from tenant_slugs s
             join tenants t on t.id = s.tenant_id and t.status = 'active'
             join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
             join memberships m on m.tenant_id = t.id and m.user_id = $1 and m.status = 'active'
           where s.slug = $2 and s.state in ('primary', 'alias')"#,
        user.uuid(),
        slug,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(Choice {
            tenant: row.id.into(),
            slug: row.slug,
            name: row.name,
            role: Role::from_str(&row.role).map_err(|_| StorageError::Inconsistent {
                table: "memberships",
                column: "role",
            })?,
        })
    })
    .transpose()
}

/// Remembers which workspace a client of this person wants.
pub async fn remember(
    tx: &mut SystemTx,
    client: ClientId,
    user: UserId,
    tenant: TenantId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into workspace_hints (client_ref, user_id, tenant_id, seen_at) values ($1, $2, $3, $4)
         on conflict (client_ref, user_id) do update set tenant_id = excluded.tenant_id, seen_at = excluded.seen_at",
        client.uuid(),
        user.uuid(),
        tenant.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
