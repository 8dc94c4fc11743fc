//! Measurements of the program, in Prometheus text on a listener of its own.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use portolan_net::{
    health::Health,
    listen::{self, BindError, ListenLimits, Shutdown},
};
use tokio_util::sync::CancellationToken;

use crate::answers::AnswerBody;

/// Upper bounds of the buckets of durations, in milliseconds.
const BUCKETS: [u32; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30_000];
/// First digits of HTTP statuses.
const CLASSES: usize = 6;

/// Counts of the program. `/readyz` is 200 while a node is connected.
#[derive(Debug)]
pub(crate) struct Figures {
    health: Health,
    /// Connected and missing nodes: MCP nodes, then nodes with the console alone.
    nodes: [[AtomicUsize; 2]; 2],
    lost: AtomicU64,
    failures: AtomicU64,
    running: AtomicUsize,
    /// Requests by the first digit of their status.
    answered: [AtomicU64; CLASSES],
    /// Durations of POST requests until the end of their answer, by bucket; the last has the rest.
    took: [AtomicU64; BUCKETS.len() + 1],
    took_micros: AtomicU64,
}

impl Figures {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new_cyclic(|weak: &std::sync::Weak<Self>| {
            let weak = weak.clone();
            Self {
                health: Health::new(Arc::new(move || {
                    weak.upgrade().map(|this| this.text()).unwrap_or_default()
                })),
                nodes: Default::default(),
                lost: AtomicU64::new(0),
                failures: AtomicU64::new(0),
                running: AtomicUsize::new(0),
                answered: Default::default(),
                took: Default::default(),
                took_micros: AtomicU64::new(0),
            }
        })
    }

    /// Serves `/metrics`, `/healthz` and `/readyz` until `stop` is cancelled.
    pub(crate) async fn serve(
        self: Arc<Self>,
        address: SocketAddr,
        stop: CancellationToken,
    ) -> Result<(), BindError> {
        let listener = listen::bind(address, "--metrics")?.listen()?;
        tracing::info!(%address, "metrics");
        let shutdown = Shutdown {
            stop: stop.clone(),
            close: stop.clone(),
            cut: stop,
            ..Shutdown::default()
        };
        let router = self.health.router().with_state(());
        listen::serve(listener, router, ListenLimits::default(), shutdown).await;
        Ok(())
    }

    /// Nodes of one kind; `is_first`: those with MCP endpoints.
    pub(crate) fn nodes(&self, is_first: bool, connected: usize, missing: usize) {
        let [have, lack] = &self.nodes[usize::from(!is_first)];
        have.store(connected, Relaxed);
        lack.store(missing, Relaxed);
        if is_first {
            self.health.set_ready(connected > 0);
        }
    }

    /// A connection to a node ended.
    pub(crate) fn lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// The command ended by itself, or did not start.
    pub(crate) fn failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// A request of a node begins.
    pub(crate) fn begin(self: &Arc<Self>, method: &Method) -> Running {
        self.running.fetch_add(1, Relaxed);
        Running {
            figures: Arc::clone(self),
            began: (*method == Method::POST).then(Instant::now),
            status: None,
        }
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(2048);
        let mut family = |name: &str, kind: &str, meaning: &str, lines: &[(String, u64)]| {
            let _ = writeln!(text, "# HELP {name} {meaning}\n# TYPE {name} {kind}");
            for (suffix, value) in lines {
                let _ = writeln!(text, "{name}{suffix} {value}");
            }
        };
        let alone = |value: u64| [(String::new(), value)];
        let of = |index: usize| {
            let counts = self.nodes.iter().map(|kind| kind[index].load(Relaxed));
            u64::try_from(counts.sum::<usize>()).unwrap_or(u64::MAX)
        };
        let states = [("connected", 0), ("missing", 1)];
        let states = states.map(|(state, index)| (format!("{{state=\"{state}\"}}"), of(index)));
        family(
            "portolan_attach_nodes",
            "gauge",
            "Nodes of the service, by the state of their connection",
            &states,
        );
        family(
            "portolan_attach_connections_lost_total",
            "counter",
            "Connections that ended while the program ran",
            &alone(self.lost.load(Relaxed)),
        );
        family(
            "portolan_attach_command_failures_total",
            "counter",
            "Ends of the command by itself, and failed starts",
            &alone(self.failures.load(Relaxed)),
        );
        family(
            "portolan_attach_requests_in_flight",
            "gauge",
            "Requests of nodes whose answer has not ended",
            &alone(u64::try_from(self.running.load(Relaxed)).unwrap_or(u64::MAX)),
        );
        let classes: Vec<_> = (2..CLASSES)
            .map(|digit| {
                let label = format!("{{status=\"{digit}xx\"}}");
                (label, self.answered[digit].load(Relaxed))
            })
            .collect();
        family(
            "portolan_attach_requests_total",
            "counter",
            "Requests of nodes, by the status of their answer",
            &classes,
        );
        let name = "portolan_attach_request_duration_seconds";
        let meaning = "Time of a POST until the end of its answer";
        let _ = writeln!(text, "# HELP {name} {meaning}\n# TYPE {name} histogram");
        let mut sum = 0;
        let bounds = BUCKETS
            .iter()
            .map(|ms| (f64::from(*ms) / 1000.0).to_string());
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&self.took) {
            sum += count.load(Relaxed);
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let micros = self.took_micros.load(Relaxed);
        let _ = writeln!(
            text,
            "{name}_sum {}.{:06}\n{name}_count {sum}",
            micros / 1_000_000,
            micros % 1_000_000
        );
        text
    }
}

