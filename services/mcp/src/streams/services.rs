//! The state of open streams, and the services below them: what handlers of methods get.

use std::{ops::Deref, sync::Arc};

use portolan_cluster::Streams;

use crate::{
    backends::services::Backends,
    streams::{audience::Audience, pending::Untold, tag::Tag},
    upstream_subscriptions::UpstreamSubscriptions,
};

/// The backends, and the open streams. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StreamServices(Arc<StreamParts>);

/// The contents of [`StreamServices`].
#[derive(Debug)]
pub struct StreamParts {
    backends: Backends,
    pub(crate) streams: Streams<Tag>,
    /// Tenants whose open streams must be notified once more.
    pub(crate) untold: Untold,
    /// The upstream subscriptions of this node's clients.
    pub(crate) upstream_subscriptions: UpstreamSubscriptions,
    /// The streams that subscribe to tasks.
    pub(crate) audience: Audience,
}

impl Deref for StreamServices {
    type Target = StreamParts;
    fn deref(&self) -> &StreamParts {
        &self.0
    }
}

impl Deref for StreamParts {
    type Target = Backends;
    fn deref(&self) -> &Backends {
        &self.backends
    }
}

impl StreamServices {
    pub(crate) fn new(backends: Backends) -> Self {
        Self(Arc::new(StreamParts {
            backends,
            streams: Streams::default(),
            untold: Untold::default(),
            upstream_subscriptions: UpstreamSubscriptions::default(),
            audience: Audience::default(),
        }))
    }

    /// The same services behind their shared contents.
    pub(crate) const fn of(parts: Arc<StreamParts>) -> Self {
        Self(parts)
    }

    /// The shared contents, for subscriptions to events.
    pub(crate) const fn parts(&self) -> &Arc<StreamParts> {
        &self.0
    }
}
