//! What there is.

use askama::Template;
use axum::{
    extract::{Query, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;

use super::{Done, signed_in};
use crate::{
    browser::Browser,
    login::AccountPage,
    pages::{self, PageError},
    session::MaybeSession,
    state::AuthState,
};

#[derive(Template)]
#[template(path = "account.html")]
struct Page<'a> {
    name: &'a str,
    email: &'a str,
    notice: Option<&'static str>,
}

/// Shows the page. What was done is one word of a fixed set.
pub(super) async fn show(
    State(_): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(done): Query<Done>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Overview)?;
    let page = Page {
        name: &session.display_name,
        email: &session.email,
        notice: match done.what() {
            Some("password") => {
                Some("Your password is changed, and other browsers were signed out.")
            }
            Some("email") => {
                Some("Your e-mail address is changed. We told the old one, which can undo it.")
            }
            _ => None,
        },
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}
