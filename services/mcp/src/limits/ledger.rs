//! The limits of workspaces for the console, also in a process without MCP endpoints.

use std::sync::Arc;

use portolan_cluster::{
    ledger::Ledger,
    node::{Limit, LimitKey},
    store::Store,
};
use portolan_model::{id::TenantId, limits::LimitName};

use crate::limits::{a_minute, places_key, seconds};

/// Read access to the counts of the nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TenantLedger(Ledger);

impl TenantLedger {
    /// Reads the store that the nodes share.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(Ledger::new(store))
    }

    /// Running calls and open streams of a tenant in the cluster, some seconds old. `None` if
    /// unknown.
    pub async fn in_use(&self, tenant: TenantId) -> [Option<u64>; 2] {
        let [calls, streams] =
            [LimitName::RunningCalls, LimitName::OpenStreams].map(|name| places_key(tenant, name));
        let (calls, streams) = tokio::join!(self.0.in_use(&calls), self.0.in_use(&streams));
        [calls, streams]
    }

    /// Counts a call of the console among those of its tenant. `count` is the limit a minute.
    ///
    /// Over the limit, the result is whole seconds until a retry makes sense.
    pub async fn take_call(&self, tenant: TenantId, count: Option<u32>) -> Option<u64> {
        let rate = a_minute(Limit::TenantCalls, count)?;
        let taken = self.0.take(&calls_of(tenant), rate).await;
        taken.err().map(|wait| seconds(wait.0))
    }
}

/// The bucket of all calls of a tenant.
pub(crate) fn calls_of(tenant: TenantId) -> LimitKey {
    LimitKey {
        shard: tenant.uuid().simple().to_string(),
        bucket: "t".to_owned(),
    }
}
