//! `GET /oauth/authorize` (AUTH-1.2).
//!
//! The order of checks is the security of this endpoint (AUTH-A2): the client, then the redirect
//! URI, then everything else. Until the redirect URI is proved to be the client's, every fault is a
//! page and never a redirect. A valid request becomes a row that is bound to the browser; the login
//! and consent pages refer to it by id.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_model::{
    Timestamp,
    id::RequestId,
    redirect,
    resource::{RequestedResource, Site as ResourceSite},
    scope::{self, ScopeSet},
};
use portolan_site::{
    browser::Browser,
    oauth_parts::REQUEST_SECS,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::MaybeAnySession,
    state::AuthState,
};
use portolan_storage::{
    Reason,
    oauth::{
        authorization_requests::{self, AuthorizationRequest, Status},
        clients::{self, Client},
    },
    platform::connect_events::{NewEvent, Step},
};
use serde_json::Value;
use time::Duration;

use crate::{
    answer::RedirectAnswer,
    clients::{
        first_party,
        metadata_document::{self, DocumentFault},
    },
    connection_diagnostics::{self, DescribeStep},
    error::ErrorCode,
    parameters::Parameters,
};

/// Longest query (AUTH-A1).
const MAX_QUERY: usize = 8 * 1024;

/// Longest `state` (AUTH-A6).
const MAX_STATE: usize = 2 * 1024;

/// Requests that one browser may have open.
const MAX_OPEN: i64 = 100;

/// A fault before the redirect URI is proved, with the text of its page.
#[derive(Debug)]
struct UnprovedFault {
    status: StatusCode,
    title: &'static str,
    text: String,
    rule: &'static str,
}

impl UnprovedFault {
    fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            title: "This app cannot connect",
            text: text.into(),
            rule,
        }
    }
}

/// The page of a [`UnprovedFault`].
#[derive(Debug, Template)]
#[template(path = "oauth_error.html")]
struct FaultPage<'a> {
    status: u16,
    title: &'a str,
    text: &'a str,
    request_id: &'a str,
}

