//! The result of a handler.

use crate::{
    call::retry::Retry,
    features::{task_result::Wait, tools::PreparedCall, upstream_read::Pass},
};

/// The result of a handler.
#[derive(Debug)]
pub(crate) enum Work {
    /// The whole answer.
    Done(Vec<u8>),
    /// A call that has not begun; its transport decides the effect of a disconnect.
    Call(Box<PreparedCall>),
    /// The same for a prompt or a resource of an upstream server.
    Pass(Box<Pass>),
    /// The retry that a suspended call waits for (MCP-X-22).
    Suspended(Box<Retry>),
    /// A request that waits for a task (MCP-TK-7).
    Wait(Box<Wait>),
}
