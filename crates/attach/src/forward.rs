//! Requests to a server that speaks HTTP: nothing of a message is read or changed.
//!
//! The id of a session gets the id of this program before it, so that a node finds the program that
//! has the session.

use std::{sync::Mutex, time::Duration};

use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use portolan_net::{
    egress::{
        Authorities, Egress, EgressError, EgressPolicy, EgressRequest, EgressSetupError,
        EgressStream,
    },
    proxies::Proxies,
    tunnel::{ENDPOINT_PATH, OfferState},
};
use url::{Position, Url};

use crate::answers::{AnswerBody, LARGEST_MESSAGE, text};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// `User-Agent` of a request that has none.
const USER_AGENT: &str = concat!("portolan-attach/", env!("CARGO_PKG_VERSION"));
/// The longest time of a name look-up, TCP connection and TLS handshake together.
const CONNECT_MS: u64 = 15_000;
/// The longest wait for the head of an answer. A node waits less, and then cancels the request.
const HEAD_WITHIN: Duration = Duration::from_secs(3600);

/// A server with an address.
pub struct Forward {
    egress: Egress,
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
    /// `url` is the MCP endpoint of the server. An `https` one is reached through the proxies.
    ///
    /// # Errors
    /// The TLS stack refuses its own defaults.
    pub fn new(
        url: Url,
        authorities: Authorities,
        proxies: &Proxies,
        instance: String,
    ) -> Result<Self, EgressSetupError> {
        let policy = EgressPolicy {
            // It is this person's network, and their choice.
            allow_plain_http: true,
            authorities,
            connect_timeout_ms: CONNECT_MS,
            ..EgressPolicy::default()
        };
        Ok(Self {
            egress: Egress::on_own_machine(policy, proxies, USER_AGENT)?,
            url,
            instance,
            last_error: Mutex::default(),
        })
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
    fn target(&self, uri: &Uri) -> Option<Url> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        if path == ENDPOINT_PATH {
            return Some(self.url.clone());
        }
        Url::parse(&format!("{}{path}", &self.url[..Position::BeforePath])).ok()
    }

    /// Sends the request on, and its answer back.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let Some(url) = self.target(request.uri()) else {
            return text(StatusCode::BAD_REQUEST, "This path cannot be called.");
        };
        let (mut parts, body) = request.into_parts();
        if let Some(id) = parts.headers.remove(&SESSION) {
            let id = id.to_str().ok().and_then(|id| id.split_once('.'));
            let Some((_, id)) = id.filter(|(instance, _)| *instance == self.instance) else {
                return text(StatusCode::NOT_FOUND, "This session is not here.");
            };
            if let Ok(id) = HeaderValue::from_str(id) {
                parts.headers.insert(SESSION, id);
            }
        }
        let Ok(body) = Limited::new(body, LARGEST_MESSAGE).collect().await else {
            return text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The message is too large, or was cut off.",
            );
        };
        let mut request = EgressRequest::new(parts.method, url);
        request.headers = parts.headers;
        request.body = body.to_bytes();
        request.timeout = HEAD_WITHIN;
        // A request that is cancelled over the tunnel drops this future or the answer, and either
        // closes the connection to the server.
        match self.egress.open(request).await {
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

    fn back(&self, mut answer: EgressStream) -> Response<AnswerBody> {
        let mut headers = std::mem::take(&mut answer.headers);
        for name in [
            header::CONNECTION,
            header::TRANSFER_ENCODING,
            header::UPGRADE,
            HeaderName::from_static("keep-alive"),
            HeaderName::from_static("proxy-connection"),
        ] {
            headers.remove(name);
        }
        if let Some(id) = headers.remove(&SESSION)
            && let Ok(id) = id.to_str()
            && let Ok(id) = HeaderValue::from_str(&format!("{}.{id}", self.instance))
        {
            headers.insert(SESSION, id);
        }
        let status = answer.status;
        let mut back = Response::new(answer.boxed_unsync());
        *back.status_mut() = status;
        *back.headers_mut() = headers;
        back
    }
}

fn chain(error: &EgressError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
