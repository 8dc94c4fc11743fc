//! The token of commands (`portolan login`, CONF-15): requested in the browser, kept in a file that
//! its owner alone reads.

use std::{fmt, io, path::PathBuf, time::Duration};

use portolan_upstream::oauth::{AuthorizationAttempt, OauthError};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::account::{AccountFiles, Callbacks, Ending, Returned, StoreError, open_browser};

/// A token of the management API with its facts.
#[derive(Clone, Serialize, Deserialize)]
pub struct CommandToken {
    /// Origin of the installation.
    pub url: String,
    /// Its name in the console.
    pub name: String,
    /// Its end (RFC 3339).
    pub expires_at: String,
    /// The token.
    pub token: String,
}

/// The token is not shown.
impl fmt::Debug for CommandToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandToken")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The file of the token for one installation.
#[derive(Debug, Clone)]
pub struct CommandTokenFile(AccountFiles);

impl CommandTokenFile {
    /// The file for the installation at `url` in `folder`. The path of `url` does not count.
    pub fn within(folder: PathBuf, url: &Url) -> Self {
        let mut origin = url.clone();
        origin.set_path("/");
        origin.set_query(None);
        Self(AccountFiles::within(folder, &origin, "commands"))
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.0.file()
    }

    /// The token, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<Option<CommandToken>, StoreError> {
        self.0.read()
    }

    /// Keeps a token in the place of an earlier one, which is returned.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn keep(&self, token: &CommandToken) -> Result<Option<CommandToken>, StoreError> {
        let lock = self.0.lock().await?;
        let earlier = lock.read()?;
        lock.write(token)?;
        Ok(earlier)
    }

    /// Deletes the file.
    ///
    /// # Errors
    /// The file cannot be deleted.
    pub async fn delete(&self) -> Result<(), StoreError> {
        self.0.lock().await?.delete()
    }
}

/// How the browser is asked.
#[derive(Debug, Clone)]
pub struct BrowserRequest {
    /// Command of the browser (`BROWSER`); empty for the system's own. `None` opens none: the
    /// address is only written to standard error.
    pub browser: Option<String>,
    /// Time for the person.
    pub within: Duration,
}

/// Facts for the page of the console.
#[derive(Debug)]
pub struct PageFacts {
    /// The port on which the browser comes back to 127.0.0.1.
    pub port: u16,
    /// Comes back with the code.
    pub state: String,
    /// The challenge of the secret that redeems the code (RFC 7636, S256).
    pub challenge: String,
}

/// A code that came back, with the browser that waits for its end.
#[derive(Debug)]
pub struct CommandCode {
    returned: Returned,
    /// The code.
    pub code: String,
    /// The secret that redeems it.
    pub verifier: String,
}

impl CommandCode {
    /// Shows in the browser that the person is signed in.
    pub async fn succeed(self) {
        self.returned.show(Ending::SignedIn).await;
    }

    /// Shows in the browser that the person is not.
    pub async fn fail(self) {
        self.returned.show(Ending::Failed).await;
    }
}

/// Why no code came.
#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    /// No secrets could be made.
    #[error(transparent)]
    Secrets(#[from] OauthError),
    /// The port does not work.
    #[error("the callback could not be received: {0}")]
    Callback(#[from] io::Error),
    /// The person did not answer in time.
    #[error("nothing came back from the browser within {0} seconds")]
    Late(u64),
    /// The person refused.
    #[error("the sign-in was cancelled in the browser")]
    Refused,
}

/// Opens the page of the console whose address `page` makes, and waits for its code. `say` gets lines
/// for the person.
///
/// # Errors
/// [`NoCode`].
pub async fn code_from_browser(
    request: &BrowserRequest,
    say: impl Fn(&str),
    page: impl FnOnce(&PageFacts) -> Url,
) -> Result<CommandCode, NoCode> {
    let mut callbacks = Callbacks::open(None, None).await?;
    let attempt = AuthorizationAttempt::begin()?;
    let address = page(&PageFacts {
        port: callbacks.port(),
        state: attempt.state.clone(),
        challenge: attempt.challenge(),
    });
    say(&format!("Sign in with the browser: {address}"));
    if let Some(named) = &request.browser
        && let Err(error) = open_browser(named, address.as_str())
    {
        say(&format!(
            "The browser could not be opened ({error}). Open the address yourself."
        ));
    }
    let returned = tokio::time::timeout(request.within, callbacks.next(&attempt.state)).await;
    let returned = returned.map_err(|_| NoCode::Late(request.within.as_secs()))??;
    match returned.callback.code.clone() {
        Some(code) if returned.callback.error.is_none() && !code.is_empty() => Ok(CommandCode {
            returned,
            code,
            verifier: attempt.verifier,
        }),
        _ => {
            returned.show(Ending::Cancelled).await;
            Err(NoCode::Refused)
        }
    }
}
