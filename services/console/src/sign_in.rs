//! Sources with OAuth sign-in, MCP servers and APIs (`docs/authorization-rules.md`, *Platform as
//! OAuth client of upstreams*): the accounts that calls use, the workspace's OAuth client there,
//! and the account that the workspace connected. An MCP server names its authorization server; for
//! an API a person enters it here. The API never returns tokens and secrets.

pub(crate) mod form;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_connections::{Account, write_link};
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::SourceKind,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    Reason,
    accounts::users,
    registry::{
        credential_states, credentials as stored_credentials,
        upstream_oauth::{self as stored, ConnectedAccount, SignIn},
    },
};
use portolan_upstream::oauth::AuthorizationServer;
use portolan_upstream_sync::connect::flow::{self, ConnectError, ConnectRequest};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    change::{self, Editor},
    credentials::end_alert,
    input::{JsonBody, PathId},
    sign_in::form::{EnteredClient, SignInForm},
    source_rows::found,
    workspace::Workspace,
};

/// The accounts that calls use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One account for all calls, connected by the workspace.
    Workspace,
    /// Each person's own account. The workspace's account only reads the lists of an MCP server.
    Person,
}

impl Sharing {
    /// Reads the stored form. An unknown word becomes the narrower one.
    pub(crate) fn from_word(word: &str) -> Self {
        if word == Self::Workspace.word() {
            Self::Workspace
        } else {
            Self::Person
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Person => "person",
        }
    }
}

/// How the workspace's account gets its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignInMethod {
    /// A person signs in there and allows it.
    #[default]
    Code,
    /// The client itself, with a secret or a key.
    ClientCredentials,
}

impl SignInMethod {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::ClientCredentials => "client_credentials",
        }
    }
}

/// The sign-in of a source.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInView {
    /// The accounts that calls use; null without OAuth sign-in.
    sharing: Option<Sharing>,
    method: SignInMethod,
    /// Requested scopes; null means those that the server names.
    scope: Option<String>,
    /// The authorization server that was entered for an API. Absent for an MCP server, which names
    /// its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    server: Option<SignInServer>,
    client: Option<SignInClient>,
    connection: Option<SignInConnection>,
    /// Number of persons with a connected account of their own.
    linked_persons: i64,
    /// The person's own account, where calls use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    own: Option<OwnAccount>,
    /// Redirect URI, for clients that are registered by hand.
    redirect_uri: String,
}

/// An authorization server that a person entered.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInServer {
    /// Its issuer; null if only its addresses were entered.
    issuer: Option<String>,
    /// The authorization endpoint.
    authorization_endpoint: Option<String>,
    /// The token endpoint.
    token_endpoint: String,
    /// The revocation endpoint, if there is one.
    revocation_endpoint: Option<String>,
}

impl From<AuthorizationServer> for SignInServer {
    fn from(server: AuthorizationServer) -> Self {
        Self {
            issuer: Some(server.issuer).filter(|_| !server.is_nameless),
            authorization_endpoint: server.authorization_endpoint,
            token_endpoint: server.token_endpoint,
            revocation_endpoint: server.revocation_endpoint,
        }
    }
}

/// A person's own account at a source.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnAccount {
    /// `ok` or `needs_sign_in`; null if none is connected.
    status: Option<String>,
    /// The page where this person, and no other, connects it.
    connect_url: String,
}

/// The workspace's OAuth client at the authorization server.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInClient {
    client_id: String,
    /// `document`, `registered` or `entered`.
    kind: String,
    /// The issuer that knows it.
    issuer: Option<String>,
}

/// The account that the workspace connected.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInConnection {
    /// `ok` or `needs_sign_in`.
    status: String,
    /// Why a person has to sign in again: `expired`, `ended`, `refused`, or `client` if the server
    /// does not know the client any more.
    reason: Option<String>,
    /// The issuer of the tokens.
    issuer: String,
    /// The granted scopes.
    scope: Option<String>,
    /// Further scopes that the server required. Connecting again requests them too.
    wanted_scope: Option<String>,
    /// True if tokens are renewed without a person.
    renewable: bool,
    /// End of the access token.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    connected_at: OffsetDateTime,
    /// Time of the last renewal.
    #[serde(with = "time::serde::rfc3339::option")]
    refreshed_at: Option<OffsetDateTime>,
    /// The person who connected it.
    connected_by: Option<String>,
}

