//! Connected accounts at upstream MCP servers and APIs (AUTH-3.5; MCP-AU-13): the tokens of a
//! workspace or of a person, sealed at rest, and renewed by one node at a time.
//!
//! ```text
//! Connections::token ─► the row ─► still good ─► Token
//!                          │ about to expire
//!                          ▼
//!                 lease: one guarded update ─► token endpoint ─► sealed, committed ─► Token
//!                 lost: wait until the version moves
//! ```
//!
//! - A caller's own token never comes here (MCP-AU-1): a token for an upstream was issued by the
//!   upstream's authorization server.
//! - A token is sent only to the address that it was issued for. A caller that requests a token
//!   names that address.
//! - New tokens are committed before they are used. Renewal continues when the call that needs it
//!   is dropped; otherwise a rotated refresh token would be lost.
//! - A node reads cached accounts again after a few seconds, so that a disconnected account is not
//!   used for longer.

mod held;
mod link;
mod renew;

use std::{sync::Arc, time::Duration};

use portolan_keys::{Keys, OpenError};
use portolan_model::{
    Clock, Timestamp,
    id::{SourceId, TenantId, UserId},
};
use portolan_net::egress::Egress;
use portolan_storage::{
    StorageError, Store,
    registry::upstream_oauth::{self as stored, ConnectedAccount},
};
use portolan_upstream::oauth::{Challenge, OauthError, union};
use quick_cache::sync::Cache;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use self::{
    held::{
        Held, SealError, open, open_client, open_provider_secret, seal, seal_client,
        seal_provider_secret,
    },
    link::{looks_like_a_link, read_link, write_link},
};

/// Accounts that a node remembers. Forgetting one costs a query.
const REMEMBERED: usize = 10_000;
/// How long what is remembered is used without asking.
const FRESH: Duration = Duration::from_secs(5);
/// Taken off a token's life for clocks and for the call itself.
const MARGIN: time::Duration = time::Duration::seconds(10);
/// A token of this age is not to blame for a refusal that does not name it.
const JUST_NOW: time::Duration = time::Duration::minutes(1);
/// How long a failure of a token endpoint is remembered, so that a burst of calls is no burst of
/// token requests.
const FAILURE_LIFE: Duration = Duration::from_secs(5);

/// Owner and source of a connected account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Account {
    /// Workspace.
    pub tenant: TenantId,
    /// Where.
    pub source: SourceId,
    /// Whose; none for the workspace's.
    pub owner: Option<UserId>,
}

/// An access token.
#[derive(Clone)]
pub struct Token {
    /// For `Authorization: Bearer`.
    pub access: Arc<str>,
    /// Name of these tokens; later reports about them apply to no others.
    pub name: TokenName,
    /// Address to which it may be sent.
    address: Arc<str>,
    /// Another one can be had without a person.
    is_renewable: bool,
    issued_at: Timestamp,
}

impl Token {
    /// Id of the connection, valid as long as the account stays connected: connecting again makes a
    /// new id. A conversation that began with one id must not continue with another.
    pub const fn connection(&self) -> Uuid {
        self.name.connection
    }
}

/// Names the tokens of one version of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenName {
    connection: Uuid,
    version: i32,
}

