//! The state of every handler of this service.

use std::{ops::Deref, sync::Arc};

use portolan_connections::Connections;
use portolan_keys::{Keys, PasswordHasher, SigningKeys};
use portolan_model::{Timestamp, clock::Clock};
use portolan_net::egress::Egress;
use portolan_storage::Store;
use tokio_util::task::TaskTracker;

use crate::{
    config::{AuthConfig, Site},
    identity_providers::Exchange,
    mail::Mailer,
    oauth_parts::OAuthParts,
    readers::Readers,
    throttle::Throttle,
    turns::Turns,
    watchers::Watchers,
};

/// Most concurrent tasks that continue after their response. Each is short, and waits for a
/// database connection.
const MOST_LATER: usize = 1000;

/// Concurrent requests of one tenant's members to upstream servers, and the number that may wait.
const LOOKS: (usize, usize) = (2, 4);

/// The state of the service. The binary makes it once; it is cheap to clone. Its fields are reached
/// through it: `state.store`, `state.keys` …
#[derive(Debug, Clone)]
pub struct AuthState {
    parts: Arc<AuthParts>,
    connections: Connections,
    shared: Arc<Shared>,
}

/// Expensive resources that tenants share.
#[derive(Debug)]
struct Shared {
    readers: Readers,
    looks: Turns,
    watchers: Watchers,
    listeners: Watchers,
}

/// The parts of [`AuthState`].
#[derive(Debug)]
pub struct AuthParts {
    /// The database.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Derived keys: seals, MACs, form tokens.
    pub keys: Keys,
    /// Keys that sign access tokens.
    pub signing_keys: SigningKeys,
    /// argon2id behind its queue.
    pub passwords: PasswordHasher,
    /// The only client for outgoing requests.
    pub egress: Egress,
    /// URLs and cookie names.
    pub site: Site,
    /// Limits of sign-in and sign-up.
    pub throttle: Throttle,
    /// The delivery of queued mail.
    pub mailer: Mailer,
    /// State of the OAuth endpoints.
    pub oauth: OAuthParts,
    /// Settings.
    pub config: AuthConfig,
    /// Tasks that continue after their response. A stopping process waits for them.
    pub later: TaskTracker,
}

impl AuthState {
    /// Puts the parts together.
    pub fn new(parts: AuthParts) -> Self {
        // Renewals are short, and their results are committed or lost with the process like those
        // of any request.
        let connections = Connections::new(
            parts.store.clone(),
            parts.keys.clone(),
            parts.egress.clone(),
            parts.clock.clone(),
            TaskTracker::new(),
        );
        Self {
            parts: Arc::new(parts),
            connections,
            shared: Arc::new(Shared {
                readers: Readers::default(),
                looks: Turns::new(LOOKS.0, LOOKS.1),
                watchers: Watchers::default(),
                listeners: Watchers::default(),
            }),
        }
    }

    /// The threads that read documents.
    pub fn readers(&self) -> &Readers {
        &self.shared.readers
    }

    /// The queue of requests to upstream servers.
    pub fn looks(&self) -> &Turns {
        &self.shared.looks
    }

    /// The open live views.
    pub fn watchers(&self) -> &Watchers {
        &self.shared.watchers
    }

    /// The open streams of events. Their places are their own: a program that listens all day takes
    /// no live view from a person (HOOK-29).
    pub fn listeners(&self) -> &Watchers {
        &self.shared.listeners
    }

    /// Client, cached data and time for a request to an identity provider.
    pub fn exchange(&self) -> Exchange<'_> {
        Exchange {
            egress: &self.egress,
            known: &self.config.sign_in_with,
            now: self.now(),
        }
    }

    /// Accounts at upstream servers.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Continues with `work` after the response. Returns false, and does not begin it, if too many
    /// tasks are running.
    pub fn later(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let may = self.parts.later.len() < MOST_LATER;
        if may {
            self.parts.later.spawn(work);
        }
        may
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Deref for AuthState {
    type Target = AuthParts;
    fn deref(&self) -> &AuthParts {
        &self.parts
    }
}
