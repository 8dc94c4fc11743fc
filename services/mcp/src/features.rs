//! The methods of the protocol, one file a method, and the dispatch to them.

pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod dispatch;
pub(crate) mod earlier;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod task_result;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod upstream_read;
pub(crate) mod work;
