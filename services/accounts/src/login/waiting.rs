//! Refusals that state how long to wait.

use axum::response::Response;
use http::header;
use portolan_site::throttle::TooEarly;

/// The wait as a sentence, rounded up to whole seconds, minutes or hours.
pub(crate) fn wait_sentence(early: TooEarly) -> String {
    let seconds = early.seconds();
    let wait = match seconds {
        ..=90 => format!("{seconds} seconds"),
        91..=5400 => format!("{} minutes", (seconds + 59) / 60),
        _ => format!("{} hours", (seconds + 3599) / 3600),
    };
    format!("Too many attempts. Wait {wait}, then try again.")
}

/// Adds the `Retry-After` header.
pub(crate) fn with_retry_after(mut response: Response, early: TooEarly) -> Response {
    if let Ok(value) = early.seconds().to_string().parse() {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}
