//! Where to go on after signing in.

use portolan_model::id::{RequestId, UserId};
use portolan_storage::{Reason, authorization_requests, clients, invitations, members};

use super::target::{ConsolePage, Target};
use crate::{browser::Browser, pages::PageError, state::AuthState};

/// The target of a sign-in, with what its pages show of it. Made from what is stored, never a URL of the visitor's (S8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// Where to.
    pub target: Target,
    /// Who asks, if a client does, for the headline.
    client_name: Option<String>,
    /// Prefills the form (A10).
    login_hint: Option<String>,
    /// The client wants the person to prove who they are now (A10).
    wants_fresh: bool,
}

impl Continuation {
    /// Reads the `request` parameter of a page. [`PageError::StartAgain`] for a request that is not alive and of this browser;
    /// whose it is otherwise is not told (case 30). What is no place at all is one of these.
    pub(super) async fn load(
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
            // Whoever has the id came by the link in the message, which went to this address.
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

    /// The word for hidden fields; empty for the console.
    pub fn parameter(&self) -> String {
        self.target.to_string()
    }

    /// Who asks, if a client does.
    pub fn client_name(&self) -> Option<&str> {
        self.client_name.as_deref()
    }

    /// Whether an earlier sign-in, here or elsewhere, is not enough for who asks.
    pub(super) const fn wants_fresh(&self) -> bool {
        self.wants_fresh
    }

    /// What the address field begins with.
    pub fn login_hint(&self) -> &str {
        self.login_hint.as_deref().unwrap_or_default()
    }
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
    })
}
