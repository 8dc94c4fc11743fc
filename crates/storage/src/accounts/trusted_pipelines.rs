//! Trusted pipelines of a workspace, the JWTs that they used up, and why jobs were refused
//! (API-16 to API-21).

use std::collections::BTreeMap;

use portolan_model::{
    Digest, Timestamp,
    api_scope::ApiScope,
    id::{PipelineId, TenantId},
    member::Role,
    pipeline::{RefusalReason, SubjectPattern},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    StorageError, SystemTx, TenantTx,
    accounts::{
        access_tokens::{self, IssuedToken, Issuer, read_scopes},
        members::read_role,
    },
};

/// The conditions of a trust, and the rights of its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Display name.
    pub name: String,
    /// `iss`, byte for byte.
    pub issuer: String,
    /// `aud`.
    pub audience: String,
    /// Pattern of `sub`.
    pub subject: SubjectPattern,
    /// Further claims with their values.
    pub claims: BTreeMap<String, String>,
    /// Role of a token.
    pub role: Role,
    /// Scopes of a token.
    pub scopes: Vec<ApiScope>,
    /// Life of a token, in minutes.
    pub minutes: i32,
}

/// A trusted pipeline.
#[derive(Debug, Clone)]
pub struct TrustedPipeline {
    /// Its id.
    pub id: PipelineId,
    /// Its conditions and rights.
    pub trust: Trust,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its last change.
    pub changed_at: Timestamp,
    /// Time of its last token.
    pub last_used_at: Option<Timestamp>,
}

struct Row {
    id: Uuid,
    name: String,
    issuer: String,
    audience: String,
    subject: String,
    claims: Value,
    role: String,
    scopes: Vec<String>,
    minutes: i32,
    created_at: Timestamp,
    changed_at: Timestamp,
    last_used_at: Option<Timestamp>,
}

impl TryFrom<Row> for TrustedPipeline {
    type Error = StorageError;

    fn try_from(row: Row) -> Result<Self, StorageError> {
        let inconsistent = |column| StorageError::Inconsistent {
            table: "trusted_pipelines",
            column,
        };
        Ok(Self {
            id: row.id.into(),
            trust: Trust {
                name: row.name,
                issuer: row.issuer,
                audience: row.audience,
                subject: SubjectPattern::parse(&row.subject)
                    .map_err(|_| inconsistent("subject"))?,
                claims: serde_json::from_value(row.claims).map_err(|_| inconsistent("claims"))?,
                role: read_role(&row.role)?,
                scopes: read_scopes(&row.scopes),
                minutes: row.minutes,
            },
            created_at: row.created_at,
            changed_at: row.changed_at,
            last_used_at: row.last_used_at,
        })
    }
}

/// The trusted pipelines of the workspace, the oldest first.
pub async fn list(tx: &mut TenantTx) -> Result<Vec<TrustedPipeline>, StorageError> {
    let rows = sqlx::query_as!(
        Row,
        "select id, name, issuer, audience, subject, claims, role, scopes, minutes, created_at, changed_at, last_used_at
         from trusted_pipelines order by created_at, id"
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter().map(TrustedPipeline::try_from).collect()
}

/// Counts the trusted pipelines, and locks their creation until the transaction ends. Without the
/// lock, two concurrent counts could both be below the limit.
pub async fn count_alone(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('trusted_pipelines ' || $1::text, 0))",
        tenant.to_string(),
    )
    .execute(tx.connection())
    .await?;
    Ok(
        sqlx::query_scalar!(r#"select count(*) as "count!" from trusted_pipelines"#)
            .fetch_one(tx.connection())
            .await?,
    )
}

/// Writes a trust that was made at `created_at`.
pub async fn insert(
    tx: &mut TenantTx,
    id: PipelineId,
    trust: &Trust,
    created_at: Timestamp,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let scopes: Vec<String> = trust.scopes.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into trusted_pipelines (tenant_id, id, name, issuer, audience, subject, claims, role, scopes, minutes, created_at, changed_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        tenant,
        id.uuid(),
        trust.name,
        trust.issuer,
        trust.audience,
        trust.subject.as_str(),
        json!(trust.claims),
        trust.role.as_str(),
        &scopes,
        trust.minutes,
        created_at,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Removes a trust, with the tokens that it gave. Returns its name and the time of its creation.
pub async fn remove(
    tx: &mut TenantTx,
    id: PipelineId,
) -> Result<Option<(String, Timestamp)>, StorageError> {
    let row = sqlx::query!(
        "delete from trusted_pipelines where id = $1 returning name, created_at",
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.name, row.created_at)))
}