impl TokenName {
    pub(crate) fn of(row: &ConnectedAccount) -> Self {
        Self {
            connection: row.id,
            version: row.version,
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoToken {
    /// No account is connected.
    #[error("no account is connected")]
    NotConnected,
    /// The person must sign in again.
    #[error("the account has to be connected again")]
    NeedsSignIn,
    /// The authorization server gives none for now.
    #[error("{0}")]
    Server(Arc<OauthError>),
    /// The stored tokens cannot be decrypted.
    #[error("the stored tokens do not open")]
    Broken,
    /// The database.
    #[error("the database does not answer")]
    Storage(Arc<StorageError>),
}

impl NoToken {
    /// A person can mend it by connecting the account.
    pub fn is_for_a_person(&self) -> bool {
        matches!(self, Self::NotConnected | Self::NeedsSignIn | Self::Broken)
    }
}

impl From<StorageError> for NoToken {
    fn from(error: StorageError) -> Self {
        Self::Storage(Arc::new(error))
    }
}

impl From<SealError> for NoToken {
    fn from(error: SealError) -> Self {
        tracing::error!(reason = %error, "the tokens of an upstream account do not open");
        Self::Broken
    }
}

impl From<OpenError> for NoToken {
    fn from(error: OpenError) -> Self {
        SealError::from(error).into()
    }
}

#[derive(Debug)]
enum KnownToken {
    Token {
        token: Token,
        until: Timestamp,
        asked: Instant,
    },
    Failure {
        error: NoToken,
        until: Instant,
    },
}

/// One question at a time.
type AccountSlot = Arc<tokio::sync::Mutex<Option<KnownToken>>>;

#[derive(Debug)]
struct Parts {
    store: Store,
    keys: Keys,
    egress: Egress,
    clock: Clock,
    tracker: TaskTracker,
    slots: Cache<Account, AccountSlot>,
}

/// The accounts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Parts>);

impl Connections {
    /// Nothing is remembered yet. Renewals run on `tracker`.
    pub fn new(
        store: Store,
        keys: Keys,
        egress: Egress,
        clock: Clock,
        tracker: TaskTracker,
    ) -> Self {
        Self(Arc::new(Parts {
            store,
            keys,
            egress,
            clock,
            tracker,
            slots: Cache::new(REMEMBERED),
        }))
    }

    /// Tasks that continue after their caller is gone.
    pub fn tracker(&self) -> &TaskTracker {
        &self.0.tracker
    }

    fn slot(&self, account: &Account) -> AccountSlot {
        let made = || Ok::<_, std::convert::Infallible>(AccountSlot::default());
        let Ok(slot) = self.0.slots.get_or_insert_with(account, made);
        slot
    }

    /// The access token of an account for the server at an address, renewed if it is about to
    /// expire. One that was issued for another address is none.
    ///
    /// # Errors
    /// [`NoToken`].
    pub async fn token(&self, account: Account, at: &str) -> Result<Token, NoToken> {
        self.token_but(account, at, None).await
    }

    /// A token that is not `refused`: the server did not take that one (MCP-X-86).
    ///
    /// # Errors
    /// [`NoToken`].
    pub async fn renewed(
        &self,
        account: Account,
        at: &str,
        refused: &Token,
    ) -> Result<Token, NoToken> {
        self.token_but(account, at, Some(refused.name)).await
    }

    async fn token_but(
        &self,
        account: Account,
        at: &str,
        refused: Option<TokenName>,
    ) -> Result<Token, NoToken> {
        let slot = self.slot(&account);
        let mut known = slot.lock().await;
        // The source moved, or came back: what is remembered is of its other address.
        if matches!(&*known, Some(KnownToken::Token { token, .. }) if *token.address != *at) {
            *known = None;
        }
        let now = self.0.clock.now();
        match &*known {
            Some(KnownToken::Token {
                token,
                until,
                asked,
            }) if refused != Some(token.name) && *until > now && asked.elapsed() < FRESH => {
                return Ok(token.clone());
            }
            Some(KnownToken::Failure { error, until }) if *until > Instant::now() => {
                return Err(error.clone());
            }
            _ => {}
        }
        // Runs on its own task, so that new tokens are stored even if the caller is dropped.
        let this = self.clone();
        let address: Arc<str> = at.into();
        let remembered = match &*known {
            Some(KnownToken::Token { token, .. }) => Some(token.clone()),
            _ => None,
        };
        let asking = self
            .0
            .tracker
            .spawn(async move { this.ask(account, address, refused, remembered).await });
        match asking.await.unwrap_or(Err(NoToken::Broken)) {
            Ok((token, until)) => {
                *known = Some(KnownToken::Token {
                    token: token.clone(),
                    until,
                    asked: Instant::now(),
                });
                Ok(token)
            }
            Err(error) => {
                *known = matches!(error, NoToken::Server(_)).then(|| KnownToken::Failure {
                    error: error.clone(),
                    until: Instant::now() + FAILURE_LIFE,
                });
                Err(error)
            }
        }
    }

    /// Returns the token with which to repeat, once, a request that an API refused with 401. The
    /// refused request was not executed, even if its method is unsafe. `None`: the API's answer is
    /// final.
    ///
    /// Some APIs answer 401 to an invalid request. Only a 401 that blames the token (RFC 6750 §3.1,
    /// `invalid_token`) is always believed. Without it, one call cannot end a workspace's account,
    /// which others use too. A token that was issued just now is then not renewed either, so that a
    /// call cannot cause any number of token requests. A person's own account still requires a new
    /// sign-in.
    ///
    /// # Errors
    /// [`NoToken`]; [`NoToken::NeedsSignIn`] if a renewed token is refused too.
    pub async fn after_refusal(
        &self,
        account: Account,
        at: &str,
        refused: &Token,
        challenge: &Challenge,
        is_renewed: bool,
    ) -> Result<Option<Token>, NoToken> {
        let is_blamed = challenge.error.as_deref() == Some("invalid_token");
        let is_own = account.owner.is_some();
        if is_renewed {
            if is_blamed {
                self.give_up(account, refused).await?;
            }
            return if is_blamed || is_own {
                Err(NoToken::NeedsSignIn)
            } else {
                Ok(None)
            };
        }
        let is_new = self.0.clock.now() - refused.issued_at < JUST_NOW;
        if !is_blamed && (is_new || !(is_own || refused.is_renewable)) {
            return Ok(None);
        }
        self.renewed(account, at, refused).await.map(Some)
    }

    /// Forgets what is remembered of an account: it was connected or disconnected in this process.
    pub fn forget(&self, account: &Account) {
        self.0.slots.remove(account);
    }

    /// Marks the account as needing a new sign-in, because the server refused fresh tokens too.
    ///
    /// # Errors
    /// [`NoToken::Storage`].
    pub async fn give_up(&self, account: Account, refused: &Token) -> Result<(), NoToken> {
        let mut tx = self.0.store.node(account.tenant).await?;
        if let Some(row) = stored::connection(&mut tx, account.source, account.owner).await?
            && TokenName::of(&row) == refused.name
        {
            stored::needs_sign_in(&mut tx, &row, "refused", None).await?;
            tx.commit().await?;
        }
        self.forget(&account);
        Ok(())
    }

    /// MCP-X-87, MCP-AU-11: records that the server needs more scopes than were granted. The next
    /// sign-in requests all of them together.
    ///
    /// # Errors
    /// [`NoToken::Storage`].
    pub async fn wants_scope(
        &self,
        account: Account,
        refused: &Token,
        scope: &str,
    ) -> Result<(), NoToken> {
        let mut tx = self.0.store.node(account.tenant).await?;
        if let Some(row) = stored::connection(&mut tx, account.source, account.owner).await?
            && row.id == refused.connection()
        {
            let earlier = row.scope.clone().unwrap_or_default();
            let before = row.wanted_scope.clone().unwrap_or_default();
            let all = union(&union(&earlier, &before), scope);
            stored::wants_scope(&mut tx, &row, &all).await?;
            tx.commit().await?;
        }
        // A new connection of the account takes effect at once, without the delay of the cache.
        self.forget(&account);
        Ok(())
    }

    /// Returns the id of the account that is connected for the server at an address, as
    /// [`Token::connection`] names it. It decrypts nothing and requests no token.
    ///
    /// # Errors
    /// [`NoToken::Storage`].
    pub async fn connection(&self, account: Account, at: &str) -> Result<Option<Uuid>, NoToken> {
        let mut tx = self.0.store.node(account.tenant).await?;
        let row = stored::connection(&mut tx, account.source, account.owner).await?;
        Ok(row.filter(|row| row.address == at).map(|row| row.id))
    }

    /// Since when an account is connected.
    ///
    /// # Errors
    /// [`NoToken::Storage`].
    pub async fn connected_at(&self, account: Account) -> Result<Option<Timestamp>, NoToken> {
        let mut tx = self.0.store.node(account.tenant).await?;
        let row = stored::connection(&mut tx, account.source, account.owner).await?;
        Ok(row.map(|row| row.connected_at))
    }

    /// True once the account differs from `before`: it was connected meanwhile.
    ///
    /// # Errors
    /// [`NoToken::Storage`].
    pub async fn is_connected(
        &self,
        account: Account,
        before: Option<Timestamp>,
    ) -> Result<bool, NoToken> {
        let mut tx = self.0.store.node(account.tenant).await?;
        let row = stored::connection(&mut tx, account.source, account.owner).await?;
        Ok(row.is_some_and(|row| {
            row.status == "ok" && before.is_none_or(|before| row.connected_at > before)
        }))
    }
}
