//! Links to identity providers, with the form token of the browser.

use portolan_site::{browser::Browser, state::AuthState, target::Target};

use crate::login::form::form_token;

/// A link to a provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderLink {
    /// Its name.
    pub(crate) name: String,
    /// Its path.
    pub(crate) path: String,
}

/// The "Continue with …" links, one for each provider of the platform.
pub(crate) fn links(state: &AuthState, browser: &Browser, target: &Target) -> Vec<ProviderLink> {
    let token = form_token(&state.keys, browser);
    let path = |slug: &str| link(&format!("/login/with/{slug}"), target, &token);
    state
        .config
        .sign_in_with
        .list()
        .iter()
        .map(|provider| ProviderLink {
            name: provider.name.clone(),
            path: path(&provider.slug),
        })
        .collect()
}

/// A link with a form token, whose letters need no escape.
pub(crate) fn link(path: &str, target: &Target, token: &str) -> String {
    let with_target = target.on(path);
    let joint = if with_target.contains('?') { '&' } else { '?' };
    format!("{with_target}{joint}t={token}")
}
