//! One call, from arguments to answer. The only place of this crate, beside the token source, that
//! sends.

use std::{sync::Arc, time::Duration};

use http::Method;
use portolan_model::registry::{CallOutcome, FollowRedirects, SourceSettings};
use portolan_net::{
    egress::{Egress, EgressRequest, EgressResponse, Redirects},
    secrets::Secrets,
};
use portolan_traces::Span;
use serde_json::{Map, Value};
use url::Url;

use crate::{
    answer::{self, ToolAnswer},
    arguments::CompiledTool,
    credential::{self, CredentialSlot},
    exchange::{self, Sent},
    outgoing,
    proof::Proof,
    request::{self, BuildError, BuiltRequest},
    token_source::TokenSource,
};

/// Where a source's calls go, and their bounds. Built once per source, shared.
#[derive(Debug, Clone)]
pub struct CallTarget {
    /// Everything is below this.
    pub base_url: Url,
    /// Deadline of the whole exchange.
    pub timeout: Duration,
    /// Bytes of answer that are read.
    pub max_response_bytes: usize,
    /// Which redirects are followed.
    pub redirects: Redirects,
}

impl CallTarget {
    /// From a source's base URL and settings.
    pub fn new(base_url: Url, settings: &SourceSettings) -> Self {
        Self {
            base_url,
            timeout: Duration::from_millis(settings.timeout_ms.into()),
            max_response_bytes: settings.max_response_bytes as usize,
            redirects: match settings.follow_redirects {
                FollowRedirects::None => Redirects::None,
                FollowRedirects::SameOrigin => Redirects::SameOrigin,
            },
        }
    }
}

/// Everything a call needs besides the tool and its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The guarded client.
    pub egress: &'a Egress,
    /// Where to.
    pub target: &'a CallTarget,
    /// What opens the API, if something must.
    pub credential: Option<&'a CredentialSlot>,
    /// Access token of a connected account, used instead of the credential. The owner of the
    /// account decides where it may be sent.
    pub account: Option<&'a str>,
    /// Where OAuth tokens come from.
    pub tokens: &'a TokenSource,
    /// Trace context of the call for the API.
    pub trace: Option<&'a Span>,
    /// Puts what was sent and received into the answer, for a person who tries a tool.
    pub shows_exchange: bool,
}

/// Calls a tool. Never fails: errors are in the answer (MCP-TL-19). Dropping the future drops the
/// request.
///
/// Unsafe methods are sent once in any case. A `GET` or `HEAD` is sent a second time if the API
/// refused a cached OAuth token. If the API refuses an account, the answer contains the challenge
/// and the caller handles it.
pub async fn execute(caller: &Caller<'_>, tool: &CompiledTool, arguments: &Value) -> ToolAnswer {
    if let Err(faults) = tool.check_arguments(arguments) {
        return ToolAnswer::invalid(faults);
    }
    let empty = Map::new();
    let arguments = arguments.as_object().unwrap_or(&empty);
    let mut is_retry = false;
    loop {
        let ready = match ready(caller, tool, arguments).await {
            Ok(ready) => ready,
            Err(answer) => return *answer,
        };
        let (is_safe, token) = (ready.is_safe(), ready.token);
        let sent = caller
            .shows_exchange
            .then(|| shown(caller, &ready.request, token.as_deref()));
        let response = caller.egress.send(ready.request).await;
        if let Some(span) = ready.span {
            outgoing::end(span, &response);
        }
        let status = response.as_ref().ok().map(|response| response.status);
        if status == Some(http::StatusCode::UNAUTHORIZED)
            && let (Some(slot), Some(refused)) = (caller.credential, &token)
        {
            caller.tokens.forget(slot, refused).await;
            if is_safe && !is_retry {
                is_retry = true;
                continue;
            }
        }
        let mut answer = match response {
            Ok(response) => answered(caller, tool, response, token.as_deref()),
            Err(error) => {
                tracing::debug!(kind = error.kind(), "a tool call got no answer");
                answer::unreachable(&error)
            }
        };
        answer.sent = sent;
        return answer;
    }
}

