//! Authenticator app and recovery codes: begin, activate, remove (AUTH-L11, AUTH-L12). Each change
//! requires a recent sign-in, and ends the other sessions (AUTH-S2, AUTH-S4). Viewing the status
//! requires no recent sign-in.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_keys::{Secret, TotpSecret};
use portolan_model::factor::amr;
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::{self, BrowserSession, MaybeSession},
    state::AuthState,
    target::{AccountPage, Target},
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        browser_sessions::{self, EndReason},
        second_factors,
    },
    platform::audit,
};
use qrcodegen::{QrCode, QrCodeEcc};
use serde::Deserialize;

use crate::{
    account::guard::{check_form, event, form_token, may_change_factors, proof_first, signed_in},
    login::continuation::path_after,
    second_factor,
};

#[derive(Template)]
#[template(path = "account_two_factor.html")]
struct TwoFactorPage {
    form_token: String,
    /// The target of the redirect afterwards.
    request: String,
    /// The path of the target.
    onward: String,
    /// The path of the proof that changes require; `None` if the session has it.
    proof: Option<String>,
    stage: Stage,
    fault: Option<&'static str>,
}

enum Stage {
    /// There is no app.
    Off,
    /// Begun: the page shows the secret until one code was right.
    Begun {
        secret: Secret<String>,
        /// The secret in groups of four characters.
        grouped: Secret<String>,
        uri: Secret<String>,
        /// The URI as a QR code.
        picture: Option<Picture>,
    },
    /// The app is active.
    On { codes_left: i64 },
    /// The app was just activated, or new codes were made: the page shows the codes once.
    Codes(Vec<Secret<String>>),
}

/// A QR code as one path of an SVG: dark squares in a field of `size` by `size` units, four of them
/// margin on each side.
struct Picture {
    size: i32,
    path: Secret<String>,
}

impl Picture {
    /// `None` for a text that is too long for a QR code; the person can type the key then.
    fn of(text: &Secret<String>) -> Option<Self> {
        const MARGIN: i32 = 4;
        let code = QrCode::encode_text(text.expose(), QrCodeEcc::Medium).ok()?;
        let mut path = String::new();
        for y in 0..code.size() {
            for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
                path.push_str(&format!("M{},{}h1v1h-1z", x + MARGIN, y + MARGIN));
            }
        }
        Some(Self {
            size: code.size() + 2 * MARGIN,
            path: Secret::new(path),
        })
    }
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TwoFactorQuery {
    #[serde(default)]
    request: String,
}

/// Shows the status.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(query): Query<TwoFactorQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::TwoFactor)?;
    let stage = stage(&state, &session).await?;
    if matches!(stage, Stage::Begun { .. }) {
        // The page shows the secret.
        may_change_factors(&state, &session, AccountPage::TwoFactor, &query.request).await?;
    }
    let said = (StatusCode::OK, query.request, None);
    page(&state, browser, &session, said, stage).await
}

/// Fields of the forms.
#[derive(Deserialize)]
pub(crate) struct TwoFactorForm {
    #[serde(default)]
    form_token: String,
    /// The button that was pressed.
    #[serde(default)]
    what: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    request: String,
}

/// Performs the action of the button.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<TwoFactorForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::TwoFactor)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    may_change_factors(&state, &session, AccountPage::TwoFactor, &form.request).await?;
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    match form.what.as_str() {
        "begin" => {
            let secret = TotpSecret::generate()?;
            let sealed = second_factor::seal(&state, session.user, &secret)?;
            second_factors::begin(&mut tx, session.user, &sealed, now).await?;
            tx.commit().await?;
            Ok((browser, pages::see_other(&again(&form.request))?).into_response())
        }
        "confirm" => activate(&state, browser, session, &context, &headers, form, tx).await,
        "codes" if second_factors::is_enrolled(&mut tx, session.user).await? => {
            let codes = second_factor::new_recovery_codes(&state, &mut tx, session.user).await?;
            changed(&state, &context, tx, &session, "recovery_codes.replaced").await?;
            let said = (StatusCode::OK, form.request, None);
            page(&state, browser, &session, said, Stage::Codes(codes)).await
        }
        "remove" => {
            if second_factors::remove(&mut tx, session.user).await? {
                changed(&state, &context, tx, &session, "second_factor.removed").await?;
            }
            Ok((browser, pages::see_other(AccountPage::TwoFactor.path())?).into_response())
        }
        _ => Ok((browser, pages::see_other(AccountPage::TwoFactor.path())?).into_response()),
    }
}

/// The path of this page, with the target of the redirect afterwards.
fn again(request: &str) -> String {
    match Target::parse(request) {
        Some(target) => target.on(AccountPage::TwoFactor.path()),
        None => AccountPage::TwoFactor.path().to_owned(),
    }
}

