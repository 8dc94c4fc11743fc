//! The workspace's rule for the sign-in of its members (AUTH-L14).

use axum::{Json, extract::State};
use portolan_model::{factor::SecondFactor, member::Action};
use portolan_site::{
    console_error::ConsoleError,
    request_context::RequestContext,
    state::AuthState,
    target::{ConsolePage, Target},
};
use portolan_storage::{Reason, SystemTx, oauth::factor_rules, platform::audit};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{input::JsonBody, workspace::Workspace};

/// The second factor that a workspace requires.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SecondFactorRule)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::SecondFactor"
)]
pub(crate) enum RuleName {
    Off,
    Required,
    Passkey,
}

/// The rule, and the number of members that meet it today.
#[derive(Debug, Serialize, ToSchema)]
pub struct Security {
    /// The factor that members need beside their password.
    #[schema(value_type = RuleName)]
    second_factor: SecondFactor,
    /// Number of active members.
    members: i64,
    /// Number of these with an authenticator app or a passkey.
    members_with_factor: i64,
    /// Number of these with a passkey.
    members_with_passkey: i64,
    /// True if this service can use passkeys, which needs a host name.
    passkeys_possible: bool,
}

async fn seen(
    state: &AuthState,
    tx: &mut SystemTx,
    workspace: &Workspace,
) -> Result<Security, ConsoleError> {
    let host = state.site.passkey_host();
    let ready = factor_rules::readiness(tx, workspace.id, host).await?;
    Ok(Security {
        second_factor: factor_rules::of(tx, workspace.id).await?,
        members: ready.members,
        members_with_factor: ready.with_any,
        members_with_passkey: ready.with_passkey,
        passkeys_possible: state.site.passkeys().is_some(),
    })
}

/// The workspace's rule for sign-ins. For admins.
#[utoipa::path(get, path = "/workspaces/{ws}/security", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The rule.", body = Security)))]
pub(crate) async fn show_security(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Security>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    Ok(Json(seen(&state, &mut tx, &workspace).await?))
}

/// A change of the rule.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecurityChange {
    #[schema(value_type = RuleName)]
    second_factor: SecondFactor,
}

/// Changes the rule. For admins, with a sign-in of the last ten minutes. A stricter rule ends
/// access tokens at once. Apps of members who signed in without the factor have to be connected
/// again.
#[utoipa::path(patch, path = "/workspaces/{ws}/security", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    request_body = SecurityChange, responses((status = 200, description = "Changed.", body = Security)))]
pub(crate) async fn change_security(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(change): JsonBody<SecurityChange>,
) -> Result<Json<Security>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Security)?;
    let session = workspace.caller.browser()?;
    let rule = change.second_factor;
    if rule == SecondFactor::Passkey && state.site.passkeys().is_none() {
        let message = "Passkeys cannot be used here, because this service is reached by an address and not by a name.";
        return Err(ConsoleError::invalid("passkeys_impossible", message).field("second_factor"));
    }
    // Without this check, an admin who does not meet the new rule would be locked out at once.
    if !rule.is_met_by(&session.amr) {
        let mut tx = state.store.system(Reason::Workspaces).await?;
        let (user, host) = (session.user, state.site.passkey_host());
        let can = factor_rules::can_meet(&mut tx, user, rule, host).await?;
        let target = Target::Workspace(workspace.slug.clone(), ConsolePage::Security);
        let path = if can {
            target.on_with("/account/confirm", &format!("for={rule}"))
        } else if rule == SecondFactor::Passkey {
            target.on("/account/passkeys")
        } else {
            target.on("/account/two-factor")
        };
        let message = "Sign in this way yourself first: otherwise this rule would lock you out.";
        return Err(ConsoleError::conflict("second_factor_first", message)
            .field("second_factor")
            .details(serde_json::json!({ "path": path })));
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let before = factor_rules::set(&mut tx, workspace.id, rule, now).await?;
    if before != rule {
        let event = workspace.event(
            "tenant.second_factor_rule",
            "tenant",
            workspace.id,
            serde_json::json!({ "before": before, "after": rule }),
        );
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    let security = seen(&state, &mut tx, &workspace).await?;
    tx.commit().await?;
    Ok(Json(security))
}
