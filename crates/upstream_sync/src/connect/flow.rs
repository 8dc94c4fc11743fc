//! Finds a source's authorization server, gets tokens there, and stores them.

use std::time::Duration;

use portolan_connections::{Account, Held, SealError, open, open_client, seal, seal_client};
use portolan_keys::{KeysError, digest, seal::seal_under_token};
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    id::{SessionId, SourceId, TenantId, UserId},
    registry::SourceKind,
};
use portolan_net::secrets::Secrets;
use portolan_site::{config::Site, request_context::RequestContext, state::AuthState};
use portolan_storage::{
    StorageError, TenantTx,
    platform::audit,
    registry::{
        sources,
        upstream_oauth::{
            self as stored, ConnectedAccount, Leaving, NewAttempt, NewConnection, SealedClient,
            SignIn,
        },
    },
};
use portolan_upstream::{
    Client, Endpoint, Limits, Speaker, UpstreamError,
    oauth::{
        AuthMethod, AuthorizationAttempt, Challenge, ClientIdentity, Discovered, Grant, OauthError,
        Registration, Tokens, discover, offered_scopes, redeem, register, revoke, union,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::task::TaskTracker;
use url::Url;
use uuid::Uuid;

use crate::credentials::data_key;

/// The client name on consent pages of other servers.
pub(crate) const CLIENT_NAME: &str = "Portolan";

/// Time in which a browser must return (MCP-AU-10).
const WAY: time::Duration = time::Duration::minutes(10);

/// Deadline of the request for a server's challenge.
const CHALLENGE: Duration = Duration::from_secs(15);

/// A request to connect an account.
#[derive(Debug, Clone, Copy)]
pub struct ConnectRequest {
    /// Workspace, source, and owner of the account.
    pub account: Account,
    /// The person at the browser.
    pub user: UserId,
    /// The browser session.
    pub session: SessionId,
    /// `console` or `page`.
    pub back: &'static str,
}

/// The redirect of the browser.
#[derive(Debug)]
pub struct Begun {
    /// The authorization server's page.
    pub address: Url,
}

/// Data that only the holder of `state` can open.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sealed {
    pub(crate) verifier: String,
    pub(crate) client: ClientIdentity,
}

/// A source with sign-in, and its authorization server.
struct FoundServer {
    /// The stored address of the source: the tokens are sent there only.
    address: String,
    sign_in: SignIn,
    discovered: Discovered,
    client: ClientIdentity,
    scope: Option<String>,
}

/// Begins a connection: finds the authorization server, registers there if needed, and stores the
/// data that checks the callback.
pub async fn begin(state: &AuthState, asked: ConnectRequest) -> Result<Begun, ConnectError> {
    let Account {
        tenant,
        source,
        owner,
    } = asked.account;
    let found = find(state, asked.account).await?;
    let attempt = AuthorizationAttempt::begin()?;
    let redirect_uri = redirect_uri(&state.site, source);
    let resource = found.discovered.resource.as_deref();
    let server = &found.discovered.server;
    let scope = found.scope.as_deref();
    let client_id = &found.client.client_id;
    let address = attempt.address(
        &state.egress,
        server,
        client_id,
        &redirect_uri,
        resource,
        scope,
    )?;
    let sealed = Sealed {
        verifier: attempt.verifier.clone(),
        client: found.client.clone(),
    };
    let plain = serde_json::to_vec(&sealed).map_err(|_| ConnectError::Internal("attempt"))?;
    let now = state.now();
    let attempt_row = NewAttempt {
        state: &digest(attempt.state.as_bytes()),
        source,
        user: asked.user,
        session: asked.session,
        owner,
        server: &json!(server),
        address: &found.address,
        resource,
        scope,
        redirect_uri: &redirect_uri,
        back: asked.back,
        sealed: &seal_under_token(&attempt.state, &plain, source.uuid().as_bytes())?,
        expires_at: now + WAY,
    };
    let mut tx = state.store.tenant(tenant).await?;
    stored::begin_attempt(&mut tx, &attempt_row, now).await?;
    tx.commit().await?;
    Ok(Begun { address })
}

/// Connects the workspace's account by client credentials, without a person.
pub async fn by_client_credentials(
    state: &AuthState,
    account: Account,
    user: UserId,
    context: &RequestContext,
) -> Result<(), ConnectError> {
    let found = find(state, account).await?;
    if found.sign_in.method != "client_credentials" || found.client.secret.is_none() {
        return Err(ConnectError::NoClient);
    }
    let server = &found.discovered.server;
    let resource = found.discovered.resource.clone();
    let scope = found.scope.as_deref();
    let (grant, now) = (Grant::ClientCredentials, state.now());
    let asked = (resource.as_deref(), scope);
    let tokens = redeem(
        &state.egress,
        server,
        &found.client,
        grant,
        asked.0,
        asked.1,
        now,
    )
    .await?;
    let new = Fresh {
        account,
        user,
        server: json!(server),
        issuer: server.issuer.clone(),
        address: found.address,
        resource,
        scope: found.scope.clone(),
        client: found.client,
        client_credentials: true,
        tokens,
    };
    keep(state, new, context).await
}

/// Tokens that were just issued.
pub(crate) struct Fresh {
    pub(crate) account: Account,
    pub(crate) user: UserId,
    pub(crate) server: serde_json::Value,
    pub(crate) issuer: String,
    pub(crate) address: String,
    pub(crate) resource: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) client: ClientIdentity,
    pub(crate) client_credentials: bool,
    pub(crate) tokens: Tokens,
}

