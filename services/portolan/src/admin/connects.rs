//! Recorded attempts of clients to connect: where each stopped, and why (AUTH-X2).

use std::process::ExitCode;

use anyhow::Result;
use portolan_console::connection_diagnostics::{
    attempts::ClientAttempt,
    paging::{self, PartialAttempts},
};
use portolan_oauth::connection_diagnostics::rules;
use portolan_storage::platform::connect_events::{self, RecordedStep, Which};
use serde_json::{Value, json};

use super::{
    desk::Desk,
    table::{Table, text_if, when},
    tenants,
};
use crate::output::say;

/// Steps that are read.
const STEPS: i64 = 5_000;

/// Which attempts.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only for this workspace: id (ten_…) or slug.
    #[arg(long)]
    tenant: Option<String>,
    /// Only of this client, by its id on the wire.
    #[arg(long)]
    client: Option<String>,
    /// The one in which this request took part: the number on a page of a fault. Shows each of its
    /// steps.
    #[arg(long)]
    request: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
}

/// Lists them, the newest first.
pub async fn run(desk: &Desk, arguments: &Arguments) -> Result<ExitCode> {
    let mut tx = desk.begin().await?;
    let tenant = match &arguments.tenant {
        Some(name) => Some(tenants::find(&mut tx, name).await?.id),
        None => None,
    };
    let client = arguments
        .client
        .as_deref()
        .map(|id| portolan_keys::digest(id.as_bytes()));
    let which = Which {
        tenant,
        request_id: arguments.request.as_deref(),
        client: client.as_ref(),
        before: None,
    };
    let read = connect_events::list(&mut tx, which, STEPS).await?;
    let most = usize::from(arguments.limit);
    let found = paging::page(read, None, most, PartialAttempts::Accepted, desk.now())
        .map_or(Vec::new(), |page| page.attempts);
    if desk.is_json || arguments.request.is_none() {
        desk.show(&found.iter().map(facts).collect::<Vec<_>>(), table(&found))?;
        return Ok(ExitCode::SUCCESS);
    }
    for attempt in &found {
        say(&timeline(attempt).to_string());
        for event in &attempt.steps {
            if let Some(words) = event.rule.as_deref().and_then(rules::words) {
                say(&format!(
                    "\n{}: {words}",
                    event.rule.as_deref().unwrap_or_default()
                ));
            }
        }
        for known in &attempt.known {
            say(&format!(
                "\nKnown fault of {}: {} ({})",
                known.client, known.text, known.source
            ));
        }
    }
    if found.is_empty() {
        say("None. Steps are kept for seven days.");
    }
    Ok(ExitCode::SUCCESS)
}

fn table(attempts: &[ClientAttempt]) -> Table {
    let mut table = Table::new(&["BEGAN", "CLIENT", "STATE", "REACHED", "RULE", "REQUEST"]);
    for attempt in attempts {
        let name = attempt
            .last(|event| event.client_name.as_deref())
            .or_else(|| attempt.last(|event| event.client_id.as_deref()))
            .or_else(|| attempt.last(|event| event.agent.as_deref()));
        table.row([
            when(attempt.began()),
            text_if(name),
            attempt.state.as_str().to_owned(),
            attempt.reached.as_str().to_owned(),
            text_if(attempt.last(|event| event.rule.as_deref())),
            text_if(attempt.last(|event| event.request_id.as_deref())),
        ]);
    }
    table
}

fn timeline(attempt: &ClientAttempt) -> Table {
    let mut table = Table::new(&[
        "AT",
        "STEP",
        "OUTCOME",
        "RULE",
        "WHAT WAS SAID",
        "NETWORK",
        "PROGRAM",
        "SENT",
    ]);
    for event in &attempt.steps {
        table.row([
            when(event.at),
            event.step.as_str().to_owned(),
            outcome(event),
            text_if(event.rule.as_deref()),
            text_if(event.fault.as_deref()),
            text_if(event.ip_block.as_deref()),
            text_if(event.agent.as_deref()),
            event.detail.to_string(),
        ]);
    }
    table
}

/// How it ended, and how often.
fn outcome(event: &RecordedStep) -> String {
    let word = event.outcome.as_str();
    match event.repeats {
        0 => word.to_owned(),
        more => format!("{word} ×{}", i64::from(more) + 1),
    }
}

fn facts(attempt: &ClientAttempt) -> Value {
    json!({
        "began_at": when(attempt.began()),
        "state": attempt.state.as_str(),
        "reached": attempt.reached.as_str(),
        "known": attempt.known.iter().map(|known| json!({
            "client": known.client, "text": known.text, "source": known.source,
        })).collect::<Vec<_>>(),
        "steps": attempt.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn step(event: &RecordedStep) -> Value {
    json!({
        "at": when(event.at),
        "step": event.step.as_str(),
        "outcome": event.outcome.as_str(),
        "tenant": event.tenant,
        "request_id": event.request_id,
        "client_id": event.client_id,
        "client_name": event.client_name,
        "server": event.server,
        "grant": event.grant,
        "user": event.user,
        "network": event.ip_block,
        "program": event.agent,
        "rule": event.rule,
        "fault": event.fault,
        "sent": event.detail,
        "repeats": event.repeats,
        "last_at": event.last_at.map(when),
    })
}
