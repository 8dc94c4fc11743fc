//! The state of transports, and the services below them.

use std::{ops::Deref, sync::Arc};

use portolan_model::Digest;
use quick_cache::sync::Cache;

use crate::{
    caller::ClientName, streams::services::StreamServices,
    transport::http_sse::connections::Connections,
};

/// Most client names that are cached, for the log of calls.
const CLIENT_NAMES: usize = 10_000;

/// The services of features, and the transports. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TransportServices(Arc<TransportParts>);

/// The contents of [`TransportServices`].
#[derive(Debug)]
pub struct TransportParts {
    streams: StreamServices,
    /// The HTTP+SSE connections that this node holds.
    pub(crate) connections: Connections,
    /// Client names by principal; losing one does no harm.
    pub(crate) client_names: Cache<Digest, ClientName>,
}

impl Deref for TransportServices {
    type Target = TransportParts;
    fn deref(&self) -> &TransportParts {
        &self.0
    }
}

impl Deref for TransportParts {
    type Target = StreamServices;
    fn deref(&self) -> &StreamServices {
        &self.streams
    }
}

impl TransportServices {
    pub(crate) fn new(streams: StreamServices) -> Self {
        Self(Arc::new(TransportParts {
            streams,
            connections: Connections::default(),
            client_names: Cache::new(CLIENT_NAMES),
        }))
    }
}
