//! Sources: where a tenant's tools come from.

use portolan_model::{
    Digest, Timestamp,
    id::SourceId,
    registry::{SourceKind, SourceSettings},
};
use serde_json::Value;
use sqlx::types::Json;

use crate::{StorageError, TenantTx, registry::credential_states::CredentialState};

/// A source, without its document.
#[derive(Debug, Clone)]
pub struct Source {
    /// Id.
    pub id: SourceId,
    /// OpenAPI document or hand-made.
    pub kind: SourceKind,
    /// Name that the tenant gave it.
    pub name: String,
    /// Prefix of every call.
    pub base_url: String,
    /// SHA-256 of the document.
    pub document_digest: Option<Digest>,
    /// Where the document was fetched from.
    pub document_url: Option<String>,
    /// Title in the document.
    pub spec_title: Option<String>,
    /// OpenAPI version of the document.
    pub spec_version: Option<String>,
    /// Security schemes of the document, as hints (console JSON).
    pub security: Value,
    /// Bounds of calls.
    pub settings: SourceSettings,
    /// Tools, whatever their state.
    pub tool_count: i64,
    /// Tools that can be published.
    pub enabled_tool_count: i64,
    /// Kind, hint and time of the credential.
    pub credential: Option<CredentialNote>,
    /// Whose connected accounts open it instead: `workspace` or `person`.
    pub sharing: Option<String>,
    /// Name of the file that owns it (CONF-6); `None` if none does.
    pub managed_by: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The facts about a credential that may be shown.
#[derive(Debug, Clone)]
pub struct CredentialNote {
    /// Its kind.
    pub kind: String,
    /// Enough to recognise it, too little to use it.
    pub hint: String,
    /// Raised by every change.
    pub version: i32,
    /// When it was set.
    pub updated_at: Timestamp,
    /// State shown by the last request that carried it, and when; `None` if it was never tried.
    pub state: Option<(CredentialState, Timestamp)>,
}

/// A source to be made.
#[derive(Debug, Clone)]
pub struct NewSource<'a> {
    /// Id.
    pub id: SourceId,
    /// Kind.
    pub kind: SourceKind,
    /// Name.
    pub name: &'a str,
    /// Prefix of every call.
    pub base_url: &'a str,
    /// The document, for an OpenAPI source.
    pub document: Option<NewDocument<'a>>,
    /// Security hints.
    pub security: &'a Value,
}

/// A document as stored.
#[derive(Debug, Clone, Copy)]
pub struct NewDocument<'a> {
    /// The text as given.
    pub text: &'a [u8],
    /// Its SHA-256.
    pub digest: Digest,
    /// Where it came from.
    pub url: Option<&'a str>,
    /// Its title.
    pub title: &'a str,
    /// Its OpenAPI version.
    pub spec_version: &'a str,
}

