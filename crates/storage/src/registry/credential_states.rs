//! Whether the APIs accept the credentials of sources. One row a credential: the last state, no
//! history.

use portolan_model::{
    Timestamp,
    event::EventType,
    id::{SourceId, TenantId},
};
use serde_json::json;
use uuid::Uuid;

use crate::{StorageError, SystemTx, TenantTx, events};

/// Most characters of a reason.
const LONGEST_REASON: usize = 1000;

/// The state of a credential, as the response to a request showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialState {
    /// The API answered with success.
    Works,
    /// The API, or its token endpoint, refused the credential with this HTTP status.
    Refused(u16),
    /// A test showed nothing, for this reason.
    Inconclusive(String),
}

impl CredentialState {
    /// The word in the table.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Refused(_) => "refused",
            Self::Inconclusive(_) => "inconclusive",
        }
    }

    /// From the columns; `None` for a word that this release does not know.
    pub(crate) fn read(word: &str, status: Option<i32>, reason: Option<String>) -> Option<Self> {
        Some(match word {
            "works" => Self::Works,
            "refused" => Self::Refused(u16::try_from(status?).ok()?),
            "inconclusive" => Self::Inconclusive(reason.unwrap_or_default()),
            _ => return None,
        })
    }
}

/// A request that carried a credential.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Whose credential.
    pub source: SourceId,
    /// Which version of it.
    pub version: i32,
    /// The state that the response shows.
    pub state: CredentialState,
    /// When it came.
    pub at: Timestamp,
}

/// When a state is written again that the row has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// At once: a person tests the credential.
    Always,
    /// After ten minutes: calls show the same state many times.
    Seldom,
}

/// Writes the states that changed in one statement. At most one entry a source. A credential that
/// was replaced or removed meanwhile keeps its own state. A credential that is refused, or accepted
/// again, is an event (HOOK-1).
pub async fn note(tx: &mut TenantTx, seen: &[Seen], repeat: Repeat) -> Result<(), StorageError> {
    if seen.is_empty() {
        return Ok(());
    }
    let tenant = tx.tenant().uuid();
    let sources: Vec<Uuid> = seen.iter().map(|one| one.source.uuid()).collect();
    let versions: Vec<i32> = seen.iter().map(|one| one.version).collect();
    let states: Vec<String> = seen.iter().map(|one| one.state.word().to_owned()).collect();
    let statuses: Vec<Option<i32>> = seen
        .iter()
        .map(|one| match one.state {
            CredentialState::Refused(status) => Some(status.into()),
            CredentialState::Works | CredentialState::Inconclusive(_) => None,
        })
        .collect();
    let reasons: Vec<Option<String>> = seen
        .iter()
        .map(|one| match &one.state {
            CredentialState::Inconclusive(reason) => {
                Some(reason.chars().take(LONGEST_REASON).collect())
            }
            CredentialState::Works | CredentialState::Refused(_) => None,
        })
        .collect();
    let times: Vec<Timestamp> = seen.iter().map(|one| one.at).collect();
    // In the order of ids: two nodes that write the same rows wait for each other in one direction.
    // A row that another node wrote meanwhile is not written again, and reports no second change.
    let changed = sqlx::query!(
        r#"with before as (
             select source_id, version, state from credential_states where tenant_id = $1 and source_id = any($2)),
           written as (
             insert into credential_states as k (tenant_id, source_id, version, state, status, reason, at)
             select c.tenant_id, c.source_id, c.version, s.state, s.status, s.reason, s.at
             from unnest($2::uuid[], $3::int4[], $4::text[], $5::int4[], $6::text[], $7::timestamptz[])
                    as s(source_id, version, state, status, reason, at)
               join source_credentials c
                 on c.tenant_id = $1 and c.source_id = s.source_id and c.version = s.version
             order by c.source_id
             on conflict (tenant_id, source_id) do update
               set version = excluded.version, state = excluded.state, status = excluded.status,
                   reason = excluded.reason, at = excluded.at
               where $8 or k.version <> excluded.version
                 or (k.at <= excluded.at
                     and ((k.state, k.status, k.reason)
                            is distinct from (excluded.state, excluded.status, excluded.reason)
                          or k.at < excluded.at - interval '10 minutes'))
             returning source_id, version, state, status, at)
           select w.source_id as "source_id!", w.state as "state!", w.status, w.at as "at!", o.name
             from written w
             join sources o on o.tenant_id = $1 and o.id = w.source_id and o.deleted_at is null
             left join before b on b.source_id = w.source_id
            where (w.state = 'refused' and (b.state is distinct from 'refused' or b.version <> w.version))
               or (w.state = 'works' and b.state = 'refused')"#,
        tenant,
        &sources,
        &versions,
        &states,
        &statuses as &[Option<i32>],
        &reasons as &[Option<String>],
        &times,
        repeat == Repeat::Always,
    )
    .fetch_all(tx.connection())
    .await?;
    let tenant = tx.tenant();
    for row in changed {
        let source = SourceId::from_uuid(row.source_id);
        let (kind, data) = if row.state == CredentialState::Works.word() {
            let data = json!({ "source": source, "name": row.name });
            (EventType::CredentialRestored, data)
        } else {
            let data = json!({ "source": source, "name": row.name, "status": row.status });
            (EventType::CredentialRefused, data)
        };
        events::write(tx, tenant, kind, data, row.at).await?;
    }
    Ok(())
}

/// Forgets the state of a source's credential: what it is sent to is another API now.
pub async fn forget(tx: &mut TenantTx, source: SourceId) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "delete from credential_states where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Returns true if the credential that a source has now is refused.
pub async fn is_refused(
    tx: &mut SystemTx,
    tenant: TenantId,
    source: SourceId,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from credential_states k
             join source_credentials c on c.tenant_id = k.tenant_id and c.source_id = k.source_id and c.version = k.version
            where k.tenant_id = $1 and k.source_id = $2 and k.state = 'refused') as "refused!""#,
        tenant.uuid(),
        source.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// A credential in use that an API refused.
#[derive(Debug, Clone)]
pub struct RefusedCredential {
    /// Its source.
    pub source: SourceId,
    /// Name of the source.
    pub name: String,
    /// HTTP status.
    pub status: u16,
    /// When it was refused.
    pub at: Timestamp,
}

/// Credentials that are refused, by name of their source. Sources that are signed in to use no
/// credential, and are left out.
pub async fn refused(tx: &mut TenantTx) -> Result<Vec<RefusedCredential>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select s.id, s.name, k.status as "status!", k.at
           from credential_states k
             join source_credentials c
               on c.tenant_id = k.tenant_id and c.source_id = k.source_id and c.version = k.version
             join sources s on s.tenant_id = k.tenant_id and s.id = k.source_id
           where k.tenant_id = $1 and k.state = 'refused' and k.status is not null
             and s.deleted_at is null
             and not exists (select 1 from upstream_sign_ins i
                             where i.tenant_id = s.tenant_id and i.source_id = s.id)
           order by lower(s.name), s.id"#,
        tenant
    )
    .fetch_all(tx.connection())
    .await?;
    let read = rows.into_iter().filter_map(|row| {
        Some(RefusedCredential {
            source: SourceId::from_uuid(row.id),
            name: row.name,
            status: u16::try_from(row.status).ok()?,
            at: row.at,
        })
    });
    Ok(read.collect())
}
