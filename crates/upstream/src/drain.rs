//! Lists of a server, drained page by page (MCP-X-7F).

use std::{collections::HashSet, mem};

use portolan_protocol::{
    jsonrpc::{Kind, Raw},
    method::Method,
    result::write_string,
};

use crate::{endpoint::Limits, error::UpstreamError, outgoing::Request};

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

/// A list that is read page by page, within bounds. It sends nothing itself.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    list: List,
    limits: &'a Limits,
    entries: Vec<Raw>,
    bytes: usize,
    pages: usize,
    cursor: Option<String>,
    seen: HashSet<String>,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(list: List, limits: &'a Limits) -> Self {
        Self {
            list,
            limits,
            entries: Vec::new(),
            bytes: 0,
            pages: 0,
            cursor: None,
            seen: HashSet::new(),
        }
    }

    /// The request of the next page.
    pub(crate) fn request(&self) -> Request<'static> {
        let mut params = b"{".to_vec();
        if let Some(cursor) = &self.cursor {
            params.extend_from_slice(br#""cursor":"#);
            write_string(cursor, &mut params);
        }
        params.push(b'}');
        let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
        Request::new(self.list.method().name(), params)
    }

    /// Takes a page. Returns all entries after the last one, and `None` before.
    ///
    /// # Errors
    /// As [`crate::Connection::list`].
    pub(crate) fn take(&mut self, page: &Raw) -> Result<Option<Vec<Raw>>, UpstreamError> {
        let member = self.list.member();
        let too_much =
            |count: usize, what: &str| UpstreamError::TooMuch(format!("{count} {what} `{member}`"));
        let part = page.get(member).filter(|raw| raw.kind() == Kind::Array);
        let Some(part) = part else {
            return Err(UpstreamError::violation(format!(
                "its list has no `{member}`"
            )));
        };
        self.bytes += page.as_bytes().len();
        let most_bytes = self.limits.answer_bytes.saturating_mul(PAGES_OF_BYTES);
        if self.bytes > most_bytes {
            return Err(too_much(most_bytes, "bytes of"));
        }
        self.entries
            .extend(part.elements().filter(|raw| raw.kind() == Kind::Object));
        if self.entries.len() > self.limits.entries {
            return Err(too_much(self.limits.entries, "entries in"));
        }
        let next = page.get("nextCursor").filter(|raw| !raw.is_null());
        let Some(next) = next else {
            return Ok(Some(mem::take(&mut self.entries)));
        };
        let Some(next) = next.string() else {
            return Err(UpstreamError::violation("a cursor is a string"));
        };
        if !self.seen.insert(next.clone()) {
            return Err(UpstreamError::violation(format!(
                "its list of `{member}` goes round in circles"
            )));
        }
        self.cursor = Some(next);
        self.pages += 1;
        if self.pages >= self.limits.pages {
            return Err(too_much(self.limits.pages, "pages of"));
        }
        Ok(None)
    }
}
