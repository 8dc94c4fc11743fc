//! Revocations: revoked ids and epochs, without clocks (AUTH-4.2).
//!
//! A revoked id is always refused. An event with an epoch says "this person (tenant, membership) is
//! now at least at 8". A token with a smaller number is refused; a token that was issued after the
//! change is not. Entries live as long as the longest token to which they can apply.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portolan_model::{
    Timestamp,
    id::{GrantId, ServiceAccountId, TenantId, TokenId, UserId},
    subject::Subject,
};
use tokio::{sync::watch, time::Instant};

use crate::lock;

/// Event of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// One access token.
    Token(TokenId),
    /// Every token of a grant, and its sessions.
    Grant(GrantId),
    /// Every token of an OAuth client, named as on the wire. An API key is the client of its own
    /// calls.
    Client(String),
    /// Every token signed by a key.
    Key(String),
    /// Tokens of a person before this epoch.
    User {
        /// The person.
        user: UserId,
        /// The lowest valid epoch.
        epoch: i32,
    },
    /// Tokens and API keys of a service account before this epoch.
    Service {
        /// The service account.
        account: ServiceAccountId,
        /// The lowest valid epoch.
        epoch: i32,
    },
    /// Tokens of a tenant before this epoch.
    Tenant {
        /// The tenant.
        tenant: TenantId,
        /// The lowest valid epoch.
        epoch: i32,
    },
    /// Tokens of a person in one tenant before this epoch.
    Member {
        /// The tenant.
        tenant: TenantId,
        /// The person.
        user: UserId,
        /// The lowest valid epoch.
        epoch: i32,
    },
}

/// Claims of a verified token that revocations refer to.
#[derive(Debug, Clone, Copy)]
pub struct TokenFacts<'a> {
    /// `jti`
    pub token: TokenId,
    /// `gid`
    pub grant: GrantId,
    /// `sub`
    pub subject: Subject,
    /// `tid`
    pub tenant: TenantId,
    /// `client_id`
    pub client: &'a str,
    /// Key id of the signature.
    pub key: &'a str,
    /// `ep[0]`
    pub user_epoch: i32,
    /// `ep[1]`
    pub tenant_epoch: i32,
    /// `ep[2]`
    pub member_epoch: i32,
}

/// Value with the time at which it may be removed.
#[derive(Debug, Clone, Copy)]
struct Expiring<T> {
    value: T,
    until: Timestamp,
}

#[derive(Debug, Default)]
struct Sets {
    tokens: HashMap<TokenId, Expiring<()>>,
    grants: HashMap<GrantId, Expiring<()>>,
    clients: HashMap<String, Expiring<()>>,
    keys: HashMap<String, Expiring<()>>,
    subjects: HashMap<Subject, Expiring<i32>>,
    tenants: HashMap<TenantId, Expiring<i32>>,
    members: HashMap<(TenantId, UserId), Expiring<i32>>,
}

/// Revocations that a node knows. Cheap to clone; clones share the data. A request needs six
/// lookups and no I/O.
#[derive(Debug, Clone)]
pub struct Revocations {
    sets: Arc<RwLock<Sets>>,
    version: Arc<watch::Sender<u64>>,
    heard_at: Arc<Mutex<Instant>>,
    is_cut_off: Arc<AtomicBool>,
}

impl Default for Revocations {
    fn default() -> Self {
        Self {
            sets: Arc::default(),
            version: Arc::new(watch::Sender::new(0)),
            heard_at: Arc::new(Mutex::new(Instant::now())),
            is_cut_off: Arc::default(),
        }
    }
}

