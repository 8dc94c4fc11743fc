//! Which era a server is of (MCP-X-1…MCP-X-5).

use portolan_protocol::{
    error::RpcError,
    jsonrpc::Raw,
    method::Method,
    revision::{Era, Revision},
};
use tokio_util::task::TaskTracker;

use crate::{
    connection::Connection,
    endpoint::{Client, Speaker},
    error::UpstreamError,
    legacy::Legacy,
    link::Link,
    modern::Modern,
    outgoing::Request,
    server_facts::ServerFacts,
};

/// A server that was found to speak MCP.
#[derive(Debug, Clone)]
pub struct Probed {
    /// The conversation begun.
    pub connection: Connection,
    /// Facts that the server declares about itself.
    pub facts: ServerFacts,
}

/// Era of the server, as the answer to the first request shows it.
enum Guess {
    Modern(ServerFacts),
    /// The server refused the version that it claims to support.
    Again,
    /// It may be: the handshake decides.
    Perhaps,
    Legacy,
}

impl Client {
    /// Finds the era of the server and opens a connection (MCP-X-1). `speaker` is the client
    /// identity that opens a session, if one is needed.
    ///
    /// # Errors
    /// [`UpstreamError`]. Those of MCP-X-4 (no connection, 401, 403, 429, 5xx, time) do not show
    /// the era.
    pub async fn probe(
        &self,
        speaker: &Speaker,
        tracker: &TaskTracker,
    ) -> Result<Probed, UpstreamError> {
        let modern = Modern::new(self.clone(), speaker.clone());
        let mut first = self.discover(&modern).await?;
        if matches!(first, Guess::Again) {
            // MCP-X-2: with the newest common version, which is the requested one.
            first = self.discover(&modern).await?;
        }
        if matches!(first, Guess::Again) {
            return Err(UpstreamError::Version(
                Revision::V2026_07_28.as_str().to_owned(),
            ));
        }
        if let Guess::Modern(facts) = first {
            return Ok(Probed {
                connection: Connection::Modern(modern),
                facts,
            });
        }
        let handshake = match Legacy::open(self, speaker).await {
            Ok((legacy, facts)) => {
                return Ok(Probed {
                    connection: Connection::Legacy(legacy),
                    facts,
                });
            }
            Err(error) => error,
        };
        // MCP-X-2: it knows the envelope and has no `server/discover`, which a server must have; it
        // is taken as it is.
        if matches!(first, Guess::Perhaps) {
            return Ok(Probed {
                connection: Connection::Modern(modern),
                facts: ServerFacts {
                    revision: Revision::V2026_07_28,
                    capabilities: Raw::empty_object(),
                    info: Raw::empty_object(),
                    instructions: None,
                },
            });
        }
        match &handshake {
            // MCP-X-3, in its wide reading.
            UpstreamError::Status(status) if status.is_client_error() => {}
            UpstreamError::Refused(_) => {}
            _ => return Err(handshake),
        }
        match Link::open(self, speaker, tracker).await {
            Ok((link, facts)) => Ok(Probed {
                connection: Connection::Link(link),
                facts,
            }),
            // The error of the handshake describes the server better than the missing old
            // transport.
            Err(UpstreamError::Status(_) | UpstreamError::Violation(_)) => Err(handshake),
            Err(error) => Err(error),
        }
    }

    /// Whether a server that was found to be of 2026-07-28 holds sessions too, for clients of the
    /// session era (MCP-X-5). One that gives a session no id cannot ask anything in it, since it
    /// could not tell whose the answer is: it counts as one that holds none. `supportedVersions` is
    /// not asked: servers of both eras name there what requests without a session may say.
    ///
    /// # Errors
    /// [`UpstreamError`] of MCP-X-4, which says nothing of the era.
    pub async fn holds_sessions(&self, speaker: &Speaker) -> Result<Option<Probed>, UpstreamError> {
        match Legacy::open(self, speaker).await {
            Ok((legacy, facts)) => {
                let has_id = legacy.ticket().has_session();
                Ok(has_id.then_some(Probed {
                    connection: Connection::Legacy(legacy),
                    facts,
                }))
            }
            Err(error) if error.is_no_handshake() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn discover(&self, modern: &Modern) -> Result<Guess, UpstreamError> {
        let question = Request::new(Method::Discover.name(), Raw::empty_object());
        let answered = match modern.once(&question).await {
            Ok(exchange) => exchange.only_answer().await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(result) => {
                let versions: Vec<String> = result
                    .get("supportedVersions")
                    .map(|list| list.elements().filter_map(|raw| raw.string()).collect())
                    .unwrap_or_default();
                let modern = Revision::V2026_07_28.as_str();
                if versions.iter().any(|version| version == modern) {
                    Ok(Guess::Modern(ServerFacts::of_discovery(&result)))
                } else if common_legacy(&versions) {
                    Ok(Guess::Legacy)
                } else {
                    Err(UpstreamError::Version(shown(&versions)))
                }
            }
            Err(UpstreamError::Refused(error)) => modern_error(&error),
            // MCP-X-3: a legacy server refuses what has no session, each in its own way.
            Err(UpstreamError::Status(status)) if status.is_client_error() => Ok(Guess::Legacy),
            Err(error) => Err(error),
        }
    }
}

/// MCP-X-2: whether an error is one that only a modern server gives.
fn modern_error(error: &RpcError) -> Result<Guess, UpstreamError> {
    let says = |word: &str| {
        let text = error.message.to_ascii_lowercase();
        text.contains(word)
    };
    let has = |member: &str| {
        let data = error.data.as_ref();
        data.is_some_and(|data| data.get(member).is_some())
    };
    match error.code {
        -32022 | -32004 if error.code == -32022 || has("supported") => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported"));
            let versions: Vec<String> = supported
                .map(|list| list.elements().filter_map(|raw| raw.string()).collect())
                .unwrap_or_default();
            let modern = Revision::V2026_07_28.as_str();
            if versions.iter().any(|version| version == modern) {
                Ok(Guess::Again)
            } else if common_legacy(&versions) {
                Ok(Guess::Legacy)
            } else {
                Err(UpstreamError::Version(shown(&versions)))
            }
        }
        -32020 | -32021 => Err(UpstreamError::Refused(error.clone())),
        // Numbers of the drafts, which others use for other things.
        -32001 if says("header") => Err(UpstreamError::Refused(error.clone())),
        -32003 if has("requiredCapabilities") => Err(UpstreamError::Refused(error.clone())),
        -32601 => Ok(Guess::Perhaps),
        _ => Ok(Guess::Legacy),
    }
}

fn common_legacy(versions: &[String]) -> bool {
    versions
        .iter()
        .filter_map(|version| version.parse::<Revision>().ok())
        .any(|revision| revision.era() == Era::Legacy)
}

fn shown(versions: &[String]) -> String {
    let shown: Vec<String> = versions
        .iter()
        .take(5)
        .map(|version| version.chars().take(24).collect())
        .collect();
    shown.join(", ")
}
