//! The workspace of a path, and the person's permissions in it.

use axum::extract::FromRequestParts;
use http::request::Parts;
use portolan_model::{
    Timestamp,
    api_scope::ApiScope,
    audit::{Event, Outcome},
    factor::SecondFactor,
    id::{SourceId, TenantId, UserId},
    member::{Action, Role},
    slug::Slug,
};
use portolan_net::layers::Arrival;
use portolan_site::{
    access_policy::{self, AccessRequirement, single_sign_on},
    console_error::ConsoleError,
    presented_token::PresentedToken,
    session::BrowserSession,
    state::AuthState,
    target::{ConsolePage, Target},
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{access_tokens, browser_sessions, members, single_sign_on as providers},
    oauth::factor_rules,
};
use serde_json::Value;

use crate::{caller::Caller, input::path_parameter};

/// The workspace that `{ws}` names, as a member sees it.
///
/// The extractor answers 401 without a session or token. It answers 404 for an unknown slug and for
/// a workspace of strangers, byte for byte the same (AUTH-M2, CASE-106). It answers 403 with the page
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
    /// The subject of the request.
    pub caller: Caller,
}

impl Workspace {
    fn of(workspace: members::Workspace, caller: Caller) -> Self {
        Self {
            id: workspace.tenant.id,
            slug: workspace.tenant.slug,
            name: workspace.tenant.name,
            created_at: workspace.tenant.created_at,
            role: workspace.role,
            caller,
        }
    }

    /// The workspace as the same caller sees it now, for an answer that goes on for a while. The
    /// refusal is that of a new request: the session or token ended, or the person left. The look does
    /// not count as a use of the session: its end does not move (AUTH-S2).
    pub async fn again(&self, state: &AuthState) -> Result<Self, ConsoleError> {
        let mut tx = state.store.system(Reason::Workspaces).await?;
        let slug = self.slug.as_str();
        let (found, caller) = match &self.caller {
            Caller::Browser(session) => {
                let live =
                    browser_sessions::find_live(&mut tx, &session.token, state.now()).await?;
                let session = live.map(BrowserSession::from);
                let session = session.ok_or_else(ConsoleError::unauthenticated)?;
                let found = of_session(&mut tx, &session, slug).await?;
                (found, Caller::Browser(session))
            }
            Caller::Token(token) => {
                let opened = access_tokens::open(&mut tx, &token.digest, state.now()).await?;
                let token = opened.map(PresentedToken::new);
                let token = token.ok_or_else(ConsoleError::invalid_token)?;
                let found = of_token(&mut tx, &token, slug).await?;
                (found, Caller::Token(token))
            }
        };
        tx.commit().await?;
        // The slug may have become that of another workspace.
        if found.tenant.id != self.id {
            return Err(ConsoleError::not_found("this workspace"));
        }
        Ok(Self::of(found, caller))
    }

    /// 403 unless the role may do it.
    pub fn require(&self, action: Action) -> Result<(), ConsoleError> {
        if self.role.may(action) {
            Ok(())
        } else {
            Err(ConsoleError::forbidden(self.role, action))
        }
    }

