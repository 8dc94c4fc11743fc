//! Servers: the items that a workspace publishes under one URL.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{ServerId, ServerKind, ToolId},
    member::Action,
    registry::{ServerStatus, ToolState},
    slug::Slug,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    workspaces::display_name,
};
use portolan_storage::{
    TenantTx,
    platform::audit,
    registry::{
        servers::{self, Changes, NewServer, PublishedTool, Server},
        trash,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    change::{self, Deleted, Editor},
    choices::{self, ChosenTool},
    client_limits::{self, ClientWarning, Listed},
    default_server,
    input::{JsonBody, PathId, given, plain_text},
    listing::Listing,
    server_offers::{self, ServerPrompt, ServerResource},
    tools::method_and_path,
    workspace::Workspace,
};

/// Most servers of one workspace.
const MOST_SERVERS: usize = 200;

/// The database constraint of slugs.
const SLUG_TAKEN: &str = "servers_tenant_id_slug_key";

/// A server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
pub struct ServerView {
    #[schema(value_type = String, example = "srv_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ServerId,
    /// Its segment of the URL.
    slug: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    description: Option<String>,
    /// Instructions for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    instructions: Option<String>,
    #[schema(value_type = ServerStatusName)]
    status: ServerStatus,
    /// The URL that people enter in their AI client.
    url: String,
    /// The workspace's own URL, if this server is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    workspace_url: Option<String>,
    /// Number of tools that clients see.
    tool_count: i64,
    /// Name of the file that owns it, by configuration as code: the next application of that file
    /// overwrites other changes. Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    managed_by: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    #[schema(nullable = false)]
    published_at: Option<OffsetDateTime>,
}

/// The state of a server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ServerStatus)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::ServerStatus"
)]
pub(crate) enum ServerStatusName {
    Draft,
    Published,
    Paused,
}

/// A server with its tools, prompts and resources.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerDetail {
    #[serde(flatten)]
    server: ServerView,
    /// By published name.
    tools: Vec<ServerTool>,
    /// By published name.
    prompts: Vec<ServerPrompt>,
    /// By published URI, including templates.
    resources: Vec<ServerResource>,
    /// Problems that some AI clients would have.
    warnings: Vec<ClientWarning>,
}

/// A tool as a server offers it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerTool {
    #[schema(value_type = String)]
    tool_id: ToolId,
    /// Its name for clients.
    published_name: String,
    title: String,
    method: String,
    path: String,
    source_name: String,
    enabled: bool,
    #[schema(value_type = crate::tools::ToolStateName)]
    state: ToolState,
}

pub(crate) fn server_url(state: &AuthState, workspace: &Workspace, slug: &str) -> String {
    state.site.url(&format!("/t/{}/{slug}/mcp", workspace.slug))
}

/// The workspace's own URL, if it leads to the server.
pub(crate) fn workspace_url(
    state: &AuthState,
    workspace: &Workspace,
    server: &Server,
) -> Option<String> {
    let path = format!("/t/{}/mcp", workspace.slug);
    server.is_default.then(|| state.site.url(&path))
}

fn view(state: &AuthState, workspace: &Workspace, server: Server) -> ServerView {
    ServerView {
        url: server_url(state, workspace, &server.slug),
        workspace_url: workspace_url(state, workspace, &server),
        id: server.id,
        slug: server.slug,
        name: server.name,
        description: server.description,
        instructions: server.instructions,
        status: server.status,
        tool_count: server.tool_count,
        managed_by: server.managed_by,
        created_at: server.created_at,
        updated_at: server.updated_at,
        published_at: server.published_at,
    }
}

/// The server, or 404.
pub(crate) async fn found_server(tx: &mut TenantTx, id: ServerId) -> Result<Server, ConsoleError> {
    servers::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this server"))
}

pub(crate) async fn detail(
    state: &AuthState,
    workspace: &Workspace,
    tx: &mut TenantTx,
    id: ServerId,
) -> Result<ServerDetail, ConsoleError> {
    let server = found_server(tx, id).await?;
    let tools = servers::tools(tx, id).await?;
    let listed: Vec<Listed<'_>> = tools
        .iter()
        .map(|tool| Listed {
            name: &tool.published_name,
            enabled: tool.enabled,
            state: tool.state,
        })
        .collect();
    let warnings = client_limits::warnings(&server.slug, &listed);
    let (prompts, resources) = server_offers::of_server(tx, id).await?;
    Ok(ServerDetail {
        server: view(state, workspace, server),
        tools: tools.into_iter().map(tool_view).collect(),
        prompts,
        resources,
        warnings,
    })
}

fn tool_view(tool: PublishedTool) -> ServerTool {
    let (method, path) = method_and_path(&tool.operation_key);
    ServerTool {
        tool_id: tool.tool_id,
        published_name: tool.published_name,
        title: tool.title,
        method,
        path,
        source_name: tool.source_name,
        enabled: tool.enabled,
        state: tool.state,
    }
}