/// Stores sealed tokens in place of the former ones. The former ones are not revoked: they belong
/// to the same grant, which some servers revoke with any of its tokens.
pub(crate) async fn keep(
    state: &AuthState,
    new: Fresh,
    context: &RequestContext,
) -> Result<(), ConnectError> {
    let Account {
        tenant,
        source,
        owner,
    } = new.account;
    let now = state.now();
    let expires_at = now + new.tokens.life;
    let scope = new.tokens.scope.clone().or(new.scope);
    let held = Held {
        client: new.client,
        access: String::new(),
        refresh: None,
        client_credentials: new.client_credentials,
    }
    .with(new.tokens);
    let id = Uuid::now_v7();
    let mut tx = state.store.tenant(tenant).await?;
    let key = data_key::<ConnectError>(state, &mut tx, tenant, now).await?;
    let sealed = seal(&state.keys, tenant, &key, (id, 1), &held, now)?;
    let connection = NewConnection {
        id,
        source,
        owner,
        connected_by: new.user,
        issuer: &new.issuer,
        server: &new.server,
        address: &new.address,
        resource: new.resource.as_deref(),
        scope: scope.as_deref(),
        renewable: held.is_renewable(),
        sealed: &sealed,
        key: key.id,
        expires_at,
    };
    if !stored::connect(&mut tx, &connection, now).await? {
        // The source's address changed before the browser returned.
        return Err(ConnectError::Unknown);
    }
    let detail = json!({ "issuer": new.issuer, "own": owner.is_some() });
    record(
        &mut tx,
        new.account,
        Actor::User(new.user),
        "upstream.connected",
        detail,
        context,
        now,
    )
    .await?;
    tx.commit().await?;
    state.connections().forget(&new.account);
    Ok(())
}

async fn record(
    tx: &mut TenantTx,
    account: Account,
    by: Actor,
    action: &'static str,
    detail: serde_json::Value,
    context: &RequestContext,
    now: Timestamp,
) -> Result<(), StorageError> {
    let event = Event {
        tenant: Some(account.tenant),
        actor: by,
        action,
        target_kind: "source",
        target_id: account.source.to_string(),
        outcome: Outcome::Ok,
        detail,
    };
    audit::record(tx, &event, &context.origin(), now).await
}