    /// 403 for a token without this scope.
    pub fn require_scope(&self, scope: ApiScope) -> Result<(), ConsoleError> {
        if self.caller.has(scope) {
            Ok(())
        } else {
            Err(ConsoleError::insufficient_scope(scope))
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
        match &self.caller {
            Caller::Browser(_) => {
                self.require_recent_for(now, || Target::Source(self.slug.clone(), source))
            }
            // The scope stands for the recent sign-in of its maker (API-8).
            Caller::Token(token) if token.has(ApiScope::CredentialsWrite) => Ok(()),
            Caller::Token(_) => Err(ConsoleError::insufficient_scope(ApiScope::CredentialsWrite)),
        }
    }

    /// Does the same for the creation and the headers of an endpoint of webhooks. The scope stands
    /// for the recent sign-in of the token's maker (API-8).
    pub fn require_recent_for_webhooks(&self, now: Timestamp) -> Result<(), ConsoleError> {
        match &self.caller {
            Caller::Browser(_) => self.require_recent(now, ConsolePage::Webhooks),
            Caller::Token(_) => self.require_scope(ApiScope::WebhooksWrite),
        }
    }

    /// Does the same for a setting of the workspace that gives no access. A token may change it: its
    /// maker had a recent sign-in and chose the scope (API-8).
    pub fn require_recent_or_token(
        &self,
        now: Timestamp,
        page: ConsolePage,
    ) -> Result<(), ConsoleError> {
        match self.caller {
            Caller::Browser(_) => self.require_recent(now, page),
            Caller::Token(_) => Ok(()),
        }
    }

    /// Does the same, and leads back to an address of the console.
    pub fn require_recent_at(&self, now: Timestamp, address: &str) -> Result<(), ConsoleError> {
        self.require_recent_for(now, || Target::of_console(address))
    }

    fn require_recent_for(
        &self,
        now: Timestamp,
        back: impl FnOnce() -> Target,
    ) -> Result<(), ConsoleError> {
        // A token has no sign-in, and gives no access that would outlive it (API-8).
        let session = self.caller.browser()?;
        if session.only_tenant.is_some() && !session.is_recent(now) {
            return Err(ConsoleError::confirm_first(&single_sign_on::path(
                self.slug.as_str(),
                &back(),
            )));
        }
        require_recent(session, now, back)
    }

    /// The person whose own keys and apps the request is limited to; `None` for admins, who reach
    /// those of all. 403 for a workspace token with a weaker role, which has none.
    pub fn own_unless_admin(&self) -> Result<Option<UserId>, ConsoleError> {
        if self.role.may(Action::Administer) {
            return Ok(None);
        }
        let user = self.caller.user().ok_or_else(ConsoleError::person_only)?;
        Ok(Some(user))
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

    /// An audit entry for an action of this caller in this workspace.
    pub fn event(
        &self,
        action: &'static str,
        target_kind: &'static str,
        target_id: impl ToString,
        detail: Value,
    ) -> Event {
        Event {
            tenant: Some(self.id),
            actor: self.caller.actor(),
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
        let caller = Caller::from_request_parts(parts, state).await?;
        let slug = path_parameter(parts, "ws").await?;
        let mut tx = state.store.system(Reason::Workspaces).await?;
        let workspace = match &caller {
            Caller::Browser(session) => of_session(&mut tx, session, &slug).await?,
            Caller::Token(token) => of_token(&mut tx, token, &slug).await?,
        };
        if let Some(arrival) = parts.extensions.get::<Arrival>() {
            arrival.note_tenant(workspace.tenant.id.to_string());
        }
        Ok(Self::of(workspace, caller))
    }
}

/// The workspace as a signed-in person sees it.
async fn of_session(
    tx: &mut SystemTx,
    session: &BrowserSession,
    slug: &str,
) -> Result<members::Workspace, ConsoleError> {
    let found = members::workspace_of(tx, session.user, slug).await?;
    let workspace = found.ok_or_else(|| ConsoleError::not_found("this workspace"))?;
    let tenant = &workspace.tenant;
    let unmet = access_policy::unmet(tx, tenant.id, workspace.role, session).await?;
    let Some(unmet) = unmet else {
        return Ok(workspace);
    };
    let target = Target::Workspace(tenant.slug.clone(), ConsolePage::Overview);
    let path = unmet.path(tenant.slug.as_str(), &target);
    Err(match unmet {
        AccessRequirement::Everything => ConsoleError::not_found("this workspace"),
        AccessRequirement::SingleSignOn => ConsoleError::company_first(&path),
        AccessRequirement::Factor(rule) => ConsoleError::factor_first(rule, &path),
    })
}

/// The workspace as a token sees it. The rules for sign-ins bind personal tokens too: their maker's
/// sign-in must include the factor, and no token stands for the workspace's provider (API-4).
async fn of_token(
    tx: &mut SystemTx,
    token: &PresentedToken,
    slug: &str,
) -> Result<members::Workspace, ConsoleError> {
    let found = access_tokens::workspaces_of(tx, token, Some(slug)).await?;
    let workspace = found.into_iter().next();
    let workspace = workspace.ok_or_else(|| ConsoleError::not_found("this workspace"))?;
    if token.user().is_none() {
        return Ok(workspace);
    }
    if providers::required(tx, workspace.tenant.id)
        .await?
        .is_some()
    {
        return Err(ConsoleError::token_not_admitted(
            "This workspace asks its members to sign in with its own provider. Use a workspace token.",
        ));
    }
    let rule = factor_rules::of(tx, workspace.tenant.id).await?;
    if !rule.is_met_by(&token.amr) {
        return Err(ConsoleError::token_not_admitted(
            "This workspace asks for a second factor. Sign in with it and make a new token.",
        ));
    }
    Ok(workspace)
}
