//! The client credentials grant for MCP: a service account gets a token for itself
//! (AUTH-T12, MCP-AX-1…MCP-AX-5; the extension `io.modelcontextprotocol/oauth-client-credentials`).
//!
//! Programs request tokens far more often than people sign in, so a proof by secret is cached for
//! some seconds. The cache does not weaken a revocation: an entry includes the epochs that the
//! database had when it was read. Every node refuses a token with an old epoch, so a stale entry
//! yields a token that is already invalid.
//!
//! For the same reason the epochs are read before the proof is checked. A secret that is revoked in
//! between yields a token with the old epoch.

use std::sync::Arc;

use http::HeaderMap;
use portolan_cluster::TokenFacts;
use portolan_keys::{AccessClaims, Epochs};
use portolan_model::{
    client::ClientKind,
    id::{GrantId, TokenId},
    resource::Resource,
    scope::{self, ScopeSet},
};
use portolan_site::{oauth_parts::Proved, request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason,
    oauth::{
        clients::{self as stored, Client},
        grants,
        service_accounts::{self, ServiceAccountStatus},
    },
};
use time::Duration;

use crate::{
    clients,
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
    token::form::{Tokens, read_resource},
};

/// Life of a token of a service account, in seconds (AUTH-K2).
const LIFE: i64 = 15 * 60;

/// How long a proof by secret is cached.
const REMEMBERED: Duration = Duration::seconds(5);

/// The authenticated account: from the cache, or by its secret or assertion.
async fn account(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
) -> Result<Arc<Proved>, OAuthError> {
    let now = state.now();
    let claim = clients::claim(headers, form)?;
    if let Some(digest) = &claim.secret
        && let Some(proved) = state.oauth.services.0.get(digest)
        && now - proved.read_at < REMEMBERED
        && !is_known_to_be_over(state, &proved)
    {
        return Ok(proved);
    }
    let (client, standing) = prove(state, context, headers, form, &claim.client_id).await?;
    let proved = Arc::new(Proved {
        client_id: client.client_id,
        standing,
        read_at: now,
    });
    if let Some(digest) = claim.secret {
        state.oauth.services.0.insert(digest, Arc::clone(&proved));
    }
    Ok(proved)
}

/// Authenticates the account of a request, and returns its client with the status of before the
/// proof.
pub(crate) async fn prove(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
    client_id: &str,
) -> Result<(Client, ServiceAccountStatus), OAuthError> {
    // Read before the proof, and in a transaction of its own: see the module's description.
    let standing = standing(state, client_id).await?;
    let client = clients::authenticate(state, context, headers, form).await?;
    if client.kind != ClientKind::Service || !client.has_grant_type("client_credentials") {
        return Err(OAuthError::refused(
            ErrorCode::UnauthorizedClient,
            "this client did not register for client_credentials",
        ));
    }
    let standing = standing
        .filter(|standing| standing.is_active)
        .ok_or_else(|| clients::refused(headers, "this service account is switched off"))?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    service_accounts::note_used(&mut tx, standing.id, state.now()).await?;
    tx.commit().await?;
    Ok((client, standing))
}

/// The status of the account with this client id; `None` for every other client.
async fn standing(
    state: &AuthState,
    client_id: &str,
) -> Result<Option<ServiceAccountStatus>, OAuthError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    match stored::find(&mut tx, client_id).await? {
        Some(client) => Ok(service_accounts::standing(&mut tx, client.id).await?),
        None => Ok(None),
    }
}

/// Returns true if this process received a newer epoch of the account or its tenant after the entry
/// was read.
fn is_known_to_be_over(state: &AuthState, proved: &Proved) -> bool {
    let standing = &proved.standing;
    state.oauth.revocations.is_revoked(&TokenFacts {
        token: TokenId::from_uuid(standing.id.uuid()),
        grant: GrantId::from_uuid(standing.id.uuid()),
        subject: standing.id.into(),
        tenant: standing.tenant,
        client: &proved.client_id,
        key: "",
        user_epoch: standing.epoch,
        tenant_epoch: standing.tenant_epoch,
        member_epoch: 0,
    })
}

/// Answers with an access token, and never with a refresh token (MCP-AX-3).
pub(crate) async fn grant(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
) -> Result<Tokens, OAuthError> {
    let proved = account(state, context, headers, form).await?;
    let scopes = scopes(form)?;
    let audience = audience(state, &proved.standing, form).await?;
    let now = state.now();
    let expires_in = LIFE.min(state.oauth.config.access_token_secs);
    let iat = now.unix_timestamp();
    let standing = &proved.standing;
    let claims = AccessClaims {
        iss: state.site.issuer().to_owned(),
        aud: audience,
        sub: standing.id.into(),
        client_id: proved.client_id.clone(),
        tid: standing.tenant,
        // The account's own id stands in place of a grant's: no person granted the access.
        gid: GrantId::from_uuid(standing.id.uuid()),
        ep: Epochs {
            user: standing.epoch,
            tenant: standing.tenant_epoch,
            member: 0,
        },
        scope: scopes.to_string(),
        jti: TokenId::generate(),
        iat,
        exp: iat + expires_in,
        auth_time: None,
    };
    Ok(Tokens {
        access: state.signing_keys.sign(&claims, now)?,
        issued_token_type: None,
        expires_in,
        scope: claims.scope,
        refresh: None,
    })
}

/// Reads the scopes (AUTH-A8, AUTH-A11). Unknown ones are dropped. `offline_access` has no meaning,
/// because no person is involved.
fn scopes(form: &Parameters) -> Result<ScopeSet, OAuthError> {
    let Some(text) = form.first("scope") else {
        return Ok(ScopeSet::default_grant());
    };
    let asked = ScopeSet::from_request(text)
        .map_err(|_| {
            OAuthError::refused(ErrorCode::InvalidScope, "scope is malformed or too long")
        })?
        .without(scope::OFFLINE_ACCESS);
    Ok(if asked.is_empty() {
        ScopeSet::default_grant()
    } else {
        asked
    })
}

/// The audience (AUTH-T12): in the account's tenant, and no wider than the account. Without a
/// `resource` it is the account's own.
async fn audience(
    state: &AuthState,
    standing: &ServiceAccountStatus,
    form: &Parameters,
) -> Result<String, OAuthError> {
    let refused = || {
        OAuthError::refused(
            ErrorCode::InvalidTarget,
            "this service account may not use that resource",
        )
    };
    let asked = read_resource(state, form)?;
    let site = &state.oauth.resources;
    let own = match &standing.resource {
        Some(url) => site.read_canonical(url).ok_or_else(refused)?,
        None => Resource::Workspace {
            tenant: standing.slug.clone(),
        },
    };
    let Some(asked) = asked.filter(|asked| *asked != own) else {
        return Ok(site.url(&own));
    };
    let Some(slug) = asked.tenant() else {
        // `https://HOST/mcp`: the token determines the tenant.
        return if standing.resource.is_none() {
            Ok(site.url(&asked))
        } else {
            Err(refused())
        };
    };
    let is_ours = slug == standing.slug || {
        let mut tx = state.store.system(Reason::OAuth).await?;
        grants::names_tenant(&mut tx, slug, standing.tenant).await?
    };
    if own.narrows_to(&asked, |_| is_ours) {
        Ok(site.url(&asked))
    } else {
        Err(refused())
    }
}