/// Deletes an account and revokes its tokens at the server. Returns false if there was none.
pub async fn disconnect(
    state: &AuthState,
    account: Account,
    by: Actor,
    context: &RequestContext,
) -> Result<bool, ConnectError> {
    let now = state.now();
    let mut tx = state.store.tenant(account.tenant).await?;
    let Some(row) = stored::connection(&mut tx, account.source, account.owner).await? else {
        return Ok(false);
    };
    stored::disconnect(&mut tx, &row).await?;
    let detail = json!({ "issuer": row.issuer, "own": account.owner.is_some() });
    record(
        &mut tx,
        account,
        by,
        "upstream.disconnected",
        detail,
        context,
        now,
    )
    .await?;
    tx.commit().await?;
    state.connections().forget(&account);
    // The account is deleted here whether or not the server revokes the tokens.
    let gone = Leaving {
        id: row.id,
        source: account.source,
        server: row.server,
        sealed: row.sealed,
        key: row.key,
        version: row.version,
    };
    give_back(state, account.tenant, vec![gone]).await;
    Ok(true)
}

/// Revokes the tokens of deleted accounts at their servers.
async fn give_back(state: &AuthState, tenant: TenantId, gone: Vec<Leaving>) {
    let now = state.now();
    for gone in gone {
        let place = (gone.id, gone.version);
        let held = open(&state.keys, tenant, &gone.key, place, &gone.sealed, now);
        let server = serde_json::from_value(gone.server);
        let (Ok(held), Ok(server)) = (held, server) else {
            continue;
        };
        let (token, hint) = match &held.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&held.access, "access_token"),
        };
        if let Err(error) = revoke(&state.egress, &server, &held.client, token, hint, now).await {
            tracing::info!(tenant.id = %tenant, source.id = %gone.source, kind = error.kind(), reason = %error,
                "tokens of a disconnected account could not be given back");
        }
    }
}

/// Does the same for many in the background, because their servers may be slow.
pub fn give_back_later(state: &AuthState, tenant: TenantId, gone: Vec<Leaving>) {
    if gone.is_empty() {
        return;
    }
    let (state, tracker) = (state.clone(), state.connections().tracker().clone());
    tracker.spawn(async move { give_back(&state, tenant, gone).await });
}

/// Collects all data that is needed before a browser is redirected.
async fn find(state: &AuthState, account: Account) -> Result<FoundServer, ConnectError> {
    let Account { tenant, source, .. } = account;
    let mut tx = state.store.tenant(tenant).await?;
    let (Some(row), Some(sign_in)) = (
        sources::find(&mut tx, source).await?,
        stored::sign_in(&mut tx, source).await?,
    ) else {
        return Err(ConnectError::Unknown);
    };
    if account.owner.is_some() && sign_in.sharing != "person" {
        return Err(ConnectError::Unknown);
    }
    let before = stored::connection(&mut tx, source, account.owner).await?;
    // Released first: another operator's server must not hold a database connection.
    drop(tx);
    let (challenge, discovered) = match &sign_in.server {
        // An API determines the audience of its tokens itself. RFC 8707 is not used with entered
        // servers, which may not support it.
        Some(server) => {
            let server = serde_json::from_value(server.clone());
            let server = server.map_err(|_| ConnectError::Internal("stored server"))?;
            let discovered = Discovered {
                resource: None,
                scopes: None,
                server,
            };
            (Challenge::default(), discovered)
        }
        None if row.kind != SourceKind::Mcp => return Err(ConnectError::NoServer),
        None => {
            let url =
                Url::parse(&row.base_url).map_err(|_| ConnectError::Internal("stored URL"))?;
            let challenge = challenge(state, &url).await;
            let discovered = discover(&state.egress, &url, &challenge).await?;
            (challenge, discovered)
        }
    };
    let before = before.filter(|before| before.issuer == discovered.server.issuer);
    // MCP-AU-11: requests again the granted and the missing scopes together. If the workspace
    // configured scopes, it requests those and the missing ones.
    let missing = before.as_ref().and_then(|row| row.wanted_scope.as_deref());
    let missing = missing.unwrap_or_default();
    let granted = before.as_ref().and_then(|row| row.scope.as_deref());
    let scope = match &sign_in.scope {
        Some(scope) => Some(union(scope, missing)),
        None => {
            let earlier = union(granted.unwrap_or_default(), missing);
            offered_scopes(&challenge, &discovered, Some(&earlier))
        }
    };
    let forgotten = before.and_then(|before| forgotten_client(state, tenant, &before));
    let forgotten = forgotten.as_deref();
    let client = client(state, tenant, source, &sign_in, forgotten, &discovered).await?;
    Ok(FoundServer {
        address: row.base_url,
        sign_in,
        discovered,
        client,
        scope,
    })
}

