//! Instructions for connecting AI clients to a server.

use axum::{Json, extract::State};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_model::{id::ServerKind, member::Action, registry::ServerStatus};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use serde::Serialize;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};
use utoipa::ToSchema;

use crate::{
    input::PathId,
    servers::{found_server, server_url, workspace_url},
    workspace::Workspace,
};

/// Instructions for one server.
#[derive(Debug, Serialize, ToSchema)]
pub struct Connection {
    /// The server's URL.
    url: String,
    clients: Vec<ClientConnection>,
    /// The same with the workspace's own URL, if it leads to this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    short: Option<ShortConnection>,
}

/// Instructions for the present default server of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShortConnection {
    /// The workspace's own URL.
    url: String,
    clients: Vec<ClientConnection>,
}

/// Instructions for one client.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientConnection {
    client: ClientName,
    label: String,
    /// A note before the first step, for instance that the client cannot reach this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    note: Option<String>,
    /// The steps, in order.
    steps: Vec<String>,
    /// The text to paste.
    snippet: String,
    /// Language of the snippet: `text`, `shell`, `json`, `toml`, `typescript` or `python`.
    language: String,
    /// A link that opens the client with all fields filled in.
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
    /// The MCP Inspector.
    Inspector,
    /// `mcp-remote`, for clients that only speak stdio.
    McpRemote,
    /// OpenAI's Codex CLI.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// The official TypeScript SDK.
    TypescriptSdk,
    /// The official Python SDK.
    PythonSdk,
    /// curl, with an API key.
    Curl,
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

/// Makes the instructions of all clients. `slug` is the name inside clients: short, and of
/// characters that all clients accept. Clients that cannot reach the address come last.
fn instructions(slug: &str, name: &str, url: &str, is_published: bool) -> Vec<ClientConnection> {
    let mut clients = applications(slug, name, url);
    clients.extend(programs(slug, url));
    let reachable = is_reachable(url);
    for one in &mut clients {
        if !is_published {
            let first = "Publish the server first. Until then it does not answer.";
            one.steps.insert(0, first.to_owned());
        }
        // Web clients connect from their makers' machines, not from the person's browser.
        if !reachable && one.client.connects_from_outside() {
            one.note = Some(format!(
                "{} connects from the internet. It can't reach this address, which only this machine \
                 or network knows.",
                one.label
            ));
        }
    }
    clients.sort_by_key(|one| one.note.is_some());
    clients
}

impl ClientName {
    const fn connects_from_outside(&self) -> bool {
        matches!(self, Self::Claude | Self::Chatgpt)
    }
}

fn client<const N: usize>(
    client: ClientName,
    label: &str,
    steps: [String; N],
    (language, snippet): (&str, String),
) -> ClientConnection {
    ClientConnection {
        client,
        label: label.to_owned(),
        note: None,
        steps: steps.into(),
        snippet,
        language: language.to_owned(),
        deep_link: None,
    }
}

