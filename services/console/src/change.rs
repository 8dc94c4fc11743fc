//! A change of a workspace's registry: the notification of the nodes and the audit entry belong to
//! the same transaction.

use portolan_site::{console_error::ConsoleError, request_context::RequestContext};
use portolan_storage::{
    TenantTx,
    platform::audit,
    registry::{registry_news, trash},
};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::workspace::Workspace;

/// Raises the registry's revision, writes the audit entry, and commits.
pub(crate) async fn commit(
    mut tx: TenantTx,
    workspace: &Workspace,
    context: &RequestContext,
    now: OffsetDateTime,
    entry: (&'static str, &'static str, String, Value),
) -> Result<(), ConsoleError> {
    let (action, target_kind, target_id, detail) = entry;
    registry_news::changed(&mut tx).await?;
    audit::record(
        &mut tx,
        &workspace.event(action, target_kind, target_id, detail),
        &context.origin(),
        now,
    )
    .await?;
    tx.commit().await?;
    Ok(())
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
