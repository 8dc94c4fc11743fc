//! Session ids that can rebuild their session (design page, point 4), and the record of a session.
//!
//! ```text
//! id      = base64url( payload | MAC )
//! payload = version 1 | partition | revision | capability bits
//!         | made at, seconds (4) | grant (16) | random (16)
//! MAC     covers the payload and the principal: tenant, person, server, client
//! ```
//!
//! The id never authenticates (MCP-T-44): it is only read after a token has. With another person's
//! or client's token the MAC does not fit, and the answer is the same 404 as for an invalid id.
//! Because revision and capabilities are inside, a node without a record continues as if it had
//! one.

pub(crate) mod event_id;
pub(crate) mod written;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_cluster::{
    SessionKey,
    node::SessionError,
    store::{Fresh, Principal, Update, Version},
};
use portolan_keys::{Keys, KeysError, Purpose, random};
use portolan_model::{
    Timestamp,
    id::{ServerId, UserId},
};
use portolan_protocol::{capability::ClientCapabilities, logging::Level, revision::Revision};
use time::Duration;

use crate::{
    caller::Caller,
    catalog::marks::Marks,
    error::McpError,
    nodes::context::NodeContext,
    session::written::{PAYLOAD_LEN, SessionBody, SessionId},
};

/// The longest life of a session, in use or not.
pub(crate) const ABSOLUTE_LIFE: Duration = Duration::days(30);

impl SessionId {
    /// A new session of `caller`, whose revision is published.
    pub(crate) fn new(
        caller: &Caller,
        revision: Revision,
        capabilities: &ClientCapabilities,
        now: Timestamp,
    ) -> Result<Self, KeysError> {
        Ok(Self {
            key: SessionKey(random::bytes()?),
            revision,
            capability_bits: capabilities.bits(),
            draft: false,
            created_at: Timestamp::from_unix_timestamp(now.unix_timestamp()).unwrap_or(now),
            grant: caller.claims.gid,
        })
    }

    /// The same session after an `initialize` on an existing session (MCP-O-5).
    pub(crate) fn negotiated(self, revision: Revision, capability_bits: u8) -> Self {
        Self {
            revision,
            capability_bits,
            ..self
        }
    }

    /// The capabilities that the client declared at `initialize`.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::from_bits(self.capability_bits)
    }

    /// The id in its wire form.
    pub(crate) fn to_wire(self, keys: &Keys, caller: &Caller, server: ServerId) -> String {
        keys.stamp(
            Purpose::McpSession,
            &scope(caller, server),
            &self.to_bytes(),
        )
    }

    /// The random part of a text in the form of an id, valid or not.
    pub(crate) fn unchecked_key(text: &str) -> Option<SessionKey> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let id = Self::from_bytes(bytes.get(..PAYLOAD_LEN)?)?;
        Some(id.key)
    }

    /// Reads a presented id.
    ///
    /// `None` for an invalid or forged id, for one of another principal or server, and for one that
    /// is too old. All of them are "session not found" (MCP-T-43).
    pub(crate) fn read(
        text: &str,
        keys: &Keys,
        caller: &Caller,
        server: ServerId,
        now: Timestamp,
    ) -> Option<Self> {
        // A longer text is not an id of ours; no MAC is computed.
        if text.len() > 128 {
            return None;
        }
        let payload = keys.read_stamp(Purpose::McpSession, &scope(caller, server), text)?;
        let id = Self::from_bytes(&payload)?;
        (now - id.created_at < ABSOLUTE_LIFE).then_some(id)
    }
}

/// The MAC's input besides the id. The principal digest is over tenant, person and client.
fn scope(caller: &Caller, server: ServerId) -> [u8; SCOPE] {
    let mut scope = [0; SCOPE];
    let (label, rest) = scope.split_at_mut(LABEL.len());
    let (principal, tail) = rest.split_at_mut(32);
    label.copy_from_slice(LABEL);
    principal.copy_from_slice(caller.principal.as_bytes());
    tail.copy_from_slice(server.uuid().as_bytes());
    scope
}

/// The first bytes of a session's scope.
const LABEL: &[u8] = b"session";
/// The length of a session's scope: the label, a digest and a UUID.
const SCOPE: usize = LABEL.len() + 32 + 16;

/// Most resources that a session can subscribe to (STREAM-3.1).
pub(crate) const MOST_SUBSCRIPTIONS: usize = 256;

