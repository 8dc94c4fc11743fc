//! Where to go on after signing in.

use portolan_model::id::{RequestId, UserId};
use portolan_storage::{Reason, authorization_requests, clients, members};

use crate::{browser::Browser, pages::PageError, state::AuthState};

/// The target. An enum, made from what is stored, never a URL of the visitor's (S8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Continuation {
    /// The console.
    Console,
    /// An authorization request that this browser began.
    Request {
        /// Which.
        id: RequestId,
        /// Who asks, for the headline.
        client_name: String,
        /// Prefills the form (A10).
        login_hint: Option<String>,
    },
}

impl Continuation {
    /// Reads the `request` parameter of a page. [`PageError::StartAgain`] unless it names a request that is alive and of this browser;
    /// whose it is otherwise is not told (case 30).
    pub(super) async fn load(
        state: &AuthState,
        browser: &Browser,
        parameter: Option<&str>,
    ) -> Result<Self, PageError> {
        let Some(text) = parameter.filter(|text| !text.is_empty()) else {
            return Ok(Self::Console);
        };
        let id: RequestId = text.parse().map_err(|_| PageError::StartAgain)?;
        let mut tx = state.store.system(Reason::SignIn).await?;
        let request = authorization_requests::find(&mut tx, id)
            .await?
            .ok_or(PageError::StartAgain)?;
        if request.browser != *browser.digest() || request.expires_at <= state.now() {
            return Err(PageError::StartAgain);
        }
        let client = clients::get(&mut tx, request.client).await?;
        Ok(Self::Request {
            id,
            client_name: client.name,
            login_hint: request.login_hint,
        })
    }

    /// The id for hidden fields and links; empty for the console.
    pub fn parameter(&self) -> String {
        match self {
            Self::Console => String::new(),
            Self::Request { id, .. } => id.to_string(),
        }
    }

    /// The request, if it is one.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Self::Console => None,
            Self::Request { id, .. } => Some(*id),
        }
    }

    /// Who asks, if a client does.
    pub fn client_name(&self) -> Option<&str> {
        match self {
            Self::Console => None,
            Self::Request { client_name, .. } => Some(client_name),
        }
    }

    /// What the address field begins with.
    pub fn login_hint(&self) -> &str {
        match self {
            Self::Request {
                login_hint: Some(hint),
                ..
            } => hint,
            _ => "",
        }
    }
}

/// Path of a page of this folder, with the request to go on with.
pub(super) fn with_request(page: &str, request: Option<RequestId>) -> String {
    request.map_or_else(|| page.to_owned(), |id| format!("{page}?request={id}"))
}

/// The sign-in page for an authorization request. With `again`, it is shown to a signed-in person too: another account, or
/// `prompt=login`.
pub fn login_path(request: RequestId, again: bool) -> String {
    format!(
        "/login?request={request}{}",
        if again { "&again=1" } else { "" }
    )
}

/// The path after signing in. Whoever comes from a client and has no workspace yet makes one first (N11); the console shows its own page
/// for that.
pub(super) async fn path_after(
    state: &AuthState,
    user: UserId,
    request: Option<RequestId>,
) -> Result<String, PageError> {
    let Some(id) = request else {
        return Ok("/".to_owned());
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    if members::workspaces_of(&mut tx, user).await?.is_empty() {
        return Ok(with_request("/workspaces/new", request));
    }
    Ok(format!("/oauth/consent/{id}"))
}
