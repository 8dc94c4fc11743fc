//! Connection to a server of either era.

use std::sync::Arc;

use portolan_protocol::{
    error::RpcError,
    jsonrpc::{Raw, RequestId},
    revision::Revision,
};

use crate::{
    endpoint::{Client, refusal},
    error::UpstreamError,
    exchange::Exchange,
    legacy::Legacy,
    link::Link,
    modern::Modern,
    outgoing::{self, Request},
};

/// A conversation. Cheap to clone; what it is held over is not closed by dropping it, except a [`Link`].
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
    /// Sends a request. Its events and its answer come through the exchange. Dropping the exchange
    /// closes its stream, and a modern server then treats the request as cancelled (MCP-X-78). A
    /// legacy server needs [`Connection::cancel`].
    ///
    /// # Errors
    /// [`UpstreamError`], when no answer begins.
    pub async fn call(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        match self {
            Self::Modern(modern) => modern.call(request).await,
            Self::Legacy(legacy) => legacy.call(request).await,
            Self::Link(link) => link.call(request).await,
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

    /// Answers a request of the server. Modern servers make none.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server did not take it.
    pub async fn answer(
        &self,
        id: &RequestId,
        outcome: &Result<Raw, RpcError>,
    ) -> Result<(), UpstreamError> {
        self.post(outgoing::answer(id, outcome)).await
    }

    /// Cancels a request (MCP-X-77). For a modern server, drop the exchange instead.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server did not accept the message.
    pub async fn cancel(&self, id: &RequestId, reason: &str) -> Result<(), UpstreamError> {
        self.post(outgoing::cancelled(id, reason)).await
    }

    /// Sends a notification of ours.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server did not take it.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), UpstreamError> {
        let body = portolan_protocol::jsonrpc::notification(method, params.map(Raw::as_bytes));
        self.post(body).await
    }

    /// POSTs what has no answer.
    async fn post(&self, body: Vec<u8>) -> Result<(), UpstreamError> {
        let (client, url, headers): (&Client, _, _) = match self {
            Self::Modern(_) => return Ok(()),
            Self::Legacy(legacy) => (&legacy.client, legacy.client.url(), legacy.headers()),
            Self::Link(link) => (&link.client, &link.post, Vec::new()),
        };
        let answer = client.post(url, &headers, body.into()).await?;
        if answer.status.is_success() {
            Ok(())
        } else if answer.status == http::StatusCode::NOT_FOUND {
            Err(UpstreamError::SessionGone)
        } else {
            Err(refusal(answer.status, &answer.headers))
        }
    }

    /// Ends the session, if there is one (MCP-X-12). Servers may refuse that.
    pub async fn end(&self) {
        if let Self::Legacy(legacy) = self {
            legacy.end().await;
        }
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Modern(_) => Revision::V2026_07_28,
            Self::Legacy(legacy) => legacy.ticket.revision,
            Self::Link(link) => link.revision(),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        match self {
            Self::Modern(modern) => &modern.client,
            Self::Legacy(legacy) => &legacy.client,
            Self::Link(link) => &link.client,
        }
    }
}