/// All servers of a workspace, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/servers", tag = "servers", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The servers.", body = Listing<ServerView>)))]
pub(crate) async fn list_servers(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<ServerView>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let servers = servers::list(&mut tx).await?;
    Ok(Json(Listing::whole(
        servers
            .into_iter()
            .map(|server| view(&state, &workspace, server))
            .collect(),
    )))
}

/// A new server.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewServer)]
pub struct NewServerRequest {
    /// Display name.
    name: String,
    /// Its segment of the URL, which never changes.
    #[schema(example = "petstore")]
    slug: String,
    /// Description for people.
    #[schema(nullable = false)]
    description: Option<String>,
    /// Instructions for models: the purpose of the server.
    #[schema(nullable = false)]
    instructions: Option<String>,
    /// Its tools, under their own names.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    tool_ids: Vec<ToolId>,
}

fn server_name(text: &str) -> Result<&str, ConsoleError> {
    display_name(text).ok_or_else(|| {
        ConsoleError::invalid(
            "name_invalid",
            "Give the server a name of 1 to 80 characters.",
        )
        .field("name")
    })
}

/// Creates a server. It is a draft until it is published.
#[utoipa::path(post, path = "/workspaces/{ws}/servers", tag = "servers", params(("ws" = String, Path, description = "Slug")),
    request_body = NewServerRequest, responses((status = 201, description = "Made.", body = ServerView)))]
pub(crate) async fn create_server(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(request): JsonBody<NewServerRequest>,
) -> Result<(StatusCode, Json<ServerView>), ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let id = ServerId::generate();
    let texts = ServerTexts::checked(
        &request.name,
        request.description.as_deref(),
        request.instructions.as_deref(),
    )?;
    let mut tx = state.store.tenant(workspace.id).await?;
    add(&mut tx, id, &request.slug, &texts, now).await?;
    let chosen: Vec<ChosenTool> = request
        .tool_ids
        .into_iter()
        .map(|tool_id| ChosenTool {
            tool_id,
            published_name: None,
        })
        .collect();
    choices::set_tools(&mut tx, id, chosen, now).await?;
    let server = found_server(&mut tx, id).await?;
    let entry = json!({ "name": server.name, "slug": server.slug, "tools": server.tool_count });
    let event = workspace.event("server.created", "server", id, entry);
    change::commit(tx, &context, now, &event).await?;
    Ok((StatusCode::CREATED, Json(view(&state, &workspace, server))))
}

/// The checked texts of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerTexts<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) instructions: Option<&'a str>,
}

impl<'a> ServerTexts<'a> {
    pub(crate) fn checked(
        name: &'a str,
        description: Option<&'a str>,
        instructions: Option<&'a str>,
    ) -> Result<Self, ConsoleError> {
        let text = |field, text: Option<&'a str>, most| {
            text.map_or(Ok(None), |text| plain_text(field, text, most))
        };
        Ok(Self {
            name: server_name(name)?,
            description: text("description", description, 1_000)?,
            instructions: text("instructions", instructions, 8_000)?,
        })
    }
}

/// Adds a draft without items.
pub(crate) async fn add(
    tx: &mut TenantTx,
    id: ServerId,
    slug: &str,
    texts: &ServerTexts<'_>,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    let slug = checked_slug(slug)?;
    if servers::list(tx).await?.len() >= MOST_SERVERS {
        return Err(ConsoleError::conflict(
            "too_many_servers",
            format!("A workspace has up to {MOST_SERVERS} servers. Delete one first."),
        ));
    }
    let new = NewServer {
        id,
        slug: slug.as_str(),
        name: texts.name,
        description: texts.description,
        instructions: texts.instructions,
    };
    servers::insert(tx, &new, now).await.map_err(|error| {
        if error.is_conflict_on(SLUG_TAKEN) {
            ConsoleError::conflict(
                "slug_taken",
                "A server of this workspace has or had this address. Choose another one.",
            )
            .field("slug")
        } else {
            error.into()
        }
    })
}

pub(crate) fn checked_slug(text: &str) -> Result<Slug, ConsoleError> {
    text.trim().parse::<Slug>().map_err(|error| {
        ConsoleError::invalid(
            "slug_invalid",
            format!("This address cannot be used: {error}."),
        )
        .field("slug")
    })
}

/// One server with its items, and with problems that AI clients would have.
#[utoipa::path(get, path = "/workspaces/{ws}/servers/{id}", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "The server.", body = ServerDetail)))]
pub(crate) async fn show_server(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<ServerDetail>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(detail(&state, &workspace, &mut tx, id).await?))
}

/// A change of a server: absent members stay, null clears one. The address never changes, because
/// AI clients store it.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ServerChange {
    #[schema(nullable = false)]
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    instructions: Option<Option<String>>,
}

