//! Logs: what is logged, in which form, and the end that loses no line.

use std::io;

use portolan_config::ConfigError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::line_format;
use crate::lines::{Lines, Writer};

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

portolan_config::words!(LogFormat { Text = "text", Json = "json" });

portolan_config::config! {
    /// Logs
    pub struct LogConfig {
        /// Levels by target, in the syntax of tracing's EnvFilter: info,portolan_mcp=debug.
        filter: String as "log_filter" = "info".to_owned();
        /// "text" for people, "json" for machines.
        format: LogFormat as "log_format" = LogFormat::Text;
    }
    check can_be_read;
}

impl LogConfig {
    fn can_be_read(&self) -> Result<(), ConfigError> {
        EnvFilter::try_new(&self.filter).map(drop).map_err(|error| {
            let fault = format!(
                "{:?} cannot be read ({error}); write it like info,portolan_mcp=debug",
                self.filter
            );
            ConfigError::new("log_filter", fault)
        })
    }
}

/// Why logs could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The filter is not one.
    #[error("the log filter {filter:?} cannot be read; write it like info,portolan_mcp=debug")]
    Filter {
        /// As configured.
        filter: String,
        /// Cause.
        #[source]
        source: ParseError,
    },
    /// No thread.
    #[error("the log thread could not be started")]
    Thread(#[source] io::Error),
    /// Logs run already in this process.
    #[error("logs were started twice")]
    Twice(#[source] TryInitError),
}

/// Running logs. Dropping it writes what is waiting; keep it until the end of `main`.
#[derive(Debug)]
#[must_use = "lines still waiting are lost when the process ends before this is dropped"]
pub struct RunningLogs {
    _writer: Writer,
}

/// Starts logging to standard error, for the whole process.
///
/// # Errors
/// See [`LogsError`].
pub fn start(config: &LogConfig) -> Result<RunningLogs, LogsError> {
    let (writer, lines) = Writer::start(io::stderr()).map_err(LogsError::Thread)?;
    subscriber(config, lines)?
        .try_init()
        .map_err(LogsError::Twice)?;
    panics_become_lines();
    Ok(RunningLogs { _writer: writer })
}

fn subscriber(
    config: &LogConfig,
    lines: Lines,
) -> Result<Box<dyn tracing::Subscriber + Send + Sync>, LogsError> {
    let filter = EnvFilter::try_new(&config.filter).map_err(|source| LogsError::Filter {
        filter: config.filter.clone(),
        source,
    })?;
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(lines)
        .with_ansi(false);
    Ok(match config.format {
        LogFormat::Text => {
            let lines = line_format::Lines::text(format().with_ansi(false));
            Box::new(registry.with(layer.event_format(lines)))
        }
        LogFormat::Json => {
            let json = format().json().flatten_event(true).with_current_span(true);
            let lines = line_format::Lines::json(json);
            Box::new(registry.with(layer.json().event_format(lines)))
        }
    })
}

/// A panic is one error line with its place. The message stays out of the log: it may quote what
/// was being worked on (AUTH-X1). Debug builds keep the message on the terminal.
fn panics_become_lines() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panic");
        if cfg!(debug_assertions) {
            before(panic);
        }
    }));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that are logged while `work` runs.
    pub(crate) fn logged(config: &LogConfig, work: impl FnOnce()) -> String {
        let sink = Sink::default();
        let (writer, lines) = Writer::start(sink.clone()).unwrap();
        tracing::subscriber::with_default(subscriber(config, lines).unwrap(), work);
        drop(writer);
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_lines_are_objects_with_their_fields_at_the_top() {
        let config = LogConfig {
            filter: "info".to_owned(),
            format: LogFormat::Json,
        };
        let text = logged(&config, || {
            tracing::info!(tenant.id = "ten_1", "served");
            tracing::debug!("not this");
        });
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(line["message"], "served");
        assert_eq!(line["tenant.id"], "ten_1");
        assert_eq!(line["level"], "INFO");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_named_in_the_error() {
        let (_writer, lines) = Writer::start(io::sink()).unwrap();
        let config = LogConfig {
            filter: "portolan=loud".to_owned(),
            format: LogFormat::Text,
        };
        let Err(error) = subscriber(&config, lines) else {
            panic!("accepted")
        };
        assert!(error.to_string().contains("portolan=loud"), "{error}");
    }
}
