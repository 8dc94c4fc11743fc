//! The console's built files, embedded in the binary.

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use portolan_net::layers::accepted;
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// No inline script or style anywhere (AUTH-S6). `data:` images are tool results shown on the try
/// page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// Routes of the console's files: assets by name, and the page itself for every address that the
/// console's own router knows.
pub fn router() -> Router {
    Router::new()
        .route("/", get(page))
        .route("/w/{*rest}", get(page))
        .route("/account/access-tokens", get(page))
        .route("/account/command", get(page))
        .route("/docs", get(page))
        .route("/playground/callback", get(page))
        .route("/docs/{*rest}", get(page))
        .route("/assets/{*file}", get(asset))
        .fallback(other)
}

async fn page(asked: HeaderMap) -> Response {
    index(StatusCode::OK, &asked)
}

async fn asset(uri: Uri, asked: HeaderMap) -> Response {
    match file(uri.path(), &asked) {
        // Names carry a digest of the content, so they may be kept for ever.
        Some(response) => with_cache(response, "public, max-age=31536000, immutable"),
        None => not_found(),
    }
}

/// Serves files beside the page (the icon). Other paths get the page with 404 for browsers, and
/// JSON for other clients (AUTH-E4).
async fn other(request: Request) -> Response {
    let path = request.uri().path();
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return not_found();
    }
    if !path.contains("/.")
        && let Some(response) = file(path, request.headers())
    {
        return with_cache(response, "public, max-age=3600");
    }
    // A node that is no MCP node has no endpoints, and no page in their place.
    let machine = portolan_mcp::is_endpoint(path)
        || ["/api/", "/.well-known/", "/oauth/", "/t/"]
            .iter()
            .any(|prefix| path.starts_with(prefix));
    let wants_html = request
        .headers()
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    if wants_html && !machine {
        index(StatusCode::NOT_FOUND, request.headers())
    } else {
        not_found()
    }
}

fn index(status: StatusCode, asked: &HeaderMap) -> Response {
    let Some(mut response) = file("/index.html", asked) else {
        let text = "The console has not been built into this binary. Run `make run`, or `npm run build` in web/ and build again.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    // The page itself is never kept, so there is nothing to compare it with.
    response.headers_mut().remove(header::ETAG);
    *response.status_mut() = status;
    with_cache(response, "no-store")
}

/// Codings in which the build wrote copies (`web/scripts/compress.mjs`), the smallest first, and
/// how those end.
const CODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// A file as it is accepted: a compressed copy where the build made one. 304 where the browser has
/// it (RFC 9110 §13.1.2).
fn file(path: &str, asked: &HeaderMap) -> Option<Response> {
    let name = path.trim_start_matches('/');
    if CODINGS.iter().any(|(_, ending)| name.ends_with(ending)) {
        return None;
    }
    let plain = Files::get(name)?;
    let offered = CODINGS.map(|(coding, _)| coding);
    let packed = accepted(asked, &offered).and_then(|coding| {
        let (_, ending) = CODINGS.iter().find(|(own, _)| *own == coding)?;
        Some((coding, Files::get(&format!("{name}{ending}"))?))
    });
    let (coding, file) = match packed {
        Some((coding, file)) => (Some(coding), file),
        None => (None, plain),
    };
    let digest = file.metadata.sha256_hash();
    let digest = u64::from_be_bytes(*digest.first_chunk()?);
    let tag = format!("\"{digest:016x}\"");
    let is_known = asked
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == tag || known.trim() == "*");
    let mut response = Response::new(if is_known {
        Body::empty()
    } else {
        Body::from(file.data)
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::try_from(tag).ok()?);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    Some(response)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn with_cache(mut response: Response, cache: &'static str) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        ),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn not_found() -> Response {
    let body = r#"{"error":"not_found"}"#;
    (
        StatusCode::NOT_FOUND,
        [
            (header::CONTENT_TYPE, "application/json"),
            (header::CACHE_CONTROL, "no-store"),
        ],
        body,
    )
        .into_response()
}
