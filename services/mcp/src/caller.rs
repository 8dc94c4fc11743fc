//! The holder of a good token, with its limits and its revocation.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ipnet::IpNet;
use portolan_cluster::{TokenFacts, node::LimitKey, store::Principal};
use portolan_keys::{AccessClaims, digest};
use portolan_metering::CallerKind;
use portolan_model::{
    Digest, Timestamp,
    id::UserId,
    resource::{Resource, Site},
    scope,
    subject::Subject,
};
use portolan_protocol::initialize::Implementation;
use tokio_util::sync::CancellationToken;

/// How long a stream stays open after a revocation, so that a call can send its final error.
///
/// This is well within the second that a revocation may take (AUTH-R9).
pub(crate) const LAST_WORD: Duration = Duration::from_millis(400);

/// The owner of sessions: the principal, and its names for people. The sessions of a token share
/// it.
#[derive(Debug)]
pub(crate) struct SessionOwner {
    /// The owner, in the form that the cluster compares.
    pub(crate) principal: Principal,
    pub(crate) subject: Subject,
    pub(crate) client_id: Box<str>,
}

/// The holder of a good token.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The claims as verified.
    pub(crate) claims: AccessClaims,
    /// The resource in `aud`; `None` for a resource of an earlier shape, which gives no access.
    pub(crate) granted: Option<Resource>,
    /// Digest of tenant, person and client: the owner of sessions and limits.
    pub(crate) principal: Digest,
    /// The same, for the sessions that it opens.
    pub(crate) owner: Arc<SessionOwner>,
    /// The bucket of its requests.
    pub(crate) requests: LimitKey,
    /// The bucket of the streams that it opens.
    pub(crate) stream_opens: LimitKey,
    /// The bucket of its progress notifications about questions.
    pub(crate) progress: LimitKey,
    /// Cancelled when the token is revoked: its running calls stop, and its streams close.
    pub(crate) revoked: CancellationToken,
    pub(crate) key_id: String,
    pub(crate) has_scope: bool,
    /// For counts and the log of calls.
    pub(crate) kind: CallerKind,
    /// Unix time in seconds until which it is not checked again.
    ///
    /// This is the end of a token, or a few minutes after the lookup of an API key.
    pub(crate) remembered_until: i64,
    /// The networks from which an API key may be used; `None` allows every address.
    pub(crate) networks: Option<Box<[IpNet]>>,
    /// The minute, since the epoch, in which this node last noted a use of the grant.
    pub(crate) noted: AtomicI64,
}

impl Caller {
    pub(crate) fn new(site: &Site, token: &str, claims: AccessClaims) -> Self {
        let mut principal = Vec::with_capacity(32 + claims.client_id.len());
        principal.extend_from_slice(claims.tid.uuid().as_bytes());
        principal.extend_from_slice(claims.sub.uuid().as_bytes());
        principal.extend_from_slice(claims.client_id.as_bytes());
        let principal = digest(&principal);
        let mut owner = Principal([0; 16]);
        owner.0.copy_from_slice(&principal.as_bytes()[..16]);
        let bucket = |kind: char| LimitKey {
            shard: claims.tid.uuid().simple().to_string(),
            bucket: format!(
                "{kind}{}",
                URL_SAFE_NO_PAD.encode(&principal.as_bytes()[..16])
            ),
        };
        Self {
            granted: site.read_canonical(&claims.aud),
            requests: bucket('p'),
            stream_opens: bucket('s'),
            progress: bucket('q'),
            principal,
            owner: Arc::new(SessionOwner {
                principal: owner,
                subject: claims.sub,
                client_id: claims.client_id.as_str().into(),
            }),
            revoked: CancellationToken::new(),
            key_id: key_id(token).unwrap_or_default(),
            has_scope: claims.scope.split(' ').any(|one| one == scope::MCP),
            remembered_until: claims.exp,
            networks: None,
            kind: match claims.sub.user() {
                Some(_) => CallerKind::Person,
                None => CallerKind::Service,
            },
            noted: AtomicI64::new(i64::MIN),
            claims,
        }
    }

    /// The holder of an API key, which is looked up again after `remembered_until`.
    pub(crate) fn of_key(
        site: &Site,
        claims: AccessClaims,
        remembered_until: Timestamp,
        networks: Option<Box<[IpNet]>>,
    ) -> Self {
        let until = remembered_until.unix_timestamp().min(claims.exp);
        Self {
            remembered_until: until,
            networks,
            kind: CallerKind::ApiKey,
            ..Self::new(site, "", claims)
        }
    }

    /// Whether the caller needs no new check at `now`.
    pub(crate) const fn is_fresh(&self, now: Timestamp) -> bool {
        now.unix_timestamp() < self.remembered_until
    }

    /// Whether requests may come from this address (AUTH-C17).
    pub(crate) fn may_come_from(&self, address: Option<IpAddr>) -> bool {
        match (&self.networks, address) {
            (None, _) => true,
            (Some(networks), Some(address)) => is_within(networks, address),
            (Some(_), None) => false,
        }
    }

