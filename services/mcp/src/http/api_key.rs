//! API keys at the endpoint: exchanges a key for its access and caches it (AUTH-C17, AUTH-4.8;
//! CASE-163).
//!
//! Prefix and checksum are checked first, so that garbage needs no database query. The access of a
//! key is cached like a verified token, together with its epochs. The feed of revocations ends it
//! within a second. Unknown keys are cached for a short time, so that a program with an old key
//! does not query the database each time. An unavailable database is cached for one second.

use std::sync::Arc;

use ipnet::IpNet;
use portolan_keys::{AccessClaims, Epochs, SecretToken, TokenForm};
use portolan_model::{
    Digest, Timestamp,
    id::{GrantId, TokenId},
    resource::{Resource, Site},
    scope,
};
use portolan_storage::{
    Reason, StorageError, Store,
    oauth::api_keys::{self, OpenedKey},
};
use quick_cache::sync::Cache;
use time::Duration;
use tokio::time::Instant;

use crate::caller::Caller;

/// How long the access of a key is cached.
const REMEMBERED: Duration = Duration::minutes(5);

/// How long an unknown key is cached.
const UNKNOWN_FOR: Duration = Duration::seconds(30);

/// How long the failure of a database query is cached.
const UNAVAILABLE_FOR: Duration = Duration::SECOND;

/// Most keys in the cache of good keys, and of refused keys.
const KEYS: usize = 4096;

const REFUSED: usize = 1024;

/// Longest lifetime of a key's access. Revocations are remembered a little longer than this.
const LONGEST: Duration = Duration::hours(8);

/// Why a key gives no access.
#[derive(Debug, Clone)]
pub(crate) enum KeyRefused {
    /// The key does not exist or has expired, or its owner may no longer act.
    Unknown,
    /// The database does not answer: a retry helps, a new key does not.
    Unavailable(Arc<StorageError>),
}

impl KeyRefused {
    const fn remembered_for(&self) -> Duration {
        match self {
            Self::Unknown => UNKNOWN_FOR,
            Self::Unavailable(_) => UNAVAILABLE_FOR,
        }
    }
}

/// Looks up API keys, and caches the results.
#[derive(Debug)]
pub(crate) struct ApiKeys {
    store: Store,
    site: Site,
    opened: Cache<Digest, Arc<Caller>>,
    refused: Cache<Digest, (Timestamp, KeyRefused)>,
}

/// True if the token has the prefix of an API key. Such a token is never read as a JWT.
pub(crate) fn is_key(token: &str) -> bool {
    token.starts_with(TokenForm::ApiKey.prefix())
}

impl ApiKeys {
    pub(crate) fn new(store: Store, site: Site) -> Self {
        Self {
            store,
            site,
            opened: Cache::new(KEYS),
            refused: Cache::new(REFUSED),
        }
    }

    /// Returns the caller of this key.
    ///
    /// A cached entry is looked up again after a few minutes, and when `is_over` reports that one
    /// of its epochs has moved. A changed role ends tokens and leaves keys valid.
    pub(crate) async fn open(
        &self,
        token: &str,
        is_over: impl Fn(&Caller) -> bool,
        now: Timestamp,
    ) -> Result<Arc<Caller>, KeyRefused> {
        let key = SecretToken::parse(TokenForm::ApiKey, token).ok_or(KeyRefused::Unknown)?;
        let digest = key.digest();
        match self.opened.get(&digest) {
            Some(caller) if caller.is_fresh(now) && !is_over(&caller) => return Ok(caller),
            Some(_) => {
                self.opened.remove(&digest);
            }
            None => {}
        }
        if let Some(refused) = self.remembered_refusal(&digest, now) {
            return Err(refused);
        }
        Box::pin(self.once(&digest, now, self.look_up(&digest, now))).await
    }

    fn remembered_refusal(&self, digest: &Digest, now: Timestamp) -> Option<KeyRefused> {
        let (until, refused) = self.refused.get(digest)?;
        (now < until).then_some(refused)
    }

    /// Runs one lookup for concurrent requests with the same key, and shares its result.
    async fn once(
        &self,
        digest: &Digest,
        now: Timestamp,
        ask: impl Future<Output = Result<Arc<Caller>, KeyRefused>>,
    ) -> Result<Arc<Caller>, KeyRefused> {
        let told = async {
            // After a refusal the cache lets the next waiting request run, which checks this first.
            if let Some(refused) = self.remembered_refusal(digest, now) {
                return Err(refused);
            }
            let begun = Instant::now();
            let told = ask.await;
            if let Err(refused) = &told {
                // A waiting request arrived after `now`, and may have waited long.
                let waited = Duration::try_from(begun.elapsed()).unwrap_or_default();
                let until = now + waited + refused.remembered_for();
                self.refused.insert(*digest, (until, refused.clone()));
            }
            told
        };
        self.opened.get_or_insert_async(digest, told).await
    }

