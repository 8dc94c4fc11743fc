//! Passkeys (AUTH-L13): the options for authenticators, and the checks of their answers.
//!
//! A challenge is a row that is valid once, for five minutes, in the browser that requested it and
//! for one purpose. An answer uses it up before any other check, so that a second answer is
//! impossible (CASE-156). A passkey that is the only factor must have verified its person; after a
//! password a touch is enough.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_keys::{
    digest, random,
    webauthn::{self, ALGORITHMS, Assertion, RelyingParty, Said, UserVerification},
};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    factor::amr,
    id::{PasskeyId, UserId},
};
use portolan_site::{
    browser::Browser, mail, pages::fault::PageError, request_context::RequestContext,
    session::BrowserSession, state::AuthState,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        passkeys::{self, CHALLENGE_LIFE, ChallengeOf, Passkey, PasskeyPurpose},
        users,
    },
    platform::audit,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most passkeys of a person.
pub(crate) const MOST: usize = 20;

/// The relying party of passkeys. If there is none, the pages do not offer passkeys.
fn party(state: &AuthState) -> Result<RelyingParty, PageError> {
    state.site.passkeys().ok_or(PageError::StartAgain)
}

/// Stores a new challenge.
async fn challenge(state: &AuthState, asked: ChallengeOf<'_>) -> Result<String, PageError> {
    let bytes = random::bytes::<32>()?;
    let mut tx = state.store.system(Reason::SignIn).await?;
    passkeys::ask(&mut tx, &digest(&bytes), asked, state.now()).await?;
    tx.commit().await?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn named(known: &[Passkey]) -> Vec<Value> {
    known
        .iter()
        .map(
            |one| json!({ "type": "public-key", "id": URL_SAFE_NO_PAD.encode(&one.credential_id) }),
        )
        .collect()
}

/// The options of `navigator.credentials.create`: a discoverable passkey that verifies its person,
/// on a device without one of the person's passkeys.
pub(crate) async fn creation_options(
    state: &AuthState,
    browser: &Browser,
    session: &BrowserSession,
) -> Result<Value, PageError> {
    let party = party(state)?;
    let known = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        passkeys::of(&mut tx, session.user, party.id()).await?
    };
    let asked = ChallengeOf {
        purpose: PasskeyPurpose::Register,
        browser: browser.digest(),
        user: Some(session.user),
    };
    let algorithms: Vec<Value> = ALGORITHMS
        .iter()
        .map(|number| json!({ "type": "public-key", "alg": number }))
        .collect();
    Ok(json!({
        "rp": { "id": party.id(), "name": "Portolan" },
        "user": {
            "id": URL_SAFE_NO_PAD.encode(session.user.uuid_bytes()),
            "name": session.email,
            "displayName": session.display_name,
        },
        "challenge": challenge(state, asked).await?,
        "pubKeyCredParams": algorithms,
        "timeout": CHALLENGE_LIFE.whole_milliseconds(),
        "excludeCredentials": named(&known),
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": true,
            "userVerification": "required",
        },
        "attestation": "none",
    }))
}

/// The options of `navigator.credentials.get`. Without a person they admit any passkey of this
/// service, and so do not reveal who has one.
pub(crate) async fn request_options(
    state: &AuthState,
    browser: &Browser,
    purpose: PasskeyPurpose,
    user: Option<UserId>,
) -> Result<Value, PageError> {
    let party = party(state)?;
    let known = match user {
        Some(user) => {
            let mut tx = state.store.system(Reason::SignIn).await?;
            passkeys::of(&mut tx, user, party.id()).await?
        }
        None => Vec::new(),
    };
    let asked = ChallengeOf {
        purpose,
        browser: browser.digest(),
        user,
    };
    Ok(json!({
        "rpId": party.id(),
        "challenge": challenge(state, asked).await?,
        "timeout": CHALLENGE_LIFE.whole_milliseconds(),
        "allowCredentials": named(&known),
        "userVerification": if is_only_factor(purpose) { "required" } else { "discouraged" },
    }))
}

