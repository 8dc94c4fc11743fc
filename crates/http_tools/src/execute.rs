//! One call, from arguments to answer. The only place of this crate, beside the token source, that
//! sends.

use std::time::Duration;

use http::Method;
use portolan_model::registry::{CallOutcome, FollowRedirects, SourceSettings};
use portolan_net::egress::{Egress, EgressRequest, Redirects};
use portolan_traces::Span;
use serde_json::{Map, Value};
use url::Url;

use crate::{
    answer::{self, ToolAnswer},
    arguments::CompiledTool,
    credential::{self, CredentialSlot},
    exchange, outgoing,
    proof::Proof,
    request::{self, BuildError},
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
        let built = match request::build(tool.plan(), &caller.target.base_url, arguments) {
            Ok(built) => built,
            Err(BuildError::Arguments(faults)) => return ToolAnswer::invalid(faults),
            Err(error @ BuildError::Plan(_)) => {
                return ToolAnswer::error(
                    CallOutcome::Internal,
                    format!(
                        "Nothing was sent: {error}. A person has to correct the tool in the console."
                    ),
                );
            }
        };
        let (mut url, mut headers) = (built.url, built.headers);
        let mut token = None;
        if let Some(access) = caller.account {
            if let Err(error) = credential::bearer(&mut headers, access) {
                return ToolAnswer::error(
                    CallOutcome::Internal,
                    format!("Nothing was sent: {error}"),
                );
            }
        } else if let Some(slot) = caller.credential {
            token = match caller.tokens.token(caller.egress, slot).await {
                Ok(token) => token,
                Err(error) => {
                    tracing::debug!(%error, "no access token for a tool call");
                    let mut answer = ToolAnswer::error(
                        CallOutcome::UpstreamError,
                        format!(
                            "Nothing was sent to the API, because {error}. A person can check the source's credential in the console."
                        ),
                    );
                    answer.proof = error.proof();
                    return answer;
                }
            };
            if let Err(error) = slot
                .credential
                .apply(&mut url, &mut headers, token.as_deref())
            {
                return ToolAnswer::error(
                    CallOutcome::Internal,
                    format!(
                        "Nothing was sent: {error} A person has to set the source's credential again in the console."
                    ),
                );
            }
        }
        let span = caller
            .trace
            .map(|call| outgoing::begin(call, &built.method, &url, &mut headers));
        let is_safe = matches!(built.method, Method::GET | Method::HEAD);
        let request = EgressRequest {
            method: built.method,
            url,
            headers,
            body: built.body,
            timeout: caller.target.timeout,
            max_response_bytes: caller.target.max_response_bytes,
            redirects: caller.target.redirects,
        };
        let signed_with = caller.credential.filter(|_| caller.account.is_none());
        let known = || {
            let mut secrets = caller
                .credential
                .map(|slot| slot.credential.secrets())
                .unwrap_or_default();
            for token in token.as_deref().into_iter().chain(caller.account) {
                secrets.add(token);
            }
            secrets
        };
        let sent = caller.shows_exchange.then(|| {
            let headers = caller.egress.headers_to_send(&request);
            let credential = signed_with.map(|slot| &slot.credential);
            exchange::sent(&request, &headers, credential, &known())
        });
        let response = caller.egress.send(request).await;
        if let Some(span) = span {
            outgoing::end(span, &response);
        }
        let mut answer = match response {
            Ok(response) => {
                if response.status == http::StatusCode::UNAUTHORIZED
                    && let (Some(slot), Some(refused)) = (caller.credential, &token)
                {
                    caller.tokens.forget(slot, refused).await;
                    if is_safe && !is_retry {
                        is_retry = true;
                        continue;
                    }
                }
                let secrets = known();
                let received = caller
                    .shows_exchange
                    .then(|| exchange::received(&response, &secrets));
                let proof = signed_with.and_then(|_| Proof::of_status(response.status));
                let mut answer = answer::shape(tool, response, &secrets);
                (answer.received, answer.proof) = (received, proof);
                answer
            }
            Err(error) => {
                tracing::debug!(kind = error.kind(), "a tool call got no answer");
                answer::unreachable(&error)
            }
        };
        answer.sent = sent;
        return answer;
    }
}
