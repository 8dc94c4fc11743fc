//! What `webhooks listen` prints: a line for each event and attempt.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use portolan_model::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use url::Url;

use crate::connect::Environment;

use super::{
    forward::{Forwarded, Forwarding},
    stream::Received,
};

/// Width of the column of types: the longest one has 20 characters.
const WIDTH: usize = 21;

/// Whether statuses have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Coloured,
}

/// Colours on a terminal alone, and not with `NO_COLOR` (no-color.org).
pub(super) fn paint(environment: &Environment) -> Paint {
    let refuses = environment
        .get("NO_COLOR")
        .is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !refuses {
        Paint::Coloured
    } else {
        Paint::Plain
    }
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Lines(Paint),
    LinesWithBodies(Paint),
    Json,
    JsonWithBodies,
}

/// The workspace that is listened to.
pub(super) struct Begun {
    pub(super) workspace: String,
    pub(super) url: Url,
}

/// Writes a note for the person on standard error.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "portolan webhooks listen: {text}");
}

/// The part of a body that lines show.
#[derive(Debug, Default, Deserialize)]
struct Head {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    timestamp: String,
}

fn head(event: &Received) -> Head {
    serde_json::from_str(event.message.get()).unwrap_or_default()
}

/// Writes to standard output.
pub(super) struct Printer {
    style: Style,
}

impl Printer {
    pub(super) fn new(style: Style) -> Self {
        Self { style }
    }

    /// The first lines: what is listened to, and the secret of this listening.
    pub(super) fn begun(&self, begun: &Begun, forwarding: Option<&Forwarding>) -> io::Result<()> {
        let (workspace, url) = (&begun.workspace, begun.url.as_str().trim_end_matches('/'));
        if matches!(self.style, Style::Json | Style::JsonWithBodies) {
            let mut line = json!({ "listening": workspace, "url": url });
            if let Some(forwarding) = forwarding {
                line["forward"] = forwarding.url.as_str().into();
                line["secret"] = forwarding.secret().into();
            }
            return print(&line.to_string());
        }
        print(&format!(
            "Listening to events of {workspace} at {url}. Ctrl-C ends."
        ))?;
        if let Some(forwarding) = forwarding {
            print(&format!("Forwarding to {}", forwarding.url))?;
            print(&format!(
                "Signing secret, of this run alone: {}",
                forwarding.secret()
            ))?;
        }
        Ok(())
    }

    /// An event that is not forwarded.
    pub(super) fn event(&self, event: &Received) -> io::Result<()> {
        let head = head(event);
        if matches!(self.style, Style::Json | Style::JsonWithBodies) {
            let line = json!({ "time": head.timestamp, "type": head.kind, "id": event.id });
            return self.json(event, line);
        }
        let at = OffsetDateTime::parse(&head.timestamp, &Rfc3339).ok();
        let at = at.map_or_else(|| " ".repeat(9), clock);
        print(&format!("{at}  {:WIDTH$}  {}", head.kind, event.id))?;
        self.body(event)
    }

    /// An attempt to forward an event. `again` is the pause before the next one.
    pub(super) fn forwarded(
        &self,
        event: &Received,
        forwarded: &Forwarded,
        attempt: u32,
        again: Option<Duration>,
    ) -> io::Result<()> {
        let head = head(event);
        if matches!(self.style, Style::Json | Style::JsonWithBodies) {
            let at = forwarded.at.format(&Rfc3339).unwrap_or_default();
            let mut line = json!({
                "time": at, "type": head.kind, "id": event.id, "attempt": attempt,
                "accepted": forwarded.is_accepted(), "ms": forwarded.millis,
            });
            match &forwarded.answer {
                Ok(status) => line["status"] = (*status).into(),
                Err(fault) => line["fault"] = fault.as_str().into(),
            }
            if let Some(pause) = again {
                let millis = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
                line["again_in_ms"] = millis.into();
            }
            return self.json(event, line);
        }
        let mut line = format!(
            "{}  {:WIDTH$}  {}  {}  {} ms",
            clock(forwarded.at),
            head.kind,
            event.id,
            self.status(forwarded),
            forwarded.millis
        );
        if let Err(fault) = &forwarded.answer {
            line.push_str(&format!("  {fault}"));
        }
        if !forwarded.is_accepted() {
            line.push_str(&match (again, attempt) {
                (Some(pause), _) => format!("; again in {:.1} s", pause.as_secs_f32()),
                (None, 1) => "; not sent again (--retry N does)".to_owned(),
                (None, attempts) => format!("; given up after {attempts} attempts"),
            });
        }
        print(&line)?;
        if attempt == 1 {
            self.body(event)
        } else {
            Ok(())
        }
    }

    fn status(&self, forwarded: &Forwarded) -> String {
        let text = match &forwarded.answer {
            Ok(status) => status.to_string(),
            Err(_) => "---".to_owned(),
        };
        let is_coloured = matches!(
            self.style,
            Style::Lines(Paint::Coloured) | Style::LinesWithBodies(Paint::Coloured)
        );
        match (is_coloured, forwarded.is_accepted()) {
            (false, _) => text,
            // Green and red of the terminal's own palette.
            (true, true) => format!("\u{1b}[32m{text}\u{1b}[0m"),
            (true, false) => format!("\u{1b}[31m{text}\u{1b}[0m"),
        }
    }

    fn json(&self, event: &Received, mut line: Value) -> io::Result<()> {
        if self.style == Style::JsonWithBodies {
            let body = serde_json::from_str::<Map<String, Value>>(event.message.get());
            line["message"] = body.unwrap_or_default().into();
        }
        print(&line.to_string())
    }

    fn body(&self, event: &Received) -> io::Result<()> {
        if !matches!(self.style, Style::LinesWithBodies(_)) {
            return Ok(());
        }
        let body: Value = serde_json::from_str(event.message.get()).unwrap_or_default();
        print(&format!("{body:#}"))
    }
}

/// The time of day, in UTC.
fn clock(at: Timestamp) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    format!("{:02}:{:02}:{:02}Z", at.hour(), at.minute(), at.second())
}

/// Writes a line, and returns the fault of a closed pipe instead of ending the process.
fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