const fn is_only_factor(purpose: PasskeyPurpose) -> bool {
    !matches!(purpose, PasskeyPurpose::SecondFactor)
}

/// Returns true if a person has a passkey.
pub(crate) async fn has_any(state: &AuthState, user: UserId) -> Result<bool, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let host = state.site.passkey_host();
    Ok(passkeys::count(&mut tx, user, Some(host)).await? > 0)
}

/// Fields that the script sends to get options.
#[derive(Deserialize)]
pub(crate) struct OptionsForm {
    #[serde(default)]
    pub(crate) form_token: String,
    /// The ticket of a sign-in's second step.
    #[serde(default)]
    pub(crate) ticket: String,
}

/// Limits challenges per address: every page with passkeys requests one, and each is a row.
pub(crate) async fn slow(state: &AuthState, context: &RequestContext) -> Result<(), PageError> {
    state
        .throttle
        .challenge(context.ip, state.now())
        .await
        .map_err(PageError::from)
}

/// Fields that the script fills into a form, in base64url.
#[derive(Deserialize)]
pub(crate) struct Signed {
    #[serde(default)]
    credential: String,
    #[serde(default)]
    client_data: String,
    #[serde(default)]
    authenticator_data: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    user_handle: String,
}

/// The result of checking a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// This passkey belongs to this person, and proved these methods.
    Good(UserId, PasskeyId, Vec<&'static str>),
    /// The signature is invalid. The log has the reason.
    Bad,
    /// The signature is valid, but its counter did not grow: there may be a copy of the passkey.
    /// The person was notified.
    Copied,
}

/// Texts for [`Proof::Bad`] and [`Proof::Copied`]: the meaning and the remedy.
pub(crate) const BAD: &str = "This passkey was not accepted. Try again, or sign in another way.";

pub(crate) const COPIED: &str = "This passkey was not accepted, because it may have been copied. Sign in another way and remove it from your account.";

/// Checks the answer of an authenticator. `user` is the required owner; at a sign-in the passkey
/// determines the person.
pub(crate) async fn check(
    state: &AuthState,
    context: &RequestContext,
    browser: &Browser,
    purpose: PasskeyPurpose,
    user: Option<UserId>,
    signed: &Signed,
) -> Result<Proof, PageError> {
    let party = party(state)?;
    let now = state.now();
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let (Some(credential), Some(client_data), Some(data), Some(signature), Some(handle)) = (
        decode(&signed.credential),
        decode(&signed.client_data),
        decode(&signed.authenticator_data),
        decode(&signed.signature),
        decode(&signed.user_handle),
    ) else {
        return Ok(Proof::Bad);
    };
    let Ok(challenge) = webauthn::challenge_of(&client_data) else {
        return Ok(Proof::Bad);
    };
    let asked = ChallengeOf {
        purpose,
        browser: browser.digest(),
        user,
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    if !passkeys::use_challenge(&mut tx, &digest(&challenge), asked, now).await? {
        tracing::info!("a passkey answered a challenge that is not open in this browser");
        return Ok(Proof::Bad);
    }
    let Some(passkey) = passkeys::find(&mut tx, &credential, party.id()).await? else {
        tx.commit().await?;
        return Ok(Proof::Bad);
    };
    // A discovered passkey names its owner; a requested one may leave that out.
    let is_theirs = user.is_none_or(|user| user == passkey.user)
        && (handle == passkey.user.uuid_bytes() || (user.is_some() && handle.is_empty()));
    let assertion = Assertion {
        client_data: &client_data,
        authenticator_data: &data,
        signature: &signature,
    };
    let verification = if is_only_factor(purpose) {
        UserVerification::Required
    } else {
        UserVerification::Preferred
    };
    let key = &passkey.public_key;
    let verified = webauthn::verify(&party, &challenge, key, assertion, verification);
    let said = match verified {
        Ok(said) if is_theirs && said.is_backup_eligible == passkey.is_backup_eligible => said,
        refused => {
            let reason = match refused {
                Err(error) => error.to_string(),
                Ok(_) if is_theirs => "it says something else about backups".to_owned(),
                Ok(_) => "a passkey of somebody else".to_owned(),
            };
            let event = event(&passkey, "passkey.refused", json!({ "reason": reason }));
            audit::record(&mut tx, &event, &context.origin(), now).await?;
            tx.commit().await?;
            return Ok(Proof::Bad);
        }
    };
    if !passkeys::used(&mut tx, passkey.id, said.sign_count, said.is_backed_up, now).await? {
        alert(state, context, tx, &passkey).await?;
        return Ok(Proof::Copied);
    }
    tx.commit().await?;
    Ok(Proof::Good(passkey.user, passkey.id, words(said)))
}

/// The RFC 8176 values of the methods that a passkey proved.
pub(crate) fn words(said: Said) -> Vec<&'static str> {
    let key = if said.is_backup_eligible {
        amr::SOFTWARE_KEY
    } else {
        amr::HARDWARE_KEY
    };
    let mut words = vec![key, amr::USER_PRESENCE];
    if said.is_verified {
        words.push(amr::MULTIPLE);
    }
    words
}

