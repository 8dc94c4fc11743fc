//! Ids: UUIDv7 with a kind. In text they carry the kind's prefix, in Postgres they are plain
//! `uuid`.
//!
//! An id names, it never opens: UUIDv7 is guessable by design (AUTH-3.1). Secrets are
//! `keys::SecretToken`.

use std::{
    fmt, hash,
    marker::PhantomData,
    str::FromStr,
    sync::atomic::{AtomicU16, Ordering},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::Timestamp;

/// The kind of thing that an id names. The prefix is the visible part of the kind.
pub trait Kind {
    /// Lower-case letters, without the underscore that follows in text.
    const PREFIX: &'static str;
}

/// An id of kind `K`. Two kinds cannot be confused by the compiler, nor by a person reading a log.
pub struct Id<K>(Uuid, PhantomData<fn() -> K>);

impl<K> Id<K> {
    /// Takes a UUID that is known to be of this kind, such as a database column.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }

    /// A new id. UUIDv7 sorts by time of creation.
    pub fn generate() -> Self {
        Self::from_uuid(Uuid::now_v7())
    }

    /// A new id of that time. Its time is that of the thing, whatever the machine's clock shows.
    /// Ids of one millisecond sort by creation, up to 4,096 of them in a process; the last eight
    /// bytes are random.
    pub fn at(time: Timestamp) -> Self {
        static MADE: AtomicU16 = AtomicU16::new(0);
        let millis = u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
        let mut rest = [0; 10];
        rest[..2].copy_from_slice(&MADE.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        rest[2..].copy_from_slice(&Uuid::new_v4().as_bytes()[8..]);
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &rest);
        Self::from_uuid(id.into_uuid())
    }

    /// The time of creation, to the millisecond.
    pub fn time(self) -> Option<Timestamp> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        let seconds = i64::try_from(seconds).ok()?;
        let at = Timestamp::from_unix_timestamp(seconds).ok()?;
        at.replace_nanosecond(nanos).ok()
    }

    /// Its 16 bytes, to bind something to it.
    pub const fn uuid_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The bare UUID, for the database.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K> hash::Hash for Id<K> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<K> From<Uuid> for Id<K> {
    fn from(uuid: Uuid) -> Self {
        Self::from_uuid(uuid)
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", K::PREFIX, self.0.simple())
    }
}
impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of the form {expected}_<32 hex digits>")]
pub struct InvalidId {
    /// The prefix that was expected.
    pub expected: &'static str,
}

impl<K: Kind> FromStr for Id<K> {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = InvalidId {
            expected: K::PREFIX,
        };
        let hex = text
            .strip_prefix(K::PREFIX)
            .and_then(|rest| rest.strip_prefix('_'))
            .ok_or(invalid)?;
        if hex.len() != 32 || hex.bytes().any(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(invalid);
        }
        Uuid::try_parse(hex)
            .map(Self::from_uuid)
            .map_err(|_| invalid)
    }
}

impl<K: Kind> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident, $alias:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $kind {}
        impl Kind for $kind { const PREFIX: &'static str = $prefix; }
        $(#[$doc])*
        pub type $alias = Id<$kind>;
    )*};
}

kinds! {
    /// A person.
    UserKind, UserId, "usr";
    /// A tenant, called workspace in the console.
    TenantKind, TenantId, "ten";
    /// A browser session of the console and the login pages.
    SessionKind, SessionId, "ses";
    /// An OAuth client, whatever its wire `client_id` looks like.
    ClientKind, ClientId, "cli";
    /// A pending authorization request.
    RequestKind, RequestId, "req";
    /// A person's permission for a client in a tenant.
    GrantKind, GrantId, "gr";
    /// The chain of refresh tokens of a grant.
    FamilyKind, FamilyId, "fam";
    /// A source of tools: an OpenAPI document, or a hand-made HTTP API.
    SourceKind, SourceId, "src";
    /// A tool.
    ToolKind, ToolId, "tol";
    /// A prompt.
    PromptKind, PromptId, "prm";
    /// A resource, or a template of resources.
    ResourceKind, ResourceId, "rsc";
    /// A hosted MCP server.
    ServerKind, ServerId, "srv";
    /// A call that the playground keeps.
    SavedCallKind, SavedCallId, "cal";
    /// A plan of configuration.
    PlanKind, PlanId, "pln";
    /// A sealed credential of a source.
    CredentialKind, CredentialId, "crd";
    /// An entry of the audit log.
    AuditKind, AuditId, "aud";
    /// A message to a person.
    MailKind, MailId, "mai";
    /// An e-mail verification.
    VerificationKind, VerificationId, "ver";
    /// A link that was mailed to a person.
    LinkKind, LinkId, "lnk";
    /// An account at another service by which a person signs in.
    IdentityLinkKind, IdentityLinkId, "idl";
    /// Such an account that is not linked yet.
    IdentityOfferKind, IdentityOfferId, "ido";
    /// A tenant's provider of accounts.
    IdentityProviderKind, IdentityProviderId, "idp";
    /// A mail domain of a tenant.
    TenantDomainKind, TenantDomainId, "dom";
    /// A change of a person's address.
    EmailChangeKind, EmailChangeId, "emc";
    /// An invitation to a tenant.
    InvitationKind, InvitationId, "inv";
    /// A service account, which is also its `client_id`.
    ServiceAccountKind, ServiceAccountId, "svc";
    /// An API key.
    ApiKeyKind, ApiKeyId, "key";
    /// A token of the management API.
    AccessTokenKind, AccessTokenId, "tok";
    /// A trusted pipeline, whose jobs get such tokens.
    PipelineKind, PipelineId, "pip";
    /// A secret of an OAuth client.
    ClientSecretKind, ClientSecretId, "sec";
    /// A passkey of a person.
    PasskeyKind, PasskeyId, "psk";
    /// A call of a tool.
    CallKind, CallId, "call";
    /// A saved view of the log of calls.
    CallViewKind, CallViewId, "viw";
    /// An event of a workspace, and the `webhook-id` of its deliveries.
    EventKind, EventId, "evt";
    /// An endpoint of webhooks.
    WebhookKind, WebhookId, "whk";
    /// An alert.
    AlertKind, AlertId, "alr";
    /// An access token (`jti`).
    TokenKind, TokenId, "at";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_shows_its_kind_and_reads_back() {
        let id = TenantId::generate();
        let text = id.to_string();
        assert!(text.starts_with("ten_"));
        assert_eq!(text.parse::<TenantId>(), Ok(id));
    }

    #[test]
    fn an_id_of_a_time_has_that_time_to_the_millisecond() {
        let at = Timestamp::from_unix_timestamp_nanos(1_795_500_000_123_456_789).unwrap();
        let (one, two) = (TenantId::at(at), TenantId::at(at));
        assert_ne!(one, two);
        let (_, random) = one.uuid().as_u64_pair();
        assert_ne!(random, two.uuid().as_u64_pair().1);
        let seen = one.time().unwrap();
        assert_eq!(seen.unix_timestamp_nanos(), 1_795_500_000_123_000_000);
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let text = UserId::generate().to_string();
        assert_eq!(text.parse::<TenantId>(), Err(InvalidId { expected: "ten" }));
        assert!("ten_0190".parse::<TenantId>().is_err());
        assert!(
            "ten_01902F3C5D7E7F8090A0B0C0D0E0F000"
                .parse::<TenantId>()
                .is_err(),
            "one spelling only"
        );
    }
}
