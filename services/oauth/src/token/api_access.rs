//! The client credentials grant for the management API: a service account with access to it gets a
//! workspace token (API-23 to API-26). Tokens for MCP are given by [`super::service`].
//!
//! ```text
//! form ─► rate of the address ─► proof of the account ─► its access to the named workspace
//!     ─► its scopes ─► rate of the workspace ─► one transaction: the token and its entry
//! ```

use http::HeaderMap;
use portolan_model::audit::{Actor, Event, Outcome};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{Reason, accounts::api_access, platform::audit};
use serde_json::json;
use time::Duration;

use crate::{
    clients,
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
    token::{
        form::Tokens,
        service,
        workspace_token::{self, NewToken, WantedToken},
    },
};

/// Life of a token.
const LIFE: Duration = Duration::minutes(15);

/// The one text for an account without access, for another workspace and for an unknown one.
const NO_ACCESS: OAuthError = OAuthError::refused(
    ErrorCode::InvalidTarget,
    "this service account has no access to the management API of that workspace",
);

/// Gives the account of the request a workspace token. Its proof is not cached: the token is stored,
/// so that a revoked secret must not prove it.
pub(crate) async fn grant(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    form: &Parameters,
) -> Result<Tokens, OAuthError> {
    let wanted = WantedToken::read(state, form)?;
    workspace_token::take_request(state, context).await?;
    let claim = clients::claim(headers, form)?;
    let (client, standing) =
        service::prove(state, context, headers, form, &claim.client_id).await?;
    let (tenant, account) = (standing.tenant, standing.id);
    let mut tx = state.store.system(Reason::OAuth).await?;
    let slug = wanted.workspace.as_str();
    let access = api_access::of_account(&mut tx, tenant, account, slug).await?;
    drop(tx);
    let access = access.ok_or(NO_ACCESS)?;
    let scopes = wanted.scopes_of(&access.scopes)?;
    let token = NewToken::generate(state, tenant, scopes, LIFE).await?;
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    let by = (&access, standing.epoch, client.name.as_str());
    if !api_access::issue(&mut tx, tenant, by, &token.stored(), now).await? {
        // The access was changed, or the account's secret revoked, a moment ago.
        return Err(NO_ACCESS);
    }
    let event = Event {
        tenant: Some(tenant),
        actor: Actor::ServiceAccount(account),
        action: "access_token.issued",
        target_kind: "access_token",
        target_id: token.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({
            "name": client.name, "service_account": account, "role": access.role,
            "scopes": token.scopes, "minutes": LIFE.whole_minutes(),
        }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(token.answer(None))
}
