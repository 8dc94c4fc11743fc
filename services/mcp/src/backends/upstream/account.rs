//! Calls that use an account at the server: the workspace's, or the caller's own (MCP-X-86,
//! MCP-X-87, MCP-V-10).
//!
//! The caller's token of this platform is never sent there (MCP-AU-1).

use portolan_connections::{Account, NoToken, Token};
use portolan_model::id::UserId;
use portolan_protocol::{error::RpcError, visible::Visible};
use portolan_upstream::{UpstreamError, oauth::Challenge};
use uuid::Uuid;

use crate::{
    backends::{
        account::Linking,
        services::Backends,
        upstream::{
            conversation::{NoClient, NoConversation},
            request::Forward,
        },
    },
    catalog::{
        accounts::{Accounts, NoPerson},
        backend::Access,
        upstream::UpstreamSource,
    },
};

impl UpstreamSource {
    /// The account that calls of a person use; `None` if the server needs no account.
    pub(crate) fn account(&self, person: Option<UserId>) -> Result<Option<Account>, NoClient> {
        let account = self.accounts().map(|accounts| accounts.of(person));
        account.transpose().map_err(|NoPerson| NoClient::NoPerson)
    }

    /// The connected accounts, if the server is signed in to by OAuth.
    fn accounts(&self) -> Option<&Accounts> {
        match &self.access {
            Access::Account(accounts) => Some(accounts),
            Access::Open | Access::With(_) | Access::Broken => None,
        }
    }

    /// The workspace's own account, for refreshes and subscriptions, whatever account the calls
    /// use.
    pub(crate) fn listening_account(&self) -> Option<Account> {
        self.accounts().map(Accounts::of_workspace)
    }

    /// The account that opens the server for a person, as [`SignedIn::account`] returns it.
    ///
    /// It fetches no token: there may have been no conversation with the server yet.
    pub(crate) async fn account_of(
        &self,
        state: &Backends,
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

    /// The account that opens the server now, with a valid token.
    pub(crate) async fn opened_by(
        &self,
        state: &Backends,
        account: Option<Account>,
    ) -> Result<Option<Uuid>, NoClient> {
        let Some(account) = account else {
            return Ok(None);
        };
        let token = state.accounts.token(account, self.url.as_str()).await?;
        Ok(Some(token.connection()))
    }

    /// MCP-X-86: gets other tokens for the account of subscriptions after a refusal.
    pub(crate) async fn renew_listening(
        &self,
        state: &Backends,
        refused: &Token,
    ) -> Result<(), NoClient> {
        if let Some(account) = self.listening_account() {
            let at = self.url.as_str();
            state.accounts.renewed(account, at, refused).await?;
        }
        Ok(())
    }

    /// Whether a refused request may be repeated with renewed tokens. `renewed`: these are renewed
    /// already.
    pub(crate) async fn renew(
        &self,
        state: &Backends,
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

    /// MCP-X-87: stores the scope that the server requires beyond the granted one.
    pub(crate) async fn note_scope(
        &self,
        state: &Backends,
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
}

/// True for errors that a connected account would resolve.
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
    /// The data for asking the caller to connect their own account there.
    fn linking<'s>(&'s self, source: &'s UpstreamSource) -> Option<Linking<'s>> {
        Some(Linking {
            accounts: source.accounts()?,
            call: self.call,
            channel: self.channel,
        })
    }

    /// The page where the caller connects their own account, if that would resolve the error.
    pub(crate) fn connect_page(
        &self,
        state: &Backends,
        source: &UpstreamSource,
        error: &NoConversation,
    ) -> Option<String> {
        let linking = self.linking(source).filter(|_| wants_account(error))?;
        linking.page(state).map(|(_, url)| url)
    }

    /// MCP-X-86: asks the person to connect the account, if that would resolve the error.
    ///
    /// False if the client cannot be asked.
    pub(crate) async fn ask_to_connect(
        &self,
        state: &Backends,
        source: &UpstreamSource,
        error: &NoConversation,
    ) -> Result<bool, Visible> {
        match self.linking(source).filter(|_| wants_account(error)) {
            Some(linking) => linking.ask(state).await,
            None => Ok(false),
        }
    }

    /// MCP-EL-15: the error by which a client opens the page itself.
    pub(crate) fn connect_error(&self, source: &UpstreamSource, url: &str) -> Option<RpcError> {
        self.linking(source)?.error(url)
    }
}
