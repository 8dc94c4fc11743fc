//! Calls of a server that the playground keeps, with assertions on their answers (PLAY-6).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{SavedCallId, SavedCallKind, ServerId, ServerKind},
    member::Action,
    saved_call::{self, MOST_EQUALS},
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    StorageError, TenantTx,
    platform::audit,
    registry::saved_calls::{self, NewSavedCall},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, Part, PathId, PathPart},
    listing::Listing,
    servers::found_server,
    workspace::Workspace,
};

/// Most calls that a server keeps.
const MOST: i64 = 200;

/// Largest parameters of one, in bytes.
const LARGEST: usize = 64 * 1024;

/// The part of a path that names a saved call.
#[derive(Debug)]
pub(crate) struct CallPart;

impl Part for CallPart {
    const NAME: &'static str = "call";
    type Kind = SavedCallKind;
}

/// A request that can be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum SavedMethod {
    /// A call of a tool.
    #[serde(rename = "tools/call")]
    ToolsCall,
    /// The messages of a prompt.
    #[serde(rename = "prompts/get")]
    PromptsGet,
    /// The content of a resource.
    #[serde(rename = "resources/read")]
    ResourcesRead,
}

impl SavedMethod {
    const ALL: [Self; 3] = [Self::ToolsCall, Self::PromptsGet, Self::ResourcesRead];

    const fn as_str(self) -> &'static str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::PromptsGet => "prompts/get",
            Self::ResourcesRead => "resources/read",
        }
    }
}

/// How a saved call has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SavedStatus {
    /// A result that is no error of the tool.
    Ok,
    /// A result with `isError`, or a JSON-RPC error.
    Error,
}

/// A value in the result of a saved call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedEqual {
    /// A singular query of JSONPath (RFC 9535).
    #[schema(example = "$.content[0].text")]
    path: String,
    /// The value that stands there.
    value: Value,
}

/// Assertions on the answer of a saved call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedExpectations {
    status: SavedStatus,
    /// Whether `structuredContent` fits the tool's output schema.
    #[serde(default)]
    schema: bool,
    /// Longest time to the answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 600_000)]
    max_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    equals: Vec<SavedEqual>,
}

/// A saved call.
#[derive(Debug, Serialize, ToSchema)]
pub struct SavedCall {
    #[schema(value_type = String, example = "cal_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: SavedCallId,
    name: String,
    method: SavedMethod,
    /// Parameters, as a client sends them.
    params: Map<String, Value>,
    expect: SavedExpectations,
    #[serde(with = "time::serde::rfc3339")]
    changed_at: OffsetDateTime,
}

/// A call to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSavedCallBody {
    /// Unique for the server.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    method: SavedMethod,
    params: Map<String, Value>,
    expect: SavedExpectations,
}

/// The saved calls of a server, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/servers/{id}/saved-calls", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "The calls.", body = Listing<SavedCall>)))]
pub(crate) async fn list_saved_calls(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<Listing<SavedCall>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found_server(&mut tx, id).await?;
    let calls = saved_calls::list(&mut tx, id).await?;
    let items = calls.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(Json(Listing::whole(items)))
}

/// Saves a call.
#[utoipa::path(post, path = "/workspaces/{ws}/servers/{id}/saved-calls", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = NewSavedCallBody,
    responses((status = 201, description = "Saved.", body = SavedCall)))]
pub(crate) async fn save_call(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(server): PathId<ServerKind>,
    context: RequestContext,
    JsonBody(body): JsonBody<NewSavedCallBody>,
) -> Result<(StatusCode, Json<SavedCall>), ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let wanted = SavedCallMembers::read(body)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found_server(&mut tx, server).await?;
    if saved_calls::count(&mut tx, server).await? >= MOST {
        return Err(ConsoleError::conflict(
            "too_many",
            format!("A server keeps at most {MOST} calls. Delete some first."),
        ));
    }
    let id = SavedCallId::generate();
    let now = state.now();
    saved_calls::insert(&mut tx, id, server, &wanted.row(&workspace), now)
        .await
        .map_err(name_taken)?;
    let event = "saved_call.created";
    let call = finish(
        &state,
        tx,
        &workspace,
        &context,
        event,
        (id, server),
        wanted,
    )
    .await?;
    Ok((StatusCode::CREATED, Json(call)))
}

/// Replaces a saved call.
#[utoipa::path(put, path = "/workspaces/{ws}/servers/{id}/saved-calls/{call}", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server"),
        ("call" = String, Path, description = "Saved call")),
    request_body = NewSavedCallBody,
    responses((status = 200, description = "Replaced.", body = SavedCall)))]
