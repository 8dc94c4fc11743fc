//! Server-rendered HTML: the frame of every page, and its responses.
//!
//! Pages are typed askama templates over `assets/pages.css`, which documents its class names. They
//! work without script, except for passkeys, which need it. `page.js` adds comfort only: times in
//! the reader's time zone, buttons that copy. Each page's template is in `templates/`, and extends
//! `layout.html`.

pub mod fault;
pub mod moment;
pub mod theme;

use askama::Template;
use axum::{
    Router,
    body::Body,
    extract::DefaultBodyLimit,
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use portolan_net::layers::{Compress, Entrance, FetchSite, PageKind, SecurityHeaders};

use crate::{config::Site, pages::fault::PageError, state::AuthState};

/// The policy of AUTH-S6 for our pages, whose only image is a `data:` URL in the style sheet. It
/// has `form-action`, so it does not fit pages whose form redirects to a client (AUTH-N7).
const PAGES_CSP: &str = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' data:; base-uri 'none'; \
     frame-ancestors 'none'; form-action 'self'";

/// The same for pages with script: passkeys, and comfort on account pages. The script is our own
/// files, nothing inline, and connects to this service only.
const SCRIPT_CSP: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; \
     base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// The first policy without `form-action`: browsers apply it to all redirects of a form, custom
/// schemes included (AUTH-N7).
const CLIENT_REDIRECT_CSP: &str = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' data:; base-uri 'none'; \
     frame-ancestors 'none'";

/// Most bytes of a form.
const FORM_LIMIT: usize = 64 * 1024;

/// Both palettes have the names and values of `web/src/theme.ts`. Dark applies by choice, or by a
/// dark system without a choice.
const STYLES: &str = concat!(
    include_str!("../assets/fonts.css"),
    include_str!("../assets/light.css"),
    "@media (prefers-color-scheme: dark) {\n:root:not([data-theme=\"light\"]) {\n",
    include_str!("../assets/dark.css"),
    "}\n}\n:root[data-theme=\"dark\"] {\n",
    include_str!("../assets/dark.css"),
    "}\n",
    include_str!("../assets/pages.css"),
);

const PASSKEY_SCRIPT: &str = include_str!("../assets/passkey.js");

const PAGE_SCRIPT: &str = include_str!("../assets/page.js");

/// Routes of the files that pages load.
pub fn router(_state: &AuthState) -> Router<AuthState> {
    Router::new()
        .route("/auth-assets/pages.css", get(styles))
        .route(
            "/auth-assets/passkey.js",
            get(|| async { script(PASSKEY_SCRIPT) }),
        )
        .route(
            "/auth-assets/page.js",
            get(|| async { script(PAGE_SCRIPT) }),
        )
        .layer(Compress.layer())
}

async fn styles() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, STYLES).into_response()
}

fn script(text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}

/// Whether a page's form may end in a redirect to an AI client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormTarget {
    /// Forms stay on this service: sign-in, sign-up.
    Here,
    /// The same, on pages that use passkeys or `page.js`.
    HereWithScript,
    /// The form's response may redirect to a client: consent.
    Client,
}

/// Adds the layers that every router of pages needs. Input is text and arrives in time (REVIEW-S-2,
/// REVIEW-S-6). Faults become pages, and other sites cannot post (AUTH-S5). Pages are never cached,
/// framed or loaded from elsewhere (AUTH-S6, AUTH-S7). COOP is `unsafe-none`, because clients open
/// these pages in popups (AUTH-N8).
pub fn protect(router: Router<AuthState>, site: &Site, target: FormTarget) -> Router<AuthState> {
    let csp = match target {
        FormTarget::Here => PAGES_CSP,
        FormTarget::HereWithScript => SCRIPT_CSP,
        FormTarget::Client => CLIENT_REDIRECT_CSP,
    };
    let headers = SecurityHeaders::new(PageKind::Authorization, site.is_secure())
        .with_csp(&HeaderValue::from_static(csp))
        .no_store();
    router
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .layer(Entrance::new(|fault| PageError::Entrance(fault).into_response()).layer())
        .layer(middleware::from_fn(fault::show_faults))
        .layer(middleware::from_fn(theme::keep))
        .layer(FetchSite::new([site.origin()]).layer())
        .layer(headers.layer())
}

/// A rendered template as a response.
pub fn html(status: StatusCode, page: &impl Template) -> Result<Response, PageError> {
    Ok(document(status, page.render()?))
}

/// A redirect after a form: 303, not cached.
pub fn see_other(path: &str) -> Result<Response, PageError> {
    let location =
        HeaderValue::try_from(path).map_err(|_| PageError::Internal("redirect target"))?;
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// A page with a message only.
#[derive(Debug, Template)]
#[template(path = "message.html")]
pub struct Message<'a> {
    /// The large number of an error page.
    pub status: Option<u16>,
    /// Headline.
    pub title: &'a str,
    /// One or two sentences: the event and the remedy.
    pub text: &'a str,
    /// The next page: label and path.
    pub link: Option<(&'a str, &'a str)>,
    /// The request id, for support.
    pub request_id: Option<&'a str>,
}

fn fault_page(status: StatusCode, title: &str, text: &str, request_id: Option<&str>) -> Response {
    let page = Message {
        status: Some(status.as_u16()),
        title,
        text,
        link: None,
        request_id,
    };
    match page.render() {
        Ok(text) => document(status, text),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the fault page has a fault"
            );
            status.into_response()
        }
    }
}

fn document(status: StatusCode, text: String) -> Response {
    let headers: [(HeaderName, &str); 2] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, Body::from(text)).into_response()
}
