//! The scope that a token needs for each route (API-5, API-6). A route that is not in the table is
//! closed to tokens.

use http::Method;
use portolan_model::api_scope::ApiScope;

use ApiScope::{
    AccessRead, AccessWrite, AuditRead, CallsRead, CredentialsWrite, RegistryRead, RegistryWrite,
    ToolsCall, WorkspaceRead, WorkspaceWrite,
};

/// Access of tokens to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenAccess {
    /// Every valid token. The route may look at its scopes.
    Any,
    /// Tokens with this scope.
    Scope(ApiScope),
    /// No token: people do this in a browser.
    BrowserOnly,
}

/// Scopes by noun: the path after the workspace begins with it. The first scope is for reading, the
/// second for changes; `None` is closed to tokens. Of two rows that fit, the longer one counts.
const NOUNS: &[(&str, Option<ApiScope>, Option<ApiScope>)] = &[
    ("", Some(WorkspaceRead), Some(WorkspaceWrite)),
    ("/overview", Some(WorkspaceRead), None),
    ("/limits", Some(WorkspaceRead), Some(WorkspaceWrite)),
    ("/default-server", None, Some(WorkspaceWrite)),
    ("/search", Some(RegistryRead), None),
    ("/trash", Some(RegistryRead), None),
    ("/configuration", Some(RegistryRead), Some(RegistryWrite)),
    ("/sources", Some(RegistryRead), Some(RegistryWrite)),
    ("/sources/{id}/credential", None, Some(CredentialsWrite)),
    (
        "/sources/{id}/sign-in",
        Some(RegistryRead),
        Some(CredentialsWrite),
    ),
    ("/sources/{id}/account", None, Some(CredentialsWrite)),
    // The key of an attached server would outlive the token (API-8).
    ("/sources/{id}/attachment/key", None, None),
    ("/attachments", None, None),
    ("/imports", None, Some(RegistryWrite)),
    ("/upstreams", None, Some(RegistryWrite)),
    ("/tools", Some(RegistryRead), Some(RegistryWrite)),
    ("/tools/{id}/try", None, Some(ToolsCall)),
    ("/prompts", Some(RegistryRead), Some(RegistryWrite)),
    ("/resources", Some(RegistryRead), Some(RegistryWrite)),
    ("/servers", Some(RegistryRead), Some(RegistryWrite)),
    ("/servers/check", None, Some(RegistryRead)),
    ("/servers/{id}/calls", Some(CallsRead), None),
    // People decide whether content is kept, and people alone see it (CAPTURE-8).
    ("/servers/{id}/capture", Some(RegistryRead), None),
    ("/calls", Some(CallsRead), None),
    // A view is of a person at the console.
    ("/call-views", None, None),
    ("/insights", Some(CallsRead), None),
    ("/sessions", Some(AccessRead), Some(AccessWrite)),
    ("/connects", Some(CallsRead), None),
    ("/audit", Some(AuditRead), None),
    ("/members", Some(AccessRead), None),
    ("/invitations", Some(AccessRead), Some(AccessWrite)),
    ("/apps", Some(AccessRead), Some(AccessWrite)),
    ("/api-keys", Some(AccessRead), Some(AccessWrite)),
    ("/service-accounts", Some(AccessRead), Some(AccessWrite)),
    // People alone give and take access to this API (API-6).
    ("/service-accounts/{id}/api-access", None, None),
    ("/clients", Some(AccessRead), Some(AccessWrite)),
    ("/client-rule", None, Some(AccessWrite)),
    ("/registered-clients", Some(AccessRead), Some(AccessWrite)),
    ("/single-sign-on", Some(AccessRead), None),
    ("/security", Some(AccessRead), None),
    ("/webhooks", Some(WorkspaceRead), Some(WorkspaceWrite)),
    ("/event-types", Some(WorkspaceRead), None),
    ("/events", Some(WorkspaceRead), None),
    ("/alert-rules", Some(WorkspaceRead), Some(WorkspaceWrite)),
    // An alert is read by a person.
    ("/alerts", None, None),
    // People alone make and end tokens, and delete and restore workspaces (API-6).
    ("/access-tokens", None, None),
    ("/trusted-pipelines", None, None),
    ("/restore", None, None),
];

/// Requests that no token makes, though their noun is open.
const CLOSED: &[(&str, &str)] = &[
    ("DELETE", ""),
    // The answer leads a person's browser to another service.
    ("POST", "/sources/{id}/account"),
];

/// Requests of any token, which look at its scopes themselves (OWN-4).
const BY_THEMSELVES: &[&str] = &["/mcp"];

const WORKSPACE: &str = "/api/v1/workspaces/{ws}";

/// The access of tokens to a route, by its method and its path as the document writes it.
pub fn access(method: &Method, path: &str) -> TokenAccess {
    if path == "/api/v1/token" {
        return TokenAccess::Any;
    }
    let Some(noun) = path.strip_prefix(WORKSPACE) else {
        return TokenAccess::BrowserOnly;
    };
    if CLOSED.contains(&(method.as_str(), noun)) {
        return TokenAccess::BrowserOnly;
    }
    if BY_THEMSELVES.contains(&noun) {
        return TokenAccess::Any;
    }
    let row = NOUNS
        .iter()
        .filter(|(beginning, ..)| is_below(noun, beginning))
        .max_by_key(|(beginning, ..)| beginning.len());
    let scope = row.and_then(|(_, read, write)| {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if reads { *read } else { *write }
    });
    scope.map_or(TokenAccess::BrowserOnly, TokenAccess::Scope)
}

/// Returns true if `beginning` is whole segments of `noun`. The empty one is the workspace alone.
fn is_below(noun: &str, beginning: &str) -> bool {
    noun == beginning
        || (!beginning.is_empty()
            && noun
                .strip_prefix(beginning)
                .is_some_and(|rest| rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: API-6.
    #[test]
    fn a_path_that_no_row_names_is_closed() {
        let closed = [
            (Method::GET, "/api/v1/me"),
            (Method::POST, "/api/v1/me/access-tokens"),
            (Method::POST, "/api/v1/workspaces"),
            (Method::DELETE, WORKSPACE),
            (Method::POST, "/api/v1/workspaces/{ws}/restore"),
            (Method::GET, "/api/v1/workspaces/{ws}/access-tokens"),
            (
                Method::PUT,
                "/api/v1/workspaces/{ws}/service-accounts/{id}/api-access",
            ),
            (Method::GET, "/api/v1/workspaces/{ws}/unheard-of"),
            (Method::GET, "/api/v1/workspaces/{ws}/serversx"),
            (Method::PATCH, "/api/v1/workspaces/{ws}/members/{id}"),
        ];
        for (method, path) in closed {
            assert_eq!(access(&method, path), TokenAccess::BrowserOnly, "{path}");
        }
        let try_tool = "/api/v1/workspaces/{ws}/tools/{id}/try";
        assert_eq!(
            access(&Method::POST, try_tool),
            TokenAccess::Scope(ToolsCall)
        );
        assert_eq!(
            access(&Method::POST, "/api/v1/workspaces/{ws}/mcp"),
            TokenAccess::Any
        );
        assert_eq!(
            access(&Method::HEAD, WORKSPACE),
            TokenAccess::Scope(WorkspaceRead)
        );
    }
}
