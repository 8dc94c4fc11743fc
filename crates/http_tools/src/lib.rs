//! An HTTP API as tools: OpenAPI in, requests out, answers back.
//!
//! Import and call are two halves that share one value, the [`RequestPlan`]: the importer decides
//! once how an argument travels (path, query, header, cookie, which part of the body) and writes it
//! down; a call only follows the plan.
//!
//! ```text
//! text ─► document ─► import ─► ToolDraft { schemas, RequestPlan } ─► (storage)
//!                        └ refs, schema, naming
//! arguments ─► arguments ─► request ─► portolan_net::Egress ─► answer ─► ToolAnswer
//!              (validate)   (plan, credential)                (content, structured)
//! ```
//!
//! Everything is pure but [`execute()`] and [`TokenSource`], which send through the one guarded
//! client.

pub mod answer;
pub mod arguments;
pub mod body;
mod charset;
pub mod credential;
pub mod diff;
pub mod document;
mod effort;
mod exchange;
pub mod execute;
pub mod hand_made;
pub mod import;
pub mod naming;
pub mod operation;
mod outgoing;
pub mod parameter_style;
pub mod plan;
pub mod prepared;
mod proof;
pub mod refs;
pub mod request;
pub mod schema;
pub mod security;
mod sign_in;
mod survey;
pub mod token_source;
mod tree;

pub use answer::{Content, Outcome, Structured, ToolAnswer};
pub use arguments::{ArgumentFault, ArgumentFaults, ArgumentSchema, CompiledTool, OutputCheck};
pub use credential::{Credential, CredentialSlot, InvalidCredential};
pub use diff::{Changed, Diff, KnownTool, Removed};
pub use document::{Document, DocumentError, MAX_DOCUMENT_BYTES, Problem, Severity, SpecVersion};
pub use effort::{Stop, StopWhenDropped};
pub use exchange::{Received, Sent, ShownBody};
pub use execute::{CallTarget, Caller, execute};
pub use hand_made::HandMade;
pub use import::{Import, ImportOptions, ImportedOperation, ReadError, ServerChoice, import, read};
pub use operation::{Annotations, ToolDraft};
pub use plan::RequestPlan;
pub use proof::Proof;
pub use security::SecurityHint;
pub use sign_in::SignInError;
pub use token_source::TokenSource;