pub(crate) async fn change_saved_call(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(server): PathId<ServerKind>,
    PathPart { id, .. }: PathPart<CallPart>,
    context: RequestContext,
    JsonBody(body): JsonBody<NewSavedCallBody>,
) -> Result<Json<SavedCall>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let wanted = SavedCallMembers::read(body)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let now = state.now();
    let is_there = saved_calls::replace(&mut tx, id, server, &wanted.row(&workspace), now)
        .await
        .map_err(name_taken)?;
    if !is_there {
        return Err(ConsoleError::not_found("this saved call"));
    }
    let event = "saved_call.changed";
    let call = finish(
        &state,
        tx,
        &workspace,
        &context,
        event,
        (id, server),
        wanted,
    )
    .await?;
    Ok(Json(call))
}

/// Deletes a saved call.
#[utoipa::path(delete, path = "/workspaces/{ws}/servers/{id}/saved-calls/{call}", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server"),
        ("call" = String, Path, description = "Saved call")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_saved_call(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(server): PathId<ServerKind>,
    PathPart { id, .. }: PathPart<CallPart>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let name = saved_calls::delete(&mut tx, id, server)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this saved call"))?;
    let detail = json!({ "name": name, "server": server });
    let event = workspace.event("saved_call.deleted", "saved_call", id, detail);
    audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A call that may be saved.
struct SavedCallMembers {
    name: String,
    method: SavedMethod,
    params: Value,
    expect: Value,
}

impl SavedCallMembers {
    fn read(body: NewSavedCallBody) -> Result<Self, ConsoleError> {
        let invalid = |field: &'static str, text: &str| {
            Err(ConsoleError::invalid("saved_call_invalid", text.to_owned()).field(field))
        };
        let name = body.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > 100 {
            return invalid("name", "Enter 1 to 100 characters.");
        }
        if body.expect.equals.len() > MOST_EQUALS {
            return invalid("expect", "At most 50 values can be compared.");
        }
        if body
            .expect
            .max_ms
            .is_some_and(|most| !(1..=600_000).contains(&most))
        {
            return invalid("expect", "Enter 1 to 600,000 milliseconds.");
        }
        let key = if body.method == SavedMethod::ResourcesRead {
            "uri"
        } else {
            "name"
        };
        if !body.params.get(key).is_some_and(Value::is_string) {
            return invalid("params", "The parameters do not name what is called.");
        }
        let mut params = body.params;
        // Metadata of one request is not part of the call.
        params.remove("_meta");
        let params = Value::Object(params);
        if params.to_string().len() > LARGEST {
            return invalid("params", "The parameters take more than 64 KiB.");
        }
        let expect = json!(body.expect);
        let read: saved_call::Expectations = serde_json::from_value(expect.clone())
            .map_err(|error| ConsoleError::internal("expectations", error))?;
        if let Some(path) = read.bad_path() {
            let text = format!("{path} is no path. Write it as $.content[0].text.");
            return invalid("expect", &text);
        }
        Ok(Self {
            name,
            method: body.method,
            params,
            expect,
        })
    }

    fn row<'a>(&'a self, workspace: &Workspace) -> NewSavedCall<'a> {
        NewSavedCall {
            name: &self.name,
            method: self.method.as_str(),
            params: &self.params,
            expect: &self.expect,
            by: workspace.caller.user(),
        }
    }
}

async fn finish(
    state: &AuthState,
    mut tx: TenantTx,
    workspace: &Workspace,
    context: &RequestContext,
    action: &'static str,
    (id, server): (SavedCallId, ServerId),
    wanted: SavedCallMembers,
) -> Result<SavedCall, ConsoleError> {
    // Arguments may be secrets: the audit log has the name alone.
    let detail = json!({ "name": wanted.name, "server": server });
    let event = workspace.event(action, "saved_call", id, detail);
    let now = state.now();
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    view(saved_calls::SavedCall {
        id,
        name: wanted.name,
        method: wanted.method.as_str().to_owned(),
        params: wanted.params,
        expect: wanted.expect,
        changed_at: now,
    })
}

fn view(call: saved_calls::SavedCall) -> Result<SavedCall, ConsoleError> {
    let inconsistent = || {
        ConsoleError::from(StorageError::Inconsistent {
            table: "saved_calls",
            column: "method",
        })
    };
    let method = SavedMethod::ALL
        .into_iter()
        .find(|method| method.as_str() == call.method);
    let read = |error| ConsoleError::internal("saved call", error);
    Ok(SavedCall {
        id: call.id,
        name: call.name,
        method: method.ok_or_else(inconsistent)?,
        params: serde_json::from_value(call.params).map_err(read)?,
        expect: serde_json::from_value(call.expect).map_err(read)?,
        changed_at: call.changed_at,
    })
}

fn name_taken(error: StorageError) -> ConsoleError {
    if error.is_conflict_on("saved_calls_name") {
        return ConsoleError::conflict(
            "name_taken",
            "This server has a saved call of this name already.",
        )
        .field("name");
    }
    error.into()
}