/// A fault after the redirect URI is proved: the error that the redirect carries to the client.
type AuthorizeRefusal = (ErrorCode, &'static str);

/// The handler.
pub(crate) async fn authorize(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    session: MaybeAnySession,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    throttle(&state, &context)?;
    let query = query.unwrap_or_default();
    let parameters = Parameters::parse(query.as_bytes());
    let mut step = first_step(&state, &context, &parameters);
    let (client, redirect_uri, echo) =
        match client_and_redirect(&state, &context, &query, &parameters).await? {
            Ok(proved) => proved,
            Err(fault) => return refused_with_page(&state, &context, step, &fault),
        };
    step.client_name = Some(client.name.clone());
    let back = |step: NewEvent, (code, description): AuthorizeRefusal| {
        let rule = connection_diagnostics::rules::of(code, description);
        let step = step.sent("error", code.as_str());
        state.oauth.recorder.record(step.refused(rule, description));
        metrics::counter!("oauth_authorize_total", "outcome" => code.as_str()).increment(1);
        RedirectAnswer::error(
            state.site.issuer(),
            &redirect_uri,
            echo.as_deref(),
            code,
            description,
        )
        .into_response(&client.name)
    };
    let details = match Details::read(&parameters, &state.oauth.resources) {
        Ok(details) => details,
        Err(refusal) => return back(step, refusal),
    };
    if details.prompt.none {
        return back(step, silent_refusal(&session));
    }

    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    if authorization_requests::count_open(&mut tx, browser.digest(), now).await? >= MAX_OPEN {
        return Err(PageError::Throttled { retry_after: 60 });
    }
    let request = AuthorizationRequest {
        id: RequestId::generate(),
        client: client.id,
        redirect_uri,
        code_challenge: details.code_challenge,
        state: echo,
        scopes_asked: details.scopes.to_vec(),
        resource_asked: details.resource,
        prompt: details.prompt.to_stored(),
        max_age: details.max_age,
        login_hint: details.login_hint,
        browser: *browser.digest(),
        user: None,
        session: None,
        status: Status::Pending,
        shown_at: None,
        decided_at: None,
        outcome_sealed: None,
        created_at: now,
        expires_at: now + Duration::seconds(REQUEST_SECS),
    };
    authorization_requests::create(&mut tx, &request).await?;
    tx.commit().await?;
    metrics::counter!("oauth_authorize_total", "outcome" => "pending").increment(1);
    step.authorization = Some(request.id);
    state.oauth.recorder.record(step);
    Ok((browser, pages::see_other(&consent_path(request.id))?).into_response())
}

/// The refusal of `prompt=none`. It never succeeds, because a client without a key must not get a
/// code silently (AUTH-A10).
fn silent_refusal(session: &MaybeAnySession) -> AuthorizeRefusal {
    match session.0 {
        None => (ErrorCode::LoginRequired, "the user has to sign in"),
        Some(_) => (
            ErrorCode::ConsentRequired,
            "the user has to decide on the consent page",
        ),
    }
}

/// The page for a fault before the redirect URI is proved.
fn refused_with_page(
    state: &AuthState,
    context: &RequestContext,
    step: NewEvent,
    fault: &UnprovedFault,
) -> Result<Response, PageError> {
    metrics::counter!("oauth_authorize_total", "outcome" => "page").increment(1);
    tracing::info!(
        fault = fault.text,
        "authorization request refused with a page"
    );
    let step = step.refused(Some(fault.rule), &fault.text);
    state.oauth.recorder.record(step);
    let page = FaultPage {
        status: fault.status.as_u16(),
        title: fault.title,
        text: &fault.text,
        request_id: &context.request_id,
    };
    pages::html(fault.status, &page)
}

/// The first step of the request for the connection diagnostics.
fn first_step(state: &AuthState, context: &RequestContext, parameters: &Parameters) -> NewEvent {
    let resource = connection_diagnostics::named(state, parameters);
    let mut step =
        connection_diagnostics::step(state, context, Step::Authorize).resource(resource.as_ref());
    if let Some(client_id) = parameters.first("client_id") {
        step = step.client(client_id, None);
    }
    step.detail = Value::Object(connection_diagnostics::kept_parameters(parameters));
    step.sent("state", parameters.first("state").is_some())
}

/// The path of the page on which the person decides.
pub(crate) fn consent_path(id: RequestId) -> String {
    format!("/oauth/consent/{id}")
}

/// Returns true if the person has to sign in again before this request may be decided (AUTH-A10).
/// `prompt=login` and `select_account` require a sign-in that is newer than the request. `max_age`
/// requires one that is at most that many seconds old.
pub(crate) fn needs_sign_in(
    request: &AuthorizationRequest,
    auth_time: Timestamp,
    now: Timestamp,
) -> bool {
    let prompt = PromptParameter::from_stored(request.prompt.as_deref());
    let before_request = auth_time < request.created_at;
    ((prompt.login || prompt.select_account) && before_request)
        || request.max_age.is_some_and(|seconds| {
            before_request && now - auth_time > Duration::seconds(i64::from(seconds))
        })
}

fn throttle(state: &AuthState, context: &RequestContext) -> Result<(), PageError> {
    if context.ip.is_loopback() && state.config.loopback_is_unthrottled {
        return Ok(());
    }
    state
        .oauth
        .authorizations
        .take(&context.ip_block(), state.now())
        .map_err(|wait| PageError::Throttled {
            retry_after: wait.whole_seconds() + 1,
        })
}

type Proved = (Client, String, Option<String>);

/// Steps 1 and 2 of AUTH-A2.
async fn client_and_redirect(
    state: &AuthState,
    context: &RequestContext,
    query: &str,
    parameters: &Parameters,
) -> Result<Result<Proved, UnprovedFault>, PageError> {
    if query.len() > MAX_QUERY {
        let text = "The app sent a request that is longer than any app needs.";
        return Ok(Err(UnprovedFault {
            status: StatusCode::URI_TOO_LONG,
            ..UnprovedFault::new("A1", text)
        }));
    }
    let client_id = match parameters.one("client_id") {
        Ok(Some(client_id)) => client_id,
        Ok(None) => {
            return Ok(Err(UnprovedFault::new(
                "A1",
                "The app did not say who it is: client_id is missing.",
            )));
        }
        Err(_) => {
            return Ok(Err(UnprovedFault::new(
                "A1",
                "The app named itself twice: client_id is repeated.",
            )));
        }
    };
    let client = match find_client(state, context, client_id, parameters).await? {
        Ok(client) => client,
        Err(fault) => return Ok(Err(fault)),
    };
    if client.is_blocked {
        return Ok(Err(UnprovedFault::new("C12", "This app is blocked here.")));
    }
    let redirect_uri = match parameters.one("redirect_uri") {
        Ok(Some(uri)) => uri,
        Ok(None) => {
            return Ok(Err(UnprovedFault::new(
                "A4",
                "The app did not say where to return to: redirect_uri is missing.",
            )));
        }
        Err(_) => {
            return Ok(Err(UnprovedFault::new(
                "A4",
                "The app named two places to return to: redirect_uri is repeated.",
            )));
        }
    };
    if !client
        .redirect_uris
        .iter()
        .any(|registered| redirect::matches(registered, redirect_uri))
    {
        return Ok(Err(UnprovedFault::new(
            "A3",
            "The app wants to return to an address that it did not register: redirect_uri does not match.",
        )));
    }
    // A redirect must return the whole `state`; a request whose `state` is too long gets a page
    // (AUTH-A6).
    let echo = parameters.first("state");
    if echo.is_some_and(|value| value.len() > MAX_STATE) {
        return Ok(Err(UnprovedFault::new(
            "A6",
            "The app sent a state that is longer than 2048 bytes.",
        )));
    }
    let echo = echo.map(str::to_owned);
    let redirect_uri = redirect_uri.to_owned();
    Ok(Ok((client, redirect_uri, echo)))
}

async fn find_client(
    state: &AuthState,
    context: &RequestContext,
    client_id: &str,
    parameters: &Parameters,
) -> Result<Result<Client, UnprovedFault>, PageError> {
    // A `client_id` that begins like a URL can never be a registered id (AUTH-C1).
    if client_id.starts_with("https://") || client_id.starts_with("http://") {
        return match metadata_document::resolve(state, client_id, context).await {
            Ok(client) => {
                let step = connection_diagnostics::step(state, context, Step::ClientDocument)
                    .client(&client.client_id, Some(&client.name))
                    .resource(connection_diagnostics::named(state, parameters).as_ref());
                state.oauth.recorder.record(step);
                Ok(Ok(client))
            }
            Err(DocumentFault::Storage(error)) => Err(error.into()),
            Err(DocumentFault::TooMany) => Err(PageError::Throttled { retry_after: 60 }),
            Err(fault) => {
                let rule = fault.rule();
                let text = format!("We could not learn who this app is: {fault}.");
                Ok(Err(UnprovedFault::new(rule, text)))
            }
        };
    }
    if client_id == first_party::CLIENT_ID {
        return Ok(Ok(first_party::resolve(state).await?));
    }
    let mut tx = state.store.system(Reason::OAuth).await?;
    Ok(clients::find(&mut tx, client_id).await?.ok_or_else(|| {
        UnprovedFault::new(
            "C12",
            "The app is not registered here: its client_id is unknown.",
        )
    }))
}

/// Step 3 of AUTH-A2: the rest of the request, validated.
#[derive(Debug)]
struct Details {
    code_challenge: String,
    scopes: ScopeSet,
    /// Canonical. `None` leads to the workspace picker.
    resource: Option<String>,
    prompt: PromptParameter,
    max_age: Option<i32>,
    login_hint: Option<String>,
}

impl Details {
    fn read(parameters: &Parameters, resources: &ResourceSite) -> Result<Self, AuthorizeRefusal> {
        use ErrorCode::{InvalidRequest, InvalidScope, InvalidTarget};
        if parameters.has_repeated() {
            return Err((InvalidRequest, "a parameter is repeated"));
        }
        if parameters.first("request").is_some() {
            return Err((
                ErrorCode::RequestNotSupported,
                "request objects are not served",
            ));
        }
        if parameters.first("request_uri").is_some() {
            return Err((
                ErrorCode::RequestUriNotSupported,
                "request_uri is not served",
            ));
        }
        match parameters.first("response_type") {
            Some("code") => {}
            None => return Err((InvalidRequest, "response_type is missing")),
            Some(_) => {
                return Err((
                    ErrorCode::UnsupportedResponseType,
                    "response_type must be code",
                ));
            }
        }
        if parameters
            .first("response_mode")
            .is_some_and(|mode| mode != "query")
        {
            return Err((InvalidRequest, "response_mode must be query"));
        }
        let challenge = challenge(parameters)?;
        let scopes = ScopeSet::from_request(parameters.first("scope").unwrap_or_default())
            .map_err(|_| (InvalidScope, "scope is malformed or too long"))?;
        let prompt = PromptParameter::read(parameters.first("prompt").unwrap_or_default())?;
        let max_age = match parameters.first("max_age").map(str::parse::<i32>) {
            None => None,
            Some(Ok(seconds)) if seconds >= 0 => Some(seconds),
            Some(_) => return Err((InvalidRequest, "max_age must be a number of seconds")),
        };
        let mut asked = parameters.all("resource");
        let resource = match (asked.next(), asked.next()) {
            (_, Some(_)) => return Err((InvalidTarget, "one resource at a time")),
            (None, None) => None,
            (Some(text), None) => match resources.read(text) {
                Ok(RequestedResource::Named(resource)) => Some(resources.url(&resource)),
                Ok(RequestedResource::Origin) => {
                    metrics::counter!("oauth_resource_absent_total", "form" => "origin")
                        .increment(1);
                    None
                }
                Err(_) => return Err((InvalidTarget, "resource is not an MCP server here")),
            },
        };
        Ok(Self {
            code_challenge: challenge.to_owned(),
            // `mcp` is the scope that opens everything: a request for offline access alone means
            // both (AUTH-A8).
            scopes: scopes.with(scope::MCP),
            resource,
            prompt,
            max_age,
            login_hint: parameters
                .first("login_hint")
                .filter(|hint| hint.len() <= 254)
                .map(str::to_owned),
        })
    }
}

/// The PKCE challenge, by S256 alone (RFC 7636 §4.2).
fn challenge(parameters: &Parameters) -> Result<&str, AuthorizeRefusal> {
    use ErrorCode::InvalidRequest;
    if parameters.first("code_challenge_method") != Some("S256") {
        return Err((
            InvalidRequest,
            "PKCE with code_challenge_method S256 is required",
        ));
    }
    let challenge = parameters
        .first("code_challenge")
        .ok_or((InvalidRequest, "code_challenge is missing"))?;
    if challenge.len() != 43
        || !challenge
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    {
        return Err((
            InvalidRequest,
            "code_challenge must be 43 characters of base64url",
        ));
    }
    Ok(challenge)
}

/// `prompt` (AUTH-A10). Unknown words are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent words of one parameter"
)]
struct PromptParameter {
    none: bool,
    login: bool,
    consent: bool,
    select_account: bool,
}

