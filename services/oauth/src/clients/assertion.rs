//! Proof by key: `private_key_jwt` (RFC 7523; AUTH-C13, MCP-AX-2).
//!
//! [`portolan_keys::assertion`] checks an assertion. This module finds the client's keys, and
//! accepts each assertion once in the whole cluster.

use portolan_keys::{Assertion, AssertionError, ClientKeys, assertion::Proof, digest};
use portolan_model::client::{AuthMethod, ClientKind};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason,
    oauth::{client_proofs, clients::Client},
};
use serde_json::Value;

use crate::{
    clients::{
        Offer, key_set,
        metadata_document::{self, DocumentFault},
    },
    error::OAuthError,
    parameters::Parameters,
};

/// The one type of assertion.
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Reads the assertion of a form. `client_id` may be absent, because the assertion names the
/// client. A present one has to agree.
pub(crate) fn offer(form: &Parameters, body_id: Option<&str>) -> Result<Offer, OAuthError> {
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

/// Checks the assertion of a client and uses it up. Returns the client as its document describes it
/// now.
pub(crate) async fn check(
    state: &AuthState,
    context: &RequestContext,
    client: Client,
    jwt: &str,
) -> Result<Client, OAuthError> {
    let assertion = read(jwt)?;
    let (client, proof) = verify(state, context, client, &assertion).await?;
    // Taken after the proof, so that only the account itself can use up its budget. A client with a
    // document has many users; their refreshes are counted instead.
    if client.kind == ClientKind::Service
        && let Err(wait) = state.oauth.assertions.take(&client.client_id, state.now())
    {
        return Err(OAuthError::TooMany {
            retry_after: wait.whole_seconds() + 1,
        });
    }
    let mut tx = state.store.system(Reason::OAuth).await?;
    let is_first = client_proofs::use_up(
        &mut tx,
        client.id,
        &digest(proof.jti.as_bytes()),
        proof.expires_at,
    )
    .await?;
    // Committed separately: the assertion stays used whatever becomes of the request.
    tx.commit().await?;
    if is_first {
        Ok(client)
    } else {
        Err(OAuthError::invalid_client(
            "the client assertion was used before, make a new one with its own jti",
        ))
    }
}

async fn verify(
    state: &AuthState,
    context: &RequestContext,
    client: Client,
    assertion: &Assertion<'_>,
) -> Result<(Client, Proof), OAuthError> {
    // REVIEW-S-17: the audience is the issuer alone (draft-ietf-oauth-rfc7523bis). Another
    // authorization server may have written the metadata that names an endpoint. URL types append
    // the slash to the same issuer, that of the Python SDK among them.
    let issuer = state.site.issuer();
    let with_slash = format!("{issuer}/");
    let audiences = [issuer, &with_slash];
    let now = state.now();
    let check = |keys: &ClientKeys| assertion.verify(keys, &audiences, now);
    let client = described(state, context, client, false).await?;
    match check(&keys(state, context, &client).await?) {
        Ok(proof) => return Ok((client, proof)),
        // The client may just have rotated its keys.
        Err(AssertionError::UnknownKey) => {}
        Err(error) => return Err(refused(error)),
    }
    if let Some(uri) = key_uri(&client) {
        let keys = key_set::newer(state, context, &client, uri)
            .await?
            .ok_or_else(|| refused(AssertionError::UnknownKey))?;
        let proof = check(&keys).map_err(refused)?;
        return Ok((client, proof));
    }
    let client = described(state, context, client, true).await?;
    let proof = check(&keys(state, context, &client).await?).map_err(refused)?;
    Ok((client, proof))
}

/// The `jwks_uri` of the client, if it registered one.
fn key_uri(client: &Client) -> Option<&str> {
    client.metadata.get("jwks_uri").and_then(Value::as_str)
}

async fn keys(
    state: &AuthState,
    context: &RequestContext,
    client: &Client,
) -> Result<ClientKeys, OAuthError> {
    if let Some(uri) = key_uri(client) {
        return key_set::present(state, context, client, uri).await;
    }
    client
        .metadata
        .get("jwks")
        .and_then(|jwks| ClientKeys::read(jwks).ok())
        .ok_or_else(|| refused(AssertionError::UnknownKey))
}

/// The client as its metadata document describes it now. A client without a document is returned
/// unchanged.
async fn described(
    state: &AuthState,
    context: &RequestContext,
    client: Client,
    is_key_missing: bool,
) -> Result<Client, OAuthError> {
    if client.kind != ClientKind::Cimd {
        return Ok(client);
    }
    // Boxed, because it rarely fetches and is larger than the rest of the future.
    match Box::pin(metadata_document::renewed(
        state,
        client,
        context,
        is_key_missing,
    ))
    .await
    {
        Ok(client) if client.auth_method == AuthMethod::PrivateKeyJwt => Ok(client),
        Ok(_) => Err(OAuthError::invalid_client(
            "this client is public and must not send a secret or an assertion",
        )),
        Err(DocumentFault::Storage(error)) => Err(error.into()),
        Err(_) => Err(OAuthError::invalid_client(
            "the metadata document of this client is not acceptable any more",
        )),
    }
}