impl Revocations {
    /// Adds an event. A repetition, or a lower epoch, changes nothing. `expires_at` is the expiry
    /// of the last token to which the event can apply.
    pub fn insert(&self, revocation: Revocation, expires_at: Timestamp) {
        let is_news = {
            let mut sets = self.write();
            match revocation {
                Revocation::Token(id) => keep(&mut sets.tokens, id, (), expires_at),
                Revocation::Grant(id) => keep(&mut sets.grants, id, (), expires_at),
                Revocation::Client(id) => keep(&mut sets.clients, id, (), expires_at),
                Revocation::Key(id) => keep(&mut sets.keys, id, (), expires_at),
                Revocation::User { user, epoch } => {
                    keep(&mut sets.subjects, user.into(), epoch, expires_at)
                }
                Revocation::Service { account, epoch } => {
                    keep(&mut sets.subjects, account.into(), epoch, expires_at)
                }
                Revocation::Tenant { tenant, epoch } => {
                    keep(&mut sets.tenants, tenant, epoch, expires_at)
                }
                Revocation::Member {
                    tenant,
                    user,
                    epoch,
                } => keep(&mut sets.members, (tenant, user), epoch, expires_at),
            }
        };
        // Readers of the feed overlap: a known event wakes no watcher.
        if is_news {
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// Records that the set contains every revocation up to `at`. The reader of the feed calls it
    /// even without new events.
    pub fn heard(&self, at: Instant) {
        let mut heard_at = lock(&self.heard_at);
        *heard_at = at.max(*heard_at);
    }

    /// Time since which the set may be incomplete (AUTH-4.3.6).
    pub fn silent_for(&self) -> Duration {
        lock(&self.heard_at).elapsed()
    }

    /// Whether the set may be too incomplete to check tokens: 503, never 401. Set by
    /// [`RevocationFreshness`](crate::revocation_freshness::RevocationFreshness).
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    /// Sets whether the node is cut off.
    pub fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::Relaxed);
    }

    /// True if the token must be refused in spite of a valid signature.
    pub fn is_revoked(&self, token: &TokenFacts<'_>) -> bool {
        let sets = self.read();
        let before = |known: Option<&Expiring<i32>>, epoch: i32| {
            known.is_some_and(|known| epoch < known.value)
        };
        sets.tokens.contains_key(&token.token)
            || sets.grants.contains_key(&token.grant)
            || sets.clients.contains_key(token.client)
            || sets.keys.contains_key(token.key)
            || before(sets.subjects.get(&token.subject), token.user_epoch)
            || before(sets.tenants.get(&token.tenant), token.tenant_epoch)
            || token.subject.user().is_some_and(|user| {
                before(sets.members.get(&(token.tenant, user)), token.member_epoch)
            })
    }

    /// True if the grant was revoked recently. Its sessions are gone, too.
    pub fn is_grant_revoked(&self, grant: GrantId) -> bool {
        self.read().grants.contains_key(&grant)
    }

    /// Counter that changes with every event. Holders of open connections check their tokens again.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Removes entries that apply to no living token. Returns the number of remaining entries.
    pub fn purge(&self, now: Timestamp) -> usize {
        let mut sets = self.write();
        let Sets {
            tokens,
            grants,
            clients,
            keys,
            subjects,
            tenants,
            members,
        } = &mut *sets;
        forget(tokens, now)
            + forget(grants, now)
            + forget(clients, now)
            + forget(keys, now)
            + forget(subjects, now)
            + forget(tenants, now)
            + forget(members, now)
    }

