//! One request that a node sends over a tunnel.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use portolan_net::tunnel::{CONTROL, NodeState, OfferState};

use crate::{
    answers::{AnswerBody, json, text},
    api::Api,
    figures::Figures,
    forward::Forward,
    stdio::Stdio,
};

/// The server behind this program.
#[derive(Debug)]
pub enum OfferedServer {
    /// A command.
    Stdio(Stdio),
    /// A server with an address.
    Forward(Forward),
    /// An HTTP API.
    Api(Box<Api>),
}

impl OfferedServer {
    /// Answers a request. Requests of the tunnel itself have an authority that no server has.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        figures: &Arc<Figures>,
        learn: impl FnOnce(NodeState),
    ) -> Response<AnswerBody> {
        if request.uri().authority().map(http::uri::Authority::as_str) == Some(CONTROL) {
            return self.report(request, learn).await;
        }
        let running = figures.begin(request.method());
        running.answered(match self {
            Self::Stdio(stdio) => stdio.answer(request).await,
            Self::Forward(forward) => forward.answer(request).await,
            Self::Api(api) => api.answer(request).await,
        })
    }

    async fn report(
        &self,
        request: Request<Incoming>,
        learn: impl FnOnce(NodeState),
    ) -> Response<AnswerBody> {
        let Ok(body) = request.into_body().collect().await else {
            return text(StatusCode::BAD_REQUEST, "no body");
        };
        let Ok(state) = serde_json::from_slice(&body.to_bytes()) else {
            return text(StatusCode::BAD_REQUEST, "no state");
        };
        learn(state);
        let state = match self {
            Self::Stdio(stdio) => stdio.state(),
            Self::Forward(forward) => forward.state(),
            Self::Api(api) => api.state(),
        };
        json(StatusCode::OK, encoded(&state))
    }

    /// Ends what was started.
    pub async fn end(&self) {
        if let Self::Stdio(stdio) = self {
            stdio.end().await;
        }
    }
}

fn encoded(state: &OfferState) -> Vec<u8> {
    serde_json::to_vec(state).unwrap_or_default()
}