    async fn look_up(&self, digest: &Digest, now: Timestamp) -> Result<Arc<Caller>, KeyRefused> {
        let opened = async {
            let mut tx = self.store.edge(Reason::ApiKeys).await?;
            let Some(tenant) = api_keys::tenant_of(&mut tx, digest).await? else {
                return Ok(None);
            };
            drop(tx);
            let mut tx = self.store.node(tenant).await?;
            let opened = api_keys::open(&mut tx, digest, now).await?;
            tx.commit().await?;
            Ok::<_, StorageError>(opened)
        };
        let opened = opened
            .await
            .map_err(|error| KeyRefused::Unavailable(Arc::new(error)))?
            .ok_or(KeyRefused::Unknown)?;
        let networks = networks(&opened);
        let claims = claims(&self.site, opened, now);
        Ok(Arc::new(Caller::of_key(
            &self.site,
            claims,
            now + REMEMBERED,
            networks,
        )))
    }
}

pub(crate) fn networks(opened: &OpenedKey) -> Option<Box<[IpNet]>> {
    let read = |text: &String| text.parse::<IpNet>().ok();
    (!opened.networks.is_empty()).then(|| opened.networks.iter().filter_map(read).collect())
}

/// The claims that an access token with the same access has.
fn claims(site: &Site, opened: OpenedKey, now: Timestamp) -> AccessClaims {
    let aud = opened.resource.unwrap_or_else(|| {
        site.url(&Resource::Workspace {
            tenant: opened.slug,
        })
    });
    AccessClaims {
        iss: site.issuer().to_owned(),
        aud,
        sub: opened.holder,
        client_id: opened.id.to_string(),
        tid: opened.tenant,
        gid: GrantId::from_uuid(opened.id.uuid()),
        ep: Epochs {
            user: opened.epoch,
            tenant: opened.tenant_epoch,
            member: opened.member_epoch,
        },
        scope: scope::MCP.to_owned(),
        jti: TokenId::generate(),
        iat: now.unix_timestamp(),
        exp: opened.expires_at.min(now + LONGEST).unix_timestamp(),
        auth_time: None,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        mem::discriminant,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::future::join_all;

    use super::*;
    use crate::caller::is_within;

    #[test]
    fn c17_a_network_holds_its_addresses_in_both_spellings() {
        let networks: Vec<IpNet> = ["192.0.2.0/24", "2001:db8::/32"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        for inside in ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1"] {
            assert!(is_within(&networks, inside.parse().unwrap()), "{inside}");
        }
        for outside in ["192.0.3.7", "::ffff:192.0.3.7", "2001:db9::1", "127.0.0.1"] {
            assert!(!is_within(&networks, outside.parse().unwrap()), "{outside}");
        }
        assert!(
            !is_within(&[], "192.0.2.7".parse().unwrap()),
            "none left that can be read: nobody"
        );
    }

    /// The database URL has no listener, so a lookup is `Unavailable`.
    fn keys() -> ApiKeys {
        let store = Store::connect_later(&portolan_storage::StorageConfig {
            url: "postgres://portolan@127.0.0.1:9/none".to_owned().into(),
            max_connections: 1,
            acquire_timeout_ms: 50,
        })
        .unwrap();
        ApiKeys::new(store, Site::new("https://mcp.example.com").unwrap())
    }

    #[tokio::test]
    async fn c17_of_many_requests_with_one_bad_key_one_asks() {
        let unavailable = || {
            KeyRefused::Unavailable(Arc::new(StorageError::Inconsistent {
                table: "api_keys",
                column: "id",
            }))
        };
        for refused in [KeyRefused::Unknown, unavailable()] {
            let keys = keys();
            let asked = AtomicUsize::new(0);
            let digest = portolan_keys::digest(b"key");
            let begun = Timestamp::UNIX_EPOCH;
            let ask = || async {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Err(refused.clone())
            };
            let all = (0..50).map(|_| keys.once(&digest, begun, ask()));
            for told in join_all(all).await {
                assert_eq!(
                    discriminant(&told.unwrap_err()),
                    discriminant(&refused),
                    "each is told the same"
                );
            }
            assert_eq!(asked.load(Ordering::Relaxed), 1, "{refused:?}");
            let later = begun + refused.remembered_for() + Duration::SECOND;
            assert!(keys.once(&digest, later, ask()).await.is_err());
            assert_eq!(asked.load(Ordering::Relaxed), 2, "and after a while again");
        }
    }

    #[tokio::test]
    async fn case_163_a_key_with_a_wrong_checksum_asks_nobody() {
        let keys = keys();
        let now = Timestamp::UNIX_EPOCH;
        let good = SecretToken::generate(TokenForm::ApiKey).unwrap();
        let mut broken = good.expose().to_owned();
        let last = if broken.ends_with('A') { 'B' } else { 'A' };
        broken.pop();
        broken.push(last);
        for garbage in [
            broken.as_str(),
            "mcpk_",
            "mcpk_x",
            &format!("{}x", good.expose()),
        ] {
            assert!(is_key(garbage));
            assert!(matches!(
                keys.open(garbage, |_| false, now).await,
                Err(KeyRefused::Unknown)
            ));
        }
        assert!(matches!(
            keys.open(good.expose(), |_| false, now).await,
            Err(KeyRefused::Unavailable(_))
        ));
    }
}
