//! The payloads of streams for the cluster: their seal, and the error in place of a lost answer
//! (STREAM-3.1, STREAM-B).

use std::sync::Arc;

use bytes::Bytes;
use portolan_cluster::{
    node::{Lost, PayloadPart, PayloadPlace, Payloads},
    store::Class,
};
use portolan_keys::{Keys, KeysError, OwnerKey, Purpose};
use portolan_model::id::TenantId;
use portolan_protocol::{
    error::RpcError,
    jsonrpc::{self, Raw, RequestId},
    revision::Era,
};
use quick_cache::sync::Cache;
use serde_json::{Value, json};

/// The form of payloads in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadForm {
    /// As they are.
    Plain,
    /// Sealed: a reader of the store cannot read them (design page, point 6).
    Sealed,
}

/// The payload functions of this service.
pub fn payloads(keys: Keys, form: PayloadForm) -> Arc<dyn Payloads> {
    Arc::new(McpPayloads {
        keys,
        tenants: Cache::new(TENANTS),
        sealed: form == PayloadForm::Sealed,
    })
}

/// Most tenants whose key is cached.
const TENANTS: usize = 10_000;

#[derive(Debug)]
struct McpPayloads {
    keys: Keys,
    tenants: Cache<TenantId, OwnerKey>,
    sealed: bool,
}

impl McpPayloads {
    fn key(&self, tenant: TenantId) -> Result<OwnerKey, KeysError> {
        self.tenants.get_or_insert_with(&tenant, || {
            self.keys
                .of_owner(Purpose::StreamPayload, tenant.uuid().as_bytes())
        })
    }
}

/// The associated data of a payload: session, a letter for its kind, and its name there.
///
/// All places differ in these bytes. A payload that was moved does not open, be it to another
/// number of its own stream (STREAM-11).
fn bound(place: &PayloadPlace<'_>) -> Vec<u8> {
    let mut bound = Vec::with_capacity(40);
    bound.extend_from_slice(&place.session.0);
    match place.part {
        PayloadPart::Event { nonce, seq, class } => {
            bound.push(match class {
                Class::Notification => b'N',
                Class::Question => b'R',
                Class::Answer => b'A',
                Class::Final => b'F',
            });
            bound.extend_from_slice(&nonce.0);
            bound.extend_from_slice(&seq.to_be_bytes());
        }
        PayloadPart::Answer { question } => {
            bound.push(b'q');
            bound.extend_from_slice(question.as_bytes());
        }
        PayloadPart::RecordPut { nonce, is_head } => {
            bound.push(if is_head { b'h' } else { b'r' });
            bound.extend_from_slice(&nonce.0);
        }
    }
    bound
}

impl Payloads for McpPayloads {
    fn seal(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Bytes {
        if !self.sealed {
            return payload;
        }
        let key = self.key(place.tenant);
        match key.and_then(|key| key.seal(&payload, &bound(place))) {
            Ok(sealed) => sealed.into(),
            Err(error) => {
                // Nothing is sent unsealed. The reader cannot open the empty payload and reports it
                // as lost.
                tracing::error!(%error, "a payload cannot be sealed");
                Bytes::new()
            }
        }
    }

    fn open(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes> {
        if !self.sealed {
            return Some(payload);
        }
        let key = self.key(place.tenant).ok()?;
        key.open(&payload, &bound(place)).ok().map(Bytes::from)
    }

    fn lost(&self, about: &Bytes, why: Lost) -> Bytes {
        About::read(about).lost(why)
    }
}

/// The facts about a request for the node that takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// Its id.
    pub(crate) id: Option<RequestId>,
    /// The tool declares that a second call does no harm.
    pub(crate) retryable: bool,
}

impl About {
    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut out = vec![u8::from(self.retryable)];
        if let Some(id) = &self.id {
            id.write(&mut out);
        }
        out.into()
    }

    fn read(bytes: &Bytes) -> Self {
        let (retryable, id) = bytes
            .split_first()
            .map_or((false, &[][..]), |(first, rest)| (*first == 1, rest));
        let raw = Raw::parse(id.to_vec()).ok();
        Self {
            id: raw.as_ref().and_then(RequestId::from_raw),
            retryable,
        }
    }

    /// The final response of a request without another one (STREAM-12.3.4). It reports the unknown
    /// outcome.
    pub(crate) fn lost(&self, why: Lost) -> Bytes {
        self.lost_in(Era::Legacy, why)
    }

