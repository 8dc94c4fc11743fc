//! Names, buckets and rendering of metrics.
//!
//! Labels take bounded values only: route templates, methods, eras, kinds, outcomes. Never a
//! tenant, tool, client or session; those are for logs (AUTH-X3). Names end in their unit; `_total`
//! are counters.

use std::time::Duration;

use metrics::SetRecorderError;
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio_util::sync::CancellationToken;

use crate::described::describe;

/// The one series that names tenants: the largest.
const LARGEST: &str = "tenant_log_bytes{";

pub(crate) const HTTP_REQUESTS: &str = "http_requests_total";
pub(crate) const HTTP_DURATION: &str = "http_request_duration_seconds";

/// From a cached list (well under a millisecond) to an upstream at its deadline.
const SECONDS: [f64; 16] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    15.0, 60.0,
];
const BYTES: [f64; 8] = [
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    10_485_760.0,
];

/// Samples of histograms wait in memory until they are folded into buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Why metrics could not be started.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The buckets were refused.
    #[error("the metrics recorder could not be built")]
    Build(#[source] BuildError),
    /// There is a recorder already in this process.
    #[error("metrics were started twice")]
    Twice(#[source] SetRecorderError<PrometheusRecorder>),
}

/// The metrics of this process.
#[derive(Debug, Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Starts recording, for the whole process. No listener: the second listener renders.
    ///
    /// # Errors
    /// See [`MetricsError`].
    pub fn start() -> Result<Self, MetricsError> {
        let recorder = recorder().map_err(MetricsError::Build)?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(MetricsError::Twice)?;
        describe();
        Ok(Self { handle })
    }

    /// The Prometheus text.
    pub fn render(&self) -> String {
        without_zeros(self.handle.render())
    }

    /// Folds waiting samples into buckets every few seconds, so that memory stays flat without a
    /// scraper. Run it as a tracked task.
    pub async fn upkeep(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(UPKEEP_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => self.handle.run_upkeep(),
            }
        }
    }
}

/// Removes series of tenants that are no longer among the largest (AUTH-X3). The recorder never
/// removes a series, so such a series is set to zero and left out of the text.
fn without_zeros(text: String) -> String {
    if !text.contains(LARGEST) {
        return text;
    }
    text.split_inclusive('\n')
        .filter(|line| !(line.starts_with(LARGEST) && line.ends_with(" 0\n")))
        .collect()
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    Ok(PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_bytes".to_owned()), &BYTES)?
        .build_recorder())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestLog;
    use crate::logs::tests::logged;
    use crate::{LogConfig, LogFormat};
    use axum::Router;
    use axum::body::Body;
    use axum::routing::{get, post};
    use http::Request;
    use portolan_net::client_ip::TrustedProxies;
    use portolan_net::layers::{AllowedHosts, Arrival, Front};
    use std::sync::Arc;
    use tower::ServiceExt;

    fn app() -> Router {
        Router::new()
            .route(
                "/t/{tenant}/mcp",
                post(|arrival: Arrival| async move {
                    arrival.note_tenant("ten_7");
                    arrival.note_mcp_method("tools/call");
                    "planted-answer"
                }),
            )
            .route(
                "/boom",
                get(|| async { assert!(std::hint::black_box(false), "planted-panic") }),
            )
            .layer(Front::new(
                AllowedHosts::new(["portolan.example"]),
                TrustedProxies::default(),
                Some(Arc::new(RequestLog::new())),
            ))
    }

    fn ask(requests: &[(&str, &str)]) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            for (method, target) in requests {
                let request = Request::builder()
                    .method(*method)
                    .uri(*target)
                    .header("host", "portolan.example")
                    .header("authorization", "Bearer planted-token")
                    .header("cookie", "session=planted-cookie")
                    .header("x-request-id", "planted-id")
                    .body(Body::from("planted-body"))
                    .unwrap();
                app().oneshot(request).await.unwrap();
            }
        });
    }

    #[test]
    fn the_line_of_a_request_has_its_facts_and_no_secret() {
        // AUTH-X1
        let config = LogConfig {
            filter: "info".to_owned(),
            format: LogFormat::Json,
        };
        let text = logged(&config, || {
            ask(&[
                ("POST", "/t/acme/mcp?code=planted-query"),
                ("GET", "/nowhere/planted-path"),
            ]);
        });
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        let line = &lines[0];
        assert_eq!(
            (
                &line["method"],
                &line["route"],
                &line["status"],
                &line["tenant.id"],
                &line["mcp.method"]
            ),
            (
                &"POST".into(),
                &"/t/{tenant}/mcp".into(),
                &200.into(),
                &"ten_7".into(),
                &"tools/call".into()
            )
        );
        assert_eq!(line["client.block"], "0.0.0.0/24");
        assert_eq!(line["request.id"].as_str().unwrap().len(), 24);
        assert!(line["duration_ms"].is_number());
        assert_eq!(
            (&lines[1]["route"], &lines[1]["status"]),
            (&"unmatched".into(), &404.into())
        );
        assert!(!text.contains("planted"), "{text}");
    }

    #[test]
    fn a_panic_is_counted_as_a_failure_and_labels_are_bounded() {
        // AUTH-X3
        let recorder = recorder().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            ask(&[
                ("POST", "/t/acme/mcp"),
                ("POST", "/t/other/mcp"),
                ("GET", "/boom"),
                ("BREW", "/boom"),
                ("GET", "/x/1"),
                ("GET", "/x/2"),
            ]);
        });
        let text = handle.render();
        for line in [
            r#"http_requests_total{route="/t/{tenant}/mcp",method="POST",outcome="2xx"} 2"#,
            r#"http_requests_total{route="/boom",method="GET",outcome="5xx"} 1"#,
            r#"http_requests_total{route="/boom",method="OTHER",outcome="4xx"} 1"#,
            r#"http_requests_total{route="unmatched",method="GET",outcome="4xx"} 2"#,
            r#"http_request_duration_seconds_count{route="/t/{tenant}/mcp"} 2"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.contains(r#"le="0.0025""#), "{text}");
        assert!(!text.contains("acme"), "{text}");
    }

    #[test]
    fn only_tenants_that_hold_something_are_named() {
        let recorder = recorder().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            metrics::gauge!("tenant_log_bytes", "tenant" => "ten_large").set(10.0);
            metrics::gauge!("tenant_log_bytes", "tenant" => "ten_small").set(0.0);
            metrics::gauge!("mcp_outage_mode_streams").set(0.0);
        });
        let text = without_zeros(handle.render());
        assert!(
            text.contains("tenant_log_bytes{tenant=\"ten_large\"} 10\n"),
            "{text}"
        );
        assert!(!text.contains("ten_small"), "{text}");
        assert!(text.contains("mcp_outage_mode_streams 0\n"), "{text}");
    }

    #[test]
    fn what_alarms_ask_to_stay_zero_tells_zero_from_the_start() {
        // STREAM-20: the alarms of "any".
        let recorder = recorder().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, describe);
        let text = handle.render();
        for line in [
            "mcp_stream_seal_failures_total 0",
            "mcp_ring_overflow_total 0",
            "drain_calls_cut_total 0",
            "mcp_call_log_dropped_total 0",
            "mcp_outage_mode_streams 0",
            "mcp_antientropy_repairs_total 0",
            "redis_breaker_state 0",
        ] {
            assert!(
                text.contains(&format!("\n{line}\n")),
                "{line} is not in\n{text}"
            );
        }
        assert!(
            text.contains("# HELP redis_breaker_state 0 while"),
            "{text}"
        );
    }
}
