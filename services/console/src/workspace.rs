//! The workspace of a path, and the person's permissions in it.

use axum::{RequestPartsExt, extract::FromRequestParts};
use http::request::Parts;
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    factor::SecondFactor,
    id::{SourceId, TenantId},
    member::{Action, Role},
    slug::Slug,
};
use portolan_net::layers::Arrival;
use portolan_site::{
    access_policy::{self, AccessRequirement, single_sign_on},
    console_error::ConsoleError,
    session::{AnySession, BrowserSession},
    state::AuthState,
    target::{ConsolePage, Target},
};
use portolan_storage::{Reason, accounts::members};
use serde_json::Value;

use crate::input::path_parameter;

/// The workspace that `{ws}` names, as a member sees it.
///
/// The extractor answers 401 without a session. It answers 404 for an unknown slug and for a
/// workspace of strangers, byte for byte the same (AUTH-M2, CASE-106). It answers 403 with the page
/// to visit if the session does not meet the workspace's rule (AUTH-L14). The role is read at each
/// request (AUTH-S11).
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The tenant.
    pub id: TenantId,
    /// Its present slug.
    pub slug: Slug,
    /// Display name.
    pub name: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// The person's role.
    pub role: Role,
    /// The session of the request.
    pub session: BrowserSession,
}

impl Workspace {
    /// 403 unless the role may do it.
    pub fn require(&self, action: Action) -> Result<(), ConsoleError> {
        if self.role.may(action) {
            Ok(())
        } else {
            Err(ConsoleError::forbidden(self.role, action))
        }
    }

    /// 403 with the path of the confirmation page, unless the session has a recent sign-in
    /// (AUTH-S2, CASE-157).
    pub fn require_recent(&self, now: Timestamp, page: ConsolePage) -> Result<(), ConsoleError> {
        self.require_recent_for(now, || Target::Workspace(self.slug.clone(), page))
    }

    /// Does the same for a change of a source, and leads back to its page.
    pub fn require_recent_at_source(
        &self,
        now: Timestamp,
        source: SourceId,
    ) -> Result<(), ConsoleError> {
        self.require_recent_for(now, || Target::Source(self.slug.clone(), source))
    }

    fn require_recent_for(
        &self,
        now: Timestamp,
        back: impl FnOnce() -> Target,
    ) -> Result<(), ConsoleError> {
        if self.session.only_tenant.is_some() && !self.session.is_recent(now) {
            return Err(ConsoleError::confirm_first(&single_sign_on::path(
                self.slug.as_str(),
                &back(),
            )));
        }
        require_recent(&self.session, now, back)
    }

    /// Does the same for switching a subject with access on; switching it off needs no recent
    /// sign-in.
    pub fn require_recent_to_switch(
        &self,
        on: bool,
        now: Timestamp,
        page: ConsolePage,
    ) -> Result<(), ConsoleError> {
        if on {
            self.require_recent(now, page)
        } else {
            Ok(())
        }
    }

    /// An audit entry for an action of this person in this workspace.
    pub fn event(
        &self,
        action: &'static str,
        target_kind: &'static str,
        target_id: impl ToString,
        detail: Value,
    ) -> Event {
        Event {
            tenant: Some(self.id),
            actor: Actor::User(self.session.user),
            action,
            target_kind,
            target_id: target_id.to_string(),
            outcome: Outcome::Ok,
            detail,
        }
    }
}

/// 403 with the path of the confirmation page, unless the session has a recent sign-in
/// (AUTH-S2, CASE-157).
pub(crate) fn require_recent(
    session: &BrowserSession,
    now: Timestamp,
    back: impl FnOnce() -> Target,
) -> Result<(), ConsoleError> {
    if session.is_recent(now) {
        return Ok(());
    }
    let target = back();
    // The new proof replaces the session's, so it must include the factor that a workspace
    // requires.
    let path = [SecondFactor::Passkey, SecondFactor::Required]
        .into_iter()
        .find(|rule| rule.is_met_by(&session.amr))
        .map_or_else(
            || target.on("/account/confirm"),
            |rule| target.on_with("/account/confirm", &format!("for={rule}")),
        );
    Err(ConsoleError::confirm_first(&path))
}

impl FromRequestParts<AuthState> for Workspace {
    type Rejection = ConsoleError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AuthState,
    ) -> Result<Self, ConsoleError> {
        let AnySession(session) = parts.extract_with_state(state).await?;
        let slug = path_parameter(parts, "ws").await?;
        let mut tx = state.store.system(Reason::Workspaces).await?;
        let found = members::workspace_of(&mut tx, session.user, &slug).await?;
        let workspace = found.ok_or_else(|| ConsoleError::not_found("this workspace"))?;
        let unmet =
            access_policy::unmet(&mut tx, workspace.tenant.id, workspace.role, &session).await?;
        if let Some(unmet) = unmet {
            let slug = workspace.tenant.slug;
            let target = Target::Workspace(slug.clone(), ConsolePage::Overview);
            let path = unmet.path(slug.as_str(), &target);
            return Err(match unmet {
                AccessRequirement::Everything => ConsoleError::not_found("this workspace"),
                AccessRequirement::SingleSignOn => ConsoleError::company_first(&path),
                AccessRequirement::Factor(rule) => ConsoleError::factor_first(rule, &path),
            });
        }
        if let Some(arrival) = parts.extensions.get::<Arrival>() {
            arrival.note_tenant(workspace.tenant.id.to_string());
        }
        Ok(Self {
            id: workspace.tenant.id,
            slug: workspace.tenant.slug,
            name: workspace.tenant.name,
            created_at: workspace.tenant.created_at,
            role: workspace.role,
            session,
        })
    }
}
