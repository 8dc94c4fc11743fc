//! Problems that AI clients would have with a server: their limits on names and counts, simulated
//! for one server (CLIENT-36 to CLIENT-39).

use portolan_model::registry::ToolState;
use serde::Serialize;
use utoipa::ToSchema;

/// A limit that a server exceeds.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClientWarning {
    /// The client; "All clients" if it concerns each.
    client: String,
    /// The effect there, and the remedy.
    message: String,
}

impl ClientWarning {
    /// A warning that concerns each client.
    pub(crate) fn for_all(message: String) -> Self {
        Self {
            client: "All clients".to_owned(),
            message,
        }
    }
}

/// A chosen tool under the name that clients see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'a> {
    /// Its name for clients.
    pub(crate) name: &'a str,
    /// Can it be published?
    pub(crate) enabled: bool,
    /// Is it still in its document?
    pub(crate) state: ToolState,
}

/// Most characters of server and tool name together, in Cursor (#36).
const CURSOR_NAMES: usize = 60;

/// Most characters of a tool's name after the client's prefix, in Claude Code and VS Code (#37):
/// the limit of model APIs.
const MODEL_NAMES: usize = 64;

/// Most tools of one request, in VS Code (#39).
const VSCODE_TOOLS: usize = 128;

/// The warnings for a server that a person connects under its slug, as the snippets do.
pub(crate) fn warnings(slug: &str, tools: &[Listed<'_>]) -> Vec<ClientWarning> {
    let mut out = Vec::new();
    let mut warn = |client: &str, message: String| {
        out.push(ClientWarning {
            client: client.to_owned(),
            message,
        })
    };
    let visible: Vec<&Listed<'_>> = tools
        .iter()
        .filter(|tool| tool.enabled && tool.state == ToolState::Active)
        .collect();
    if visible.is_empty() {
        warn(
            "All clients",
            "The server offers no tool yet. Choose at least one that is enabled.".to_owned(),
        );
    }
    let disabled = tools
        .iter()
        .filter(|tool| !tool.enabled && tool.state == ToolState::Active)
        .count();
    if disabled > 0 {
        warn(
            "All clients",
            format!(
                "{} disabled and not offered. Enable what should be, or remove it here.",
                tools_are(disabled)
            ),
        );
    }
    let removed = tools
        .iter()
        .filter(|tool| tool.state == ToolState::Removed)
        .count();
    if removed > 0 {
        warn(
            "All clients",
            format!(
                "{} no longer in the API's document and not offered.",
                tools_are(removed)
            ),
        );
    }
    names_that_do_not_fit(slug, &visible, &mut warn);
    if visible.len() > VSCODE_TOOLS {
        warn(
            "VS Code",
            format!(
                "The server offers {} tools; VS Code sends at most {VSCODE_TOOLS} with a request, together with those of other servers. \
             Publish several smaller servers.",
                visible.len()
            ),
        );
    }
    out
}

/// Warns of names that a client drops or refuses.
fn names_that_do_not_fit(slug: &str, visible: &[&Listed<'_>], warn: &mut impl FnMut(&str, String)) {
    let longer = |prefix: usize, most: usize| -> Vec<&str> {
        visible
            .iter()
            .map(|tool| tool.name)
            .filter(|name| prefix + name.len() > most)
            .collect()
    };
    let cursor = longer(slug.len(), CURSOR_NAMES);
    if !cursor.is_empty() {
        warn(
            "Cursor",
            format!(
                "Server and tool name together have more than {CURSOR_NAMES} characters, so Cursor silently drops {}. Give shorter names.",
                some(&cursor)
            ),
        );
    }
    let claude_code = longer("mcp__".len() + slug.len() + "__".len(), MODEL_NAMES);
    if !claude_code.is_empty() {
        warn(
            "Claude Code",
            format!(
                "With the prefix `mcp__{slug}__` these names exceed {MODEL_NAMES} characters and every request fails: {}. Give shorter names.",
                some(&claude_code)
            ),
        );
    }
    let vscode = longer("mcp_".len() + slug.len() + "_".len(), MODEL_NAMES);
    if !vscode.is_empty() {
        warn(
            "VS Code",
            format!(
                "With the prefix `mcp_{slug}_` these names exceed {MODEL_NAMES} characters: {}. Give shorter names.",
                some(&vscode)
            ),
        );
    }
    let odd: Vec<&str> = visible
        .iter()
        .map(|tool| tool.name)
        .filter(|name| !portolan_http_tools::naming::is_valid(name))
        .collect();
    if !odd.is_empty() {
        warn(
            "Copilot CLI",
            format!(
                "Model APIs take letters, digits, `_` and `-` only, so these are refused: {}.",
                some(&odd)
            ),
        );
    }
}

fn tools_are(count: usize) -> String {
    if count == 1 {
        "One tool is".to_owned()
    } else {
        format!("{count} tools are")
    }
}

fn some(names: &[&str]) -> String {
    let shown = names
        .iter()
        .take(3)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > 3 {
        format!("{shown} and {} more", names.len() - 3)
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Listed<'_> {
        Listed {
            name,
            enabled: true,
            state: ToolState::Active,
        }
    }

    fn clients(slug: &str, tools: &[Listed<'_>]) -> Vec<String> {
        warnings(slug, tools)
            .into_iter()
            .map(|warning| warning.client)
            .collect()
    }

    #[test]
    fn limits_of_names_are_exact_q_36_q_37() {
        let slug = "petstore"; // 8 characters
        assert!(clients(slug, &[tool(&"a".repeat(49))]).is_empty());
        assert_eq!(
            clients(slug, &[tool(&"a".repeat(50))]),
            ["Claude Code"],
            "5 + 8 + 2 + 50 = 65"
        );
        assert_eq!(
            clients(slug, &[tool(&"a".repeat(52))]),
            ["Claude Code", "VS Code"].map(String::from)[..]
        );
        assert_eq!(clients(slug, &[tool(&"a".repeat(53))])[0], "Cursor");
    }

    #[test]
    fn many_tools_and_odd_names_are_told_q_38_q_39() {
        let names: Vec<String> = (0..129).map(|n| format!("t{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| tool(name)).collect();
        assert_eq!(clients("abc", &many), ["VS Code"]);
        assert_eq!(clients("abc", &[tool("a.b")]), ["Copilot CLI"]);
        assert_eq!(clients("abc", &[]), ["All clients"]);
    }
}
