//! Capabilities of both sides, by revision (`docs/revisions.md`, section 3, table; MCP-L-10,
//! MCP-L-11, MCP-L-23).

use std::collections::BTreeMap;

use crate::json::{Kind, Object, Raw};
use crate::revision::{Revision, Tasks};

/// Capabilities that the server declares. [`ServerCapabilities::write`] writes those that the
/// revision knows.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "capability flags are independent yes or no answers on the wire"
)]
pub struct ServerCapabilities {
    /// Tools are served.
    pub tools: bool,
    /// Resources are served.
    pub resources: bool,
    /// Prompts are served.
    pub prompts: bool,
    /// Changes of the lists are announced, and subscriptions of resources taken. A server without
    /// streams cannot.
    pub announcements: bool,
    /// Log messages are sent.
    pub logging: bool,
    /// `completion/complete` is answered.
    pub completions: bool,
    /// Tasks as R4 has them (MCP-TK-1). Never in `server/discover` (MCP-L-23).
    pub core_tasks: bool,
    /// Extensions by identifier, with their settings objects (MCP-EX-1).
    pub extensions: BTreeMap<String, Raw>,
}

impl ServerCapabilities {
    /// All capabilities of the endpoint, independent of the content of its lists (MCP-L-11).
    pub fn full() -> Self {
        Self {
            tools: true,
            resources: true,
            prompts: true,
            announcements: true,
            logging: true,
            completions: true,
            core_tasks: true,
            extensions: [(TASKS_EXTENSION.to_owned(), Raw::empty_object())].into(),
        }
    }

    /// Appends the object as `revision` knows it.
    pub fn write(&self, revision: Revision, out: &mut Vec<u8>) {
        let facts = revision.facts();
        let mut object = Object::begin(out);
        let list: &[u8] = if self.announcements {
            br#"{"listChanged":true}"#
        } else {
            b"{}"
        };
        if self.tools {
            object.raw("tools", list);
        }
        if self.resources {
            let subscribed: &[u8] = br#"{"subscribe":true,"listChanged":true}"#;
            object.raw(
                "resources",
                if self.announcements { subscribed } else { list },
            );
        }
        if self.prompts {
            object.raw("prompts", list);
        }
        if self.logging {
            object.raw("logging", b"{}");
        }
        if self.completions && facts.completions_flag {
            object.raw("completions", b"{}");
        }
        if self.core_tasks && facts.tasks == Tasks::Core {
            object.raw(
                "tasks",
                br#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#,
            );
        }
        if facts.extensions && !self.extensions.is_empty() {
            object.value("extensions", &self.extensions);
        }
        object.end();
    }
}

/// Capabilities of the client on which this server acts. Unknown members are ignored (MCP-L-10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "capability flags are independent yes or no answers on the wire"
)]
pub struct ClientCapabilities {
    /// `roots/list` is answered.
    pub roots: bool,
    /// `sampling/createMessage` is answered.
    pub sampling: bool,
    /// Sampling with tools (R4+).
    pub sampling_tools: bool,
    /// Sampling with context (R4+).
    pub sampling_context: bool,
    /// Elicitation by form; `{}` means this (MCP-EL-1).
    pub elicitation_form: bool,
    /// Elicitation by URL (R4+).
    pub elicitation_url: bool,
    /// Extensions by identifier (MCP-L-10: in legacy `initialize` too).
    pub extensions: BTreeMap<String, Raw>,
}

/// The identifier of the tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

impl ClientCapabilities {
    /// Reads the object leniently: a member of the wrong type counts as not declared.
    pub fn read(raw: &Raw) -> Self {
        let object = |raw: Raw| {
            if raw.kind() == Kind::Object {
                Some(raw)
            } else {
                None
            }
        };
        let member = |of: &Raw, name: &str| of.get(name).and_then(object);
        let sampling = member(raw, "sampling");
        let elicitation = member(raw, "elicitation");
        let elicitation_url = elicitation
            .as_ref()
            .is_some_and(|modes| member(modes, "url").is_some());
        let form_named = elicitation
            .as_ref()
            .is_some_and(|modes| member(modes, "form").is_some());
        Self {
            roots: member(raw, "roots").is_some(),
            sampling: sampling.is_some(),
            sampling_tools: sampling
                .as_ref()
                .is_some_and(|modes| member(modes, "tools").is_some()),
            sampling_context: sampling
                .as_ref()
                .is_some_and(|modes| member(modes, "context").is_some()),
            elicitation_form: elicitation.is_some() && (form_named || !elicitation_url),
            elicitation_url,
            extensions: member(raw, "extensions")
                .map(|map| {
                    map.members()
                        .filter(|(_, settings)| settings.kind() == Kind::Object)
                        .collect()
                })
                .unwrap_or_default(),
        }
    }

    /// The object as a client of `revision` declares it, toward an upstream (MCP-X-14, MCP-X-15):
    /// only what the revision knows.
    pub fn write(&self, revision: Revision, out: &mut Vec<u8>) {
        let facts = revision.facts();
        let mut object = Object::begin(out);
        if self.roots {
            // MCP-X-3I: changed roots are requested again, never announced.
            object.raw("roots", b"{}");
        }
        if self.sampling {
            object.key("sampling");
            let mut modes = Object::begin(object.out());
            if self.sampling_tools && facts.later_questions {
                modes.raw("tools", b"{}");
            }
            if self.sampling_context && facts.later_questions {
                modes.raw("context", b"{}");
            }
            modes.end();
        }
        let by_url = self.elicitation_url && facts.later_questions;
        if facts.elicitation && (self.elicitation_form || by_url) {
            object.key("elicitation");
            let mut modes = Object::begin(object.out());
            if self.elicitation_form && facts.later_questions {
                modes.raw("form", b"{}");
            }
            if by_url {
                modes.raw("url", b"{}");
            }
            modes.end();
        }
        if facts.extensions && !self.extensions.is_empty() {
            object.value("extensions", &self.extensions);
        }
        object.end();
    }

    /// The flags in six bits (extensions are not among them), for session ids that can rebuild
    /// their session.
    pub fn bits(&self) -> u8 {
        [
            self.roots,
            self.sampling,
            self.sampling_tools,
            self.sampling_context,
            self.elicitation_form,
            self.elicitation_url,
        ]
        .iter()
        .enumerate()
        .fold(0, |bits, (index, set)| bits | (u8::from(*set) << index))
    }

    /// The capabilities of [`bits`](Self::bits), without extensions.
    pub fn from_bits(bits: u8) -> Self {
        let set = |index: u8| bits & (1 << index) != 0;
        Self {
            roots: set(0),
            sampling: set(1),
            sampling_tools: set(2),
            sampling_context: set(3),
            elicitation_form: set(4),
            elicitation_url: set(5),
            extensions: BTreeMap::new(),
        }
    }
}
