//! The redirect back to the client (AUTH-A6, AUTH-A7, AUTH-A12): parameters appended to the
//! registered URI, `iss` always and once.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use portolan_model::redirect::{self, Destination};
use portolan_site::pages::{self, fault::PageError};

use crate::error::ErrorCode;

/// The redirect with the answer.
#[derive(Clone)]
pub(crate) struct RedirectAnswer {
    location: String,
}

impl RedirectAnswer {
    /// The answer after an approval.
    pub(crate) fn code(issuer: &str, redirect_uri: &str, state: Option<&str>, code: &str) -> Self {
        Self::build(
            redirect_uri,
            &[
                ("code", Some(code)),
                ("state", state),
                ("iss", Some(issuer)),
            ],
        )
    }

    /// The answer after a refusal.
    pub(crate) fn error(
        issuer: &str,
        redirect_uri: &str,
        state: Option<&str>,
        code: ErrorCode,
        description: &str,
    ) -> Self {
        let parameters = [
            ("error", Some(code.as_str())),
            ("error_description", Some(description)),
            ("state", state),
            ("iss", Some(issuer)),
        ];
        Self::build(redirect_uri, &parameters)
    }

    fn build(redirect_uri: &str, parameters: &[(&str, Option<&str>)]) -> Self {
        let mut location = redirect_uri.to_owned();
        for (name, value) in parameters {
            let Some(value) = value else { continue };
            match location.find('?') {
                None => location.push('?'),
                Some(_) if location.ends_with(['?', '&']) => {}
                Some(_) => location.push('&'),
            }
            location.push_str(name);
            location.push('=');
            // Form decoders and `decodeURIComponent` both read `%20` as a space, but not `+`.
            for piece in url::form_urlencoded::byte_serialize(value.as_bytes()) {
                location.push_str(if piece == "+" { "%20" } else { piece });
            }
        }
        Self { location }
    }

    /// The location as text, to be sealed for a second submission (AUTH-N5).
    pub(crate) fn as_str(&self) -> &str {
        &self.location
    }

    /// Reads the text of [`RedirectAnswer::as_str`].
    pub(crate) fn from_text(location: String) -> Self {
        Self { location }
    }

    /// Responds with 303 and an empty body. For a custom scheme it responds with a page with the
    /// link: browsers stay on the page after opening an app, which looks like a failure (AUTH-A12).
    pub(crate) fn into_response(self, client_name: &str) -> Result<Response, PageError> {
        let is_app = matches!(
            redirect::destination(self.location.split('?').next().unwrap_or_default()),
            Ok(Destination::App { .. })
        );
        if is_app {
            return pages::html(
                StatusCode::OK,
                &ReturnToApp {
                    location: &self.location,
                    client_name,
                },
            );
        }
        let mut location = HeaderValue::try_from(self.location)
            .map_err(|_| PageError::Internal("redirect target"))?;
        location.set_sensitive(true);
        let headers = [
            (header::LOCATION, location),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (
                header::REFERRER_POLICY,
                HeaderValue::from_static("no-referrer"),
            ),
        ];
        Ok((StatusCode::SEE_OTHER, headers).into_response())
    }
}

/// The page "Return to the app".
#[derive(Debug, Template)]
#[template(path = "return_to_app.html")]
struct ReturnToApp<'a> {
    location: &'a str,
    client_name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://mcp.example.com";

    fn parameters(answer: &RedirectAnswer) -> Vec<(String, String)> {
        let (_, query) = answer.as_str().split_once('?').unwrap();
        url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
    }

    /// Rule: AUTH-A12. Schemes without a dot are no longer registered, and those registered before
    /// still belong to an app.
    #[test]
    fn a12_an_app_gets_a_page_with_the_link_whatever_its_scheme() {
        for (uri, status) in [
            ("com.example.app:/cb", StatusCode::OK),
            ("undotted://app/cb", StatusCode::OK),
            ("https://a.example/cb", StatusCode::SEE_OTHER),
            ("http://127.0.0.1:3000/cb", StatusCode::SEE_OTHER),
        ] {
            let answer = RedirectAnswer::code(ISSUER, uri, None, "ac_1");
            let response = answer.into_response("App").unwrap();
            assert_eq!(response.status(), status, "{uri}");
        }
    }

    #[test]
    fn a7_every_answer_has_iss_once_and_keeps_the_query_of_the_uri() {
        for uri in [
            "https://a.example/cb",
            "https://a.example/cb?x=1",
            "cursor://app/cb?x=1&",
        ] {
            for answer in [
                RedirectAnswer::code(ISSUER, uri, Some("s"), "ac_1"),
                RedirectAnswer::error(ISSUER, uri, Some("s"), ErrorCode::AccessDenied, "no"),
            ] {
                let parameters = parameters(&answer);
                let of = |wanted: &str| {
                    parameters
                        .iter()
                        .filter(|(name, _)| name == wanted)
                        .map(|(_, value)| value.as_str())
                        .collect::<Vec<_>>()
                };
                assert_eq!(of("iss"), [ISSUER], "{}", answer.as_str());
                assert_eq!(of("state"), ["s"]);
                assert_eq!(
                    of("x").len(),
                    usize::from(uri.contains('x') && uri.contains('?')),
                    "{}",
                    answer.as_str()
                );
                assert!(!answer.as_str().contains('#'));
            }
        }
    }

    #[test]
    fn case_20_state_comes_back_byte_for_byte() {
        let state = format!("&#%\"+ ä<script>{}", "x".repeat(2000));
        let answer = RedirectAnswer::code(ISSUER, "https://a.example/cb", Some(&state), "ac_1");
        assert_eq!(
            parameters(&answer)
                .iter()
                .find(|(name, _)| name == "state")
                .unwrap()
                .1,
            state
        );
        assert!(
            !answer.as_str().contains('+'),
            "both kinds of decoder read it alike"
        );
    }
}
