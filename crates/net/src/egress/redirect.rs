//! Redirects: read by us, followed within the origin only (MCP-AB-19).

use std::fmt;

use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use url::Url;

/// Longest chain that is followed.
const MOST_HOPS: u8 = 5;

/// Why a redirect is not followed. The text may be shown to a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectFault {
    /// It leads to another scheme, host or port.
    OtherOrigin,
    /// The chain is too long.
    TooMany,
    /// Its target is no URL.
    Unreadable,
}

impl fmt::Display for RedirectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherOrigin => {
                "it leads to another scheme, host or port; use the final address instead"
            }
            Self::TooMany => "the chain of redirects is too long",
            Self::Unreadable => "its target is not a URL",
        })
    }
}

pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The next URL. `None` without a `Location`, which makes the answer an ordinary one.
pub(super) fn next_hop(
    from: &Url,
    headers: &HeaderMap,
    hops: u8,
) -> Option<Result<Url, RedirectFault>> {
    let location = headers.get(header::LOCATION)?;
    let followed = || {
        if hops > MOST_HOPS {
            return Err(RedirectFault::TooMany);
        }
        // Browsers read the bytes as UTF-8; servers send raw non-ASCII letters.
        let text = std::str::from_utf8(location.as_bytes());
        let to = text.ok().and_then(|text| from.join(text).ok());
        let to = to.ok_or(RedirectFault::Unreadable)?;
        // Tuple origins only: an opaque origin (data:, file:) equals nothing.
        let same = from.origin().is_tuple() && from.origin() == to.origin();
        if same {
            Ok(to)
        } else {
            Err(RedirectFault::OtherOrigin)
        }
    };
    Some(followed())
}

/// Rule of browsers (Fetch standard, HTTP-redirect fetch step 12): 303 turns everything but `HEAD`
/// into `GET`, 301 and 302 turn `POST` into `GET`, 307 and 308 change nothing.
pub(super) fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => !matches!(*method, Method::GET | Method::HEAD),
        _ => false,
    }
}
