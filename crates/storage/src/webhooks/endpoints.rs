//! Endpoints of webhooks. Secrets, headers and secret URLs stand in one sealed value; this module
//! never sees them in clear (HOOK-5).

use portolan_model::{
    Timestamp,
    id::{UserId, WebhookId},
};
use uuid::Uuid;

use crate::{StorageError, TenantTx, registry::credentials::WrappedKey};

/// Most endpoints of a workspace (HOOK-4).
pub const MOST: i64 = 20;

/// The form of the messages that an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookForm {
    /// Standard Webhooks: JSON with type, timestamp and data, signed.
    Standard,
    /// Incoming webhooks as Slack has them: `{"text": …}`, unsigned, at a secret URL.
    Slack,
}

impl WebhookForm {
    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Slack => "slack",
        }
    }

    pub(crate) fn read(word: &str) -> Result<Self, StorageError> {
        match word {
            "standard" => Ok(Self::Standard),
            "slack" => Ok(Self::Slack),
            _ => Err(StorageError::Inconsistent {
                table: "webhook_endpoints",
                column: "kind",
            }),
        }
    }
}

/// Whether an endpoint takes deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookState {
    /// It does.
    Active,
    /// A person paused it: deliveries wait.
    Paused,
    /// It failed for five days, or answered 410. No new deliveries are made.
    Disabled,
}

impl WebhookState {
    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }

    fn read(word: &str) -> Result<Self, StorageError> {
        match word {
            "active" => Ok(Self::Active),
            "paused" => Ok(Self::Paused),
            "disabled" => Ok(Self::Disabled),
            _ => Err(StorageError::Inconsistent {
                table: "webhook_endpoints",
                column: "state",
            }),
        }
    }
}

/// The sealed part of an endpoint: its secrets, headers, and URL if that is a secret.
#[derive(Debug, Clone)]
pub struct SealedEndpoint {
    /// Sealed under the data key, bound to tenant, endpoint and version.
    pub sealed: Vec<u8>,
    /// The data key.
    pub key: WrappedKey,
    /// Raised by every change.
    pub version: i32,
}

/// An endpoint.
#[derive(Debug, Clone)]
pub struct WebhookEndpoint {
    /// Its id.
    pub id: WebhookId,
    /// The form of its messages.
    pub form: WebhookForm,
    /// Where it is; of a Slack endpoint the origin alone.
    pub url: String,
    /// A note for people.
    pub description: String,
    /// Names of the events that it subscribes to.
    pub event_types: Vec<String>,
    /// Names of its own headers.
    pub header_names: Vec<String>,
    /// The sealed part.
    pub secrets: SealedEndpoint,
    /// Until then the previous secret signs too.
    pub previous_secret_until: Option<Timestamp>,
    /// Whether it takes deliveries.
    pub state: WebhookState,
    /// `failing` or `gone`, if it is disabled.
    pub disabled_reason: Option<String>,
    /// First failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The file of configuration that owns it.
    pub managed_by: Option<String>,
}

struct EndpointRow {
    id: Uuid,
    kind: String,
    url: String,
    description: String,
    event_types: Vec<String>,
    header_names: Vec<String>,
    sealed: Vec<u8>,
    version: i32,
    dek_id: Uuid,
    wrapped: Vec<u8>,
    previous_secret_until: Option<Timestamp>,
    state: String,
    disabled_reason: Option<String>,
    failing_since: Option<Timestamp>,
    created_at: Timestamp,
    managed_by: Option<String>,
}

impl EndpointRow {
    fn read(self) -> Result<WebhookEndpoint, StorageError> {
        Ok(WebhookEndpoint {
            id: WebhookId::from_uuid(self.id),
            form: WebhookForm::read(&self.kind)?,
            url: self.url,
            description: self.description,
            event_types: self.event_types,
            header_names: self.header_names,
            secrets: SealedEndpoint {
                sealed: self.sealed,
                key: WrappedKey {
                    id: self.dek_id,
                    wrapped: self.wrapped,
                },
                version: self.version,
            },
            previous_secret_until: self.previous_secret_until,
            state: WebhookState::read(&self.state)?,
            disabled_reason: self.disabled_reason,
            failing_since: self.failing_since,
            created_at: self.created_at,
            managed_by: self.managed_by,
        })
    }
}

/// The endpoints of the workspace, the oldest first; with `id` that one alone.
pub async fn list(
    tx: &mut TenantTx,
    id: Option<WebhookId>,
) -> Result<Vec<WebhookEndpoint>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query_as!(
        EndpointRow,
        "select p.id, p.kind, p.url, p.description, p.event_types, p.header_names, p.sealed, p.version, p.dek_id, k.wrapped,
                p.previous_secret_until, p.state, p.disabled_reason, p.failing_since, p.created_at,
                p.managed_by
           from webhook_endpoints p join tenant_deks k on k.tenant_id = p.tenant_id and k.id = p.dek_id
          where p.tenant_id = $1 and ($2::uuid is null or p.id = $2) order by p.id",
        tenant,
        id.map(WebhookId::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter().map(EndpointRow::read).collect()
}

/// One endpoint.
pub async fn find(
    tx: &mut TenantTx,
    id: WebhookId,
) -> Result<Option<WebhookEndpoint>, StorageError> {
    Ok(list(tx, Some(id)).await?.pop())
}

/// A new endpoint.
#[derive(Debug)]
pub struct NewWebhookEndpoint<'a> {
    /// Its id.
    pub id: WebhookId,
    /// The form of its messages.
    pub form: WebhookForm,
    /// Where it is, as it may be shown.
    pub url: &'a str,
    /// A note for people.
    pub description: &'a str,
    /// Names of the events that it subscribes to.
    pub event_types: &'a [String],
    /// Names of its own headers.
    pub header_names: &'a [String],
    /// The sealed part, of version 1.
    pub secrets: &'a SealedEndpoint,
    /// The person who creates it; `None` for a token of the workspace.
    pub created_by: Option<UserId>,
}

