//! Proof by key: `private_key_jwt` (RFC 7523; `auth.md` C13, AX-2). What is checked is in [`portolan_keys::assertion`]; here is with
//! which keys, and that each assertion is good once in the whole cluster.

use portolan_keys::{Assertion, AssertionError, ClientKeys, assertion::Proof, digest};
use portolan_storage::{Reason, client_proofs, clients::Client};
use serde_json::Value;

use super::{Offer, key_set};
use crate::{error::OAuthError, parameters::Parameters, state::AuthState};

/// The one type of assertion.
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Reads what a form offers. `client_id` may be left out, since the assertion names the client; if it is there it has to agree.
pub(super) fn offer(form: &Parameters, body_id: Option<&str>) -> Result<Offer, OAuthError> {
    let (Some(jwt), Some(JWT_BEARER)) = (
        form.first("client_assertion"),
        form.first("client_assertion_type"),
    ) else {
        return Err(OAuthError::invalid_client(
            "client_assertion needs client_assertion_type urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ));
    };
    let client_id = read(jwt)?.client_id().to_owned();
    if body_id.is_some_and(|id| id != client_id) {
        return Err(OAuthError::invalid_client(
            "client_id is not the sub of the client assertion",
        ));
    }
    Ok(Offer::Assertion {
        client_id,
        jwt: jwt.to_owned(),
    })
}

fn read(jwt: &str) -> Result<Assertion<'_>, OAuthError> {
    Assertion::read(jwt).map_err(refused)
}

fn refused(error: AssertionError) -> OAuthError {
    OAuthError::invalid_client(error.description())
}

/// Checks the assertion of a client and uses it up.
pub(super) async fn check(state: &AuthState, client: &Client, jwt: &str) -> Result<(), OAuthError> {
    let assertion = read(jwt)?;
    let proof = verify(state, client, &assertion).await?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    let is_first = client_proofs::use_up(
        &mut tx,
        client.id,
        &digest(proof.jti.as_bytes()),
        proof.expires_at,
    )
    .await?;
    // For itself: what becomes of the request does not give the assertion back.
    tx.commit().await?;
    if is_first {
        Ok(())
    } else {
        Err(OAuthError::invalid_client(
            "the client assertion was used before, make a new one with its own jti",
        ))
    }
}

async fn verify(
    state: &AuthState,
    client: &Client,
    assertion: &Assertion<'_>,
) -> Result<Proof, OAuthError> {
    let issuer = state.site.issuer();
    let with_slash = format!("{issuer}/");
    let endpoints = ["/oauth/token", "/token"].map(|path| state.site.url(path));
    let audiences = [issuer, &with_slash, &endpoints[0], &endpoints[1]];
    let now = state.now();
    let check = |keys: &ClientKeys| assertion.verify(keys, &audiences, now);
    let Some(uri) = client.metadata.get("jwks_uri").and_then(Value::as_str) else {
        let keys = client.metadata.get("jwks").map(ClientKeys::read);
        let Some(Ok(keys)) = keys else {
            return Err(refused(AssertionError::UnknownKey));
        };
        return check(&keys).map_err(refused);
    };
    match check(&key_set::present(state, client, uri).await?) {
        // Its keys may have been rotated a moment ago.
        Err(AssertionError::UnknownKey) => match key_set::newer(state, client, uri).await? {
            Some(keys) => check(&keys).map_err(refused),
            None => Err(refused(AssertionError::UnknownKey)),
        },
        other => other.map_err(refused),
    }
}
