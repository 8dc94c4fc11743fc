//! Sign-up, verification, sign-in and sign-out (AUTH-1.9, AUTH-1.10): plain forms; the only
//! script is that of passkeys.
//!
//! Three guarantees hold on every page here:
//!
//! - A page does not reveal whether an address has an account. Known and unknown addresses take the
//!   same path, with the same text, status and cost (AUTH-L5).
//! - Every form carries a token that is bound to the browser, beside the fetch-site layer
//!   (AUTH-S5).
//! - The continuation is an enum, made from a stored request or from an address that can only be
//!   one of the console's. It is never a URL that the visitor supplies (AUTH-S8, CASE-44).

pub mod breached;
mod code;
mod console_address;
mod continuation;
mod device;
pub mod federation;
mod passkey;
mod password;
mod reset;
mod sign_out;
mod signup;
mod target;
pub mod throttle;
pub mod tries;
mod verify;
mod workspace;

use axum::{
    Router,
    routing::{get, post},
};
use portolan_keys::{
    Keys, Secret,
    password::{self as rules, PasswordRule},
};

pub(crate) use continuation::path_after;
pub use continuation::{Continuation, login_path};
pub(crate) use password::{wait_sentence, with_retry_after};
pub(crate) use signup::sentence;
pub use target::{AccountPage, ConsolePage, Target};
pub(crate) use verify::digits;

use crate::{
    browser::Browser,
    forms,
    pages::{self, FormTarget, PageError},
    state::AuthState,
};

/// Routes of the pages before and around the session.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    let router = Router::new()
        .route("/signup", get(signup::show).post(signup::submit))
        .route("/verify", get(verify::show).post(verify::submit))
        .route("/verify/resend", post(verify::resend))
        .route("/reset", get(reset::show).post(reset::submit))
        .route("/reset/choose", get(reset::show_choice).post(reset::choose))
        .route("/logout", post(sign_out::submit))
        .route(
            "/workspaces/new",
            get(workspace::show).post(workspace::submit),
        );
    let with_script = Router::new()
        .route("/login", get(password::show).post(password::submit))
        .route("/welcome", get(password::welcome))
        .route("/login/passkey", post(passkey::submit))
        .route("/login/passkey/options", post(passkey::options))
        .route("/login/code", post(code::submit))
        .route("/login/code/passkey", post(passkey::submit_code))
        .route("/login/code/options", post(passkey::code_options));
    // After a return from a provider the second step may follow, which a passkey can be.
    let with_script = with_script.merge(federation::router());
    pages::protect(router, &state.site, FormTarget::Here).merge(pages::protect(
        with_script,
        &state.site,
        FormTarget::HereWithScript,
    ))
}

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
