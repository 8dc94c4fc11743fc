//! Exports spans in batches to a collector, by OTLP over HTTP.
//!
//! The exporter waits on a thread of its own. Its requests go through the guarded client of `net`,
//! which may reach only the collector. If the collector is unavailable, spans beyond a few thousand
//! are dropped; nothing else is affected.

use std::{
    fmt, io,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{
        SpanContext, SpanId, SpanKind as ExportedKind, Status, TraceFlags, TraceId, TraceState,
    },
};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
    },
};
use portolan_config::Share;
use portolan_net::egress::{
    AllowedDestination, Egress, EgressPolicy, EgressRequest, EgressSetupError, parse_url,
};
use portolan_traces::{Finished, Sink, SpanKind, Twice, Value};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use url::Url;

/// Between two batches.
const EVERY: Duration = Duration::from_secs(2);
/// Spans that may wait.
const QUEUE: usize = 8192;
/// A collector answers within this time.
const WITHIN: Duration = Duration::from_secs(10);
/// The last batch of a process takes no longer.
const LAST: Duration = Duration::from_secs(2);
/// Below the address of a collector (OTLP/HTTP).
const PATH: &str = "/v1/traces";

portolan_config::config! {
    /// Traces
    pub struct TracesConfig {
        /// Collector to which nodes send traces of tool calls, by OTLP over HTTP (protobuf), with
        /// or without `/v1/traces`: `http://collector:4318`. Without it there are no traces.
        endpoint: Option<Url> as "otlp_endpoint" = None;
        /// Share of the calls that are traced when their client says nothing about it. A client
        /// that sends a traceparent decides itself, as far as trace_asked_per_second goes.
        ratio: Share as "trace_sample_ratio" = Share(0.1);
        /// Calls a second and node that are traced because their client asks for it (the sampled
        /// flag of traceparent). Beyond, trace_sample_ratio decides. 0: clients ask in vain.
        asked_per_second: u32 as "trace_asked_per_second" = 10, in 0..=100_000;
    }
}

/// Why traces could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// Not the address of a collector.
    #[error("otlp_endpoint: {0:?} is not an address such as http://collector:4318")]
    Endpoint(String),
    /// No client.
    #[error("the client for the collector could not be made")]
    Client(#[source] EgressSetupError),
    /// No exporter.
    #[error("the exporter of traces could not be made")]
    Exporter(#[source] ExporterBuildError),
    /// They run already in this process.
    #[error("traces were started twice")]
    Twice,
}

impl From<Twice> for TracesError {
    fn from(_: Twice) -> Self {
        Self::Twice
    }
}

/// Running traces.
#[derive(Debug, Clone)]
pub struct Traces {
    processor: Arc<BatchSpanProcessor>,
}

impl Traces {
    /// Starts making and sending spans, for the whole process, if there is a collector. Call
    /// inside a runtime.
    ///
    /// # Errors
    /// See [`TracesError`].
    pub fn start(config: &TracesConfig) -> Result<Option<Self>, TracesError> {
        let Some(mut endpoint) = config.endpoint.clone() else {
            return Ok(None);
        };
        let wrong = |endpoint: &Url| TracesError::Endpoint(endpoint.to_string());
        let (Some(host), Some(port)) = (endpoint.host_str(), endpoint.port_or_known_default())
        else {
            return Err(wrong(&endpoint));
        };
        let allow = vec![AllowedDestination::host(host, port)];
        let path = endpoint.path().trim_end_matches('/').to_owned();
        if !path.ends_with(PATH) {
            endpoint.set_path(&format!("{path}{PATH}"));
        }
        let egress = Egress::new(EgressPolicy {
            allow,
            ..EgressPolicy::default()
        })
        .map_err(TracesError::Client)?;
        egress.check(&endpoint).map_err(|_| wrong(&endpoint))?;
        let client = CollectorClient {
            egress,
            runtime: Handle::current(),
            requests: TaskTracker::new(),
            is_failing: AtomicBool::new(false),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.as_str())
            .with_timeout(WITHIN)
            .build()
            .map_err(TracesError::Exporter)?;
        let batches = BatchConfigBuilder::default()
            .with_scheduled_delay(EVERY)
            .with_max_queue_size(QUEUE)
            .build();
        let mut processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(batches)
            .build();
        let version = env!("CARGO_PKG_VERSION");
        processor.set_resource(
            &Resource::builder_empty()
                .with_service_name("portolan")
                .with_attribute(KeyValue::new("service.version", version))
                .build(),
        );
        let traces = Self {
            processor: Arc::new(processor),
        };
        portolan_traces::start(
            Box::new(traces.clone()),
            config.ratio.0,
            config.asked_per_second,
        )?;
        Ok(Some(traces))
    }

    /// Sends the waiting spans. Spans that end afterwards are lost.
    pub async fn stop(self) {
        let last = tokio::task::spawn_blocking(move || self.processor.shutdown_with_timeout(LAST));
        if !matches!(last.await, Ok(Ok(()))) {
            tracing::warn!("the last spans could not be sent");
        }
    }
}

impl Sink for Traces {
    fn take(&self, span: Finished) {
        self.processor.on_end(data(span));
    }
}

fn data(span: Finished) -> SpanData {
    let state = span
        .state
        .and_then(|state| TraceState::from_str(&state).ok())
        .unwrap_or_default();
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(span.trace),
            SpanId::from(span.id),
            TraceFlags::SAMPLED,
            false,
            state,
        ),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: span.parent_is_remote,
        span_kind: match span.kind {
            SpanKind::Server => ExportedKind::Server,
            SpanKind::Client => ExportedKind::Client,
            SpanKind::Internal => ExportedKind::Internal,
        },
        name: span.name.into(),
        start_time: span.began.into(),
        end_time: span.ended.into(),
        attributes: span
            .attributes
            .into_iter()
            .map(|(name, value)| match value {
                Value::Text(text) => KeyValue::new(name, text),
                Value::Number(number) => KeyValue::new(name, number),
            })
            .chain(span.failure.map(|how| KeyValue::new("error.type", how)))
            .collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match span.failure {
            Some(how) => Status::error(how),
            None => Status::Unset,
        },
        instrumentation_scope: InstrumentationScope::builder("portolan").build(),
    }
}

/// HTTP client of the exporter.
struct CollectorClient {
    egress: Egress,
    /// The exporter has no runtime.
    runtime: Handle,
    requests: TaskTracker,
    is_failing: AtomicBool,
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl CollectorClient {
    /// One line when the collector goes, and one when it is back.
    fn note(&self, fault: Option<&dyn fmt::Display>) {
        let was_failing = self.is_failing.swap(fault.is_some(), Ordering::Relaxed);
        match fault {
            Some(fault) if !was_failing => {
                tracing::warn!(%fault, "the collector of traces takes nothing: spans are lost");
            }
            None if was_failing => tracing::info!("the collector of traces is back"),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let request = EgressRequest {
            headers: parts.headers,
            body,
            timeout: WITHIN,
            ..EgressRequest::new(parts.method, parse_url(&parts.uri.to_string())?)
        };
        let egress = self.egress.clone();
        let sent = self
            .requests
            .spawn_on(async move { egress.send(request).await }, &self.runtime)
            .await
            .map_err(|_| io::Error::other("the process ends"))?;
        match &sent {
            Ok(answer) if answer.status.is_success() => self.note(None),
            Ok(answer) => self.note(Some(&answer.status)),
            Err(error) => self.note(Some(error)),
        }
        let answer = sent?;
        let mut response = http::Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}
