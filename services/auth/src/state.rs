//! What every handler of this service can reach.

use std::{ops::Deref, sync::Arc};

use portolan_connections::Connections;
use portolan_keys::{Keys, PasswordHasher, SigningKeys};
use portolan_model::{Timestamp, clock::Clock};
use portolan_net::egress::Egress;
use portolan_storage::Store;

use tokio_util::task::TaskTracker;

use crate::{
    config::{AuthConfig, Site},
    login::throttle::Throttle,
    mail::Mailer,
    oauth::OAuthParts,
};

/// Most that may go on after its answer at once: each waits for a connection to the database and is short.
const MOST_LATER: usize = 1000;

/// Made once by the binary, cheap to clone. Fields are reached through it: `state.store`, `state.keys` …
#[derive(Debug, Clone)]
pub struct AuthState {
    parts: Arc<AuthParts>,
    connections: Connections,
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
    /// The only way out.
    pub egress: Egress,
    /// URLs and cookie names.
    pub site: Site,
    /// Limits of sign-in and sign-up.
    pub throttle: Throttle,
    /// What becomes of queued mail.
    pub mailer: Mailer,
    /// What the OAuth endpoints need beside all this.
    pub oauth: OAuthParts,
    /// Settings.
    pub config: AuthConfig,
    /// What goes on after its answer; whoever stops the process waits for it.
    pub later: TaskTracker,
}

impl AuthState {
    /// Puts the parts together.
    pub fn new(parts: AuthParts) -> Self {
        // Renewals are short, and what they gave is committed or lost with the process as much as any request.
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
        }
    }

    /// Accounts at upstream servers.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Goes on with something after the answer. False, and it is not begun, if too much is under way.
    pub(crate) fn later(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
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
