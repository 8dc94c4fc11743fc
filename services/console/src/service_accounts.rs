//! Service accounts of a workspace: programs that act in it without a person
//! (AUTH-C17, AUTH-T12, AUTH-M9).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_cluster::revocations::Revocation;
use portolan_keys::{ClientKeys, SecretToken, TokenForm, digest};
use portolan_model::{
    client::{AuthMethod, ClientKind},
    id::{
        ClientId, ClientSecretId, ClientSecretKind, ServerId, ServiceAccountId, ServiceAccountKind,
    },
    member::Action,
};
use portolan_oauth::clients::described::check_url;
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage, workspaces::display_name,
};
use portolan_storage::{
    Reason, SystemTx,
    oauth::{
        client_proofs, client_secrets,
        clients::{self, NewClient},
        grants::REVOCATION_MEMORY,
        service_accounts::{self, NewServiceAccount},
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId, PathPart},
    listing::Listing,
    servers::{found_server, server_url},
    workspace::Workspace,
};

/// Most service accounts of a workspace (AUTH-M9).
const MOST: usize = 100;

/// Largest key set that a form may contain, in bytes of JSON.
const MAX_JWKS_BYTES: usize = 16 * 1024;

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
}

/// The visible part of a secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientSecret {
    #[schema(value_type = String)]
    id: ClientSecretId,
    /// Its first characters.
    hint: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time when it last proved the account.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
}

impl From<client_secrets::ClientSecret> for ClientSecret {
    fn from(secret: client_secrets::ClientSecret) -> Self {
        Self {
            id: secret.id,
            hint: secret.hint,
            created_at: secret.created_at,
            last_used_at: secret.last_used_at,
        }
    }
}

/// A secret that was just created. It is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewSecret {
    /// The secret as lists show it.
    secret: ClientSecret,
    /// The secret itself.
    client_secret: String,
}

impl NewSecret {
    /// The id of the secret.
    pub(crate) fn id(&self) -> ClientSecretId {
        self.secret.id
    }
}

