//! Tokens of the management API, in the name of a person or of a workspace (API-1 to API-9).

use portolan_model::{
    Digest, Timestamp,
    api_scope::ApiScope,
    id::{AccessTokenId, PipelineId, ServiceAccountId, SessionId, TenantId, UserId},
    member::Role,
};
use time::Duration;
use uuid::Uuid;

use crate::{
    StorageError, SystemTx,
    accounts::{
        members::{Workspace, read_role},
        ways_in::WayIn,
    },
    platform::tenants::{Tenant, read_slug},
};

/// How exact `last_used_at` is: one write per token and five minutes, not one per request.
pub const USED_STEP: Duration = Duration::minutes(5);

/// The subject of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A person, in all their workspaces or in one.
    Person(UserId, Option<TenantId>),
    /// A workspace, with a role.
    Workspace(TenantId, Role),
}

impl Holder {
    fn columns(self) -> (Option<Uuid>, Option<Uuid>, Option<&'static str>) {
        match self {
            Self::Person(user, tenant) => (tenant.map(TenantId::uuid), Some(user.uuid()), None),
            Self::Workspace(tenant, role) => (Some(tenant.uuid()), None, Some(role.as_str())),
        }
    }

    fn read(
        tenant: Option<Uuid>,
        user: Option<Uuid>,
        role: Option<&str>,
    ) -> Result<Self, StorageError> {
        match (tenant, user, role) {
            (tenant, Some(user), None) => Ok(Self::Person(
                UserId::from_uuid(user),
                tenant.map(TenantId::from_uuid),
            )),
            (Some(tenant), None, Some(role)) => Ok(Self::Workspace(
                TenantId::from_uuid(tenant),
                read_role(role)?,
            )),
            _ => Err(StorageError::Inconsistent {
                table: "access_tokens",
                column: "user_id",
            }),
        }
    }
}

/// A token as the console shows it.
#[derive(Debug, Clone)]
pub struct AccessToken {
    /// Its id.
    pub id: AccessTokenId,
    /// Its subject.
    pub holder: Holder,
    /// Display name.
    pub name: String,
    /// Its beginning.
    pub hint: String,
    /// Its permissions.
    pub scopes: Vec<ApiScope>,
    /// Display name of its creator, if they still have an account.
    pub created_by: Option<String>,
    /// Slug of the workspace that it is bound to.
    pub slug: Option<String>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Its end.
    pub expires_at: Timestamp,
    /// Time of its last use, to [`USED_STEP`].
    pub last_used_at: Option<Timestamp>,
}

/// A token to be written.
#[derive(Debug)]
pub struct NewAccessToken<'a> {
    /// Its id.
    pub id: AccessTokenId,
    /// Its subject.
    pub holder: Holder,
    /// Display name.
    pub name: &'a str,
    /// Digest by which the token is found.
    pub digest: &'a Digest,
    /// Its beginning.
    pub hint: &'a str,
    /// Its permissions.
    pub scopes: &'a [ApiScope],
    /// How its creator signed in.
    pub amr: &'a [String],
    /// Its creator.
    pub created_by: UserId,
    /// The session of its creator.
    pub session: SessionId,
    /// Its end: at most 366 days after its creation.
    pub expires_at: Timestamp,
}

/// Writes a token.
pub async fn create(
    tx: &mut SystemTx,
    new: &NewAccessToken<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (tenant, user, role) = new.holder.columns();
    let scopes: Vec<String> = new.scopes.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into access_tokens (id, tenant_id, user_id, role, name, digest, hint, scopes, amr, created_by, created_at, expires_at, way_in)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                 (select way_in from browser_sessions where id = $13 and user_id = $3))",
        new.id.uuid(),
        tenant,
        user,
        role,
        new.name,
        new.digest.as_bytes().as_slice(),
        new.hint,
        &scopes,
        new.amr,
        new.created_by.uuid(),
        now,
        new.expires_at,
        new.session.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// What entitles to a token of the token endpoint. The token ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Issuer {
    /// A trusted pipeline (API-21).
    Pipeline(PipelineId),
    /// The access of a service account, with the account's epoch at its proof (API-25).
    Account(ServiceAccountId, i32),
}

/// A token of the token endpoint, for a job or for a service account.
#[derive(Debug)]
pub struct IssuedToken<'a> {
    /// Its id.
    pub id: AccessTokenId,
    /// Digest by which the token is found.
    pub digest: &'a Digest,
    /// Its beginning.
    pub hint: &'a str,
    /// Its permissions.
    pub scopes: &'a [ApiScope],
    /// Its end.
    pub expires_at: Timestamp,
}

