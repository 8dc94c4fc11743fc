//! Writing results: JSON straight into the answer's buffer, and what 2026-07-28 adds to every
//! result (MCP-J-17, MCP-J-18, `docs/revisions.md`, section 20).

use crate::implementation::Implementation;
use crate::json::{Object, Raw};
use crate::meta_key;
use crate::revision::Revision;

pub use crate::json::write_string;

/// Clients that may reuse a cached result (MCP-CA-1, MCP-CA-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// Every client. Never for content that depends on the principal.
    Public,
    /// The same authorization context only.
    Private,
}

/// How long a result stays fresh and for whom. Only 2026-07-28 and later see it (MCP-FA-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHint {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// For whom.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Lists: a minute, private (MCP-CA-4).
    pub const LIST: Self = Self {
        ttl_ms: 60_000,
        scope: CacheScope::Private,
    };
    /// `server/discover`: five minutes, private (MCP-CA-4).
    pub const DISCOVER: Self = Self {
        ttl_ms: 300_000,
        scope: CacheScope::Private,
    };
    /// `resources/read`: not at all (MCP-CA-4).
    pub const READ: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };
}

/// The server's name card, serialised once per spelling that some revision knows (MCP-L-10,
/// MCP-FA-5).
#[derive(Clone, Debug)]
pub struct Identity {
    forms: [Raw; 3],
}

impl Identity {
    /// Prepares `implementation` for all revisions.
    pub fn new(implementation: &Implementation) -> Self {
        let form =
            |revision| Raw::of(&implementation.shaped(revision)).unwrap_or(Raw::empty_object());
        Self {
            forms: [
                form(Revision::V2025_03_26),
                form(Revision::V2025_06_18),
                form(Revision::V2025_11_25),
            ],
        }
    }

    /// The card as `revision` knows it.
    pub fn json(&self, revision: Revision) -> &Raw {
        let facts = revision.facts();
        &self.forms[usize::from(facts.titles) + usize::from(facts.icons)]
    }
}

/// A result under construction: `resultType` first, `_meta` with `serverInfo` last, where the
/// revision has them.
pub(crate) struct ResultObject<'a> {
    pub(crate) object: Object<'a>,
    revision: Revision,
}

impl<'a> ResultObject<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>, revision: Revision) -> Self {
        Self::begin_as(out, revision, "complete")
    }

    /// A result of another sort (MCP-J-17).
    pub(crate) fn begin_as(out: &'a mut Vec<u8>, revision: Revision, sort: &str) -> Self {
        let mut object = Object::begin(out);
        if revision.facts().result_envelope {
            object.value("resultType", sort);
        }
        Self { object, revision }
    }

    pub(crate) fn cache(&mut self, hint: CacheHint) {
        if self.revision.facts().result_envelope {
            self.object.value("ttlMs", &hint.ttl_ms);
            let scope: &[u8] = match hint.scope {
                CacheScope::Public => br#""public""#,
                CacheScope::Private => br#""private""#,
            };
            self.object.raw("cacheScope", scope);
        }
    }

    /// Ends the result. `meta` is the result's own `_meta` object, to which `serverInfo` is added.
    pub(crate) fn end(mut self, identity: &Identity, meta: Option<&Raw>) {
        let own = meta
            .map(Raw::members)
            .into_iter()
            .flatten()
            .filter(|(key, _)| key != meta_key::SERVER_INFO);
        let own: Vec<_> = own.collect();
        let signed = self.revision.facts().result_envelope;
        if signed || !own.is_empty() {
            self.object.key("_meta");
            let mut object = Object::begin(self.object.out());
            for (key, value) in own {
                object.raw(&key, value.as_bytes());
            }
            if signed {
                object.raw(
                    meta_key::SERVER_INFO,
                    identity.json(self.revision).as_bytes(),
                );
            }
            object.end();
        }
        self.object.end();
    }
}

/// The empty result: `ping`, `logging/setLevel`, `resources/subscribe`, … `{}` in legacy revisions.
pub fn empty(revision: Revision, identity: &Identity) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    ResultObject::begin(&mut out, revision).end(identity, None);
    out
}

/// One page of a list, from items that are already serialised for `revision`.
pub(crate) fn list_page<'i>(
    revision: Revision,
    identity: &Identity,
    member: &str,
    items: impl IntoIterator<Item = &'i [u8]>,
    next_cursor: Option<&str>,
    hint: CacheHint,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let mut result = ResultObject::begin(&mut out, revision);
    result.object.key(member);
    let list = result.object.out();
    list.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        list.extend_from_slice(item);
    }
    list.push(b']');
    if let Some(cursor) = next_cursor {
        result.object.value("nextCursor", cursor);
    }
    result.cache(hint);
    result.end(identity, None);
    out
}

/// Parameters of every list: the opaque cursor (MCP-PG-1). Its value is made and checked elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct ListParams {
    /// Cursor at which to continue; absent for the first page. The empty string is a cursor like
    /// any other (MCP-PG-3).
    #[serde(default)]
    pub cursor: Option<String>,
}
