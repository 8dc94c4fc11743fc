//! A person's own pages: password, address, signed-in browsers, connected apps (R5). The pages are
//! plain forms; script serves passkeys and comfort only.
//!
//! A change of sign-in methods requires a recent sign-in ([`confirm`], AUTH-S2). Forms are bound to
//! the browser and its session.

pub(crate) mod apps;
pub(crate) mod confirm;
pub(crate) mod confirm_passkey;
pub(crate) mod delete;
pub(crate) mod email;
pub(crate) mod factor;
pub(crate) mod guard;
pub(crate) mod linked;
pub(crate) mod overview;
pub(crate) mod passkeys;
pub(crate) mod password;
pub(crate) mod sessions;
pub(crate) mod sign_in;
pub(crate) mod two_factor;
pub(crate) mod undo;

use axum::{
    Router,
    routing::{get, post},
};
use http::StatusCode;
use portolan_site::{
    pages::{self, FormTarget},
    state::AuthState,
};

/// Routes of the pages.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    // Links that redirect a browser; a HEAD request must not follow them.
    let not_allowed = || async { StatusCode::METHOD_NOT_ALLOWED };
    let router = Router::new()
        .route("/account", get(overview::show).post(overview::rename))
        .route("/account/theme", post(overview::choose_theme))
        .route("/account/delete", get(delete::show).post(delete::submit))
        .route(
            "/account/password",
            get(password::show).post(password::submit),
        )
        .route("/account/email", get(email::show).post(email::submit))
        .route("/account/email/confirm", post(email::confirm))
        .route("/account/undo", get(undo::show).post(undo::submit))
        .route(
            "/account/sessions",
            get(sessions::show).post(sessions::submit),
        )
        .route(
            "/account/two-factor",
            get(two_factor::show).post(two_factor::submit),
        )
        .route("/account/sign-in", get(sign_in::show).post(sign_in::submit))
        .route(
            "/account/sign-in/add/{provider}",
            get(sign_in::add).head(not_allowed),
        )
        .route(
            "/account/confirm/with/{provider}",
            get(sign_in::confirm).head(not_allowed),
        )
        .route("/account/apps", get(apps::show).post(apps::submit))
        .route("/account/linked", get(linked::show).post(linked::submit))
        .route("/account/factor", get(factor::show))
        .route(
            "/account/passkeys",
            get(passkeys::show).post(passkeys::submit),
        )
        .route("/account/passkeys/options", post(passkeys::options))
        .route("/account/confirm", get(confirm::show).post(confirm::submit))
        .route("/account/confirm/passkey", post(confirm_passkey::submit))
        .route("/account/confirm/options", post(confirm_passkey::options));
    pages::protect(router, &state.site, FormTarget::HereWithScript)
}