/// Refused jobs of one trust, by reason.
#[derive(Debug, Clone)]
pub struct Refusals {
    /// The trust.
    pub pipeline: PipelineId,
    /// Why.
    pub reason: RefusalReason,
    /// The claim of the last one; empty if its signature was not verified.
    pub seen: String,
    /// How many.
    pub times: i64,
    /// Time of the last one.
    pub last_at: Timestamp,
}

/// The refused jobs of the workspace since the last change of each trust, the newest first.
pub async fn refusals(tx: &mut TenantTx) -> Result<Vec<Refusals>, StorageError> {
    let rows = sqlx::query!(
        "select pipeline_id, reason, seen, times, last_at from pipeline_refusals order by last_at desc, reason"
    )
    .fetch_all(tx.connection())
    .await?;
    // Reasons that this release does not know are not shown.
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            Some(Refusals {
                pipeline: row.pipeline_id.into(),
                reason: row.reason.parse().ok()?,
                seen: row.seen,
                times: row.times,
                last_at: row.last_at,
            })
        })
        .collect())
}

/// The trusted pipelines of an active workspace with this issuer, the oldest first. `None` if there
/// are none, or no such workspace.
pub async fn of_issuer(
    tx: &mut SystemTx,
    slug: &str,
    issuer: &str,
) -> Result<Option<(TenantId, Vec<TrustedPipeline>)>, StorageError> {
    let tenant = sqlx::query_scalar!(
        "select t.id from tenant_slugs s join tenants t on t.id = s.tenant_id and t.status = 'active'
         where s.slug = $1 and s.state in ('primary', 'alias')
           and exists (select 1 from trusted_pipelines p where p.tenant_id = t.id and p.issuer = $2)",
        slug,
        issuer,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(tenant) = tenant else {
        return Ok(None);
    };
    let rows = sqlx::query_as!(
        Row,
        "select id, name, issuer, audience, subject, claims, role, scopes, minutes, created_at, changed_at, last_used_at
         from trusted_pipelines where tenant_id = $1 and issuer = $2 order by created_at, id",
        tenant,
        issuer,
    )
    .fetch_all(tx.connection())
    .await?;
    let trusts = rows
        .into_iter()
        .map(TrustedPipeline::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    Ok((!trusts.is_empty()).then(|| (TenantId::from_uuid(tenant), trusts)))
}

/// Counts a refused job. It is not counted if the trust is gone.
pub async fn note_refusal(
    tx: &mut SystemTx,
    tenant: TenantId,
    pipeline: PipelineId,
    (reason, seen): (RefusalReason, &str),
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into pipeline_refusals (tenant_id, pipeline_id, reason, seen, times, last_at)
         select tenant_id, id, $3, $4, 1, $5 from trusted_pipelines where tenant_id = $1 and id = $2 for key share
         on conflict (tenant_id, pipeline_id, reason) do update
           set seen = excluded.seen, times = pipeline_refusals.times + 1, last_at = excluded.last_at",
        tenant.uuid(),
        pipeline.uuid(),
        reason.as_str(),
        seen,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Uses a JWT up. True for the first use on any node; false if it was used before.
pub async fn use_up(
    tx: &mut SystemTx,
    tenant: TenantId,
    jwt: &Digest,
    expires_at: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "insert into pipeline_jwts (tenant_id, digest, expires_at) values ($1, $2, $3) on conflict do nothing",
        tenant.uuid(),
        jwt.as_bytes().as_slice(),
        expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Writes a token of a trust, with the trust's name and role. False if the trust was changed or
/// removed since it was read: its row is locked, so that a change waits and ends the token.
pub async fn issue(
    tx: &mut SystemTx,
    tenant: TenantId,
    pipeline: &TrustedPipeline,
    token: &IssuedToken<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update trusted_pipelines set last_used_at = $4 where tenant_id = $1 and id = $2 and changed_at = $3",
        tenant.uuid(),
        pipeline.id.uuid(),
        pipeline.changed_at,
        now,
    )
    .execute(tx.connection())
    .await?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    let (issuer, trust) = (Issuer::Pipeline(pipeline.id), &pipeline.trust);
    access_tokens::issue(tx, tenant, (issuer, &trust.name, trust.role), token, now).await?;
    Ok(true)
}
