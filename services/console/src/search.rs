//! Search over everything in a workspace, for the console's command palette.

use axum::{Json, extract::State};
use portolan_model::{
    api_scope::ApiScope,
    id::{
        ApiKeyId, ClientId, PromptId, ResourceId, ServerId, ServiceAccountId, SourceId, ToolId,
        UserId,
    },
    member::Action,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    Reason,
    platform::search::{self, Found, Kind, PeopleSearch},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{input::QueryParameters, listing::Listing, workspace::Workspace};

/// Most words of a search; more are ignored.
const WORDS: usize = 8;

/// Most characters of a search.
const CHARACTERS: usize = 200;

/// What to search for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// Words that a result contains in its name or detail, in any case: at most 200 characters.
    q: String,
}

/// A result of a search.
#[derive(Debug, Serialize, ToSchema)]
pub struct SearchResult {
    kind: SearchKind,
    /// Id within its kind. A credential has the id of its source.
    id: String,
    name: String,
    /// Distinguishes things of equal name: a path, a URI, an address.
    detail: String,
}

/// The kind of a result.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// A published server.
    Server,
    /// A source of tools.
    Source,
    /// The credential of a source.
    Credential,
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A member.
    Member,
    /// An API key.
    ApiKey,
    /// A service account.
    ServiceAccount,
    /// An AI client.
    Client,
}

impl From<Found> for SearchResult {
    fn from(found: Found) -> Self {
        let id = found.id;
        let (kind, id) = match found.kind {
            Kind::Server => (SearchKind::Server, ServerId::from(id).to_string()),
            Kind::Source => (SearchKind::Source, SourceId::from(id).to_string()),
            Kind::Credential => (SearchKind::Credential, SourceId::from(id).to_string()),
            Kind::Tool => (SearchKind::Tool, ToolId::from(id).to_string()),
            Kind::Prompt => (SearchKind::Prompt, PromptId::from(id).to_string()),
            Kind::Resource => (SearchKind::Resource, ResourceId::from(id).to_string()),
            Kind::Member => (SearchKind::Member, UserId::from(id).to_string()),
            Kind::ApiKey => (SearchKind::ApiKey, ApiKeyId::from(id).to_string()),
            Kind::ServiceAccount => (
                SearchKind::ServiceAccount,
                ServiceAccountId::from(id).to_string(),
            ),
            Kind::Client => (SearchKind::Client, ClientId::from(id).to_string()),
        };
        Self {
            kind,
            id,
            name: found.name,
            detail: found.detail,
        }
    }
}

/// Everything in the workspace whose name or detail contains all words: at most eight results of a
/// kind. A role finds what its lists show: keys of others, service accounts and AI clients are
/// found by admins and owners only.
#[utoipa::path(get, path = "/workspaces/{ws}/search", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), SearchQuery),
    responses((status = 200, description = "The best results first.", body = Listing<SearchResult>)))]
pub(crate) async fn search_workspace(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<SearchQuery>,
) -> Result<Json<Listing<SearchResult>>, ConsoleError> {
    workspace.require(Action::Read)?;
    if query.q.chars().count() > CHARACTERS {
        let text = format!("Search for at most {CHARACTERS} characters.");
        return Err(ConsoleError::invalid("too_long", text).field("q"));
    }
    let words: Vec<String> = query
        .q
        .split_whitespace()
        .take(WORDS)
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() {
        return Ok(Json(Listing::whole(Vec::new())));
    }
    let mut tx = state.store.tenant(workspace.id).await?;
    let mut found = search::registry(&mut tx, &words).await?;
    drop(tx);
    if !workspace.caller.has(ApiScope::AccessRead) {
        return Ok(Json(listing(found)));
    }
    let people = PeopleSearch {
        tenant: workspace.id,
        person: workspace.caller.user(),
        is_admin: workspace.role.may(Action::Administer),
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    found.extend(search::people(&mut tx, people, &words, state.now()).await?);
    Ok(Json(listing(found)))
}

fn listing(found: Vec<Found>) -> Listing<SearchResult> {
    Listing::whole(found.into_iter().map(SearchResult::from).collect())
}
