//! Tasks: calls that continue after their first answer, in both eras (MCP-TK-1…MCP-TK-18,
//! MCP-TX-1…MCP-TX-17, MCP-X-50…MCP-X-5F; ADR 0012).
//!
//! A task belongs to a caller: tenant, person and client, on one server (ADR 0007). Its record is
//! in the store that all nodes share, in a list of its caller, so that every node answers for it.
//! The call itself runs on the node that began it, and asks through the record. Any node takes the
//! answers, and notifies the node of the call.
//!
//! | Module | Subject |
//! |---|---|
//! | `caller_tasks` | the tasks of a caller: their records, and changes of them |
//! | `record` | the record of a task, in the form of each era |
//! | `run` | a task that runs here |
//! | `features::tasks`, `features::task_result` | the methods of tasks |
//! | `session_notifications` | notifications of a running task to the session that made it |

pub(crate) mod caller_tasks;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod running;
pub(crate) mod services;
pub(crate) mod session_notifications;