/// Handles a counter that did not grow (AUTH-L13): the key is in two places, or was restored from a
/// copy. It writes an audit entry and notifies the person.
async fn alert(
    state: &AuthState,
    context: &RequestContext,
    mut tx: SystemTx,
    passkey: &Passkey,
) -> Result<(), PageError> {
    let now = state.now();
    let is_news = passkeys::suspect(&mut tx, passkey.id, now).await?;
    let event = event(
        passkey,
        "passkey.copied",
        json!({ "passkey": passkey.id.to_string() }),
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let mut queued = None;
    if let Some(person) = users::find(&mut tx, passkey.user)
        .await?
        .filter(|_| is_news)
    {
        let letter = mail::passkeys::copied(
            &person.display_name,
            &passkey.name,
            &state.site.url("/account/passkeys"),
        );
        queued = Some(mail::queue(&mut tx, &person.email, &letter, now).await?);
    }
    tx.commit().await?;
    if let Some(mail) = queued {
        state.mailer.deliver(&mail);
    }
    tracing::warn!(user.id = %passkey.user, "the count of a passkey did not grow: there may be a copy of it");
    Ok(())
}

fn event(passkey: &Passkey, action: &'static str, detail: Value) -> Event {
    Event {
        tenant: None,
        actor: Actor::Anonymous,
        action,
        target_kind: "user",
        target_id: passkey.user.to_string(),
        outcome: Outcome::Refused,
        detail,
    }
}

/// Fields that a browser sends for a new passkey.
#[derive(Deserialize)]
pub(crate) struct Created {
    #[serde(default)]
    pub(crate) client_data: String,
    #[serde(default)]
    pub(crate) attestation: String,
}

/// Checks a new passkey. `None` if it is invalid.
pub(crate) async fn read_new(
    state: &AuthState,
    browser: &Browser,
    user: UserId,
    created: &Created,
) -> Result<Option<webauthn::Registration>, PageError> {
    let party = party(state)?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let (Some(client_data), Some(attestation)) =
        (decode(&created.client_data), decode(&created.attestation))
    else {
        return Ok(None);
    };
    let Ok(challenge) = webauthn::challenge_of(&client_data) else {
        return Ok(None);
    };
    let asked = ChallengeOf {
        purpose: PasskeyPurpose::Register,
        browser: browser.digest(),
        user: Some(user),
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    if !passkeys::use_challenge(&mut tx, &digest(&challenge), asked, state.now()).await? {
        return Ok(None);
    }
    tx.commit().await?;
    match webauthn::register(&party, &challenge, &client_data, &attestation) {
        Ok(new) => Ok(Some(new)),
        Err(error) => {
            tracing::info!(
                error = &error as &dyn std::error::Error,
                "a new passkey was not accepted"
            );
            Ok(None)
        }
    }
}