/// Most bytes of their URIs: every request of the session reads them.
pub(crate) const MOST_SUBSCRIPTION_BYTES: usize = 16 * 1024;

/// The age from which a session counts as initialized, whatever its record says.
///
/// A record that was lost and created again does not know.
const SURELY_INITIALIZED: Duration = Duration::MINUTE;

/// Attempts of a change that competes with others.
const TRIES: usize = 4;

/// An existing session: its id and its record.
#[derive(Debug, Clone)]
pub(crate) struct LiveSession {
    /// Its id.
    pub(crate) id: SessionId,
    /// The contents of the record.
    pub(crate) body: SessionBody,
    version: Version,
}

/// A session in the form for upstream servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfSession {
    pub(crate) key: SessionKey,
    pub(crate) principal: Principal,
    /// The person that owns it, if one does.
    pub(crate) person: Option<UserId>,
    /// The rest of its lifetime.
    pub(crate) life: std::time::Duration,
    /// Its log level.
    pub(crate) level: Level,
}

impl LiveSession {
    /// Finds the session in the cluster, and creates its record again if there is none (design
    /// page, point 4).
    ///
    /// `None` if the session was ended.
    pub(crate) async fn find(
        state: &NodeContext,
        id: SessionId,
        caller: &Caller,
        marks: Marks,
        now: Timestamp,
    ) -> Result<Option<Self>, McpError> {
        let fresh = SessionBody::fresh(&id, marks, now);
        let begun = state
            .node
            .begin(id.key, caller.session_principal(), &id.record(&fresh, now))
            .await;
        match begun {
            Ok(begun) => {
                if begun.rebuilt {
                    let principal = caller.session_principal();
                    state.node.session_made(id.key, principal);
                    state.session_quota.came(caller.claims.tid);
                }
                Ok(Some(Self {
                    id,
                    body: SessionBody::of_record(&begun.body, fresh),
                    version: begun.version,
                }))
            }
            Err(SessionError::Unknown) => Ok(None),
            Err(SessionError::Unavailable) => Err(McpError::Unavailable),
        }
    }

    /// The session in the form for upstream servers.
    pub(crate) fn of(&self, caller: &Caller, now: Timestamp) -> OfSession {
        OfSession {
            key: self.id.key,
            principal: caller.session_principal(),
            person: caller.person(),
            life: self.id.life(now),
            level: self.level(),
        }
    }

    /// The lowest level of log messages that the client wants.
    pub(crate) fn level(&self) -> Level {
        let known = Level::ALL.get(usize::from(self.body.level));
        known.copied().unwrap_or(Level::SESSION_DEFAULT)
    }

    /// Changes the record, and retries if others change it meanwhile.
    pub(crate) async fn change(
        &self,
        state: &NodeContext,
        caller: &Caller,
        now: Timestamp,
        change: impl Fn(&mut SessionBody),
    ) -> Result<(), McpError> {
        let (mut version, mut body) = (self.version, self.body.clone());
        for _ in 0..TRIES {
            let mut wanted = body.clone();
            change(&mut wanted);
            if wanted == body {
                return Ok(());
            }
            let principal = caller.session_principal();
            let updated = state
                .node
                .update(self.id.key, principal, version, wanted.to_bytes())
                .await
                .map_err(|_| McpError::Unavailable)?;
            match updated {
                Update::Done(_) => return Ok(()),
                Update::Conflict {
                    version: theirs,
                    body: bytes,
                } => {
                    version = theirs;
                    body = SessionBody::read(&bytes).unwrap_or(body);
                }
                // The store lost the record: it is created again with the change.
                Update::Unknown => {
                    let record = self.id.record(&wanted, now);
                    match state.node.begin(self.id.key, principal, &record).await {
                        Ok(begun) => {
                            version = begun.version;
                            body = SessionBody::read(&begun.body).unwrap_or(wanted);
                        }
                        Err(SessionError::Unknown) => return Err(McpError::session_not_found()),
                        Err(SessionError::Unavailable) => return Err(McpError::Unavailable),
                    }
                }
            }
        }
        Err(McpError::Unavailable)
    }
}

impl SessionId {
    /// The rest of the session's absolute life.
    pub(crate) fn life(&self, now: Timestamp) -> std::time::Duration {
        (self.created_at + ABSOLUTE_LIFE - now)
            .try_into()
            .unwrap_or_default()
    }

