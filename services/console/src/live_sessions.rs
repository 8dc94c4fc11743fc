//! Sessions of AI clients at the nodes (PLAY-8, PLAY-9).

use std::collections::HashMap;

use axum::{
    Json,
    extract::{FromRequestParts, State},
};
use http::{StatusCode, request::Parts};
use portolan_model::{
    id::{ServerId, UserId},
    live_session::{FromNodes, LiveSession, MomentKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, live_sessions::AskNodes, request_context::RequestContext,
    state::AuthState,
};
use portolan_storage::{Reason, accounts::members, platform::audit, registry::servers};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{caller::Caller, input::path_parameter, workspace::Workspace};

/// The id of a session in a path. A text that is none gets the answer for an unknown session.
#[derive(Debug)]
pub(crate) struct SessionPath(String);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        let id = path_parameter(parts, "id").await?;
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some(Self(id)).ok_or_else(unknown)
    }
}

/// What happened in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionMomentKind {
    /// The client opened it.
    Opened,
    /// A request of the client.
    Request,
    /// A notification of the client.
    Notification,
    /// A question of the server.
    Question,
    /// The client's answer to a question.
    Answer,
    /// The client opened an event stream.
    Stream,
    /// The client resumed a broken stream.
    Resumed,
    /// The session ended.
    Ended,
}

/// A session, or a client of 2026-07-28 on one server.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenSession {
    /// Names the session here; it opens nothing.
    id: String,
    /// False for a client of 2026-07-28, which has no session to end.
    is_session: bool,
    /// The revision of MCP.
    revision: String,
    #[schema(value_type = String)]
    server_id: ServerId,
    /// Null if the server was deleted.
    server_name: Option<String>,
    /// The person or service account.
    subject: String,
    /// The person's name; null for a service account.
    user_name: Option<String>,
    user_email: Option<String>,
    client_id: String,
    /// The client's own name, which is not verified.
    client_name: Option<String>,
    client_version: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    began_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    last_at: OffsetDateTime,
    requests: u64,
    calls: u64,
    /// Open event streams.
    streams: u32,
    /// Nodes that know it, the one of the last request first.
    nodes: Vec<String>,
}

/// The sessions of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenSessions {
    items: Vec<OpenSession>,
    /// Nodes that did not reply in time: their sessions may be missing.
    silent_nodes: usize,
}

/// A moment of a session.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionEvent {
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    node: String,
    kind: SessionMomentKind,
    /// The method of MCP.
    method: Option<String>,
}

/// The moments of a session, as far as the nodes remember them.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionTimeline {
    items: Vec<SessionEvent>,
    silent_nodes: usize,
}

/// The sessions of a workspace, the last used first: all of them for admins and owners, otherwise
/// the person's own.
#[utoipa::path(get, path = "/workspaces/{ws}/sessions", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The sessions.", body = OpenSessions)))]
pub(crate) async fn list_sessions(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<OpenSessions>, ConsoleError> {
    workspace.require(Action::Read)?;
    let FromNodes { found, silent } = visible(&state, &workspace).await?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let people: HashMap<String, (String, String)> = members::list(&mut tx, workspace.id)
        .await?
        .into_iter()
        .map(|member| (member.user.to_string(), (member.display_name, member.email)))
        .collect();
    drop(tx);
    let mut tx = state.store.tenant(workspace.id).await?;
    let names: HashMap<ServerId, String> = servers::list(&mut tx)
        .await?
        .into_iter()
        .map(|server| (server.id, server.name))
        .collect();
    drop(tx);
    let items = found.into_iter().map(|session| {
        let person = people.get(&session.subject);
        OpenSession {
            server_name: names.get(&session.server).cloned(),
            user_name: person.map(|(name, _)| name.clone()),
            user_email: person.map(|(_, email)| email.clone()),
            id: session.id,
            is_session: session.is_session,
            revision: session.revision,
            server_id: session.server,
            subject: session.subject,
            client_id: session.client_id,
            client_name: session.client_name,
            client_version: session.client_version,
            began_at: at(session.began_at),
            last_at: at(session.last_at),
            requests: session.requests,
            calls: session.calls,
            streams: session.streams,
            nodes: session.nodes,
        }
    });
    Ok(Json(OpenSessions {
        items: items.collect(),
        silent_nodes: silent,
    }))
}

/// What happened in a session, the oldest first.
#[utoipa::path(get, path = "/workspaces/{ws}/sessions/{id}/timeline", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Session")),
    responses((status = 200, description = "The moments.", body = SessionTimeline)))]
