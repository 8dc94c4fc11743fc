//! The page for a person who opens the address of a server in a browser: how to connect an AI
//! client.
//!
//! It is the body of the 401 that every request without a token gets. It needs no lookup, so it is
//! the same whether the server exists or not.

use std::sync::OnceLock;

use axum::{body::Body, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method as Verb, StatusCode, header, request::Parts};
use portolan_keys::digest;
use portolan_model::resource::Site;
use portolan_net::layers::{PageKind, SecurityHeaders};
use serde_json::json;
use url::form_urlencoded::byte_serialize;

use crate::target::{Target, Transport};

const TEMPLATE: &str = include_str!("install.html");

/// Whether the request comes from a browser: a GET without a token that prefers HTML.
///
/// The comparison is with the media types that MCP clients read.
pub(crate) fn is_wanted(parts: &Parts, target: &Target<'_>) -> bool {
    let is_plain = parts.method == Verb::GET && target.transport == Transport::Mcp;
    is_plain && !parts.headers.contains_key(header::AUTHORIZATION) && prefers_html(&parts.headers)
}

/// Whether `Accept` prefers HTML (RFC 9110 §12.5.1). Wildcards do not count: browsers send them
/// too.
fn prefers_html(headers: &HeaderMap) -> bool {
    let (mut html, mut other) = (0, 0);
    for line in headers.get_all(header::ACCEPT) {
        let Ok(line) = line.to_str() else { continue };
        for item in line.split(',') {
            let mut parts = item.split(';').map(str::trim);
            let range = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(1000, thousandths);
            match range.as_str() {
                "text/html" | "application/xhtml+xml" => html = weight.max(html),
                "text/event-stream" | "application/json" => other = weight.max(other),
                _ => {}
            }
        }
    }
    html > other
}

/// Reads a quality value, 0 to 1 with at most three digits, in thousandths.
fn thousandths(text: &str) -> u32 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if whole != "0" {
        return 1000;
    }
    format!("{part:0<3}")
        .get(..3)
        .and_then(|part| part.parse().ok())
        .unwrap_or(0)
}

/// The page, with the challenge that every 401 has.
pub(crate) fn page(site: &Site, target: &Target<'_>, challenge: HeaderValue) -> Response {
    let url = site.url(&target.resource());
    let name = target.server.or(target.tenant).unwrap_or("portolan");
    let cursor = STANDARD.encode(json!({ "url": url }).to_string());
    let vscode = json!({ "name": name, "type": "http", "url": url }).to_string();
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let cursor = format!(
        "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
        encoded(name),
        encoded(&cursor)
    );
    let vscode = format!("vscode:mcp/install?{}", encoded(&vscode));
    let mut html = TEMPLATE.to_owned();
    for (place, text) in [
        ("{{url}}", url.as_str()),
        ("{{name}}", name),
        ("{{cursor}}", &cursor),
        ("{{vscode}}", &vscode),
    ] {
        html = html.replace(place, &escaped(text));
    }
    let mut answer = Response::new(Body::from(html));
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = answer.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, fixed("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, fixed("no-store"));
    headers.insert(header::VARY, fixed("Accept, Authorization"));
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    SecurityHeaders::new(PageKind::Account, false)
        .with_csp(policy())
        .apply(headers);
    answer
}

/// The content security policy: no loads, no scripts, and the digest of the page's own style.
fn policy() -> &'static HeaderValue {
    static POLICY: OnceLock<HeaderValue> = OnceLock::new();
    POLICY.get_or_init(|| {
        let style = TEMPLATE
            .split_once("<style>")
            .and_then(|(_, rest)| rest.split_once("</style>"))
            .map_or("", |(style, _)| style);
        let style = STANDARD.encode(digest(style.as_bytes()).as_bytes());
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
    })
}

/// Escapes a text for HTML text and attribute values.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_names_html_before_what_clients_read_gets_a_page() {
        for (accept, wants) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
                true,
            ),
            ("text/html", true),
            ("text/html;q=0.5, application/json;q=0.4", true),
            ("application/json, text/event-stream", false),
            ("text/event-stream", false),
            ("text/html, application/json", false),
            ("text/html;q=0.5, application/json;q=0.75", false),
            ("text/html;q=0", false),
            ("*/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(prefers_html(&headers), wants, "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn nothing_of_an_address_becomes_markup() {
        assert_eq!(
            escaped(r#"<a b="c" d='e'>&"#),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;"
        );
    }
}
