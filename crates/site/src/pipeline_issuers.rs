//! Keys of the issuers that workspaces trust for their pipelines (API-18). Only issuers of stored
//! trusts are asked, so that a token of a stranger causes no request.

use std::{fmt, sync::Arc};

use portolan_keys::{ClientKeys, assertion::ALGORITHMS};
use portolan_model::Timestamp;
use portolan_net::egress::Egress;
use portolan_upstream::oauth::{OauthError, key_set, token_issuer};
use quick_cache::sync::Cache;
use time::Duration;
use tokio::sync::Mutex;

/// How long keys are used without a new request.
const FRESH: Duration = Duration::minutes(10);

/// How long they are used while the issuer does not answer.
const STALE: Duration = Duration::DAY;

/// Least time between two requests to an issuer that failed, or for a missing key (CASE-72).
const PAUSE: Duration = Duration::MINUTE;

/// Most issuers in the cache.
const REMEMBERED: usize = 1000;

/// Keys of an issuer.
#[derive(Debug)]
pub struct IssuerKeys {
    /// The algorithms with which it signs, limited to the supported ones: at least one.
    pub algorithms: Vec<String>,
    /// Its public keys.
    pub keys: ClientKeys,
}

#[derive(Default)]
struct Known {
    /// Time of the last request.
    asked_at: Option<Timestamp>,
    /// The last keys, with the time of their request.
    keys: Option<(Timestamp, Arc<IssuerKeys>)>,
}

/// The cached keys of all issuers. The lock of an issuer is held while it is asked: one of many
/// concurrent requests asks.
pub struct PipelineIssuers(Cache<String, Arc<Mutex<Known>>>);

impl fmt::Debug for PipelineIssuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipelineIssuers")
    }
}

impl Default for PipelineIssuers {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl PipelineIssuers {
    /// The keys of an issuer. `None` if it does not answer, and did not within the last day.
    pub async fn keys(
        &self,
        egress: &Egress,
        issuer: &str,
        now: Timestamp,
    ) -> Option<Arc<IssuerKeys>> {
        self.keys_of(egress, issuer, FRESH, now).await
    }

    /// The same, asked again because a key was missing: once a minute at most.
    pub async fn newer_keys(
        &self,
        egress: &Egress,
        issuer: &str,
        now: Timestamp,
    ) -> Option<Arc<IssuerKeys>> {
        self.keys_of(egress, issuer, PAUSE, now).await
    }

    /// The keys of an issuer, asked again if they are older than `life`.
    async fn keys_of(
        &self,
        egress: &Egress,
        issuer: &str,
        life: Duration,
        now: Timestamp,
    ) -> Option<Arc<IssuerKeys>> {
        let slot = self.slot(issuer);
        let mut known = slot.lock().await;
        let is_fresh = |(at, _): &(Timestamp, _)| now < *at + life;
        let is_pausing = known.asked_at.is_some_and(|at| now < at + PAUSE);
        if !is_pausing && !known.keys.as_ref().is_some_and(is_fresh) {
            known.asked_at = Some(now);
            match look_at(egress, issuer).await {
                Ok(keys) => known.keys = Some((now, Arc::new(keys))),
                Err(error) => {
                    tracing::warn!(issuer, reason = %error, "keys of an issuer not loaded");
                }
            }
        }
        let (at, keys) = known.keys.as_ref()?;
        (now < *at + STALE).then(|| Arc::clone(keys))
    }

    fn slot(&self, issuer: &str) -> Arc<Mutex<Known>> {
        if let Some(slot) = self.0.get(issuer) {
            return slot;
        }
        let slot = Arc::default();
        self.0.insert(issuer.to_owned(), Arc::clone(&slot));
        slot
    }
}

/// Why an issuer cannot be used. Its text goes on after "This issuer cannot be used: ". The page of
/// trusted pipelines says *issuer*, and the texts of [`OauthError`] say *authorization server*.
#[derive(Debug)]
pub struct IssuerFault(OauthError);

impl From<OauthError> for IssuerFault {
    fn from(error: OauthError) -> Self {
        Self(error)
    }
}

impl fmt::Display for IssuerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            OauthError::Egress(error) => write!(f, "it could not be reached: {error}"),
            OauthError::Status { what, status } => {
                let status = status.as_u16();
                write!(f, "it answered {what} with HTTP status {status}")
            }
            OauthError::Unusable(what) => write!(f, "its {what} is not acceptable"),
            OauthError::NotFound => {
                f.write_str("it has no metadata at /.well-known/openid-configuration")
            }
            OauthError::OtherIssuer => f.write_str("its metadata names another issuer"),
            OauthError::UnsafeAddress => {
                f.write_str("its address, or that of its keys, is not https")
            }
            other => other.fmt(f),
        }
    }
}

impl std::error::Error for IssuerFault {}

/// Fetches the metadata and the keys of an issuer.
///
/// # Errors
/// [`IssuerFault`].
pub async fn look_at(egress: &Egress, issuer: &str) -> Result<IssuerKeys, IssuerFault> {
    let metadata = token_issuer(egress, issuer).await?;
    let set = key_set(egress, &metadata.jwks_uri).await?;
    let keys = ClientKeys::read(&set).map_err(|_| OauthError::Unusable("key set"))?;
    let named = metadata.id_token_signing_alg_values_supported;
    let mut algorithms = named.unwrap_or_else(|| vec!["RS256".to_owned()]);
    algorithms.retain(|name| ALGORITHMS.contains(&name.as_str()));
    if algorithms.is_empty() {
        return Err(OauthError::Unusable("list of algorithms").into());
    }
    Ok(IssuerKeys { algorithms, keys })
}
