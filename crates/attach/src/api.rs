//! An HTTP API of this network as an MCP server: the operations of its OpenAPI document are tools.
//!
//! The server is of 2026-07-28 and keeps nothing between requests, so each of several programs
//! answers each request. The base URL and the credential stay here; no other address is called.

mod load;

use std::sync::{Mutex, PoisonError};

use http::{Method as HttpMethod, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use portolan_http_tools::{
    CallTarget, Caller, CompiledTool, CredentialSlot, Outcome, TokenSource, ToolAnswer, execute,
};
use portolan_net::{
    egress::Egress,
    tunnel::{ENDPOINT_PATH, OfferState},
};
use portolan_protocol::{
    Admitted, Body, CacheHint, ErrorKind, Identity, Method, Misfit, Refusal, Request as Rpc,
    Revision,
    header::Headers,
    jsonrpc::{self, MAX_BODY_BYTES},
    meta, negotiate,
    tool::{self, CallParams, ListParams},
};
use serde_json::{Map, Value};

pub use self::load::{ApiError, ApiSource, DocumentPlace};
use crate::answers::{AnswerBody, empty, json, text};

/// The revision of this server.
const REVISION: Revision = Revision::V2026_07_28;
/// Tools on one page of the list.
const PAGE: usize = 100;

/// An API, ready to be called.
pub struct Api {
    egress: Egress,
    target: CallTarget,
    credential: Option<CredentialSlot>,
    tokens: TokenSource,
    /// By name.
    tools: Vec<ApiTool>,
    identity: Identity,
    discovery: Vec<u8>,
    last_error: Mutex<Option<String>>,
}

struct ApiTool {
    name: String,
    /// As `tools/list` shows it.
    definition: Vec<u8>,
    compiled: CompiledTool,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("base_url", &self.target.base_url.as_str())
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Whether requests are taken, and why the last call did not reach the API.
    pub fn state(&self) -> OfferState {
        let error = self.last_error.lock();
        OfferState {
            is_ready: true,
            error: error.unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Answers a request of a node.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<AnswerBody>
    where
        B: http_body::Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        if request.uri().path() != ENDPOINT_PATH {
            return text(StatusCode::NOT_FOUND, "There is only /mcp here.");
        }
        if request.method() != HttpMethod::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "POST only.");
        }
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
            return text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The message is too large, or was cut off.",
            );
        };
        let headers = Headers::collect(
            parts
                .headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_bytes())),
        );
        let admitted =
            Body::parse(body.to_bytes()).and_then(|body| negotiate::admit(body, &headers));
        let answered = match admitted {
            Ok(Admitted::Modern {
                method, request, ..
            }) => self.request(method, &request).await,
            Ok(Admitted::ModernNotification(_)) => return empty(StatusCode::ACCEPTED),
            Ok(Admitted::Initialize { request, .. }) => {
                let kind = ErrorKind::MethodNotFound("initialize: there are no sessions".into());
                Err(kind.refuse(REVISION, Some(request.id)))
            }
            Ok(Admitted::Session { .. } | Admitted::SessionBatch { .. }) => {
                Err(ErrorKind::SessionNotFound.refuse(Revision::LATEST_LEGACY, None))
            }
            Err(refusal) => Err(refusal),
        };
        match answered {
            Ok(body) => json(StatusCode::OK, body),
            Err(refusal) => {
                let status = StatusCode::from_u16(refusal.status);
                json(status.unwrap_or(StatusCode::BAD_REQUEST), refusal.body())
            }
        }
    }

    async fn request(&self, method: Method, request: &Rpc) -> Result<Vec<u8>, Refusal> {
        let fail = |kind: ErrorKind| kind.refuse(REVISION, Some(request.id.clone()));
        match method {
            Method::Discover => Ok(jsonrpc::response(&request.id, &self.discovery)),
            Method::ToolsList => {
                let page = request.params.read::<ListParams>();
                let page = self.page(&page.map_err(|misfit| fail(misfit.into()))?);
                Ok(jsonrpc::response(&request.id, &page))
            }
            Method::ToolsCall => {
                let called = self.call(request).await.map_err(fail)?;
                let identity = self.identity.json(REVISION);
                Ok(jsonrpc::response_with(
                    &request.id,
                    called.size_hint() + 256,
                    |out| write_result(&called, identity.as_bytes(), out),
                ))
            }
            _ => Err(fail(ErrorKind::MethodNotFound(request.method.to_string()))),
        }
    }

    /// The cursor is the last name of the page before, so that it holds at other programs too.
    fn page(&self, asked: &ListParams) -> Vec<u8> {
        let from = asked.cursor.as_ref().map_or(0, |last| {
            self.tools.partition_point(|tool| tool.name <= *last)
        });
        let rest = self.tools.get(from..).unwrap_or_default();
        let page = rest.get(..PAGE).unwrap_or(rest);
        let more = page.last().filter(|_| page.len() < rest.len());
        tool::list_page(
            REVISION,
            &self.identity,
            page.iter().map(|tool| tool.definition.as_slice()),
            more.map(|tool| tool.name.as_str()),
            CacheHint::LIST,
        )
    }

    /// Dropping the future ends the request to the API.
    async fn call(&self, request: &Rpc) -> Result<ToolAnswer, ErrorKind> {
        let params = CallParams::read(&request.params)?;
        let found = self
            .tools
            .binary_search_by(|tool| tool.name.as_str().cmp(&params.name));
        let Some(tool) = found.ok().and_then(|at| self.tools.get(at)) else {
            return Err(ErrorKind::UnknownTool(params.name));
        };
        let arguments = match &params.arguments {
            Some(raw) => raw
                .read("params.arguments")
                .map_err(|misfit: Misfit| ErrorKind::from(misfit))?,
            None => Value::Object(Map::new()),
        };
        let caller = Caller {
            egress: &self.egress,
            target: &self.target,
            credential: self.credential.as_ref(),
            account: None,
            tokens: &self.tokens,
            trace: None,
            shows_exchange: false,
        };
        let answer = execute(&caller, &tool.compiled, &arguments).await;
        tracing::debug!(
            tool = tool.name,
            outcome = ?answer.outcome,
            status = answer.status,
            "a call"
        );
        self.note(&answer);
        Ok(answer)
    }

    /// Keeps why the API was not reached, until it is reached again.
    fn note(&self, answer: &ToolAnswer) {
        let error = match (answer.status, answer.outcome) {
            (Some(_), _) => None,
            (None, Outcome::UpstreamError) => {
                Some("The API cannot be reached, or did not answer in time.".to_owned())
            }
            _ => return,
        };
        let last = self.last_error.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// A `CallToolResult` in the envelope of 2026-07-28 (MCP-J-17, MCP-J-18).
fn write_result(answer: &ToolAnswer, identity: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"resultType":"complete","#);
    answer.write_members(out);
    out.extend_from_slice(br#","_meta":{""#);
    out.extend_from_slice(meta::SERVER_INFO.as_bytes());
    out.extend_from_slice(br#"":"#);
    out.extend_from_slice(identity);
    out.extend_from_slice(b"}}");
}
