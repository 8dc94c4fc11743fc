//! The state that calls of backends share: catalogue, tokens, accounts and conversations.

use std::{ops::Deref, sync::Arc};

use portolan_connections::Connections;
use portolan_http_tools::TokenSource;

use crate::{
    backends::upstream::{
        get_streams::UpstreamGetStreams,
        hints::{Hints, TaskListeners},
        pool::Upstreams,
        refresh_requests::RefreshRequests,
    },
    catalog::{Catalog, bodies::Bodies},
    config::CATALOGUES,
    tasks::services::TaskServices,
};

/// Tasks and node, and the backends. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Backends(Arc<BackendParts>);

/// The contents of [`Backends`].
#[derive(Debug)]
pub struct BackendParts {
    tasks: TaskServices,
    pub(crate) catalog: Catalog,
    pub(crate) bodies: Bodies,
    pub(crate) tokens: TokenSource,
    /// Connected accounts at upstream servers.
    pub(crate) accounts: Connections,
    pub(crate) upstreams: Upstreams,
    /// Notifications of upstream servers beside the streams of calls.
    pub(crate) get_streams: UpstreamGetStreams,
    /// Requests for a refresh of upstream servers.
    pub(crate) refresh_requests: RefreshRequests,
    /// Tasks of upstream servers that this node awaits.
    pub(crate) hints: Arc<Hints>,
    /// `subscriptions/listen` requests for them.
    pub(crate) task_listeners: Arc<TaskListeners>,
    #[cfg(test)]
    pub(crate) scripts: Scripts,
}

impl Deref for Backends {
    type Target = BackendParts;
    fn deref(&self) -> &BackendParts {
        &self.0
    }
}

impl Deref for BackendParts {
    type Target = TaskServices;
    fn deref(&self) -> &TaskServices {
        &self.tasks
    }
}

impl Backends {
    pub(crate) fn new(tasks: TaskServices) -> Self {
        let (store, keys, clock) = (tasks.store.clone(), tasks.keys.clone(), tasks.clock.clone());
        let config = &tasks.config;
        Self(Arc::new(BackendParts {
            catalog: Catalog::new(
                store.clone(),
                keys.clone(),
                clock.clone(),
                Arc::clone(&tasks.admission),
                config.list_page_size,
                config.max_stale(),
                CATALOGUES,
            ),
            bodies: Bodies::new(store.clone()),
            tokens: TokenSource::new(clock.clone()),
            accounts: Connections::new(
                store,
                keys,
                tasks.egress.clone(),
                clock,
                tasks.tracker.clone(),
            ),
            upstreams: Upstreams::default(),
            get_streams: UpstreamGetStreams::default(),
            refresh_requests: RefreshRequests::default(),
            hints: Arc::default(),
            task_listeners: Arc::default(),
            #[cfg(test)]
            scripts: Scripts::default(),
            tasks,
        }))
    }
}

/// Backends of tests, by the name of their tool.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Scripts(std::sync::Mutex<std::collections::HashMap<String, crate::call::Script>>);

#[cfg(test)]
impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripts")
    }
}

#[cfg(test)]
impl Deref for Scripts {
    type Target = std::sync::Mutex<std::collections::HashMap<String, crate::call::Script>>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