async fn views(
    tx: &mut SystemTx,
    workspace: &Workspace,
) -> Result<Vec<ServiceAccount>, ConsoleError> {
    let accounts = service_accounts::list(tx, workspace.id).await?;
    let ids: Vec<ClientId> = accounts.iter().map(|account| account.client).collect();
    let secrets = client_secrets::list(tx, &ids).await?;
    let member = |metadata: &Value, name: &str| metadata.get(name).cloned();
    Ok(accounts
        .into_iter()
        .map(|account| ServiceAccount {
            secrets: secrets
                .iter()
                .filter(|secret| secret.client == account.client)
                .cloned()
                .map(ClientSecret::from)
                .collect(),
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
            jwks_uri: member(&account.metadata, "jwks_uri")
                .and_then(|uri| uri.as_str().map(str::to_owned)),
            jwks: member(&account.metadata, "jwks"),
        })
        .collect())
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
        .ok_or_else(|| ConsoleError::not_found("this service account"))
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
        .ok_or_else(|| ConsoleError::not_found("this service account"))
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
    let (auth_method, metadata) = match new.auth {
        AccountAuth::ClientSecret => (AuthMethod::ClientSecretBasic, json!({})),
        AccountAuth::PrivateKeyJwt => (
            AuthMethod::PrivateKeyJwt,
            key_metadata(new.jwks, new.jwks_uri)?,
        ),
    };
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
    let client_id = id.to_string();
    let secret = if auth_method.has_secret() {
        Some(SecretToken::generate(TokenForm::ClientSecret)?)
    } else {
        None
    };
    let client = clients::register(
        &mut tx,
        &NewClient {
            id: ClientId::generate(),
            client_id: &client_id,
            kind: ClientKind::Service,
            tenant: Some(workspace.id),
            name,
            metadata: &metadata,
            metadata_digest: digest(client_id.as_bytes()),
            auth_method,
            application_type: "web",
            grant_types: &["client_credentials".to_owned()],
            redirect_uris: &[],
            secret: secret
                .as_ref()
                .map(|secret| (secret.digest(), secret.hint())),
            ip_block: None,
        },
        now,
    )
    .await?;
    let account = NewServiceAccount {
        id,
        client: client.id,
        tenant: workspace.id,
        resource: resource.as_deref(),
        created_by: workspace.session.user,
    };
    service_accounts::create(&mut tx, &account, now).await?;
    let detail = json!({ "name": name, "auth": new.auth, "resource": resource });
    let event = workspace.event("service_account.created", "service_account", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let account = view(&mut tx, &workspace, id).await?;
    tx.commit().await?;
    let created = CreatedAccount {
        account,
        client_secret: secret.map(|secret| secret.expose().to_owned()),
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

/// Checks a client's public keys or their address, and returns them as metadata.
pub(crate) fn key_metadata(
    jwks: Option<Value>,
    jwks_uri: Option<String>,
) -> Result<Value, ConsoleError> {
    let invalid =
        |field, message: String| Err(ConsoleError::invalid("keys_invalid", message).field(field));
    match (jwks, jwks_uri) {
        (Some(jwks), None) => {
            if jwks.to_string().len() > MAX_JWKS_BYTES {
                return invalid("jwks", "The key set is larger than 16 KiB.".to_owned());
            }
            match ClientKeys::read(&jwks) {
                Ok(_) => Ok(json!({ "jwks": jwks })),
                Err(fault) => invalid("jwks", format!("This key set cannot be used: {fault}.")),
            }
        }
        (None, Some(uri)) => match check_url(uri.trim()) {
            Ok(url) => Ok(json!({ "jwks_uri": url.as_str() })),
            Err(_) => invalid(
                "jwks_uri",
                "Give an https address with a host name and a path, without query.".to_owned(),
            ),
        },
        _ => invalid(
            "jwks",
            "Give either the public keys or the address where they stand.".to_owned(),
        ),
    }
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
    tell(&state, id, epoch);
    Ok(Json(account))
}

/// Notifies the nodes of this process at once; the others read the revocation from the feed.
fn tell(state: &AuthState, account: ServiceAccountId, epoch: Option<i32>) {
    if let Some(epoch) = epoch {
        state.oauth.revocations.insert(
            Revocation::Service { account, epoch },
            state.now() + REVOCATION_MEMORY,
        );
    }
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
    tell(&state, id, epoch);
    Ok(StatusCode::NO_CONTENT)
}

/// The public keys of an account, or their address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicKeysBody {
    /// A JWK set.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) jwks: Option<Value>,
    /// Or its address.
    #[serde(default)]
    pub(crate) jwks_uri: Option<String>,
}

/// Replaces the public keys of an account that proves itself by key. Tokens that it got with the
/// former keys are refused.
#[utoipa::path(put, path = "/workspaces/{ws}/service-accounts/{id}/public-keys", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    request_body = PublicKeysBody, responses((status = 200, description = "Replaced.", body = ServiceAccount)))]
pub(crate) async fn replace_public_keys(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    context: RequestContext,
    JsonBody(keys): JsonBody<PublicKeysBody>,
) -> Result<Json<ServiceAccount>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let metadata = key_metadata(keys.jwks, keys.jwks_uri)?;
    workspace.require_recent(now, ConsolePage::Keys)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let account = found(&mut tx, &workspace, id).await?;
    if account.auth_method != AuthMethod::PrivateKeyJwt {
        return Err(ConsoleError::conflict(
            "has_a_secret",
            "This account proves itself by secret. Make another one that proves itself by key.",
        ));
    }
    clients::set_metadata(&mut tx, account.client, &metadata).await?;
    client_proofs::forget_key_set(&mut tx, account.client).await?;
    let epoch = service_accounts::end_tokens(&mut tx, workspace.id, id, now).await?;
    let event = workspace.event(
        "service_account.keys_replaced",
        "service_account",
        id,
        json!({}),
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let account = view(&mut tx, &workspace, id).await?;
    tx.commit().await?;
    tell(&state, id, epoch);
    Ok(Json(account))
}

/// Adds a second secret, so that the first can be replaced without a pause. Put the new one into
/// use, then revoke the old one.
#[utoipa::path(post, path = "/workspaces/{ws}/service-accounts/{id}/secrets", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    responses((status = 201, description = "Made. It is shown this once.", body = NewSecret)))]
pub(crate) async fn add_account_secret(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    context: RequestContext,
) -> Result<(StatusCode, Json<NewSecret>), ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Keys)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let account = found(&mut tx, &workspace, id).await?;
    if !account.auth_method.has_secret() {
        return Err(ConsoleError::conflict(
            "has_keys",
            "This account proves itself by key and has no secrets.",
        ));
    }
    let secret = add_secret(&mut tx, account.client, now).await?;
    let detail = json!({ "secret": secret.secret.id });
    let event = workspace.event(
        "service_account.secret_added",
        "service_account",
        id,
        detail,
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(secret)))
}

/// Creates a secret for a client that may have one more.
pub(crate) async fn add_secret(
    tx: &mut SystemTx,
    client: ClientId,
    now: OffsetDateTime,
) -> Result<NewSecret, ConsoleError> {
    let secret = SecretToken::generate(TokenForm::ClientSecret)?;
    let id = client_secrets::add(tx, client, &secret.digest(), secret.hint(), now)
        .await?
        .ok_or_else(|| {
            ConsoleError::conflict(
                "too_many_secrets",
                "There are two secrets already. Revoke the one that is not used any more first.",
            )
        })?;
    Ok(NewSecret {
        secret: ClientSecret {
            id,
            hint: secret.hint().to_owned(),
            created_at: now,
            last_used_at: None,
        },
        client_secret: secret.expose().to_owned(),
    })
}

/// Revokes a secret. Older tokens of the account are refused within a second; with its other secret
/// it gets new ones.
#[utoipa::path(delete, path = "/workspaces/{ws}/service-accounts/{id}/secrets/{secret}", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account"),
        ("secret" = String, Path, description = "Secret")),
    responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_account_secret(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    secret: PathPart<SecretPart>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let account = found(&mut tx, &workspace, id).await?;
    if !client_secrets::revoke(&mut tx, account.client, secret.id, now).await? {
        return Err(ConsoleError::not_found("this secret"));
    }
    let epoch = service_accounts::end_tokens(&mut tx, workspace.id, id, now).await?;
    let detail = json!({ "secret": secret.id });
    let event = workspace.event(
        "service_account.secret_revoked",
        "service_account",
        id,
        detail,
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    tell(&state, id, epoch);
    Ok(StatusCode::NO_CONTENT)
}

/// The part `{secret}` of a path.
#[derive(Debug)]
pub struct SecretPart;

impl crate::input::Part for SecretPart {
    const NAME: &'static str = "secret";
    type Kind = ClientSecretKind;
}
