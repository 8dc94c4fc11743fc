//! The authorization code grant (AUTH-T1 to AUTH-T7).
//!
//! Everything is checked on a plain read first, so that a wrong verifier or a wrong client cannot
//! use up a code. Then one guarded `update` decides the winner, in the transaction that also begins
//! the refresh family. A code that its own client presents a second time has leaked: its grant is
//! revoked, and that is committed before the refusal is sent.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_cluster::revocations::Revocation;
use portolan_keys::{Secret, SecretToken, TokenForm, digest};
use portolan_model::{
    Digest,
    audit::{Actor, Event, Outcome},
    resource::Resource,
    scope,
};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    oauth::{
        clients::Client,
        grant_state,
        grants::{self, Code, MAX_CODE_ATTEMPTS},
        refresh_tokens,
    },
    platform::audit,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
    token::{
        form::{Tokens, read_resource},
        issue,
        trail::Trail,
    },
};

/// The one text for every fault of a code. It does not reveal which fault it was.
const NO_GOOD: OAuthError =
    OAuthError::invalid_grant("the code is invalid, expired or already used");

/// Redeems a code.
pub(crate) async fn redeem(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
    form: &Parameters,
    trail: &mut Trail,
) -> Result<Tokens, OAuthError> {
    if !client.has_grant_type("authorization_code") {
        return Err(OAuthError::refused(
            ErrorCode::UnauthorizedClient,
            "this client did not register for authorization_code",
        ));
    }
    let presented = form
        .first("code")
        .ok_or(OAuthError::invalid_request("code is missing"))?;
    let presented = SecretToken::parse(TokenForm::Code, presented)
        .ok_or(NO_GOOD)?
        .digest();

    let mut tx = state.store.system(Reason::OAuth).await?;
    let code = grants::find_code(&mut tx, &presented)
        .await?
        .ok_or(NO_GOOD)?;
    if code.client != client.id {
        tracing::warn!(client.id = %client.id, "a code was presented by another client");
        return Err(NO_GOOD);
    }
    trail.grant = Some((code.grant, code.tenant));
    if code.redeemed_at.is_some() {
        return Err(replayed(state, context, tx, client, &code).await?);
    }
    if code.expires_at <= state.now() || code.attempts >= MAX_CODE_ATTEMPTS {
        return Err(NO_GOOD);
    }
    let audience = match check(state, &mut tx, &code, form).await? {
        Ok(audience) => audience,
        Err(refusal) => {
            grants::count_code_failure(&mut tx, &presented).await?;
            tx.commit().await?;
            return Err(refusal);
        }
    };
    exchange(state, context, tx, client, &code, &presented, audience).await
}

