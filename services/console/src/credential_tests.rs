//! The test of a source's credential: harmless requests that carry it, and their results.

use std::time::Duration;

use axum::{Json, extract::State as Extracted};
use portolan_http_tools::{
    CallTarget, Caller, CompiledTool, Content, CredentialSlot, Proof, RequestPlan, TokenSource,
    ToolAnswer, execute::execute,
};
use portolan_model::{
    id::{SourceKind as SourceIdKind, TenantId, ToolId},
    limits::LimitName,
    member::Action,
    registry::{SourceKind, SourceSettings, ToolState},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    platform::limits,
    registry::{
        credential_states::{self, CredentialState, Seen},
        sources::Source,
        tools::{self, Filter, Tool},
    },
};
use portolan_upstream_sync::{
    credentials::{self, state_of},
    look::{self, LookTarget, OpenedBy},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;
use utoipa::ToSchema;

use crate::{
    credentials::CredentialSummary,
    input::{JsonBody, PathId},
    source_rows::found,
    upstreams::turn,
    workspace::Workspace,
};

/// Most tools that are called while the results are inconclusive.
const MOST_TRIES: usize = 3;

/// Deadline of one request.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);

/// Deadline of a whole test.
const LONGEST_TEST: Duration = Duration::from_secs(20);

/// Most tools that are considered.
const MOST_TOOLS: i64 = 200;

/// The parameters of a test.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialTestRequest {
    /// A `GET` tool of the source that can be called without arguments. Absent: the first ones.
    #[serde(default)]
    #[schema(value_type = Option<String>, nullable = false)]
    tool: Option<ToolId>,
}

/// The result of a test.
#[derive(Debug, Serialize, ToSchema)]
pub struct CredentialTest {
    /// The credential with its state.
    credential: CredentialSummary,
    /// The tool whose answer decided; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool: Option<TestedTool>,
}

/// A tool that a test called.
#[derive(Debug, Serialize, ToSchema)]
pub struct TestedTool {
    #[schema(value_type = String)]
    id: ToolId,
    name: String,
}

/// Tests the credential of a source and stores the state. An API gets `GET` requests without
/// arguments, at most three of them with the credential. A success counts if the same request fails
/// without the credential. An MCP server's lists are read, and nothing of them is stored.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/credential/test", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = CredentialTestRequest, responses((status = 200, description = "What it showed.", body = CredentialTest)))]
pub(crate) async fn test_credential(
    Extracted(state): Extracted<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<CredentialTestRequest>,
) -> Result<Json<CredentialTest>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let source = found(&mut tx, id).await?;
    if source.sharing.is_some() {
        let message = "This source is signed in to with accounts. Its credential page shows which are connected.";
        return Err(ConsoleError::conflict("signed_in", message));
    }
    let missing = || {
        ConsoleError::conflict(
            "credential_missing",
            "This source has no credential. Set one first.",
        )
    };
    let version = source.credential.as_ref().ok_or_else(missing)?.version;
    let slot = credentials::open(&state, &mut tx, workspace.id, id)
        .await?
        .ok_or_else(missing)?;
    let chosen = candidates(&mut tx, &source, request.tool).await?;
    let own = limits::own(&mut tx).await?;
    // Released before the requests, which must not hold a database connection.
    drop(tx);
    let console = &state.config.limits;
    let most = console.platform.effective(&own).get(LimitName::TenantCalls);
    if let Some(seconds) = console.calls.count(workspace.id, most).await {
        return Err(ConsoleError::over_limit(seconds));
    }
    let (shown, tool) = if source.kind == SourceKind::Mcp {
        let _turn = turn(&state, &workspace).await?;
        (look((&state, workspace.id), &source, &slot).await?, None)
    } else {
        let tests = call(&state, &source, &slot, chosen);
        match tokio::time::timeout(LONGEST_TEST, tests).await {
            Ok(shown) => shown?,
            Err(_elapsed) => {
                let seconds = LONGEST_TEST.as_secs();
                let reason = format!("The API gave no answer within {seconds} seconds.");
                (CredentialState::Inconclusive(reason), None)
            }
        }
    };
    let mut tx = state.store.tenant(workspace.id).await?;
    let seen = Seen {
        source: id,
        version,
        state: shown,
        at: state.now(),
    };
    credential_states::note(&mut tx, &[seen], credential_states::Repeat::Always).await?;
    let source = found(&mut tx, id).await?;
    tx.commit().await?;
    Ok(Json(CredentialTest {
        credential: source.credential.ok_or_else(missing)?.into(),
        tool,
    }))
}

/// A tool without side effects and without required arguments.
struct Candidate {
    id: ToolId,
    name: String,
    operation: String,
    compiled: CompiledTool,
}

