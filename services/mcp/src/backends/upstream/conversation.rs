//! A conversation with an upstream server: its client, and the reasons for its absence.

use std::{sync::Arc, time::Duration};

use portolan_connections::NoToken;
use portolan_protocol::{
    capability::{ClientCapabilities, TASKS_EXTENSION},
    initialize::Implementation,
    jsonrpc::Raw,
    logging::Level,
    method::Method,
    result::write_string,
    revision::{Era, Revision},
};
use portolan_upstream::{Connection, Request, ServerFacts, Speaker, UpstreamError};

use crate::call::Call;

/// The longest time of a call, whatever its progress and questions (MCP-L-12, MCP-X-24).
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(3600);

/// Why no call can be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClient {
    /// A credential is set, but cannot be opened.
    #[error("the credential cannot be opened")]
    Broken,
    /// The sign-in failed.
    #[error("no sign-in: {0}")]
    SignIn(#[from] portolan_http_tools::SignInError),
    /// There is no account, or no token for it.
    #[error("{0}")]
    Account(#[from] NoToken),
    /// The server needs an account of a person, and the caller is not a person.
    #[error("only a person has an account there")]
    NoPerson,
}

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// Every request stands alone.
    Modern,
    /// In sessions of Streamable HTTP.
    Sessions,
    /// In sessions of HTTP+SSE.
    Links,
}

/// Whether a request names the tasks extension: the server may then answer with a task (MCP-X-50).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TasksExtension {
    /// It does.
    Named,
    /// It does not.
    Absent,
}

/// A client's capabilities on one request, and whether it accepts a task; `None` is no
/// capabilities.
///
/// For servers that keep nothing of earlier requests (MCP-X-14, MCP-X-15).
pub(crate) type OnRequest<'a> = Option<(&'a ClientCapabilities, TasksExtension)>;

/// The caller, its capabilities on this request, and the client's era.
///
/// A server that supports both eras is used in that of the client (MCP-X-5).
pub(crate) type Speaks<'a> = (&'a Call, OnRequest<'a>, Era);

impl Call {
    /// The identity for servers of the session era at the begin of a session.
    pub(crate) fn speaker(&self) -> Speaker {
        let name = self.client.name.as_deref().unwrap_or("portolan");
        let card = Implementation::new(name, env!("CARGO_PKG_VERSION"));
        Speaker {
            info: Raw::of(&card).unwrap_or_else(|_| Speaker::ourselves().info),
            capabilities: said(
                &self.client.capabilities,
                Revision::LATEST_LEGACY,
                TasksExtension::Absent,
            ),
        }
    }

    /// The identity for servers of 2026-07-28 on a request.
    pub(crate) fn speaker_of_request(&self, can: OnRequest<'_>) -> Speaker {
        let capabilities = match can {
            Some((capabilities, tasks)) => said(capabilities, Revision::V2026_07_28, tasks),
            None => Raw::empty_object(),
        };
        Speaker {
            capabilities,
            ..self.speaker()
        }
    }
}

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConversation {
    /// An error of the server.
    #[error("{0}")]
    Upstream(#[from] UpstreamError),
    /// An error of the credential.
    #[error("{0}")]
    Client(#[from] NoClient),
    /// The store does not answer.
    #[error("the store does not answer")]
    Store,
    /// The client's session is over.
    #[error("the session is over")]
    Over,
    /// The server asked its client too often in one call (MCP-X-24).
    #[error("the server asked too many times")]
    TooManyRounds,
}

pub(crate) fn is_same(a: &Connection, b: &Connection) -> bool {
    match (a, b) {
        (Connection::Legacy(a), Connection::Legacy(b)) => a.ticket() == b.ticket(),
        (Connection::Link(a), Connection::Link(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// A client's capabilities in the form for an upstream of `revision` (MCP-X-14, MCP-X-15).
///
/// Only extensions that pass through are included.
pub(crate) fn said(
    capabilities: &ClientCapabilities,
    revision: Revision,
    tasks: TasksExtension,
) -> Raw {
    let mut carried = capabilities.clone();
    carried
        .extensions
        .retain(|name, _| name == "io.modelcontextprotocol/ui");
    if tasks == TasksExtension::Named {
        // MCP-X-50: on each request that may be answered with a task, and on those about it
        // (MCP-TX-1).
        let extension = TASKS_EXTENSION.to_owned();
        carried.extensions.insert(extension, Raw::empty_object());
    }
    let mut out = Vec::with_capacity(96);
    carried.write(revision, &mut out);
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}

/// MCP-X-72: sends the client's log level to a new session of the server.
pub(crate) async fn set_level(connection: &Connection, facts: &ServerFacts, level: Level) {
    if level != Level::SESSION_DEFAULT && facts.has("logging") {
        say_level(connection, level).await;
    }
}

pub(crate) async fn say_level(connection: &Connection, level: Level) {
    let mut params = br#"{"level":"#.to_vec();
    write_string(level.as_str(), &mut params);
    params.push(b'}');
    let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
    let request = Request::new(Method::SetLevel.name(), params);
    if let Err(error) = connection.ask(&request).await {
        tracing::debug!(reason = %error, "an upstream server takes no log level");
    }
}
