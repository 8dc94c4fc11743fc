//! `ETag` and `If-Match` (API-14). The version of a source, tool, prompt, resource or server is the
//! revision of its workspace's registry.

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header};
use portolan_model::api_scope::ApiScope;
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{Reason, StorageError, registry::registry_news};

use crate::{
    change::entity_tag,
    token_scopes::{TokenAccess, access},
};

/// Adds the version to an answer of one object, and refuses a condition where there is no version.
pub(crate) async fn versioned(
    State(state): State<AuthState>,
    request: Request,
    next: Next,
) -> Response {
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let method = request.method().clone();
    if method == Method::GET && is_object(path.as_str()) {
        // Read before the object: the tag is never newer than the answer.
        let revision = match revision(&state, request.uri().path()).await {
            Ok(revision) => revision,
            Err(error) => return ConsoleError::from(error).into_response(),
        };
        let mut answer = next.run(request).await;
        if answer.status() == StatusCode::OK
            && let Some(revision) = revision
            && let Ok(tag) = HeaderValue::try_from(entity_tag(revision))
        {
            answer.headers_mut().insert(header::ETAG, tag);
        }
        return answer;
    }
    if request.headers().contains_key(header::IF_MATCH) && !is_change(&method, path.as_str()) {
        return ConsoleError::no_version().into_response();
    }
    next.run(request).await
}

/// Returns true for the path of one object of the registry.
pub(crate) fn is_object(path: &str) -> bool {
    ["sources", "tools", "prompts", "resources", "servers"]
        .into_iter()
        .any(|noun| path == format!("/api/v1/workspaces/{{ws}}/{noun}/{{id}}"))
}

/// Ends of paths whose requests change no object, or more than one transaction. A plan has the
/// revision that it holds for.
const UNVERSIONED: [&str; 6] = [
    "/account", "/apply", "/preview", "/sign-in", "/sync", "/test",
];

/// Returns true for a change of an object of the registry, which checks the condition when it
/// commits.
pub(crate) fn is_change(method: &Method, path: &str) -> bool {
    let scope = access(method, path);
    *method != Method::GET
        && path.contains("/{id}")
        && !path.contains("/saved-calls")
        && !UNVERSIONED.iter().any(|end| path.ends_with(end))
        && matches!(
            scope,
            TokenAccess::Scope(ApiScope::RegistryWrite | ApiScope::CredentialsWrite)
        )
}

async fn revision(state: &AuthState, path: &str) -> Result<Option<i64>, StorageError> {
    let Some(slug) = path.split('/').nth(4) else {
        return Ok(None);
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    registry_news::revision_of(&mut tx, slug).await
}
