//! A collector of traces: takes what nodes send by OTLP over HTTP, and shows it to the test.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, any_value::Value},
};
use prost::Message;
use tokio::task::JoinHandle;

use crate::process::eventually;

/// A span, as it arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// 32 hex digits.
    pub trace: String,
    /// 16 hex digits.
    pub id: String,
    /// 16 hex digits, or nothing.
    pub parent: String,
    /// Name of the operation.
    pub name: String,
    /// Numbers as text.
    pub attributes: BTreeMap<String, String>,
}

/// A running collector. Stops when dropped.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
    task: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    /// Starts it on a free loopback port.
    pub async fn start() -> Result<Self> {
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(Arc::clone(&spans));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            spans,
            task,
        })
    }

    /// The endpoint, as in the settings of nodes.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that has arrived.
    pub fn spans(&self) -> Vec<Span> {
        self.spans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The spans of one trace, once it has spans of all these names.
    pub async fn trace(&self, trace: &str, names: &[&str]) -> Result<Vec<Span>> {
        let of_trace = || {
            let mut spans = self.spans();
            spans.retain(|span| span.trace == trace);
            spans
        };
        eventually("the trace is whole", Duration::from_secs(20), async || {
            let spans = of_trace();
            names
                .iter()
                .all(|name| spans.iter().any(|span| span.name == *name))
        })
        .await
        .map_err(|error| error.context(format!("{names:?} in {:?}", self.spans())))?;
        Ok(of_trace())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

async fn take(
    State(spans): State<Arc<Mutex<Vec<Span>>>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Vec<u8>) {
    let is_protobuf = headers
        .get("content-type")
        .is_some_and(|kind| kind == "application/x-protobuf");
    let Some(request) = ExportTraceServiceRequest::decode(body)
        .ok()
        .filter(|_| is_protobuf)
    else {
        return (StatusCode::BAD_REQUEST, Vec::new());
    };
    let arrived = request
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .map(|span| Span {
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            name: span.name,
            attributes: span
                .attributes
                .into_iter()
                .map(|attribute| (attribute.key, text(attribute.value)))
                .collect(),
        });
    spans
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(arrived);
    (
        StatusCode::OK,
        ExportTraceServiceResponse::default().encode_to_vec(),
    )
}
