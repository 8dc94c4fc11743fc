//! `portolan webhooks listen`: events of a workspace at a receiver on this machine (HOOK-30;
//! `docs/webhooks.md`).

mod forward;
mod pause;
mod shown;
mod stream;

use std::{io, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use portolan_model::clock::Clock;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::sync::mpsc;

use crate::{
    connect::Environment,
    installation,
    lifecycle::{self, Signals},
    workspace_api::{WorkspaceApi, WorkspaceOptions},
};

use forward::{Forwarding, Receivers};
use pause::Pauses;
use shown::{Begun, Printer, Style};
use stream::{EventStream, Received, StreamNews, WantedEvents};

/// Events that wait for the receiver. Beyond them the stream is not read, and the service waits.
const QUEUE: usize = 256;

/// Options of `webhooks`.
#[derive(Debug, Args)]
pub struct WebhooksArguments {
    #[command(subcommand)]
    verb: WebhooksVerb,
}

#[derive(Debug, Subcommand)]
enum WebhooksVerb {
    /// Prints the events of a workspace as they happen, and forwards each to a receiver on this
    /// machine as a signed delivery, without an endpoint and a public address. Exit codes: 0 ended
    /// by a signal, 1 an error.
    Listen(Box<ListenArguments>),
}

/// Options of `webhooks listen`.
#[derive(Debug, Args)]
pub struct ListenArguments {
    /// Where each event is posted, such as http://localhost:3000/hook. Without it, events are
    /// printed alone.
    #[arg(long, value_name = "URL")]
    forward: Option<String>,
    /// Types of events, separated by commas; `server.*` stands for all that begin so. Without it,
    /// all.
    #[arg(long, value_name = "TYPES")]
    events: Option<String>,
    /// Begin with retained events of this time: 30m, 1h, 7d, or a time such as
    /// 2026-11-26T08:00:00Z. Without it, the stream begins now.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    #[command(flatten)]
    workspace: WorkspaceOptions,
    /// How often a failed forward is sent again.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,
    /// Forward to another machine than this one, too.
    #[arg(long, requires = "forward")]
    allow_remote: bool,
    /// Print the body of each event.
    #[arg(long)]
    print: bool,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Exit codes: 0 ended by a signal, 1 an error.
pub(crate) fn run(arguments: &WebhooksArguments, environment: &Environment) -> Result<ExitCode> {
    let WebhooksVerb::Listen(arguments) = &arguments.verb;
    let receivers = if arguments.allow_remote {
        Receivers::Everywhere
    } else {
        Receivers::OnThisMachine
    };
    let address = match &arguments.forward {
        Some(text) => Some(forward::checked(text, receivers)?),
        None => None,
    };
    let since = match &arguments.since {
        Some(text) => Some(since(text, Clock::system().now())?),
        None => None,
    };
    let wanted = WantedEvents {
        events: arguments.events.clone(),
        since,
    };
    let workspace = &arguments.workspace;
    let api = WorkspaceApi::new(
        workspace,
        &workspace.installation(environment)?,
        environment,
    )?;
    let runtime = lifecycle::runtime()?;
    let outcome = runtime.block_on(async {
        // From here on no signal kills: Ctrl-C is the usual end.
        let mut signals = Signals::listen()?;
        let egress = installation::egress(&workspace.url, workspace.plain_http(), environment)?;
        let forwarding = match address {
            Some(url) => Some(Forwarding::new(url, arguments.retry, environment)?),
            None => None,
        };
        let listening = Listening {
            printer: Printer::new(style(arguments, environment)),
            begun: Begun {
                workspace: workspace.workspace.clone(),
                url: workspace.url.clone(),
            },
            forwarding,
        };
        let (sender, news) = mpsc::channel(QUEUE);
        let stream = EventStream::new((egress, api), wanted, sender);
        tokio::select! {
            _ = signals.next() => Ok(ExitCode::SUCCESS),
            outcome = listening.work(stream, news) => outcome,
        }
    });
    lifecycle::end(runtime);
    outcome
}

fn style(arguments: &ListenArguments, environment: &Environment) -> Style {
    match (arguments.json, arguments.print) {
        (true, true) => Style::JsonWithBodies,
        (true, false) => Style::Json,
        (false, true) => Style::LinesWithBodies(shown::paint(environment)),
        (false, false) => Style::Lines(shown::paint(environment)),
    }
}

/// Reads a time, or an age such as `90s`, `30m`, `1h` or `7d`, as RFC 3339.
fn since(text: &str, now: OffsetDateTime) -> Result<String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let age = units.iter().find_map(|(unit, seconds)| {
        let count: i32 = text.strip_suffix(unit)?.parse().ok()?;
        (count > 0).then(|| Duration::seconds(i64::from(count) * seconds))
    });
    let time = match age {
        Some(age) => now.checked_sub(age),
        None => OffsetDateTime::parse(text, &Rfc3339).ok(),
    };
    let time = time.with_context(|| {
        format!("--since: {text} is neither an age such as 30m, 1h or 7d nor a time such as 2026-11-26T08:00:00Z")
    })?;
    Ok(time.format(&Rfc3339)?)
}

/// Takes events, forwards and prints them.
struct Listening {
    printer: Printer,
    begun: Begun,
    forwarding: Option<Forwarding>,
}

impl Listening {
    /// Goes on until the stream is refused, or the output is closed.
    async fn work(
        self,
        stream: EventStream,
        mut news: mpsc::Receiver<StreamNews>,
    ) -> Result<ExitCode> {
        let printing = async {
            while let Some(news) = news.recv().await {
                self.take(news).await?;
            }
            Ok::<(), io::Error>(())
        };
        tokio::pin!(printing);
        // What came before a refusal is forwarded still: the channel ends with the stream.
        let following = stream.follow();
        tokio::pin!(following);
        let refusal = tokio::select! {
            refusal = &mut following => refusal,
            printed = &mut printing => return of_output(printed),
        };
        match printing.await {
            Ok(()) => Err(refusal),
            printed => of_output(printed),
        }
    }

    async fn take(&self, news: StreamNews) -> io::Result<()> {
        match news {
            StreamNews::Connected => {
                self.printer.begun(&self.begun, self.forwarding.as_ref())?;
            }
            StreamNews::ConnectedAgain => {
                shown::note("connected again, from where the stream was cut");
            }
            StreamNews::Lost { reason, pause } => {
                let pause = pause.as_secs_f32();
                shown::note(&format!("{reason}; connecting again in {pause:.1} s"));
            }
            StreamNews::Event(event) => self.event(&event).await?,
        }
        Ok(())
    }

    async fn event(&self, event: &Received) -> io::Result<()> {
        let Some(forwarding) = &self.forwarding else {
            return self.printer.event(event);
        };
        let mut pauses = Pauses::default();
        let mut attempt = 1;
        loop {
            let forwarded = forwarding.send(event).await;
            let is_last = forwarded.is_accepted() || attempt > forwarding.retries;
            let again = (!is_last).then(|| pauses.next_pause());
            self.printer.forwarded(event, &forwarded, attempt, again)?;
            let Some(pause) = again else { return Ok(()) };
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}

/// A reader that closed the pipe has seen enough: `… | head`.
fn of_output(printed: io::Result<()>) -> Result<ExitCode> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("the output cannot be written")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_or_a_time_is_read_and_anything_else_is_refused() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(40);
        let read = |text: &str| since(text, now);
        assert_eq!(read("1h").unwrap(), "1970-02-09T23:00:00Z");
        assert_eq!(read("7d").unwrap(), "1970-02-03T00:00:00Z");
        assert_eq!(
            read("1970-01-02T03:04:05+01:00").unwrap(),
            "1970-01-02T03:04:05+01:00"
        );
        for wrong in [
            "",
            "h",
            "0h",
            "-1h",
            "1",
            "1w",
            "yesterday",
            "ä",
            "9999999999d",
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with("--since: "), "{wrong}: {error}");
        }
    }
}
