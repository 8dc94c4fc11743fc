//! Signing keys and their four states (AUTH-J1 to AUTH-J3).
//!
//! A key is a row with four times, written when it is made; every node computes the same state from
//! them and its clock, so that a rotation needs no message. A pending key is published at least a
//! day before it signs, therefore no verifier ever meets a key that it had no time to fetch; a
//! retiring key stays published until the last token that it signed is dead.
//!
//! ```text
//! publish_at        sign_from          sign_until           gone_at
//!     |── pending ──────|───── active ──────|──── retiring ─────|── retired
//! ```

use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use portolan_model::Timestamp;
use time::Duration;

use crate::{AccessClaims, Jwks, Keys, KeysError, PublicJwk, Purpose, Secret};

/// How long before it signs a key is published.
pub const PUBLISH_AHEAD: Duration = Duration::hours(24);
/// How long a key signs.
pub const ACTIVE_FOR: Duration = Duration::days(90);
/// Longest access token (8 h) and one hour more.
pub const RETIRING_FOR: Duration = Duration::hours(9);

/// The times of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTimes {
    /// From here on the JWKS has it.
    pub publish_at: Timestamp,
    /// From here on it signs.
    pub sign_from: Timestamp,
    /// Until here it signs.
    pub sign_until: Timestamp,
    /// From here on the JWKS has it no longer.
    pub gone_at: Timestamp,
}

/// The state of a key at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// Published, does not sign yet.
    Pending,
    /// Signs.
    Active,
    /// Published, signs no longer.
    Retiring,
    /// Not published.
    Retired,
}

impl KeyTimes {
    /// Of a key that signs for [`ACTIVE_FOR`] and stays published for [`RETIRING_FOR`] after that.
    pub fn signing_from(publish_at: Timestamp, sign_from: Timestamp) -> Self {
        let sign_until = sign_from + ACTIVE_FOR;
        Self {
            publish_at,
            sign_from,
            sign_until,
            gone_at: sign_until + RETIRING_FOR,
        }
    }

    /// The state at `now`.
    pub fn state(&self, now: Timestamp) -> KeyState {
        if now < self.publish_at || now >= self.gone_at {
            KeyState::Retired
        } else if now < self.sign_from {
            KeyState::Pending
        } else if now < self.sign_until {
            KeyState::Active
        } else {
            KeyState::Retiring
        }
    }
}

/// Returns the keys that must be made now, so that one is active and one is the standby. Empty if
/// none is missing.
///
/// At first start this is a key that signs at once, because no client has fetched a JWKS yet, and
/// one that follows it. Later, a standby that became active gets its own standby, at least
/// [`PUBLISH_AHEAD`] before that one signs. After a pause so long that no key is active, the plan
/// is that of a first start.
pub fn plan(existing: &[KeyTimes], now: Timestamp) -> Vec<KeyTimes> {
    let mut made = Vec::new();
    let active_until = existing
        .iter()
        .filter(|key| key.state(now) == KeyState::Active)
        .map(|key| key.sign_until)
        .max();
    let active_until = active_until.unwrap_or_else(|| {
        let first = KeyTimes::signing_from(now, now);
        made.push(first);
        first.sign_until
    });
    if !existing
        .iter()
        .any(|key| key.sign_from > now && key.gone_at > now)
    {
        made.push(KeyTimes::signing_from(
            now,
            active_until.max(now + PUBLISH_AHEAD),
        ));
    }
    made
}

/// When the standby takes over (AUTH-J2, AUTH-J3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOver {
    /// As soon as it has been published for [`PUBLISH_AHEAD`].
    WhenPublished,
    /// At once, in an emergency.
    AtOnce,
}

/// The times of all keys when the standby takes over from the key that signs now. `None` without a
/// standby.
pub fn hand_over(existing: &[KeyTimes], now: Timestamp, when: HandOver) -> Option<Vec<KeyTimes>> {
    let standby = existing
        .iter()
        .enumerate()
        .filter(|(_, key)| key.state(now) == KeyState::Pending)
        .min_by_key(|(_, key)| key.sign_from)
        .map(|(at, _)| at)?;
    let publish_at = existing[standby].publish_at;
    let from = if when == HandOver::AtOnce {
        now
    } else {
        now.max(publish_at + PUBLISH_AHEAD)
            .min(existing[standby].sign_from)
    };
    let times = existing.iter().enumerate().map(|(at, key)| {
        if at == standby {
            KeyTimes::signing_from(publish_at, from)
        } else if key.state(now) == KeyState::Active {
            let sign_until = key.sign_until.min(from);
            KeyTimes {
                sign_until,
                gone_at: sign_until + RETIRING_FOR,
                ..*key
            }
        } else {
            *key
        }
    });
    Some(times.collect())
}