/// AI clients that people use.
#[expect(
    clippy::too_many_lines,
    reason = "a table of clients with the steps that connect each"
)]
fn applications(slug: &str, name: &str, url: &str) -> Vec<ClientConnection> {
    let linked = |link: String, one: ClientConnection| ClientConnection {
        deep_link: Some(link),
        ..one
    };
    let servers = |entry: Value| pretty(&json!({ "mcpServers": { slug: entry } }));
    vec![
        linked(
            "https://claude.ai/settings/connectors".to_owned(),
            client(
                ClientName::Claude,
                "Claude",
                [
                    "Open Settings, then Connectors.".to_owned(),
                    "Choose “Add custom connector”.".to_owned(),
                    format!("Enter the name {name} and paste the URL below. Leave the advanced settings empty."),
                    "Choose Add, then Connect, and sign in to allow access.".to_owned(),
                    "In a conversation, switch the connector on under “Search and tools”.".to_owned(),
                ],
                ("text", url.to_owned()),
            ),
        ),
        client(
            ClientName::ClaudeCode,
            "Claude Code",
            [
                "Run the command in a terminal.".to_owned(),
                format!("Start claude, enter /mcp, choose {slug}, then Authenticate. The browser opens for sign-in."),
            ],
            ("shell", format!("claude mcp add --transport http {slug} {url}")),
        ),
        linked(
            "https://chatgpt.com/#settings/Connectors".to_owned(),
            client(
                ClientName::Chatgpt,
                "ChatGPT",
                [
                    "Open Settings, then Apps & Connectors, then Advanced settings, and switch on Developer mode.".to_owned(),
                    "Back in Apps & Connectors, choose Create.".to_owned(),
                    format!("Enter the name {name}, paste the URL below as MCP server URL, and choose OAuth as authentication."),
                    "Confirm that you trust the server, choose Create, and sign in to allow access.".to_owned(),
                    "In a conversation, choose + , then Developer mode, and switch the connector on.".to_owned(),
                ],
                ("text", url.to_owned()),
            ),
        ),
        linked(
            format!(
                "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
                encoded(slug),
                encoded(&STANDARD.encode(json!({ "url": url }).to_string()))
            ),
            client(
                ClientName::Cursor,
                "Cursor",
                [
                    "Use the button, or add the snippet to .cursor/mcp.json in your project or ~/.cursor/mcp.json for all projects.".to_owned(),
                    format!("Open Cursor Settings, then Tools & MCP, and choose Connect beside {slug} to sign in."),
                ],
                ("json", servers(json!({ "url": url }))),
            ),
        ),
        linked(
            format!(
                "vscode:mcp/install?{}",
                encoded(&json!({ "name": slug, "type": "http", "url": url }).to_string())
            ),
            client(
                ClientName::Vscode,
                "VS Code",
                [
                    "Use the button, or add the snippet to .vscode/mcp.json in your workspace.".to_owned(),
                    "Choose Start above the server's name in that file, and allow VS Code to sign in.".to_owned(),
                    "Open Chat in Agent mode and choose the tools with the tools button.".to_owned(),
                ],
                (
                    "json",
                    pretty(&json!({ "servers": { slug: { "type": "http", "url": url } } })),
                ),
            ),
        ),
        client(
            ClientName::Codex,
            "Codex",
            [
                "Add the snippet to ~/.codex/config.toml.".to_owned(),
                format!("Run codex mcp login {slug}. The browser opens for sign-in."),
            ],
            ("toml", format!("[mcp_servers.{slug}]\nurl = \"{url}\"")),
        ),
        client(
            ClientName::GeminiCli,
            "Gemini CLI",
            [
                "Run the command in a terminal.".to_owned(),
                format!("Start gemini and enter /mcp auth {slug}. The browser opens for sign-in."),
            ],
            ("shell", format!("gemini mcp add --transport http {slug} {url}")),
        ),
        client(
            ClientName::Windsurf,
            "Windsurf",
            [
                "Add the snippet to ~/.codeium/windsurf/mcp_config.json.".to_owned(),
                "Choose Refresh under MCP servers, and sign in when the browser opens.".to_owned(),
            ],
            ("json", servers(json!({ "serverUrl": url }))),
        ),
        client(
            ClientName::Zed,
            "Zed",
            [
                "Open the settings with the command “zed: open settings” and add the snippet.".to_owned(),
                "Sign in when the browser opens. The server turns green in the agent panel.".to_owned(),
            ],
            (
                "json",
                pretty(&json!({ "context_servers": { slug: { "url": url } } })),
            ),
        ),
    ]
}