/// Writes a token of the token endpoint, in the transaction that locked the row of its issuer.
pub(crate) async fn issue(
    tx: &mut SystemTx,
    tenant: TenantId,
    (issuer, name, role): (Issuer, &str, Role),
    token: &IssuedToken<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (pipeline, account, epoch) = match issuer {
        Issuer::Pipeline(pipeline) => (Some(pipeline.uuid()), None, None),
        Issuer::Account(account, epoch) => (None, Some(account.uuid()), Some(epoch)),
    };
    let scopes: Vec<String> = token.scopes.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into access_tokens (id, tenant_id, role, name, digest, hint, scopes, created_at, expires_at, pipeline_id, account_id,
           account_epoch)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        token.id.uuid(),
        tenant.uuid(),
        role.as_str(),
        name,
        token.digest.as_bytes().as_slice(),
        token.hint,
        &scopes,
        now,
        token.expires_at,
        pipeline,
        account,
        epoch,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The code by which a command gets a token.
#[derive(Debug)]
pub struct TokenCode<'a> {
    /// Digest by which the code is found.
    pub digest: &'a Digest,
    /// SHA-256 of the secret of the command (RFC 7636).
    pub challenge: &'a Digest,
    /// Life of the token in days, from its creation.
    pub days: i32,
    /// The code is valid until then, and so is the token that nothing has yet.
    pub until: Timestamp,
}

/// Makes a new token wait for its code.
pub async fn wait_for_code(
    tx: &mut SystemTx,
    id: AccessTokenId,
    code: &TokenCode<'_>,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update access_tokens set code_digest = $2, code_challenge = $3, code_days = $4, expires_at = $5 where id = $1",
        id.uuid(),
        code.digest.as_bytes().as_slice(),
        code.challenge.as_bytes().as_slice(),
        code.days,
        code.until,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Redeems a code, once: the token becomes the one with this digest and hint. Returns its id and its
/// person; `None` if the code is unknown, used or late, or of another command.
pub async fn redeem_code(
    tx: &mut SystemTx,
    (code, challenge): (&Digest, &Digest),
    (digest, hint): (&Digest, &str),
    now: Timestamp,
) -> Result<Option<(AccessTokenId, UserId)>, StorageError> {
    let row = sqlx::query!(
        r#"update access_tokens
              set digest = $4, hint = $5, expires_at = created_at + make_interval(days => code_days),
                  code_digest = null, code_challenge = null, code_days = null
            where code_digest = $1 and code_challenge = $2 and revoked_at is null and expires_at > $3
            returning id, user_id as "user_id!""#,
        code.as_bytes().as_slice(),
        challenge.as_bytes().as_slice(),
        now,
        digest.as_bytes().as_slice(),
        hint,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.id.into(), UserId::from_uuid(row.user_id))))
}

/// Locks the creation of tokens of a person until the transaction ends. Without the lock, two
/// concurrent counts could both be below the limit.
pub async fn take_turn(tx: &mut SystemTx, user: UserId) -> Result<(), StorageError> {
    sqlx::query_scalar!(
        "select id from users where id = $1 for no key update",
        user.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(())
}

/// Whose tokens are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The personal tokens of a person.
    Person(UserId),
    /// The tokens of a workspace.
    Workspace(TenantId),
}

impl Owner {
    fn columns(self) -> (Option<Uuid>, Option<Uuid>) {
        match self {
            Self::Person(user) => (Some(user.uuid()), None),
            Self::Workspace(tenant) => (None, Some(tenant.uuid())),
        }
    }
}

/// Lists the valid tokens of an owner, newest first. Tokens of the token endpoint are not among
/// them (API-21, API-25).
pub async fn list(
    tx: &mut SystemTx,
    owner: Owner,
    now: Timestamp,
) -> Result<Vec<AccessToken>, StorageError> {
    let (user, tenant) = owner.columns();
    let rows = sqlx::query!(
        r#"select t.id, t.tenant_id, t.user_id, t.role, t.name, t.hint, t.scopes, c.display_name as "created_by?", s.slug as "slug?",
             t.created_at, t.expires_at, t.last_used_at
           from access_tokens t left join users c on c.id = t.created_by
           left join tenant_slugs s on s.tenant_id = t.tenant_id and s.state = 'primary'
           where (t.user_id = $1 or ($1::uuid is null and t.user_id is null and t.tenant_id = $2))
             and t.revoked_at is null and t.expires_at > $3 and t.pipeline_id is null and t.account_id is null
           order by t.created_at desc, t.id desc limit 200"#,
        user,
        tenant,
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(AccessToken {
                id: row.id.into(),
                holder: Holder::read(row.tenant_id, row.user_id, row.role.as_deref())?,
                name: row.name,
                hint: row.hint,
                scopes: read_scopes(&row.scopes),
                created_by: row.created_by,
                slug: row.slug,
                created_at: row.created_at,
                expires_at: row.expires_at,
                last_used_at: row.last_used_at,
            })
        })
        .collect()
}

