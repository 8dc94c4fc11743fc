//! Start and stop of logs, metrics and traces, and the log line of each request.
//!
//! The binary starts this crate. All other crates use `tracing`, `metrics` and `portolan-traces`,
//! and do not depend on it.

mod described;
mod instruments;
mod line_format;
mod lines;
mod logs;
mod request_line;
mod spans;

pub use self::described::{METRICS, Metric, MetricKind};
pub use self::instruments::{Metrics, MetricsError};
pub use self::logs::{LogConfig, LogFormat, LogsError, RunningLogs, start};
pub use self::request_line::RequestLog;
pub use self::spans::{Traces, TracesConfig, TracesError};