/// The client that the authorization server no longer knew when the tokens were to be renewed.
fn forgotten_client(
    state: &AuthState,
    tenant: TenantId,
    before: &ConnectedAccount,
) -> Option<String> {
    if before.reason.as_deref() != Some("client") {
        return None;
    }
    let place = (before.id, before.version);
    let (key, sealed) = (&before.key, &before.sealed);
    let held = open(&state.keys, tenant, key, place, sealed, state.now());
    held.ok().map(|held| held.client.client_id)
}

/// Requests a server without a token and reads its challenge. If the challenge has no metadata,
/// discovery uses the well-known addresses.
async fn challenge(state: &AuthState, url: &Url) -> Challenge {
    let endpoint = Endpoint {
        url: url.clone(),
        headers: http::HeaderMap::new(),
        secrets: Secrets::default(),
        limits: Limits {
            silence: CHALLENGE,
            total: CHALLENGE,
            ..Limits::default()
        },
    };
    let client = Client::new(state.egress.clone(), endpoint);
    let tracker = TaskTracker::new();
    let speaker = Speaker::ourselves();
    let probe = tokio::time::timeout(CHALLENGE, client.probe(&speaker, &tracker)).await;
    let challenge = match probe {
        Ok(Err(UpstreamError::Unauthorized { challenge })) => challenge,
        Ok(Ok(probed)) => {
            probed.connection.end().await;
            None
        }
        _ => None,
    };
    tracker.close();
    Challenge::read(challenge.as_deref())
}

/// Our client at an authorization server (MCP-AU-6, MCP-AU-7): the one that the tenant entered,
/// else our document, else a registration. A registration that the server has forgotten is made
/// anew.
async fn client(
    state: &AuthState,
    tenant: TenantId,
    source: SourceId,
    sign_in: &SignIn,
    forgotten: Option<&str>,
    discovered: &Discovered,
) -> Result<ClientIdentity, ConnectError> {
    let server = &discovered.server;
    let issuer = server.issuer.as_str();
    if let Some(kept) = &sign_in.client {
        let is_entered = kept.kind == "entered";
        let place = (source, sign_in.version);
        let open = || {
            open_client(
                &state.keys,
                tenant,
                &kept.key,
                place,
                &kept.sealed,
                state.now(),
            )
        };
        match kept.issuer.as_deref() {
            Some(known)
                if known == issuer
                    && (is_entered || forgotten != Some(kept.client_id.as_str())) =>
            {
                return Ok(open()?);
            }
            Some(known) if is_entered => {
                return Err(ConnectError::ClientOfAnother {
                    known: known.to_owned(),
                    found: issuer.to_owned(),
                });
            }
            None if is_entered => {
                let mut client = open()?;
                if client.method == AuthMethod::ClientSecretBasic {
                    client.method = AuthMethod::with_secret(server);
                }
                keep_client(state, tenant, source, issuer, "entered", &client).await?;
                return Ok(client);
            }
            _ => {}
        }
    }
    let (client, kind) = match document_url(&state.site, source) {
        Some(url) if server.client_id_metadata_document_supported => {
            (ClientIdentity::public(url), "document")
        }
        _ => {
            let redirect_uri = redirect_uri(&state.site, source);
            let ourselves = Registration {
                client_name: CLIENT_NAME,
                client_uri: state.site.origin(),
                redirect_uri: &redirect_uri,
                // Servers refuse a registration with a scope that only the resource knows.
                scope: None,
            };
            let registered = register(&state.egress, server, &ourselves).await?;
            (registered, "registered")
        }
    };
    keep_client(state, tenant, source, issuer, kind, &client).await?;
    Ok(client)
}

