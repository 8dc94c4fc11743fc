//! Where each client keeps its configuration, and how it writes a server.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::InstallEntry;
use crate::folders::Folders;

/// A client that speaks stdio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallClient {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl InstallClient {
    /// Every client.
    pub const ALL: [Self; 5] = [
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
    ];

    /// The file of this person.
    pub fn file(self, folders: &Folders) -> PathBuf {
        let (home, applications) = (&folders.home, folders.applications());
        match self {
            Self::ClaudeDesktop => applications.join("Claude/claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::VsCode => applications.join("Code/User/mcp.json"),
            Self::Codex => {
                let set = folders.codex.clone();
                set.unwrap_or_else(|| home.join(".codex"))
                    .join("config.toml")
            }
            Self::Gemini => home.join(".gemini/settings.json"),
        }
    }

    pub(super) const fn has_toml(self) -> bool {
        matches!(self, Self::Codex)
    }

    /// The member that holds the servers.
    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }

    /// The entry as JSON.
    pub(super) fn json(self, entry: &InstallEntry) -> Value {
        let mut value = Map::new();
        if self == Self::VsCode {
            value.insert("type".to_owned(), json!("stdio"));
        }
        value.insert("command".to_owned(), json!(entry.command));
        value.insert("args".to_owned(), json!(entry.arguments));
        if !entry.environment.is_empty() {
            let pairs = entry.environment.iter();
            let pairs: Map<String, Value> = pairs
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            value.insert("env".to_owned(), Value::Object(pairs));
        }
        Value::Object(value)
    }

    /// The next step of a person.
    pub const fn next_step(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Quit Claude Desktop and start it again.",
            Self::Cursor => "Open Cursor's settings, MCP, and turn the server on.",
            Self::VsCode => "Run `MCP: List Servers` in Visual Studio Code and start the server.",
            Self::Codex => "Start Codex again.",
            Self::Gemini => "Start Gemini CLI again, or run `/mcp refresh` in it.",
        }
    }
}
