//! API keys at the endpoint: a key is swapped for what it opens, once in some minutes (`auth.md` C17, §4.8; case 163).
//!
//! Prefix and checksum are looked at first, so that garbage costs nothing. What a key opens is remembered like a verified token, together
//! with the epochs of the moment; the feed of revocations does the rest within a second. Which keys do not exist is remembered too,
//! briefly, so that a program that goes on with an old key does not ask the database each time, and so is, for a moment, that the
//! database does not answer.

use std::{net::IpAddr, sync::Arc};

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
    api_keys::{self, Opened},
};
use quick_cache::sync::Cache;
use time::Duration;
use tokio::time::Instant;

use super::bearer::Caller;

/// So long what a key opens is remembered.
const REMEMBERED: Duration = Duration::minutes(5);
/// So long it is remembered that there is no such key.
const UNKNOWN_FOR: Duration = Duration::seconds(30);
/// So long it is remembered that the database does not answer.
const UNAVAILABLE_FOR: Duration = Duration::SECOND;
/// Keys of either sort that are remembered at most.
const KEYS: usize = 4096;
const REFUSED: usize = 1024;
/// Longest life of what is opened for a key: a revocation is remembered a little longer.
const LONGEST: Duration = Duration::hours(8);

/// Why a key opens nothing.
#[derive(Debug, Clone)]
pub(crate) enum KeyRefused {
    /// There is no such key, or it is over, or who it speaks for may not act any more.
    Unknown,
    /// The database does not answer: waiting helps, a new key does not.
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

/// Where keys are looked up.
#[derive(Debug)]
pub(crate) struct ApiKeys {
    store: Store,
    site: Site,
    opened: Cache<Digest, Arc<Caller>>,
    refused: Cache<Digest, (Timestamp, KeyRefused)>,
}

/// True for what calls itself an API key: it is never read as a JWT.
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

    /// Who calls with this key. What is remembered is looked up again when it is a few minutes old, and when `is_over` says that an epoch
    /// has moved since: a changed role ends tokens, and leaves keys as they are.
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

    /// Of many requests with one key at once one asks; the others are told what it was told.
    async fn once(
        &self,
        digest: &Digest,
        now: Timestamp,
        ask: impl Future<Output = Result<Arc<Caller>, KeyRefused>>,
    ) -> Result<Arc<Caller>, KeyRefused> {
        let told = async {
            // The cache hands the turn on after a refusal: who waited for it looks here first.
            if let Some(refused) = self.remembered_refusal(digest, now) {
                return Err(refused);
            }
            let begun = Instant::now();
            let told = ask.await;
            if let Err(refused) = &told {
                // Who waited came after `now`, and may have waited long.
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

fn networks(opened: &Opened) -> Option<Box<[IpNet]>> {
    let read = |text: &String| text.parse::<IpNet>().ok();
    (!opened.networks.is_empty()).then(|| opened.networks.iter().filter_map(read).collect())
}

/// The claims that a token for the same would have.
fn claims(site: &Site, opened: Opened, now: Timestamp) -> AccessClaims {
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

/// Whether an address is in one of the networks; an IPv4 address may come mapped into IPv6.
pub(crate) fn is_within(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use std::{
        mem::discriminant,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::future::join_all;

    use super::*;

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

    /// Nothing listens where its database is: asking is `Unavailable`.
    fn keys() -> ApiKeys {
        let store = Store::connect_later(&portolan_storage::StorageConfig {
            url: "postgres://portolan@127.0.0.1:9/none".to_owned(),
            max_connections: 1,
            acquire_timeout: std::time::Duration::from_millis(50),
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
