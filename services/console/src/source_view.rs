//! A source, as the API shows it.

use portolan_model::{
    id::SourceId,
    registry::{FollowRedirects, SourceKind},
};
use portolan_storage::registry::sources::Source;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    credentials::CredentialSummary,
    imports::{self, SecurityHintView},
    sign_in::Sharing,
};

/// A source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Source)]
pub struct SourceView {
    #[schema(value_type = String, example = "src_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: SourceId,
    name: String,
    kind: SourceKindName,
    /// Prefix of every call.
    base_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    spec_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    spec_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    document_url: Option<String>,
    /// SHA-256, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    document_digest: Option<String>,
    settings: SettingsView,
    tool_count: i64,
    enabled_tool_count: i64,
    /// Kind, hint and state of its credential; null if none is set.
    credential: Option<CredentialSummary>,
    /// Whose connected accounts open it instead; absent if it is not signed in to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sign_in: Option<Sharing>,
    security: Vec<SecurityHintView>,
    /// Name of the file that owns it, by configuration as code: the next application of that file
    /// overwrites other changes. Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    managed_by: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// Kinds of sources.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SourceKind)]
pub(crate) enum SourceKindName {
    Openapi,
    Http,
    Mcp,
}

impl From<SourceKind> for SourceKindName {
    fn from(kind: SourceKind) -> Self {
        match kind {
            SourceKind::Openapi => Self::Openapi,
            SourceKind::Http => Self::Http,
            SourceKind::Mcp => Self::Mcp,
        }
    }
}

/// Bounds of calls.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = SourceSettings)]
#[serde(deny_unknown_fields)]
pub struct SettingsView {
    /// Milliseconds for the whole exchange, 100–120 000.
    pub(crate) timeout_ms: u32,
    /// Bytes of answer that are read, 1 KiB–8 MiB.
    pub(crate) max_response_bytes: u32,
    #[schema(value_type = FollowRedirectsName)]
    pub(crate) follow_redirects: FollowRedirects,
    /// Calls of its tools may go on as MCP tasks, where the client takes them. Left out: they may not.
    #[serde(default)]
    pub(crate) tasks: bool,
}

/// Which redirects of the API are followed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FollowRedirects)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::FollowRedirects"
)]
pub(crate) enum FollowRedirectsName {
    None,
    SameOrigin,
}

pub(crate) fn view(source: Source) -> SourceView {
    SourceView {
        id: source.id,
        name: source.name,
        kind: source.kind.into(),
        base_url: source.base_url,
        spec_title: source.spec_title,
        spec_version: source.spec_version,
        document_url: source.document_url,
        document_digest: source.document_digest.as_ref().map(imports::hex),
        settings: SettingsView {
            timeout_ms: source.settings.timeout_ms,
            max_response_bytes: source.settings.max_response_bytes,
            follow_redirects: source.settings.follow_redirects,
            tasks: source.settings.tasks,
        },
        tool_count: source.tool_count,
        enabled_tool_count: source.enabled_tool_count,
        credential: source.credential.map(CredentialSummary::from),
        sign_in: source.sharing.as_deref().map(Sharing::from_word),
        security: imports::hint_views(&source.security),
        managed_by: source.managed_by,
        created_at: source.created_at,
        updated_at: source.updated_at,
    }
}