/// A new key pair, to be stored before it is used.
#[derive(Debug)]
pub struct NewKeyPair {
    /// The public half, with the key id.
    pub public: PublicJwk,
    private: Secret<Vec<u8>>,
}

impl NewKeyPair {
    /// Makes a P-256 key pair.
    pub fn generate() -> Result<Self, KeysError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?;
        let private = Secret::new(pair.to_pkcs8v1()?.as_ref().to_vec());
        Ok(Self {
            public: PublicJwk::from_point(pair.public_key().as_ref())?,
            private,
        })
    }

    /// Signs a client assertion (RFC 7523), by which the key's owner authenticates to an external
    /// token endpoint.
    pub fn sign_assertion(&self, claims: &serde_json::Value) -> Result<Secret<String>, KeysError> {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.public.kid().to_owned());
        let key = EncodingKey::from_ec_der(self.private.expose());
        jsonwebtoken::encode(&header, claims, &key)
            .map(Secret::new)
            .map_err(KeysError::Sign)
    }

    /// The private half as it is stored.
    pub fn sealed_private(&self, keys: &Keys) -> Result<Vec<u8>, KeysError> {
        keys.seal(
            Purpose::SigningKey,
            self.private.expose(),
            self.public.kid().as_bytes(),
        )
    }
}

/// A key read back from its row.
pub struct SigningKey {
    public: PublicJwk,
    private: EncodingKey,
    times: KeyTimes,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("kid", &self.public.kid())
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Opens the private half.
    pub fn open(
        keys: &Keys,
        public: PublicJwk,
        sealed_private: &[u8],
        times: KeyTimes,
        now: Timestamp,
    ) -> Result<Self, KeysError> {
        let unusable = || KeysError::SigningKey {
            kid: public.kid().to_owned(),
        };
        let private = keys
            .open(
                Purpose::SigningKey,
                sealed_private,
                public.kid().as_bytes(),
                now,
            )
            .map_err(|_| unusable())?;
        // A private key that does not match its public key would sign tokens that fail
        // verification.
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, private.expose())
            .map_err(|_| unusable())?;
        if PublicJwk::from_point(pair.public_key().as_ref())? != public {
            return Err(unusable());
        }
        Ok(Self {
            private: EncodingKey::from_ec_der(private.expose()),
            public,
            times,
        })
    }

    /// Its state at `now`.
    pub fn state(&self, now: Timestamp) -> KeyState {
        self.times.state(now)
    }
}

/// The public half of a key, and when it is published. Whether the private half opens here is
/// another question: tokens that it signed elsewhere are good.
#[derive(Debug, Clone)]
pub struct PublishedKey {
    /// With the key id.
    pub public: PublicJwk,
    /// Of the key.
    pub times: KeyTimes,
}

/// The keys from one read of the rows.
#[derive(Debug, Default)]
struct Ring {
    signing: Vec<SigningKey>,
    published: Vec<PublishedKey>,
}

/// The signing keys of this process. Cheap to clone; clones share.
#[derive(Debug, Clone, Default)]
pub struct SigningKeys(Arc<ArcSwap<Ring>>);

impl SigningKeys {
    /// Puts the rows just read in place of the former ones; all of them open here.
    pub fn replace(&self, keys: Vec<SigningKey>) {
        let published = keys.iter().map(|key| PublishedKey {
            public: key.public.clone(),
            times: key.times,
        });
        self.replace_and_publish(published.collect(), keys);
    }

    /// Replaces all keys by those just read: every one is published, and those that could be opened
    /// sign. Readers see both changes at once.
    pub fn replace_and_publish(&self, published: Vec<PublishedKey>, signing: Vec<SigningKey>) {
        self.0.store(Arc::new(Ring { signing, published }));
    }

    /// Signs with the active key; with two of them, with the one that became active last.
    pub fn sign(&self, claims: &AccessClaims, now: Timestamp) -> Result<Secret<String>, KeysError> {
        let ring = self.0.load();
        let key = ring
            .signing
            .iter()
            .filter(|key| key.times.state(now) == KeyState::Active)
            .max_by_key(|key| key.times.sign_from)
            .ok_or(KeysError::NoActiveKey)?;
        let mut header = Header::new(Algorithm::ES256);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(key.public.kid().to_owned());
        jsonwebtoken::encode(&header, claims, &key.private)
            .map(Secret::new)
            .map_err(KeysError::Sign)
    }

