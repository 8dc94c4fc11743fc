//! MCP servers that are signed in to by OAuth: whose accounts calls use, the client that the workspace is there, and the account that the
//! workspace connected (`spec/authorization.md` §8). Tokens and secrets never come back.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_connections::Account;
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::SourceKind,
};
use portolan_storage::{
    Reason,
    upstream_oauth::{self as stored, Connection},
    users,
};
use portolan_upstream::oauth::{AuthMethod, ClientIdentity};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    change,
    error::ConsoleError,
    input::{JsonBody, PathId},
    sources::found,
    workspace::Workspace,
};
use crate::{
    connect::{self, Asked, ConnectError},
    state::AuthState,
    visitor::Visitor,
};

/// Longest client id or list of scopes.
const LONGEST: usize = 2048;
/// Longest secret: a key in PEM.
const LONGEST_SECRET: usize = 16 * 1024;

/// Whose accounts calls use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One account for all calls, connected by the workspace.
    Workspace,
    /// Each person's own; the workspace's account only looks at what the server offers.
    Person,
}

impl Sharing {
    pub(super) const fn word(self) -> &'static str {
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
    /// Somebody signs in there and allows it.
    #[default]
    Code,
    /// The client itself, with a secret or a key.
    ClientCredentials,
}

impl SignInMethod {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::ClientCredentials => "client_credentials",
        }
    }
}

/// How a server is signed in to.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInView {
    /// Whose accounts; null if it is not signed in to by OAuth.
    sharing: Option<Sharing>,
    method: SignInMethod,
    /// Scopes that are asked for; what the server names if null.
    scope: Option<String>,
    client: Option<SignInClient>,
    connection: Option<SignInConnection>,
    /// How many persons have linked their own account.
    linked_persons: i64,
    /// For clients that are registered by hand.
    redirect_uri: String,
}

/// Who the workspace is at the authorization server.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInClient {
    client_id: String,
    /// `document`, `registered` or `entered`.
    kind: String,
    /// Where it is known.
    issuer: Option<String>,
}

/// The account that the workspace connected.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInConnection {
    /// `ok` or `needs_sign_in`.
    status: String,
    /// Why somebody has to sign in again: `expired`, `ended`, `refused`, or `client` if the server does not know the client any more.
    reason: Option<String>,
    /// Who issued the tokens.
    issuer: String,
    /// What was granted.
    scope: Option<String>,
    /// What the server asked for beyond it: connecting again asks for that too.
    wanted_scope: Option<String>,
    /// Tokens are renewed without a person.
    renewable: bool,
    /// End of the access token.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    connected_at: OffsetDateTime,
    /// When the tokens were last renewed.
    #[serde(with = "time::serde::rfc3339::option")]
    refreshed_at: Option<OffsetDateTime>,
    /// Who connected it.
    connected_by: Option<String>,
}

async fn seen(
    state: &AuthState,
    workspace: &Workspace,
    source: SourceId,
) -> Result<SignInView, ConsoleError> {
    let mut tx = state.store.tenant(workspace.id).await?;
    let row = found(&mut tx, source).await?;
    if row.kind != SourceKind::Mcp {
        return Err(ConsoleError::not_found("this MCP server"));
    }
    let sign_in = stored::sign_in(&mut tx, source).await?;
    let connection = stored::connection(&mut tx, source, None).await?;
    drop(tx);
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let linked_persons = stored::linked_persons(&mut tx, workspace.id, source).await?;
    let connected_by = match &connection {
        Some(row) => users::find(&mut tx, row.connected_by).await?,
        None => None,
    };
    let view = |row: Connection| SignInConnection {
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
    let is = |word: &str| sign_in.as_ref().is_some_and(|row| row.sharing == word);
    let by_client = sign_in
        .as_ref()
        .is_some_and(|row| row.method == SignInMethod::ClientCredentials.word());
    Ok(SignInView {
        sharing: if is("person") {
            Some(Sharing::Person)
        } else {
            is("workspace").then_some(Sharing::Workspace)
        },
        method: if by_client {
            SignInMethod::ClientCredentials
        } else {
            SignInMethod::Code
        },
        scope: sign_in.as_ref().and_then(|row| row.scope.clone()),
        client: sign_in
            .and_then(|row| row.client)
            .map(|client| SignInClient {
                client_id: client.client_id,
                kind: client.kind,
                issuer: client.issuer,
            }),
        connection: connection.map(view),
        linked_persons,
        redirect_uri: connect::redirect_uri(&state.site, source),
    })
}

/// How a server is signed in to, and the account that is connected.
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

/// A client that the authorization server's operator gave the workspace.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnteredClient {
    client_id: String,
    /// Its secret, if it has one.
    #[serde(default)]
    #[schema(nullable = false)]
    client_secret: Option<String>,
    /// Its private key in PEM, for servers that know it by its public key.
    #[serde(default)]
    #[schema(nullable = false)]
    private_key: Option<String>,
}

impl std::fmt::Debug for EnteredClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnteredClient")
    }
}

