//! What the cluster has to know of payloads: how they are sealed for the log, and what stands in for an answer that was lost
//! (`streams.md` §3.1, Appendix B).

use std::sync::Arc;

use bytes::Bytes;
use portolan_cluster::{
    node::{Lost, Payloads},
    store::StreamKey,
};
use portolan_keys::{Keys, Purpose};
use portolan_model::Clock;
use portolan_protocol::{
    error::RpcError,
    jsonrpc::{self, Raw, RequestId},
};
use serde_json::{Value, json};

/// How the cluster treats the payloads of this service. `sealed`: nobody who reads the store can read them (design page, point 6).
pub fn payloads(keys: Keys, clock: Clock, sealed: bool) -> Arc<dyn Payloads> {
    Arc::new(McpPayloads {
        keys,
        clock,
        sealed,
    })
}

#[derive(Debug)]
struct McpPayloads {
    keys: Keys,
    clock: Clock,
    sealed: bool,
}

/// Where a payload belongs; one that was moved elsewhere does not open (§11).
fn place(stream: StreamKey) -> [u8; 24] {
    let mut place = [0; 24];
    place[..16].copy_from_slice(&stream.session.0);
    place[16..].copy_from_slice(&stream.nonce.0);
    place
}

impl Payloads for McpPayloads {
    fn seal(&self, stream: StreamKey, payload: Bytes) -> Bytes {
        if !self.sealed {
            return payload;
        }
        match self
            .keys
            .seal(Purpose::StreamPayload, &payload, &place(stream))
        {
            Ok(sealed) => sealed.into(),
            Err(error) => {
                // Nothing goes out unsealed. The reader cannot open it, and says that it is lost.
                tracing::error!(%error, "a payload cannot be sealed");
                Bytes::new()
            }
        }
    }

    fn open(&self, stream: StreamKey, payload: Bytes) -> Option<Bytes> {
        if !self.sealed {
            return Some(payload);
        }
        let opened = self.keys.open(
            Purpose::StreamPayload,
            &payload,
            &place(stream),
            self.clock.now(),
        );
        Some(Bytes::copy_from_slice(opened.ok()?.expose()))
    }

    fn lost(&self, about: &Bytes, why: Lost) -> Bytes {
        About::read(about).lost(why)
    }
}

/// What an adopter must know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// Its id.
    pub(crate) id: Option<RequestId>,
    /// The tool says of itself that a second call does no harm.
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

    /// The final response of a request that has no other (§12.3 step 4): it says what is not known.
    pub(crate) fn lost(&self, why: Lost) -> Bytes {
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
            Lost::Stopped => (-32603, "Internal error".to_owned(), Value::Null),
        };
        let data = (!data.is_null()).then(|| Raw::of(&data).ok()).flatten();
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
    use portolan_model::Timestamp;

    use super::*;

    fn stream(session: u8, nonce: u8) -> StreamKey {
        StreamKey {
            session: SessionKey([session; 16]),
            nonce: Nonce([nonce; 8]),
        }
    }

    #[test]
    fn s7_a_payload_opens_only_in_its_own_stream() {
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let payloads = payloads(keys, Clock::test(Timestamp::UNIX_EPOCH), true);
        let sealed = payloads.seal(stream(1, 1), Bytes::from_static(b"secret answer"));
        assert!(!sealed.windows(6).any(|part| part == b"secret"), "S6");
        assert_eq!(
            payloads.open(stream(1, 1), sealed.clone()).as_deref(),
            Some(&b"secret answer"[..])
        );
        for elsewhere in [stream(2, 1), stream(1, 2)] {
            assert_eq!(payloads.open(elsewhere, sealed.clone()), None);
        }
        assert_eq!(
            payloads.open(stream(1, 1), Bytes::from_static(b"forged")),
            None
        );
    }

    #[test]
    fn appendix_b_a_lost_call_says_what_is_not_known_and_of_which_request() {
        for (id, retryable) in [(RequestId::from(7), true), (RequestId::from("x"), false)] {
            let about = About {
                id: Some(id.clone()),
                retryable,
            };
            assert_eq!(About::read(&about.to_bytes()), about);
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
