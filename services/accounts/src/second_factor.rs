//! The second factor: a code of an authenticator app, or a recovery code when the app is lost
//! (AUTH-L11, AUTH-L12).

use portolan_keys::{Purpose, Secret, TotpSecret, totp};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::UserId,
};
use portolan_site::{
    mail, pages::fault::PageError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        second_factors::{self, Totp},
        users,
    },
    platform::{audit, mails::Mail},
};

/// Recovery codes of one set.
pub(crate) const RECOVERY_CODES: usize = 10;

/// The result of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Factor {
    /// It was right.
    Right,
    /// It was wrong, or used before.
    Wrong,
    /// Too many attempts, with the seconds to wait.
    TooEarly(i64),
}

/// Returns true if this person needs a code.
pub(crate) async fn is_needed(state: &AuthState, user: UserId) -> Result<bool, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(second_factors::is_enrolled(&mut tx, user).await?)
}

/// Checks a code: five attempts in five minutes, each code once, over all nodes (CASE-155).
pub(crate) async fn check(
    state: &AuthState,
    context: &RequestContext,
    user: UserId,
    typed: &str,
) -> Result<Factor, PageError> {
    let now = state.now();
    if let Err(early) = state.throttle.second_factor(user, now).await {
        return Ok(Factor::TooEarly(early.seconds()));
    }
    let mut tx = state.store.system(Reason::SignIn).await?;
    let Some(totp) = second_factors::totp_of(&mut tx, user)
        .await?
        .filter(|totp| totp.is_confirmed)
    else {
        return Ok(Factor::Wrong);
    };
    if let Some(code) = digits(typed) {
        let Some(step) = open(state, user, &totp)?.step_of(&code, now) else {
            return Ok(Factor::Wrong);
        };
        if !second_factors::use_step(&mut tx, user, step).await? {
            return Ok(Factor::Wrong);
        }
        tx.commit().await?;
        state.throttle.second_factor_was_right(user).await;
        return Ok(Factor::Right);
    }
    let Some(code) = totp::read_recovery_code(typed) else {
        return Ok(Factor::Wrong);
    };
    let message = recovery_message(user, &code);
    let macs: Vec<Vec<u8>> = state
        .keys
        .macs(Purpose::RecoveryCode, message.expose().as_bytes())
        .iter()
        .map(|mac| mac.to_vec())
        .collect();
    if !second_factors::use_recovery_code(&mut tx, user, &macs, now).await? {
        return Ok(Factor::Wrong);
    }
    let mail = recovery_code_used(state, context, &mut tx, user).await?;
    tx.commit().await?;
    if let Some(mail) = mail {
        state.mailer.deliver(&mail);
    }
    state.throttle.second_factor_was_right(user).await;
    Ok(Factor::Right)
}

/// Notifies the person of a used recovery code, with the number of the codes left (AUTH-L12).
async fn recovery_code_used(
    state: &AuthState,
    context: &RequestContext,
    tx: &mut SystemTx,
    user: UserId,
) -> Result<Option<Mail>, PageError> {
    let now = state.now();
    let left = second_factors::recovery_codes_left(tx, user).await?;
    let event = Event {
        tenant: None,
        actor: Actor::User(user),
        action: "recovery_code.used",
        target_kind: "user",
        target_id: user.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "left": left }),
    };
    audit::record(tx, &event, &context.origin(), now).await?;
    let Some(person) = users::find(tx, user).await? else {
        return Ok(None);
    };
    let letter = mail::texts::recovery_code_used(
        &person.display_name,
        left,
        &state.site.url("/account/two-factor"),
    );
    Ok(Some(mail::queue(tx, &person.email, &letter, now).await?))
}

/// Opens the secret that a person's app shares with this service.
pub(crate) fn open(state: &AuthState, user: UserId, totp: &Totp) -> Result<TotpSecret, PageError> {
    state
        .keys
        .open(
            Purpose::SecondFactor,
            &totp.secret_sealed,
            user.uuid_bytes(),
            state.now(),
        )
        .map(TotpSecret::from_bytes)
        .map_err(|_| PageError::Internal("secret of an authenticator app"))
}

/// Seals the secret for storage.
pub(crate) fn seal(
    state: &AuthState,
    user: UserId,
    secret: &TotpSecret,
) -> Result<Vec<u8>, PageError> {
    Ok(state
        .keys
        .seal(Purpose::SecondFactor, secret.expose(), user.uuid_bytes())?)
}

/// Writes a new set of recovery codes, and returns them to be shown once.
pub(crate) async fn new_recovery_codes(
    state: &AuthState,
    tx: &mut SystemTx,
    user: UserId,
) -> Result<Vec<Secret<String>>, PageError> {
    let mut codes = Vec::with_capacity(RECOVERY_CODES);
    let mut macs = Vec::with_capacity(RECOVERY_CODES);
    for _ in 0..RECOVERY_CODES {
        let code = totp::recovery_code()?;
        let normal =
            totp::read_recovery_code(code.expose()).ok_or(PageError::Internal("recovery code"))?;
        let message = recovery_message(user, &normal);
        let mac = state
            .keys
            .mac(Purpose::RecoveryCode, message.expose().as_bytes());
        macs.push(mac.to_vec());
        codes.push(code);
    }
    second_factors::replace_recovery_codes(tx, user, &macs).await?;
    Ok(codes)
}

/// The input of a recovery code's MAC. It binds the code to one person.
fn recovery_message(user: UserId, code: &Secret<String>) -> Secret<String> {
    Secret::new(format!("{user} {}", code.expose()))
}

/// Reads six digits in any grouping.
fn digits(typed: &str) -> Option<String> {
    let code: String = typed.chars().filter(|c| !c.is_whitespace()).collect();
    (code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_digit())).then_some(code)
}
