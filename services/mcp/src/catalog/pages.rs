//! Pages of the four lists, written once.
//!
//! Only the cursor differs between callers, so a page is kept in two pieces around the cursor.

use portolan_protocol::{
    prompt, resource,
    result::{CacheHint, Identity},
    revision::Revision,
    tool,
};

use crate::catalog::server::Tool;

/// A placeholder for the cursor while a page is written.
const MARK: &str = "portolan-next-cursor";

/// One of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
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
    /// Its method.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    fn page(
        self,
        revision: Revision,
        identity: &Identity,
        items: &[Vec<u8>],
        cursor: Option<&str>,
    ) -> Vec<u8> {
        let (items, hint) = (items.iter().map(Vec::as_slice), CacheHint::LIST);
        match self {
            Self::Tools => tool::list_page(revision, identity, items, cursor, hint),
            Self::Prompts => prompt::list_page(revision, identity, items, cursor, hint),
            Self::Resources => resource::list_page(revision, identity, items, cursor, hint),
            Self::Templates => resource::template_page(revision, identity, items, cursor, hint),
        }
    }
}

/// An entry of a list.
pub(crate) trait ListItem {
    /// The key by which the list is sorted.
    fn key(&self) -> &str;
    /// The entry in the form of the revision.
    fn json(&self, revision: Revision) -> Vec<u8>;
}

impl<T: ListItem> ListItem for &T {
    fn key(&self) -> &str {
        (*self).key()
    }
    fn json(&self, revision: Revision) -> Vec<u8> {
        (*self).json(revision)
    }
}

impl ListItem for Tool {
    fn key(&self) -> &str {
        &self.name
    }
    fn json(&self, revision: Revision) -> Vec<u8> {
        self.listed.to_json(revision)
    }
}

/// One page as the `result` of an answer.
#[derive(Debug)]
pub(crate) struct Page {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The key of the last entry of the page, if more follow.
    pub(crate) goes_on_after: Option<String>,
}

impl Page {
    /// Bytes without the cursor.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Appends the page, with `cursor` inserted.
    pub(crate) fn write(&self, cursor: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        if self.goes_on_after.is_some() {
            out.extend_from_slice(cursor.as_bytes());
            out.extend_from_slice(&self.tail);
        }
    }

    fn of<T: ListItem>(
        list: List,
        entries: &[T],
        more: bool,
        revision: Revision,
        identity: &Identity,
    ) -> Self {
        let items: Vec<Vec<u8>> = entries.iter().map(|entry| entry.json(revision)).collect();
        let cursor = more.then_some(MARK);
        let mut head = list.page(revision, identity, &items, cursor);
        let mark = format!("\"nextCursor\":\"{MARK}\"");
        // The last occurrence is the placeholder: texts of entries come before it.
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
                    goes_on_after: entries.last().map(|entry| entry.key().to_owned()),
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
    list: List,
    pages: Vec<Page>,
    size: usize,
}

impl Pages {
    pub(crate) fn write<T: ListItem>(
        list: List,
        entries: &[T],
        revision: Revision,
        identity: &Identity,
        size: usize,
    ) -> Self {
        let mut pages: Vec<Page> = Vec::with_capacity(entries.len().div_ceil(size).max(1));
        for (index, chunk) in entries.chunks(size).enumerate() {
            pages.push(Page::of(
                list,
                chunk,
                (index + 1) * size < entries.len(),
                revision,
                identity,
            ));
        }
        if pages.is_empty() {
            pages.push(Page::of::<T>(list, &[], false, revision, identity));
        }
        Self { list, pages, size }
    }

    /// An empty set of pages for a list that differs by client, and is written page by page.
    pub(crate) const fn unwritten(list: List, size: usize) -> Self {
        Self {
            list,
            pages: Vec::new(),
            size,
        }
    }

    /// The page after the entry `key`; the first page for an empty key.
    ///
    /// The entry `key` may have been removed (MCP-PG-3). Page boundaries stay the same; after a
    /// change of the list, the entries in between are written for this answer alone.
    pub(crate) fn after<T: ListItem>(
        &self,
        key: &str,
        entries: &[T],
        revision: Revision,
        identity: &Identity,
    ) -> Found<'_> {
        let start = entries.partition_point(|entry| entry.key() <= key);
        if start.is_multiple_of(self.size)
            && let Some(page) = self.pages.get(start / self.size)
        {
            return Found::Kept(page);
        }
        let end = (start + self.size).min(entries.len());
        Found::Made(Page::of(
            self.list,
            &entries[start..end],
            end < entries.len(),
            revision,
            identity,
        ))
    }
}

/// A page, cached or fresh.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// A cached page.
    Kept(&'a Page),
    /// A page that was written for this answer.
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
