//! Calls that use an account at the server: the workspace's, or the caller's own (X-86, X-87, V-10). The caller's token of this platform is
//! never among what goes there (AU-1).

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use portolan_connections::{Account, NoToken, Token, write_link};
use portolan_model::id::UserId;
use portolan_protocol::{
    ask::{AskMethod, Need},
    error::RpcError,
    jsonrpc::Raw,
    revision::Revision,
    translate::UrlStep,
    visible::Visible,
};
use portolan_upstream::{Client, UpstreamError, oauth::Challenge};
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{NoClient, UpstreamSource, forward::Forward, sessions::NoConversation};
use crate::{hex::hex, state::McpState};

/// How long a call waits for a person who went to connect an account.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks whether it is connected.
const STEP: Duration = Duration::from_millis(500);

/// Whose accounts calls use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The workspace's.
    Workspace,
    /// The caller's own.
    Person,
}

impl Sharing {
    /// As it is stored; an unknown word is the narrower one.
    pub(crate) fn from_word(word: &str) -> Self {
        if word == "workspace" {
            Self::Workspace
        } else {
            Self::Person
        }
    }
}

/// A way to a server, and the token that opens it, if one does.
pub(crate) struct SignedIn {
    pub(crate) client: Client,
    pub(crate) token: Option<Token>,
}

impl SignedIn {
    /// The account that opened it: what is said with one is no conversation of another.
    pub(crate) fn account(&self) -> Option<Uuid> {
        self.token.as_ref().map(Token::connection)
    }
}

/// `Authorization` with a token of the server's own authorization server.
pub(super) fn bearer(token: &Token) -> Result<HeaderMap, NoClient> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.access));
    let mut value = value.map_err(|_| NoClient::Broken)?;
    value.set_sensitive(true);
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

impl UpstreamSource {
    /// The account that calls of a person use; none if the server is opened otherwise.
    pub(super) fn account(&self, person: Option<UserId>) -> Result<Option<Account>, NoClient> {
        let owner = match self.sharing {
            None => return Ok(None),
            Some(Sharing::Workspace) => None,
            Some(Sharing::Person) => Some(person.ok_or(NoClient::NoPerson)?),
        };
        Ok(Some(Account {
            owner,
            ..self.own_account()
        }))
    }

    /// The workspace's own account: the server is looked at and listened to with it, whoever's accounts calls use.
    pub(crate) fn listening_account(&self) -> Option<Account> {
        self.sharing.map(|_| self.own_account())
    }

    const fn own_account(&self) -> Account {
        Account {
            tenant: self.tenant,
            source: self.id,
            owner: None,
        }
    }

    /// The account that opens the server for a person, as [`SignedIn::account`] names it. No token is asked for: the server may never have been spoken to.
    pub(super) async fn account_of(
        &self,
        state: &McpState,
        person: Option<UserId>,
    ) -> Result<Option<Uuid>, NoClient> {
        let Some(account) = self.account(person)? else {
            return Ok(None);
        };
        let connected = state.accounts.connection(account, self.url.as_str());
        match connected.await? {
            Some(connection) => Ok(Some(connection)),
            None => Err(NoToken::NotConnected.into()),
        }
    }

    /// The account that opens the server now, with a token that is good.
    pub(crate) async fn opened_by(
        &self,
        state: &McpState,
        account: Option<Account>,
    ) -> Result<Option<Uuid>, NoClient> {
        let Some(account) = account else {
            return Ok(None);
        };
        let token = state.accounts.token(account, self.url.as_str()).await?;
        Ok(Some(token.connection()))
    }

    /// gets other tokens of the account that the server is listened to with, where those are refused.
    pub(crate) async fn renew_listening(
        &self,
        state: &McpState,
        refused: &Token,
    ) -> Result<(), NoClient> {
        if let Some(account) = self.listening_account() {
            let at = self.url.as_str();
            state.accounts.renewed(account, at, refused).await?;
        }
        Ok(())
    }

    /// Whether what the server refused may be asked again, with renewed tokens. `renewed` says that these are already.
    pub(super) async fn renew(
        &self,
        state: &McpState,
        person: Option<UserId>,
        refused: &Token,
        renewed: bool,
    ) -> Result<bool, NoClient> {
        let Some(account) = self.account(person)? else {
            return Ok(false);
        };
        if renewed {
            state.accounts.give_up(account, refused).await?;
            return Ok(false);
        }
        let at = self.url.as_str();
        state.accounts.renewed(account, at, refused).await?;
        Ok(true)
    }

    /// remembers what the server wants beyond what was granted.
    pub(super) async fn note_scope(
        &self,
        state: &McpState,
        person: Option<UserId>,
        refused: Option<&Token>,
        error: &UpstreamError,
    ) {
        let (UpstreamError::Forbidden { challenge }, Some(refused)) = (error, refused) else {
            return;
        };
        let challenge = Challenge::read(challenge.as_deref());
        let (Ok(Some(account)), Some(scope)) = (self.account(person), challenge.scope) else {
            return;
        };
        let noted = state.accounts.wants_scope(account, refused, &scope);
        if let Err(error) = noted.await {
            tracing::debug!(reason = %error, "wanted scopes could not be kept");
        }
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or("this service")
    }
}

