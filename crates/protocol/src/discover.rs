//! `server/discover`: the optional first request of a modern client (MCP-L-17, MCP-L-18).

use crate::capability::ServerCapabilities;
use crate::result::{CacheHint, Identity, ResultObject};
use crate::revision::{Revision, SERVED};

/// The result of `server/discover` for a request that speaks `revision`. The identity travels in
/// `_meta`, not in the body.
pub fn result(
    revision: Revision,
    identity: &Identity,
    capabilities: &ServerCapabilities,
    instructions: Option<&str>,
    hint: CacheHint,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut result = ResultObject::begin(&mut out, revision);
    result
        .object
        .value("supportedVersions", &SERVED.map(Revision::as_str));
    result.object.key("capabilities");
    capabilities.write(revision, result.object.out());
    if let Some(instructions) = instructions {
        result.object.value("instructions", instructions);
    }
    result.cache(hint);
    result.end(identity, None);
    out
}
