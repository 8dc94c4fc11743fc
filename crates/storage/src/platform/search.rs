//! Search over everything that a workspace has.

use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
};
use uuid::Uuid;

use crate::{StorageError, SystemTx, TenantTx};

/// Most results of one kind.
const OF_A_KIND: i64 = 8;

/// The kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Kind {
    /// A published server.
    Server,
    /// A source of tools.
    Source,
    /// The credential of a source; the id is the source's.
    Credential,
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A member; the id is the person's.
    Member,
    /// An API key.
    ApiKey,
    /// A service account.
    ServiceAccount,
    /// An AI client that the workspace registered or that has a grant in it.
    Client,
}

/// A result.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its kind.
    pub kind: Kind,
    /// Its id within its kind.
    pub id: Uuid,
    /// Display name.
    pub name: String,
    /// Distinguishes things of equal name: a path, a URI, an address.
    pub detail: String,
}

/// Finds servers, sources, credentials, tools, prompts and resources whose name or detail contains
/// every word. `words` are in lower case. At most eight results of a kind; those whose name begins
/// with the first word come first.
pub async fn registry(tx: &mut TenantTx, words: &[String]) -> Result<Vec<Found>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Found,
        r#"with things as (
             select 1 as rank, 'server' as kind, id, name, slug as detail from servers
              where tenant_id = $1 and deleted_at is null
             union all
             select 2, 'source', id, name, base_url from sources
              where tenant_id = $1 and deleted_at is null
             union all
             select 3, 'tool', t.id, coalesce(t.name_override, t.name),
                    coalesce(t.title_override, t.title) || ' · ' || t.operation_key || ' · ' || s.name
               from tools t join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id
              where t.tenant_id = $1 and s.deleted_at is null
             union all
             select 4, 'prompt', p.id, p.name, p.title
               from prompts p left join sources s on s.tenant_id = p.tenant_id and s.id = p.source_id
              where p.tenant_id = $1 and p.deleted_at is null and s.deleted_at is null
             union all
             select 5, 'resource', r.id, r.name, r.uri
               from resources r left join sources s on s.tenant_id = r.tenant_id and s.id = r.source_id
              where r.tenant_id = $1 and r.deleted_at is null and s.deleted_at is null
             union all
             select 6, 'credential', s.id, 'Credential of ' || s.name, c.kind
               from source_credentials c join sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
              where c.tenant_id = $1 and s.deleted_at is null
           ), found as (
             select *, row_number() over (partition by kind order by starts_with(lower(name), $2[1]) desc, lower(name), id) as place
               from things where not exists
                 (select 1 from unnest($2::text[]) as word where position(word in lower(name || ' ' || detail)) = 0)
           )
           select kind as "kind!: Kind", id as "id!", name as "name!", detail as "detail!"
             from found where place <= $3
            order by starts_with(lower(name), $2[1]) desc, rank, place"#,
        tenant,
        words,
        OF_A_KIND
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Which people, keys and clients a search covers.
#[derive(Debug, Clone, Copy)]
pub struct PeopleSearch {
    /// The tenant, from a checked workspace.
    pub tenant: TenantId,
    /// The person who searches, if it is one. The person's own API keys are found.
    pub person: Option<UserId>,
    /// Find the keys of others, service accounts and clients, too.
    pub is_admin: bool,
}

/// Finds members, API keys, service accounts and clients in the same way. It reads people's names,
/// which the tenant's role cannot read, hence the system scope, as [`crate::accounts::members`]
/// does.
pub async fn people(
    tx: &mut SystemTx,
    search: PeopleSearch,
    words: &[String],
    now: Timestamp,
) -> Result<Vec<Found>, StorageError> {
    Ok(sqlx::query_as!(
        Found,
        r#"with things as (
             select 1 as rank, 'member' as kind, u.id, u.display_name as name, e.address as detail
               from memberships m join users u on u.id = m.user_id
               join user_emails e on e.user_id = u.id and e.is_primary
              where m.tenant_id = $1 and m.status = 'active'
             union all
             select 2, 'api_key', k.id, k.name, k.hint from api_keys k
              where k.tenant_id = $1 and ($4 or k.user_id = $5) and k.revoked_at is null and k.expires_at > $6
             union all
             select 3, 'service_account', a.id, c.name, c.client_id
               from service_accounts a join oauth_clients c on c.id = a.client_ref where a.tenant_id = $1 and $4
             union all
             select 4, 'client', c.id, c.name, c.client_id from oauth_clients c
              where $4 and ((c.tenant_id = $1 and c.kind = 'static' and c.status <> 'deleted')
                or (c.kind in ('dynamic', 'cimd') and exists
                  (select 1 from grants g where g.tenant_id = $1 and g.client_ref = c.id and g.revoked_at is null and g.expires_at > $6)))
           ), found as (
             select *, row_number() over (partition by kind order by starts_with(lower(name), $2[1]) desc, lower(name), id) as place
               from things where not exists
                 (select 1 from unnest($2::text[]) as word where position(word in lower(name || ' ' || detail)) = 0)
           )
           select kind as "kind!: Kind", id as "id!", name as "name!", detail as "detail!"
             from found where place <= $3
            order by starts_with(lower(name), $2[1]) desc, rank, place"#,
        search.tenant.uuid(),
        words,
        OF_A_KIND,
        search.is_admin,
        search.person.map(UserId::uuid),
        now
    )
    .fetch_all(tx.connection())
    .await?)
}
