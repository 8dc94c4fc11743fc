//! One connection to one node.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Collected, Empty, Limited};
use hyper::{service::service_fn, upgrade::Upgraded};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use portolan_net::{
    outward::{Outward, OutwardError},
    tunnel::{self, NodeState},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{address::AttachAddress, figures::Figures, offer::OfferedServer};

/// The longest time from the connection to the answer of the node.
const JOIN_WITHIN: Duration = Duration::from_secs(20);
/// Most bytes of a refusal that are read.
const REFUSAL_BYTES: usize = 8 * 1024;
/// Interval of pings, and the time for their answer.
const PING: Duration = Duration::from_secs(10);
/// Most requests at once on one connection.
const REQUESTS: u32 = 1000;
/// Receive window of one request.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// How long running requests may go on after the stop.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Why a node does not take this program.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// No connection.
    #[error("{0}")]
    Connect(#[from] OutwardError),
    /// The node refuses. A repetition gets the same answer.
    #[error("{message}")]
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its words.
        message: String,
    },
    /// The balancer led to a node that is connected already.
    #[error("the balancer leads to a node that is connected already")]
    Held,
    /// The answer is not one of Portolan, or came too late.
    #[error("{0}")]
    Other(String),
}

/// Address, key and sockets, to open connections.
#[derive(Clone)]
pub struct Dialler {
    /// Sockets.
    pub outward: Outward,
    /// The endpoint.
    pub address: AttachAddress,
    /// The key.
    pub key: String,
    /// Id of this program.
    pub instance: String,
}

impl fmt::Debug for Dialler {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialler")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// An open connection.
pub struct NodeConnection {
    /// The node at its other end.
    pub node: String,
    /// Name of the attached server.
    pub name: String,
    /// The nodes of the service.
    pub nodes: Vec<String>,
    /// Path at which nodes of another kind take connections too.
    pub also: Option<String>,
    io: Upgraded,
}

impl Dialler {
    /// Opens a connection to a node that is not in `held`.
    pub(crate) async fn join(&self, held: &[String]) -> Result<NodeConnection, JoinError> {
        match timeout(JOIN_WITHIN, self.join_patiently(held)).await {
            Ok(joined) => joined,
            Err(_elapsed) => Err(JoinError::Other(format!(
                "no answer within {} s",
                JOIN_WITHIN.as_secs()
            ))),
        }
    }

    async fn join_patiently(&self, held: &[String]) -> Result<NodeConnection, JoinError> {
        let other =
            |error: hyper::Error| JoinError::Other(format!("the connection broke: {error}"));
        let stream = self.outward.connect(self.address.uri().clone()).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream)
            .await
            .map_err(other)?;
        #[expect(clippy::disallowed_methods, reason = "it ends with the connection")]
        let driven = tokio::spawn(connection.with_upgrades());
        let path = self
            .address
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        let request = Request::get(path)
            .header(header::HOST, self.address.authority())
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, tunnel::PROTOCOL)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.key))
            .header(
                header::USER_AGENT,
                concat!("portolan-attach/", env!("CARGO_PKG_VERSION")),
            )
            .header(tunnel::INSTANCE, &self.instance)
            .header(tunnel::HELD, held.join(","))
            .body(Empty::<Bytes>::new())
            .map_err(|_| JoinError::Other("the key has characters that no key has".to_owned()))?;
        let answer = sender.send_request(request).await.map_err(other)?;
        let text = |name: &str| {
            let value = answer.headers().get(name)?;
            Some(value.to_str().ok()?.to_owned())
        };
        let (node, nodes) = (text(tunnel::NODE), text(tunnel::NODES));
        let (name, also) = (text(tunnel::NAME), text(tunnel::ALSO));
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = answer.status();
            let body = Limited::new(answer.into_body(), REFUSAL_BYTES);
            let body = body.collect().await.map(Collected::to_bytes);
            driven.abort();
            return Err(refusal(status, &body.unwrap_or_default()));
        }
        let (Some(node), Some(nodes), Some(name)) = (node, nodes, name) else {
            return Err(JoinError::Other(
                "the address answered, but it is not one of Portolan".to_owned(),
            ));
        };
        let io = hyper::upgrade::on(answer).await.map_err(other)?;
        Ok(NodeConnection {
            node,
            name,
            nodes: nodes.split(',').map(str::to_owned).collect(),
            also,
            io,
        })
    }
}

/// True for a refusal that waiting does not cure.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error()
        && !matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        )
}

fn refusal(status: StatusCode, body: &[u8]) -> JoinError {
    #[derive(serde::Deserialize)]
    struct Refusal {
        error: Reason,
    }
    #[derive(serde::Deserialize)]
    struct Reason {
        code: String,
        message: String,
    }
    match serde_json::from_slice::<Refusal>(body) {
        Ok(Refusal { error }) if error.code == "node_held" => JoinError::Held,
        Ok(Refusal { error }) if is_final(status) => JoinError::Refused {
            status,
            message: error.message,
        },
        Ok(Refusal { error }) => JoinError::Other(error.message),
        Err(_) if status == StatusCode::NOT_FOUND => JoinError::Refused {
            status,
            message: "there is no Portolan that takes attached servers at this address".to_owned(),
        },
        Err(_) => JoinError::Other(format!(
            "the address answered with HTTP status {} where a connection was expected; a proxy in \
             front may not pass `Upgrade` on",
            status.as_u16()
        )),
    }
}

impl NodeConnection {
    /// Answers the requests of the node until the connection ends.
    pub(crate) async fn serve(
        self,
        offer: Arc<OfferedServer>,
        figures: Arc<Figures>,
        learn: impl Fn(NodeState) + Clone + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Result<(), hyper::Error> {
        let service = service_fn(move |request| {
            let (offer, figures, learn) = (offer.clone(), figures.clone(), learn.clone());
            async move {
                let answer = offer.answer(request, &figures, learn).await;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .max_concurrent_streams(REQUESTS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .serve_connection(self.io, service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return ended,
            () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        timeout(END_WITHIN, connection).await.unwrap_or(Ok(()))
    }
}
