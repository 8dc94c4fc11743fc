//! Calls of an HTTP API that connected accounts open: with a token of the account, renewed once if the API does not take it,
//! and with the question to its person where there is no account yet.

use std::pin::pin;

use portolan_connections::NoToken;
use portolan_http_tools::{Caller as Calling, CompiledTool, ToolAnswer, execute};
use portolan_model::registry::CallOutcome;
use portolan_protocol::{error::RpcError, visible::Visible};
use portolan_upstream::oauth::Challenge;
use serde_json::Value;
use tokio::time::Instant;

use super::account::{Linking, NoPerson, console_page};
use crate::{legacy::call::Working, state::McpState};

/// A call of such an API.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub(crate) state: &'a McpState,
    pub(crate) linking: Linking<'a>,
    /// All but the token.
    pub(crate) calling: Calling<'a>,
    /// As the path names the tenant.
    pub(crate) tenant_slug: &'a str,
    /// Its client wants to hear that it goes on.
    pub(crate) progress: bool,
}

/// What it came to.
#[derive(Debug)]
pub(crate) enum Called {
    /// The API answered, or the arguments do not fit.
    Answer(ToolAnswer),
    /// No account opens it.
    Said(Visible),
    /// The same, for a client that opens the page itself.
    Refused(RpcError),
}

impl Called {
    /// For the log of calls: how it ended, and the API's status.
    pub(crate) fn outcome(&self) -> (CallOutcome, Option<u16>) {
        match self {
            Self::Answer(answer) => (answer.outcome, answer.status),
            Self::Said(_) | Self::Refused(_) => (CallOutcome::UpstreamError, None),
        }
    }
}

/// Why the API is closed.
#[derive(Debug)]
enum Closed {
    NoPerson,
    Account(NoToken),
    /// It wants more than was granted.
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

impl Opened<'_> {
    /// Makes the call. Never fails: what went wrong is what it came to.
    pub(crate) async fn call(&self, tool: &CompiledTool, arguments: &Value) -> Called {
        let mut asked = false;
        loop {
            let closed = match self.once(tool, arguments).await {
                Ok(answer) => return Called::Answer(answer),
                Err(closed) => closed,
            };
            // Nobody connects an account for a call that cannot be made.
            if let Err(faults) = tool.check_arguments(arguments) {
                return Called::Answer(ToolAnswer::invalid(faults));
            }
            match closed {
                Closed::NoPerson => return Called::Said(Visible::PeopleOnly),
                Closed::Account(error) if !error.is_for_a_person() => {
                    tracing::debug!(source.id = %self.linking.accounts.source, reason = %error, "no token for an API");
                    return Called::Said(Visible::Unreachable);
                }
                Closed::Account(_) | Closed::Scope => {}
            }
            // Once: who was there and is not connected all the same hears why.
            if !asked {
                match self.linking.ask(self.state).await {
                    Ok(true) => {
                        asked = true;
                        continue;
                    }
                    Ok(false) => {}
                    Err(visible) => return Called::Said(visible),
                }
            }
            return self.not_linked();
        }
    }

    /// V-10, EL-15: what is answered instead of asking.
    fn not_linked(&self) -> Called {
        let Some((_, url)) = self.linking.page(self.state) else {
            let source = self.linking.accounts.source;
            let url = console_page(self.state, self.tenant_slug, source);
            return Called::Said(Visible::NotLinked { url });
        };
        match self.linking.error(&url) {
            Some(error) => Called::Refused(error),
            None => Called::Said(Visible::NotLinked { url }),
        }
    }

    /// One try with the account as it is now. A 401 says that the request was not executed: it is made once more with another token, whatever
    /// it is to do.
    async fn once(&self, tool: &CompiledTool, arguments: &Value) -> Result<ToolAnswer, Closed> {
        let Linking {
            accounts, person, ..
        } = self.linking;
        let account = accounts.of(person)?;
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

    /// One exchange with the API. It tells nothing of how far it is: that it still works is said for it.
    async fn exchange(
        &self,
        calling: &Calling<'_>,
        tool: &CompiledTool,
        arguments: &Value,
    ) -> ToolAnswer {
        let mut exchange = pin!(execute(calling, tool, arguments));
        let Some(asker) = self.linking.asker.filter(|_| self.progress) else {
            return exchange.await;
        };
        let mut working = Working::new(Instant::now());
        loop {
            let progress = tokio::select! {
                biased;
                answer = &mut exchange => return answer,
                progress = working.next() => progress,
            };
            asker.progress(progress).await;
        }
    }
}
