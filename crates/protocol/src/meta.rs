//! `_meta`: key grammar (MCP-J-20…MCP-J-24) and the metadata of a request (MCP-L-14).

use crate::capability::ClientCapabilities;
use crate::implementation::Implementation;
use crate::jsonrpc::{Kind, Misfit, Params, ProgressToken, Raw};
use crate::logging::Level;

pub use crate::meta_key::{
    CALL_ID, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, RELATED_TASK,
    RESERVED_PREFIX, SERVER_INFO, SUBSCRIPTION_ID, is_reserved_key, is_valid_key,
};

/// The metadata of a request, of any era. Legacy requests have only token and trace.
#[derive(Clone, Debug, Default)]
pub struct RequestMeta {
    /// Progress is wanted under this token (MCP-PP-1).
    pub progress_token: Option<ProgressToken>,
    /// W3C trace context, if well formed (MCP-J-23, MCP-J-24).
    pub traceparent: Option<String>,
    /// W3C trace state, only beside a `traceparent`.
    pub tracestate: Option<String>,
    /// W3C baggage.
    pub baggage: Option<String>,
    /// Name card of the client; for logs only (MCP-L-20).
    pub client_info: Option<Implementation>,
    /// Capabilities of the client for this request. Empty in legacy requests, where the session
    /// holds them.
    pub client_capabilities: ClientCapabilities,
    /// Log messages from this level on are wanted; absent = none (MCP-LG-5). Modern only.
    pub log_level: Option<Level>,
}

impl RequestMeta {
    /// Metadata of a legacy request.
    pub fn legacy(params: &Params) -> Result<Self, Misfit> {
        params
            .meta()
            .map_or_else(|| Ok(Self::default()), Self::common)
    }

    /// Only the token of a request, of any era.
    pub fn progress_token(params: &Params) -> Result<Option<ProgressToken>, Misfit> {
        match params.meta() {
            Some(meta) if meta.kind() == Kind::Object => token(meta.get(PROGRESS_TOKEN)),
            Some(_) => Err(no_object()),
            None => Ok(None),
        }
    }

    /// Metadata of a modern request (MCP-E-7 step 5, MCP-L-14). The misfit is HTTP 400 there: use
    /// `ErrorKind::InvalidMeta`.
    pub fn modern(meta: &Raw) -> Result<Self, Misfit> {
        let path = |key: &str| format!("params._meta[\"{key}\"]");
        let misfit = |key: &str, expected: &str| Misfit::new(path(key), expected);
        let mut this = Self::common(meta)?;
        let [capabilities, info, level] = meta.pick([CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL]);
        this.client_capabilities = match capabilities {
            Some(raw) if raw.kind() == Kind::Object => ClientCapabilities::read(&raw),
            Some(_) => return Err(misfit(CLIENT_CAPABILITIES, "expected an object")),
            None => return Err(misfit(CLIENT_CAPABILITIES, "required")),
        };
        if let Some(raw) = info {
            this.client_info = Some(raw.read_at(|| path(CLIENT_INFO))?);
        }
        if let Some(raw) = level {
            let level = raw.text().and_then(|text| text.parse().ok());
            this.log_level = Some(level.ok_or_else(|| misfit(LOG_LEVEL, "expected a log level"))?);
        }
        Ok(this)
    }

    fn common(meta: &Raw) -> Result<Self, Misfit> {
        if meta.kind() != Kind::Object {
            return Err(no_object());
        }
        let [wanted, traceparent, tracestate, baggage] =
            meta.pick([PROGRESS_TOKEN, "traceparent", "tracestate", "baggage"]);
        let progress_token = token(wanted)?;
        let text = |member: Option<Raw>| member.and_then(|raw| raw.string());
        let traceparent = text(traceparent).filter(|value| is_traceparent(value));
        let tracestate = text(tracestate).filter(|value| {
            traceparent.is_some()
                && value.len() <= 512
                && value.bytes().all(|b| (0x20..0x7f).contains(&b))
        });
        let baggage = text(baggage).filter(|value| {
            value.len() <= 8192 && value.bytes().all(|b| (0x20..0x7f).contains(&b))
        });
        Ok(Self {
            progress_token,
            traceparent,
            tracestate,
            baggage,
            ..Self::default()
        })
    }
}

const PROGRESS_TOKEN: &str = "progressToken";

fn token(member: Option<Raw>) -> Result<Option<ProgressToken>, Misfit> {
    let Some(raw) = member else { return Ok(None) };
    let token = ProgressToken::from_raw(&raw);
    token.map(Some).ok_or_else(|| {
        Misfit::new(
            "params._meta.progressToken",
            "expected a string or an integer",
        )
    })
}

fn no_object() -> Misfit {
    Misfit::new("params._meta", "expected an object")
}

/// W3C Trace Context §3.2: `00-<32 hex>-<16 hex>-<2 hex>`, lower case, neither id all zero.
fn is_traceparent(value: &str) -> bool {
    let hex = |part: &str, len: usize| {
        part.len() == len
            && part
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let nonzero = |part: &str| part.bytes().any(|byte| byte != b'0');
    let parts: Vec<&str> = value.split('-').collect();
    match parts.as_slice() {
        [version, trace, span, flags, rest @ ..] => {
            hex(version, 2)
                && *version != "ff"
                && (rest.is_empty() || *version != "00")
                && hex(trace, 32)
                && nonzero(trace)
                && hex(span, 16)
                && nonzero(span)
                && hex(flags, 2)
        }
        _ => false,
    }
}
