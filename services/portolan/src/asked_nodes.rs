//! The console's way to the sessions that MCP nodes know.

use portolan_mcp::SessionDirectory;
use portolan_model::{
    id::TenantId,
    live_session::{LiveSession, SessionMoment},
};
use portolan_site::live_sessions::{AskNodes, Asking};

/// Asks the nodes through the store that they share.
#[derive(Debug)]
pub(crate) struct AskedNodes(pub(crate) SessionDirectory);

impl AskNodes for AskedNodes {
    fn list(&self, tenant: TenantId) -> Asking<Vec<LiveSession>> {
        let directory = self.0.clone();
        Box::pin(async move { directory.list(tenant).await })
    }

    fn one(&self, tenant: TenantId, id: &str) -> Asking<Option<LiveSession>> {
        let (directory, id) = (self.0.clone(), id.to_owned());
        Box::pin(async move { directory.one(tenant, &id).await })
    }

    fn moments(&self, tenant: TenantId, id: &str) -> Asking<Vec<SessionMoment>> {
        let (directory, id) = (self.0.clone(), id.to_owned());
        Box::pin(async move { directory.moments(tenant, &id).await })
    }

    fn end(&self, tenant: TenantId, id: &str) -> Asking<bool> {
        let (directory, id) = (self.0.clone(), id.to_owned());
        Box::pin(async move { directory.end(tenant, &id).await })
    }
}
