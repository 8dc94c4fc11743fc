//! Content of the second listener: liveness, readiness and metrics. Never on the public origin.
//!
//! Readiness is answered from memory. A probe that waits for a hanging database would time out, and
//! take a node out of service that could serve from memory (STREAM-17.4).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::join_all;
use http::StatusCode;
use http::header;

use crate::layers::{PageKind, SecurityHeaders};
use crate::resolve::BoxFuture;

/// A check that takes longer has failed.
const CHECK_WITHIN: Duration = Duration::from_secs(2);

/// Check of a dependency. The error text describes the fault, without secrets.
pub type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Something outside that a node stands on.
#[derive(Clone)]
pub struct Dependency {
    /// As it is called in answers and labels: `database`.
    pub name: &'static str,
    /// True if the node is not ready without the dependency. Otherwise its state is only reported.
    pub needed: bool,
    /// Function that checks it.
    pub check: Check,
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dependency")
            .field("name", &self.name)
            .field("needed", &self.needed)
            .finish_non_exhaustive()
    }
}

/// The state of a node as its surroundings see it. Cloning shares it.
#[derive(Clone)]
pub struct Health {
    inner: Arc<HealthState>,
}

struct HealthState {
    ready: AtomicBool,
    watched: Mutex<Vec<Watched>>,
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

struct Watched {
    dependency: Dependency,
    /// Last result; `None` before the first check.
    said: Option<Result<(), String>>,
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
    pub fn new(metrics: Arc<dyn Fn() -> String + Send + Sync>) -> Self {
        Self {
            inner: Arc::new(HealthState {
                ready: AtomicBool::new(false),
                watched: Mutex::default(),
                metrics,
            }),
        }
    }

    /// Adds something that the node stands on. See [`Health::look`].
    pub fn stands_on(&self, dependency: Dependency) {
        self.watched().push(Watched {
            dependency,
            said: None,
        });
    }

    /// Says whether new work may be sent here: on at the end of the start, off at the beginning of
    /// a stop.
    pub fn set_ready(&self, ready: bool) {
        self.inner.ready.store(ready, Ordering::Release);
    }

    /// Checks all dependencies at once, for two seconds at most, and stores the results. To be
    /// called before the node is ready, and then every few seconds. Returns each dependency, and
    /// whether it is available.
    pub async fn look(&self) -> Vec<(&'static str, bool)> {
        let dependencies: Vec<_> = self
            .watched()
            .iter()
            .map(|watched| watched.dependency.clone())
            .collect();
        let said = join_all(dependencies.iter().map(|dependency| async {
            match tokio::time::timeout(CHECK_WITHIN, (dependency.check)()).await {
                Ok(said) => said,
                Err(_elapsed) => Err(format!("no answer within {} s", CHECK_WITHIN.as_secs())),
            }
        }))
        .await;
        let mut states = Vec::with_capacity(said.len());
        for (watched, said) in self.watched().iter_mut().zip(said) {
            let (dependency, was_there) = (
                watched.dependency.name,
                !matches!(watched.said, Some(Err(_))),
            );
            match &said {
                Err(fault) if was_there => tracing::warn!(dependency, fault, "away"),
                Ok(()) if !was_there => tracing::info!(dependency, "back"),
                _ => {}
            }
            states.push((dependency, said.is_ok()));
            watched.said = Some(said);
        }
        states
    }

    /// `/healthz`: 200 while the process can answer at all. `/readyz`: 200, or 503 and why; then
    /// the state of what the node stands on, a line each. `/metrics`: Prometheus text.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .layer(SecurityHeaders::new(PageKind::Machine, false).layer())
            .with_state(self.clone())
    }

    /// A thread that panicked while it held the lock left whole entries.
    fn watched(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.inner
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn readiness(State(health): State<Health>) -> Response {
    let mut is_ready = health.inner.ready.load(Ordering::Acquire);
    let mut text = String::new();
    if !is_ready {
        text.push_str("not ready: starting or stopping\n");
    }
    for watched in health.watched().iter() {
        let Dependency { name, needed, .. } = watched.dependency;
        let state = match &watched.said {
            Some(Ok(())) => "ok",
            Some(Err(fault)) => fault,
            None => "not asked yet",
        };
        if needed && !matches!(watched.said, Some(Ok(()))) {
            is_ready = false;
            text.push_str("not ready: ");
        }
        text.extend([name, ": ", state, "\n"]);
    }
    if is_ready {
        format!("ready\n{text}").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
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
