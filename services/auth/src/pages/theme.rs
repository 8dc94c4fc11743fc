//! Light or dark, as the person chose in the console or on the account page: the cookie `theme`,
//! which the console reads and writes too. Without one the system decides.
//!
//! It is of no use to a thief, so it has no prefix and scripts may read it. A layer keeps it while
//! a page is made, and `layout.html` asks for it.

use axum::{extract::Request, middleware::Next, response::Response};
use axum_extra::extract::CookieJar;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use super::PageError;
use crate::config::Site;

/// Name of the cookie, also in `web/src/color-scheme.ts`.
const COOKIE: &str = "theme";
/// A year.
const MAX_AGE_SECONDS: i64 = 365 * 86_400;

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Theme {
    /// Light, whatever the system has.
    Light,
    /// Dark, whatever the system has.
    Dark,
    /// As the system.
    Auto,
}

tokio::task_local! {
    static CHOSEN: Theme;
}

impl Theme {
    /// As the cookie, forms and `data-theme` have it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Auto => "auto",
        }
    }

    /// Reads [`Theme::word`].
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Light, Self::Dark, Self::Auto]
            .into_iter()
            .find(|theme| theme.word() == word)
    }

    /// What the request's cookie says, if it says anything.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let jar = CookieJar::from_headers(headers);
        jar.get(COOKIE)
            .and_then(|cookie| Self::parse(cookie.value()))
    }

    /// `Set-Cookie` for it.
    pub(crate) fn cookie(self, site: &Site) -> Result<HeaderValue, PageError> {
        let word = self.word();
        let secure = if site.is_secure() { "; Secure" } else { "" };
        let cookie =
            format!("{COOKIE}={word}; Path=/; SameSite=Lax; Max-Age={MAX_AGE_SECONDS}{secure}");
        HeaderValue::try_from(cookie).map_err(|_| PageError::Internal("cookie"))
    }
}

/// Middleware of page routers: the page is made under the theme of its request.
pub(crate) async fn keep(request: Request, next: Next) -> Response {
    let theme = Theme::of(request.headers()).unwrap_or(Theme::Auto);
    CHOSEN.scope(theme, next.run(request)).await
}

/// The theme of the page that is being made.
pub(crate) fn chosen() -> &'static str {
    CHOSEN
        .try_with(|theme| *theme)
        .unwrap_or(Theme::Auto)
        .word()
}

/// For `<meta name="color-scheme">`: what the browser paints before the style sheet is there, and
/// its own controls in.
pub(crate) fn color_scheme() -> &'static str {
    match CHOSEN.try_with(|theme| *theme) {
        Ok(Theme::Light) => "light",
        Ok(Theme::Dark) => "dark",
        Ok(Theme::Auto) | Err(_) => "light dark",
    }
}
