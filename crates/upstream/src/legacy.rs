//! 2025-03-26 to 2025-11-25: a session is an id and a header. Any node that has the [`Ticket`] can
//! use the session.

use std::{str::FromStr, sync::Arc};

use http::{HeaderMap, HeaderValue, StatusCode};
use portolan_protocol::{
    jsonrpc::{Raw, RequestId},
    method::Method,
    result::write_string,
    revision::Revision,
};
use tokio::time::Instant;
use url::Url;

use crate::{
    endpoint::{Client, Speaker},
    error::UpstreamError,
    exchange::Exchange,
    outgoing::{self, PROTOCOL_VERSION, Request, SESSION_ID},
    peer::{self, Headers, Peer},
    server_facts::ServerFacts,
};

/// Longest id of a session that is taken, in bytes.
const LONGEST_ID: usize = 1024;

/// Values from which a node can continue a session.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Its id, visible ASCII, as every message of it repeats it; servers may give none.
    pub(crate) session: Option<HeaderValue>,
    /// The revision agreed on.
    pub(crate) revision: Revision,
}

/// The id opens the session: no log shows it.
impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket({})", self.revision)
    }
}

impl Ticket {
    /// True if the server gave the session an id. Without one it remembers nothing between
    /// requests.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// As text, to be sealed.
    pub fn to_text(&self) -> String {
        let session = self.session.as_ref().map(HeaderValue::to_str);
        let session = session.and_then(Result::ok).unwrap_or_default();
        format!("{} {session}", self.revision)
    }

    /// Reads [`Ticket::to_text`].
    pub fn read(text: &str) -> Option<Self> {
        let (revision, session) = text.split_once(' ')?;
        let revision = Revision::from_str(revision).ok()?;
        let session = match session {
            "" => None,
            session => Some(HeaderValue::from_str(session).ok()?),
        };
        Some(Self { session, revision })
    }
}

/// A session of Streamable HTTP.
#[derive(Debug, Clone)]
pub struct Legacy {
    pub(crate) client: Client,
    pub(crate) ticket: Ticket,
    /// The handshake is made, so that requests carry its outcome.
    is_open: bool,
}

impl Legacy {
    /// Goes on with a session.
    pub fn resume(client: Client, ticket: Ticket) -> Self {
        Self {
            client,
            ticket,
            is_open: true,
        }
    }

    /// Returns the values from which a node can continue the session.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Opens a session: `initialize`, then `notifications/initialized`.
    ///
    /// # Errors
    /// [`UpstreamError`]; of statuses only those that say nothing of the era come as anything but
    /// [`UpstreamError::Status`].
    pub async fn open(
        client: &Client,
        speaker: &Speaker,
    ) -> Result<(Self, ServerFacts), UpstreamError> {
        let begun = Instant::now();
        let mut this = Self {
            client: client.clone(),
            ticket: Ticket {
                session: None,
                revision: Revision::LATEST_LEGACY,
            },
            is_open: false,
        };
        let id = outgoing::new_id();
        let handshake = handshake(speaker);
        let body = outgoing::request(&id, &handshake, None);
        let answer = client.post(client.url(), &[], body.into()).await?;
        let session = session_id(&answer.headers)?;
        let exchange = Exchange::begin(Arc::new(this.clone()), id, answer, begun).await?;
        let result = exchange.only_answer().await?;
        let facts = ServerFacts::of_handshake(&result)?;
        this.ticket = Ticket {
            session,
            revision: facts.revision,
        };
        this.is_open = true;
        let ready = Method::Initialized.name();
        match peer::notify(&this, ready, None).await {
            // Some servers answer it oddly and work all the same.
            Ok(()) | Err(UpstreamError::Status(_)) => Ok((this, facts)),
            Err(error) => Err(error),
        }
    }

    /// See [`crate::Connection::call_as`].
    pub(crate) async fn call(
        &self,
        id: RequestId,
        request: &Request<'_>,
    ) -> Result<Exchange, UpstreamError> {
        let begun = Instant::now();
        let body = outgoing::request(&id, request, None);
        let url = self.client.url();
        let answer = self.client.post(url, &self.headers(), body.into()).await?;
        // MCP-X-7: it was not processed.
        if answer.status == StatusCode::NOT_FOUND && self.ticket.session.is_some() {
            return Err(UpstreamError::SessionGone);
        }
        let exchange = Exchange::begin(Arc::new(self.clone()), id, answer, begun);
        Ok(exchange.await?.of(request.method))
    }

    /// Headers of every message of the session.
    pub(crate) fn headers(&self) -> Headers {
        let mut headers = Vec::with_capacity(3);
        if !self.is_open {
            return headers;
        }
        if self.ticket.revision >= Revision::V2025_06_18 {
            let revision = HeaderValue::from_static(self.ticket.revision.as_str());
            headers.push((PROTOCOL_VERSION, revision));
        }
        if let Some(id) = &self.ticket.session {
            headers.push((SESSION_ID, id.clone()));
        }
        headers
    }

    /// Sends DELETE. The answer does not matter: servers may refuse it (MCP-T-45).
    pub(crate) async fn end(&self) {
        if self.ticket.session.is_some()
            && let Err(error) = self.client.delete(&self.headers()).await
        {
            tracing::debug!(reason = %error, "a session upstream could not be ended");
        }
    }
}

impl Peer for Legacy {
    fn client(&self) -> &Client {
        &self.client
    }

    fn revision(&self) -> Revision {
        self.ticket.revision
    }

    fn post(&self) -> Option<(&Url, Headers)> {
        Some((self.client.url(), self.headers()))
    }

    fn resumption(&self) -> Option<Headers> {
        Some(self.headers())
    }
}

/// The handshake of every legacy revision.
pub(crate) fn handshake(speaker: &Speaker) -> Request<'static> {
    let mut params = br#"{"protocolVersion":"#.to_vec();
    write_string(Revision::LATEST_LEGACY.as_str(), &mut params);
    params.extend_from_slice(br#","capabilities":"#);
    params.extend_from_slice(speaker.capabilities.as_bytes());
    params.extend_from_slice(br#","clientInfo":"#);
    params.extend_from_slice(speaker.info.as_bytes());
    params.push(b'}');
    let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
    Request::new(Method::Initialize.name(), params)
}

/// The id that a server gave to the session, if it is one that can be sent back (MCP-T-41).
fn session_id(headers: &HeaderMap) -> Result<Option<HeaderValue>, UpstreamError> {
    let Some(value) = headers.get(SESSION_ID) else {
        return Ok(None);
    };
    let fits = |bytes: &[u8]| {
        !bytes.is_empty()
            && bytes.len() <= LONGEST_ID
            && bytes.iter().all(|byte| (0x21..=0x7e).contains(byte))
    };
    if !fits(value.as_bytes()) {
        return Err(UpstreamError::violation(
            "the id of its session has other characters than visible ASCII, or is longer than 1024",
        ));
    }
    Ok(Some(value.clone()))
}