    fn record(&self, body: &SessionBody, now: Timestamp) -> Fresh {
        Fresh {
            body: body.to_bytes(),
            life: self.life(now),
        }
    }
}

impl SessionBody {
    /// The contents for a session whose record is new or lost.
    fn fresh(id: &SessionId, marks: Marks, now: Timestamp) -> Self {
        let level = Level::ALL
            .iter()
            .position(|level| *level == Level::SESSION_DEFAULT)
            .unwrap_or(0);
        Self {
            initialized: now - id.created_at > SURELY_INITIALIZED,
            level: u8::try_from(level).unwrap_or(0),
            marks,
            subscriptions: Vec::new(),
        }
    }

    /// Reads a record. `fresh` is the result for an unreadable one.
    fn of_record(bytes: &[u8], fresh: Self) -> Self {
        let initialized = fresh.initialized;
        let mut body = Self::read(bytes).unwrap_or(fresh);
        body.initialized |= initialized;
        body
    }
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;
    use portolan_model::{Id, id::TenantId};

    use super::*;
    use crate::http::bearer::tests::caller;

    const NOW: Timestamp = time::macros::datetime!(2026-11-21 12:00 UTC);

    fn keys() -> Keys {
        Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap()
    }

    struct Case {
        caller: Caller,
        server: ServerId,
        id: SessionId,
        wire: String,
    }

    fn case() -> Case {
        let (caller, server) = (
            caller(TenantId::generate(), UserId::generate(), "client-a"),
            ServerId::generate(),
        );
        let capabilities = ClientCapabilities {
            roots: true,
            elicitation_url: true,
            ..ClientCapabilities::default()
        };
        let id = SessionId {
            draft: true,
            ..SessionId::new(&caller, Revision::V2025_06_18, &capabilities, NOW).unwrap()
        };
        let wire = id.to_wire(&keys(), &caller, server);
        Case {
            caller,
            server,
            id,
            wire,
        }
    }

    #[test]
    fn point_4_an_id_carries_all_that_rebuilds_its_session() {
        let Case {
            caller,
            server,
            id,
            wire,
        } = case();
        let read =
            SessionId::read(&wire, &keys(), &caller, server, NOW + Duration::days(29)).unwrap();
        assert_eq!(read, id);
        assert_eq!((read.revision, read.draft), (Revision::V2025_06_18, true));
        assert!(
            read.capabilities().roots
                && read.capabilities().elicitation_url
                && !read.capabilities().sampling
        );
    }

