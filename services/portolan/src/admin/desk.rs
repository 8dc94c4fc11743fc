//! Database, keys and operator that every command works with, and how a command ends.

use std::{
    fmt,
    io::{IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Result;
use portolan_keys::Keys;
use portolan_model::{
    Clock, Timestamp,
    audit::{Actor, Event, Outcome},
    id::TenantId,
};
use portolan_storage::{
    Reason, Store, SystemTx,
    platform::audit::{self as log, Origin},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::table::Table;
use crate::output::say;

/// What every command works with.
#[derive(Debug)]
pub struct Desk {
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) clock: Clock,
    pub(super) is_json: bool,
    pub(super) is_confirmed: bool,
    pub(super) reason: Option<String>,
    pub(super) operator: String,
}

impl Desk {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn begin(&self) -> Result<SystemTx> {
        Ok(self.store.system(Reason::Operator).await?)
    }

    /// Writes what was done into the audit log of `tenant`, or of the platform.
    pub(super) async fn record(
        &self,
        tx: &mut SystemTx,
        tenant: Option<TenantId>,
        action: &'static str,
        target: (&'static str, String),
        mut detail: Value,
    ) -> Result<()> {
        detail["operator"] = json!(self.operator);
        if let Some(reason) = &self.reason {
            detail["reason"] = json!(reason);
        }
        let event = Event {
            tenant,
            actor: Actor::Operator,
            action,
            target_kind: target.0,
            target_id: target.1,
            outcome: Outcome::Ok,
            detail,
        };
        Ok(log::record(tx, &event, &Origin::default(), self.now()).await?)
    }

    /// Continues if `--yes` was given or the operator confirms at the terminal.
    pub(super) fn confirm(&self, what: &str) -> Result<()> {
        if self.is_confirmed {
            return Ok(());
        }
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            eprint!("{what} Go on? [y/N] ");
            std::io::stderr().flush()?;
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            if matches!(line.trim(), "y" | "Y" | "yes") {
                return Ok(());
            }
        }
        Err(NotConfirmed(what.to_owned()).into())
    }

    /// Prints a list.
    pub(super) fn show(&self, items: &[impl Serialize], table: Table) -> Result<()> {
        if self.is_json {
            say(&serde_json::to_string_pretty(items)?);
        } else {
            say(&table.to_string());
        }
        Ok(())
    }

    /// Prints what was done.
    pub(super) fn done(&self, sentence: &str, facts: Value) -> Result<ExitCode> {
        if self.is_json {
            say(&serde_json::to_string_pretty(&facts)?);
        } else {
            say(sentence);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Something was not confirmed.
#[derive(Debug)]
pub(super) struct NotConfirmed(String);

impl fmt::Display for NotConfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Say --yes to do it.", self.0)
    }
}

impl std::error::Error for NotConfirmed {}
