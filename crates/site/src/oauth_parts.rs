//! Settings and state of the OAuth endpoints.

use std::{collections::HashMap, fmt, sync::Arc};

use portolan_cluster::revocations::Revocations;
use portolan_keys::Verifier;
use portolan_model::{Digest, Timestamp, resource::Site as ResourceSite};
use portolan_storage::{
    oauth::service_accounts::ServiceAccountStatus, platform::recorder::Recorder,
};
use quick_cache::sync::Cache;
use time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::task::TaskTracker;

use crate::{
    pipeline_issuers::PipelineIssuers,
    rate::{Budget, Rates},
};

/// Most concurrent fetches from one host (AUTH-C2).
const PER_HOST: usize = 4;

/// Fetches in progress, and budgets.
pub struct Fetches {
    by_url: std::sync::Mutex<HashMap<String, Arc<Mutex<()>>>>,
    by_host: std::sync::Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Budget of a network block.
    pub by_source: Rates,
    /// Budget of a client.
    pub by_client: Rates,
    /// Fetches that continue after their request was cancelled; each ends within seconds.
    pub tasks: TaskTracker,
}

impl fmt::Debug for Fetches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetches")
    }
}

impl Default for Fetches {
    fn default() -> Self {
        Self {
            by_url: std::sync::Mutex::default(),
            by_host: std::sync::Mutex::default(),
            by_source: Rates::new(Budget {
                burst: 20,
                per: Duration::MINUTE,
            }),
            by_client: Rates::new(Budget {
                burst: 1,
                per: Duration::MINUTE,
            }),
            tasks: TaskTracker::new(),
        }
    }
}

impl Fetches {
    /// The lock of this URL: one of many concurrent requests for a document fetches it (CASE-85).
    pub fn flight(&self, url: &str) -> Arc<Mutex<()>> {
        let mut map = self
            .by_url
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        map.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(map.entry(url.to_owned()).or_default())
    }

    /// The four permits of this host (AUTH-C2).
    pub fn host(&self, host: &str) -> Arc<Semaphore> {
        let mut map = self
            .by_host
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        map.retain(|_, permits| Arc::strong_count(permits) > 1);
        Arc::clone(
            map.entry(host.to_owned())
                .or_insert_with(|| Arc::new(Semaphore::new(PER_HOST))),
        )
    }
}

/// Life of an authorization code, in seconds. It is redeemed at once; RFC 6749 §4.1.2 allows ten
/// minutes, and a longer life only helps a thief.
pub const CODE_SECS: i64 = 120;
/// Life of a pending authorization request, in seconds. Sign-up and mail happen inside it.
pub const REQUEST_SECS: i64 = 3_600;

portolan_config::config! {
    /// Authorization of clients
    pub struct OAuthConfig {
        /// Seconds for which an access token is valid. Clients refresh it without a person; a
        /// revocation takes effect at once, whatever this says.
        access_token_secs: i64 = 3_600, in 300..=28_800;
        /// Whether clients may register themselves (RFC 7591). Without it, clients need a metadata
        /// document or an administrator who registers them.
        dynamic_registration: bool = true;
        /// New registrations of clients from one network block in an hour.
        registrations_per_hour: i64 = 20, in 1..=1_000_000;
        /// New registrations of clients from one network block in a day.
        registrations_per_day: i64 = 200, in 1..=1_000_000;
    }
}

/// State of the OAuth handlers, in addition to the common state.
#[derive(Debug)]
pub struct OAuthParts {
    /// Settings.
    pub config: OAuthConfig,
    /// The site as a set of resources; its text is the issuer.
    pub resources: ResourceSite,
    /// Verifies access tokens of this service (revocation). In a single process the MCP endpoint
    /// shares it.
    pub verifier: Verifier,
    /// Revocations that this process knows. In a single process the MCP endpoint shares them.
    pub revocations: Revocations,
    /// Receives the steps of connecting clients (AUTH-X2).
    pub recorder: Recorder,
    /// Fetches of client metadata documents.
    pub fetches: Fetches,
    /// Budget of a family of refresh tokens.
    pub refreshes: Rates,
    /// Budget of a network block at the authorization endpoint.
    pub authorizations: Rates,
    /// Budget of warnings by mail.
    pub warnings: Rates,
    /// Budget of fetches of client keys.
    pub key_fetches: Rates,
    /// Budget of client assertions.
    pub assertions: Rates,
    /// Service accounts with a recent proof.
    pub services: Services,
    /// Budget of a workspace for messages on admission.
    pub admission_mails: Rates,
    /// Keys of the issuers of trusted pipelines.
    pub pipeline_issuers: PipelineIssuers,
}

impl OAuthParts {
    /// Puts the parts together. `oauth::jwks::rotate` sets the verifier's keys.
    pub fn new(
        config: OAuthConfig,
        resources: ResourceSite,
        verifier: Verifier,
        revocations: Revocations,
    ) -> Self {
        Self {
            config,
            resources,
            verifier,
            revocations,
            recorder: Recorder::off(),
            fetches: Fetches::default(),
            refreshes: Rates::new(Budget {
                burst: 60,
                per: Duration::MINUTE,
            }),
            // A block may be a whole office: the budget is far above what people click, and far
            // below a flood.
            authorizations: Rates::new(Budget {
                burst: 300,
                per: Duration::minutes(5),
            }),
            warnings: Rates::new(Budget {
                burst: 1,
                per: Duration::DAY,
            }),
            key_fetches: Rates::new(Budget {
                burst: 5,
                per: Duration::MINUTE,
            }),
            // Each assertion is a row for some minutes.
            assertions: Rates::new(Budget {
                burst: 300,
                per: Duration::MINUTE,
            }),
            services: Services::default(),
            // The budget of a workspace. Beyond it, administrators find requests in the console.
            admission_mails: Rates::new(Budget {
                burst: 20,
                per: Duration::DAY,
            }),
            pipeline_issuers: PipelineIssuers::default(),
        }
    }
}

/// Most accounts in the cache.
const ACCOUNTS: usize = 4096;

/// An account that proved itself a moment ago.
#[derive(Debug)]
pub struct Proved {
    /// Its client id.
    pub client_id: String,
    /// Its state and epochs.
    pub standing: ServiceAccountStatus,
    /// The time at which the database was read.
    pub read_at: Timestamp,
}

/// Accounts with a recent proof, by the digest of id and secret.
pub struct Services(pub Cache<Digest, Arc<Proved>>);

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Services")
    }
}

impl Default for Services {
    fn default() -> Self {
        Self(Cache::new(ACCOUNTS))
    }
}
