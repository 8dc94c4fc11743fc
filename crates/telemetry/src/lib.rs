//! Start and stop of logs and metrics, and the one line a request.
//!
//! The binary starts this room; every other room speaks `tracing` and `metrics` and does not know it.

mod described;
mod instruments;
mod lines;
mod logs;
mod request_line;

pub use self::described::{Kind, METRICS, Metric};
pub use self::instruments::{Metrics, MetricsError};
pub use self::logs::{LogConfig, LogFormat, LogsError, Running, start};
pub use self::request_line::RequestLog;