/// Waits until no other transaction adds an endpoint to the workspace, and counts those there are.
pub async fn count_alone(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('webhooks ' || $1::text, 0))",
        tenant.to_string(),
    )
    .execute(tx.connection())
    .await?;
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from webhook_endpoints where tenant_id = $1"#,
        tenant
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Keeps the endpoints of the workspace as they are until the transaction ends.
pub async fn lock_all(tx: &mut TenantTx) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "select id from webhook_endpoints where tenant_id = $1 order by id for no key update",
        tenant
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(())
}

/// Makes a file of configuration the owner of an endpoint (CONF-6).
pub async fn set_owner(tx: &mut TenantTx, id: WebhookId, owner: &str) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "update webhook_endpoints set managed_by = $3 where tenant_id = $1 and id = $2",
        tenant,
        id.uuid(),
        owner
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Keeps a new endpoint.
pub async fn insert(
    tx: &mut TenantTx,
    new: &NewWebhookEndpoint<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into webhook_endpoints (tenant_id, id, kind, url, description, event_types, header_names, dek_id, sealed, version,
                                        created_by, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)",
        tenant,
        new.id.uuid(),
        new.form.as_str(),
        new.url,
        new.description,
        new.event_types,
        new.header_names,
        new.secrets.key.id,
        new.secrets.sealed,
        new.secrets.version,
        new.created_by.map(UserId::uuid),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A change of what is no secret; `None` leaves a field as it is.
#[derive(Debug, Default)]
pub struct EndpointChange<'a> {
    /// Another note.
    pub description: Option<&'a str>,
    /// Other events.
    pub event_types: Option<&'a [String]>,
}

/// Changes an endpoint. False if there is none.
pub async fn change(
    tx: &mut TenantTx,
    id: WebhookId,
    change: &EndpointChange<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update webhook_endpoints set description = coalesce($3, description), event_types = coalesce($4, event_types), updated_at = $5
          where tenant_id = $1 and id = $2",
        tenant,
        id.uuid(),
        change.description,
        change.event_types as Option<&[String]>,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The places of a new sealed part.
#[derive(Debug)]
pub struct NewSecrets<'a> {
    /// Where it is, as it may be shown.
    pub url: &'a str,
    /// Names of its own headers.
    pub header_names: &'a [String],
    /// The sealed part, of the version after the present one.
    pub secrets: &'a SealedEndpoint,
    /// Until then the previous secret signs too.
    pub previous_secret_until: Option<Timestamp>,
}

/// Replaces the sealed part. False if another change came first, or the endpoint is gone.
pub async fn replace_secrets(
    tx: &mut TenantTx,
    id: WebhookId,
    new: &NewSecrets<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update webhook_endpoints set url = $3, header_names = $4, dek_id = $5, sealed = $6, version = $7, previous_secret_until = $8,
                updated_at = $9
          where tenant_id = $1 and id = $2 and version = $7 - 1",
        tenant,
        id.uuid(),
        new.url,
        new.header_names,
        new.secrets.key.id,
        new.secrets.sealed,
        new.secrets.version,
        new.previous_secret_until,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Pauses or activates an endpoint; `None` if there is none, else the state before. Its backlog is
/// due at once when it becomes active.
pub async fn set_state(
    tx: &mut TenantTx,
    id: WebhookId,
    state: WebhookState,
    now: Timestamp,
) -> Result<Option<WebhookState>, StorageError> {
    let tenant = tx.tenant().uuid();
    let before = sqlx::query_scalar!(
        "select state from webhook_endpoints where tenant_id = $1 and id = $2 for update",
        tenant,
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(before) = before else {
        return Ok(None);
    };
    sqlx::query!(
        "update webhook_endpoints set state = $3, disabled_reason = null, failing_since = null, updated_at = $4
          where tenant_id = $1 and id = $2",
        tenant,
        id.uuid(),
        state.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    if state == WebhookState::Active {
        sqlx::query!(
            "update webhook_deliveries set next_at = $3 where tenant_id = $1 and endpoint_id = $2 and state = 'pending' and held_until is null",
            tenant,
            id.uuid(),
            now,
        )
        .execute(tx.connection())
        .await?;
    }
    WebhookState::read(&before).map(Some)
}

/// Deletes an endpoint with its deliveries. False if there is none.
pub async fn delete(tx: &mut TenantTx, id: WebhookId) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "delete from webhook_endpoints where tenant_id = $1 and id = $2",
        tenant,
        id.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
