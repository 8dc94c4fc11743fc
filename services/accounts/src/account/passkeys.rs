//! The passkeys of a person: add, rename, remove (AUTH-L13). Each change requires a recent sign-in.
//! A change of sign-in methods ends the other sessions and notifies the person (AUTH-S4, AUTH-L16).
//! Viewing the list requires no recent sign-in.

use askama::Template;
use axum::{
    Form, Json,
    extract::{Query, State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_model::id::{PasskeyId, SessionId};
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, fault::PageError, moment::Moment},
    request_context::RequestContext,
    revocation,
    session::{self, BrowserSession, MaybeSession},
    state::AuthState,
    target::{AccountPage, Target},
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        browser_sessions::{self, EndReason},
        passkeys::{self as stored, KNOWN, New, Passkey},
        ways_in::{self, WayIn},
    },
    platform::audit,
};
use serde::Deserialize;

use crate::{
    account::{
        guard::{check_form, event, form_token, may_change_factors, proof_first, signed_in},
        sign_in::is_enough,
    },
    login::continuation::path_after,
    passkeys::{self, Created, MOST, OptionsForm},
};

/// Longest name, in characters.
const NAME_LENGTH: usize = 60;

#[derive(Template)]
#[template(path = "account_passkeys.html")]
struct PasskeysPage {
    form_token: String,
    request: String,
    passkeys: Vec<ShownPasskey>,
    /// True if this service can have passkeys.
    is_possible: bool,
    suggested: String,
    /// The path of the proof that changes require; `None` if the session has it.
    proof: Option<String>,
    notice: Option<&'static str>,
    fault: Option<&'static str>,
}

struct ShownPasskey {
    id: String,
    name: String,
    kind: &'static str,
    since: Moment,
    used: Option<Moment>,
    is_suspected: bool,
}

impl From<Passkey> for ShownPasskey {
    fn from(passkey: Passkey) -> Self {
        Self {
            id: passkey.id.to_string(),
            name: passkey.name,
            kind: if passkey.is_backup_eligible {
                "Synced by a password manager"
            } else {
                "On one device"
            },
            since: Moment::new(passkey.created_at),
            used: passkey.last_used_at.map(Moment::new),
            is_suspected: passkey.suspected_at.is_some(),
        }
    }
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PasskeysQuery {
    done: Option<String>,
    /// The target of the redirect afterwards.
    request: Option<String>,
}

/// Shows the list.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    Query(query): Query<PasskeysQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Passkeys)?;
    let request = query.request.unwrap_or_default();
    let notice = match query.done.as_deref() {
        Some("added") => Some("The passkey was added. Your other browsers were signed out."),
        Some("removed") => Some(
            "The passkey was removed. Your other browsers were signed out. Delete it on your device too, so that it is no longer offered.",
        ),
        Some("renamed") => Some("The passkey was renamed."),
        _ => None,
    };
    let said = Said {
        notice,
        ..Said::default()
    };
    page(&state, browser, &session, &context, request, said).await
}

/// The options for a new passkey.
pub(crate) async fn options(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<OptionsForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Passkeys)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    may_change_factors(&state, &session, AccountPage::Passkeys, "").await?;
    passkeys::slow(&state, &context).await?;
    let options = passkeys::creation_options(&state, &browser, &session).await?;
    Ok(Json(options).into_response())
}

/// Fields of the forms.
#[derive(Deserialize)]
pub(crate) struct PasskeysForm {
    #[serde(default)]
    form_token: String,
    /// The button that was pressed.
    #[serde(default)]
    what: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    passkey: String,
    #[serde(default)]
    name: String,
    #[serde(flatten)]
    created: Created,
}

