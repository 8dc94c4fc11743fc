//! Sign-in methods: the password, and accounts at providers, which are connected and disconnected
//! here (AUTH-F6). Every change requires a recent sign-in (AUTH-S2, CASE-157).

use askama::Template;
use axum::{
    Form,
    extract::{Path, Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_model::id::{IdentityLinkId, UserId};
use portolan_site::{
    browser::Browser,
    identity_providers::LoginProvider,
    mail,
    pages::{self, fault::PageError, moment::Moment},
    request_context::RequestContext,
    revocation,
    session::{BrowserSession, MaybeSession},
    state::AuthState,
    target::{AccountPage, Target},
};
use portolan_storage::{
    Reason,
    accounts::{
        browser_sessions::{self, EndReason},
        identities::{self, Linked},
        login_attempts::LoginPurpose,
        ways_in::{self, WayIn, WaysIn},
    },
    platform::audit,
};
use serde::Deserialize;

use crate::{
    account::guard::{Done, check_form, event, form_token, recent, signed_in},
    login::federation::{
        links::ProviderLink,
        login_attempt::{self, Bound},
    },
};

#[derive(Template)]
#[template(path = "account_sign_in.html")]
struct SignInPage {
    form_token: String,
    has_password: bool,
    identities: Vec<ShownWay>,
    /// Providers whose accounts can be connected.
    providers: Vec<ProviderLink>,
    notice: Option<&'static str>,
    fault: Option<String>,
}

struct ShownWay {
    id: IdentityLinkId,
    provider: String,
    label: String,
    since: Moment,
    used: Option<Moment>,
}

/// Shows the list.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(done): Query<Done>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::SignIn)?;
    let notice = match done.what() {
        Some("added") => Some("Connected. You can now sign in with this account."),
        Some("there") => Some("This account was already connected."),
        Some("removed") => Some("Disconnected. Your other browsers were signed out."),
        _ => None,
    };
    page(&state, browser, &session, StatusCode::OK, notice, None).await
}

/// Fields that a button sends.
#[derive(Debug, Deserialize)]
pub(crate) struct SignInForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    identity: String,
}

/// Disconnects one, unless no sign-in method would be left.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<SignInForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::SignIn)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    recent(&state, &session, AccountPage::SignIn)?;
    let back = |browser: Browser, path: &str| {
        Ok::<_, PageError>((browser, pages::see_other(path)?).into_response())
    };
    let Ok(id) = form.identity.parse::<IdentityLinkId>() else {
        return back(browser, AccountPage::SignIn.path());
    };
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    // Counted under the lock: the later one of two concurrent removals sees what is left.
    ways_in::of(&mut tx, session.user, state.site.passkey_host()).await?;
    let Some(provider) = identities::unlink(&mut tx, session.user, id).await? else {
        return back(browser, AccountPage::SignIn.path());
    };
    let left = ways_in::of(&mut tx, session.user, state.site.passkey_host()).await?;
    if !is_enough(&state, &left) {
        drop(tx);
        let fault =
            "This is your only way to sign in. Set a password or connect another account first.";
        let (status, fault) = (StatusCode::CONFLICT, Some(fault.to_owned()));
        return page(&state, browser, &session, status, None, fault).await;
    }
    let reason = EndReason::WayInRemoved(WayIn::Identity(id));
    let kept = Some(session.id);
    let signed_out = browser_sessions::end_all(&mut tx, session.user, kept, reason, now).await?;
    for event in revocation::tokens_ended(&signed_out.tokens, session.user, "identity_unlinked") {
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    let entry = event(
        &session,
        "identity.unlinked",
        serde_json::json!({ "provider": provider }),
    );
    audit::record(&mut tx, &entry, &context.origin(), now).await?;
    let letter = mail::texts::sign_in_method_removed(
        &session.display_name,
        &name(&state, &provider),
        &state.site.url(AccountPage::SignIn.path()),
    );
    let mail = mail::queue(&mut tx, &session.email, &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    back(browser, "/account/sign-in?done=removed")
}

/// Returns true if a person with these methods can still sign in. A provider that the platform no
/// longer has does not count.
pub(crate) fn is_enough(state: &AuthState, ways: &WaysIn) -> bool {
    ways.has_password
        || ways.passkeys > 0
        || ways
            .providers
            .iter()
            .any(|slug| state.config.sign_in_with.find(slug).is_some())
}

/// Parameters of a link to a provider.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct LinkQuery {
    request: Option<String>,
    #[serde(default)]
    t: String,
}

