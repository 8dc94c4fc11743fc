//! Envelope of a stream in the store: the key of its request, its tenant, its trace context, and
//! the facts from `mcp`.

use bytes::{BufMut, Bytes, BytesMut};
use portolan_model::id::TenantId;
use portolan_traces::Context;
use uuid::Uuid;

/// Bit in the length of the key: a trace context follows.
const TRACED: u32 = 1 << 31;
/// Bytes of a tenant's id.
const TENANT: usize = 16;

/// Contents of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Envelope {
    /// Key of the request among the running ones.
    pub(super) rpc: String,
    /// Tenant of the stream. A node that takes it over seals the final response with this tenant's
    /// key.
    pub(super) tenant: TenantId,
    /// The span of the call, if it is recorded.
    pub(super) trace: Option<Context>,
    /// Facts about the request, written by `mcp`.
    pub(super) about: Bytes,
}

/// Encodes an envelope for the store.
pub(super) fn seal(rpc: &str, tenant: TenantId, trace: Option<&Context>, about: &Bytes) -> Bytes {
    let length = 4 + rpc.len() + TENANT + Context::BYTES + about.len();
    let mut out = BytesMut::with_capacity(length);
    let length = u32::try_from(rpc.len()).unwrap_or(0);
    out.put_u32(length | if trace.is_some() { TRACED } else { 0 });
    out.put_slice(rpc.as_bytes());
    out.put_slice(tenant.uuid().as_bytes());
    if let Some(trace) = trace {
        out.put_slice(&trace.to_bytes());
    }
    out.put_slice(about);
    out.freeze()
}

/// Decodes an envelope. Invalid bytes give an empty key and the nil tenant.
pub(super) fn open(envelope: &Bytes) -> Envelope {
    let parts = || {
        let length = u32::from_be_bytes(envelope.get(..4)?.try_into().ok()?);
        let mut end = 4 + usize::try_from(length & !TRACED).ok()?;
        let rpc = std::str::from_utf8(envelope.get(4..end)?).ok()?.to_owned();
        let tenant = envelope.get(end..end + TENANT)?.try_into().ok()?;
        end += TENANT;
        let mut trace = None;
        if length & TRACED != 0 {
            trace = Context::from_bytes(envelope.get(end..end + Context::BYTES)?.try_into().ok()?);
            end += Context::BYTES;
        }
        Some(Envelope {
            rpc,
            tenant: TenantId::from_uuid(Uuid::from_bytes(tenant)),
            trace,
            about: envelope.slice(end..),
        })
    };
    parts().unwrap_or_else(|| Envelope {
        rpc: String::new(),
        tenant: TenantId::from_uuid(Uuid::nil()),
        trace: None,
        about: Bytes::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adopter_finds_the_requests_key_its_tenant_its_trace_and_what_is_known_of_it() {
        let trace = Context::read(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            None,
        );
        assert!(trace.is_some());
        for trace in [None, trace] {
            let whole = Envelope {
                rpc: "s:abc".into(),
                tenant: TenantId::generate(),
                trace,
                about: Bytes::from_static(b"about"),
            };
            let sealed = seal(&whole.rpc, whole.tenant, whole.trace.as_ref(), &whole.about);
            assert_eq!(open(&sealed), whole);
            for end in 0..sealed.len() - whole.about.len() {
                let cut = open(&sealed.slice(..end));
                assert!(cut.rpc.is_empty() && cut.about.is_empty(), "{end}");
            }
        }
    }
}