/// Performs the action of the button.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<PasskeysForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Passkeys)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    may_change_factors(&state, &session, AccountPage::Passkeys, &form.request).await?;
    let done = match form.what.as_str() {
        "add" => add(&state, &browser, &context, &headers, &session, &form).await?,
        "rename" => rename(&state, &context, &session, &form).await?,
        "remove" => remove(&state, &context, &session, &form).await?,
        _ => Done::Nothing,
    };
    let (word, cookie) = match done {
        Done::Refused(status, fault) => {
            let said = Said {
                status,
                fault: Some(fault),
                notice: None,
            };
            return page(&state, browser, &session, &context, form.request, said).await;
        }
        Done::Nothing => ("", None),
        Done::Changed(word) => (word, None),
        Done::Added(cookie) => ("added", Some(cookie)),
    };
    let path = match Target::parse(&form.request) {
        Some(target) if !form.request.is_empty() && cookie.is_some() => {
            path_after(&state, session.user, &target).await?
        }
        _ => format!("{}?done={word}", AccountPage::Passkeys.path()),
    };
    let cookies = AppendHeaders(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok((browser, cookies, pages::see_other(&path)?).into_response())
}

/// The result of a button.
enum Done {
    Nothing,
    Changed(&'static str),
    Added(HeaderValue),
    Refused(StatusCode, &'static str),
}

/// Trims a name. `None` if it is too long or has invisible characters.
fn tidy(name: &str) -> Option<&str> {
    let name = name.trim();
    let fits = name.chars().count() <= NAME_LENGTH && !name.chars().any(char::is_control);
    fits.then_some(name)
}

/// Suggests a name that none of the person's passkeys has: the browser, with a number from the
/// second one on.
fn suggested(context: &RequestContext, mine: &[Passkey]) -> String {
    let browser = context.ua_label.as_deref().unwrap_or("Passkey");
    let is_free = |name: &String| mine.iter().all(|one| one.name != *name);
    // One name more than the greatest number of passkeys.
    std::iter::once(browser.to_owned())
        .chain((2..=MOST + 1).map(|number| format!("{browser} {number}")))
        .find(is_free)
        .unwrap_or_default()
}

const UNNAMED: &str = "Give the passkey a name of 1 to 60 characters.";

async fn add(
    state: &AuthState,
    browser: &Browser,
    context: &RequestContext,
    headers: &HeaderMap,
    session: &BrowserSession,
    form: &PasskeysForm,
) -> Result<Done, PageError> {
    let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
    let Some(name) = tidy(&form.name) else {
        return Ok(Done::Refused(unprocessable, UNNAMED));
    };
    let name = if name.is_empty() {
        let mut tx = state.store.system(Reason::SignIn).await?;
        let mine = stored::of(&mut tx, session.user, state.site.passkey_host()).await?;
        suggested(context, &mine)
    } else {
        name.to_owned()
    };
    let name = name.as_str();
    let new = passkeys::read_new(state, browser, session.user, &form.created).await?;
    let Some(new) = new else {
        let fault = "This passkey was not accepted. Reload the page and try again.";
        return Ok(Done::Refused(unprocessable, fault));
    };
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    // The person's row is locked, so concurrent additions are counted one after the other.
    let host = state.site.passkey_host();
    if ways_in::of(&mut tx, session.user, host).await?.passkeys
        >= i64::try_from(MOST).unwrap_or(i64::MAX)
    {
        let fault =
            "You have reached the maximum number of passkeys. Remove one that you don’t use.";
        return Ok(Done::Refused(StatusCode::CONFLICT, fault));
    }
    let row = New {
        user: session.user,
        credential_id: &new.credential_id,
        public_key: &new.public_key,
        host,
        name,
        aaguid: new.aaguid,
        is_backup_eligible: new.said.is_backup_eligible,
        is_backed_up: new.said.is_backed_up,
        sign_count: new.said.sign_count,
    };
    let id = match stored::add(&mut tx, &row, now).await {
        Ok(id) => id,
        Err(error) if error.is_conflict_on(KNOWN) => {
            let fault = "This passkey was already added.";
            return Ok(Done::Refused(StatusCode::CONFLICT, fault));
        }
        Err(error) => return Err(error.into()),
    };
    // The new passkey proves the session too. The session gets a new id, as at every elevation
    // (AUTH-S3).
    let mut amr: Vec<&str> = session.amr.iter().map(String::as_str).collect();
    for word in passkeys::words(new.said) {
        if !amr.contains(&word) {
            amr.push(word);
        }
    }
    let (kept, cookie) =
        session::start(&mut tx, state, headers, context, session.user, &amr).await?;
    // The time of the sign-in stays: the new passkey does not prove the time before it.
    browser_sessions::continues(&mut tx, kept, session.id).await?;
    changed(state, context, tx, session, kept, (id, name), "added").await?;
    Ok(Done::Added(cookie))
}

async fn rename(
    state: &AuthState,
    context: &RequestContext,
    session: &BrowserSession,
    form: &PasskeysForm,
) -> Result<Done, PageError> {
    let Some(name) = tidy(&form.name).filter(|name| !name.is_empty()) else {
        return Ok(Done::Refused(StatusCode::UNPROCESSABLE_ENTITY, UNNAMED));
    };
    let Ok(id) = form.passkey.parse::<PasskeyId>() else {
        return Ok(Done::Nothing);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    if !stored::rename(&mut tx, session.user, id, name).await? {
        return Ok(Done::Nothing);
    }
    let detail = serde_json::json!({ "passkey": id.to_string(), "name": name });
    let entry = event(session, "passkey.renamed", detail);
    audit::record(&mut tx, &entry, &context.origin(), state.now()).await?;
    tx.commit().await?;
    Ok(Done::Changed("renamed"))
}

async fn remove(
    state: &AuthState,
    context: &RequestContext,
    session: &BrowserSession,
    form: &PasskeysForm,
) -> Result<Done, PageError> {
    let Ok(id) = form.passkey.parse::<PasskeyId>() else {
        return Ok(Done::Nothing);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    // Counted under the lock: the later one of two concurrent removals sees what is left.
    let host = state.site.passkey_host();
    ways_in::of(&mut tx, session.user, host).await?;
    let Some(name) = stored::remove(&mut tx, session.user, id).await? else {
        return Ok(Done::Nothing);
    };
    if !is_enough(state, &ways_in::of(&mut tx, session.user, host).await?) {
        let fault =
            "This passkey is your only way to sign in. Add another one or set a password first.";
        return Ok(Done::Refused(StatusCode::CONFLICT, fault));
    }
    let kept = session.id;
    changed(state, context, tx, session, kept, (id, &name), "removed").await?;
    Ok(Done::Changed("removed"))
}

/// Ends the other sessions (AUTH-S4) and notifies the person (AUTH-L16).
async fn changed(
    state: &AuthState,
    context: &RequestContext,
    mut tx: SystemTx,
    session: &BrowserSession,
    kept: SessionId,
    (id, name): (PasskeyId, &str),
    what: &'static str,
) -> Result<(), PageError> {
    let now = state.now();
    let (action, reason) = if what == "added" {
        ("passkey.added", EndReason::FactorAdded)
    } else {
        let removed = WayIn::Passkey(id);
        ("passkey.removed", EndReason::WayInRemoved(removed))
    };
    let signed_out =
        browser_sessions::end_all(&mut tx, session.user, Some(kept), reason, now).await?;
    for event in revocation::tokens_ended(&signed_out.tokens, session.user, "passkey_removed") {
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    let detail = serde_json::json!({ "passkey": id.to_string(), "name": name });
    let entry = event(session, action, detail);
    audit::record(&mut tx, &entry, &context.origin(), now).await?;
    let letter = mail::passkeys::changed(
        &session.display_name,
        what,
        name,
        &state.site.url("/reset"),
        &state.site.url(AccountPage::Passkeys.path()),
    );
    let mail = mail::queue(&mut tx, &session.email, &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok(())
}

/// The notice at the top of the page.
#[derive(Default)]
struct Said {
    status: StatusCode,
    notice: Option<&'static str>,
    fault: Option<&'static str>,
}

async fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    context: &RequestContext,
    request: String,
    said: Said,
) -> Result<Response, PageError> {
    let passkeys = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        stored::of(&mut tx, session.user, state.site.passkey_host()).await?
    };
    let page = PasskeysPage {
        form_token: form_token(state, &browser, session),
        proof: proof_first(state, session, AccountPage::Passkeys, &request).await?,
        request,
        suggested: suggested(context, &passkeys),
        passkeys: passkeys.into_iter().map(ShownPasskey::from).collect(),
        is_possible: state.site.passkeys().is_some(),
        notice: said.notice,
        fault: said.fault,
    };
    Ok((browser, pages::html(said.status, &page)?).into_response())
}
