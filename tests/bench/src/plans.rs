//! Plans of a file with a thousand tools: their time, and that of their application (CONF-5).

use std::{
    fmt::Write as _,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use portolan_tests::console::text;
use serde_json::{Value, json};

use crate::{
    figure::{Bar, Figure, Spread, Table},
    scene::Alone,
};

/// Sources of each of the two kinds, and tools of a source.
const SOURCES: usize = 5;
const TOOLS: usize = 100;

/// Plans that count.
const PLANS: usize = 24;

/// The bar of the 95th percentile, in milliseconds.
const PLAN: f64 = 1_000.0;

/// The bar of an application, in milliseconds.
const APPLY: f64 = 5_000.0;

/// Measures a workspace that is as the file says, with one description that changes.
pub(crate) async fn measure(api: SocketAddr, table: &mut Table) -> Result<()> {
    let alone = Alone::new(api).await?;
    let tools = 2 * SOURCES * TOOLS;
    let first = applied(&alone, &file(0)).await?;
    let mut times = Vec::with_capacity(PLANS);
    for round in 0..PLANS {
        let begun = Instant::now();
        let plan = planned(&alone, &file(round % 2)).await?;
        times.push(milliseconds(begun.elapsed()));
        let changes = plan["changes"].as_array().context("changes")?;
        ensure!(changes.len() == round % 2, "{} changes", changes.len());
    }
    let spread = Spread::of(&mut times);
    let p95 = times[(times.len() * 95).div_ceil(100) - 1];
    table.add(Figure {
        what: format!("plan of a file with {tools} tools, p95"),
        seen: p95,
        unit: "ms",
        bar: Bar::AtMost(PLAN),
        note: format!("{PLANS} plans, median {:.0} ms", spread.median),
    });
    let second = applied(&alone, &file(1)).await?;
    table.add(Figure {
        what: format!("apply of one change to {tools} tools"),
        seen: milliseconds(second),
        unit: "ms",
        bar: Bar::AtMost(APPLY),
        note: format!("all {tools} tools at first {:.0} ms", milliseconds(first)),
    });
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

async fn planned(alone: &Alone, file: &str) -> Result<Value> {
    let path = format!(
        "/workspaces/{}/configuration/plans",
        alone.published.workspace
    );
    let body = json!({ "bundle": file });
    alone.owner.console().post(&path, body).await
}

/// Plans and applies; the time of the application.
async fn applied(alone: &Alone, file: &str) -> Result<Duration> {
    let plan = planned(alone, file).await?;
    let path = format!(
        "/workspaces/{}/configuration/plans/{}/apply",
        alone.published.workspace,
        text(&plan, "id")?
    );
    let begun = Instant::now();
    alone.owner.console().post(&path, json!({})).await?;
    Ok(begun.elapsed())
}

/// The file. `version` changes the description of one tool.
fn file(version: usize) -> String {
    let mut text = "format: portolan/v1\nname: bench-plans\nsources:\n".to_owned();
    for source in 0..SOURCES {
        let operations: serde_json::Map<String, Value> = (0..TOOLS)
            .map(|tool| {
                let operation = json!({"get": {"operationId": format!("read_{source}_{tool}"),
                    "summary": format!("Reads the thing {tool}."), "responses": {},
                    "parameters": [{"name": "id", "in": "query", "schema": {"type": "string"}}]}});
                (format!("/things/{tool}"), operation)
            })
            .collect();
        let document = json!({"openapi": "3.1.0", "info": {"title": "Things", "version": "1"},
            "paths": operations});
        let _ = writeln!(
            text,
            "  - {{name: things-{source}, kind: openapi, base_url: 'https://things.example', \
             document: '{document}', tools: {{"
        );
        for tool in 0..TOOLS {
            let version = if (source, tool) == (0, 0) { version } else { 0 };
            let _ = writeln!(
                text,
                "      'GET /things/{tool}': {{description: Reads thing {tool} of {source} in version {version}}},"
            );
        }
        text.push_str("    }}\n");
        let _ = writeln!(
            text,
            "  - name: made-{source}\n    kind: http\n    base_url: https://made.example\n    tools:"
        );
        for tool in 0..TOOLS {
            let _ = writeln!(
                text,
                "      make_{source}_{tool}: {{define: {{description: Makes thing {tool}, method: POST, path: /made/{tool}}}}}"
            );
        }
    }
    text.push_str("servers:\n");
    for source in 0..SOURCES {
        let _ = writeln!(
            text,
            "  - {{slug: all-{source}, from: [things-{source}, made-{source}]}}"
        );
    }
    text
}
