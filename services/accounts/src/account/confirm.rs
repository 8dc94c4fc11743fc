//! Confirms the person's identity before a sensitive change (AUTH-S2). The session gets a new id,
//! as at every elevation (AUTH-S3).

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_keys::{Secret, password::Verification};
use portolan_model::factor::{SecondFactor, amr};
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::{self, BrowserSession, MaybeSession},
    state::AuthState,
    target::{AccountPage, Target},
    throttle::AccountKey,
};
use portolan_storage::{
    Reason,
    accounts::{browser_sessions, users, ways_in::WayIn},
    platform::audit,
};
use serde::Deserialize;

use crate::{
    account::{
        guard::{check_form, event, form_token, signed_in},
        sign_in,
    },
    login::{
        continuation::path_after,
        federation::links::{self, ProviderLink},
        waiting::{wait_sentence, with_retry_after},
    },
    passkeys,
    second_factor::{self, Factor},
};

#[derive(Template)]
#[template(path = "account_confirm.html")]
struct ConfirmPage<'a> {
    form_token: String,
    request: String,
    why: Why,
    email: &'a str,
    ways: Ways,
    /// True if a passkey proved the session. A rule that requires one still applies, so the page
    /// offers it first.
    passkey_first: bool,
    /// Accounts at providers that are enough too.
    providers: Vec<ProviderLink>,
    fault: Option<String>,
}

/// The methods with which the person can confirm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    /// There is a password, and it is enough.
    pub(crate) password: bool,
    /// True if a code of the second factor is required too.
    pub(crate) needs_code: bool,
    /// There are passkeys.
    pub(crate) passkeys: bool,
}

/// The reason for the confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Why {
    /// A sensitive change.
    #[default]
    Change,
    /// The rule of a workspace: more than one factor (AUTH-L14).
    Required,
    /// The rule of a workspace: a passkey.
    Passkey,
}

impl Why {
    const fn word(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Required => "required",
            Self::Passkey => "passkey",
        }
    }
}

/// The contents of the page.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) target: Target,
    pub(crate) why: Why,
    pub(crate) ways: Ways,
    /// Providers with a connected account that is enough: name in addresses, and name for people.
    pub(crate) providers: Vec<(String, String)>,
}

impl About {
    pub(crate) async fn find(
        state: &AuthState,
        session: &BrowserSession,
        request: &str,
        why: Why,
    ) -> Result<Self, PageError> {
        let target = Target::parse(request).ok_or(PageError::StartAgain)?;
        let needs_code = second_factor::is_needed(state, session.user).await?;
        let has_password = {
            let mut tx = state.store.system(Reason::SignIn).await?;
            users::password_of(&mut tx, session.user).await?.is_some()
        };
        let has_passkeys = passkeys::has_any(state, session.user).await?;
        // A method that the person no longer has cannot be required.
        let why = match why {
            Why::Passkey if !has_passkeys => Why::Change,
            Why::Required if !has_passkeys && !needs_code => Why::Change,
            asked => asked,
        };
        let would_do = match why {
            Why::Change => true,
            Why::Required => needs_code,
            Why::Passkey => false,
        };
        let providers = if would_do {
            sign_in::connected(state, session.user).await?
        } else {
            Vec::new()
        };
        let ways = Ways {
            password: has_password && would_do,
            needs_code,
            passkeys: has_passkeys,
        };
        Ok(Self {
            target,
            why,
            ways,
            providers,
        })
    }
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ConfirmQuery {
    request: Option<String>,
    #[serde(default, rename = "for")]
    why: Why,
}

/// Shows the form.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(query): Query<ConfirmQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Overview)?;
    let request = query.request.as_deref().unwrap_or_default();
    let about = About::find(&state, &session, request, query.why).await?;
    page(&state, browser, &session, &about, StatusCode::OK, None)
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct ConfirmForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default, rename = "for")]
    why: Why,
    password: Secret<String>,
    #[serde(default)]
    code: String,
}

