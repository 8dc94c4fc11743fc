//! `portolan doctor`: what is wrong, before users find it. Unlike `check` it connects.

use std::{net::TcpListener, process::ExitCode};

use anyhow::Result;
use portolan_model::Clock;
use portolan_storage::{Needs, SchemaState, StorageConfig, Store};
use serde::Serialize;

use crate::{
    node_store, open_files,
    output::say,
    settings::{Role, Settings},
};

/// Longest difference between this machine's clock and the database's (AUTH-4.7).
pub(crate) const LONGEST_SKEW_SECONDS: f64 = 5.0;

#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    ok: bool,
    message: String,
}

impl Finding {
    fn good(what: &'static str, message: impl Into<String>) -> Self {
        Self {
            what,
            ok: true,
            message: message.into(),
        }
    }

    fn bad(what: &'static str, message: impl Into<String>) -> Self {
        Self {
            what,
            ok: false,
            message: message.into(),
        }
    }
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A line each.
    Lines,
    /// A JSON array.
    Json,
}

/// Looks at everything that the configuration names. Exit code 3 if something is wrong.
pub async fn run(settings: &Settings, role: Role, output: Output) -> Result<ExitCode> {
    let mut findings = Vec::new();
    database(settings, role, &mut findings).await;
    findings.push(redis(settings).await);
    findings.push(files());
    for (what, address) in [
        ("listen", settings.listen.listen),
        ("admin_listen", settings.listen.admin_listen),
    ] {
        findings.push(match TcpListener::bind(address) {
            Ok(_) => Finding {
                what,
                ok: true,
                message: format!("{address} is free"),
            },
            Err(error) => Finding {
                what,
                ok: false,
                message: format!("{address}: {error} (is the service running already?)"),
            },
        });
    }
    let sick = findings.iter().any(|finding| !finding.ok);
    if output == Output::Json {
        say(&serde_json::to_string_pretty(&findings)?);
    } else {
        for finding in &findings {
            say(&format!(
                "{} {}: {}",
                if finding.ok { "ok  " } else { "FAIL" },
                finding.what,
                finding.message
            ));
        }
    }
    Ok(if sick {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    })
}

async fn database(settings: &Settings, role: Role, findings: &mut Vec<Finding>) {
    let config = StorageConfig {
        max_connections: 2,
        ..settings.storage.clone()
    };
    let store = match Store::connect(&config).await {
        Ok(store) => store,
        Err(error) => {
            findings.push(Finding::bad("database", chain(&error)));
            return;
        }
    };
    findings.push(Finding::good("database", "reachable"));
    findings.push(match portolan_storage::schema_state(&store).await {
        Ok(SchemaState::Current) => Finding::good("schema", "up to date"),
        Ok(SchemaState::Behind(missing)) => {
            Finding::bad("schema", format!("{missing} migrations are missing: run `portolan migrate`"))
        }
        Ok(SchemaState::Ahead(unknown)) => Finding::good("schema", format!("migrated by a newer release ({unknown} migrations unknown here), which this one can live with")),
        Err(error) => Finding::bad("schema", chain(&error)),
    });
    findings.push(match store.role_faults(role.needs()).await {
        Ok(faults) if faults.is_empty() => {
            Finding::good("role", "row-level security holds for the login role")
        }
        Ok(faults) => Finding::bad("role", faults.join("; ")),
        Err(error) => Finding::bad("role", chain(&error)),
    });
    if role.needs() == Needs::Nodes {
        findings.push(match store.may_become_core().await {
            Ok(true) => Finding::good(
                "role_of_nodes",
                "the login role may become portolan_core, which MCP endpoints do not need: give them one in portolan_mcp alone",
            ),
            Ok(false) => Finding::good(
                "role_of_nodes",
                "the login role sees no people and cannot become portolan_core",
            ),
            Err(error) => Finding::bad("role_of_nodes", chain(&error)),
        });
    }
    findings.push(
        match store.clock_skew_seconds(Clock::system().now()).await {
            Ok(skew) if skew.abs() <= LONGEST_SKEW_SECONDS => {
                Finding::good("clock", format!("{skew:.2} s from the database's"))
            }
            Ok(skew) => Finding::bad(
                "clock",
                format!("{skew:.1} s from the database's: synchronise both machines"),
            ),
            Err(error) => Finding::bad("clock", chain(&error)),
        },
    );
}

/// Each connection is an open file.
fn files() -> Finding {
    let files = open_files::raise();
    let few = files.is_some_and(|files| files < open_files::FEW);
    let many = files.map_or_else(|| "any number".to_owned(), |files| files.to_string());
    Finding {
        what: "open_files",
        ok: !few,
        message: if few {
            format!(
                "{many} files may be open at once, which is too few; raise the hard limit (ulimit -Hn)"
            )
        } else {
            format!("{many} files may be open at once")
        },
    }
}

async fn redis(settings: &Settings) -> Finding {
    let (ok, message) = match node_store::examine(settings).await {
        None => (
            true,
            "not set: sessions, streams and limits stay in the memory of a process, so only one may serve MCP endpoints".to_owned(),
        ),
        Some(Ok(())) => (
            true,
            if settings.cluster.redis_allow_eviction {
                "reachable, and new enough; whether it throws keys away was not asked (redis_allow_eviction)".to_owned()
            } else {
                "reachable, new enough, and throws nothing away".to_owned()
            },
        ),
        Some(Err(fault)) => (false, fault),
    };
    Finding {
        what: "redis",
        ok,
        message,
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
