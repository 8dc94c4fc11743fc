//! Calls of an HTTP API with connected accounts (MCP-X-86, MCP-X-87).
//!
//! A call uses a token of the account, renewed once if the API refuses it. Without an account, its
//! person is asked to connect one.

use std::pin::pin;

use portolan_connections::NoToken;
use portolan_http_tools::{Caller as Calling, CompiledTool, ToolAnswer, execute};
use portolan_model::registry::CallOutcome;
use portolan_protocol::{error::RpcError, visible::Visible};
use portolan_upstream::oauth::Challenge;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    backends::{
        account::{Linking, console_page},
        services::Backends,
    },
    call::progress::Working,
    catalog::accounts::NoPerson,
};

/// A call of such an API.
#[derive(Debug)]
pub(crate) struct AccountCall<'a> {
    pub(crate) state: &'a Backends,
    pub(crate) linking: Linking<'a>,
    /// The request without the token.
    pub(crate) calling: Calling<'a>,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Called {
    /// The API answered, or the arguments do not fit.
    Answer(ToolAnswer),
    /// No account opens the API.
    ChannelMessage(Visible),
    /// The same, for a client that opens the page itself.
    Refused(RpcError),
}

impl Called {
    /// The outcome and the API's status, for the log of calls.
    pub(crate) fn outcome(&self) -> (CallOutcome, Option<u16>) {
        match self {
            Self::Answer(answer) => (answer.outcome, answer.status),
            Self::ChannelMessage(_) | Self::Refused(_) => (CallOutcome::UpstreamError, None),
        }
    }
}

/// Why the API gives no access.
#[derive(Debug)]
enum Closed {
    NoPerson,
    Account(NoToken),
    /// The API requires more than was granted.
    Scope,
}

impl From<NoPerson> for Closed {
    fn from(_: NoPerson) -> Self {
        Self::NoPerson
    }
}

impl From<NoToken> for Closed {
    fn from(error: NoToken) -> Self {
        Self::Account(error)
    }
}

impl AccountCall<'_> {
    /// Makes the call. Errors are part of the result.
    pub(crate) async fn call(&self, tool: &CompiledTool, arguments: &Value) -> Called {
        let mut asked = false;
        loop {
            let closed = match self.once(tool, arguments).await {
                Ok(answer) => return Called::Answer(answer),
                Err(closed) => closed,
            };
            // A call with invalid arguments asks for no account.
            if let Err(faults) = tool.check_arguments(arguments) {
                return Called::Answer(ToolAnswer::invalid(faults));
            }
            match closed {
                Closed::NoPerson => return Called::ChannelMessage(Visible::PeopleOnly),
                Closed::Account(error) if !error.is_for_a_person() => {
                    tracing::debug!(source.id = %self.linking.accounts.source, reason = %error, "no token for an API");
                    return Called::ChannelMessage(Visible::Unreachable);
                }
                Closed::Account(_) | Closed::Scope => {}
            }
            // Asks once: a person without a connection after that gets the reason.
            if !asked {
                match self.linking.ask(self.state).await {
                    Ok(true) => {
                        asked = true;
                        continue;
                    }
                    Ok(false) => {}
                    Err(visible) => return Called::ChannelMessage(visible),
                }
            }
            return self.not_linked();
        }
    }

    /// MCP-V-10, MCP-EL-15: the answer in place of a question.
    fn not_linked(&self) -> Called {
        let Some((_, url)) = self.linking.page(self.state) else {
            let source = self.linking.accounts.source;
            let url = console_page(self.state, &self.linking.call.tenant_slug, source);
            return Called::ChannelMessage(Visible::NotLinked { url });
        };
        match self.linking.error(&url) {
            Some(error) => Called::Refused(error),
            None => Called::ChannelMessage(Visible::NotLinked { url }),
        }
    }

    /// One attempt with the current account.
    ///
    /// A 401 means that the request was not executed, so it is repeated once with another token,
    /// whatever its effect.
    async fn once(&self, tool: &CompiledTool, arguments: &Value) -> Result<ToolAnswer, Closed> {
        let Linking { accounts, call, .. } = self.linking;
        let account = accounts.of(call.caller.person())?;
        let known = &self.state.accounts;
        let at = accounts.address.as_str();
        let mut token = known.token(account, at).await?;
        let mut is_renewed = false;
        loop {
            let calling = Calling {
                account: Some(&token.access),
                ..self.calling
            };
            let answer = self.exchange(&calling, tool, arguments).await;
            let challenge = || Challenge::read(answer.challenge.as_deref());
            match answer.status {
                Some(401) => {
                    let challenge = challenge();
                    let next = known.after_refusal(account, at, &token, &challenge, is_renewed);
                    match next.await? {
                        Some(next) => token = next,
                        None => return Ok(answer),
                    }
                    is_renewed = true;
                }
                Some(403) => {
                    let Some(scope) = challenge().scope else {
                        return Ok(answer);
                    };
                    known.wants_scope(account, &token, &scope).await?;
                    return Err(Closed::Scope);
                }
                _ => return Ok(answer),
            }
        }
    }

    /// One exchange with the API. The API reports no progress, so it is generated.
    async fn exchange(
        &self,
        calling: &Calling<'_>,
        tool: &CompiledTool,
        arguments: &Value,
    ) -> ToolAnswer {
        let mut exchange = pin!(execute(calling, tool, arguments));
        let wants_progress = self.linking.call.progress.is_some();
        let Some(channel) = self.linking.channel.filter(|_| wants_progress) else {
            return exchange.await;
        };
        let mut working = Working::new(Instant::now());
        loop {
            let progress = tokio::select! {
                biased;
                answer = &mut exchange => return answer,
                progress = working.next() => progress,
            };
            channel.progress(progress).await;
        }
    }
}
