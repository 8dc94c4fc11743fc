//! Revisions, eras, and what differs between them as one table (`docs/design/protocol.md`,
//! `docs/revisions.md`, section 24, section 25).
//!
//! `if revision >= …` elsewhere is a smell: add a fact.

use std::fmt;
use std::str::FromStr;

/// A published revision of MCP, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05 (R1): HTTP+SSE with two endpoints.
    V2024_11_05,
    /// 2025-03-26 (R2): Streamable HTTP, sessions, batches.
    V2025_03_26,
    /// 2025-06-18 (R3): no batches, version header, structured output, elicitation.
    V2025_06_18,
    /// 2025-11-25 (R4): priming event, close-and-poll, icons, tasks.
    V2025_11_25,
    /// 2026-07-28 (R5): no session, metadata with each request, mirrored headers.
    V2026_07_28,
}

/// How a client opens the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` and a session (R1–R4).
    Legacy,
    /// Every request stands alone (R5 and later).
    Modern,
}

/// Whether the `MCP-Protocol-Version` header matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionHeader {
    /// Not defined by the revision: ignored.
    Ignored,
    /// May be absent; an unsupported value is refused (MCP-T-46, MCP-T-47).
    Checked,
    /// Must be there and equal the version in the body (MCP-E-7, MCP-T-69).
    Required,
}

/// Allowed forms of `structuredContent` and `outputSchema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuredOutput {
    /// Neither exists.
    Absent,
    /// Objects only (MCP-TL-10).
    Object,
    /// Any JSON value (MCP-TL-11).
    Any,
}

/// Place where arguments that fail `inputSchema` are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentFaults {
    /// JSON-RPC error `-32602` (MCP-TL-17).
    ProtocolError,
    /// A result with `isError: true` that lets a model repair the call (MCP-TL-18).
    ToolResult,
}

/// The form in which long-running tasks exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// Not at all.
    Absent,
    /// As an experimental core feature (R4, TK).
    Core,
    /// As the extension `io.modelcontextprotocol/tasks` (R5, TX).
    Extension,
}

/// Features of a revision, and its error codes.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a table of independent facts, read by name"
)]
pub struct Facts {
    /// The version string.
    pub version: &'static str,
    /// Sessions or requests that stand alone.
    pub era: Era,
    /// Batches are received (MCP-J-12, MCP-J-16).
    pub batches: bool,
    /// The `MCP-Protocol-Version` header.
    pub version_header: VersionHeader,
    /// `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` are required (H).
    pub mirrored_headers: bool,
    /// `annotations` on tools (MCP-FA-1).
    pub tool_annotations: bool,
    /// `title` and `_meta` on tools, resources, prompts; `title` on implementations; `_meta` and
    /// `annotations.lastModified` on content (MCP-FA-1, MCP-FA-3…MCP-FA-5).
    pub titles: bool,
    /// `icons` everywhere, `description` and `websiteUrl` on implementations (MCP-FA-1, MCP-FA-4,
    /// MCP-FA-5).
    pub icons: bool,
    /// `execution` on tools (MCP-FA-1).
    pub tool_execution: bool,
    /// `$schema` may stand in emitted schemas (MCP-JS-9).
    pub schema_dialect: bool,
    /// A property of an emitted schema may be a boolean schema; else `true` is written `{}` (schema
    /// files R1–R4).
    pub boolean_properties: bool,
    /// `structuredContent` and `outputSchema` (MCP-FA-1, MCP-FA-2).
    pub structured_output: StructuredOutput,
    /// `audio` content (MCP-FA-3).
    pub audio: bool,
    /// `resource_link` content (MCP-FA-3).
    pub resource_links: bool,
    /// The capability flag `completions` exists (MCP-CP-1).
    pub completions_flag: bool,
    /// `context` in completion parameters (MCP-FA-7).
    pub completion_context: bool,
    /// `message` in progress notifications (MCP-FA-6).
    pub progress_message: bool,
    /// The server may send elicitations (MCP-EL-1).
    pub elicitation: bool,
    /// Elicitation with modes and with every kind of choice, sampling with tools and several blocks
    /// (MCP-FA-9, MCP-FA-10).
    pub later_questions: bool,
    /// `elicitationId` and the notice of its end (MCP-EL-3, MCP-EL-14).
    pub elicitation_ids: bool,
    /// SSE streams begin with an empty event and may be closed to be polled (MCP-T-24, MCP-T-25).
    pub priming_event: bool,
    /// SSE events carry ids and can be replayed (MCP-T-34, MCP-T-64).
    pub resumable: bool,
    /// Long-running tasks.
    pub tasks: Tasks,
    /// Results carry `resultType`, cacheable ones `ttlMs` and `cacheScope`, all of them
    /// `serverInfo` (MCP-J-17, MCP-J-18, MCP-FA-8).
    pub result_envelope: bool,
    /// `capabilities.extensions` is advertised.
    pub extensions: bool,
    /// Arguments that fail `inputSchema`.
    pub argument_faults: ArgumentFaults,
    /// JSON-RPC code for a resource that does not exist (MCP-RE-4, MCP-RE-5).
    pub resource_not_found: i32,
    /// JSON-RPC code for a header that does not mirror the body (MCP-ER-6, MCP-ER-9).
    pub header_mismatch: i32,
    /// JSON-RPC code when the client lacks a capability (MCP-ER-10, MCP-ER-15).
    pub missing_capability: i32,
    /// HTTP status that goes with `missing_capability`.
    pub missing_capability_status: u16,
    /// HTTP status of `-32601` (MCP-ER-3).
    pub unknown_method_status: u16,
}

