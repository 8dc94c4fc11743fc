//! The redirect to a provider and its callback (AUTH-F1). `state`, PKCE and nonce belong to a row
//! of one browser and one provider, and are valid once.

use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode};
use portolan_keys::{
    digest, random,
    seal::{open_under_token, seal_under_token},
};
use portolan_model::audit::{Actor, Event, Outcome};
use portolan_site::{
    browser::Browser,
    config::Site,
    identity_providers::{Code, LoginProvider, Proved, Unproved},
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    returned::Returned,
    session::{BrowserSession, MaybeAnySession},
    state::AuthState,
    target::Target,
};
use portolan_storage::{
    Reason,
    accounts::login_attempts::{self, LoginAttempt, LoginPurpose, NewAttempt, Signed},
    platform::audit,
};
use portolan_upstream::oauth::{
    AuthorizationAttempt as Secrets, AuthorizationServer, Callback, OauthError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::login::{
    continuation::Continuation,
    federation::{
        account_resolution::{self, Arrived},
        tenant,
    },
    form::check_form,
};

/// Greatest age of a sign-in at the provider that counts as recent, in seconds.
const LATELY: i64 = 300;

/// The callback of a provider: each has its own address (AUTH-F1).
pub fn redirect_uri(site: &Site, slug: &str) -> String {
    site.url(&format!("/login/callback/{slug}"))
}

/// Data that only the holder of `state` can open.
#[derive(Serialize, Deserialize)]
struct Sealed {
    verifier: String,
    nonce: String,
}

/// The purpose and the parameters of a redirect to a provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a> {
    /// The purpose.
    pub(crate) purpose: LoginPurpose,
    /// The present session; required for every purpose except sign-in.
    pub(crate) session: Option<&'a BrowserSession>,
    /// An address that the provider may prefill.
    pub(crate) hint: Option<&'a str>,
    /// True if the person has to sign in again at the provider, because a client requires it.
    pub(crate) fresh: bool,
}

/// Parameters of a link to a provider.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StartQuery {
    request: Option<String>,
    #[serde(default)]
    t: String,
    /// Set to prove again the identity of the person who is signed in to this provider's workspace.
    confirm: Option<String>,
}

/// Sends the browser to a provider, to sign in.
pub(crate) async fn start(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
    context: RequestContext,
    Path(slug): Path<String>,
    Query(query): Query<StartQuery>,
) -> Result<Response, PageError> {
    check_form(&state.keys, &browser, &query.t)?;
    let continuation = Continuation::load(&state, &browser, query.request.as_deref()).await?;
    let Some(provider) = tenant::find(&state, &slug).await? else {
        return nobody(browser);
    };
    let confined = session.filter(|session| {
        query.confirm.is_some()
            && session.only_tenant.is_some()
            && session.only_tenant == provider.tenant
    });
    let bound = Bound {
        purpose: match confined {
            Some(_) => LoginPurpose::Confirm,
            None => LoginPurpose::SignIn,
        },
        session: confined.as_ref(),
        hint: Some(continuation.login_hint()).filter(|hint| !hint.is_empty()),
        fresh: continuation.wants_fresh(),
    };
    begin(
        &state,
        browser,
        &context,
        &provider,
        &continuation.target,
        bound,
    )
    .await
}