    /// The same with the codes of an era: 2026-07-28 reserves those of STREAM-B (MCP-ER-13,
    /// MCP-ER-15).
    pub(crate) fn lost_in(&self, era: Era, why: Lost) -> Bytes {
        let unknown = "The call may or may not have taken effect.";
        let retryable = self.retryable;
        let (code, message, data) = match why {
            Lost::Node => (
                -32010,
                format!("The node running this call was lost. {unknown}"),
                json!({"reason": "node_lost", "executed": "unknown", "retryable": retryable}),
            ),
            Lost::Draining => (
                -32010,
                format!("The node running this call had to stop. {unknown}"),
                json!({"reason": "draining", "executed": "unknown", "retryable": retryable}),
            ),
            Lost::Stream => (
                -32011,
                format!("The result is no longer available. {unknown}"),
                json!({"reason": "stream_lost", "executed": "unknown"}),
            ),
            Lost::Overflow => (
                -32015,
                format!("The call sent more than can be kept for its client. {unknown}"),
                json!({"executed": "unknown"}),
            ),
            Lost::Deadline => (
                -32016,
                format!("The call took too long and was given up. {unknown}"),
                json!({"executed": "unknown"}),
            ),
            Lost::Revoked => (
                -32010,
                format!(
                    "The authorization under which this call ran was revoked, and the call was stopped. {unknown}"
                ),
                json!({"reason": "revoked", "executed": "unknown", "retryable": retryable}),
            ),
            Lost::Stopped => (-32603, "Internal error".to_owned(), Value::Null),
        };
        let data = (!data.is_null()).then(|| Raw::of(&data).ok()).flatten();
        let code = match era {
            Era::Modern if code != -32603 => -31004,
            _ => code,
        };
        let error = RpcError {
            code,
            message,
            data,
        };
        jsonrpc::error_response(self.id.as_ref(), &error).into()
    }
}

#[cfg(test)]
mod tests {
    use portolan_cluster::{SessionKey, store::Nonce};
    use portolan_keys::MasterSecret;

    use super::*;

    #[test]
    fn s7_a_payload_opens_only_under_its_own_number_of_its_own_stream_of_its_own_tenant() {
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let payloads = payloads(keys, PayloadForm::Sealed);
        let (acme, beta) = (TenantId::generate(), TenantId::generate());
        let place = |tenant, session, part| PayloadPlace {
            tenant,
            session: SessionKey([session; 16]),
            part,
        };
        let event = |nonce, seq, class| PayloadPart::Event {
            nonce: Nonce([nonce; 8]),
            seq,
            class,
        };
        let (note, last) = (Class::Notification, Class::Final);
        let answer = |question| PayloadPart::Answer { question };
        let places = [
            place(acme, 1, event(1, 1, note)),
            place(beta, 1, event(1, 1, note)),
            place(acme, 2, event(1, 1, note)),
            place(acme, 1, event(2, 1, note)),
            place(acme, 1, event(1, 2, note)),
            place(acme, 1, event(1, 1, last)),
            place(acme, 1, answer("q1")),
            place(acme, 1, answer("q2")),
            place(acme, 2, answer("q1")),
        ];
        for here in &places {
            let sealed = payloads.seal(here, Bytes::from_static(b"secret answer"));
            assert!(!sealed.windows(6).any(|part| part == b"secret"), "TEST-S6");
            for there in &places {
                let opened = payloads.open(there, sealed.clone());
                assert_eq!(opened.is_some(), here == there, "{here:?} at {there:?}");
            }
        }
        let forged = payloads.open(&places[0], Bytes::from_static(b"forged"));
        assert_eq!(forged, None);
    }

    #[test]
    fn appendix_b_a_lost_call_says_what_is_not_known_and_of_which_request() {
        for (id, retryable) in [(RequestId::from(7), true), (RequestId::from("x"), false)] {
            let about = About {
                id: Some(id.clone()),
                retryable,
            };
            assert_eq!(About::read(&about.to_bytes()), about);
            let modern: Value =
                serde_json::from_slice(&about.lost_in(Era::Modern, Lost::Draining)).unwrap();
            assert_eq!(modern["error"]["code"], -31004, "MCP-ER-13");
            let error: Value = serde_json::from_slice(&about.lost(Lost::Node)).unwrap();
            assert_eq!(error["id"].to_string(), id.to_json());
            assert_eq!(error["error"]["code"], -32010);
            assert_eq!(
                error["error"]["data"],
                json!({"reason": "node_lost", "executed": "unknown", "retryable": retryable})
            );
        }
        let nothing: Value =
            serde_json::from_slice(&About::read(&Bytes::new()).lost(Lost::Stream)).unwrap();
        assert_eq!(nothing["error"]["code"], -32011);
    }
}
