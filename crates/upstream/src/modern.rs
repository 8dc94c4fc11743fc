//! Connections of 2026-07-28: every request is independent and describes itself in `_meta` and
//! headers.

use portolan_protocol::{
    header::{self, ParamHeader},
    jsonrpc::Raw,
    method::Method,
};
use tokio::time::Instant;

use crate::{
    connection::Connection,
    drain::List,
    endpoint::{Client, Speaker},
    error::UpstreamError,
    exchange::Exchange,
    outgoing::{self, Request},
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

    /// See [`Connection::call`].
    pub(crate) async fn call(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        let exchange = self.once(request).await?;
        let code = exchange.refused_at_once().map(|error| error.code);
        match code {
            // MCP-X-81: what was remembered of the server is wrong.
            Some(UNSUPPORTED_VERSION) => Err(UpstreamError::Version(
                "it no longer takes 2026-07-28".into(),
            )),
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

    pub(crate) async fn once(&self, request: &Request<'_>) -> Result<Exchange, UpstreamError> {
        let begun = Instant::now();
        let id = outgoing::new_id();
        let body = outgoing::request(&id, request, Some(&self.speaker));
        let headers = outgoing::mirrored(request);
        let url = self.client.url();
        let answer = self.client.post(url, &headers, body.into()).await?;
        let exchange = Exchange::begin(Connection::Modern(self.clone()), id, answer, begun);
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
        // Boxed: lists are fetched by calls.
        let listed: Vec<Raw> = Box::pin(Connection::Modern(self.clone()).list(List::Tools)).await?;
        let tool = listed.iter().find(|tool| {
            let own = tool.get("name").and_then(|name| name.string());
            own.as_deref() == Some(name.as_str())
        });
        let schema = tool.and_then(|tool| tool.get("inputSchema"));
        let schema = schema.and_then(|schema| serde_json::from_slice(schema.as_bytes()).ok());
        Ok(schema.map(|schema: serde_json::Value| header::annotations(&schema).0))
    }
}
