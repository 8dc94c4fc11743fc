//! Service accounts of a workspace: programs that act in it without a person
//! (AUTH-C17, AUTH-T12, AUTH-M9).

pub(crate) mod api_access;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_cluster::revocations::Revocation;
use portolan_model::{
    client::{AuthMethod, ClientKind},
    id::{ClientId, ServerId, ServiceAccountId, ServiceAccountKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage, workspaces::display_name,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::api_access as stored_access,
    oauth::{
        grants::REVOCATION_MEMORY,
        service_accounts::{self, NewServiceAccount},
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use self::api_access::ApiAccess;
use crate::{
    client_credentials::{
        ClientSecret, CredentialChange, CredentialOwner, Credentials, NewCredential, NewOwner,
        NewSecret, OwnerWords, PublicKeysBody, SecretPart,
    },
    input::{JsonBody, PathId, PathPart},
    listing::Listing,
    servers::{found_server, server_url},
    workspace::Workspace,
};

/// Most service accounts of a workspace (AUTH-M9).
const MOST: usize = 100;

/// How an account proves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountAuth {
    /// A secret, in the header or in the form.
    ClientSecret,
    /// A JWT signed with a key that only the account has.
    PrivateKeyJwt,
}

/// A service account.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServiceAccount {
    /// Its id, which is also its `client_id`.
    #[schema(value_type = String, example = "svc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ServiceAccountId,
    /// Display name.
    name: String,
    /// How it proves itself.
    auth: AccountAuth,
    /// URL of the one server that it may use; absent if it may use the whole workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resource: Option<String>,
    /// False while it is switched off.
    enabled: bool,
    /// The person who created it, if they still have an account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time of its last token.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
    /// Its secrets, oldest first; none if it proves itself by key.
    secrets: Vec<ClientSecret>,
    /// The address of its public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    jwks_uri: Option<String>,
    /// Its public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    jwks: Option<Value>,
    /// Its access to the management API; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    api_access: Option<ApiAccess>,
}

async fn views(
    tx: &mut SystemTx,
    workspace: &Workspace,
) -> Result<Vec<ServiceAccount>, ConsoleError> {
    let accounts = service_accounts::list(tx, workspace.id).await?;
    let clients = accounts.iter().map(|account| account.client);
    let credentials = Credentials::read(tx, clients).await?;
    let mut accesses = stored_access::list(tx, workspace.id).await?;
    let view = |account: service_accounts::ServiceAccount| {
        let credential = credentials.of(account.client, &account.metadata);
        let access = accesses
            .extract_if(.., |one| one.account == account.id)
            .next();
        ServiceAccount {
            api_access: access.map(ApiAccess::from),
            secrets: credential.secrets,
            jwks_uri: credential.jwks_uri,
            jwks: credential.jwks,
            id: account.id,
            name: account.name,
            auth: if account.auth_method == AuthMethod::PrivateKeyJwt {
                AccountAuth::PrivateKeyJwt
            } else {
                AccountAuth::ClientSecret
            },
            resource: account.resource,
            enabled: account.disabled_at.is_none(),
            created_by: account.created_by,
            created_at: account.created_at,
            last_used_at: account.last_used_at,
        }
    };
    Ok(accounts.into_iter().map(view).collect())
}

async fn found(
    tx: &mut SystemTx,
    workspace: &Workspace,
    id: ServiceAccountId,
) -> Result<service_accounts::ServiceAccount, ConsoleError> {
    service_accounts::list(tx, workspace.id)
        .await?
        .into_iter()
        .find(|account| account.id == id)
        .ok_or_else(unknown)
}

fn unknown() -> ConsoleError {
    ConsoleError::not_found("this service account")
}

impl CredentialOwner for ServiceAccountKind {
    const WORDS: OwnerWords = OwnerWords {
        target: "service_account",
        page: ConsolePage::Keys,
        no_keys: [
            "has_a_secret",
            "This account proves itself by secret. Make another one that proves itself by key.",
        ],
        no_secrets: [
            "has_keys",
            "This account proves itself by key and has no secrets.",
        ],
        keys_replaced: "service_account.keys_replaced",
        secret_added: "service_account.secret_added",
        secret_revoked: "service_account.secret_revoked",
    };

    async fn client(
        tx: &mut SystemTx,
        workspace: &Workspace,
        id: ServiceAccountId,
        _: OffsetDateTime,
    ) -> Result<(ClientId, AuthMethod), ConsoleError> {
        let account = found(tx, workspace, id).await?;
        Ok((account.client, account.auth_method))
    }

    async fn withdraw(
        tx: &mut SystemTx,
        workspace: &Workspace,
        id: ServiceAccountId,
        now: OffsetDateTime,
    ) -> Result<Option<i32>, StorageError> {
        service_accounts::end_tokens(tx, workspace.id, id, now).await
    }

    fn notify(state: &AuthState, account: ServiceAccountId, epoch: Option<i32>) {
        if let Some(epoch) = epoch {
            state.oauth.revocations.insert(
                Revocation::Service { account, epoch },
                state.now() + REVOCATION_MEMORY,
            );
        }
    }
}

async fn view(
    tx: &mut SystemTx,
    workspace: &Workspace,
    id: ServiceAccountId,
) -> Result<ServiceAccount, ConsoleError> {
    views(tx, workspace)
        .await?
        .into_iter()
        .find(|account| account.id == id)
        .ok_or_else(unknown)
}

/// The service accounts of a workspace, by name. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/service-accounts", tag = "keys", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The accounts.", body = Listing<ServiceAccount>)))]
pub(crate) async fn list_service_accounts(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<ServiceAccount>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    Ok(Json(Listing::whole(views(&mut tx, &workspace).await?)))
}

/// A new service account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccountBody {
    /// Display name: 1 to 80 characters.
    name: String,
    /// How it proves itself.
    auth: AccountAuth,
    /// Its public keys as a JWK set, for `private_key_jwt`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    jwks: Option<Value>,
    /// Or the address of its public keys: `https`, without query.
    #[serde(default)]
    jwks_uri: Option<String>,
    /// The one server that it may use; absent for the whole workspace.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    server_id: Option<ServerId>,
}