/// A request of a node, until its answer has ended or was dropped.
pub(crate) struct Running {
    figures: Arc<Figures>,
    began: Option<Instant>,
    status: Option<StatusCode>,
}

impl Running {
    /// The answer, measured to its end.
    pub(crate) fn answered(mut self, answer: Response<AnswerBody>) -> Response<AnswerBody> {
        self.status = Some(answer.status());
        answer.map(|body| {
            body.map_err(move |error| {
                // The body owns the measurement.
                let _running = &self;
                error
            })
            .boxed_unsync()
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let figures = &self.figures;
        figures.running.fetch_sub(1, Relaxed);
        let Some(status) = self.status else {
            return;
        };
        let class = usize::from(status.as_u16() / 100).min(CLASSES - 1);
        figures.answered[class].fetch_add(1, Relaxed);
        if let Some(began) = self.began {
            let took = began.elapsed();
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            let bucket = BUCKETS
                .iter()
                .position(|ms| micros <= u64::from(*ms) * 1000);
            figures.took[bucket.unwrap_or(BUCKETS.len())].fetch_add(1, Relaxed);
            figures.took_micros.fetch_add(micros, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::text;

    #[test]
    fn requests_nodes_and_failures_stand_in_the_text() {
        let figures = Figures::new();
        figures.nodes(true, 2, 1);
        figures.nodes(false, 1, 0);
        figures.lost();
        figures.failure();
        let answer = figures
            .begin(&Method::POST)
            .answered(text(StatusCode::OK, "done"));
        let stream = figures.begin(&Method::GET);
        let given_up = figures.begin(&Method::POST);
        assert!(figures.text().contains("requests_in_flight 3"));
        drop((answer, given_up));
        let text = figures.text();
        for line in [
            "portolan_attach_nodes{state=\"connected\"} 3",
            "portolan_attach_nodes{state=\"missing\"} 1",
            "portolan_attach_connections_lost_total 1",
            "portolan_attach_command_failures_total 1",
            "portolan_attach_requests_in_flight 1",
            "portolan_attach_requests_total{status=\"2xx\"} 1",
            "portolan_attach_request_duration_seconds_bucket{le=\"+Inf\"} 1",
            "portolan_attach_request_duration_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        drop(stream);
        assert!(figures.text().contains("requests_in_flight 0"));
    }
}
