//! API keys of a workspace (AUTH-C17, AUTH-4.8, AUTH-M9): each member's own, and those of service
//! accounts.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{
    id::{ApiKeyId, ApiKeyKind, ServerId, ServiceAccountId, TenantId},
    member::Action,
    subject::Subject,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, revocation::notify_key_ended,
    state::AuthState, target::ConsolePage,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    oauth::{
        api_keys::{self, NewApiKey},
        service_accounts,
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    listing::Listing,
    service_accounts::{account_name, resource_of},
    workspace::Workspace,
};

/// Most live keys of a workspace (AUTH-M9).
const MOST: i64 = 500;

/// Most live keys of one person in a workspace.
const MOST_OF_ONE: usize = 20;

/// Most networks of one key.
const MOST_NETWORKS: usize = 20;

/// Life of a key in days: by default, and at most (AUTH-C17).
const DAYS: i64 = 90;

const MOST_DAYS: i64 = 366;

/// An API key.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKey {
    #[schema(value_type = String, example = "key_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ApiKeyId,
    /// Display name.
    name: String,
    /// Its first characters.
    hint: String,
    /// The subject that it authenticates: a person (`usr_…`) or a service account (`svc_…`).
    #[schema(value_type = String)]
    holder: Subject,
    /// Display name of the holder.
    holder_name: String,
    /// URL of the one server that it opens; absent if it opens the whole workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resource: Option<String>,
    /// Networks from which it may be used, as CIDR blocks. Empty means everywhere.
    networks: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// Time of the last use, to five minutes.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
}

impl From<api_keys::ApiKey> for ApiKey {
    fn from(key: api_keys::ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            hint: key.hint,
            holder: key.holder,
            holder_name: key.holder_name,
            resource: key.resource,
            networks: key.networks,
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// The valid API keys, newest first: all keys of the workspace for admins and owners, otherwise the
/// person's own.
#[utoipa::path(get, path = "/workspaces/{ws}/api-keys", tag = "keys", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The keys.", body = Listing<ApiKey>)))]
pub(crate) async fn list_api_keys(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<ApiKey>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let own = workspace.own_unless_admin()?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let keys = api_keys::list(&mut tx, workspace.id, own, state.now()).await?;
    Ok(Json(Listing::whole(
        keys.into_iter().map(ApiKey::from).collect(),
    )))
}

/// A new API key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKeyBody {
    /// Display name: 1 to 80 characters.
    name: String,
    /// The service account that it authenticates; absent for the person. Admins and owners only.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    service_account_id: Option<ServiceAccountId>,
    /// The one server that it opens; absent for the whole workspace.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    server_id: Option<ServerId>,
    /// Networks from which it may be used: addresses or CIDR blocks. Empty means everywhere.
    #[serde(default)]
    networks: Vec<String>,
    /// Days until it expires: 1 to 366, 90 if absent.
    #[serde(default)]
    days: Option<i64>,
}

/// A key that was just created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedApiKey {
    /// The key as lists show it.
    key: ApiKey,
    /// The secret, shown only once.
    secret: String,
}

/// The resource of a key of a service account: a key cannot open more than its account may use.
async fn within(
    tx: &mut SystemTx,
    tenant: TenantId,
    account: ServiceAccountId,
    resource: Option<String>,
) -> Result<Option<String>, ConsoleError> {
    let account = service_accounts::list(tx, tenant)
        .await?
        .into_iter()
        .find(|one| one.id == account)
        .ok_or_else(|| ConsoleError::not_found("this service account"))?;
    match (account.resource, resource) {
        (Some(own), Some(asked)) if own != asked => Err(ConsoleError::invalid(
            "wider_than_account",
            "This service account may use one server only, and it is another one.",
        )
        .field("server_id")),
        (own, asked) => Ok(asked.or(own)),
    }
}

/// Refuses one key more than a person, or a workspace, can have.
async fn has_room(
    tx: &mut SystemTx,
    tenant: TenantId,
    holder: Subject,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    if let Subject::User(user) = holder
        && api_keys::list(tx, tenant, Some(user), now).await?.len() >= MOST_OF_ONE
    {
        return Err(ConsoleError::conflict(
            "too_many_keys",
            format!("You can have {MOST_OF_ONE} keys here. Revoke one that is not used."),
        ));
    }
    if api_keys::count(tx, tenant, now).await? >= MOST {
        return Err(ConsoleError::conflict(
            "too_many_keys",
            format!("A workspace can have {MOST} keys. Revoke some that are not used."),
        ));
    }
    Ok(())
}