/// True for what connecting an account would mend.
fn wants_account(error: &NoConversation) -> bool {
    match error {
        NoConversation::Client(NoClient::Account(error)) => error.is_for_a_person(),
        NoConversation::Upstream(UpstreamError::Unauthorized { .. }) => true,
        NoConversation::Upstream(UpstreamError::Forbidden { challenge }) => {
            Challenge::read(challenge.as_deref()).scope.is_some()
        }
        _ => false,
    }
}

impl Forward<'_> {
    /// The page where the caller connects their own account, if that would mend the error (EL-11: it wants this very person).
    pub(super) fn connect_page(
        &self,
        state: &McpState,
        source: &UpstreamSource,
        error: &NoConversation,
    ) -> Option<(Account, String)> {
        let account = source.account(self.who.person).ok().flatten()?;
        let person = account.owner.filter(|_| wants_account(error))?;
        let whose = (source.tenant, source.id, person);
        let link = write_link(&state.keys, whose, state.clock.now()).ok()?;
        let url = format!("{}/connect/accounts/{link}", state.site().issuer());
        Some((account, url))
    }

    fn step(source: &UpstreamSource, url: &str) -> UrlStep {
        UrlStep {
            message: format!("Connect your own account at {} to use this.", source.host()),
            url: url.to_owned(),
            elicitation_id: None,
        }
    }

    /// the person is asked to connect the account, and waited for. False if they cannot be asked: then the answer says it.
    pub(super) async fn ask_to_connect(
        &self,
        state: &McpState,
        source: &UpstreamSource,
        error: &NoConversation,
    ) -> Result<bool, Visible> {
        let Some(asker) = self.asker.filter(|asker| asker.can(Need::Url)) else {
            return Ok(false);
        };
        let Some((account, url)) = self.connect_page(state, source, error) else {
            return Ok(false);
        };
        let before = state.accounts.connected_at(account).await.ok().flatten();
        // In the words of 2026-07-28, which has no ids of its own: where the client's revision has them, one is made up.
        let params = Self::step(source, &url).params();
        let answer = asker
            .ask(Revision::V2026_07_28, AskMethod::Elicit, &params)
            .await?;
        let action = answer.get("action").and_then(|action| action.string());
        if action.as_deref() != Some("accept") {
            return Err(Visible::Declined);
        }
        // EL-13: the person agreed to open the page, and may be on it for a while.
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            match state.accounts.is_connected(account, before).await {
                Ok(true) => break,
                Ok(false) => sleep(STEP).await,
                Err(_) => return Err(Visible::Unreachable),
            }
        }
        state.accounts.forget(&account);
        Ok(true)
    }

    /// EL-15: the error by which a client of 2025-11-25 opens the page itself, where no question can be put on the way of the answer.
    pub(super) fn connect_error(&self, source: &UpstreamSource, url: &str) -> Option<RpcError> {
        if self.revision != Revision::V2025_11_25 || !self.who.declared.elicitation_url {
            return None;
        }
        let id = portolan_keys::random::bytes::<16>().ok()?;
        let step = UrlStep {
            elicitation_id: Some(hex(&id)),
            ..Self::step(source, url)
        };
        let params: serde_json::Value = serde_json::from_slice(step.params().as_bytes()).ok()?;
        Some(RpcError {
            code: -32042,
            message: "This needs your own account at another service.".to_owned(),
            data: Raw::of(&json!({ "elicitations": [params] })).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use portolan_model::{
        id::{SourceId, TenantId},
        registry::SourceSettings,
    };

    use super::*;
    use crate::catalog::server::Access;

    #[test]
    fn el_3_el_9_el_10_and_el_16_a_person_is_sent_to_a_page_of_ours_and_never_asked_for_a_secret() {
        let url = "https://up.example/mcp?key=secret".parse().expect("a URL");
        let source = UpstreamSource::new(
            TenantId::generate(),
            SourceId::generate(),
            url,
            Access::Open,
            Some(Sharing::Person),
            &SourceSettings::default(),
        );
        let page = "https://mcp.example.com/connect/accounts/sealed";
        let params = Forward::step(&source, page).params();
        let params: serde_json::Value =
            serde_json::from_slice(params.as_bytes()).expect("an object");
        assert_eq!(params["mode"], "url", "EL-9: not by a form");
        assert_eq!(
            params["url"], page,
            "EL-16: of an account elsewhere, and our own page for it"
        );
        assert!(params.get("requestedSchema").is_none());
        let said = params.to_string();
        assert!(said.contains("up.example"), "it says where: {said}");
        assert!(!said.contains("secret"), "EL-10: {said}");
    }
}
