//! How a line of log is written. The line of a request is written for every call, so it has a way
//! of its own, several times as quick as the formatter of all others, and in the very same form.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::request_line::TARGET;

/// Lines in one form: the formatter of all others, and the form.
pub(crate) struct Lines<F> {
    others: Format<F>,
    form: Form,
}

impl Lines<Full> {
    /// For people.
    pub(crate) fn text(others: Format<Full>) -> Self {
        let form = Form::Text;
        Self { others, form }
    }
}

impl Lines<Json> {
    /// For machines.
    pub(crate) fn json(others: Format<Json>) -> Self {
        let form = Form::Json;
        Self { others, form }
    }
}

impl<F, S, N> FormatEvent<S, N> for Lines<F>
where
    Format<F>: FormatEvent<S, N>,
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        if about.target() != TARGET {
            return self.others.format_event(context, out, event);
        }
        // The line is made in a buffer of the thread, because each part that is written to `out` is
        // a call through a table.
        LINE.with_borrow_mut(|line| {
            line.clear();
            self.form.write_line(event, line)?;
            out.write_str(line)
        })
    }
}

thread_local! {
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Form {
    fn write_line(self, event: &Event<'_>, out: &mut String) -> fmt::Result {
        let level = event.metadata().level().as_str();
        match self {
            Self::Text => {
                now(out)?;
                // As wide as the longest level.
                out.push_str(&"      "[level.len().min(5)..]);
                for part in [level, " ", TARGET, ": "] {
                    out.push_str(part);
                }
            }
            Self::Json => {
                out.push_str("{\"timestamp\":\"");
                now(out)?;
                for part in ["\",\"level\":\"", level, "\""] {
                    out.push_str(part);
                }
            }
        }
        let mut fields = Fields::new(out, self);
        event.record(&mut fields);
        fields.result?;
        let end = match self {
            Self::Text => ["", "", "\n"],
            Self::Json => [",\"target\":\"", TARGET, "\"}\n"],
        };
        out.extend(end);
        Ok(())
    }
}

struct Fields<'a> {
    out: &'a mut String,
    form: Form,
    is_first: bool,
    result: fmt::Result,
}

impl<'a> Fields<'a> {
    fn new(out: &'a mut String, form: Form) -> Self {
        Self {
            out,
            form,
            is_first: true,
            result: Ok(()),
        }
    }

    fn field(&mut self, field: &Field, value: impl FnOnce(&mut String) -> fmt::Result) {
        if self.result.is_ok() {
            self.name(field.name());
            self.result = value(self.out);
        }
    }

    fn name(&mut self, name: &str) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.form {
            Form::Text => {
                if !is_first {
                    self.out.push(' ');
                }
                // The message stands for itself.
                if name != "message" {
                    self.out.push_str(name);
                    self.out.push('=');
                }
            }
            Form::Json => {
                self.out.push_str(",\"");
                self.out.push_str(name);
                self.out.push_str("\":");
            }
        }
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let form = self.form;
        self.field(field, |out| match form {
            Form::Text => write!(out, "{value:?}"),
            Form::Json => {
                out.push('"');
                write!(Escaped(out), "{value:?}")?;
                out.push('"');
                Ok(())
            }
        });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, |out| quoted(out, value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, |out| write!(out, "{value:?}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, |out| write!(out, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, |out| write!(out, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, |out| write!(out, "{value}"));
    }
}

/// Writes the time, to the microsecond. The part up to the second is formatted once a second.
fn now(out: &mut String) -> fmt::Result {
    thread_local! {
        static SECOND: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a line says when it was written; nothing is decided by it"
    )]
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() {
            let at = i64::try_from(since.as_secs())
                .ok()
                .and_then(|secs| OffsetDateTime::from_unix_timestamp(secs).ok())
                .unwrap_or(OffsetDateTime::UNIX_EPOCH);
            text.clear();
            write!(
                text,
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.",
                at.year(),
                u8::from(at.month()),
                at.day(),
                at.hour(),
                at.minute(),
                at.second()
            )?;
            *second = since.as_secs();
        }
        out.push_str(text);
        Ok(())
    })?;
    let mut digits = *b"000000Z";
    let mut left = since.subsec_micros();
    for digit in digits[..6].iter_mut().rev() {
        *digit = b'0' + u8::try_from(left % 10).unwrap_or_default();
        left /= 10;
    }
    out.push_str(std::str::from_utf8(&digits).unwrap_or_default());
    Ok(())
}

/// Escapes what is written through it.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escaped(self.0, text)
    }
}

/// Writes the text in quotes.
fn quoted(out: &mut String, text: &str) -> fmt::Result {
    out.push('"');
    escaped(out, text)?;
    out.push('"');
    Ok(())
}

/// Writes the inside of a quoted text. The values of a request's line are names and digits. Other
/// characters are escaped, so that they can end neither the string nor the line.
fn escaped(out: &mut String, text: &str) -> fmt::Result {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push_str(text);
        return Ok(());
    }
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.push(c),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use time::format_description::well_known::Rfc3339;

    use crate::logs::tests::logged;
    use crate::{LogConfig, LogFormat};

    fn line(format: LogFormat, target_is_ours: bool) -> String {
        let config = LogConfig {
            filter: "info".to_owned(),
            format,
        };
        macro_rules! event {
            ($target:expr) => {
                tracing::info!(
                    target: $target,
                    method = "POST",
                    status = Some(200_u16),
                    missing = None::<u16>,
                    duration_ms = 0.25,
                    request.id = "a\"b\\c\n",
                    client.block = %"10.0.0.0/24",
                    "{}", "answered"
                )
            };
        }
        let text = logged(&config, || {
            if target_is_ours {
                event!("portolan::request");
            } else {
                event!("portolan::another");
            }
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    #[test]
    fn the_quick_json_line_is_the_line_that_the_slow_way_writes() {
        // AUTH-X1
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let (mut quick, mut slow) = (
            read(&line(LogFormat::Json, true)),
            read(&line(LogFormat::Json, false)),
        );
        assert_eq!(quick["request.id"], "a\"b\\c\n");
        for line in [&mut quick, &mut slow] {
            let fields = line.as_object_mut().unwrap();
            let timestamp = fields.remove("timestamp").unwrap();
            let written = OffsetDateTime::parse(timestamp.as_str().unwrap(), &Rfc3339).unwrap();
            assert!((OffsetDateTime::now_utc() - written).abs() < time::Duration::HOUR);
            assert!(fields.remove("target").is_some());
        }
        assert_eq!(quick, slow);
    }

    #[test]
    fn the_quick_text_line_differs_from_the_slow_one_in_nothing_but_its_time() {
        let rest = |text: String| text.split_once('Z').unwrap().1.to_owned();
        let quick = rest(line(LogFormat::Text, true));
        let slow =
            rest(line(LogFormat::Text, false)).replace("portolan::another", "portolan::request");
        // Only the escape of a control character has another spelling.
        assert_eq!(quick.replace("\\u000a", "\\n"), slow);
    }
}
