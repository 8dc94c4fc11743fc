//! Messages of prompts and bytes of resources that are too large for a catalogue, read on demand.
//!
//! They are cached up to a limit.

use std::sync::Arc;

use portolan_model::{id::TenantId, prompt::Message};
use portolan_storage::{
    StorageError, Store,
    registry::{prompts, resources},
};
use quick_cache::{Weighter, sync::Cache};
use uuid::Uuid;

use crate::{
    catalog::offers::{Prompt, PromptBackend, Resource, ResourceBackend},
    error::McpError,
};

/// Most bytes in the cache.
const ROOM: u64 = 64 * 1024 * 1024;

/// The expected number of entries at that size.
const ENTRIES: usize = 1_000;

#[derive(Debug, Clone)]
enum Body {
    /// Messages, and the length of their JSON.
    Messages(Arc<[Message]>, usize),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone)]
struct Weigh;

impl Weighter<(Uuid, i64), Body> for Weigh {
    fn weight(&self, _: &(Uuid, i64), body: &Body) -> u64 {
        let bytes = match body {
            Body::Messages(_, bytes) => *bytes,
            Body::Bytes(bytes) => bytes.len(),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }
}

/// The cache, by id and version.
#[derive(Debug)]
pub(crate) struct Bodies {
    store: Store,
    kept: Cache<(Uuid, i64), Body, Weigh>,
}

fn unavailable(error: &StorageError) -> McpError {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "cannot read what a prompt or resource holds"
    );
    McpError::RegistryAway
}

impl Bodies {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            kept: Cache::with_weighter(ENTRIES, ROOM, Weigh),
        }
    }

    /// The messages of a prompt; `None` if it is gone meanwhile.
    pub(crate) async fn messages(
        &self,
        tenant: TenantId,
        prompt: &Prompt,
    ) -> Result<Option<Arc<[Message]>>, McpError> {
        let PromptBackend::Written(kept) = &prompt.backend else {
            return Ok(None);
        };
        if let Some(messages) = kept {
            return Ok(Some(Arc::clone(messages)));
        }
        let key = (prompt.id.uuid(), prompt.version);
        if let Some(Body::Messages(messages, _)) = self.kept.get(&key) {
            return Ok(Some(messages));
        }
        let read = async {
            let mut tx = self.store.node(tenant).await?;
            prompts::messages(&mut tx, prompt.id).await
        };
        let Some((version, value)) = read.await.map_err(|error| unavailable(&error))? else {
            return Ok(None);
        };
        let bytes = value.to_string().len();
        let Ok(messages) = serde_json::from_value::<Vec<Message>>(value) else {
            return Ok(None);
        };
        let messages: Arc<[Message]> = messages.into();
        let body = Body::Messages(Arc::clone(&messages), bytes);
        self.kept.insert((prompt.id.uuid(), version), body);
        Ok(Some(messages))
    }

    /// The bytes of a resource; `None` if it is gone meanwhile, or has none.
    pub(crate) async fn bytes(
        &self,
        tenant: TenantId,
        resource: &Resource,
    ) -> Result<Option<Arc<[u8]>>, McpError> {
        let ResourceBackend::Stored { content, .. } = &resource.backend else {
            return Ok(None);
        };
        if let Some(bytes) = content {
            return Ok(Some(Arc::clone(bytes)));
        }
        let key = (resource.id.uuid(), resource.version);
        if let Some(Body::Bytes(bytes)) = self.kept.get(&key) {
            return Ok(Some(bytes));
        }
        let read = async {
            let mut tx = self.store.node(tenant).await?;
            resources::content(&mut tx, resource.id).await
        };
        let Some((version, bytes)) = read.await.map_err(|error| unavailable(&error))? else {
            return Ok(None);
        };
        let bytes: Arc<[u8]> = bytes.into();
        let body = Body::Bytes(Arc::clone(&bytes));
        self.kept.insert((resource.id.uuid(), version), body);
        Ok(Some(bytes))
    }
}