    /// True if a token can be signed: part of readiness.
    pub fn can_sign(&self, now: Timestamp) -> bool {
        self.0
            .load()
            .signing
            .iter()
            .any(|key| key.times.state(now) == KeyState::Active)
    }

    /// Returns the keys that are published at `now`: all but retired ones.
    pub fn jwks(&self, now: Timestamp) -> Jwks {
        let ring = self.0.load();
        let published = ring
            .published
            .iter()
            .filter(|key| key.times.state(now) != KeyState::Retired);
        Jwks {
            keys: published.map(|key| key.public.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn j2_a_key_passes_through_four_states() {
        let key = KeyTimes::signing_from(START, START + PUBLISH_AHEAD);
        assert_eq!(key.state(START - Duration::SECOND), KeyState::Retired);
        assert_eq!(key.state(START), KeyState::Pending);
        assert_eq!(key.state(key.sign_from), KeyState::Active);
        assert_eq!(key.state(key.sign_until), KeyState::Retiring);
        assert_eq!(key.state(key.gone_at), KeyState::Retired);
    }

    #[test]
    fn j2_the_first_start_makes_an_active_key_and_its_standby() {
        let made = plan(&[], START);
        assert_eq!(made.len(), 2);
        assert_eq!(made[0].state(START), KeyState::Active);
        assert_eq!(made[1].state(START), KeyState::Pending);
        assert_eq!(made[1].sign_from, made[0].sign_until);
        assert!(plan(&made, START).is_empty());
    }

    #[test]
    fn j2_over_a_year_there_is_always_one_that_signs_and_each_was_published_a_day_before() {
        let mut keys = Vec::new();
        let mut now = START;
        while now < START + Duration::days(400) {
            let made = plan(&keys, now);
            if now > START {
                assert!(made.iter().all(|key| key.sign_from >= now + PUBLISH_AHEAD));
            }
            keys.extend(made);
            assert!(keys.iter().any(|key| key.state(now) == KeyState::Active));
            assert!(
                keys.iter().any(|key| key.state(now) == KeyState::Pending),
                "a standby at {now}"
            );
            assert!(
                keys.iter()
                    .filter(|key| key.state(now) != KeyState::Retired)
                    .count()
                    <= 3
            );
            now += Duration::hours(1);
        }
        assert_eq!(keys.len(), 6);
    }

    #[test]
    fn j2_a_planned_hand_over_waits_until_the_standby_was_published_for_a_day() {
        let keys = plan(&[], START);
        let early = START + Duration::hours(5);
        let times = hand_over(&keys, early, HandOver::WhenPublished).unwrap();
        assert_eq!(times[1].sign_from, START + PUBLISH_AHEAD);
        assert_eq!(times[0].sign_until, times[1].sign_from);
        assert_eq!(times[0].gone_at, times[0].sign_until + RETIRING_FOR);
        let later = START + Duration::days(10);
        let times = hand_over(&keys, later, HandOver::WhenPublished).unwrap();
        assert_eq!(times[1].sign_from, later);
        assert_eq!(times[0].state(later), KeyState::Retiring);
        assert_eq!(times[1].state(later), KeyState::Active);
        assert_eq!(plan(&times, later).len(), 1, "the next standby");
        assert_eq!(
            hand_over(&times, later, HandOver::WhenPublished),
            None,
            "it is not made yet"
        );
    }

    #[test]
    fn j3_in_an_emergency_the_standby_signs_at_once() {
        let keys = plan(&[], START);
        let times = hand_over(&keys[1..], START, HandOver::AtOnce).unwrap();
        assert_eq!(times[0].state(START), KeyState::Active);
        let again = plan(&times, START);
        assert_eq!(again.len(), 1);
        assert!(again[0].sign_from >= START + PUBLISH_AHEAD);
    }

    #[test]
    fn j2_after_a_long_pause_a_new_key_signs_at_once() {
        let keys = plan(&[], START);
        let later = START + Duration::days(365);
        let made = plan(&keys, later);
        assert_eq!(made[0].state(later), KeyState::Active);
        assert_eq!(made.len(), 2);
    }
}
