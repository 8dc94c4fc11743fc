//! Credentials of a source's API: set, deleted, never shown. They are sealed at rest under the
//! workspace's data key (AUTH-3.5).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_http_tools::Credential;
use portolan_keys::{
    OpenError,
    vault::{credential_place, data_key_owner},
};
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind, TenantId},
    member::Action,
    registry::SourceKind,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        credential_states,
        credentials::{self, SealedCredential},
        sources::{CredentialNote, Source},
    },
    webhooks::alerts,
};
use portolan_upstream_sync::credentials::data_key;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    change,
    input::{JsonBody, PathId},
    source_rows::found,
    workspace::Workspace,
};

/// The visible part of a credential.
#[derive(Debug, Serialize, ToSchema)]
pub struct CredentialSummary {
    #[schema(value_type = CredentialKindName)]
    kind: String,
    /// Enough to recognise it, too little to use it.
    #[schema(example = "X-Api-Key: ••••cafe")]
    hint: String,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    /// Whether the API accepts it.
    state: CredentialStateView,
}

impl From<CredentialNote> for CredentialSummary {
    fn from(note: CredentialNote) -> Self {
        Self {
            kind: note.kind,
            hint: note.hint,
            updated_at: note.updated_at,
            state: note
                .state
                .map_or(CredentialStateView::NeverTried, Into::into),
        }
    }
}

/// The state of a credential after the last request that carried it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
#[schema(as = CredentialState)]
pub enum CredentialStateView {
    /// No request carried it yet.
    NeverTried,
    /// The API answered with success.
    Works {
        /// When.
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    /// The API, or its token endpoint, refused it.
    Refused {
        /// HTTP status.
        status: u16,
        /// When.
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    /// It was tested, and the answer shows nothing of it.
    Inconclusive {
        /// Why, as a sentence.
        reason: String,
        /// When.
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
}

impl From<(credential_states::CredentialState, OffsetDateTime)> for CredentialStateView {
    fn from((state, at): (credential_states::CredentialState, OffsetDateTime)) -> Self {
        use credential_states::CredentialState as Seen;
        match state {
            Seen::Works => Self::Works { at },
            Seen::Refused(status) => Self::Refused { status, at },
            Seen::Inconclusive(reason) => Self::Inconclusive { reason, at },
        }
    }
}

/// Kinds of credentials.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CredentialKind)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is http_tools::Credential::kind"
)]
enum CredentialKindName {
    ApiKey,
    Bearer,
    Basic,
    Headers,
    OauthClientCredentials,
}

/// A new credential.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = Credential)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is http_tools::Credential"
)]
pub(crate) enum CredentialForm {
    /// One key.
    ApiKey {
        /// The place of the key in a request.
        #[serde(rename = "in")]
        place: KeyPlaceName,
        /// Name of the header, query parameter or cookie.
        name: String,
        /// The key.
        value: String,
    },
    /// `Authorization: Bearer …`
    Bearer {
        /// The token.
        token: String,
    },
    /// `Authorization: Basic …`
    Basic {
        /// User name.
        username: String,
        /// Password.
        password: String,
    },
    /// Any headers.
    Headers {
        /// Up to 20.
        headers: Vec<CredentialHeaderForm>,
    },
    /// OAuth 2.0 client credentials.
    OauthClientCredentials {
        /// Token endpoint.
        token_url: String,
        /// Client id.
        client_id: String,
        /// Client secret.
        client_secret: String,
        /// Scopes, separated by spaces.
        #[schema(nullable = false)]
        scope: Option<String>,
        /// How the client sends its secret; `basic` if absent.
        #[schema(nullable = false)]
        auth: Option<ClientAuthName>,
    },
}

/// The place of an API key in a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = KeyPlace)]
pub(crate) enum KeyPlaceName {
    /// A header.
    Header,
    /// The query.
    Query,
    /// A cookie.
    Cookie,
}

/// How an OAuth client sends its secret.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ClientAuth)]
pub(crate) enum ClientAuthName {
    /// HTTP Basic.
    Basic,
    /// In the form.
    Post,
}

/// A header of a credential.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CredentialHeader)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is http_tools::CredentialHeader"
)]
pub(crate) struct CredentialHeaderForm {
    /// Name.
    name: String,
    /// Secret value.
    value: String,
}

