//! The form of every list of the API.

use serde::Serialize;
use utoipa::ToSchema;

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