async fn seen(
    state: &AuthState,
    workspace: &Workspace,
    source: SourceId,
) -> Result<SignInView, ConsoleError> {
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, source).await?;
    let sign_in = stored::sign_in(&mut tx, source).await?;
    let connection = stored::connection(&mut tx, source, None).await?;
    let sharing = sign_in.as_ref().map(|row| Sharing::from_word(&row.sharing));
    let own = if sharing == Some(Sharing::Person)
        && workspace.role.may(Action::CallTools)
        && let Caller::Browser(session) = &workspace.caller
    {
        let person = session.user;
        let account = stored::connection(&mut tx, source, Some(person)).await?;
        let link = write_link(&state.keys, (workspace.id, source, person), state.now())?;
        Some(OwnAccount {
            status: account.map(|row| row.status),
            connect_url: state.site.url(&format!("/connect/accounts/{link}")),
        })
    } else {
        None
    };
    drop(tx);
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let linked_persons = stored::linked_persons(&mut tx, workspace.id, source).await?;
    let connected_by = match &connection {
        Some(row) => users::find(&mut tx, row.connected_by).await?,
        None => None,
    };
    let view = |row: ConnectedAccount| SignInConnection {
        status: row.status,
        reason: row.reason,
        issuer: row.issuer,
        scope: row.scope,
        wanted_scope: row.wanted_scope,
        renewable: row.renewable,
        expires_at: row.expires_at,
        connected_at: row.connected_at,
        refreshed_at: row.refreshed_at,
        connected_by: connected_by.map(|user| user.display_name),
    };
    let by_client = sign_in
        .as_ref()
        .is_some_and(|row| row.method == SignInMethod::ClientCredentials.word());
    Ok(SignInView {
        sharing,
        method: if by_client {
            SignInMethod::ClientCredentials
        } else {
            SignInMethod::Code
        },
        scope: sign_in.as_ref().and_then(|row| row.scope.clone()),
        server: sign_in.as_ref().and_then(server_of).map(SignInServer::from),
        client: sign_in
            .and_then(|row| row.client)
            .map(|client| SignInClient {
                client_id: client.client_id,
                kind: client.kind,
                issuer: client.issuer,
            }),
        connection: connection.map(view),
        linked_persons,
        own,
        redirect_uri: flow::redirect_uri(&state.site, source),
    })
}

/// The authorization server that was entered for a source.
fn server_of(sign_in: &SignIn) -> Option<AuthorizationServer> {
    let server = sign_in.server.clone()?;
    serde_json::from_value(server).ok()
}

