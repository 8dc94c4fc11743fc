//! Pages of `tools/list`, written once. Only the cursor differs from caller to caller, so a page is kept in two pieces with the
//! cursor between them.

use portolan_protocol::{
    result::{CacheHint, Identity},
    revision::Revision,
    tool::{self, list_page},
};

use crate::catalog::server::Tool;

/// Stands for the cursor while a page is written.
const MARK: &str = "portolan-next-cursor";

/// One page as the `result` of an answer.
#[derive(Debug)]
pub(crate) struct Page {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The name of the last tool of the page, if more follow.
    pub(crate) goes_on_after: Option<String>,
}

impl Page {
    /// Bytes without the cursor.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Appends the page, with `cursor` in its place.
    pub(crate) fn write(&self, cursor: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        if self.goes_on_after.is_some() {
            out.extend_from_slice(cursor.as_bytes());
            out.extend_from_slice(&self.tail);
        }
    }

    fn of(tools: &[Tool], more: bool, revision: Revision, identity: &Identity) -> Self {
        let items: Vec<Vec<u8>> = tools
            .iter()
            .map(|tool| tool.listed.to_json(revision))
            .collect();
        let cursor = more.then_some(MARK);
        let mut head = list_page(
            revision,
            identity,
            items.iter().map(Vec::as_slice),
            cursor,
            CacheHint::LIST,
        );
        let mark = format!("\"nextCursor\":\"{MARK}\"");
        // The last one: what a tool's own text says comes before it.
        let at = if more {
            head.windows(mark.len())
                .rposition(|window| window == mark.as_bytes())
        } else {
            None
        };
        match at {
            Some(at) => {
                let start = at + mark.len() - MARK.len() - 1;
                let tail = head.split_off(start + MARK.len());
                head.truncate(start);
                Self {
                    head,
                    tail,
                    goes_on_after: tools.last().map(|tool| tool.name.clone()),
                }
            }
            None => Self {
                head,
                tail: Vec::new(),
                goes_on_after: None,
            },
        }
    }
}

/// All pages of one revision.
#[derive(Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    size: usize,
}

impl Pages {
    pub(crate) fn write(
        tools: &[Tool],
        revision: Revision,
        identity: &Identity,
        size: usize,
    ) -> Self {
        let mut pages: Vec<Page> = Vec::with_capacity(tools.len().div_ceil(size).max(1));
        for (index, chunk) in tools.chunks(size).enumerate() {
            pages.push(Page::of(
                chunk,
                (index + 1) * size < tools.len(),
                revision,
                identity,
            ));
        }
        if pages.is_empty() {
            pages.push(Page::of(&[], false, revision, identity));
        }
        Self { pages, size }
    }

    /// The first page.
    pub(crate) fn first(&self) -> Option<&Page> {
        self.pages.first()
    }

    /// The page after the tool `name`, which need not be there any more (PG-3). Pages begin where they always do; after a change of
    /// the list the tools in between are written for this answer alone.
    pub(crate) fn after(
        &self,
        name: &str,
        tools: &[Tool],
        revision: Revision,
        identity: &Identity,
    ) -> Found<'_> {
        let start = tools.partition_point(|tool| tool.name.as_str() <= name);
        if start.is_multiple_of(self.size)
            && let Some(page) = self.pages.get(start / self.size)
        {
            return Found::Kept(page);
        }
        let end = (start + self.size).min(tools.len());
        Found::Made(Page::of(
            &tools[start..end],
            end < tools.len(),
            revision,
            identity,
        ))
    }
}

/// A page, from the shelf or fresh.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// Written before.
    Kept(&'a Page),
    /// Written now.
    Made(Page),
}

impl Found<'_> {
    pub(crate) fn page(&self) -> &Page {
        match self {
            Self::Kept(page) => page,
            Self::Made(page) => page,
        }
    }
}

/// Parameters of every list.
pub(crate) type ListParams = tool::ListParams;
