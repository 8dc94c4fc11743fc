//! How to connect AI clients to a server: what to click, what to paste.

use axum::{Json, extract::State};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_model::{id::ServerKind, member::Action, registry::ServerStatus};
use serde::Serialize;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};
use utoipa::ToSchema;

use super::{
    error::ConsoleError,
    input::PathId,
    servers::{found_server, server_url, workspace_url},
    workspace::Workspace,
};
use crate::state::AuthState;

/// How to connect.
#[derive(Debug, Serialize, ToSchema)]
pub struct Connection {
    /// The server's URL.
    url: String,
    clients: Vec<ClientConnection>,
    /// The same by the workspace's own URL, if it leads to this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    short: Option<ShortConnection>,
}

/// How to connect to whatever is the default server of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShortConnection {
    /// The workspace's own URL.
    url: String,
    clients: Vec<ClientConnection>,
}

/// How to connect one client.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientConnection {
    client: ClientName,
    label: String,
    /// What to do, in order.
    steps: Vec<String>,
    /// What to paste.
    snippet: String,
    /// Of the snippet: `text`, `shell` or `json`.
    language: String,
    /// Opens the client with everything filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deep_link: Option<String>,
}

/// Clients with instructions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientName {
    /// claude.ai and its apps.
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// ChatGPT.
    Chatgpt,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
}

/// Instructions for each client.
#[utoipa::path(get, path = "/workspaces/{ws}/servers/{id}/connection", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "The instructions.", body = Connection)))]
pub(crate) async fn show_connection(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<Connection>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let server = found_server(&mut tx, id).await?;
    let is_published = server.status == ServerStatus::Published;
    let clients = |url: &str| instructions(&server.slug, &server.name, url, is_published);
    let url = server_url(&state, &workspace, &server.slug);
    let short = workspace_url(&state, &workspace, &server).map(|url| ShortConnection {
        clients: clients(&url),
        url,
    });
    Ok(Json(Connection {
        clients: clients(&url),
        url,
        short,
    }))
}

/// `slug` is the name inside clients: short, and of the characters that all of them take.
fn instructions(slug: &str, name: &str, url: &str, is_published: bool) -> Vec<ClientConnection> {
    let first = (!is_published)
        .then(|| "Publish the server first: until then it does not answer.".to_owned());
    let steps = |steps: &[String]| first.iter().chain(steps).cloned().collect::<Vec<_>>();
    let reachable = is_reachable(url);
    // Connectors of web clients are called from their makers' machines, not from the person's browser.
    let from_outside = |client: &str| {
        (!reachable).then(|| format!("{client} connects from the internet: it cannot reach this address, which is only known on this machine or network."))
    };
    let with_note = |note: Option<String>, list: Vec<String>| {
        steps(&note.into_iter().chain(list).collect::<Vec<_>>())
    };
    vec![
        ClientConnection {
            client: ClientName::Claude,
            label: "Claude".to_owned(),
            steps: with_note(from_outside("Claude"), vec![
                "Open Settings, then Connectors.".to_owned(),
                "Choose “Add custom connector”.".to_owned(),
                format!("Enter the name {name} and paste the URL below. Leave the advanced settings empty."),
                "Choose Add, then Connect, and sign in to allow access.".to_owned(),
                "In a conversation, switch the connector on under “Search and tools”.".to_owned(),
            ]),
            snippet: url.to_owned(),
            language: "text".to_owned(),
            deep_link: Some("https://claude.ai/settings/connectors".to_owned()),
        },
        ClientConnection {
            client: ClientName::ClaudeCode,
            label: "Claude Code".to_owned(),
            steps: steps(&[
                "Run the command in a terminal.".to_owned(),
                format!("Start claude, enter /mcp, choose {slug}, then Authenticate: the browser opens for sign-in."),
            ]),
            snippet: format!("claude mcp add --transport http {slug} {url}"),
            language: "shell".to_owned(),
            deep_link: None,
        },
        ClientConnection {
            client: ClientName::Chatgpt,
            label: "ChatGPT".to_owned(),
            steps: with_note(from_outside("ChatGPT"), vec![
                "Open Settings, then Apps & Connectors, then Advanced settings, and switch on Developer mode.".to_owned(),
                "Back in Apps & Connectors, choose Create.".to_owned(),
                format!("Enter the name {name}, paste the URL below as MCP server URL, and choose OAuth as authentication."),
                "Confirm that you trust the server, choose Create, and sign in to allow access.".to_owned(),
                "In a conversation, choose + , then Developer mode, and switch the connector on.".to_owned(),
            ]),
            snippet: url.to_owned(),
            language: "text".to_owned(),
            deep_link: Some("https://chatgpt.com/#settings/Connectors".to_owned()),
        },
        ClientConnection {
            client: ClientName::Cursor,
            label: "Cursor".to_owned(),
            steps: steps(&[
                "Use the button, or add the snippet to .cursor/mcp.json in your project or ~/.cursor/mcp.json for all projects."
                    .to_owned(),
                format!("Open Cursor Settings, then Tools & MCP, and choose Connect beside {slug} to sign in."),
            ]),
            snippet: pretty(&json!({ "mcpServers": { slug: { "url": url } } })),
            language: "json".to_owned(),
            deep_link: Some(format!(
                "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
                encoded(slug),
                encoded(&STANDARD.encode(json!({ "url": url }).to_string()))
            )),
        },
        ClientConnection {
            client: ClientName::Vscode,
            label: "VS Code".to_owned(),
            steps: steps(&[
                "Use the button, or add the snippet to .vscode/mcp.json in your workspace.".to_owned(),
                "Choose Start above the server's name in that file, and allow VS Code to sign in.".to_owned(),
                "Open Chat in Agent mode and choose the tools with the tools button.".to_owned(),
            ]),
            snippet: pretty(&json!({ "servers": { slug: { "type": "http", "url": url } } })),
            language: "json".to_owned(),
            deep_link: Some(format!(
                "vscode:mcp/install?{}",
                encoded(&json!({ "name": slug, "type": "http", "url": url }).to_string())
            )),
        },
    ]
}