/// Changes a server's texts.
#[utoipa::path(patch, path = "/workspaces/{ws}/servers/{id}", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = ServerChange, responses((status = 200, description = "Changed.", body = ServerView)))]
pub(crate) async fn change_server(
    editor: Editor,
    PathId(id): PathId<ServerKind>,
    JsonBody(request): JsonBody<ServerChange>,
) -> Result<Json<ServerView>, ConsoleError> {
    let description = match &request.description {
        None => None,
        Some(None) => Some(None),
        Some(Some(text)) => Some(plain_text("description", text, 1_000)?),
    };
    let instructions = match &request.instructions {
        None => None,
        Some(None) => Some(None),
        Some(Some(text)) => Some(plain_text("instructions", text, 8_000)?),
    };
    let changes = Changes {
        name: request.name.as_deref().map(server_name).transpose()?,
        slug: None,
        description,
        instructions,
    };
    let mut tx = editor.begin().await?;
    if !servers::update(&mut tx, id, &changes, editor.now).await? {
        return Err(ConsoleError::not_found("this server"));
    }
    let server = found_server(&mut tx, id).await?;
    let entry = json!({ "name": changes.name, "description_changed": changes.description.is_some(),
        "instructions_changed": changes.instructions.is_some() });
    editor
        .commit(tx, "server.changed", "server", id, entry)
        .await?;
    Ok(Json(view(&editor.state, &editor.workspace, server)))
}

async fn set_status(
    state: &AuthState,
    workspace: &Workspace,
    context: &RequestContext,
    id: ServerId,
    status: ServerStatus,
    action: &'static str,
) -> Result<Json<ServerView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    switch(&mut tx, (workspace, context), id, status, now).await?;
    let server = found_server(&mut tx, id).await?;
    let entry = json!({ "slug": server.slug });
    let event = workspace.event(action, "server", id, entry);
    change::commit(tx, context, now, &event).await?;
    Ok(Json(view(state, workspace, server)))
}

/// Sets the state of a server. The first one that a workspace publishes becomes its default server,
/// with an audit entry.
pub(crate) async fn switch(
    tx: &mut TenantTx,
    (workspace, context): (&Workspace, &RequestContext),
    id: ServerId,
    status: ServerStatus,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    let becomes_default =
        status == ServerStatus::Published && servers::make_default_if_first(tx, id).await?;
    if !servers::set_status(tx, id, status, now).await? {
        return Err(ConsoleError::not_found("this server"));
    }
    if becomes_default {
        let server = found_server(tx, id).await?;
        let detail = json!({ "from": null, "to": server.slug });
        let event = workspace.event(default_server::CHANGED, "tenant", workspace.id, detail);
        audit::record(tx, &event, &context.origin(), now).await?;
    }
    Ok(())
}

/// Publishes a server: from now on it answers AI clients. The first one of a workspace becomes its
/// default server.
#[utoipa::path(post, path = "/workspaces/{ws}/servers/{id}/publish", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "Published.", body = ServerView)))]
pub(crate) async fn publish_server(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<ServerView>, ConsoleError> {
    set_status(
        &state,
        &workspace,
        &context,
        id,
        ServerStatus::Published,
        "server.published",
    )
    .await
}

/// Pauses a server: it answers like an unknown one until it is published again.
#[utoipa::path(post, path = "/workspaces/{ws}/servers/{id}/pause", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "Paused.", body = ServerView)))]
pub(crate) async fn pause_server(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<ServerView>, ConsoleError> {
    set_status(
        &state,
        &workspace,
        &context,
        id,
        ServerStatus::Paused,
        "server.paused",
    )
    .await
}

/// Deletes a server. It can be restored for 30 days. No other server gets its address.
#[utoipa::path(delete, path = "/workspaces/{ws}/servers/{id}", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "Deleted.", body = Deleted)))]
pub(crate) async fn delete_server(
    editor: Editor,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<Deleted>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let server = found_server(&mut tx, id).await?;
    trash::delete(&mut tx, id, editor.now).await?;
    let entry = json!({ "name": server.name, "slug": server.slug });
    editor
        .commit(tx, "server.deleted", "server", id, entry)
        .await?;
    Ok(Json(Deleted::at(editor.now)))
}

/// Restores a deleted server.
#[utoipa::path(post, path = "/workspaces/{ws}/servers/{id}/restore", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "Restored.", body = ServerView)))]
pub(crate) async fn restore_server(
    editor: Editor,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<ServerView>, ConsoleError> {
    let mut tx = editor.begin().await?;
    if !trash::restore(&mut tx, id, editor.now).await? {
        return Err(ConsoleError::not_restorable("server"));
    }
    let server = found_server(&mut tx, id).await?;
    let entry = json!({ "slug": server.slug });
    editor
        .commit(tx, "server.restored", "server", id, entry)
        .await?;
    Ok(Json(view(&editor.state, &editor.workspace, server)))
}