    /// Whether this use is the first in its minute on this node, and is therefore noted.
    pub(crate) fn begins_a_minute(&self, now: Timestamp) -> bool {
        let minute = now.unix_timestamp() / 60;
        self.noted.load(Ordering::Relaxed) != minute
            && self.noted.swap(minute, Ordering::Relaxed) != minute
    }

    /// The facts that a revocation can name.
    pub(crate) fn facts(&self) -> TokenFacts<'_> {
        let claims = &self.claims;
        TokenFacts {
            token: claims.jti,
            grant: claims.gid,
            subject: claims.sub,
            tenant: claims.tid,
            client: &claims.client_id,
            key: &self.key_id,
            user_epoch: claims.ep.user,
            tenant_epoch: claims.ep.tenant,
            member_epoch: claims.ep.member,
        }
    }

    /// The person behind it, if there is one.
    pub(crate) fn person(&self) -> Option<UserId> {
        self.claims.sub.user()
    }

    /// The owner of its sessions, in the form that the cluster compares.
    pub(crate) fn session_principal(&self) -> Principal {
        self.owner.principal
    }

    /// Completes when everything open under the token must close.
    ///
    /// The token is revoked by then, and running calls have had a moment to send their final error.
    pub(crate) async fn over(self: Arc<Self>) {
        self.revoked.cancelled().await;
        tokio::time::sleep(LAST_WORD).await;
    }

    /// When the token expires.
    pub(crate) fn expires_at(&self) -> Timestamp {
        Timestamp::from_unix_timestamp(self.claims.exp).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// AUTH-4.5.8: whether the token is for this resource or for a wider one.
    ///
    /// The caller has compared the tenant already.
    pub(crate) fn may_use(
        &self,
        target: &Resource,
        names_tenant: impl Fn(&str) -> bool,
        workspace_tokens: bool,
    ) -> bool {
        self.granted
            .as_ref()
            .is_some_and(|granted| target.admits(granted, names_tenant, workspace_tokens))
    }
}

/// The key id in the header of a token whose signature was verified.
pub(crate) fn key_id(token: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Header {
        kid: String,
    }
    let bytes = URL_SAFE_NO_PAD.decode(token.split('.').next()?).ok()?;
    serde_json::from_slice::<Header>(&bytes)
        .ok()
        .map(|header| header.kid)
}

/// Whether an address is in one of the networks. An IPv4 address may be mapped into IPv6.
pub(crate) fn is_within(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// A client, as it names itself.
#[derive(Debug, Clone)]
pub(crate) struct ClientName {
    pub(crate) name: Arc<str>,
    pub(crate) version: Option<Arc<str>>,
}

/// Longest name or version of a client that is kept, in characters.
const SHOWN_CHARS: usize = 64;

impl ClientName {
    /// A client in the form for the log: printable and short. `None` without a name.
    pub(crate) fn of(card: &Implementation) -> Option<Self> {
        Self::again(card, None)
    }

    /// The same. Shares the texts with `known`, an earlier name of the client, if they are equal.
    pub(crate) fn again(card: &Implementation, known: Option<&Self>) -> Option<Self> {
        let name = shown(&card.name)?;
        let version = shown(&card.version);
        let known = known
            .filter(|known| *known.name == *name && known.version.as_deref() == version.as_deref());
        Some(known.cloned().unwrap_or_else(|| Self {
            name: name.into(),
            version: version.map(Into::into),
        }))
    }
}

/// A text in the form for the log, without a copy if it has no control characters.
fn shown(text: &str) -> Option<Cow<'_, str>> {
    let shown = if text.chars().take(SHOWN_CHARS).any(char::is_control) {
        let printable = text.chars().filter(|c| !c.is_control());
        let printable: String = printable.take(SHOWN_CHARS).collect();
        Cow::Owned(printable.trim().to_owned())
    } else {
        let end = text.char_indices().nth(SHOWN_CHARS);
        Cow::Borrowed(text[..end.map_or(text.len(), |(end, _)| end)].trim())
    };
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clients_are_shown_printable_and_short() {
        let long = "é".repeat(70);
        for (text, expected) in [
            ("", None),
            (" \n ", None),
            ("desk", Some("desk")),
            (" desk ", Some("desk")),
            ("de\u{7}sk\n", Some("desk")),
            ("\u{7} desk", Some("desk")),
            (long.as_str(), Some(&long[..128])),
            (&format!("\n{long}"), Some(&long[..128])),
            (&format!("{}\n", &long[..128]), Some(&long[..128])),
        ] {
            assert_eq!(shown(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn an_unchanged_client_shares_the_texts_of_its_name() {
        let card = Implementation::new(" desk", "1.2");
        let first = ClientName::of(&card).unwrap();
        let again = ClientName::again(&card, Some(&first)).unwrap();
        assert!(Arc::ptr_eq(&first.name, &again.name));
        for other in [
            Implementation::new("desk", "1.3"),
            Implementation::new("desk", " "),
            Implementation::new("desks", "1.2"),
        ] {
            let changed = ClientName::again(&other, Some(&first)).unwrap();
            let alone = ClientName::of(&other).unwrap();
            assert_eq!(changed.name, alone.name);
            assert_eq!(changed.version, alone.version);
        }
        assert!(ClientName::again(&Implementation::new("", "1.2"), Some(&first)).is_none());
    }
}
