//! Light or dark, as the person chose in the console or on the account page: the cookie `theme`,
//! which the console reads and writes too. Without the cookie the system decides.
//!
//! The cookie has no value for a thief, so it has no prefix and scripts may read it. A layer sets
//! it while a page is rendered, and `layout.html` reads it.

use axum::{extract::Request, middleware::Next, response::Response};
use axum_extra::extract::CookieJar;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use crate::{config::Site, pages::fault::PageError};

/// Name of the cookie, also in `web/src/color-scheme.ts`.
const COOKIE: &str = "theme";

/// A year.
const MAX_AGE_SECONDS: i64 = 365 * 86_400;

/// The chosen theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// Always light.
    Light,
    /// Always dark.
    Dark,
    /// The system's theme.
    Auto,
}

tokio::task_local! {
    static CHOSEN: Theme;
}

impl Theme {
    /// Its value in the cookie, in forms and in `data-theme`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Auto => "auto",
        }
    }

    /// Reads the text of [`Theme::word`].
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Light, Self::Dark, Self::Auto]
            .into_iter()
            .find(|theme| theme.word() == word)
    }

    /// The theme in the request's cookie, if there is one.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let jar = CookieJar::from_headers(headers);
        jar.get(COOKIE)
            .and_then(|cookie| Self::parse(cookie.value()))
    }

    /// The `Set-Cookie` value of the theme.
    pub fn cookie(self, site: &Site) -> Result<HeaderValue, PageError> {
        let word = self.word();
        let secure = if site.is_secure() { "; Secure" } else { "" };
        let cookie =
            format!("{COOKIE}={word}; Path=/; SameSite=Lax; Max-Age={MAX_AGE_SECONDS}{secure}");
        HeaderValue::try_from(cookie).map_err(|_| PageError::Internal("cookie"))
    }
}

/// Middleware of page routers: renders the page with the theme of its request.
pub async fn keep(request: Request, next: Next) -> Response {
    let theme = Theme::of(request.headers()).unwrap_or(Theme::Auto);
    CHOSEN.scope(theme, next.run(request)).await
}

/// The theme of the page that is being rendered.
pub fn chosen() -> &'static str {
    CHOSEN
        .try_with(|theme| *theme)
        .unwrap_or(Theme::Auto)
        .word()
}

/// The value of `<meta name="color-scheme">`: the browser's colours for its own controls, and
/// before the style sheet arrives.
pub fn color_scheme() -> &'static str {
    match CHOSEN.try_with(|theme| *theme) {
        Ok(Theme::Light) => "light",
        Ok(Theme::Dark) => "dark",
        Ok(Theme::Auto) | Err(_) => "light dark",
    }
}
