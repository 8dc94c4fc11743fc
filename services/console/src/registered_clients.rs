//! Clients that administrators registered for their workspace (AUTH-C14, AUTH-C16, AUTH-M9). They
//! serve programs into which a person types a client id, and perhaps a secret.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    admission::ClientDecision,
    client::{AuthMethod, ClientKind as StoredKind},
    id::{ClientId, ClientKind},
    member::Action,
    redirect,
};
use portolan_oauth::{admission, clients::members::describe_redirect};
use portolan_site::{
    console_error::ConsoleError, names, request_context::RequestContext, revocation,
    state::AuthState, target::ConsolePage,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    oauth::{client_admission, connected_apps::Ended, registered_clients, service_accounts},
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    client_credentials::{
        ClientSecret, CredentialChange, CredentialOwner, Credentials, NewCredential, NewOwner,
        NewSecret, OwnerWords, PublicKeysBody, SecretPart,
    },
    input::{JsonBody, PathId, PathPart},
    listing::Listing,
    service_accounts::account_name,
    workspace::Workspace,
};

/// Most registered clients of a workspace (AUTH-M9).
const MOST: usize = 100;

/// How a client proves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientProof {
    /// Without a proof: a program on people's computers, which PKCE protects.
    None,
    /// A secret, in the header or in the form.
    ClientSecret,
    /// A JWT signed with a key that only the client has.
    PrivateKeyJwt,
}

/// A client that this workspace registered.
#[derive(Debug, Serialize, ToSchema)]
pub struct RegisteredClient {
    /// Internal id of the client.
    #[schema(value_type = String, example = "cli_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ClientId,
    /// The `client_id` that is typed into the program.
    client_id: String,
    /// Display name.
    name: String,
    /// Its redirect URIs.
    redirect_uris: Vec<String>,
    /// How it proves itself.
    proof: ClientProof,
    /// False while it is switched off.
    enabled: bool,
    /// Blocked by the operator of this installation.
    stopped: bool,
    /// Its secrets, oldest first.
    secrets: Vec<ClientSecret>,
    /// The address of its public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    jwks_uri: Option<String>,
    /// Its public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    jwks: Option<Value>,
    /// Number of its present connections.
    apps: i64,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time when a person last allowed it to connect.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
}

const fn proof_of(method: AuthMethod) -> ClientProof {
    match method {
        AuthMethod::None => ClientProof::None,
        AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost => ClientProof::ClientSecret,
        AuthMethod::PrivateKeyJwt => ClientProof::PrivateKeyJwt,
    }
}

async fn views(
    tx: &mut SystemTx,
    workspace: &Workspace,
    now: OffsetDateTime,
) -> Result<Vec<RegisteredClient>, ConsoleError> {
    let registered = registered_clients::list(tx, workspace.id, now).await?;
    let clients = registered.iter().map(|client| client.id);
    let credentials = Credentials::read(tx, clients).await?;
    Ok(registered
        .into_iter()
        .map(|client| {
            let credential = credentials.of(client.id, &client.metadata);
            RegisteredClient {
                secrets: credential.secrets,
                jwks_uri: credential.jwks_uri,
                jwks: credential.jwks,
                id: client.id,
                client_id: client.client_id,
                name: client.name,
                redirect_uris: client.redirect_uris,
                proof: proof_of(client.auth_method),
                enabled: !client.is_blocked,
                stopped: client.is_stopped,
                apps: client.apps,
                created_at: client.created_at,
                last_used_at: client.last_used_at,
            }
        })
        .collect())
}

async fn view(
    tx: &mut SystemTx,
    workspace: &Workspace,
    now: OffsetDateTime,
    id: ClientId,
) -> Result<RegisteredClient, ConsoleError> {
    views(tx, workspace, now)
        .await?
        .into_iter()
        .find(|client| client.id == id)
        .ok_or_else(|| ConsoleError::not_found("this client"))
}

impl CredentialOwner for ClientKind {
    const WORDS: OwnerWords = OwnerWords {
        target: "client",
        page: ConsolePage::Clients,
        no_keys: [
            "has_no_keys",
            "This client does not prove itself by key. Register another one that does.",
        ],
        no_secrets: [
            "has_no_secrets",
            "This client does not prove itself by secret. Register another one that does.",
        ],
        keys_replaced: "registered_client.keys_replaced",
        secret_added: "registered_client.secret_added",
        secret_revoked: "registered_client.secret_revoked",
    };

    async fn client(
        tx: &mut SystemTx,
        workspace: &Workspace,
        id: ClientId,
        now: OffsetDateTime,
    ) -> Result<(ClientId, AuthMethod), ConsoleError> {
        let all = registered_clients::list(tx, workspace.id, now).await?;
        all.into_iter()
            .find(|client| client.id == id)
            .map(|client| (client.id, client.auth_method))
            .ok_or_else(|| ConsoleError::not_found("this client"))
    }

