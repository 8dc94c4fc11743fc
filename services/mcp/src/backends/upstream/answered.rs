//! The answer to a client: the server's result or error in the form of the client's revision
//! (`docs/translation-rules.md`, *Shapes of results and definitions*, *Errors and authorization
//! across legs*), or the reason for its absence (`docs/translation-rules.md`, *Visible results,
//! exact form*).

use portolan_keys::random;
use portolan_model::registry::CallOutcome;
use portolan_net::egress::EgressError;
use portolan_protocol::{
    capability::ClientCapabilities,
    completion,
    error::{ErrorKind, RpcError},
    input_required::InputRequired,
    jsonrpc::{self, Raw},
    logging::Level,
    method::Method,
    revision::{Revision, StructuredOutput},
    tool::CallResult,
    translate::{self, Failed, Shape, UrlStep},
    visible::{Awaited, Visible},
};
use portolan_upstream::UpstreamError;

use crate::{
    backends::{
        account::console_page,
        services::Backends,
        upstream::{
            conversation::{NoClient, NoConversation},
            request::{Answered, Forward},
        },
    },
    call::client_channel::{ClientChannel, Round},
    catalog::upstream::UpstreamSource,
    error::McpError,
};

impl Forward<'_> {
    /// MCP-X-72…MCP-X-74: whether the client wants a log message.
    pub(crate) fn wants(&self, params: &Raw) -> bool {
        let level = params.get("level").and_then(|level| level.string());
        let level = level.and_then(|level| level.parse::<Level>().ok());
        if self.channel.is_some_and(ClientChannel::is_task) {
            // The session of a task may have changed its level; the current one applies on delivery
            // (MCP-LG-4).
            return level.is_some();
        }
        matches!((level, self.level()), (Some(level), Some(least)) if level >= least)
    }

    /// MCP-RE-12, MCP-X-6B: a result or the parameters of a question, with the URIs that the client
    /// knows.
    pub(crate) fn known_uris(&self, said: &Raw) -> Raw {
        match self.renamed {
            Some(renamed) => translate::uris(said, &|own| renamed.published(own)),
            None => said.clone(),
        }
    }

    /// MCP-X-20, MCP-X-29: handles a result that asks, with the server's own state.
    pub(crate) async fn round(&self, result: &Raw) -> Result<(Round, Option<String>), Visible> {
        let mut asked = InputRequired::read(result).map_err(|_| Visible::Invalid)?;
        for (_, request) in &mut asked.requests {
            request.params = self.known_uris(&request.params);
        }
        let Some(channel) = self.channel else {
            // The request declared that no client can be asked.
            return Err(Visible::Invalid);
        };
        let state = asked.state.clone();
        let round = channel.round(asked).await?;
        Ok((round, state))
    }

    /// MCP-X-36: steps in the browser that the client can show.
    pub(crate) fn steps(&self, error: &RpcError, from: Revision) -> Option<Vec<UrlStep>> {
        let channel = self.channel?;
        match translate::error(
            error,
            self.method,
            from,
            self.call.revision,
            channel.capabilities(),
        ) {
            Failed::Steps(steps) => Some(steps),
            _ => None,
        }
    }

    pub(crate) fn said(&self, visible: &Visible, outcome: CallOutcome) -> Answered {
        let reason = match visible {
            // The words are the server's, and may be about a person.
            Visible::BrowserStep { .. } => {
                "The upstream server asks for a step in the browser.".into()
            }
            _ => visible.text(),
        };
        Answered {
            body: self.call.said(visible),
            outcome,
            reason: Some(reason),
        }
    }

    fn tool_failure(&self, text: String, outcome: CallOutcome) -> Answered {
        let result = CallResult::failure(text);
        Answered {
            body: Ok(jsonrpc::response_with(&self.call.id, 256, |out| {
                result.write(self.call.revision, &self.call.server.identity, out);
            })),
            outcome,
            reason: None,
        }
    }

    pub(crate) fn error(&self, error: &RpcError, outcome: CallOutcome) -> Answered {
        Answered {
            body: Ok(jsonrpc::error_response(Some(&self.call.id), error)),
            outcome,
            reason: Some(format!("JSON-RPC error {}", error.code)),
        }
    }

    /// A result, in the form of the client's revision (`docs/translation-rules.md`, *Shapes of
    /// results and definitions*).
    pub(crate) fn complete(&self, from: Revision, result: &Raw) -> Answered {
        if self.method == Method::ToolsCall && self.breaks_its_word(result) {
            let text = "Upstream result does not match its output schema.";
            return self.tool_failure(text.to_owned(), CallOutcome::UpstreamError);
        }
        let shape = Shape {
            from,
            to: self.call.revision,
            identity: &self.call.server.identity,
            uniform: false,
        };
        match translate::result(self.method, &self.known_uris(result), &shape) {
            Ok(shaped) => {
                let is_error = result.get("isError").and_then(|raw| raw.boolean());
                Answered {
                    body: Ok(jsonrpc::response(&self.call.id, &shaped.json)),
                    outcome: if is_error == Some(true) {
                        CallOutcome::ToolError
                    } else {
                        CallOutcome::Ok
                    },
                    reason: None,
                }
            }
            Err(violation) => {
                tracing::debug!(reason = %violation, "a result of an upstream server cannot be used");
                self.said(&Visible::Invalid, CallOutcome::UpstreamError)
            }
        }
    }

    /// MCP-X-6G: whether a result violates its schema, for clients with output schemas.
    fn breaks_its_word(&self, result: &Raw) -> bool {
        if self.call.revision.facts().structured_output == StructuredOutput::Absent {
            return false;
        }
        let Some(check) = self.tool.and_then(|tool| tool.output.as_ref()) else {
            return false;
        };
        if result.get("isError").and_then(|raw| raw.boolean()) == Some(true) {
            return false;
        }
        let Some(structured) = result.get("structuredContent") else {
            return true;
        };
        serde_json::from_slice(structured.as_bytes()).is_ok_and(|value| !check.fits(&value))
    }

    /// An error of the protocol, in the form of the client's revision (`docs/translation-rules.md`,
    /// *Errors and authorization across legs*).
    pub(crate) fn refused(&self, error: &RpcError, from: Revision) -> Answered {
        if self.method == Method::Complete && error.code == -32601 {
            // MCP-X-18: the server has no completion, so there are no suggestions.
            let result =
                completion::result(self.call.revision, &self.call.server.identity, &[], None);
            return Answered {
                body: Ok(jsonrpc::response(&self.call.id, &result)),
                outcome: CallOutcome::Ok,
                reason: None,
            };
        }
        let nothing = ClientCapabilities::default();
        let capabilities = self.channel.map_or(&nothing, ClientChannel::capabilities);
        match translate::error(error, self.method, from, self.call.revision, capabilities) {
            Failed::Error(mut error, _) | Failed::Degraded(mut error) => {
                if let (Some(renamed), Some(data)) = (self.renamed, &error.data) {
                    let published = |own: &str| renamed.published(own);
                    error.data = Some(translate::uri_of_error(data, &published));
                }
                self.error(&error, CallOutcome::UpstreamError)
            }
            Failed::ToolFailure(text) => self.tool_failure(text, CallOutcome::ToolError),
            Failed::Visible(visible) => self.said(&visible, CallOutcome::UpstreamError),
            Failed::Missing(required) => {
                let kind = ErrorKind::MissingCapability { required };
                Answered {
                    body: Err(McpError::of(&kind, self.call.revision, Some(&self.call.id))),
                    outcome: CallOutcome::UpstreamError,
                    reason: None,
                }
            }
            // After the last attempt the answer names the first step (MCP-V-6).
            Failed::Steps(steps) => {
                let step = steps.into_iter().next();
                let visible = step.map_or(Visible::Invalid, |step| Visible::BrowserStep {
                    message: step.message,
                    url: Some(step.url),
                });
                self.said(&visible, CallOutcome::UpstreamError)
            }
            Failed::Renegotiate | Failed::Headers => {
                self.said(&Visible::Invalid, CallOutcome::UpstreamError)
            }
        }
    }

    /// The answer for a request without one (`docs/translation-rules.md`, *Visible results, exact
    /// form*).
    pub(crate) fn failed(
        &self,
        state: &Backends,
        error: &NoConversation,
        source: &UpstreamSource,
    ) -> Answered {
        let outcome = CallOutcome::UpstreamError;
        if let Some(url) = self.connect_page(state, source, error) {
            return match self.connect_error(source, &url) {
                Some(error) => self.error(&error, outcome),
                None => self.said(&Visible::NotLinked { url }, outcome),
            };
        }
        let page = || Visible::NotLinked {
            url: console_page(state, &self.call.tenant_slug, source.id),
        };
        let error = match error {
            NoConversation::Upstream(error) => error,
            NoConversation::Client(NoClient::Account(error)) if !error.is_for_a_person() => {
                return self.said(&Visible::Unreachable, outcome);
            }
            NoConversation::Client(NoClient::NoPerson) => {
                return self.said(&Visible::PeopleOnly, outcome);
            }
            NoConversation::Client(_) => return self.said(&page(), outcome),
            NoConversation::Store => {
                return self.said(&Visible::Unreachable, CallOutcome::Internal);
            }
            NoConversation::Over => return self.said(&Visible::Lost, outcome),
            NoConversation::TooManyRounds => return self.said(&Visible::TooManyRounds, outcome),
        };
        let visible = match error {
            UpstreamError::Egress(EgressError::TooLarge { .. }) | UpstreamError::TooMuch(_) => {
                Visible::TooLarge {
                    limit: source.answer_bytes,
                }
            }
            UpstreamError::Egress(EgressError::Away { name }) => {
                Visible::Away { name: name.clone() }
            }
            UpstreamError::Egress(EgressError::Protocol { .. }) | UpstreamError::Interrupted => {
                match source.attached() {
                    Some(name) => Visible::Detached {
                        name: name.to_owned(),
                    },
                    None => Visible::Unreachable,
                }
            }
            UpstreamError::Egress(_) | UpstreamError::Status(_) => Visible::Unreachable,
            UpstreamError::Limited { retry_after } => {
                if self.method == Method::ToolsCall {
                    Visible::Unreachable
                } else {
                    return self.error(&busy(*retry_after), outcome);
                }
            }
            UpstreamError::Unauthorized { .. } | UpstreamError::Forbidden { .. } => page(),
            UpstreamError::SessionGone => Visible::Lost,
            UpstreamError::Timeout(_) => Visible::TimedOut(Awaited::Upstream),
            UpstreamError::Violation(_) | UpstreamError::Version(_) => Visible::Invalid,
            UpstreamError::Refused(error) => {
                return self.refused(error, Revision::LATEST_LEGACY);
            }
        };
        self.said(&visible, outcome)
    }
}

/// MCP-X-85: the error for a busy server.
fn busy(retry_after: Option<std::time::Duration>) -> RpcError {
    let spread = random::bytes::<1>().map_or(0, |[byte]| u64::from(byte));
    let millis = retry_after.map_or(5_000, |wait| {
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    });
    let data = format!(r#"{{"retryAfterMs":{}}}"#, millis.saturating_add(spread));
    RpcError {
        code: -31002,
        message: "The upstream server takes no more requests for now.".to_owned(),
        data: Raw::parse(data).ok(),
    }
}