/// Checks PKCE always, and redirect URI and resource if they are sent (AUTH-T4). Returns the
/// audience.
async fn check(
    state: &AuthState,
    tx: &mut SystemTx,
    code: &Code,
    form: &Parameters,
) -> Result<Result<String, OAuthError>, OAuthError> {
    let verified = form
        .first("code_verifier")
        .is_some_and(|verifier| is_verifier_of(verifier, &code.code_challenge));
    if !verified {
        return Ok(Err(OAuthError::invalid_grant(
            "code_verifier is missing or wrong",
        )));
    }
    if form
        .first("redirect_uri")
        .is_some_and(|uri| uri != code.redirect_uri)
    {
        return Ok(Err(OAuthError::invalid_grant(
            "redirect_uri is not the one of the authorization request",
        )));
    }
    let asked = match read_resource(state, form) {
        Ok(asked) => asked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(asked) = asked else {
        return Ok(Ok(code.resource.clone()));
    };
    let url = state.oauth.resources.url(&asked);
    if url == code.resource {
        return Ok(Ok(url));
    }
    // The request named no workspace and the person picked one: a resource in that workspace
    // narrows the token now (AUTH-5.4).
    let narrows = !code.resource_given
        && match asked.tenant() {
            None => asked == Resource::Platform,
            Some(slug) => grants::names_tenant(tx, slug, code.tenant).await?,
        };
    if narrows {
        return Ok(Ok(url));
    }
    Ok(Err(OAuthError::refused(
        ErrorCode::InvalidTarget,
        "resource is not the one that was granted",
    )))
}

/// Verifies PKCE S256 with a comparison in constant time (AUTH-A5).
fn is_verifier_of(verifier: &str, challenge: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(allowed) {
        return false;
    }
    let computed = URL_SAFE_NO_PAD.encode(digest(verifier.as_bytes()).as_bytes());
    portolan_keys::digests_equal(&digest(computed.as_bytes()), &digest(challenge.as_bytes()))
}

async fn exchange(
    state: &AuthState,
    context: &RequestContext,
    mut tx: SystemTx,
    client: &Client,
    code: &Code,
    presented: &Digest,
    audience: String,
) -> Result<Tokens, OAuthError> {
    let now = state.now();
    let attempt = Uuid::now_v7();
    if !grants::redeem_code(&mut tx, presented, attempt, now).await? {
        // Another request redeemed the code between the read and now. Same client, same code: a
        // replay (AUTH-T6, CASE-47).
        let code = grants::find_code(&mut tx, presented)
            .await?
            .ok_or(NO_GOOD)?;
        if code.redeemed_at.is_some() {
            return Err(replayed(state, context, tx, client, &code).await?);
        }
        return Err(NO_GOOD);
    }
    let present = grant_state::find(&mut tx, code.grant)
        .await?
        .ok_or(NO_GOOD)?;
    if issue::is_downgraded(client, &present.grant) {
        return Err(NO_GOOD);
    }
    let Some(standing) = issue::standing(state, client, &present)? else {
        return Err(NO_GOOD);
    };
    let mut grant = present.grant;
    let wants_refresh =
        client.has_grant_type("refresh_token") || grant.scopes.contains(scope::OFFLINE_ACCESS);
    let refresh = if wants_refresh {
        Some(SecretToken::generate(TokenForm::Refresh)?)
    } else {
        None
    };
    if let Some(token) = &refresh {
        refresh_tokens::create_family(&mut tx, grant.id, &token.digest(), grant.expires_at, now)
            .await?;
    }
    if audience != grant.resource {
        grants::narrow(&mut tx, grant.id, &audience).await?;
        grant.resource.clone_from(&audience);
    }
    grants::touch(&mut tx, grant.id, now).await?;
    // The token is signed before the commit: a failure here leaves the code unused (AUTH-T7).
    let (access, expires_in) =
        issue::access_token(state, client, &grant, &standing, &grant.scopes, audience)?;
    commit(state, tx, presented, attempt).await?;
    Ok(Tokens {
        access,
        issued_token_type: None,
        expires_in,
        scope: grant.scopes.to_string(),
        refresh: refresh.map(|token| Secret::new(token.expose().to_owned())),
    })
}

/// Commits. If the database's answer to the commit is lost, the row shows whether this attempt was
/// committed (AUTH-4.7). If it was, the tokens in memory are valid, and the client need not retry:
/// a retry would count as a replay and revoke them.
async fn commit(
    state: &AuthState,
    tx: SystemTx,
    presented: &Digest,
    attempt: Uuid,
) -> Result<(), OAuthError> {
    let Err(lost) = tx.commit().await else {
        return Ok(());
    };
    for pause in [50, 200, 500, 1000] {
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        let Ok(mut tx) = state.store.system(Reason::OAuth).await else {
            continue;
        };
        match grants::was_redeemed_by(&mut tx, presented, attempt).await {
            Ok(true) => return Ok(()),
            Ok(false) => break,
            Err(_) => {}
        }
    }
    Err(match lost {
        // The error is reported as unavailable, so that the client retries: the code is still
        // valid.
        unavailable if unavailable.is_unavailable() => unavailable.into(),
        other => StorageError::into(other),
    })
}

/// Revokes the grant, commits, and then refuses (AUTH-T6).
async fn replayed(
    state: &AuthState,
    context: &RequestContext,
    mut tx: SystemTx,
    client: &Client,
    code: &Code,
) -> Result<OAuthError, OAuthError> {
    let now = state.now();
    let revoked = grants::revoke(&mut tx, code.grant, "code_replayed", now).await?;
    let event = Event {
        tenant: Some(code.tenant),
        actor: Actor::Anonymous,
        action: "code.replayed",
        target_kind: "grant",
        target_id: code.grant.to_string(),
        outcome: Outcome::Refused,
        detail: json!({"client_id": client.client_id}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    if revoked {
        state.oauth.revocations.insert(
            Revocation::Grant(code.grant),
            now + grants::REVOCATION_MEMORY,
        );
    }
    tracing::warn!(grant.id = %code.grant, client.id = %client.id, "a code was used twice: grant revoked");
    Ok(NO_GOOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_the_verifier_is_checked_in_form_and_value() {
        // RFC 7636, appendix B.
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert!(is_verifier_of(
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            challenge
        ));
        for wrong in [
            "",
            "short",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl",
            challenge,
            "dBjftJeZ4CVP mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        ] {
            assert!(!is_verifier_of(wrong, challenge), "{wrong}");
        }
        assert!(!is_verifier_of(&"x".repeat(129), challenge));
    }
}