    /// Connections stay: they refresh with the other secret, or with the new keys.
    async fn withdraw(
        _: &mut SystemTx,
        _: &Workspace,
        _: ClientId,
        _: OffsetDateTime,
    ) -> Result<Option<i32>, StorageError> {
        Ok(None)
    }

    fn notify(_: &AuthState, _: ClientId, _: Option<i32>) {}
}

/// The registered clients of a workspace, by name. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/registered-clients", tag = "clients", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The clients.", body = Listing<RegisteredClient>)))]
pub(crate) async fn list_registered_clients(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<RegisteredClient>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    Ok(Json(Listing::whole(
        views(&mut tx, &workspace, state.now()).await?,
    )))
}

/// A new client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClientBody {
    /// Display name, also on the consent page: 1 to 80 characters.
    name: String,
    /// Its redirect URIs: 1 to 20 addresses.
    redirect_uris: Vec<String>,
    /// How it proves itself.
    proof: ClientProof,
    /// Its public keys as a JWK set, for `private_key_jwt`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    jwks: Option<Value>,
    /// Or the address of its public keys: `https`, without query.
    #[serde(default)]
    jwks_uri: Option<String>,
}

/// A client that was just created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedClient {
    /// The client.
    client: RegisteredClient,
    /// Its secret, shown only once; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_secret: Option<String>,
}

/// Cleans the name like that of any client (AUTH-C7), because the consent page shows it.
fn client_name(text: &str) -> Result<String, ConsoleError> {
    let text = account_name(text)?;
    names::clean(text).ok_or_else(|| {
        ConsoleError::invalid("name_invalid", "Give it a name that can be read.").field("name")
    })
}

/// Checks redirect URIs by AUTH-C14 and returns them without duplicates, in the order given.
fn checked_uris(uris: Vec<String>) -> Result<Vec<String>, ConsoleError> {
    let invalid = |message: String| {
        Err(ConsoleError::invalid("redirect_uris_invalid", message).field("redirect_uris"))
    };
    let mut out: Vec<String> = Vec::with_capacity(uris.len());
    for uri in uris {
        let uri = uri.trim().to_owned();
        if uri.is_empty() {
            continue;
        }
        if let Err(fault) = redirect::check(&uri) {
            return invalid(format!("{uri}: {}.", describe_redirect(fault)));
        }
        if !out.contains(&uri) {
            out.push(uri);
        }
    }
    if out.is_empty() || out.len() > redirect::MAX_PER_CLIENT {
        return invalid(format!(
            "Give 1 to {} addresses to which the program wants to be answered.",
            redirect::MAX_PER_CLIENT
        ));
    }
    Ok(out)
}

/// Registers a client. It can connect to this workspace only.
#[utoipa::path(post, path = "/workspaces/{ws}/registered-clients", tag = "clients", params(("ws" = String, Path, description = "Slug")),
    request_body = NewClientBody, responses((status = 201, description = "Made. The secret is shown this once.", body = CreatedClient)))]
pub(crate) async fn register_client(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(new): JsonBody<NewClientBody>,
) -> Result<(StatusCode, Json<CreatedClient>), ConsoleError> {
    workspace.require(Action::Administer)?;
    let name = &client_name(&new.name)?;
    let redirect_uris = checked_uris(new.redirect_uris)?;
    let now = state.now();
    let method = match new.proof {
        ClientProof::None => AuthMethod::None,
        ClientProof::ClientSecret => AuthMethod::ClientSecretBasic,
        ClientProof::PrivateKeyJwt => AuthMethod::PrivateKeyJwt,
    };
    let credential = NewCredential::checked(method, new.jwks, new.jwks_uri)?;
    workspace.require_recent(now, ConsolePage::Clients)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    service_accounts::take_turn(&mut tx, workspace.id).await?;
    if registered_clients::list(&mut tx, workspace.id, now)
        .await?
        .len()
        >= MOST
    {
        return Err(ConsoleError::conflict(
            "too_many_clients",
            format!("A workspace can register {MOST} clients. Delete one that is not used."),
        ));
    }
    let id = ClientId::generate();
    let is_native = redirect_uris.iter().any(|uri| !uri.starts_with("https:"));
    let owner = NewOwner {
        id,
        client_id: &id.to_string(),
        kind: StoredKind::Static,
        name,
        application_type: if is_native { "native" } else { "web" },
        grant_types: &["authorization_code".to_owned(), "refresh_token".to_owned()],
        redirect_uris: &redirect_uris,
    };
    let client_secret = credential
        .register(&mut tx, workspace.id, &owner, now)
        .await?;
    let detail = json!({ "name": name, "proof": new.proof, "redirect_uris": redirect_uris });
    let event = workspace.event("registered_client.created", "client", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let client = view(&mut tx, &workspace, now, id).await?;
    tx.commit().await?;
    let created = CreatedClient {
        client,
        client_secret,
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// A change of a client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientChange {
    /// Display name.
    #[serde(default)]
    name: Option<String>,
    /// Its redirect URIs.
    #[serde(default)]
    redirect_uris: Option<Vec<String>>,
    /// False switches it off: its connections are refused within a second.
    #[serde(default)]
    enabled: Option<bool>,
}

/// Changes a client, or switches it off or on.
#[utoipa::path(patch, path = "/workspaces/{ws}/registered-clients/{id}", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client")),
    request_body = ClientChange, responses((status = 200, description = "Changed.", body = RegisteredClient)))]
