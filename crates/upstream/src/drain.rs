//! Lists of a server, drained page by page (MCP-X-7F).

use std::collections::HashSet;

use portolan_protocol::{
    jsonrpc::{Kind, Raw},
    method::Method,
    result::write_string,
};

use crate::{connection::Connection, error::UpstreamError, outgoing::Request};

/// A list that a server may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

impl List {
    const fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourceTemplatesList,
        }
    }

    /// The member of the result that holds the list.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The capability that goes with it.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }
}

/// Most bytes of all pages together, as a multiple of the limit of one answer.
const PAGES_OF_BYTES: usize = 4;

impl Connection {
    /// All entries of a list. Each is an object; whether it is a sound one is for the reader to see.
    ///
    /// # Errors
    /// [`UpstreamError::TooMuch`] beyond the bounds, [`UpstreamError::Violation`] for a list that goes round in circles, and what
    /// [`Connection::ask`] gives.
    pub async fn list(&self, list: List) -> Result<Vec<Raw>, UpstreamError> {
        let limits = self.client().limits();
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        let (mut cursor, mut seen) = (None::<String>, HashSet::new());
        for _ in 0..limits.pages {
            let mut params = b"{".to_vec();
            if let Some(cursor) = &cursor {
                params.extend_from_slice(br#""cursor":"#);
                write_string(cursor, &mut params);
            }
            params.push(b'}');
            let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
            let page = self
                .ask(&Request::new(list.method().name(), params))
                .await?;
            let Some(part) = page
                .get(list.member())
                .filter(|raw| raw.kind() == Kind::Array)
            else {
                return Err(UpstreamError::violation(format!(
                    "its list has no `{}`",
                    list.member()
                )));
            };
            bytes += page.as_bytes().len();
            if bytes > limits.answer_bytes.saturating_mul(PAGES_OF_BYTES) {
                return Err(UpstreamError::TooMuch(format!(
                    "{} bytes of `{}`",
                    limits.answer_bytes.saturating_mul(PAGES_OF_BYTES),
                    list.member()
                )));
            }
            entries.extend(part.elements().filter(|raw| raw.kind() == Kind::Object));
            if entries.len() > limits.entries {
                return Err(UpstreamError::TooMuch(format!(
                    "{} entries in `{}`",
                    limits.entries,
                    list.member()
                )));
            }
            let next = page.get("nextCursor").filter(|raw| !raw.is_null());
            let Some(next) = next else {
                return Ok(entries);
            };
            let Some(next) = next.string() else {
                return Err(UpstreamError::violation("a cursor is a string"));
            };
            if !seen.insert(next.clone()) {
                return Err(UpstreamError::violation(format!(
                    "its list of `{}` goes round in circles",
                    list.member()
                )));
            }
            cursor = Some(next);
        }
        Err(UpstreamError::TooMuch(format!(
            "{} pages of `{}`",
            limits.pages,
            list.member()
        )))
    }
}