/// Activates the app that was begun, if the code is right, and shows new recovery codes.
async fn activate(
    state: &AuthState,
    browser: Browser,
    session: BrowserSession,
    context: &RequestContext,
    headers: &HeaderMap,
    form: TwoFactorForm,
    mut tx: SystemTx,
) -> Result<Response, PageError> {
    let now = state.now();
    let Some(totp) = second_factors::totp_of(&mut tx, session.user)
        .await?
        .filter(|totp| !totp.is_confirmed)
    else {
        return Ok((browser, pages::see_other(&again(&form.request))?).into_response());
    };
    let code: String = form.code.chars().filter(|c| !c.is_whitespace()).collect();
    let right = match second_factor::open(state, session.user, &totp)?.step_of(&code, now) {
        Some(step) => {
            let sealed = &totp.secret_sealed;
            second_factors::confirm(&mut tx, session.user, sealed, step, now).await?
        }
        None => false,
    };
    if !right {
        drop(tx);
        let stage = stage(state, &session).await?;
        let fault = Some(
            "This code is wrong. Check that the clock of your device is right, then try the next code.",
        );
        let said = (StatusCode::UNPROCESSABLE_ENTITY, form.request, fault);
        return page(state, browser, &session, said, stage).await;
    }
    let codes = second_factor::new_recovery_codes(state, &mut tx, session.user).await?;
    // The new app proves the session too. The session gets a new id, as at every elevation
    // (AUTH-S3).
    let mut amr: Vec<&str> = session.amr.iter().map(String::as_str).collect();
    for word in [amr::ONE_TIME_CODE, amr::MULTIPLE] {
        if !amr.contains(&word) {
            amr.push(word);
        }
    }
    let (kept, cookie) =
        session::start(&mut tx, state, headers, context, session.user, &amr).await?;
    // The time of the sign-in stays: the new app does not prove the time before it.
    browser_sessions::continues(&mut tx, kept, session.id).await?;
    let session = BrowserSession {
        id: kept,
        ..session
    };
    changed(state, context, tx, &session, "second_factor.added").await?;
    let said = (StatusCode::OK, form.request, None);
    let page = page(state, browser, &session, said, Stage::Codes(codes)).await?;
    Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), page).into_response())
}

/// Ends the other sessions (AUTH-S4) and notifies the person (AUTH-L16).
async fn changed(
    state: &AuthState,
    context: &RequestContext,
    mut tx: SystemTx,
    session: &BrowserSession,
    action: &'static str,
) -> Result<(), PageError> {
    let now = state.now();
    // A factor more takes no proof away.
    let reason = if action == "second_factor.added" {
        EndReason::FactorAdded
    } else {
        EndReason::FactorChanged
    };
    browser_sessions::end_all(&mut tx, session.user, Some(session.id), reason, now).await?;
    let entry = event(session, action, serde_json::json!({}));
    audit::record(&mut tx, &entry, &context.origin(), now).await?;
    let reset = state.site.url("/reset");
    let letter = mail::texts::two_step_verification(&session.display_name, action, &reset);
    let mail = mail::queue(&mut tx, &session.email, &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok(())
}

async fn stage(state: &AuthState, session: &BrowserSession) -> Result<Stage, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(
        match second_factors::totp_of(&mut tx, session.user).await? {
            None => Stage::Off,
            Some(totp) if totp.is_confirmed => Stage::On {
                codes_left: second_factors::recovery_codes_left(&mut tx, session.user).await?,
            },
            Some(totp) => {
                let secret = second_factor::open(state, session.user, &totp)?;
                let uri = secret.uri("Portolan", &session.email);
                let base32 = secret.base32();
                Stage::Begun {
                    grouped: in_groups(&base32),
                    secret: base32,
                    picture: Picture::of(&uri),
                    uri,
                }
            }
        },
    )
}

/// `ABCD EFGH …`.
fn in_groups(secret: &Secret<String>) -> Secret<String> {
    let mut grouped = String::new();
    for (at, letter) in secret.expose().chars().enumerate() {
        if at > 0 && at % 4 == 0 {
            grouped.push(' ');
        }
        grouped.push(letter);
    }
    Secret::new(grouped)
}

async fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    (status, request, fault): (StatusCode, String, Option<&'static str>),
    stage: Stage,
) -> Result<Response, PageError> {
    let onward = match Target::parse(&request) {
        Some(target) if !request.is_empty() => path_after(state, session.user, &target).await?,
        _ => AccountPage::Overview.path().to_owned(),
    };
    let page = TwoFactorPage {
        form_token: form_token(state, &browser, session),
        proof: proof_first(state, session, AccountPage::TwoFactor, &request).await?,
        request,
        onward,
        stage,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