pub(crate) async fn show_session_timeline(
    State(state): State<AuthState>,
    workspace: Workspace,
    SessionPath(id): SessionPath,
) -> Result<Json<SessionTimeline>, ConsoleError> {
    workspace.require(Action::Read)?;
    let session = found(&state, &workspace, &id).await?;
    let moments = nodes(&state)?.moments(workspace.id, &session.id).await;
    let FromNodes { found, silent } = moments.ok_or_else(unreachable)?;
    let items = found.into_iter().map(|moment| SessionEvent {
        at: at(moment.at),
        node: moment.node,
        kind: kind(moment.kind),
        method: moment.method,
    });
    Ok(Json(SessionTimeline {
        items: items.collect(),
        silent_nodes: silent,
    }))
}

/// Ends a session on every node: its client gets 404, and its streams and calls end.
#[utoipa::path(delete, path = "/workspaces/{ws}/sessions/{id}", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Session")),
    responses((status = 204, description = "Ended.")))]
pub(crate) async fn end_session(
    State(state): State<AuthState>,
    workspace: Workspace,
    SessionPath(id): SessionPath,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Read)?;
    let session = found(&state, &workspace, &id).await?;
    if !session.is_session {
        return Err(ConsoleError::conflict(
            "no_session",
            "This client has no session to end. Disconnect it under Connected apps.",
        ));
    }
    let ended = nodes(&state)?.end(workspace.id, &session.id).await;
    if !ended.ok_or_else(unreachable)?.found {
        return Err(unknown());
    }
    let detail = json!({
        "client_id": session.client_id, "client": session.client_name, "subject": session.subject, "server": session.server,
    });
    let event = workspace.event("session.ended", "session", id, detail);
    let mut tx = state.store.tenant(workspace.id).await?;
    audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

fn nodes(state: &AuthState) -> Result<&dyn AskNodes, ConsoleError> {
    state.config.live_sessions.get().ok_or_else(unreachable)
}

fn unreachable() -> ConsoleError {
    ConsoleError::busy(5, "The MCP nodes cannot be asked at the moment. Try again.")
}

fn unknown() -> ConsoleError {
    ConsoleError::not_found("this session")
}

/// Counts a question to the nodes against the budget of the caller.
async fn pay(state: &AuthState, workspace: &Workspace) -> Result<(), ConsoleError> {
    let who = match &workspace.caller {
        Caller::Browser(session) => session.user.to_string(),
        Caller::Token(token) => token.id.to_string(),
    };
    let look = state.throttle.session_look(&who, state.now()).await;
    look.map_err(|early| {
        let text = "Sessions are read too often. Try again in a moment.";
        ConsoleError::busy(early.seconds(), text)
    })
}

/// Returns true if the person may see a session: administrators see all, members their own.
fn may_see(workspace: &Workspace, session: &LiveSession) -> bool {
    let is_own = |user: UserId| session.subject == user.to_string();
    workspace.role.may(Action::Administer) || workspace.caller.user().is_some_and(is_own)
}

/// The last used sessions that the person may see.
async fn visible(
    state: &AuthState,
    workspace: &Workspace,
) -> Result<FromNodes<Vec<LiveSession>>, ConsoleError> {
    pay(state, workspace).await?;
    let all = nodes(state)?.list(workspace.id).await;
    let mut all = all.ok_or_else(unreachable)?;
    all.found.retain(|session| may_see(workspace, session));
    Ok(all)
}

/// One session, also beyond those of the list. A session of another person is as unknown as one
/// that does not exist.
async fn found(
    state: &AuthState,
    workspace: &Workspace,
    id: &str,
) -> Result<LiveSession, ConsoleError> {
    pay(state, workspace).await?;
    let one = nodes(state)?.one(workspace.id, id).await;
    let session = one.ok_or_else(unreachable)?.found;
    let session = session.filter(|session| may_see(workspace, session));
    session.ok_or_else(unknown)
}

fn at(millis: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

const fn kind(kind: MomentKind) -> SessionMomentKind {
    match kind {
        MomentKind::Opened => SessionMomentKind::Opened,
        MomentKind::Request => SessionMomentKind::Request,
        MomentKind::Notification => SessionMomentKind::Notification,
        MomentKind::Question => SessionMomentKind::Question,
        MomentKind::Answer => SessionMomentKind::Answer,
        MomentKind::Stream => SessionMomentKind::Stream,
        MomentKind::Resumed => SessionMomentKind::Resumed,
        MomentKind::Ended => SessionMomentKind::Ended,
    }
}