    fn read(&self) -> RwLockReadGuard<'_, Sets> {
        self.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Sets> {
        self.sets.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores a value. Returns whether more tokens are refused than before.
fn keep<K: Eq + Hash, T: Copy + Ord>(
    map: &mut HashMap<K, Expiring<T>>,
    key: K,
    value: T,
    until: Timestamp,
) -> bool {
    match map.entry(key) {
        Entry::Occupied(mut known) => {
            let kept = known.get_mut();
            let is_news = value > kept.value;
            *kept = Expiring {
                value: kept.value.max(value),
                until: kept.until.max(until),
            };
            is_news
        }
        Entry::Vacant(place) => {
            place.insert(Expiring { value, until });
            true
        }
    }
}

fn forget<K: Eq + Hash, T>(map: &mut HashMap<K, Expiring<T>>, now: Timestamp) -> usize {
    map.retain(|_, kept| kept.until > now);
    map.len()
}

#[cfg(test)]
mod tests {
    use portolan_model::Id;
    use time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn facts() -> TokenFacts<'static> {
        TokenFacts {
            token: Id::generate(),
            grant: Id::generate(),
            subject: UserId::generate().into(),
            tenant: Id::generate(),
            client: "https://client.example/metadata",
            key: "key-1",
            user_epoch: 4,
            tenant_epoch: 2,
            member_epoch: 7,
        }
    }

    #[test]
    fn every_terminal_kind_refuses_its_tokens_and_no_others() {
        let token = facts();
        let terminal = [
            Revocation::Token(token.token),
            Revocation::Grant(token.grant),
            Revocation::Client(token.client.to_owned()),
            Revocation::Key(token.key.to_owned()),
        ];
        for revocation in terminal {
            let set = Revocations::default();
            assert!(!set.is_revoked(&token));
            set.insert(revocation.clone(), NOW + Duration::HOUR);
            assert!(set.is_revoked(&token), "{revocation:?}");
            assert!(
                !set.is_revoked(&TokenFacts {
                    client: "other",
                    key: "key-2",
                    ..facts()
                }),
                "{revocation:?}"
            );
        }
    }

    #[test]
    fn an_epoch_refuses_older_tokens_and_admits_the_refreshed_one() {
        let token = facts();
        let (user, tenant) = (token.subject.user().unwrap(), token.tenant);
        let events = [
            (
                Revocation::User { user, epoch: 5 },
                TokenFacts {
                    user_epoch: 5,
                    ..token
                },
            ),
            (
                Revocation::Tenant { tenant, epoch: 3 },
                TokenFacts {
                    tenant_epoch: 3,
                    ..token
                },
            ),
            (
                Revocation::Member {
                    tenant,
                    user,
                    epoch: 8,
                },
                TokenFacts {
                    member_epoch: 8,
                    ..token
                },
            ),
        ];
        for (event, refreshed) in events {
            let set = Revocations::default();
            set.insert(event.clone(), NOW + Duration::HOUR);
            assert!(set.is_revoked(&token), "{event:?}");
            assert!(!set.is_revoked(&refreshed), "{event:?}");
        }
    }

    #[test]
    fn an_account_that_was_switched_off_is_refused_and_nobody_of_the_same_uuid() {
        let account = ServiceAccountId::generate();
        let token = TokenFacts {
            subject: account.into(),
            ..facts()
        };
        let person = TokenFacts {
            subject: UserId::from_uuid(account.uuid()).into(),
            ..token
        };
        let set = Revocations::default();
        set.insert(
            Revocation::Service { account, epoch: 5 },
            NOW + Duration::HOUR,
        );
        assert!(set.is_revoked(&token));
        assert!(!set.is_revoked(&person));
        assert!(!set.is_revoked(&TokenFacts {
            user_epoch: 5,
            ..token
        }));
    }

    #[test]
    fn an_older_epoch_that_arrives_late_does_not_lower_the_bar() {
        let set = Revocations::default();
        let token = facts();
        set.insert(
            Revocation::User {
                user: token.subject.user().unwrap(),
                epoch: 5,
            },
            NOW + Duration::HOUR,
        );
        set.insert(
            Revocation::User {
                user: token.subject.user().unwrap(),
                epoch: 3,
            },
            NOW + Duration::HOUR,
        );
        assert!(set.is_revoked(&token));
    }

    #[test]
    fn entries_are_forgotten_when_no_token_of_theirs_lives() {
        let set = Revocations::default();
        let token = facts();
        set.insert(Revocation::Grant(token.grant), NOW + Duration::HOUR);
        assert_eq!(set.purge(NOW + Duration::MINUTE), 1);
        assert_eq!(set.purge(NOW + Duration::HOUR), 0);
        assert!(!set.is_grant_revoked(token.grant));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_what_was_heard_last_and_a_late_word_makes_it_no_longer() {
        let seconds = std::time::Duration::from_secs;
        let set = Revocations::default();
        let shared = set.clone();
        let asked = Instant::now();
        tokio::time::advance(seconds(7)).await;
        assert_eq!(shared.silent_for(), seconds(7));
        set.heard(asked + seconds(5));
        assert_eq!(shared.silent_for(), seconds(2));
        set.heard(asked);
        assert_eq!(shared.silent_for(), seconds(2));
    }

    #[test]
    fn who_watches_is_told_of_every_new_event() {
        let set = Revocations::default();
        let mut watch = set.watch();
        assert!(!watch.has_changed().unwrap());
        set.insert(Revocation::Key("key-1".into()), NOW + Duration::HOUR);
        assert!(watch.has_changed().unwrap());
        watch.mark_unchanged();
        set.insert(Revocation::Key("key-1".into()), NOW + Duration::HOUR);
        assert!(!watch.has_changed().unwrap(), "once");
    }
}
