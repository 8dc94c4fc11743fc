//! Sign-out (AUTH-S4).

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use portolan_site::{
    pages::{self, fault::PageError, theme::Theme},
    request_context::RequestContext,
    session,
    state::AuthState,
};

/// Ends the session and redirects to the sign-in page. Connected AI clients stay connected. The
/// form has no token, because the console's button is not on one of our pages. The fetch-site layer
/// prevents posts from other sites.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    context: RequestContext,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let removal = session::end(&state, &headers, &context).await?;
    // All cookies are cleared, that of the theme among them.
    let path = match Theme::of(&headers) {
        Some(theme) => format!("/login?done=signed-out&theme={}", theme.word()),
        None => "/login?done=signed-out".to_owned(),
    };
    let mut response = pages::see_other(&path)?.into_response();
    response.headers_mut().append(header::SET_COOKIE, removal);
    // Browsers apply it on secure origins only; the cookie above works everywhere.
    response.headers_mut().insert(
        HeaderName::from_static("clear-site-data"),
        HeaderValue::from_static("\"cookies\""),
    );
    Ok(response)
}