/// Stores the client for the next connection.
async fn keep_client(
    state: &AuthState,
    tenant: TenantId,
    source: SourceId,
    issuer: &str,
    kind: &str,
    client: &ClientIdentity,
) -> Result<(), ConnectError> {
    let mut tx = state.store.tenant(tenant).await?;
    put_client(state, &mut tx, source, Some(issuer), kind, client).await?;
    tx.commit().await?;
    Ok(())
}

/// Writes a client, sealed, into its row.
pub async fn put_client(
    state: &AuthState,
    tx: &mut TenantTx,
    source: SourceId,
    issuer: Option<&str>,
    kind: &str,
    client: &ClientIdentity,
) -> Result<(), ConnectError> {
    let (tenant, now) = (tx.tenant(), state.now());
    let version = stored::next_client_version(tx, source).await?;
    let version = version.ok_or(ConnectError::Unknown)?;
    let key = data_key::<ConnectError>(state, tx, tenant, now).await?;
    let sealed = seal_client(&state.keys, tenant, &key, (source, version), client, now)?;
    let row = SealedClient {
        issuer: issuer.map(str::to_owned),
        client_id: client.client_id.clone(),
        kind: kind.to_owned(),
        sealed,
        key,
    };
    stored::put_client(tx, source, &row, version, now).await?;
    Ok(())
}

/// Deletes a registration that the server has forgotten, so that the next connection makes a new
/// one.
pub(crate) async fn forget_client_if(
    state: &AuthState,
    tenant: TenantId,
    source: SourceId,
    error: &OauthError,
) -> Result<(), StorageError> {
    if !error.is_unknown_client() {
        return Ok(());
    }
    let mut tx = state.store.tenant(tenant).await?;
    let entered = stored::sign_in(&mut tx, source).await?;
    let is_entered = entered
        .and_then(|row| row.client)
        .is_none_or(|client| client.kind == "entered");
    if !is_entered {
        stored::forget_client(&mut tx, source, state.now()).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Why an account is not connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The source does not exist, or has no OAuth sign-in.
    #[error("there is no such source that is signed in to")]
    Unknown,
    /// MCP-AU-7: the client that the tenant entered belongs to another authorization server.
    #[error(
        "the client that was entered belongs to {known}, but the server now names {found}: enter the client that you have there"
    )]
    ClientOfAnother {
        /// The issuer of the client.
        known: String,
        /// The present issuer.
        found: String,
    },
    /// The API has no entered authorization server.
    #[error("name the authorization server of this API first")]
    NoServer,
    /// Client credentials need a client with a secret or a key.
    #[error("enter a client id with a secret or a key first")]
    NoClient,
    /// The authorization server failed or refused.
    #[error("{0}")]
    Oauth(#[from] OauthError),
    /// The database failed.
    #[error("storage")]
    Storage(#[from] StorageError),
    /// A sealed value could not be opened or made.
    #[error("a seal does not open")]
    Seal(#[from] SealError),
    /// There was no randomness.
    #[error("keys")]
    Keys(#[from] KeysError),
    /// A bug.
    #[error("internal: {0}")]
    Internal(&'static str),
}

/// The callback of a source. Each source has its own: an authorization server that sends no `iss`
/// cannot pass for another (MCP-AU-9).
pub fn redirect_uri(site: &Site, source: SourceId) -> String {
    site.url(&format!("/connect/callback/{source}"))
}

/// The address of the client metadata document for a source. It is the client id for servers that
/// support such documents (MCP-AU-6). Each source has its own, so that a person's consent for one
/// workspace does not count for another. Only an `https` address can be one (MCP-AC-11).
pub fn document_url(site: &Site, source: SourceId) -> Option<String> {
    let url = site.url(&format!("/connect/clients/{source}"));
    url.starts_with("https://").then_some(url)
}