/// Programs with which developers test a server.
fn programs(slug: &str, url: &str) -> Vec<ClientConnection> {
    let remote = json!({ "command": "npx", "args": ["-y", "mcp-remote", url] });
    vec![
        client(
            ClientName::Inspector,
            "MCP Inspector",
            [
                "Run the command in a terminal. The Inspector opens in the browser.".to_owned(),
                "Choose Connect, and sign in to allow access.".to_owned(),
                "Open Tools, choose List tools, and run one.".to_owned(),
            ],
            (
                "shell",
                format!("npx @modelcontextprotocol/inspector --transport http --server-url {url}"),
            ),
        ),
        client(
            ClientName::McpRemote,
            "mcp-remote",
            [
                "Use this for a client that only speaks stdio.".to_owned(),
                "Add the snippet to the client's MCP configuration and restart the client.".to_owned(),
                "Sign in when the browser opens.".to_owned(),
            ],
            ("json", pretty(&json!({ "mcpServers": { slug: remote } }))),
        ),
        client(
            ClientName::TypescriptSdk,
            "TypeScript SDK",
            [
                "Create an API key for this server on the API keys page.".to_owned(),
                "Run npm install @modelcontextprotocol/sdk, then this program with the key in PORTOLAN_KEY.".to_owned(),
            ],
            ("typescript", filled(TYPESCRIPT, url)),
        ),
        client(
            ClientName::PythonSdk,
            "Python SDK",
            [
                "Create an API key for this server on the API keys page.".to_owned(),
                "Run pip install mcp, then this program with the key in PORTOLAN_KEY.".to_owned(),
            ],
            ("python", filled(PYTHON, url)),
        ),
        client(
            ClientName::Curl,
            "curl",
            [
                "Create an API key for this server on the API keys page.".to_owned(),
                "Run the command with the key in PORTOLAN_KEY. It lists the tools.".to_owned(),
            ],
            ("shell", filled(CURL, url)),
        ),
    ]
}

/// A template with the server's URL in it. URLs of servers have no character that a string literal
/// escapes.
fn filled(template: &str, url: &str) -> String {
    template.trim_end().replace("SERVER_URL", url)
}

const TYPESCRIPT: &str = include_str!("connection/client.ts.txt");

const PYTHON: &str = include_str!("connection/client.py.txt");

const CURL: &str = include_str!("connection/curl.sh.txt");

/// Encodes like JavaScript's `encodeURIComponent`, except for spaces, which do not occur: `+` would
/// not be decoded.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns false for addresses of this machine or a private network.
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

    const URL: &str = "https://portolan.example/t/acme/petstore/mcp";

    fn named<'a>(clients: &'a [ClientConnection], label: &str) -> &'a ClientConnection {
        clients.iter().find(|one| one.label == label).unwrap()
    }

    #[test]
    fn deep_links_read_back_to_what_the_snippets_say() {
        let clients = instructions("petstore", "Pet Store", URL, true);
        let link = |label: &str| {
            let link = named(&clients, label).deep_link.as_deref().unwrap();
            Url::parse(link).unwrap()
        };
        let cursor = link("Cursor");
        let pairs: std::collections::HashMap<_, _> = cursor.query_pairs().collect();
        assert_eq!(pairs["name"], "petstore");
        let config: Value =
            serde_json::from_slice(&STANDARD.decode(pairs["config"].as_bytes()).unwrap()).unwrap();
        assert_eq!(config, json!({ "url": URL }));
        let vscode = link("VS Code");
        let text = vscode.query().unwrap();
        let text = form_urlencoded::parse(format!("v={text}").as_bytes())
            .next()
            .unwrap()
            .1
            .into_owned();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({ "name": "petstore", "type": "http", "url": URL })
        );
        assert_eq!(
            named(&clients, "Claude Code").snippet,
            format!("claude mcp add --transport http petstore {URL}")
        );
    }

    #[test]
    fn each_snippet_names_the_server_and_json_is_json() {
        let clients = instructions("petstore", "Pet Store", URL, true);
        assert_eq!(clients.len(), 14);
        for one in &clients {
            assert!(one.snippet.contains(URL), "{}", one.label);
            assert!(one.note.is_none(), "{}", one.label);
            if one.language == "json" {
                let read = serde_json::from_str::<Value>(&one.snippet);
                assert!(read.is_ok(), "{}", one.label);
            }
        }
        assert_eq!(clients[0].label, "Claude");
    }

    #[test]
    fn on_a_local_address_clients_that_cannot_reach_it_stand_last_with_a_note() {
        let url = "http://localhost:8080/t/acme/petstore/mcp";
        let clients = instructions("petstore", "Pet Store", url, false);
        assert!(clients[0].steps[0].contains("Publish"));
        let labels = |with_note: bool| {
            let of = clients.iter().filter(|one| one.note.is_some() == with_note);
            of.map(|one| one.label.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(labels(true), ["Claude", "ChatGPT"]);
        assert_eq!(clients[12].label, "Claude");
        assert_eq!(labels(false)[0], "Claude Code");
    }
}
