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

pub(crate) mod code;
pub mod continuation;
pub(crate) mod device;
pub mod federation;
pub(crate) mod form;
pub(crate) mod passkey;
pub(crate) mod password;
pub(crate) mod reset;
pub(crate) mod sign_out;
pub(crate) mod signup;
pub(crate) mod verify;
pub(crate) mod waiting;
pub(crate) mod workspace;

use axum::{
    Router,
    routing::{get, post},
};
use portolan_site::{
    pages::{self, FormTarget},
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