/// The sign-in of a source, and the connected account.
#[utoipa::path(get, path = "/workspaces/{ws}/sources/{id}/sign-in", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "How.", body = SignInView)))]
pub(crate) async fn show_sign_in(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<SignInView>, ConsoleError> {
    workspace.require(Action::Read)?;
    Ok(Json(seen(&state, &workspace, id).await?))
}

/// The kind of a source, and whether it has a sign-in or a credential already. Gives the database
/// connection back: another operator's server must not hold it.
async fn present(
    state: &AuthState,
    workspace: &Workspace,
    id: SourceId,
) -> Result<(SourceKind, bool), ConsoleError> {
    let mut tx = state.store.tenant(workspace.id).await?;
    let kind = found(&mut tx, id).await?.kind;
    let has_one = stored::sign_in(&mut tx, id).await?.is_some()
        || stored_credentials::find(&mut tx, id).await?.is_some();
    Ok((kind, has_one))
}

/// Sets the sign-in of a source. Accounts stay connected, unless they were connected at another
/// authorization server. An API's credential is deleted.
#[utoipa::path(put, path = "/workspaces/{ws}/sources/{id}/sign-in", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = SignInForm, responses((status = 200, description = "Set.", body = SignInView)))]
pub(crate) async fn set_sign_in(
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<SignInForm>,
) -> Result<Json<SignInView>, ConsoleError> {
    let scope = request.scopes()?;
    let (kind, replaces) = present(&editor.state, &editor.workspace, id).await?;
    request.check(kind)?;
    // The first sign-in or credential is part of set-up. Replacing one changes the account of every
    // member's calls.
    if replaces {
        editor
            .workspace
            .require_recent_at_source(editor.state.now(), id)?;
    }
    let (sharing, method) = (request.sharing.word(), request.method.word());
    let client = request.client.map(EnteredClient::checked).transpose()?;
    let entered = match request.server {
        Some(server) => Some(server.found(&editor.state).await?),
        None => None,
    };
    let mut tx = editor.state.store.system(Reason::Upstreams).await?;
    let mut leaving = stored::leaving(&mut tx, editor.workspace.id, Some(id), None).await?;
    drop(tx);
    let mut tx = editor.begin().await?;
    found(&mut tx, id).await?;
    // Locked: the second of two concurrent requests finds the result of the first.
    stored::next_client_version(&mut tx, id).await?;
    let known = stored::sign_in(&mut tx, id).await?;
    let known = known.as_ref().and_then(server_of);
    let moved = known
        .as_ref()
        .zip(entered.as_ref())
        .is_some_and(|(known, entered)| !known.is_same(entered));
    if moved {
        // MCP-AU-7: the client belongs to the former server. A person who may change addresses must
        // not be able to send its secret to one of their own.
        stored::delete_sign_in(&mut tx, id).await?;
    } else {
        leaving.clear();
    }
    let server = entered.or(known);
    if kind != SourceKind::Mcp && server.is_none() {
        let message = "Name the authorization server: its issuer, or its addresses.";
        return Err(ConsoleError::invalid("server_needed", message).field("server"));
    }
    let stored_server = server.as_ref().map(|server| json!(server));
    stored::set_sign_in(
        &mut tx,
        id,
        sharing,
        method,
        scope.as_deref(),
        stored_server.as_ref(),
        editor.now,
    )
    .await?;
    // A source that is signed in to uses no credential.
    credential_states::forget(&mut tx, id).await?;
    end_alert(&mut tx, id, editor.now).await?;
    // An API is opened by a sign-in or by a credential.
    let credential_removed =
        kind != SourceKind::Mcp && stored_credentials::delete(&mut tx, id).await?;
    if let Some(client) = &client {
        flow::put_client(&editor.state, &mut tx, id, None, "entered", client)
            .await
            .map_err(refused)?;
    }
    let detail = json!({
        "sharing": sharing, "method": method, "client_entered": client.is_some(), "issuer": server.map(|server| server.issuer),
        "credential_removed": credential_removed,
    });
    editor
        .commit(tx, "upstream.sign_in_set", "source", id, detail)
        .await?;
    flow::give_back_later(&editor.state, editor.workspace.id, leaving);
    Ok(Json(seen(&editor.state, &editor.workspace, id).await?))
}

/// Removes the OAuth sign-in of a source. The client and every account are deleted, those of
/// persons included.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}/sign-in", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 204, description = "Forgotten, or there was none.")))]
pub(crate) async fn delete_sign_in(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    drop(tx);
    let account = of_workspace(&workspace, id);
    flow::disconnect(&state, account, workspace.caller.actor(), &context)
        .await
        .map_err(refused)?;
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let gone = stored::leaving(&mut tx, workspace.id, Some(id), None).await?;
    drop(tx);
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    if stored::delete_sign_in(&mut tx, id).await? {
        let event = workspace.event("upstream.sign_in_removed", "source", id, json!({}));
        change::commit(tx, &context, now, &event).await?;
        flow::give_back_later(&state, workspace.id, gone);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The next address of the browser.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectAnswer {
    /// The authorization server's page, valid for this browser and ten minutes. Null if the account
    /// is connected already.
    url: Option<String>,
}

fn of_workspace(workspace: &Workspace, source: SourceId) -> Account {
    Account {
        tenant: workspace.id,
        source,
        owner: None,
    }
}

/// Begins to connect the workspace's account: by a sign-in at the source's authorization server, or
/// at once by client credentials. Replacing an account requires a recent sign-in.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/account", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Where to go on.", body = ConnectAnswer)))]
pub(crate) async fn connect_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<ConnectAnswer>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let kind = found(&mut tx, id).await?.kind;
    let session = workspace.caller.browser()?;
    let sign_in = stored::sign_in(&mut tx, id).await?;
    let replaces = stored::connection(&mut tx, id, None).await?.is_some();
    drop(tx);
    if replaces {
        workspace.require_recent_at_source(state.now(), id)?;
    }
    let is_person = |row: &SignIn| Sharing::from_word(&row.sharing) == Sharing::Person;
    if kind != SourceKind::Mcp && sign_in.as_ref().is_some_and(is_person) {
        // The workspace's account would have no use: an API has no lists to read.
        let message = "Each person connects their own account here. Nothing is done with one of the workspace.";
        return Err(ConsoleError::conflict("own_accounts_only", message));
    }
    let account = of_workspace(&workspace, id);
    let user = session.user;
    let by_client = sign_in
        .as_ref()
        .is_some_and(|row| row.method == SignInMethod::ClientCredentials.word());
    if by_client {
        flow::by_client_credentials(&state, account, user, &context)
            .await
            .map_err(refused)?;
        return Ok(Json(ConnectAnswer { url: None }));
    }
    let asked = ConnectRequest {
        account,
        user,
        session: session.id,
        back: "console",
    };
    let begun = flow::begin(&state, asked).await.map_err(refused)?;
    Ok(Json(ConnectAnswer {
        url: Some(begun.address.into()),
    }))
}

/// Disconnects the workspace's account, and revokes its tokens where the server supports it.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}/account", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 204, description = "Disconnected, or there was none."), (status = 404, description = "There is no such source.")))]
pub(crate) async fn disconnect_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    drop(tx);
    let account = of_workspace(&workspace, id);
    flow::disconnect(&state, account, workspace.caller.actor(), &context)
        .await
        .map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(error: ConnectError) -> ConsoleError {
    match error {
        ConnectError::Unknown => ConsoleError::not_found("this source"),
        ConnectError::Storage(error) => error.into(),
        ConnectError::Keys(error) => error.into(),
        ConnectError::Seal(error) => ConsoleError::internal("sealed client", error),
        ConnectError::Internal(what) => ConsoleError::internal("connecting", what),
        error @ ConnectError::NoServer => {
            ConsoleError::conflict("server_needed", format!("Not connected: {error}."))
                .field("server")
        }
        error @ (ConnectError::ClientOfAnother { .. } | ConnectError::NoClient) => {
            ConsoleError::conflict("client_needed", format!("Not connected: {error}."))
                .field("client")
        }
        ConnectError::Oauth(error) => {
            let code = match &error {
                portolan_upstream::oauth::OauthError::NoRegistration => "client_needed",
                _ => "not_connected",
            };
            ConsoleError::invalid(code, format!("Not connected: {error}."))
        }
    }
}