/// Creates an API key, for clients that cannot do OAuth.
#[utoipa::path(post, path = "/workspaces/{ws}/api-keys", tag = "keys", params(("ws" = String, Path, description = "Slug")),
    request_body = NewApiKeyBody, responses((status = 201, description = "Made. It is shown this once.", body = CreatedApiKey)))]
pub(crate) async fn create_api_key(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(new): JsonBody<NewApiKeyBody>,
) -> Result<(StatusCode, Json<CreatedApiKey>), ConsoleError> {
    workspace.require(Action::CallTools)?;
    let name = account_name(&new.name)?;
    let networks = networks(&new.networks)?;
    let days = new.days.unwrap_or(DAYS);
    if !(1..=MOST_DAYS).contains(&days) {
        return Err(ConsoleError::invalid(
            "days_invalid",
            format!("A key lives 1 to {MOST_DAYS} days."),
        )
        .field("days"));
    }
    let now = state.now();
    let me = workspace.caller.browser()?.user;
    let resource = resource_of(&state, &workspace, new.server_id).await?;
    let holder = match new.service_account_id {
        None => Subject::User(me),
        Some(account) => {
            workspace.require(Action::Administer)?;
            Subject::Service(account)
        }
    };
    workspace.require_recent(now, ConsolePage::Keys)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    service_accounts::take_turn(&mut tx, workspace.id).await?;
    let resource = match holder {
        Subject::Service(account) => within(&mut tx, workspace.id, account, resource).await?,
        Subject::User(_) => resource,
    };
    has_room(&mut tx, workspace.id, holder, now).await?;
    let secret = SecretToken::generate(TokenForm::ApiKey)?;
    let id = ApiKeyId::generate();
    let expires_at = now + Duration::days(days);
    let key = NewApiKey {
        id,
        tenant: workspace.id,
        holder,
        name,
        digest: &secret.digest(),
        hint: secret.hint(),
        resource: resource.as_deref(),
        networks: &networks,
        created_by: me,
        expires_at,
    };
    api_keys::create(&mut tx, &key, now).await?;
    let detail = json!({ "name": name, "holder": holder, "resource": resource, "days": days });
    let event = workspace.event("api_key.created", "api_key", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let shown = api_keys::list(&mut tx, workspace.id, holder.user(), now)
        .await?
        .into_iter()
        .find(|key| key.id == id)
        .ok_or(StorageError::Inconsistent {
            table: "api_keys",
            column: "id",
        })?;
    tx.commit().await?;
    let created = CreatedApiKey {
        key: shown.into(),
        secret: secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// Reads networks as CIDR blocks, with the host bits cleared.
fn networks(texts: &[String]) -> Result<Vec<String>, ConsoleError> {
    let invalid =
        |message: String| ConsoleError::invalid("networks_invalid", message).field("networks");
    if texts.len() > MOST_NETWORKS {
        return Err(invalid(format!("Give at most {MOST_NETWORKS} networks.")));
    }
    texts
        .iter()
        .map(|text| {
            portolan_net::client_ip::network(text.trim()).ok_or_else(|| {
                invalid(
                    "Give addresses such as 192.0.2.7 or networks such as 192.0.2.0/24.".to_owned(),
                )
            })
        })
        .collect()
}

/// Revokes a key: it is refused and its streams are closed within a second. Members revoke their
/// own keys; admins and owners any.
#[utoipa::path(delete, path = "/workspaces/{ws}/api-keys/{id}", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Key")),
    responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_api_key(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ApiKeyKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Read)?;
    let now = state.now();
    let own = workspace.own_unless_admin()?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    api_keys::revoke(&mut tx, workspace.id, id, own, now)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this key"))?;
    let event = workspace.event("api_key.revoked", "api_key", id, json!({}));
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    notify_key_ended(&state, id);
    Ok(StatusCode::NO_CONTENT)
}