/// Stores the data that checks the answer, and redirects the browser.
pub(crate) async fn begin(
    state: &AuthState,
    browser: Browser,
    context: &RequestContext,
    provider: &LoginProvider,
    target: &Target,
    bound: Bound<'_>,
) -> Result<Response, PageError> {
    let now = state.now();
    state.throttle.request(context.ip, now).await?;
    let server = match provider.server(&state.exchange()).await {
        Ok(server) => server,
        Err(error) => return away(browser, provider, target, &error),
    };
    let secrets = Secrets::begin().map_err(|_| PageError::Internal("randomness"))?;
    let nonce = URL_SAFE_NO_PAD.encode(random::bytes::<32>()?);
    let redirect_uri = redirect_uri(&state.site, &provider.slug);
    let address = secrets.address(
        &state.egress,
        &server,
        &provider.client.id,
        &redirect_uri,
        None,
        Some(provider.scope()),
    );
    let mut address = match address {
        Ok(address) => address,
        Err(error) => return away(browser, provider, target, &error),
    };
    {
        let mut query = address.query_pairs_mut();
        if provider.is_openid() {
            query.append_pair("nonce", &nonce);
            if bound.purpose == LoginPurpose::Confirm || bound.fresh {
                // Another person at a browser with an open session at the provider must not pass.
                query.append_pair("max_age", "0");
            }
            if let Some(hint) = bound.hint {
                query.append_pair("login_hint", hint);
            }
        }
    }
    let sealed = Sealed {
        verifier: secrets.verifier.clone(),
        nonce,
    };
    let plain = serde_json::to_vec(&sealed).map_err(|_| PageError::Internal("attempt"))?;
    let attempt = NewAttempt {
        state: &digest(secrets.state.as_bytes()),
        provider: &provider.slug,
        tenant: provider.tenant,
        purpose: bound.purpose,
        browser: browser.digest(),
        signed: bound.session.map(|session| Signed {
            user: session.user,
            session: session.id,
        }),
        target: &target.to_string(),
        server: &json!(*server),
        sealed: &seal_under_token(&secrets.state, &plain, provider.slug.as_bytes())?,
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    login_attempts::begin(&mut tx, &attempt, now).await?;
    tx.commit().await?;
    Ok((browser, pages::see_other(address.as_str())?).into_response())
}

/// Takes the answer of a provider, once: from the browser that was sent there, at the callback of
/// this provider (CASE-158).
pub(crate) async fn take(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
    context: RequestContext,
    headers: HeaderMap,
    Path(slug): Path<String>,
    Query(returned): Query<Returned>,
) -> Result<Response, PageError> {
    let now = state.now();
    state.throttle.request(context.ip, now).await?;
    let Some(provider) = tenant::find(&state, &slug).await? else {
        return nobody(browser);
    };
    let Some((token, callback)) = returned.read().filter(|_| !browser.is_new()) else {
        return not_ours(browser);
    };
    let name = digest(token.as_bytes());
    let mut tx = state.store.system(Reason::SignIn).await?;
    let taken = login_attempts::take(&mut tx, &name, &slug, browser.digest(), now).await?;
    tx.commit().await?;
    let Some(attempt) = taken.filter(|attempt| attempt.tenant == provider.tenant) else {
        return not_ours(browser);
    };
    // A proof that was begun for a session counts for that session only.
    let signed = session.as_ref().map(|session| Signed {
        user: session.user,
        session: session.id,
    });
    if attempt.signed.is_some() && attempt.signed != signed {
        return not_ours(browser);
    }
    let target = Target::parse(&attempt.target).ok_or(PageError::Internal("target"))?;
    match proved(&state, &provider, &attempt, (token.as_str(), &callback)).await {
        Ok(proved) => {
            let arrived = Arrived {
                state: &state,
                browser,
                context: &context,
                headers: &headers,
                provider: &provider,
                target,
            };
            if let Some(tenant) = provider.tenant {
                return arrived
                    .sign_in_to(tenant, session, attempt.purpose, proved)
                    .await;
            }
            let session = session.filter(|_| attempt.signed.is_some());
            match (attempt.purpose, session) {
                (LoginPurpose::Link, Some(session)) => arrived.link(&session, proved).await,
                (LoginPurpose::Confirm, Some(session)) => arrived.confirm(&session, proved).await,
                _ => arrived.sign_in(proved).await,
            }
        }
        Err(error) => {
            tracing::info!(provider = %provider.slug, reason = %error, "nobody was signed in with an account elsewhere");
            let event = Event {
                tenant: provider.tenant,
                actor: Actor::Anonymous,
                action: "session.refused",
                target_kind: "provider",
                target_id: provider.slug.clone(),
                outcome: Outcome::Refused,
                detail: json!({ "reason": error.to_string() }),
            };
            let mut tx = state.store.system(Reason::SignIn).await?;
            audit::record(&mut tx, &event, &context.origin(), now).await?;
            tx.commit().await?;
            refused(browser, &provider, &target, &error)
        }
    }
}

async fn proved(
    state: &AuthState,
    provider: &LoginProvider,
    attempt: &LoginAttempt,
    (token, callback): (&str, &Callback),
) -> Result<Proved, Unproved> {
    let lost = |_| Unproved::Missing("what it was asked");
    let server: AuthorizationServer = serde_json::from_value(attempt.server.clone())
        .map_err(|_| Unproved::Missing("its addresses"))?;
    let code = Secrets::check(&server, callback)?;
    let opened =
        open_under_token(token, &attempt.sealed, provider.slug.as_bytes()).map_err(lost)?;
    let sealed: Sealed = serde_json::from_slice(opened.expose())
        .map_err(|_| Unproved::Missing("what it was asked"))?;
    let redirect_uri = redirect_uri(&state.site, &provider.slug);
    let code = Code {
        code: &code,
        verifier: &sealed.verifier,
        nonce: &sealed.nonce,
        redirect_uri: &redirect_uri,
    };
    let proved = provider.proved(&state.exchange(), &server, &code).await?;
    let was_long_ago = proved
        .auth_time
        .is_some_and(|at| at < state.now().unix_timestamp() - LATELY);
    if attempt.purpose == LoginPurpose::Confirm && was_long_ago {
        return Err(Unproved::Missing("a sign-in of now"));
    }
    Ok(proved)
}

fn page(
    browser: Browser,
    status: StatusCode,
    title: &str,
    text: &str,
    target: &Target,
) -> Result<Response, PageError> {
    let path = account_resolution::way_back(target);
    let page = Message {
        status: None,
        title,
        text,
        link: Some(("Go back", &path)),
        request_id: None,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// The one response to a state that is used, expired, forged, or of another browser or provider.
fn not_ours(browser: Browser) -> Result<Response, PageError> {
    let text = "This sign-in was started in another browser, too long ago, or was already used. Start again from where you came.";
    page(
        browser,
        StatusCode::BAD_REQUEST,
        "Not signed in",
        text,
        &Target::Console,
    )
}

fn nobody(browser: Browser) -> Result<Response, PageError> {
    let text = "This sign-in method doesn’t exist here.";
    page(
        browser,
        StatusCode::NOT_FOUND,
        "Not signed in",
        text,
        &Target::Console,
    )
}

fn away(
    browser: Browser,
    provider: &LoginProvider,
    target: &Target,
    error: &OauthError,
) -> Result<Response, PageError> {
    tracing::warn!(provider = %provider.slug, reason = %error, "a provider of accounts cannot be used");
    let text = format!(
        "{} cannot be reached right now. Try again in a moment, or sign in another way.",
        provider.name
    );
    let title = format!("{} does not answer", provider.name);
    page(browser, StatusCode::BAD_GATEWAY, &title, &text, target)
}

fn refused(
    browser: Browser,
    provider: &LoginProvider,
    target: &Target,
    error: &Unproved,
) -> Result<Response, PageError> {
    let (status, text) = match error {
        Unproved::Oauth(OauthError::Denied(_)) => (
            StatusCode::FORBIDDEN,
            format!(
                "{} refused the sign-in, or you canceled it there. Try again, or sign in another way.",
                provider.name
            ),
        ),
        _ => (
            StatusCode::BAD_REQUEST,
            format!(
                "The answer from {} could not be used. Try again. If it happens again, contact the operator of this service.",
                provider.name
            ),
        ),
    };
    page(browser, status, "Not signed in", &text, target)
}
