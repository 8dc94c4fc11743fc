//! Requests to a server that speaks HTTP: nothing of a message is read or changed.
//!
//! The id of a session gets the id of this program before it, so that a node finds the program that
//! has the session.

use std::sync::Mutex;

use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use portolan_net::{
    outward::OutwardClient,
    tunnel::{ENDPOINT_PATH, OfferState},
};
use url::{Position, Url};

use crate::answers::{AnswerBody, text};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A server with an address.
pub struct Forward {
    client: OutwardClient,
    url: Url,
    instance: String,
    last_error: Mutex<Option<String>>,
}

impl std::fmt::Debug for Forward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forward")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

impl Forward {
    /// `url` is the MCP endpoint of the server.
    pub fn new(client: OutwardClient, url: Url, instance: String) -> Self {
        Self {
            client,
            url,
            instance,
            last_error: Mutex::default(),
        }
    }

    /// How the server was the last time.
    pub fn state(&self) -> OfferState {
        let error = self.last_error.lock().ok().and_then(|error| error.clone());
        OfferState {
            is_ready: error.is_none(),
            error,
        }
    }

    fn note(&self, error: Option<String>) {
        if let Ok(mut last) = self.last_error.lock() {
            *last = error;
        }
    }

    /// The address at the server: the endpoint for the endpoint's path, else the same path there.
    /// An HTTP+SSE server names such a path for the messages of its client.
    fn target(&self, uri: &Uri) -> Option<Uri> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        if path == ENDPOINT_PATH {
            return self.url[..Position::AfterQuery].parse().ok();
        }
        format!("{}{path}", &self.url[..Position::BeforePath])
            .parse()
            .ok()
    }

    /// Sends the request on, and its answer back.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let Some(uri) = self.target(request.uri()) else {
            return text(StatusCode::BAD_REQUEST, "This path cannot be called.");
        };
        let (mut parts, body) = request.into_parts();
        parts.uri = uri;
        parts.version = http::Version::HTTP_11;
        parts.extensions.clear();
        parts.headers.remove(header::HOST);
        // A stream that was cancelled over the tunnel ends here too.
        if let Some(id) = parts.headers.remove(&SESSION) {
            let id = id.to_str().ok().and_then(|id| id.split_once('.'));
            let Some((_, id)) = id.filter(|(instance, _)| *instance == self.instance) else {
                return text(StatusCode::NOT_FOUND, "This session is not here.");
            };
            if let Ok(id) = HeaderValue::from_str(id) {
                parts.headers.insert(SESSION, id);
            }
        }
        let request = Request::from_parts(parts, body.boxed());
        match self.client.request(request).await {
            Ok(answer) => {
                self.note(None);
                self.back(answer)
            }
            Err(error) => {
                let reason = chain(&error);
                tracing::warn!(error = %reason, "the server cannot be reached");
                self.note(Some(format!("The server cannot be reached: {reason}")));
                text(
                    StatusCode::BAD_GATEWAY,
                    "The attached server cannot be reached.",
                )
            }
        }
    }

    fn back(&self, answer: Response<Incoming>) -> Response<AnswerBody> {
        let (mut parts, body) = answer.into_parts();
        parts.version = http::Version::HTTP_2;
        parts.extensions.clear();
        for name in [
            header::CONNECTION,
            header::TRANSFER_ENCODING,
            header::UPGRADE,
            HeaderName::from_static("keep-alive"),
            HeaderName::from_static("proxy-connection"),
        ] {
            parts.headers.remove(name);
        }
        if let Some(id) = parts.headers.remove(&SESSION)
            && let Ok(id) = id.to_str()
            && let Ok(id) = HeaderValue::from_str(&format!("{}.{id}", self.instance))
        {
            parts.headers.insert(SESSION, id);
        }
        Response::from_parts(parts, body.boxed())
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
