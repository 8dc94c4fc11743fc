//! The continuation after signing in.

use portolan_model::id::UserId;
use portolan_site::{
    browser::Browser,
    pages::fault::PageError,
    state::AuthState,
    target::{AccountPage, ConsolePage, Target},
};
use portolan_storage::{
    Reason,
    accounts::{invitations, members},
    oauth::{authorization_requests, clients},
};

/// The target of a sign-in, with the texts that its pages show. It is made from a stored request,
/// or from an address that can only be the console's (AUTH-S8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The target.
    pub target: Target,
    /// The client's name for the headline, if a client started the sign-in.
    client_name: Option<String>,
    /// Prefills the form (AUTH-A10).
    login_hint: Option<String>,
    /// True if the client requires a new sign-in (AUTH-A10).
    wants_fresh: bool,
}

impl Continuation {
    /// Reads the `request` parameter of a page.
    ///
    /// Returns [`PageError::StartAgain`] for a request that has expired, belongs to another
    /// browser, or is malformed. The error does not reveal which (CASE-30).
    pub(crate) async fn load(
        state: &AuthState,
        browser: &Browser,
        parameter: Option<&str>,
    ) -> Result<Self, PageError> {
        let target = Target::parse(parameter.unwrap_or_default()).ok_or(PageError::StartAgain)?;
        let plain = Self {
            target,
            client_name: None,
            login_hint: None,
            wants_fresh: false,
        };
        if let Some(id) = plain.target.invitation() {
            // The link with this id was in a message to this address.
            let mut tx = state.store.system(Reason::Workspaces).await?;
            let invitation = invitations::find(&mut tx, id, state.now()).await?;
            return Ok(Self {
                login_hint: invitation.map(|invitation| invitation.address),
                ..plain
            });
        }
        let Some(id) = plain.target.request() else {
            return Ok(plain);
        };
        let mut tx = state.store.system(Reason::SignIn).await?;
        let request = authorization_requests::find(&mut tx, id)
            .await?
            .ok_or(PageError::StartAgain)?;
        if request.browser != *browser.digest() || request.expires_at <= state.now() {
            return Err(PageError::StartAgain);
        }
        let client = clients::get(&mut tx, request.client).await?;
        Ok(Self {
            client_name: Some(client.name),
            wants_fresh: request.max_age.is_some()
                || request.prompt.as_deref().is_some_and(|prompt| {
                    prompt
                        .split(' ')
                        .any(|word| matches!(word, "login" | "select_account"))
                }),
            login_hint: request.login_hint,
            ..plain
        })
    }

    /// The value of hidden fields; empty for the console.
    pub fn parameter(&self) -> String {
        self.target.to_string()
    }

    /// The client's name, if a client started the sign-in.
    pub fn client_name(&self) -> Option<&str> {
        self.client_name.as_deref()
    }

    /// Returns true if an earlier sign-in, here or at a provider, is not enough.
    pub(crate) const fn wants_fresh(&self) -> bool {
        self.wants_fresh
    }

    /// The initial value of the address field.
    pub fn login_hint(&self) -> &str {
        self.login_hint.as_deref().unwrap_or_default()
    }
}

/// The path after signing in. A person who comes from a client and has no workspace creates one
/// first (AUTH-N11). The console has its own page for that.
pub(crate) async fn path_after(
    state: &AuthState,
    user: UserId,
    target: &Target,
) -> Result<String, PageError> {
    Ok(match target {
        Target::Console => "/".to_owned(),
        Target::Request(id) => {
            let mut tx = state.store.system(Reason::Workspaces).await?;
            if members::workspaces_of(&mut tx, user).await?.is_empty() {
                target.on("/workspaces/new")
            } else {
                format!("/oauth/consent/{id}")
            }
        }
        Target::Invitation(id) => format!("/invitations/{id}"),
        Target::Account(page) => page.path().to_owned(),
        Target::Workspace(slug, ConsolePage::Overview) => format!("/w/{slug}"),
        Target::Workspace(slug, page) => format!("/w/{slug}/{}", page.word()),
        Target::Source(slug, source) => format!("/w/{slug}/sources/{source}?tab=credential"),
        Target::Connect(link) => format!("/connect/accounts/{link}"),
        Target::Identity(offer) => format!("/login/connect/{offer}"),
        // A person without a workspace cannot see that address yet.
        Target::At(address) => {
            let mut tx = state.store.system(Reason::Workspaces).await?;
            if members::workspaces_of(&mut tx, user).await?.is_empty() {
                "/".to_owned()
            } else {
                address.as_str().to_owned()
            }
        }
    })
}

/// The path of the page that requests another password, and then leads on to the target (AUTH-L4).
pub(crate) fn stolen_path(target: &Target) -> String {
    target.on_with(AccountPage::Password.path(), "why=stolen")
}