impl Candidate {
    /// RFC 9110 §9.2.1: `GET` is safe. A required argument would have to be made up.
    fn of(tool: Tool) -> Option<Self> {
        let plan: RequestPlan = serde_json::from_value(tool.plan.clone()).ok()?;
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        if tool.state != ToolState::Active
            || plan.method != "GET"
            || required.is_some_and(|names| !names.is_empty())
        {
            return None;
        }
        Some(Self {
            id: tool.id,
            name: tool.name().to_owned(),
            operation: tool.operation_key,
            compiled: CompiledTool::new(tool.input_schema, tool.output_schema, plan),
        })
    }
}

async fn candidates(
    tx: &mut portolan_storage::TenantTx,
    source: &Source,
    wanted: Option<ToolId>,
) -> Result<Vec<Candidate>, ConsoleError> {
    if source.kind == SourceKind::Mcp {
        return Ok(Vec::new());
    }
    let filter = Filter {
        id: wanted,
        source: Some(source.id),
        ..Filter::default()
    };
    let tools = tools::list(tx, &filter, MOST_TOOLS).await?;
    let found: Vec<Candidate> = tools
        .into_iter()
        .filter_map(Candidate::of)
        .take(MOST_TRIES)
        .collect();
    if wanted.is_some() && found.is_empty() {
        let message = "Choose a GET tool of this source that needs no arguments.";
        return Err(ConsoleError::invalid("tool_unsuitable", message).field("tool"));
    }
    Ok(found)
}

/// Calls tools until one result is conclusive.
async fn call(
    state: &AuthState,
    source: &Source,
    slot: &CredentialSlot,
    candidates: Vec<Candidate>,
) -> Result<(CredentialState, Option<TestedTool>), ConsoleError> {
    let base_url = Url::parse(&source.base_url)
        .map_err(|error| ConsoleError::internal("stored base URL", error))?;
    let mut target = CallTarget::new(base_url, &source.settings);
    target.timeout = target.timeout.min(LONGEST_REQUEST);
    // A fresh token source, so that the test includes the client credentials now.
    let tokens = TokenSource::new(state.clock.clone());
    let with = Caller {
        egress: &state.egress,
        target: &target,
        credential: Some(slot),
        account: None,
        tokens: &tokens,
        trace: None,
        shows_exchange: false,
    };
    let without = Caller {
        credential: None,
        ..with
    };
    let none = "No GET tool of this source can be called without arguments. Run a GET tool with Try it: its answer counts, too.";
    let mut shown = CredentialState::Inconclusive(none.to_owned());
    let mut decided_by = None;
    let nothing = json!({});
    for candidate in candidates {
        let answer = execute(&with, &candidate.compiled, &nothing).await;
        let operation = &candidate.operation;
        let state = match answer.proof {
            Some(Proof::Works) => {
                let open = execute(&without, &candidate.compiled, &nothing).await;
                if open
                    .status
                    .is_some_and(|status| (200..300).contains(&status))
                {
                    CredentialState::Inconclusive(format!(
                        "{operation} succeeds without the credential, too. Run another GET tool with Try it: its answer counts."
                    ))
                } else {
                    CredentialState::Works
                }
            }
            Some(proof) => state_of(proof),
            None => CredentialState::Inconclusive(unclear(&answer, operation)),
        };
        let tested = TestedTool {
            id: candidate.id,
            name: candidate.name,
        };
        match state {
            CredentialState::Works | CredentialState::Refused(401) => {
                return Ok((state, Some(tested)));
            }
            // Perhaps one operation alone is forbidden: another may prove that the key works.
            CredentialState::Refused(_) => (shown, decided_by) = (state, Some(tested)),
            CredentialState::Inconclusive(_) if decided_by.is_none() => shown = state,
            CredentialState::Inconclusive(_) => {}
        }
    }
    Ok((shown, decided_by))
}

/// Why an answer is inconclusive. The text has no secret of the credential.
fn unclear(answer: &ToolAnswer, operation: &str) -> String {
    if let Some(status) = answer.status {
        return format!("{operation} answered {status}, which says nothing about the credential.");
    }
    match answer.content.first() {
        Some(Content::Text(text)) => text.clone(),
        _ => format!("{operation} gave no answer."),
    }
}

/// Reads the lists of an MCP server.
async fn look(
    (state, tenant): (&AuthState, TenantId),
    source: &Source,
    slot: &CredentialSlot,
) -> Result<CredentialState, ConsoleError> {
    let url = Url::parse(&source.base_url)
        .map_err(|error| ConsoleError::internal("stored address", error))?;
    let most = u32::try_from(LONGEST_REQUEST.as_millis()).unwrap_or(u32::MAX);
    let target = LookTarget {
        tenant,
        url,
        settings: SourceSettings {
            timeout_ms: source.settings.timeout_ms.min(most),
            ..source.settings
        },
        opened_by: OpenedBy::Credential(slot),
    };
    Ok(match look::look(state, target).await {
        Ok(_) => CredentialState::Works,
        Err(error) => match error.proof() {
            Some(proof) => state_of(proof),
            None => {
                CredentialState::Inconclusive(format!("The server could not be reached: {error}."))
            }
        },
    })
}
