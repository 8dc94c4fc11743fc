//! Event streams that stay open: the GET stream of a session and `subscriptions/listen`.
//!
//! Both eras get the same notifications.

pub(crate) mod audience;
pub(crate) mod events;
pub(crate) mod list_changes;
pub(crate) mod open;
pub(crate) mod pending;
pub(crate) mod reader;
pub(crate) mod services;
pub(crate) mod subscriptions;
pub(crate) mod tag;
pub(crate) mod task_news;
pub(crate) mod tasks;
