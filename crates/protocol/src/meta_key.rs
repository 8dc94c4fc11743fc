//! Keys of `_meta`: their grammar (MCP-J-20…MCP-J-24), and those that the specification owns.

use crate::revision::Revision;

/// Prefix of the keys that the specification owns.
pub const RESERVED_PREFIX: &str = "io.modelcontextprotocol/";
/// The version that a modern request speaks.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The name card of a modern client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Capabilities of a modern client.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least level of log messages that a modern request wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The listen request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The name card of the server, in every modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The task that a message belongs to (R4, MCP-TK-12).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The id of a call, in every result of `tools/call` (METER-10).
pub const CALL_ID: &str = "io.github.portolan/callId";

/// True if `key` fits the grammar: an optional prefix of labels, then a name (MCP-J-20).
pub fn is_valid_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) && is_name(name)
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let Some((first, last)) = bytes.first().zip(bytes.last()) else {
        return true;
    };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// True if the specification owns the prefix of `key` in `revision` (MCP-J-21 up to 2025-06-18,
/// MCP-J-22 after it).
pub fn is_reserved_key(key: &str, revision: Revision) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    let ours = |label: &str| label == "modelcontextprotocol" || label == "mcp";
    let labels: Vec<&str> = prefix.split('.').collect();
    if revision <= Revision::V2025_06_18 {
        labels.len() > 1 && labels[..labels.len() - 1].iter().any(|label| ours(label))
    } else {
        labels.get(1).is_some_and(|label| ours(label))
    }
}
