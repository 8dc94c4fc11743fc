//! The one line a request, and its metrics.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use portolan_net::client_ip;
use portolan_net::layers::{Observe, RequestLine};

use crate::instruments::{HTTP_DURATION, HTTP_REQUESTS};

/// Target of the line, for filters and for the formatter.
pub(crate) const TARGET: &str = "portolan::request";

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER"];
const OUTCOMES: [&str; 6] = ["gone", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Writes one line and moves two instruments for each answered request. Neither knows paths,
/// queries, headers or bodies: the line carries the template of the route, the block of the
/// client's address, and what handlers noted on the arrival.
#[derive(Default)]
pub struct RequestLog {
    /// Instruments of each route, made once: a look-up in the recorder costs more than the rest of
    /// the line.
    routes: RwLock<HashMap<Box<str>, Arc<Instruments>, foldhash::fast::RandomState>>,
}

struct Instruments {
    route: metrics::SharedString,
    duration: Histogram,
    requests: [[OnceLock<Counter>; OUTCOMES.len()]; METHODS.len()],
}

impl std::fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestLog").finish_non_exhaustive()
    }
}

impl RequestLog {
    /// Start the metrics before the first request, or its instruments go nowhere.
    pub fn new() -> Self {
        Self::default()
    }

    fn instruments(&self, route: &str) -> Arc<Instruments> {
        if let Some(known) = self
            .routes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(route)
        {
            return Arc::clone(known);
        }
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let made = routes
            .entry(route.into())
            .or_insert_with(|| Arc::new(Instruments::new(route)));
        Arc::clone(made)
    }
}

impl Instruments {
    fn new(route: &str) -> Self {
        let route = metrics::SharedString::from(route.to_owned());
        Self {
            duration: metrics::histogram!(HTTP_DURATION, "route" => route.clone()),
            requests: Default::default(),
            route,
        }
    }

    fn count(&self, method: usize, outcome: usize) {
        self.requests[method][outcome]
            .get_or_init(|| {
                metrics::counter!(HTTP_REQUESTS, "route" => self.route.clone(), "method" => METHODS[method],
                    "outcome" => OUTCOMES[outcome])
            })
            .increment(1);
    }
}

impl Observe for RequestLog {
    fn answered(&self, line: &RequestLine<'_>) {
        let seconds = line.duration.as_secs_f64();
        let instruments = self.instruments(line.route);
        instruments.count(method_index(line.method), outcome_index(line.status));
        instruments.duration.record(seconds);
        tracing::info!(
            target: TARGET,
            method = METHODS[method_index(line.method)],
            route = line.route,
            status = line.status.map(|status| status.as_u16()),
            duration_ms = (seconds * 1e6).round() / 1e3,
            request.id = line.arrival.request_id(),
            client.block = %client_ip::block(line.arrival.client_ip()),
            tenant.id = line.arrival.tenant(),
            mcp.method = line.arrival.mcp_method(),
            "{}", if line.status.is_some() { "answered" } else { "client went away" }
        );
    }
}

fn method_index(method: &Method) -> usize {
    METHODS
        .iter()
        .position(|known| *known == method.as_str())
        .unwrap_or(METHODS.len() - 1)
}

fn outcome_index(status: Option<StatusCode>) -> usize {
    status.map_or(0, |status| {
        usize::from(status.as_u16() / 100).min(OUTCOMES.len() - 1)
    })
}
