//! The sender's side of a connection: where messages go that have no answer.

use std::fmt;

use http::{HeaderName, HeaderValue, StatusCode};
use portolan_protocol::{
    error::RpcError,
    jsonrpc::{self, Raw, RequestId},
    revision::Revision,
};
use url::Url;

use crate::{
    endpoint::{Client, refusal},
    error::UpstreamError,
    outgoing,
};

/// Headers of a message.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// A connection, as an exchange uses it.
pub(crate) trait Peer: fmt::Debug + Send + Sync {
    fn client(&self) -> &Client;

    /// The revision that is spoken.
    fn revision(&self) -> Revision;

    /// Address and headers of a message that has no answer. `None` if the revision has none.
    fn post(&self) -> Option<(&Url, Headers)>;

    /// Headers of a GET that continues a broken stream. `None` if none can be continued.
    fn resumption(&self) -> Option<Headers>;
}

/// Answers a request of the server; see [`crate::Connection::answer`].
pub(crate) async fn answer(
    peer: &dyn Peer,
    id: &RequestId,
    outcome: &Result<Raw, RpcError>,
) -> Result<(), UpstreamError> {
    post(peer, outgoing::answer(id, outcome)).await
}

/// Sends a notification of ours.
pub(crate) async fn notify(
    peer: &dyn Peer,
    method: &str,
    params: Option<&Raw>,
) -> Result<(), UpstreamError> {
    post(
        peer,
        jsonrpc::notification(method, params.map(Raw::as_bytes)),
    )
    .await
}

/// POSTs a message that has no answer.
pub(crate) async fn post(peer: &dyn Peer, body: Vec<u8>) -> Result<(), UpstreamError> {
    let Some((url, headers)) = peer.post() else {
        return Ok(());
    };
    let answer = peer.client().post(url, &headers, body.into()).await?;
    if answer.status.is_success() {
        Ok(())
    } else if answer.status == StatusCode::NOT_FOUND {
        Err(UpstreamError::SessionGone)
    } else {
        Err(refusal(answer.status, &answer.headers))
    }
}
