//! Connection diagnostics of the consent page (AUTH-X2). Only a workspace with the person as a
//! member sees the person's name.

use portolan_model::{id::TenantId, member::Action};
use portolan_site::{request_context::RequestContext, session::BrowserSession, state::AuthState};
use portolan_storage::{
    oauth::{authorization_requests::AuthorizationRequest, clients::Client, grants::Grant},
    platform::connect_events::{NewEvent, Step, StepOutcome, StepTenant},
};

use crate::{
    admission::{self, Offered},
    connection_diagnostics::{self, DescribeStep},
    consent::target::{GrantTarget, requested},
};

/// The text for a server that does not exist (REVIEW-S-8, RFC 8707 §2).
pub(crate) const NO_SERVER: &str = "there is no such MCP server in this workspace";

fn step(
    state: &AuthState,
    context: &RequestContext,
    step: Step,
    request: &AuthorizationRequest,
    client: &Client,
) -> NewEvent {
    let resource = requested(state, request).ok().flatten();
    let mut event = connection_diagnostics::step(state, context, step)
        .client(&client.client_id, Some(&client.name))
        .resource(resource.as_ref());
    event.authorization = Some(request.id);
    event
}

/// Records that the person was sent to sign in.
pub(crate) fn sign_in(
    state: &AuthState,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
) {
    let mut event = step(state, context, Step::SignIn, request, client);
    event.outcome = StepOutcome::Waiting;
    state.oauth.recorder.record(event);
}

/// Records that the page was shown for the first time.
pub(crate) fn shown(
    state: &AuthState,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    target: &GrantTarget,
    session: &BrowserSession,
) {
    let mut event = step(state, context, Step::Consent, request, client);
    event.outcome = StepOutcome::Waiting;
    match target {
        GrantTarget::Fixed { offered, .. } => {
            event.place = StepTenant::Tenant(offered.choice.tenant);
            event.user = Some(session.user);
            if let Some((rule, words)) = obstacle(offered) {
                event = event.refused(Some(rule), words);
            }
        }
        GrantTarget::Pick(_) => {}
        GrantTarget::NoServer { offered, .. } => {
            event.place = StepTenant::Tenant(offered.choice.tenant);
            event.user = Some(session.user);
            event = event.refused(Some("A9"), NO_SERVER);
        }
        GrantTarget::NoAccess => {
            event = event.refused(Some("N11"), "the person has no access to this workspace");
        }
        GrantTarget::NoWorkspace => {
            event = event.refused(Some("N11"), "the person has no workspace yet");
        }
    }
    state.oauth.recorder.record(event);
}

/// The reason why a workspace cannot be chosen.
fn obstacle(offered: &Offered) -> Option<(&'static str, &'static str)> {
    if !offered.choice.role.may(Action::CallTools) {
        return Some((
            "N11",
            "the person's role is viewer, which cannot call tools",
        ));
    }
    (!offered.verdict.admission.is_admitted()).then(|| {
        let rule = if offered.verdict.admission == portolan_model::admission::Admission::Foreign {
            "C16"
        } else {
            "M7"
        };
        (rule, admission::words(offered.verdict))
    })
}

/// Records the approval.
pub(crate) fn approved(
    state: &AuthState,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    grant: &Grant,
) {
    let mut event = step(state, context, Step::Consent, request, client);
    event.place = StepTenant::Tenant(grant.tenant);
    event.user = Some(grant.user);
    event.grant = Some(grant.id);
    let event = event.sent("scope", grant.scopes.to_string());
    state.oauth.recorder.record(event);
}

/// Records the denial by the person, or that there is no such server.
pub(crate) fn denied(
    state: &AuthState,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    target: &GrantTarget,
) {
    let mut event = step(state, context, Step::Consent, request, client);
    event = if let GrantTarget::NoServer { offered, .. } = target {
        event.place = StepTenant::Tenant(offered.choice.tenant);
        event.refused(Some("A9"), NO_SERVER)
    } else {
        event.refused(Some("N5"), "the person did not allow it")
    };
    state.oauth.recorder.record(event);
}

/// Records that a workspace was posted which may not be chosen.
pub(crate) fn refused(
    state: &AuthState,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    target: &GrantTarget,
    workspace: &str,
) {
    let mut event = step(state, context, Step::Consent, request, client);
    let (rule, words) = match target.named(workspace) {
        Some(offered) => {
            let tenant: TenantId = offered.choice.tenant;
            event.place = StepTenant::Tenant(tenant);
            obstacle(offered).unwrap_or(("M7", "the workspace does not admit this app any more"))
        }
        None => ("N11", "the person has no access to this workspace"),
    };
    state
        .oauth
        .recorder
        .record(event.refused(Some(rule), words));
}