    #[test]
    fn t_41_an_id_is_visible_ascii_and_never_the_same_twice() {
        let Case {
            caller,
            server,
            wire,
            ..
        } = case();
        assert!(wire.len() <= 128 && wire.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        let again = SessionId::new(
            &caller,
            Revision::V2025_06_18,
            &ClientCapabilities::default(),
            NOW,
        )
        .unwrap();
        assert_ne!(again.to_wire(&keys(), &caller, server), wire);
    }

    #[test]
    fn t_44_an_id_is_worth_nothing_to_anybody_else() {
        let Case {
            caller: owner,
            server,
            wire,
            ..
        } = case();
        let (tenant, user) = (owner.claims.tid, owner.claims.sub.user().unwrap());
        let strangers = [
            caller(TenantId::generate(), user, "client-a"),
            caller(tenant, UserId::generate(), "client-a"),
            caller(tenant, user, "client-b"),
        ];
        for stranger in strangers {
            assert_eq!(
                SessionId::read(&wire, &keys(), &stranger, server, NOW),
                None
            );
        }
        assert_eq!(
            SessionId::read(&wire, &keys(), &owner, ServerId::generate(), NOW),
            None,
            "another server"
        );
        let same_person_again = caller(tenant, user, "client-a");
        assert!(
            SessionId::read(&wire, &keys(), &same_person_again, server, NOW).is_some(),
            "a fresh token of the same"
        );
    }

    #[test]
    fn t_43_a_forged_id_is_not_found() {
        let Case {
            caller,
            server,
            wire,
            ..
        } = case();
        for at in 0..wire.len() {
            let mut forged = wire.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last character has bits that base64 does not use; changing them must fail too.
            assert_eq!(
                SessionId::read(&forged, &keys(), &caller, server, NOW),
                None,
                "character {at}"
            );
        }
        let other_keys = Keys::new(&MasterSecret::from_bytes([8; 32]), &[]).unwrap();
        assert_eq!(
            SessionId::read(&wire, &other_keys, &caller, server, NOW),
            None
        );
        for nonsense in ["", "x", "0190f1d2-…", &"A".repeat(500)] {
            assert_eq!(
                SessionId::read(nonsense, &keys(), &caller, server, NOW),
                None
            );
        }
    }

    #[test]
    fn n_7_a_session_survives_a_rotation_of_the_master_secret() {
        let Case {
            caller,
            server,
            id,
            wire,
        } = case();
        let rotated = Keys::new(
            &MasterSecret::from_bytes([9; 32]),
            &[MasterSecret::from_bytes([7; 32])],
        )
        .unwrap();
        assert_eq!(
            SessionId::read(&wire, &rotated, &caller, server, NOW),
            Some(id)
        );
    }

    #[test]
    fn point_4_a_session_is_over_after_thirty_days() {
        let Case {
            caller,
            server,
            wire,
            ..
        } = case();
        assert_eq!(
            SessionId::read(&wire, &keys(), &caller, server, NOW + ABSOLUTE_LIFE),
            None
        );
    }

    /// Number of ids of one sample.
    const SAMPLE: u32 = 1_000_000;
    /// The χ² that an even draw exceeds once in a hundred times, at 255 degrees of freedom. Three
    /// such draws in a row happen once in a million.
    const CHI_SQUARE: f64 = 310.457;

    /// TEST-S13: ids are unique and evenly spread.
    ///
    /// `aws-lc` compares the MAC in constant time: `crates/keys/src/seal.rs`.
    #[test]
    fn s13_a_million_ids_never_repeat_and_are_spread_evenly_over_the_lanes() {
        let Case { caller, .. } = case();
        let none = ClientCapabilities::default();
        let draw = || -> Vec<SessionKey> {
            let new = |_| SessionId::new(&caller, Revision::V2025_06_18, &none, NOW);
            (0..SAMPLE).map(|n| new(n).unwrap().key).collect()
        };
        let chi_square = |keys: &[SessionKey]| -> f64 {
            let mut lanes = [0_u32; 256];
            for key in keys {
                lanes[usize::from(key.partition().0)] += 1;
            }
            let expected = f64::from(SAMPLE) / 256.0;
            let distance = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
            lanes.iter().map(distance).sum()
        };
        let mut keys = draw();
        let mut even = chi_square(&keys);
        for _ in 0..2 {
            if even < CHI_SQUARE {
                break;
            }
            even = chi_square(&draw());
        }
        assert!(even < CHI_SQUARE, "χ² is {even}");
        keys.sort_unstable();
        let again = keys.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(again, None);
    }

    #[test]
    fn l_6_a_session_is_ready_when_it_is_a_minute_old_whatever_became_of_its_record() {
        let id = case().id;
        let at = |age| SessionBody::fresh(&id, Marks::default(), id.created_at + age);
        let lost_at_once = at(Duration::SECOND).to_bytes();
        for (age, is_ready) in [(59, false), (61, true)] {
            let body = SessionBody::of_record(&lost_at_once, at(Duration::seconds(age)));
            assert_eq!(body.initialized, is_ready, "{age} s");
        }
        let mut said = at(Duration::SECOND);
        said.initialized = true;
        let early = SessionBody::of_record(&said.to_bytes(), at(Duration::SECOND));
        assert!(early.initialized);
    }

    #[test]
    fn a_body_reads_back() {
        let body = SessionBody {
            initialized: true,
            level: 3,
            marks: Marks {
                tools: u64::MAX - 1,
                ..Marks::default()
            },
            subscriptions: vec![("x://a".into(), 7), ("x://ü".into(), -1)],
        };
        assert_eq!(SessionBody::read(&body.to_bytes()), Some(body.clone()));
        let cut = body.to_bytes();
        assert_eq!(SessionBody::read(&cut[..cut.len() - 1]), None);
        let of_before = [&[1, 3][..], &7_u64.to_be_bytes()].concat();
        let read = SessionBody::read(&of_before).unwrap();
        assert_eq!((read.initialized, read.marks.tools), (true, 7));
        assert_eq!(SessionBody::read(b"other"), None);
        let _: Id<portolan_model::id::ServerKind> = ServerId::generate();
    }
}