pub(crate) async fn change_registered_client(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ClientKind>,
    context: RequestContext,
    JsonBody(change): JsonBody<ClientChange>,
) -> Result<Json<RegisteredClient>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    client_admission::take_turn(&mut tx, workspace.id).await?;
    let client = view(&mut tx, &workspace, now, id).await?;
    if change.name.is_some() || change.redirect_uris.is_some() {
        let name = match &change.name {
            Some(name) => client_name(name)?,
            None => client.name.clone(),
        };
        let redirect_uris = match change.redirect_uris {
            Some(uris) => checked_uris(uris)?,
            None => client.redirect_uris.clone(),
        };
        // The redirect URIs determine the program that receives codes.
        if redirect_uris != client.redirect_uris {
            workspace.require_recent(now, ConsolePage::Clients)?;
        }
        registered_clients::change(&mut tx, id, &name, &redirect_uris).await?;
        let detail = json!({ "name": name, "redirect_uris": redirect_uris });
        let event = workspace.event("registered_client.changed", "client", id, detail);
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    let mut ended = Ended::default();
    if let Some(enabled) = change.enabled.filter(|enabled| *enabled != client.enabled) {
        workspace.require_recent_to_switch(enabled, now, ConsolePage::Clients)?;
        let decision = (!enabled).then_some(ClientDecision::Blocked);
        let by = workspace.caller.user();
        client_admission::decide(&mut tx, workspace.id, id, decision, by, now).await?;
        let action = if enabled {
            "registered_client.enabled"
        } else {
            ended = admission::end_client(&state, &mut tx, workspace.id, id).await?;
            "registered_client.disabled"
        };
        let detail = json!({ "name": client.name, "ended": ended.apps() });
        let event = workspace.event(action, "client", id, detail);
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    let client = view(&mut tx, &workspace, now, id).await?;
    tx.commit().await?;
    revocation::notify_nodes(&state, &ended);
    Ok(Json(client))
}

/// Deletes a client with its secrets and connections. Its tokens are refused within a second.
#[utoipa::path(delete, path = "/workspaces/{ws}/registered-clients/{id}", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_registered_client(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ClientKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    client_admission::take_turn(&mut tx, workspace.id).await?;
    let client = view(&mut tx, &workspace, now, id).await?;
    let ended = admission::end_client(&state, &mut tx, workspace.id, id).await?;
    registered_clients::delete(&mut tx, id, now).await?;
    let detail = json!({ "name": client.name, "ended": ended.apps() });
    let event = workspace.event("registered_client.deleted", "client", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    revocation::notify_nodes(&state, &ended);
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the public keys of a client that proves itself by key.
#[utoipa::path(put, path = "/workspaces/{ws}/registered-clients/{id}/public-keys", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client")),
    request_body = PublicKeysBody, responses((status = 200, description = "Replaced.", body = RegisteredClient)))]
pub(crate) async fn replace_client_keys(
    change: CredentialChange<ClientKind>,
    JsonBody(keys): JsonBody<PublicKeysBody>,
) -> Result<Json<RegisteredClient>, ConsoleError> {
    change.replace_keys(keys).await?;
    let mut tx = change.begin().await?;
    view(&mut tx, &change.workspace, change.now, change.id)
        .await
        .map(Json)
}

/// Adds a second secret, so that the first can be replaced without a pause. Put the new one into
/// use, then revoke the old one.
#[utoipa::path(post, path = "/workspaces/{ws}/registered-clients/{id}/secrets", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client")),
    responses((status = 201, description = "Made. It is shown this once.", body = NewSecret)))]
pub(crate) async fn add_client_secret(
    change: CredentialChange<ClientKind>,
) -> Result<(StatusCode, Json<NewSecret>), ConsoleError> {
    change.add_secret().await
}

/// Revokes a secret: from now on it proves nothing. Connections stay, and refresh with the other
/// one.
#[utoipa::path(delete, path = "/workspaces/{ws}/registered-clients/{id}/secrets/{secret}", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client"),
        ("secret" = String, Path, description = "Secret")),
    responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_client_secret(
    change: CredentialChange<ClientKind>,
    secret: PathPart<SecretPart>,
) -> Result<StatusCode, ConsoleError> {
    change.revoke_secret(secret.id).await
}