/// A service account that was just created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedAccount {
    /// The account.
    account: ServiceAccount,
    /// Its secret, shown only once; absent if it proves itself by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_secret: Option<String>,
    /// The address of the token endpoint.
    token_endpoint: String,
}

pub(crate) fn account_name(text: &str) -> Result<&str, ConsoleError> {
    display_name(text).ok_or_else(|| {
        ConsoleError::invalid("name_invalid", "Give it a name of 1 to 80 characters.").field("name")
    })
}

/// Creates a service account. It belongs to the workspace and stays when its creator leaves.
#[utoipa::path(post, path = "/workspaces/{ws}/service-accounts", tag = "keys", params(("ws" = String, Path, description = "Slug")),
    request_body = NewAccountBody, responses((status = 201, description = "Made. The secret is shown this once.", body = CreatedAccount)))]
pub(crate) async fn create_service_account(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(new): JsonBody<NewAccountBody>,
) -> Result<(StatusCode, Json<CreatedAccount>), ConsoleError> {
    workspace.require(Action::Administer)?;
    let name = account_name(&new.name)?;
    let now = state.now();
    let method = match new.auth {
        AccountAuth::ClientSecret => AuthMethod::ClientSecretBasic,
        AccountAuth::PrivateKeyJwt => AuthMethod::PrivateKeyJwt,
    };
    let credential = NewCredential::checked(method, new.jwks, new.jwks_uri)?;
    let resource = resource_of(&state, &workspace, new.server_id).await?;
    workspace.require_recent(now, ConsolePage::Keys)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    service_accounts::take_turn(&mut tx, workspace.id).await?;
    if service_accounts::list(&mut tx, workspace.id).await?.len() >= MOST {
        return Err(ConsoleError::conflict(
            "too_many_accounts",
            format!("A workspace can have {MOST} service accounts. Delete one that is not used."),
        ));
    }
    let id = ServiceAccountId::generate();
    let owner = NewOwner {
        id: ClientId::generate(),
        client_id: &id.to_string(),
        kind: ClientKind::Service,
        name,
        application_type: "web",
        grant_types: &["client_credentials".to_owned()],
        redirect_uris: &[],
    };
    let client_secret = credential
        .register(&mut tx, workspace.id, &owner, now)
        .await?;
    let account = NewServiceAccount {
        id,
        client: owner.id,
        tenant: workspace.id,
        resource: resource.as_deref(),
        created_by: workspace.caller.browser()?.user,
    };
    service_accounts::create(&mut tx, &account, now).await?;
    let detail = json!({ "name": name, "auth": new.auth, "resource": resource });
    let event = workspace.event("service_account.created", "service_account", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let account = view(&mut tx, &workspace, id).await?;
    tx.commit().await?;
    let created = CreatedAccount {
        account,
        client_secret,
        token_endpoint: state.site.url("/oauth/token"),
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// The canonical resource of a server; `None` for the whole workspace.
pub(crate) async fn resource_of(
    state: &AuthState,
    workspace: &Workspace,
    server: Option<ServerId>,
) -> Result<Option<String>, ConsoleError> {
    let Some(id) = server else { return Ok(None) };
    let mut tx = state.store.tenant(workspace.id).await?;
    let server = found_server(&mut tx, id).await?;
    Ok(Some(server_url(state, workspace, &server.slug)))
}

/// A change of a service account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountChange {
    /// Display name.
    #[serde(default)]
    name: Option<String>,
    /// False switches it off: its tokens and keys are refused within a second.
    #[serde(default)]
    enabled: Option<bool>,
}

/// Renames an account, or switches it off or on.
#[utoipa::path(patch, path = "/workspaces/{ws}/service-accounts/{id}", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    request_body = AccountChange, responses((status = 200, description = "Changed.", body = ServiceAccount)))]
pub(crate) async fn change_service_account(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    context: RequestContext,
    JsonBody(change): JsonBody<AccountChange>,
) -> Result<Json<ServiceAccount>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    if let Some(enabled) = change.enabled {
        workspace.require_recent_to_switch(enabled, now, ConsolePage::Keys)?;
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    found(&mut tx, &workspace, id).await?;
    let mut epoch = None;
    if let Some(name) = &change.name {
        let name = account_name(name)?;
        service_accounts::rename(&mut tx, workspace.id, id, name).await?;
        let event = workspace.event(
            "service_account.renamed",
            "service_account",
            id,
            json!({ "name": name }),
        );
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    if let Some(enabled) = change.enabled {
        epoch = service_accounts::set_disabled(&mut tx, workspace.id, id, !enabled, now).await?;
        if epoch.is_some() {
            let action = if enabled {
                "service_account.enabled"
            } else {
                "service_account.disabled"
            };
            let event = workspace.event(action, "service_account", id, json!({}));
            audit::record(&mut tx, &event, &context.origin(), now).await?;
        }
    }
    let account = view(&mut tx, &workspace, id).await?;
    tx.commit().await?;
    ServiceAccountKind::notify(&state, id, epoch);
    Ok(Json(account))
}

/// Deletes an account with its secrets and API keys. Its tokens and keys are refused within a
/// second.
#[utoipa::path(delete, path = "/workspaces/{ws}/service-accounts/{id}", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_service_account(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let account = found(&mut tx, &workspace, id).await?;
    let epoch = service_accounts::delete(&mut tx, workspace.id, id, now).await?;
    let detail = json!({ "name": account.name });
    let event = workspace.event("service_account.deleted", "service_account", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    ServiceAccountKind::notify(&state, id, epoch);
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the public keys of an account that proves itself by key. Tokens that it got with the
/// former keys are refused.
#[utoipa::path(put, path = "/workspaces/{ws}/service-accounts/{id}/public-keys", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    request_body = PublicKeysBody, responses((status = 200, description = "Replaced.", body = ServiceAccount)))]
pub(crate) async fn replace_public_keys(
    change: CredentialChange<ServiceAccountKind>,
    JsonBody(keys): JsonBody<PublicKeysBody>,
) -> Result<Json<ServiceAccount>, ConsoleError> {
    change.replace_keys(keys).await?;
    let mut tx = change.begin().await?;
    view(&mut tx, &change.workspace, change.id).await.map(Json)
}

/// Adds a second secret, so that the first can be replaced without a pause. Put the new one into
/// use, then revoke the old one.
#[utoipa::path(post, path = "/workspaces/{ws}/service-accounts/{id}/secrets", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    responses((status = 201, description = "Made. It is shown this once.", body = NewSecret)))]
pub(crate) async fn add_account_secret(
    change: CredentialChange<ServiceAccountKind>,
) -> Result<(StatusCode, Json<NewSecret>), ConsoleError> {
    change.add_secret().await
}

/// Revokes a secret. Older tokens of the account are refused within a second; with its other secret
/// it gets new ones.
#[utoipa::path(delete, path = "/workspaces/{ws}/service-accounts/{id}/secrets/{secret}", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account"),
        ("secret" = String, Path, description = "Secret")),
    responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_account_secret(
    change: CredentialChange<ServiceAccountKind>,
    secret: PathPart<SecretPart>,
) -> Result<StatusCode, ConsoleError> {
    change.revoke_secret(secret.id).await
}
