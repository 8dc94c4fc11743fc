//! Requests with `Authorization: Bearer` (API-2): the token is looked up before the route, and the
//! scope of the route is required. Cookies of such a request count for nothing.

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use portolan_keys::{SecretToken, TokenForm};
use portolan_net::layers::{Arrival, HeaderCredential};
use portolan_site::{
    console_error::ConsoleError, presented_token::PresentedToken, state::AuthState,
    throttle::API_REQUESTS,
};
use portolan_storage::{Reason, accounts::access_tokens};

use crate::token_scopes::{self, TokenAccess};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The paths of the router that the document does not name.
const UNDOCUMENTED: [&str; 2] = ["/api/v1/openapi.json", "/api/v1/{*rest}"];

/// Lets a request without a bearer token pass as it is, and one with a valid token as that token.
pub(crate) async fn admit(
    State(state): State<AuthState>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(text) = presented(request.headers()) else {
        return next.run(request).await;
    };
    request.headers_mut().remove(header::COOKIE);
    request.extensions_mut().insert(HeaderCredential);
    let token = match find(&state, text.as_deref()).await {
        Ok(token) => token,
        Err(error) => return challenged(error),
    };
    if let Some(arrival) = request.extensions().get::<Arrival>() {
        arrival.note_authorised();
    }
    let left = state.throttle.api_request(token.id, state.now()).await;
    let left = match left {
        Ok(left) => left,
        Err(early) => {
            let error = ConsoleError::over_rate(early.seconds()).into_response();
            return limited(error, 0);
        }
    };
    let answer = match require_scope(&request, &token) {
        Ok(()) => {
            request.extensions_mut().insert(token);
            next.run(request).await
        }
        Err(error) => challenged(error),
    };
    limited(answer, left)
}

/// The text of a bearer token; `Some(None)` if the request has several credentials or no readable
/// one. `None` without a bearer token: other schemes belong to proxies in front.
fn presented(headers: &HeaderMap) -> Option<Option<String>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let bearer = |value: &HeaderValue| {
        let bytes = value.as_bytes();
        let (scheme, rest) = bytes.split_at(bytes.len().min(6));
        (scheme.eq_ignore_ascii_case(b"bearer") && rest.first().is_none_or(|b| *b == b' ')).then(
            || {
                std::str::from_utf8(rest)
                    .ok()
                    .map(|text| text.trim().to_owned())
            },
        )
    };
    let (first, more) = (values.next()?, values.next());
    match more {
        None => bearer(first),
        Some(_) => headers
            .get_all(header::AUTHORIZATION)
            .iter()
            .any(|value| bearer(value).is_some())
            .then_some(None),
    }
}

/// Looks the token up. Tokens and keys of MCP have other forms and are never looked up (API-7).
async fn find(state: &AuthState, text: Option<&str>) -> Result<PresentedToken, ConsoleError> {
    let form = |text: &str| {
        [TokenForm::PersonalToken, TokenForm::WorkspaceToken]
            .into_iter()
            .find_map(|form| SecretToken::parse(form, text))
    };
    let secret = text
        .and_then(form)
        .ok_or_else(ConsoleError::invalid_token)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let token = access_tokens::open(&mut tx, &secret.digest(), state.now()).await?;
    tx.commit().await?;
    token
        .map(PresentedToken::new)
        .ok_or_else(ConsoleError::invalid_token)
}

fn require_scope(request: &Request, token: &PresentedToken) -> Result<(), ConsoleError> {
    let Some(path) = request.extensions().get::<MatchedPath>() else {
        return Ok(());
    };
    if UNDOCUMENTED.contains(&path.as_str()) || request.method() == Method::OPTIONS {
        return Ok(());
    }
    match token_scopes::access(request.method(), path.as_str()) {
        TokenAccess::Any => Ok(()),
        TokenAccess::Scope(scope) if token.has(scope) => Ok(()),
        TokenAccess::Scope(scope) => Err(ConsoleError::insufficient_scope(scope)),
        TokenAccess::BrowserOnly => Err(ConsoleError::browser_only()),
    }
}

/// The refusal with the challenge of RFC 6750.
fn challenged(error: ConsoleError) -> Response {
    let challenge = match error.status() {
        StatusCode::UNAUTHORIZED => r#"Bearer realm="portolan", error="invalid_token""#,
        StatusCode::FORBIDDEN => r#"Bearer realm="portolan", error="insufficient_scope""#,
        _ => return error.into_response(),
    };
    let mut answer = error.into_response();
    let value = HeaderValue::from_static(challenge);
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    answer
}

/// Adds what is left of the token's budget (draft-ietf-httpapi-ratelimit-headers-10).
fn limited(mut answer: Response, left: u64) -> Response {
    let burst = u64::try_from(API_REQUESTS.burst).unwrap_or(1).max(1);
    let seconds = API_REQUESTS.per.whole_seconds().unsigned_abs();
    let until_full = (burst.saturating_sub(left) * seconds).div_ceil(burst);
    let texts = [
        (
            RATE_LIMIT_POLICY,
            format!("\"token\";q={burst};w={seconds}"),
        ),
        (RATE_LIMIT, format!("\"token\";r={left};t={until_full}")),
    ];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::try_from(text) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}
