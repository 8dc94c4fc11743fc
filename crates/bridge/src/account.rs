//! The person's account at the server: its tokens, their refresh, and the sign-in in the browser
//! (RFC 6749, RFC 7636, RFC 8252, RFC 8707, RFC 9728).
//!
//! Copies of the program for one server share one file of tokens. A copy that refreshes or signs in
//! holds the lock of that file; the others wait, and then find the new tokens in it. One refresh
//! token is so used once, and one browser page opens.

mod browser;
mod callback;
mod store;

use std::{sync::Arc, time::Duration};

use portolan_net::egress::Egress;
use portolan_upstream::oauth::{
    self, AuthorizationAttempt, Challenge, ClientIdentity, Discovered, Grant, OauthError,
    Registration, Tokens,
};
use time::OffsetDateTime;
use tokio::sync::{Mutex, watch};
use tokio_util::task::TaskTracker;
use url::Url;

use self::store::{AccountFile, Locked};
pub use self::store::{AccountFiles, StoreError};
pub(crate) use self::{
    browser::open as open_browser,
    callback::{Callbacks, Ending, Returned},
};
use crate::{fault::BridgeFault, note::Notes};

/// A token is refreshed this long before its end.
const EARLY: Duration = Duration::from_secs(30);

/// Whether a person may be asked to sign in for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// The client waits for it.
    Client,
    /// The bridge's own work in the background.
    Ourselves,
}

/// How a person signs in.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// Where tokens are kept.
    pub place: AccountFiles,
    /// A client id that the authorization server gave out; registers nothing.
    pub client_id: Option<String>,
    /// Address of a client metadata document, which is the client id where the server supports it.
    pub client_metadata_url: Option<Url>,
    /// Scopes to request instead of those that the server names.
    pub scope: Option<String>,
    /// Port of the callback; any free one without it.
    pub callback_port: Option<u16>,
    /// Command of the browser (`BROWSER`); empty for the system's own. `None` opens none: the
    /// address is only written to standard error.
    pub browser: Option<String>,
    /// Time for the person.
    pub within: Duration,
}

/// An account at one server.
#[derive(Debug)]
pub struct Account {
    egress: Egress,
    url: Url,
    sign_in: SignIn,
    notes: Notes,
    /// What this process knows; one renewal at a time within the process.
    known: Mutex<KnownAccount>,
    /// Renewals run here: a request that is cancelled does not end the renewal that it began. The
    /// authorization server may have issued the new tokens by then, and taken the old ones.
    tasks: TaskTracker,
    /// True while the authorization server may issue tokens that are not stored yet.
    is_redeeming: watch::Sender<bool>,
}

/// Sets [`Account::is_redeeming`] until it is dropped.
struct Redeeming<'a>(&'a watch::Sender<bool>);

impl<'a> Redeeming<'a> {
    fn begin(account: &'a Account) -> Self {
        account.is_redeeming.send_replace(true);
        Self(&account.is_redeeming)
    }
}

impl Drop for Redeeming<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

#[derive(Debug, Default)]
struct KnownAccount {
    is_read: bool,
    held: Option<AccountFile>,
}

