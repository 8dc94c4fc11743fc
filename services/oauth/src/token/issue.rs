//! Makes an access token for a grant (AUTH-K1 to AUTH-K3, AUTH-4.4).

use portolan_keys::{AccessClaims, Epochs, Secret};
use portolan_model::{client::AuthMethod, id::TokenId, scope::ScopeSet};
use portolan_site::state::AuthState;
use portolan_storage::{
    StorageError,
    oauth::{
        clients::Client,
        grant_state::GrantState,
        grants::{Grant, GrantStatus},
    },
};

use crate::{admission, error::OAuthError};

/// Returns true if the client no longer proves itself by key, and the grant was given to a client
/// that did. A client whose document changes to no proof must not inherit such a grant (AUTH-C5).
pub(crate) fn is_downgraded(client: &Client, grant: &Grant) -> bool {
    grant.is_key_bound && client.auth_method == AuthMethod::None
}

/// Returns the present status of a grant's parties, as read in the transaction that issues
/// (AUTH-K16). `None` if the grant, the person, the membership or the tenant is not active any
/// more. Also `None` if the sign-in does not meet the tenant's present rules.
pub(crate) fn standing(
    state: &AuthState,
    client: &Client,
    present: &GrantState,
) -> Result<Option<GrantStatus>, StorageError> {
    let grant = &present.grant;
    if grant.is_revoked || grant.expires_at <= state.now() {
        return Ok(None);
    }
    // AUTH-M7: the workspace may refuse a client that it admitted when the person agreed.
    let (rule, decision) = present.client_rule()?;
    if !admission::judge(client, grant.tenant, rule, decision).is_admitted() {
        return Ok(None);
    }
    // AUTH-L14: a stricter rule also holds for grants that were given before it.
    if !present.meets_second_factor()? {
        return Ok(None);
    }
    // AUTH-F7: so does the rule that members sign in with the workspace's own provider.
    if !present.is_admitted_by_provider {
        return Ok(None);
    }
    Ok(present.standing.filter(|standing| standing.is_active))
}

/// Signs an access token. It never expires after the grant (AUTH-K2).
pub(crate) fn access_token(
    state: &AuthState,
    client: &Client,
    grant: &Grant,
    standing: &GrantStatus,
    scopes: &ScopeSet,
    audience: String,
) -> Result<(Secret<String>, i64), OAuthError> {
    let now = state.now();
    let left = (grant.expires_at - now).whole_seconds();
    let expires_in = state.oauth.config.access_token_secs.min(left).max(1);
    let iat = now.unix_timestamp();
    let claims = AccessClaims {
        iss: state.site.issuer().to_owned(),
        aud: audience,
        sub: grant.user.into(),
        client_id: client.client_id.clone(),
        tid: grant.tenant,
        gid: grant.id,
        ep: Epochs {
            user: standing.user_epoch,
            tenant: standing.tenant_epoch,
            member: standing.member_epoch,
        },
        scope: scopes.to_string(),
        jti: TokenId::generate(),
        iat,
        exp: iat + expires_in,
        auth_time: Some(grant.auth_time.unix_timestamp()),
    };
    Ok((state.signing_keys.sign(&claims, now)?, expires_in))
}
