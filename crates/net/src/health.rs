//! What the second listener tells: alive, ready, and the metrics. Never on the public origin.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header;

use crate::resolve::BoxFuture;

/// A check that takes longer has failed.
const CHECK_WITHIN: Duration = Duration::from_secs(2);

/// A question to something that we cannot work without; the text says what is wrong, without secrets.
pub type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The state of a node as its surroundings see it. Cloning shares it.
#[derive(Clone)]
pub struct Health {
    inner: Arc<Inner>,
}

struct Inner {
    ready: AtomicBool,
    checks: Vec<(&'static str, Check)>,
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("ready", &self.inner.ready)
            .finish_non_exhaustive()
    }
}

impl Health {
    /// Not ready yet. `metrics` renders the Prometheus text.
    pub fn new(
        checks: Vec<(&'static str, Check)>,
        metrics: Arc<dyn Fn() -> String + Send + Sync>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                ready: AtomicBool::new(false),
                checks,
                metrics,
            }),
        }
    }

    /// Says whether new work may be sent here: on at the end of the start, off at the beginning of a stop.
    pub fn set_ready(&self, ready: bool) {
        self.inner.ready.store(ready, Ordering::Release);
    }

    /// `/healthz`: 200 while the process can answer at all. `/readyz`: 200, or 503 with what is missing.
    /// `/metrics`: Prometheus text.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .with_state(self.clone())
    }
}

async fn readiness(State(health): State<Health>) -> Response {
    if !health.inner.ready.load(Ordering::Acquire) {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: starting or stopping\n",
        )
            .into_response();
    }
    let mut faults = String::new();
    for (name, check) in &health.inner.checks {
        let fault = match tokio::time::timeout(CHECK_WITHIN, check()).await {
            Ok(Ok(())) => continue,
            Ok(Err(fault)) => fault,
            Err(_elapsed) => format!("no answer within {} s", CHECK_WITHIN.as_secs()),
        };
        tracing::warn!(check = name, fault, "not ready");
        faults.extend(["not ready: ", name, ": ", &fault, "\n"]);
    }
    if faults.is_empty() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, faults).into_response()
    }
}

async fn metrics(State(health): State<Health>) -> Response {
    let text = (health.inner.metrics)();
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        text,
    )
        .into_response()
}
