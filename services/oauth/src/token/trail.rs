//! Connection diagnostics of a token request (AUTH-X2): the exchange of a code, and a refresh
//! that was refused.

use http::HeaderMap;
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{
    Digest,
    id::{GrantId, TenantId},
    resource::Resource,
};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, StorageError,
    oauth::{clients, grants},
    platform::connect_events::{Step, StepOutcome, StepTenant},
};
use serde_json::{Map, Value};

use crate::{
    clients as oauth_clients,
    connection_diagnostics::{self, DescribeStep},
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
};

/// The facts about the request that are known so far.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    step: Option<Step>,
    client_id: Option<String>,
    pub(crate) client_name: Option<String>,
    /// The grant of the code or refresh token, once the token proved to be the client's own.
    pub(crate) grant: Option<(GrantId, TenantId)>,
    resource: Option<Resource>,
    code: Option<Digest>,
    sent: Map<String, Value>,
}

impl Trail {
    /// Reads the parameters that may be recorded.
    pub(crate) fn read(&mut self, state: &AuthState, headers: &HeaderMap, form: &Parameters) {
        self.step = match form.first("grant_type") {
            Some("authorization_code") => Some(Step::Token),
            Some("refresh_token") => Some(Step::Refresh),
            // Other grant types are not recorded.
            _ => return,
        };
        self.client_id = oauth_clients::claim(headers, form)
            .ok()
            .map(|claim| claim.client_id);
        self.resource = connection_diagnostics::named(state, form);
        self.code = form
            .first("code")
            .and_then(|text| SecretToken::parse(TokenForm::Code, text))
            .map(|code| code.digest());
        self.sent = connection_diagnostics::kept_parameters(form);
    }

    /// Passes the step to the recorder.
    pub(crate) async fn record(
        mut self,
        state: &AuthState,
        context: &RequestContext,
        error: Option<&OAuthError>,
    ) {
        let Some(step) = self.step else { return };
        if step == Step::Refresh && error.is_none() {
            return;
        }
        let is_unproved = matches!(
            error,
            Some(
                OAuthError::BasicRefused { .. }
                    | OAuthError::Refused {
                        code: ErrorCode::InvalidClient,
                        ..
                    }
            )
        );
        if step == Step::Token && is_unproved {
            self.grant = self.of_code(state).await.ok().flatten();
        }
        let mut event =
            connection_diagnostics::step(state, context, step).resource(self.resource.as_ref());
        if let Some(client_id) = &self.client_id {
            event = event.client(client_id, self.client_name.as_deref());
        }
        event.detail = Value::Object(self.sent);
        if let Some((grant, tenant)) = self.grant {
            event.grant = Some(grant);
            event.place = StepTenant::Tenant(tenant);
        }
        if let Some(error) = error {
            event = connection_diagnostics::refused_with(event, error);
        }
        let is_known_refusal = event.outcome == StepOutcome::Refused && event.grant.is_some();
        if step == Step::Token || is_known_refusal {
            state.oauth.recorder.record(event);
        }
    }

    /// The grant of the code in a refused request, if the code belongs to the named client. Only
    /// that client received the code, so the diagnostics can attribute a failed authentication to
    /// it.
    async fn of_code(
        &self,
        state: &AuthState,
    ) -> Result<Option<(GrantId, TenantId)>, StorageError> {
        let (Some(digest), Some(client_id)) = (&self.code, &self.client_id) else {
            return Ok(None);
        };
        let mut tx = state.store.system(Reason::Recorder).await?;
        let Some(code) = grants::find_code(&mut tx, digest).await? else {
            return Ok(None);
        };
        let client = clients::get(&mut tx, code.client).await?;
        Ok((client.client_id == *client_id).then_some((code.grant, code.tenant)))
    }
}