/// Checks the proof, and continues with a new session.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<ConfirmForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let about = About::find(&state, &session, &form.request, form.why).await?;
    match password_is_right(&state, &context, &session, &form.password).await? {
        Checked::Right => {}
        Checked::Wrong(refusal) => {
            let (status, fault, early) = refusal;
            let refusal = page(&state, browser, &session, &about, status, Some(fault))?;
            return Ok(match early {
                Some(early) => with_retry_after(refusal, early),
                None => refusal,
            });
        }
    }
    let mut words = vec![amr::PASSWORD];
    if about.ways.needs_code {
        match second_factor::check(&state, &context, session.user, &form.code).await? {
            Factor::Right => words.extend([amr::ONE_TIME_CODE, amr::MULTIPLE]),
            Factor::Wrong => {
                let fault = Some("This code is wrong or was already used.".to_owned());
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                return page(&state, browser, &session, &about, status, fault);
            }
            Factor::TooEarly(retry_after) => return Err(PageError::Throttled { retry_after }),
        }
    }
    confirmed(
        &state,
        browser,
        &context,
        &headers,
        &session,
        &about.target,
        (None, &words),
    )
    .await
}

/// Continues with a new session that these methods proved.
pub(crate) async fn confirmed(
    state: &AuthState,
    browser: Browser,
    context: &RequestContext,
    headers: &HeaderMap,
    session: &BrowserSession,
    target: &Target,
    (way, amr): (Option<WayIn>, &[&str]),
) -> Result<Response, PageError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    let (id, cookie) = session::start(&mut tx, state, headers, context, session.user, amr).await?;
    if let Some(way) = way {
        browser_sessions::began_by(&mut tx, id, way).await?;
    }
    let entry = event(
        session,
        "session.confirmed",
        serde_json::json!({ "amr": amr }),
    );
    audit::record(&mut tx, &entry, &context.origin(), now).await?;
    tx.commit().await?;
    let path = path_after(state, session.user, target).await?;
    let cookies = AppendHeaders([(header::SET_COOKIE, cookie)]);
    Ok((browser, cookies, pages::see_other(&path)?).into_response())
}

/// The result of a password check.
pub(crate) enum Checked {
    /// The password is right.
    Right,
    /// The password is wrong, or the budget is empty: status, sentence, and how long to wait.
    Wrong(
        (
            StatusCode,
            String,
            Option<portolan_site::throttle::TooEarly>,
        ),
    ),
}

/// Checks a password of the signed-in person, within the budget of sign-in.
pub(crate) async fn password_is_right(
    state: &AuthState,
    context: &RequestContext,
    session: &BrowserSession,
    password: &Secret<String>,
) -> Result<Checked, PageError> {
    let account = AccountKey::new(&state.keys, &session.user.to_string());
    // A device name of its own: attempts at the sign-in page do not use this budget up, nor the
    // reverse.
    let paid = match state
        .throttle
        .sign_in(context.ip, &account, Some("signed-in"), state.now())
        .await
    {
        Ok(paid) => paid,
        Err(early) => {
            return Ok(Checked::Wrong((
                StatusCode::TOO_MANY_REQUESTS,
                wait_sentence(early),
                Some(early),
            )));
        }
    };
    let stored = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        users::password_of(&mut tx, session.user).await?
    };
    match state.passwords.verify(password, stored.as_deref()).await? {
        Verification::Match { .. } => {
            state.throttle.signed_in(&paid).await;
            Ok(Checked::Right)
        }
        Verification::NoMatch => Ok(Checked::Wrong((
            StatusCode::UNPROCESSABLE_ENTITY,
            "The password is wrong.".to_owned(),
            None,
        ))),
    }
}

pub(crate) fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    about: &About,
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let form_token = form_token(state, &browser, session);
    let providers = about.providers.iter().map(|(slug, name)| ProviderLink {
        name: name.clone(),
        path: links::link(
            &format!("/account/confirm/with/{slug}"),
            &about.target,
            &form_token,
        ),
    });
    let page = ConfirmPage {
        providers: providers.collect(),
        form_token,
        request: about.target.to_string(),
        why: about.why,
        passkey_first: about.ways.passkeys && SecondFactor::Passkey.is_met_by(&session.amr),
        email: &session.email,
        ways: about.ways,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