impl Account {
    /// An account; nothing is read yet.
    pub fn new(
        egress: Egress,
        url: Url,
        sign_in: SignIn,
        notes: Notes,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            egress,
            url,
            sign_in,
            notes,
            known: Mutex::default(),
            tasks,
            is_redeeming: watch::Sender::new(false),
        })
    }

    /// Waits until tokens that were requested are stored, within this time.
    pub(crate) async fn settle(&self, within: Duration) {
        let mut redeeming = self.is_redeeming.subscribe();
        let settled = redeeming.wait_for(|is_redeeming| !is_redeeming);
        let _ = tokio::time::timeout(within, settled).await;
    }

    /// Runs a renewal to its end, whether its request waits for it or not.
    async fn whole<T: Send + 'static>(
        &self,
        renewal: impl Future<Output = Result<T, BridgeFault>> + Send + 'static,
    ) -> Result<T, BridgeFault> {
        let renewed = self.tasks.spawn(renewal).await;
        renewed.unwrap_or_else(|_| Err(not_signed_in("the renewal was ended")))
    }

    /// The token for the next request, if there is one. A token near its end is refreshed first.
    ///
    /// # Errors
    /// [`BridgeFault::NotSignedIn`] if the store cannot be used, [`BridgeFault::Unreachable`] if
    /// the authorization server cannot be reached.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Option<String>, BridgeFault> {
        {
            let mut known = self.known.lock().await;
            self.read_once(&mut known).map_err(not_signed_in)?;
            let Some(held) = &known.held else {
                return Ok(None);
            };
            if held.is_fresh(EARLY) || held.refresh.is_none() {
                return Ok(held.access.clone());
            }
        }
        let this = Arc::clone(self);
        self.whole(async move { this.refreshed().await }).await
    }

    /// The token, refreshed if no other request has done it.
    async fn refreshed(&self) -> Result<Option<String>, BridgeFault> {
        let mut known = self.known.lock().await;
        let held = known.held.as_ref();
        if let Some(held) = held.filter(|held| held.is_fresh(EARLY)) {
            return Ok(held.access.clone());
        }
        let used = held.and_then(|held| held.access.clone());
        let lock = self.locked(&mut known, used.as_deref()).await?;
        if let Some(lock) = lock {
            match self.refresh(&mut known, &lock).await {
                Ok(_) => {}
                // It may be good for a few seconds more; the server decides.
                Err(error) => self.notes.detail(&format!("refresh: {error}")),
            }
        }
        Ok(known.held.as_ref().and_then(|held| held.access.clone()))
    }

    /// After a 401: refreshes the token that was `used`, or signs in.
    ///
    /// # Errors
    /// [`BridgeFault::NotSignedIn`], with the reason.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        challenge: Challenge,
        used: Option<String>,
        purpose: For,
    ) -> Result<(), BridgeFault> {
        let this = Arc::clone(self);
        let renewal = async move { this.renewed(&challenge, used.as_deref(), purpose).await };
        self.whole(renewal).await
    }

    async fn renewed(
        &self,
        challenge: &Challenge,
        used: Option<&str>,
        purpose: For,
    ) -> Result<(), BridgeFault> {
        let mut known = self.known.lock().await;
        let Some(lock) = self.locked(&mut known, used).await? else {
            return Ok(());
        };
        match self.refresh(&mut known, &lock).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // The authorization server may come back; a new sign-in would not help.
            Err(error) if is_passing(&error) => return Err(not_signed_in(error)),
            Err(error) => self.notes.detail(&format!("refresh: {error}")),
        }
        self.ask(&mut known, &lock, challenge, purpose).await
    }

    /// After a 403 that names scopes: signs in for more (MCP-AU-11).
    ///
    /// # Errors
    /// [`BridgeFault::NotSignedIn`], with the reason.
    pub(crate) async fn step_up(
        self: &Arc<Self>,
        challenge: Challenge,
        used: Option<String>,
        purpose: For,
    ) -> Result<(), BridgeFault> {
        let this = Arc::clone(self);
        self.whole(async move {
            let mut known = this.known.lock().await;
            let Some(lock) = this.locked(&mut known, used.as_deref()).await? else {
                return Ok(());
            };
            this.ask(&mut known, &lock, &challenge, purpose).await
        })
        .await
    }

    /// Deletes the tokens, and gives them back to the authorization server. `false` if there were
    /// none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sign_out(&self) -> Result<bool, StoreError> {
        let lock = self.sign_in.place.lock().await?;
        let Some(held) = lock.read::<AccountFile>()? else {
            return Ok(false);
        };
        lock.delete()?;
        let tokens = [
            (&held.refresh, "refresh_token"),
            (&held.access, "access_token"),
        ];
        for (token, hint) in tokens {
            let Some(token) = token else { continue };
            let now = OffsetDateTime::now_utc();
            let (server, client) = (&held.server, &held.client);
            let given = oauth::revoke(&self.egress, server, client, token, hint, now).await;
            if let Err(error) = given {
                self.notes
                    .say(&format!("The server could not revoke a token: {error}."));
            }
        }
        Ok(true)
    }

    fn read_once(&self, known: &mut KnownAccount) -> Result<(), StoreError> {
        if !known.is_read {
            known.held = self.sign_in.place.read()?;
            known.is_read = true;
        }
        Ok(())
    }

    /// Waits for the lock. `None` if another copy renewed the token meanwhile.
    async fn locked(
        &self,
        known: &mut KnownAccount,
        used: Option<&str>,
    ) -> Result<Option<Locked>, BridgeFault> {
        // Another request of this process may have done it.
        let is_newer = |held: &AccountFile| held.access.is_some() && held.access.as_deref() != used;
        if known.held.as_ref().is_some_and(is_newer) {
            return Ok(None);
        }
        let lock = self.sign_in.place.lock().await.map_err(not_signed_in)?;
        known.held = lock.read().map_err(not_signed_in)?;
        known.is_read = true;
        Ok(if known.held.as_ref().is_some_and(is_newer) {
            None
        } else {
            Some(lock)
        })
    }

    /// `false` if there is nothing to refresh with.
    async fn refresh(&self, known: &mut KnownAccount, lock: &Locked) -> Result<bool, OauthError> {
        let Some(held) = &mut known.held else {
            return Ok(false);
        };
        let Some(token) = held.refresh.clone() else {
            return Ok(false);
        };
        let _redeeming = Redeeming::begin(self);
        let tokens = oauth::redeem(
            &self.egress,
            &held.server,
            &held.client,
            Grant::Refresh { token: &token },
            held.resource.as_deref(),
            None,
            OffsetDateTime::now_utc(),
        )
        .await;
        match tokens {
            Ok(tokens) => {
                held.take(tokens);
                self.keep(lock, held);
                self.notes.detail("The token was refreshed.");
                Ok(true)
            }
            Err(error) => {
                if error.is_final() || error.is_unknown_client() {
                    held.access = None;
                    held.refresh = None;
                    if error.is_unknown_client() {
                        held.is_registered = false;
                    }
                    self.keep(lock, held);
                }
                Err(error)
            }
        }
    }

    fn keep(&self, lock: &Locked, held: &AccountFile) {
        if let Err(error) = lock.write(held) {
            // The tokens still serve this process.
            self.notes
                .say(&format!("The tokens could not be stored: {error}."));
        }
    }

    async fn ask(
        &self,
        known: &mut KnownAccount,
        lock: &Locked,
        challenge: &Challenge,
        purpose: For,
    ) -> Result<(), BridgeFault> {
        if purpose == For::Ourselves {
            return Err(BridgeFault::NotSignedIn(
                "the tokens are no longer valid".into(),
            ));
        }
        let earlier = known.held.clone();
        let held = self
            .in_the_browser(earlier, lock, challenge)
            .await
            .map_err(not_signed_in)?;
        self.notes.say("You are signed in.");
        known.held = Some(held);
        Ok(())
    }

    /// One sign-in.
    async fn in_the_browser(
        &self,
        earlier: Option<AccountFile>,
        lock: &Locked,
        challenge: &Challenge,
    ) -> Result<AccountFile, NoSignIn> {
        let found = oauth::discover(&self.egress, &self.url, challenge).await?;
        let earlier = earlier.filter(|held| held.server.is_same(&found.server));
        let scope = match &self.sign_in.scope {
            Some(scope) => Some(scope.clone()),
            None => {
                let granted = earlier.as_ref().and_then(|held| held.scope.as_deref());
                oauth::offered_scopes(challenge, &found, granted)
            }
        };
        let known_port = earlier.as_ref().filter(|held| held.is_registered);
        let known_port = known_port.and_then(|held| Url::parse(&held.redirect_uri).ok()?.port());
        let port = self.sign_in.callback_port;
        let mut callbacks = Callbacks::open(port, port.or(known_port)).await?;
        let redirect_uri = callbacks.redirect_uri();
        let client = self
            .client(&found, earlier.as_ref(), &redirect_uri, scope.as_deref())
            .await?;
        let mut held = AccountFile::new(&found, client, redirect_uri, scope);
        // The next try uses the same registration.
        self.keep(lock, &held);
        let attempt = AuthorizationAttempt::begin()?;
        let address = attempt.address(
            &self.egress,
            &found.server,
            &held.client.client_id,
            &held.redirect_uri,
            found.resource.as_deref(),
            held.scope.as_deref(),
        )?;
        self.notes.say(&format!(
            "Sign in to {} in the browser: {address}",
            self.url.host_str().unwrap_or_default()
        ));
        if let Some(named) = &self.sign_in.browser
            && let Err(error) = open_browser(named, address.as_str())
        {
            self.notes.say(&format!(
                "The browser could not be opened ({error}). Open the address yourself."
            ));
        }
        let answer = tokio::time::timeout(self.sign_in.within, callbacks.next(&attempt.state));
        let answer = answer
            .await
            .map_err(|_| NoSignIn::Late(self.sign_in.within.as_secs()))??;
        let _redeeming = Redeeming::begin(self);
        let tokens = self.redeem(&found, &held, &attempt, &answer.callback).await;
        let ending = match &tokens {
            Ok(_) => Ending::SignedIn,
            Err(_) => Ending::Failed,
        };
        answer.show(ending).await;
        held.take(tokens?);
        self.keep(lock, &held);
        Ok(held)
    }

    async fn redeem(
        &self,
        found: &Discovered,
        held: &AccountFile,
        attempt: &AuthorizationAttempt,
        callback: &oauth::Callback,
    ) -> Result<Tokens, OauthError> {
        let code = AuthorizationAttempt::check(&found.server, callback)?;
        oauth::redeem(
            &self.egress,
            &found.server,
            &held.client,
            Grant::Code {
                code: &code,
                verifier: &attempt.verifier,
                redirect_uri: &held.redirect_uri,
            },
            found.resource.as_deref(),
            None,
            OffsetDateTime::now_utc(),
        )
        .await
    }

    /// MCP-AC-1: a client id that was given, a metadata document, an earlier registration, a new
    /// one.
    async fn client(
        &self,
        found: &Discovered,
        earlier: Option<&AccountFile>,
        redirect_uri: &str,
        scope: Option<&str>,
    ) -> Result<ClientIdentity, OauthError> {
        if let Some(id) = &self.sign_in.client_id {
            return Ok(ClientIdentity::public(id));
        }
        if let Some(document) = &self.sign_in.client_metadata_url
            && found.server.client_id_metadata_document_supported
        {
            return Ok(ClientIdentity::public(document.as_str()));
        }
        if let Some(held) = earlier
            && held.is_registered
            && held.redirect_uri == redirect_uri
        {
            return Ok(held.client.clone());
        }
        let registration = Registration {
            client_name: "Portolan connect",
            client_uri: "https://github.com/portolan/portolan",
            redirect_uri,
            scope,
        };
        oauth::register(&self.egress, &found.server, &registration).await
    }
}

/// Why a sign-in failed.
#[derive(Debug, thiserror::Error)]
enum NoSignIn {
    #[error(transparent)]
    Oauth(#[from] OauthError),
    #[error("the callback could not be received: {0}")]
    Callback(#[from] std::io::Error),
    #[error("nothing came back from the browser within {0} seconds")]
    Late(u64),
}

fn not_signed_in(error: impl std::fmt::Display) -> BridgeFault {
    BridgeFault::NotSignedIn(error.to_string())
}

fn is_passing(error: &OauthError) -> bool {
    matches!(error, OauthError::Egress(_))
        || matches!(error, OauthError::Status { status, .. } if status.is_server_error())
}
