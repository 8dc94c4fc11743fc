//! Form tokens of the login pages, and the rules for a new password.

use portolan_keys::{
    Keys, Secret,
    password::{self as rules, PasswordRule},
};
use portolan_site::{browser::Browser, forms, pages::fault::PageError, state::AuthState};

/// The token of this browser's forms on these pages.
pub(crate) fn form_token(keys: &Keys, browser: &Browser) -> String {
    forms::token(keys, &[b"login", browser.digest().as_bytes()])
}

/// Refuses a form of another browser. A browser without the cookie cannot have received a form
/// (login CSRF).
pub(crate) fn check_form(keys: &Keys, browser: &Browser, presented: &str) -> Result<(), PageError> {
    let is_ours = !browser.is_new()
        && forms::is_valid(keys, &[b"login", browser.digest().as_bytes()], presented);
    if is_ours {
        Ok(())
    } else {
        Err(PageError::ForeignForm)
    }
}

/// Checks the rules for a new password (AUTH-L3), and that no list of stolen passwords has it
/// (AUTH-L4). `inputs` are texts that a guesser knows, such as the address.
pub(crate) async fn check_password(
    state: &AuthState,
    password: &Secret<String>,
    inputs: &[&str],
) -> Result<(), PasswordRule> {
    rules::check_new(password, inputs)?;
    if state.config.breached.know(&state.egress, password).await {
        return Err(PasswordRule::Breached);
    }
    Ok(())
}
