//! The console's built files, embedded in the binary.

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// No inline script or style anywhere (S6). `data:` images are tool results shown on the try page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// Routes of the console's files: assets by name, and the page itself for every address that the console's own router knows.
pub fn router() -> Router {
    Router::new()
        .route("/", get(page))
        .route("/w/{*rest}", get(page))
        .route("/assets/{*file}", get(asset))
        .fallback(other)
}

async fn page() -> Response {
    index(StatusCode::OK)
}

async fn asset(uri: Uri) -> Response {
    match file(uri.path()) {
        // Names carry a digest of the content, so they may be kept for ever.
        Some(response) => with_cache(response, "public, max-age=31536000, immutable"),
        None => not_found(),
    }
}

/// Files beside the page (the icon), the page with 404 for a person who mistyped, JSON for everybody else (E4).
async fn other(request: Request) -> Response {
    let path = request.uri().path();
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return not_found();
    }
    if !path.contains("/.")
        && let Some(response) = file(path)
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
        index(StatusCode::NOT_FOUND)
    } else {
        not_found()
    }
}

fn index(status: StatusCode) -> Response {
    let Some(mut response) = file("/index.html") else {
        let text = "The console has not been built into this binary. Run `make run`, or `npm run build` in web/ and build again.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    *response.status_mut() = status;
    with_cache(response, "no-store")
}

fn file(path: &str) -> Option<Response> {
    let name = path.trim_start_matches('/');
    let file = Files::get(name)?;
    let kind = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let mut response = Response::new(Body::from(file.data));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Some(response)
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