/// As JavaScript's `encodeURIComponent`, but for spaces, which do not occur: `+` would not be read back.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// False for addresses that only this machine or a private network knows.
fn is_reachable(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(url::Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name.contains('.')
                && !["localhost", "local", "internal", "lan", "home.arpa"]
                    .iter()
                    .any(|end| name.ends_with(end))
        }
        Some(url::Host::Ipv4(address)) => {
            !(address.is_loopback() || address.is_private() || address.is_link_local())
        }
        Some(url::Host::Ipv6(address)) => !(address.is_loopback() || address.is_unique_local()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_links_read_back_to_what_the_snippets_say() {
        let url = "https://portolan.example/t/acme/petstore/mcp";
        let clients = instructions("petstore", "Pet Store", url, true);
        let link = |n: usize| Url::parse(clients[n].deep_link.as_deref().unwrap()).unwrap();
        let cursor = link(3);
        let pairs: std::collections::HashMap<_, _> = cursor.query_pairs().collect();
        assert_eq!(pairs["name"], "petstore");
        let config: Value =
            serde_json::from_slice(&STANDARD.decode(pairs["config"].as_bytes()).unwrap()).unwrap();
        assert_eq!(config, json!({ "url": url }));
        let vscode = link(4);
        let text = vscode.query().unwrap();
        let text = form_urlencoded::parse(format!("v={text}").as_bytes())
            .next()
            .unwrap()
            .1
            .into_owned();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({ "name": "petstore", "type": "http", "url": url })
        );
        assert_eq!(
            clients[1].snippet,
            format!("claude mcp add --transport http petstore {url}")
        );
        assert!(
            clients[0]
                .steps
                .iter()
                .all(|step| !step.contains("cannot reach"))
        );
    }

    #[test]
    fn a_server_on_this_machine_says_that_web_clients_cannot_reach_it() {
        let clients = instructions(
            "petstore",
            "Pet Store",
            "http://127.0.0.1:8080/t/acme/petstore/mcp",
            false,
        );
        assert!(clients[0].steps[0].contains("Publish"));
        assert!(clients[0].steps[1].contains("cannot reach"));
        assert!(
            clients[1]
                .steps
                .iter()
                .all(|step| !step.contains("cannot reach"))
        );
    }
}
