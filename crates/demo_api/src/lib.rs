//! Harbour: the small API that a newcomer publishes first.
//!
//! A harbour master's desk in memory: ports, tides, berths, ships and bookings. It is a real HTTP API with a real OpenAPI
//! document and exists to be called: every kind of parameter, a JSON body, an empty answer, an image, plain text, something
//! slow and something that fails. It knows nothing of the rest of the product.

mod bookings;
mod calendar;
mod chart;
mod error;
mod harbours;
mod mcp;
mod ports;
mod ships;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use self::bookings::Ledger;
use self::error::Problem;

/// The key that every operation wants in the header `X-Api-Key`. It guards invented data and is documented on purpose.
pub const API_KEY: &str = "harbour-demo-key";

/// Name of the header that carries [`API_KEY`].
pub const API_KEY_HEADER: &str = "X-Api-Key";

/// The OpenAPI 3.1 document, with `http://127.0.0.1:8090` as its server. [`document`] names another.
pub const OPENAPI: &str = include_str!("openapi.json");

const DOCUMENTED_SERVER: &str = "http://127.0.0.1:8090";

/// State that the handlers share.
#[derive(Clone, Default)]
struct Desk {
    ledger: Arc<Mutex<Ledger>>,
}

/// The document for an API that is served at `base_url` (scheme, host and port, no slash at the end).
pub fn document(base_url: &str) -> String {
    OPENAPI.replace(DOCUMENTED_SERVER, base_url)
}

/// The API, with its own fresh data.
pub fn router() -> Router {
    let guarded = Router::new()
        .route("/ports", get(ports::list))
        .route("/ports/{port_id}", get(ports::one))
        .route("/ports/{port_id}/tides", get(ports::tides))
        .route("/ports/{port_id}/berths", get(ports::berths))
        .route("/ports/{port_id}/chart", get(ports::chart))
        .route("/ships", get(ships::search))
        .route("/ships/{imo}", get(ships::one))
        .route("/bookings", get(bookings::list).post(bookings::create))
        .route(
            "/bookings/{booking_id}",
            get(bookings::one).delete(bookings::cancel),
        )
        .route("/notices", get(notices))
        .route("/pilot", get(pilot))
        .route("/failures", get(failures))
        .layer(middleware::from_fn(key_required));
    Router::new()
        .route("/", get(welcome))
        .route("/openapi.json", get(openapi))
        .route("/mcp", mcp::route())
        .merge(guarded)
        .fallback(|| async {
            Problem::not_found("There is no such path. The operations are listed in /openapi.json.")
        })
        .with_state(Desk::default())
}

async fn key_required(request: Request, next: Next) -> Response {
    match request.headers().get(API_KEY_HEADER) {
        Some(key) if key == API_KEY => next.run(request).await,
        Some(_) => Problem::unauthorized("The key in X-Api-Key is not valid.").into_response(),
        None => Problem::unauthorized("Send the demo key in the header X-Api-Key.").into_response(),
    }
}

async fn welcome() -> &'static str {
    "Harbour, the demo API. Document: /openapi.json  Key: header X-Api-Key: harbour-demo-key\n\
     As an MCP server, without a key: /mcp\n"
}

/// Served with the address that the caller used, so that an import from this URL calls back to the same place.
async fn openapi(headers: HeaderMap) -> impl IntoResponse {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let plain = host.filter(|host| {
        host.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b".:-[]".contains(&b))
    });
    let text = plain.map_or_else(
        || OPENAPI.to_owned(),
        |host| document(&format!("http://{host}")),
    );
    ([(header::CONTENT_TYPE, "application/json")], text)
}

async fn notices() -> &'static str {
    harbours::NOTICES
}

#[derive(Deserialize)]
struct Wait {
    seconds: u8,
}

/// Slow on purpose.
async fn pilot(
    Query(Wait { seconds }): Query<Wait>,
) -> Result<axum::Json<serde_json::Value>, Problem> {
    if seconds > 10 {
        return Err(Problem::invalid("seconds must be between 0 and 10."));
    }
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    Ok(axum::Json(
        serde_json::json!({ "pilot": "Maren Petersen", "boarded_after_seconds": seconds }),
    ))
}

#[derive(Deserialize)]
struct Failure {
    status: u16,
}

/// Fails on purpose.
async fn failures(State(_): State<Desk>, Query(Failure { status }): Query<Failure>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let detail = match status.as_u16() {
        404 => "No ship of that name has ever called here.",
        409 => "Two ships want the same berth.",
        429 => "Too many signals at once; the radio operator needs a minute.",
        500 => "The harbour master's typewriter is broken.",
        503 => "The harbour is closed because of fog.",
        _ => {
            return Problem::invalid("status must be one of 404, 409, 429, 500, 503.")
                .into_response();
        }
    };
    let mut answer = Problem::new(status, detail).into_response();
    if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, header::HeaderValue::from_static("60"));
    }
    answer
}
