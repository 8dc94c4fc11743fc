//! Members of client metadata (RFC 7591 §2) in a registration or a metadata document. The input is
//! JSON alone; the fuzz target `client_document` uses this module too.

use portolan_model::redirect;
use serde_json::{Map, Value};

/// Returns 1–20 acceptable URIs, without duplicates, in the order given (AUTH-C14), or the fault in
/// them.
pub(crate) fn redirect_uris(metadata: &Map<String, Value>) -> Result<Vec<String>, &'static str> {
    let uris =
        strings(metadata, "redirect_uris").ok_or("redirect_uris must be a list of strings")?;
    if uris.is_empty() || uris.len() > redirect::MAX_PER_CLIENT {
        return Err("redirect_uris must have 1 to 20 entries");
    }
    let mut out: Vec<String> = Vec::with_capacity(uris.len());
    for uri in uris {
        redirect::check(uri).map_err(describe_redirect)?;
        if !out.iter().any(|known| known == uri) {
            out.push(uri.to_owned());
        }
    }
    Ok(out)
}

/// The text for a fault of a redirect URI.
pub const fn describe_redirect(error: redirect::InvalidRedirect) -> &'static str {
    use redirect::InvalidRedirect as Fault;
    match error {
        Fault::Length => "a redirect URI is longer than 2048 bytes",
        Fault::Syntax => "a redirect URI is not an absolute URI in plain ASCII",
        Fault::Fragment => "a redirect URI has a fragment",
        Fault::UserInfo => "a redirect URI has user information",
        Fault::Wildcard => "a redirect URI has a wildcard",
        Fault::Host => {
            "a redirect URI must use https with a host name, http with a loopback host, or a private-use scheme"
        }
        Fault::Scheme => "a redirect URI uses a scheme that is not allowed",
        Fault::Undotted => {
            "a redirect URI uses a private-use scheme without a dot, use a domain name in reverse as com.example.app"
        }
    }
}

/// Longest link or software name that is stored, in bytes.
const MAX_LINK: usize = 512;

/// Members that are shown but not acted on: links, over https only, and the client's software.
pub(crate) fn about(metadata: &Map<String, Value>) -> Map<String, Value> {
    [
        "client_uri",
        "policy_uri",
        "tos_uri",
        "software_id",
        "software_version",
    ]
    .into_iter()
    .filter_map(|member| Some((member, string(metadata, member)?)))
    .filter(|(member, value)| {
        value.len() <= MAX_LINK && (!member.ends_with("_uri") || value.starts_with("https://"))
    })
    .map(|(member, value)| (member.to_owned(), value.into()))
    .collect()
}

/// A member that is a text, and not an empty one.
pub(crate) fn string<'a>(metadata: &'a Map<String, Value>, member: &str) -> Option<&'a str> {
    metadata
        .get(member)?
        .as_str()
        .filter(|value| !value.is_empty())
}

/// A member that is a list of texts.
pub(crate) fn strings<'a>(metadata: &'a Map<String, Value>, member: &str) -> Option<Vec<&'a str>> {
    metadata
        .get(member)?
        .as_array()?
        .iter()
        .map(Value::as_str)
        .collect()
}