/// Redirects the browser to a provider, to connect the person's account there.
pub(crate) async fn add(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    Path(slug): Path<String>,
    Query(query): Query<LinkQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::SignIn)?;
    check_form(&state, &browser, &session, &query.t)?;
    recent(&state, &session, AccountPage::SignIn)?;
    let target = Target::Account(AccountPage::SignIn);
    leave(
        &state,
        browser,
        &context,
        &slug,
        &target,
        (LoginPurpose::Link, &session),
    )
    .await
}

/// Redirects the browser to a provider, to confirm the person's identity.
pub(crate) async fn confirm(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    Path(slug): Path<String>,
    Query(query): Query<LinkQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &query.t)?;
    let target =
        Target::parse(query.request.as_deref().unwrap_or_default()).ok_or(PageError::StartAgain)?;
    leave(
        &state,
        browser,
        &context,
        &slug,
        &target,
        (LoginPurpose::Confirm, &session),
    )
    .await
}

async fn leave(
    state: &AuthState,
    browser: Browser,
    context: &RequestContext,
    slug: &str,
    target: &Target,
    (purpose, session): (LoginPurpose, &BrowserSession),
) -> Result<Response, PageError> {
    let Some(provider) = state.config.sign_in_with.find(slug) else {
        return Err(PageError::Elsewhere(AccountPage::SignIn.path().to_owned()));
    };
    let bound = Bound {
        purpose,
        session: Some(session),
        hint: None,
        fresh: false,
    };
    login_attempt::begin(state, browser, context, provider, target, bound).await
}

/// Providers of the platform with a connected account of the person: name in addresses, and name
/// for people.
pub(crate) async fn connected(
    state: &AuthState,
    user: UserId,
) -> Result<Vec<(String, String)>, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let identities = identities::of_user(&mut tx, user).await?;
    let is_mine = |provider: &&LoginProvider| {
        identities
            .iter()
            .any(|linked| linked.tenant.is_none() && linked.provider == provider.slug)
    };
    let mine = state.config.sign_in_with.list().iter().filter(is_mine);
    Ok(mine
        .map(|provider| (provider.slug.clone(), provider.name.clone()))
        .collect())
}

fn name(state: &AuthState, provider: &str) -> String {
    match state.config.sign_in_with.find(provider) {
        Some(provider) => provider.name.clone(),
        None => provider.to_owned(),
    }
}

async fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    status: StatusCode,
    notice: Option<&'static str>,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let ways = ways_in::of(&mut tx, session.user, state.site.passkey_host()).await?;
    let identities = identities::of_user(&mut tx, session.user).await?;
    drop(tx);
    let form_token = form_token(state, &browser, session);
    let providers = state
        .config
        .sign_in_with
        .list()
        .iter()
        .map(|provider| ProviderLink {
            name: provider.name.clone(),
            path: format!("/account/sign-in/add/{}?t={form_token}", provider.slug),
        })
        .collect();
    let page = SignInPage {
        form_token,
        has_password: ways.has_password,
        identities: identities
            .into_iter()
            .map(|linked| shown(state, linked))
            .collect(),
        providers,
        notice,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

fn shown(state: &AuthState, linked: Linked) -> ShownWay {
    ShownWay {
        id: linked.id,
        provider: match linked.tenant_name {
            Some(workspace) => format!("SSO of {workspace}"),
            None => name(state, &linked.provider),
        },
        label: linked.label,
        since: Moment::new(linked.created_at),
        used: linked.last_used_at.map(Moment::new),
    }
}