/// A request with everything that opens the API.
struct Ready {
    request: EgressRequest,
    /// The OAuth token that it carries, if its source has client credentials.
    token: Option<Arc<str>>,
    /// Its span, already begun.
    span: Option<Span>,
}

impl Ready {
    fn is_safe(&self) -> bool {
        matches!(self.request.method, Method::GET | Method::HEAD)
    }
}

/// Makes the request of a call, or the answer that says why nothing is sent.
async fn ready(
    caller: &Caller<'_>,
    tool: &CompiledTool,
    arguments: &Map<String, Value>,
) -> Result<Ready, Box<ToolAnswer>> {
    let built = request::build(tool.prepared(), &caller.target.base_url, arguments);
    let mut built = built.map_err(|error| match error {
        BuildError::Arguments(faults) => Box::new(ToolAnswer::invalid(faults)),
        BuildError::Plan(_) => not_sent(format!(
            "Nothing was sent: {error}. A person has to correct the tool in the console."
        )),
    })?;
    let token = open(caller, &mut built).await?;
    let span = caller
        .trace
        .map(|call| outgoing::begin(call, &built.method, &built.url, &mut built.headers));
    Ok(Ready {
        request: EgressRequest {
            method: built.method,
            url: built.url,
            headers: built.headers,
            body: built.body,
            timeout: caller.target.timeout,
            max_response_bytes: caller.target.max_response_bytes,
            redirects: caller.target.redirects,
        },
        token,
        span,
    })
}

/// Puts the account's token or the credential on a request. Returns the OAuth token that was
/// fetched for it.
async fn open(
    caller: &Caller<'_>,
    built: &mut BuiltRequest,
) -> Result<Option<Arc<str>>, Box<ToolAnswer>> {
    if let Some(access) = caller.account {
        credential::bearer(&mut built.headers, access)
            .map_err(|error| not_sent(format!("Nothing was sent: {error}")))?;
        return Ok(None);
    }
    let Some(slot) = caller.credential else {
        return Ok(None);
    };
    let token = caller.tokens.token(caller.egress, slot).await;
    let token = token.map_err(|error| {
        tracing::debug!(%error, "no access token for a tool call");
        let mut answer = ToolAnswer::error(
            CallOutcome::UpstreamError,
            format!(
                "Nothing was sent to the API, because {error}. A person can check the source's credential in the console."
            ),
        );
        answer.proof = error.proof();
        Box::new(answer)
    })?;
    slot.apply(&mut built.url, &mut built.headers, token.as_deref())
        .map_err(|error| {
            not_sent(format!(
                "Nothing was sent: {error} A person has to set the source's credential again in the console."
            ))
        })?;
    Ok(token)
}

fn not_sent(text: String) -> Box<ToolAnswer> {
    Box::new(ToolAnswer::error(CallOutcome::Internal, text))
}

/// The credential of a request, unless a connected account replaces it.
fn signed_with<'a>(caller: &Caller<'a>) -> Option<&'a CredentialSlot> {
    caller.credential.filter(|_| caller.account.is_none())
}

/// Secrets that the shown exchange must not contain.
fn secrets(caller: &Caller<'_>, token: Option<&str>) -> Secrets {
    let mut secrets = caller
        .credential
        .map(CredentialSlot::own_secrets)
        .unwrap_or_default();
    for token in token.into_iter().chain(caller.account) {
        secrets.add(token);
    }
    secrets
}

/// A request in the form that a person sees beside the answer.
fn shown(caller: &Caller<'_>, request: &EgressRequest, token: Option<&str>) -> Sent {
    let headers = caller.egress.headers_to_send(request);
    let credential = signed_with(caller).map(|slot| &slot.credential);
    exchange::sent(request, &headers, credential, &secrets(caller, token))
}

/// The answer of the API.
fn answered(
    caller: &Caller<'_>,
    tool: &CompiledTool,
    response: EgressResponse,
    token: Option<&str>,
) -> ToolAnswer {
    let secrets = secrets(caller, token);
    let received = caller
        .shows_exchange
        .then(|| exchange::received(&response, &secrets));
    let proof = signed_with(caller).and_then(|_| Proof::of_status(response.status));
    let mut answer = answer::shape(tool, response, &secrets);
    (answer.received, answer.proof) = (received, proof);
    answer
}