/// Makes a source.
pub async fn insert(
    tx: &mut TenantTx,
    new: &NewSource<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let document = new.document;
    sqlx::query!(
        "insert into sources (tenant_id, id, kind, name, base_url, document, document_digest, document_url, spec_title, spec_version,
                              security, settings, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)",
        tenant,
        new.id.uuid(),
        new.kind.as_str(),
        new.name,
        new.base_url,
        document.map(|d| d.text),
        document.map(|d| d.digest.as_bytes().to_vec()),
        document.and_then(|d| d.url),
        document.map(|d| d.title),
        document.map(|d| d.spec_version),
        new.security,
        Json(SourceSettings::default()) as _,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

struct SourceRow {
    id: uuid::Uuid,
    kind: String,
    name: String,
    base_url: String,
    document_digest: Option<Vec<u8>>,
    document_url: Option<String>,
    spec_title: Option<String>,
    spec_version: Option<String>,
    security: Value,
    settings: Json<SourceSettings>,
    created_at: Timestamp,
    updated_at: Timestamp,
    tool_count: i64,
    enabled_tool_count: i64,
    credential_kind: Option<String>,
    credential_hint: Option<String>,
    credential_updated_at: Option<Timestamp>,
    credential_version: Option<i32>,
    state: Option<String>,
    state_status: Option<i32>,
    state_reason: Option<String>,
    state_at: Option<Timestamp>,
    sharing: Option<String>,
    managed_by: Option<String>,
}

impl TryFrom<SourceRow> for Source {
    type Error = StorageError;
    fn try_from(row: SourceRow) -> Result<Self, StorageError> {
        let state = row
            .state
            .and_then(|word| CredentialState::read(&word, row.state_status, row.state_reason))
            .zip(row.state_at);
        let credential = match (
            row.credential_kind,
            row.credential_hint,
            row.credential_updated_at,
            row.credential_version,
        ) {
            (Some(kind), Some(hint), Some(updated_at), Some(version)) => Some(CredentialNote {
                kind,
                hint,
                version,
                updated_at,
                state,
            }),
            _ => None,
        };
        Ok(Self {
            id: SourceId::from_uuid(row.id),
            kind: row.kind.parse().map_err(|_| StorageError::Inconsistent {
                table: "sources",
                column: "kind",
            })?,
            name: row.name,
            base_url: row.base_url,
            document_digest: row.document_digest.as_deref().and_then(Digest::from_slice),
            document_url: row.document_url,
            spec_title: row.spec_title,
            spec_version: row.spec_version,
            security: row.security,
            settings: row.settings.0,
            tool_count: row.tool_count,
            enabled_tool_count: row.enabled_tool_count,
            credential,
            sharing: row.sharing,
            managed_by: row.managed_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// All of the tenant's sources by name, or the one with `id`.
async fn select(tx: &mut TenantTx, id: Option<SourceId>) -> Result<Vec<Source>, StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query_as!(
        SourceRow,
        r#"select s.id, s.kind, s.name, s.base_url, s.document_digest, s.document_url, s.spec_title, s.spec_version, s.security,
                  s.settings as "settings: Json<SourceSettings>", s.created_at, s.updated_at,
                  (select count(*) from tools t where t.tenant_id = s.tenant_id and t.source_id = s.id and t.state = 'active') as "tool_count!",
                  (select count(*) from tools t where t.tenant_id = s.tenant_id and t.source_id = s.id and t.state = 'active' and t.enabled)
                    as "enabled_tool_count!",
                  c.kind as "credential_kind?", c.hint as "credential_hint?", c.updated_at as "credential_updated_at?",
                  c.version as "credential_version?", k.state as "state?", k.status as state_status, k.reason as state_reason,
                  k.at as "state_at?", i.sharing as "sharing?", s.managed_by
           from sources s left join source_credentials c on c.tenant_id = s.tenant_id and c.source_id = s.id
           left join credential_states k
             on k.tenant_id = c.tenant_id and k.source_id = c.source_id and k.version = c.version
           left join upstream_sign_ins i on i.tenant_id = s.tenant_id and i.source_id = s.id
           where s.tenant_id = $1 and s.deleted_at is null and ($2::uuid is null or s.id = $2)
           order by lower(s.name), s.id"#,
        tenant,
        id.map(SourceId::uuid),
    )
    .fetch_all(tx.connection())
    .await?
    .into_iter()
    .map(Source::try_from)
    .collect()
}

/// All sources, by name.
pub async fn list(tx: &mut TenantTx) -> Result<Vec<Source>, StorageError> {
    select(tx, None).await
}

/// One source; `None` if there is none, or it was deleted.
pub async fn find(tx: &mut TenantTx, id: SourceId) -> Result<Option<Source>, StorageError> {
    Ok(select(tx, Some(id)).await?.pop())
}

/// The stored document of a source.
pub async fn document(tx: &mut TenantTx, id: SourceId) -> Result<Option<Vec<u8>>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        "select document from sources where tenant_id = $1 and id = $2 and deleted_at is null",
        tenant,
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?
    .flatten())
}

/// Changes what is given. False if there is no such source.
pub async fn update(
    tx: &mut TenantTx,
    id: SourceId,
    name: Option<&str>,
    base_url: Option<&str>,
    settings: Option<&SourceSettings>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update sources set name = coalesce($3, name), base_url = coalesce($4, base_url), settings = coalesce($5, settings), updated_at = $6
         where tenant_id = $1 and id = $2 and deleted_at is null",
        tenant,
        id.uuid(),
        name,
        base_url,
        settings.map(|settings| Json(*settings)) as _,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Puts a new document in the place of the one whose digest is `expected`. False if another import
/// came between.
pub async fn replace_document(
    tx: &mut TenantTx,
    id: SourceId,
    expected: Option<&Digest>,
    document: &NewDocument<'_>,
    security: &Value,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update sources set document = $4, document_digest = $5, document_url = $6, spec_title = $7, spec_version = $8, security = $9, updated_at = $10
         where tenant_id = $1 and id = $2 and deleted_at is null and document_digest is not distinct from $3",
        tenant,
        id.uuid(),
        expected.map(|digest| digest.as_bytes().to_vec()),
        document.text,
        &document.digest.as_bytes()[..],
        document.url,
        document.title,
        document.spec_version,
        security,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