/// Words that this release does not know permit nothing.
pub(crate) fn read_scopes(words: &[String]) -> Vec<ApiScope> {
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

/// Revokes a token of its owner, once. Returns its name; `None` if there is no such valid token.
pub async fn revoke(
    tx: &mut SystemTx,
    owner: Owner,
    id: AccessTokenId,
    now: Timestamp,
) -> Result<Option<String>, StorageError> {
    let (user, tenant) = owner.columns();
    Ok(sqlx::query_scalar!(
        "update access_tokens set revoked_at = $4
         where id = $3 and (user_id = $1 or ($1::uuid is null and user_id is null and tenant_id = $2)) and revoked_at is null
         returning name",
        user,
        tenant,
        id.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// A personal token that ended with the sessions of its person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedToken {
    /// Its id.
    pub id: AccessTokenId,
    /// Display name.
    pub name: String,
}

/// Ends the personal tokens of a person: all of them, or those that were made in a session that
/// began with `way`.
pub(crate) async fn end_all(
    tx: &mut SystemTx,
    user: UserId,
    way: Option<WayIn>,
    now: Timestamp,
) -> Result<Vec<EndedToken>, StorageError> {
    let rows = sqlx::query!(
        "update access_tokens set revoked_at = $2
         where user_id = $1 and revoked_at is null and expires_at > $2 and ($3::uuid is null or way_in = $3)
         returning id, name",
        user.uuid(),
        now,
        way.map(WayIn::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    let ended = rows.into_iter().map(|row| EndedToken {
        id: row.id.into(),
        name: row.name,
    });
    Ok(ended.collect())
}

/// Takes the proof of a second factor away from the personal tokens of a person: it was removed or
/// replaced (AUTH-L14).
pub(crate) async fn end_proofs(tx: &mut SystemTx, user: UserId) -> Result<(), StorageError> {
    sqlx::query!(
        "update access_tokens set amr = '{}' where user_id = $1 and revoked_at is null",
        user.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A presented token that is valid, with its person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedToken {
    /// Its id.
    pub id: AccessTokenId,
    /// The digest by which it was found, to look it up again.
    pub digest: Digest,
    /// Its subject.
    pub holder: Holder,
    /// Display name of the token.
    pub name: String,
    /// Its beginning.
    pub hint: String,
    /// Its permissions.
    pub scopes: Vec<ApiScope>,
    /// How its creator signed in.
    pub amr: Vec<String>,
    /// Display name and primary address of the person of a personal token.
    pub person: Option<(String, String)>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Its end.
    pub expires_at: Timestamp,
}

/// Looks up a presented token and records its use. `None` if it is unknown, revoked or expired, if
/// its person may not sign in any more, or if its service account is blocked or has another epoch:
/// a secret was revoked, or the account was switched off (API-25). The caller cannot tell these
/// cases apart.
pub async fn open(
    tx: &mut SystemTx,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<OpenedToken>, StorageError> {
    let row = sqlx::query!(
        r#"select t.id, t.tenant_id, t.user_id, t.role, t.name, t.hint, t.scopes, t.amr, t.created_at, t.expires_at,
             t.last_used_at, u.display_name as "display_name?", e.address as "address?"
           from access_tokens t
           left join users u on u.id = t.user_id and u.status = 'active'
           left join user_emails e on e.user_id = u.id and e.is_primary
           where t.digest = $1 and t.revoked_at is null and t.expires_at > $2 and (t.user_id is null or u.id is not null)
             and (t.account_id is null or exists (
               select 1 from service_accounts a join oauth_clients c on c.id = a.client_ref and c.status = 'active'
               where a.tenant_id = t.tenant_id and a.id = t.account_id and a.epoch = t.account_epoch and a.disabled_at is null))"#,
        digest.as_bytes().as_slice(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.last_used_at.is_none_or(|last| now - last >= USED_STEP) {
        sqlx::query!(
            "update access_tokens set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $2)",
            row.id,
            now,
        )
        .execute(tx.connection())
        .await?;
    }
    Ok(Some(OpenedToken {
        id: row.id.into(),
        digest: *digest,
        holder: Holder::read(row.tenant_id, row.user_id, row.role.as_deref())?,
        name: row.name,
        hint: row.hint,
        scopes: read_scopes(&row.scopes),
        amr: row.amr,
        person: row
            .display_name
            .map(|name| (name, row.address.unwrap_or_default())),
        created_at: row.created_at,
        expires_at: row.expires_at,
    }))
}

/// The active tenants that a token opens, by name, with its role there: one of them with `slug`,
/// otherwise at most 200. A membership that began anew after the token was made is not among them
/// (API-4).
pub async fn workspaces_of(
    tx: &mut SystemTx,
    token: &OpenedToken,
    slug: Option<&str>,
) -> Result<Vec<Workspace>, StorageError> {
    let (tenant, user, role) = token.holder.columns();
    let rows = sqlx::query!(
        r#"select t.id, t.name, t.epoch, t.created_at, p.slug, coalesce(m.role, $3) as "role!", coalesce(m.epoch, 0) as "member_epoch!"
           from tenants t
           join tenant_slugs p on p.tenant_id = t.id and p.state = 'primary'
           left join memberships m on m.tenant_id = t.id and m.user_id = $2 and m.status = 'active'
             and (m.rejoined_at is null or m.rejoined_at <= $4)
           where t.status = 'active' and ($1::uuid is null or t.id = $1)
             and case when $2::uuid is null then t.id = $1 else m.user_id is not null end
             and ($5::text is null or exists (select 1 from tenant_slugs s
                  where s.tenant_id = t.id and s.slug = $5 and s.state in ('primary', 'alias')))
           order by lower(t.name), t.id limit 200"#,
        tenant,
        user,
        role,
        token.created_at,
        slug,
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
