//! The form of every list of the API.

use portolan_keys::Keys;
use portolan_model::id::TenantId;
use portolan_site::console_error::ConsoleError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::input::{cursor, read_cursor};

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Listing<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// Send it as `cursor` to get the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl<T> Listing<T> {
    /// Makes a complete list of one page.
    pub fn whole(items: Vec<T>) -> Self {
        Self {
            items,
            next_cursor: None,
        }
    }
}

/// The pages of one list of a workspace.
pub(crate) struct Pages<'a> {
    pub(crate) keys: &'a Keys,
    /// Name of the list in its cursors.
    pub(crate) list: &'static str,
    pub(crate) workspace: TenantId,
    /// Rows of one page.
    pub(crate) size: usize,
}

impl Pages<'_> {
    /// The position of a cursor, by the bytes that [`Self::cut`] put into it. 422 for a cursor of
    /// another list.
    pub(crate) fn position<T>(
        &self,
        text: Option<&str>,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, ConsoleError> {
        let Some(text) = text else { return Ok(None) };
        let bytes = read_cursor(self.keys, self.list, self.workspace, text)?;
        read(&bytes).map(Some).ok_or_else(|| {
            ConsoleError::invalid("invalid_cursor", "Start from the first page.").field("cursor")
        })
    }

    /// Rows to read: one more than a page, which shows whether another page follows.
    pub(crate) fn limit(&self) -> i64 {
        i64::try_from(self.size + 1).unwrap_or(i64::MAX)
    }

    /// Cuts the rows to one page, and returns the cursor of the next one.
    pub(crate) fn cut<T>(
        &self,
        rows: &mut Vec<T>,
        position: impl FnOnce(&T) -> Vec<u8>,
    ) -> Option<String> {
        let has_more = rows.len() > self.size;
        rows.truncate(self.size);
        let last = rows.last().filter(|_| has_more)?;
        Some(self.cursor(&position(last)))
    }

    /// The cursor of a position.
    pub(crate) fn cursor(&self, position: &[u8]) -> String {
        cursor(self.keys, self.list, self.workspace, position)
    }
}
