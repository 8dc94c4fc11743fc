//! Connections of 2026-07-28: every request is independent and describes itself in `_meta` and
//! headers.

use std::sync::Arc;

use portolan_protocol::{
    header::{self, ParamHeader},
    jsonrpc::Raw,
    method::Method,
    revision::Revision,
};
use tokio::time::Instant;
use url::Url;

use crate::{
    drain::{List, Listing},
    endpoint::{Client, Speaker},
    error::UpstreamError,
    exchange::Exchange,
    outgoing::{self, Request},
    peer::{Headers, Peer},
};

const HEADER_MISMATCH: i32 = -32020;
const UNSUPPORTED_VERSION: i32 = -32022;

/// A server that needs no session.
#[derive(Debug, Clone)]
pub struct Modern {
    pub(crate) client: Client,
    pub(crate) speaker: Speaker,
}

impl Modern {
    /// Creates a connection to a server that is known to support this revision.
    pub fn new(client: Client, speaker: Speaker) -> Self {
        Self { client, speaker }
    }

    /// See [`crate::Connection::call`].
    pub(crate) async fn call(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        let exchange = self.versioned(request).await?;
        let code = exchange.refused_at_once().map(|error| error.code);
        match code {
            // MCP-X-6: its schema is not the one that was remembered. It was not called.
            Some(HEADER_MISMATCH) if request.method == Method::ToolsCall.name() => {
                let Some(mirrored) = self.fresh_mirrors(request).await? else {
                    return Ok(exchange);
                };
                let again = Request {
                    mirrored: &mirrored,
                    ..request.clone()
                };
                self.once(&again).await
            }
            _ => Ok(exchange),
        }
    }

    /// MCP-X-81: a server that refuses the version is another one than was remembered.
    async fn versioned(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        let exchange = self.once(request).await?;
        match exchange.refused_at_once() {
            Some(error) if error.code == UNSUPPORTED_VERSION => Err(UpstreamError::Version(
                "it no longer takes 2026-07-28".into(),
            )),
            _ => Ok(exchange),
        }
    }

    pub(crate) async fn once(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        let begun = Instant::now();
        let id = outgoing::new_id();
        let body = outgoing::request(&id, request, Some(&self.speaker));
        let headers = outgoing::mirrored(request);
        let url = self.client.url();
        let answer = self.client.post(url, &headers, body.into()).await?;
        let exchange = Exchange::begin(Arc::new(self.clone()), id, answer, begun);
        Ok(exchange.await?.of(request.method))
    }

    /// Fetches the headers that the tool requires now; `None` if there is no such tool.
    async fn fresh_mirrors(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<Vec<ParamHeader>>, UpstreamError> {
        let Some(name) = request.params.get("name").and_then(|name| name.string()) else {
            return Ok(None);
        };
        let mut listing = Listing::new(List::Tools, self.client.limits());
        let listed: Vec<Raw> = loop {
            let exchange = self.versioned(&listing.request()).await?;
            if let Some(listed) = listing.take(&exchange.only_answer().await?)? {
                break listed;
            }
        };
        let tool = listed.iter().find(|tool| {
            let own = tool.get("name").and_then(|name| name.string());
            own.as_deref() == Some(name.as_str())
        });
        let schema = tool.and_then(|tool| tool.get("inputSchema"));
        let schema = schema.and_then(|schema| serde_json::from_slice(schema.as_bytes()).ok());
        Ok(schema.map(|schema: serde_json::Value| header::annotations(&schema).0))
    }
}

impl Peer for Modern {
    fn client(&self) -> &Client {
        &self.client
    }

    fn revision(&self) -> Revision {
        Revision::V2026_07_28
    }

    fn post(&self) -> Option<(&Url, Headers)> {
        None
    }

    fn resumption(&self) -> Option<Headers> {
        None
    }
}