impl PromptParameter {
    fn read(text: &str) -> Result<Self, AuthorizeRefusal> {
        let prompt = Self::from_stored(Some(text));
        if prompt.none && (prompt.login || prompt.consent || prompt.select_account) {
            return Err((ErrorCode::InvalidRequest, "prompt none stands alone"));
        }
        Ok(prompt)
    }

    fn from_stored(text: Option<&str>) -> Self {
        let has = |word: &str| text.is_some_and(|text| text.split(' ').any(|known| known == word));
        Self {
            none: has("none"),
            login: has("login"),
            consent: has("consent"),
            select_account: has("select_account"),
        }
    }

    fn to_stored(self) -> Option<String> {
        let words: Vec<&str> = [
            (self.login, "login"),
            (self.consent, "consent"),
            (self.consent, "consent"),
            (self.select_account, "select_account"),
        ]
        .into_iter()
        .filter_map(|(set, word)| set.then_some(word))
        .collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn read(extra: &str) -> Result<Details, AuthorizeRefusal> {
        let base = format!(
            "response_type=code&code_challenge={CHALLENGE}&code_challenge_method=S256&{extra}"
        );
        Details::read(
            &Parameters::parse(base.as_bytes()),
            &ResourceSite::new("https://mcp.example.com").unwrap(),
        )
    }

    fn code(query: &str) -> ErrorCode {
        Details::read(
            &Parameters::parse(query.as_bytes()),
            &ResourceSite::new("https://mcp.example.com").unwrap(),
        )
        .unwrap_err()
        .0
    }

    #[test]
    fn cases_12_to_15_response_type_and_pkce() {
        let pkce = format!("code_challenge={CHALLENGE}&code_challenge_method=S256");
        assert_eq!(
            code(&format!("response_type=token&{pkce}")),
            ErrorCode::UnsupportedResponseType
        );
        assert_eq!(code(&pkce), ErrorCode::InvalidRequest);
        assert_eq!(code("response_type=code"), ErrorCode::InvalidRequest);
        for bad in [
            format!("code_challenge={CHALLENGE}"),
            format!("code_challenge={CHALLENGE}&code_challenge_method=plain"),
            format!(
                "code_challenge={}&code_challenge_method=S256",
                &CHALLENGE[1..]
            ),
            format!("code_challenge={CHALLENGE}x&code_challenge_method=S256"),
            format!(
                "code_challenge={}%3D&code_challenge_method=S256",
                &CHALLENGE[1..]
            ),
        ] {
            assert_eq!(
                code(&format!("response_type=code&{bad}")),
                ErrorCode::InvalidRequest,
                "{bad}"
            );
        }
    }

    #[test]
    fn cases_16_to_18_parameters_that_are_refused() {
        for (extra, expected) in [
            ("scope=a&scope=b", ErrorCode::InvalidRequest),
            ("state=a&state=b", ErrorCode::InvalidRequest),
            ("unknown=a&unknown=b", ErrorCode::InvalidRequest),
            ("request=x", ErrorCode::RequestNotSupported),
            ("request_uri=x", ErrorCode::RequestUriNotSupported),
            ("response_mode=fragment", ErrorCode::InvalidRequest),
            ("response_mode=form_post", ErrorCode::InvalidRequest),
            ("prompt=none%20login", ErrorCode::InvalidRequest),
            ("max_age=soon", ErrorCode::InvalidRequest),
            ("scope=%22", ErrorCode::InvalidScope),
            (
                "resource=https://mcp.example.com/mcp&resource=https://mcp.example.com/mcp",
                ErrorCode::InvalidTarget,
            ),
            (
                "resource=https://evil.example/mcp",
                ErrorCode::InvalidTarget,
            ),
        ] {
            assert_eq!(read(extra).unwrap_err().0, expected, "{extra}");
        }
        assert!(read("response_mode=query&unknown=1&nonce=2").is_ok());
    }

    #[test]
    fn case_21_unknown_scopes_leave_the_default() {
        assert_eq!(read("scope=claudeai").unwrap().scopes.to_string(), "mcp");
        assert_eq!(read("").unwrap().scopes.to_string(), "mcp");
        assert_eq!(
            read("scope=offline_access").unwrap().scopes.to_string(),
            "mcp offline_access"
        );
    }

    #[test]
    fn case_101_the_resource_is_kept_in_its_canonical_form() {
        let resource = |text: &str| read(&format!("resource={text}")).unwrap().resource;
        let canonical = Some("https://mcp.example.com/t/acme/mcp".to_owned());
        assert_eq!(
            resource("HTTPS://Mcp.Example.com:443/t/acme/mcp/"),
            canonical
        );
        assert_eq!(
            resource("https://mcp.example.com/"),
            None,
            "the bare origin is as if absent"
        );
        assert_eq!(resource(""), None);
    }
}