const R1: Facts = Facts {
    version: "2024-11-05",
    era: Era::Legacy,
    batches: false,
    version_header: VersionHeader::Ignored,
    mirrored_headers: false,
    tool_annotations: false,
    titles: false,
    icons: false,
    tool_execution: false,
    schema_dialect: false,
    boolean_properties: false,
    structured_output: StructuredOutput::Absent,
    audio: false,
    resource_links: false,
    completions_flag: false,
    completion_context: false,
    progress_message: false,
    elicitation: false,
    later_questions: false,
    elicitation_ids: false,
    priming_event: false,
    resumable: false,
    tasks: Tasks::Absent,
    result_envelope: false,
    extensions: false,
    argument_faults: ArgumentFaults::ProtocolError,
    resource_not_found: -32002,
    header_mismatch: -32001,
    missing_capability: -31006,
    missing_capability_status: 200,
    unknown_method_status: 200,
};

const R2: Facts = Facts {
    version: "2025-03-26",
    batches: true,
    tool_annotations: true,
    audio: true,
    completions_flag: true,
    progress_message: true,
    resumable: true,
    ..R1
};

const R3: Facts = Facts {
    version: "2025-06-18",
    batches: false,
    version_header: VersionHeader::Checked,
    titles: true,
    structured_output: StructuredOutput::Object,
    resource_links: true,
    completion_context: true,
    elicitation: true,
    ..R2
};

const R4: Facts = Facts {
    version: "2025-11-25",
    icons: true,
    tool_execution: true,
    schema_dialect: true,
    later_questions: true,
    elicitation_ids: true,
    priming_event: true,
    tasks: Tasks::Core,
    argument_faults: ArgumentFaults::ToolResult,
    ..R3
};

const R5: Facts = Facts {
    version: "2026-07-28",
    era: Era::Modern,
    version_header: VersionHeader::Required,
    mirrored_headers: true,
    tool_execution: false,
    boolean_properties: true,
    structured_output: StructuredOutput::Any,
    elicitation_ids: false,
    priming_event: false,
    resumable: false,
    tasks: Tasks::Extension,
    result_envelope: true,
    extensions: true,
    resource_not_found: -32602,
    header_mismatch: -32020,
    missing_capability: -32021,
    missing_capability_status: 400,
    unknown_method_status: 404,
    ..R4
};

/// The revisions served, newest first: `supportedVersions` and `data.supported` of `-32022`
/// (MCP-L-18).
pub const SERVED: [Revision; 5] = [
    Revision::V2026_07_28,
    Revision::V2025_11_25,
    Revision::V2025_06_18,
    Revision::V2025_03_26,
    Revision::V2024_11_05,
];

/// The text is not the version string of a known revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision")]
pub struct UnknownRevision;

impl Revision {
    /// Every known revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// Answer of `initialize` to a version that is not served (MCP-L-2).
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// Revision of a request without a session and without `MCP-Protocol-Version` (MCP-T-47).
    pub(crate) const UNNAMED: Self = Self::V2025_03_26;
    /// Revision whose error table applies before a revision is known: the codes used there are the
    /// same in all.
    pub(crate) const FALLBACK: Self = Self::V2025_11_25;

    /// Facts of this revision.
    pub const fn facts(self) -> &'static Facts {
        match self {
            Self::V2024_11_05 => &R1,
            Self::V2025_03_26 => &R2,
            Self::V2025_06_18 => &R3,
            Self::V2025_11_25 => &R4,
            Self::V2026_07_28 => &R5,
        }
    }

    /// The version string.
    pub const fn as_str(self) -> &'static str {
        self.facts().version
    }

    /// Legacy or modern.
    pub const fn era(self) -> Era {
        self.facts().era
    }

    /// True if this service speaks it.
    pub fn is_served(self) -> bool {
        SERVED.contains(&self)
    }

    /// A small number that stays the same for ever, for compact encodings such as session ids.
    pub const fn ordinal(self) -> u8 {
        match self {
            Self::V2024_11_05 => 1,
            Self::V2025_03_26 => 2,
            Self::V2025_06_18 => 3,
            Self::V2025_11_25 => 4,
            Self::V2026_07_28 => 5,
        }
    }

    /// The revision of an [`ordinal`](Self::ordinal).
    pub fn from_ordinal(ordinal: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.ordinal() == ordinal)
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or(UnknownRevision)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