/// Sets a source's credential. The API never returns the secret. Replacing a credential requires a
/// recent sign-in.
#[utoipa::path(put, path = "/workspaces/{ws}/sources/{id}/credential", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = CredentialForm, responses((status = 200, description = "Set.", body = CredentialSummary)))]
pub(crate) async fn set_credential(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(credential): JsonBody<Credential>,
) -> Result<Json<CredentialSummary>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let credential = checked(&state, credential)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let source = found(&mut tx, id).await?;
    let hint = put(&state, &mut tx, &workspace, &source, &credential, now).await?;
    let detail = json!({ "kind": credential.kind() });
    let event = workspace.event("credential.set", "source", id, detail);
    change::commit(tx, &context, now, &event).await?;
    Ok(Json(CredentialSummary {
        kind: credential.kind().to_owned(),
        hint,
        updated_at: now,
        state: CredentialStateView::NeverTried,
    }))
}

/// A credential that requests can carry, and whose tokens may be fetched.
pub(crate) fn checked(
    state: &AuthState,
    credential: Credential,
) -> Result<Credential, ConsoleError> {
    let credential = credential.checked().map_err(|error| {
        ConsoleError::invalid("credential_invalid", error.message).field(error.field)
    })?;
    if let Credential::OauthClientCredentials { token_url, .. } = &credential
        && let Ok(url) = url::Url::parse(token_url)
    {
        state.egress.check(&url).map_err(|error| {
            ConsoleError::invalid(
                "credential_invalid",
                format!("Tokens cannot be fetched there: {error}."),
            )
            .field("token_url")
        })?;
    }
    Ok(credential)
}

/// Seals and stores a checked credential of a source, and returns its hint. Replacing one takes a
/// recent sign-in.
pub(crate) async fn put(
    state: &AuthState,
    tx: &mut TenantTx,
    workspace: &Workspace,
    source: &Source,
    credential: &Credential,
    now: OffsetDateTime,
) -> Result<String, ConsoleError> {
    let id = source.id;
    if source.kind != SourceKind::Mcp && source.sharing.is_some() {
        let message = "This source is signed in to. Stop that first: accounts that are connected are forgotten then.";
        return Err(ConsoleError::conflict("signed_in", message));
    }
    // The first credential is part of set-up. Replacing one changes the credential of every
    // member's calls.
    if credentials::find(tx, id).await?.is_some() {
        workspace.require_recent_at_source(now, id)?;
    }
    store(state, tx, workspace.id, id, credential, now).await?;
    end_alert(tx, id, now).await?;
    Ok(credential.hint())
}

/// Seals a credential as the next version of its source's, and stores it. Returns the version.
pub(crate) async fn store(
    state: &AuthState,
    tx: &mut TenantTx,
    tenant: TenantId,
    source: SourceId,
    credential: &Credential,
    now: OffsetDateTime,
) -> Result<i32, ConsoleError> {
    let version = credentials::next_version(tx, source)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this source"))?;
    let sealed = seal(state, tx, tenant, source, version, credential, now).await?;
    credentials::put(tx, source, &sealed, &credential.hint(), now).await?;
    Ok(version)
}

/// Deletes a source's credential.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}/credential", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 204, description = "Forgotten, or there was none.")))]
pub(crate) async fn delete_credential(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    if credentials::delete(&mut tx, id).await? {
        end_alert(&mut tx, id, now).await?;
        let event = workspace.event("credential.deleted", "source", id, json!({}));
        change::commit(tx, &context, now, &event).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the alert about a source's credential: it was replaced or removed, or goes to another
/// address. If the new one is refused too, that is another alert (HOOK-21).
pub(crate) async fn end_alert(
    tx: &mut TenantTx,
    source: SourceId,
    now: OffsetDateTime,
) -> Result<(), StorageError> {
    alerts::settle(tx, alerts::CREDENTIAL_REFUSED, &source.to_string(), now).await
}

/// Seals under the workspace's newest data key, and creates the first one if there is none.
async fn seal(
    state: &AuthState,
    tx: &mut TenantTx,
    tenant: TenantId,
    source: SourceId,
    version: i32,
    credential: &Credential,
    now: OffsetDateTime,
) -> Result<SealedCredential, ConsoleError> {
    let tenant_bytes = tenant.uuid().into_bytes();
    let key = data_key::<ConsoleError>(state, tx, tenant, now).await?;
    let owner = data_key_owner(tenant_bytes, key.id.into_bytes());
    let opened = state
        .keys
        .open_data_key(&owner, &key.wrapped, now)
        .map_err(|error: OpenError| ConsoleError::internal("data key", error))?;
    let plaintext = serde_json::to_vec(credential)
        .map_err(|error| ConsoleError::internal("credential", error))?;
    let place = credential_place(tenant_bytes, source.uuid().into_bytes(), version);
    let sealed = opened.seal(&place, &plaintext)?;
    Ok(SealedCredential {
        kind: credential.kind().to_owned(),
        sealed,
        key,
        version,
    })
}
