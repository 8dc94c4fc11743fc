//! A change of a workspace's registry: the notification of the nodes and the audit entry belong to
//! the same transaction.

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::request::Parts;
use portolan_model::{audit::Event, member::Action};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    StorageError, TenantTx,
    platform::audit,
    registry::{registry_news, trash},
};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::workspace::Workspace;

/// Raises the registry's revision, writes the audit entry, and commits. 412 if the request names
/// another revision than the one before (API-14): the row of the tenant is locked from here on, so
/// of two changes with one version the second is refused.
pub(crate) async fn commit(
    mut tx: TenantTx,
    context: &RequestContext,
    now: OffsetDateTime,
    event: &Event,
) -> Result<(), ConsoleError> {
    let revision = registry_news::changed(&mut tx).await?;
    if let Some(wanted) = &context.if_match
        && !wanted.contains(&entity_tag(revision - 1))
    {
        return Err(ConsoleError::version_differs());
    }
    audit::record(&mut tx, event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(())
}

/// The version of everything in a registry at a revision (RFC 9110 §8.8.3).
pub(crate) fn entity_tag(revision: i64) -> String {
    format!("\"r{revision}\"")
}

/// A member who may edit the registry, with the facts of the request. The extractor answers 403 for
/// other members, before the body is read.
#[derive(Debug)]
pub(crate) struct Editor {
    pub(crate) state: AuthState,
    pub(crate) workspace: Workspace,
    pub(crate) context: RequestContext,
    /// The time of the change.
    pub(crate) now: OffsetDateTime,
}

impl FromRequestParts<AuthState> for Editor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AuthState) -> Result<Self, Response> {
        let workspace = Workspace::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        workspace
            .require(Action::EditRegistry)
            .map_err(IntoResponse::into_response)?;
        Ok(Self {
            context: RequestContext::from_request_parts(parts, state).await?,
            workspace,
            now: state.now(),
            state: state.clone(),
        })
    }
}

impl Editor {
    /// Begins the transaction of a change.
    pub(crate) async fn begin(&self) -> Result<TenantTx, StorageError> {
        self.state.store.tenant(self.workspace.id).await
    }

    /// Commits the transaction as [`commit`] does, with an audit entry of this person.
    pub(crate) async fn commit(
        &self,
        tx: TenantTx,
        action: &'static str,
        target_kind: &'static str,
        target: impl ToString,
        detail: Value,
    ) -> Result<(), ConsoleError> {
        let event = self.workspace.event(action, target_kind, target, detail);
        commit(tx, &self.context, self.now, &event).await
    }
}

/// The response to a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub struct Deleted {
    /// End of the time in which it can be restored.
    #[serde(with = "time::serde::rfc3339")]
    undo_until: OffsetDateTime,
}

impl Deleted {
    /// Makes the response for a deletion at `now`.
    pub(crate) fn at(now: OffsetDateTime) -> Self {
        Self {
            undo_until: now + trash::KEPT,
        }
    }
}
