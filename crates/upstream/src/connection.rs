//! Connection to a server of either era.

use std::sync::Arc;

use portolan_protocol::{
    error::RpcError,
    jsonrpc::{Raw, RequestId},
    revision::Revision,
};

use crate::{
    drain::{List, Listing},
    endpoint::Client,
    error::UpstreamError,
    exchange::Exchange,
    legacy::Legacy,
    link::Link,
    modern::Modern,
    outgoing::{self, Request},
    peer::{self, Peer},
};

/// A conversation. Cheap to clone; what it is held over is not closed by dropping it, except a
/// [`Link`].
#[derive(Debug, Clone)]
pub enum Connection {
    /// Every request stands alone.
    Modern(Modern),
    /// A session of Streamable HTTP.
    Legacy(Legacy),
    /// A session of HTTP+SSE.
    Link(Arc<Link>),
}

impl Connection {
    /// Sends a request under a new id; see [`Connection::call_as`].
    ///
    /// # Errors
    /// [`UpstreamError`], when no answer begins.
    pub async fn call(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        self.call_as(&outgoing::new_id(), request).await
    }

    /// Sends a request under an id of [`crate::new_id`]. Its events and its answer come through the
    /// exchange.
    ///
    /// Dropping the future or the exchange closes the connection of the request, and a modern server
    /// then treats it as cancelled (MCP-X-78). A legacy server needs [`Connection::cancel`], also if
    /// the future is dropped: the server may have the request long before an answer begins. A modern
    /// server gets ids of its own.
    ///
    /// # Errors
    /// [`UpstreamError`], when no answer begins.
    pub async fn call_as(
        &self,
        id: &RequestId,
        request: &Request<'_>,
    ) -> Result<Exchange, UpstreamError> {
        match self {
            Self::Modern(modern) => modern.call(request).await,
            Self::Legacy(legacy) => legacy.call(id.clone(), request).await,
            Self::Link(link) => link.call(id.clone(), request).await,
        }
    }

    /// Sends a request and waits for its answer. Notifications that arrive meanwhile are dropped;
    /// requests of the server are refused.
    ///
    /// # Errors
    /// [`UpstreamError`]; an error of the protocol is [`UpstreamError::Refused`].
    pub async fn ask(&self, request: &Request<'_>) -> Result<Raw, UpstreamError> {
        self.call(request).await?.only_answer().await
    }

    /// All entries of a list. Each is an object; whether it is a sound one is for the reader to
    /// see.
    ///
    /// # Errors
    /// [`UpstreamError::TooMuch`] beyond the bounds, [`UpstreamError::Violation`] for a list that
    /// goes round in circles, and what [`Connection::ask`] gives.
    pub async fn list(&self, list: List) -> Result<Vec<Raw>, UpstreamError> {
        let mut listing = Listing::new(list, self.client().limits());
        loop {
            let page = self.ask(&listing.request()).await?;
            if let Some(entries) = listing.take(&page)? {
                return Ok(entries);
            }
        }
    }

    /// Answers a request of the server. Modern servers make none.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server did not take it.
    pub async fn answer(
        &self,
        id: &RequestId,
        outcome: &Result<Raw, RpcError>,
    ) -> Result<(), UpstreamError> {
        peer::answer(self.peer(), id, outcome).await
    }

    /// Cancels a request (MCP-X-77). For a modern server, drop the exchange instead.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server did not accept the message.
    pub async fn cancel(&self, id: &RequestId, reason: &str) -> Result<(), UpstreamError> {
        peer::post(self.peer(), outgoing::cancelled(id, reason)).await
    }

    /// Sends a notification of ours.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server did not take it.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), UpstreamError> {
        peer::notify(self.peer(), method, params).await
    }

    /// Ends the session, if there is one (MCP-X-12). Servers may refuse that.
    pub async fn end(&self) {
        if let Self::Legacy(legacy) = self {
            legacy.end().await;
        }
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.peer().revision()
    }

    pub(crate) fn client(&self) -> &Client {
        self.peer().client()
    }

    fn peer(&self) -> &dyn Peer {
        match self {
            Self::Modern(modern) => modern,
            Self::Legacy(legacy) => legacy,
            Self::Link(link) => &**link,
        }
    }
}