impl EnteredClient {
    fn checked(self) -> Result<ClientIdentity, ConsoleError> {
        let invalid = |field: &'static str, message: &'static str| {
            ConsoleError::invalid("client_invalid", message).field(field)
        };
        let tidy = |text: Option<String>| {
            text.map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        let client_id = self.client_id.trim().to_owned();
        if client_id.is_empty() || client_id.len() > LONGEST || !client_id.is_ascii() {
            return Err(invalid(
                "client.client_id",
                "Give the client id as the server's operator wrote it.",
            ));
        }
        let (secret, key) = (tidy(self.client_secret), tidy(self.private_key));
        let too_long = |text: &Option<String>| {
            text.as_ref()
                .is_some_and(|text| text.len() > LONGEST_SECRET)
        };
        if too_long(&secret) || too_long(&key) {
            return Err(invalid(
                "client.client_secret",
                "This is too long to be a secret.",
            ));
        }
        match (secret, key) {
            (Some(_), Some(_)) => Err(invalid(
                "client.private_key",
                "Give a secret or a key, not both.",
            )),
            (None, Some(key)) if !portolan_keys::client_key::is_usable(&key) => Err(invalid(
                "client.private_key",
                "Give a P-256 or RSA private key in PEM, from BEGIN to END.",
            )),
            (None, Some(key)) => Ok(ClientIdentity {
                client_id,
                secret: Some(key),
                method: AuthMethod::PrivateKeyJwt,
            }),
            (Some(secret), None) => Ok(ClientIdentity {
                client_id,
                secret: Some(secret),
                method: AuthMethod::ClientSecretBasic,
            }),
            (None, None) => Ok(ClientIdentity::public(client_id)),
        }
    }
}

/// How a server is to be signed in to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInForm {
    sharing: Sharing,
    #[serde(default)]
    method: SignInMethod,
    /// Scopes to ask for, separated by spaces; what the server names if absent.
    #[serde(default)]
    #[schema(nullable = false)]
    scope: Option<String>,
    /// A client that was registered by hand; what is known stays if absent.
    #[serde(default)]
    #[schema(nullable = false)]
    client: Option<EnteredClient>,
}

/// Says how a server is signed in to. What is connected stays connected.
#[utoipa::path(put, path = "/workspaces/{ws}/sources/{id}/sign-in", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = SignInForm, responses((status = 200, description = "Set.", body = SignInView)))]
pub(crate) async fn set_sign_in(
    State(state): State<AuthState>,
    workspace: Workspace,
    visitor: Visitor,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<SignInForm>,
) -> Result<Json<SignInView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let scope = request
        .scope
        .map(|scope| scope.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    let scope = scope.filter(|scope| !scope.is_empty());
    let is_scope =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\') || byte == b' ';
    if scope
        .as_ref()
        .is_some_and(|scope| scope.len() > LONGEST || !scope.bytes().all(is_scope))
    {
        let message = "Scopes are words without quotes, separated by spaces.";
        return Err(ConsoleError::invalid("scope_invalid", message).field("scope"));
    }
    let client = request.client.map(EnteredClient::checked).transpose()?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    if found(&mut tx, id).await?.kind != SourceKind::Mcp {
        return Err(ConsoleError::not_found("this MCP server"));
    }
    let (sharing, method) = (request.sharing.word(), request.method.word());
    stored::set_sign_in(&mut tx, id, sharing, method, scope.as_deref(), now).await?;
    if let Some(client) = &client {
        connect::put_client(&state, &mut tx, id, None, "entered", client)
            .await
            .map_err(refused)?;
    }
    let detail =
        json!({ "sharing": sharing, "method": method, "client_entered": client.is_some() });
    let entry = ("upstream.sign_in_set", "source", id.to_string(), detail);
    change::commit(tx, &workspace, &visitor, now, entry).await?;
    Ok(Json(seen(&state, &workspace, id).await?))
}

/// The server is not signed in to by OAuth any more: the client and every account are forgotten, those of persons too.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}/sign-in", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 204, description = "Forgotten, or there was none.")))]
pub(crate) async fn delete_sign_in(
    State(state): State<AuthState>,
    workspace: Workspace,
    visitor: Visitor,
    PathId(id): PathId<SourceIdKind>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let account = of_workspace(&workspace, id);
    connect::disconnect(&state, account, workspace.session.user, &visitor)
        .await
        .map_err(refused)?;
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let gone = stored::leaving(&mut tx, workspace.id, Some(id), None).await?;
    drop(tx);
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    if stored::delete_sign_in(&mut tx, id).await? {
        let entry = (
            "upstream.sign_in_removed",
            "source",
            id.to_string(),
            json!({}),
        );
        change::commit(tx, &workspace, &visitor, now, entry).await?;
        connect::give_back_later(&state, workspace.id, gone);
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Where to go on.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectAnswer {
    /// The authorization server's page, for this browser and ten minutes; null if the account is connected already.
    url: Option<String>,
}

fn of_workspace(workspace: &Workspace, source: SourceId) -> Account {
    Account {
        tenant: workspace.id,
        source,
        owner: None,
    }
}

/// Begins to connect the workspace's account: by a sign-in at the server's authorization server, or at once by client credentials.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/account", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Where to go on.", body = ConnectAnswer)))]
pub(crate) async fn connect_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    visitor: Visitor,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<ConnectAnswer>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let sign_in = stored::sign_in(&mut tx, id).await?;
    drop(tx);
    let account = of_workspace(&workspace, id);
    let user = workspace.session.user;
    let by_client = sign_in
        .as_ref()
        .is_some_and(|row| row.method == SignInMethod::ClientCredentials.word());
    if by_client {
        connect::by_client_credentials(&state, account, user, &visitor)
            .await
            .map_err(refused)?;
        return Ok(Json(ConnectAnswer { url: None }));
    }
    let asked = Asked {
        account,
        user,
        session: workspace.session.id,
        back: "console",
    };
    let begun = connect::begin(&state, asked).await.map_err(refused)?;
    Ok(Json(ConnectAnswer {
        url: Some(begun.address.into()),
    }))
}

/// Disconnects the workspace's account, and gives its tokens back where the server takes them.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}/account", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 204, description = "Disconnected, or there was none.")))]
pub(crate) async fn disconnect_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    visitor: Visitor,
    PathId(id): PathId<SourceIdKind>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let account = of_workspace(&workspace, id);
    connect::disconnect(&state, account, workspace.session.user, &visitor)
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
