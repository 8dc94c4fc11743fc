//! Where each client keeps its configuration, and how it writes a server.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::Entry;

/// A client that speaks stdio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
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

impl Client {
    /// Every client.
    pub const ALL: [Self; 5] = [
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
    ];

    /// The file of this user. `None` without a home.
    pub fn file(self) -> Option<PathBuf> {
        let home = std::env::home_dir().filter(|home| home.is_absolute())?;
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Some(match self {
            Self::ClaudeDesktop => application_data()?
                .join("Claude")
                .join("claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor").join("mcp.json"),
            Self::VsCode => application_data()?
                .join("Code")
                .join("User")
                .join("mcp.json"),
            Self::Codex => set("CODEX_HOME")
                .unwrap_or_else(|| home.join(".codex"))
                .join("config.toml"),
            Self::Gemini => home.join(".gemini").join("settings.json"),
        })
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
    pub(super) fn json(self, entry: &Entry) -> Value {
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

/// The folder in which desktop applications keep their settings.
fn application_data() -> Option<PathBuf> {
    let home = std::env::home_dir().filter(|home| home.is_absolute())?;
    let set = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from)?;
        value.is_absolute().then_some(value)
    };
    Some(if cfg!(target_os = "macos") {
        home.join("Library").join("Application Support")
    } else if cfg!(windows) {
        set("APPDATA").unwrap_or_else(|| home.join("AppData").join("Roaming"))
    } else {
        set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
    })
}
