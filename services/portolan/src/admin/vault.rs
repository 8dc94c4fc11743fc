//! What is sealed under the master secret, and the change of that (`auth.md` §3.5, J5).

use std::process::ExitCode;

use anyhow::{Context, Result};
use portolan_keys::{Purpose, vault::data_key_owner};
use portolan_storage::{
    SystemTx,
    sealed::{self, Place, Sealed},
};
use serde_json::json;

use super::{Desk, table::Table};

/// Rows in one transaction.
const BATCH: i64 = 200;

/// What can be done.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Says how much is sealed under the present master secret, and how much under a former one.
    Status,
    /// Seals everything again that is under a former master secret (master_secret_previous), which is not needed afterwards.
    Rewrap,
}

/// What was found of one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    current: u64,
    former: u64,
    rewrapped: u64,
}

const KINDS: [&str; 3] = ["data keys of workspaces", "signing keys", "second factors"];

/// Runs one.
pub async fn run(desk: &Desk, command: &Command) -> Result<ExitCode> {
    let rewraps = matches!(command, Command::Rewrap);
    let mut counts = [Count::default(); 3];
    let mut after = (None, None);
    loop {
        let mut tx = desk.begin().await?;
        let rows = sealed::data_keys(&mut tx, after.0, BATCH).await?;
        after.0 = rows.last().and_then(|row| match &row.place {
            Place::DataKey(tenant, id) => Some((*tenant, *id)),
            _ => None,
        });
        if rows.is_empty() {
            break;
        }
        batch(desk, tx, &rows, &mut counts[0], rewraps).await?;
    }
    let mut tx = desk.begin().await?;
    let rows = sealed::signing_keys(&mut tx).await?;
    batch(desk, tx, &rows, &mut counts[1], rewraps).await?;
    loop {
        let mut tx = desk.begin().await?;
        let rows = sealed::second_factors(&mut tx, after.1, BATCH).await?;
        after.1 = rows.last().and_then(|row| match &row.place {
            Place::SecondFactor(user) => Some(*user),
            _ => None,
        });
        if rows.is_empty() {
            break;
        }
        batch(desk, tx, &rows, &mut counts[2], rewraps).await?;
    }
    let rewrapped: u64 = counts.iter().map(|count| count.rewrapped).sum();
    if rewraps {
        let mut tx = desk.begin().await?;
        desk.record(
            &mut tx,
            None,
            "vault.rewrapped",
            ("platform", "vault".to_owned()),
            json!({ "values": rewrapped }),
        )
        .await?;
        tx.commit().await?;
    }
    let mut table = Table::new(&["SEALED", "UNDER THE PRESENT SECRET", "UNDER A FORMER ONE"]);
    let mut facts = Vec::new();
    for (kind, count) in KINDS.into_iter().zip(counts) {
        let (current, former) = (
            count.current + count.rewrapped,
            count.former - count.rewrapped,
        );
        table.row([kind.to_owned(), current.to_string(), former.to_string()]);
        facts.push(json!({ "kind": kind, "current": current, "former": former, "rewrapped": count.rewrapped }));
    }
    desk.show(&facts, table)?;
    if rewraps && !desk.is_json {
        crate::say(&format!(
            "{rewrapped} values were sealed again. Let a week go by before master_secret_previous goes: sessions of MCP clients and \
             recovery codes are read under it. Recovery codes that are older do not work afterwards."
        ));
    }
    Ok(ExitCode::SUCCESS)
}

async fn batch(
    desk: &Desk,
    mut tx: SystemTx,
    rows: &[Sealed],
    count: &mut Count,
    rewraps: bool,
) -> Result<()> {
    for row in rows {
        if desk.keys.is_current(&row.bytes) {
            count.current += 1;
            continue;
        }
        count.former += 1;
        if !rewraps {
            continue;
        }
        let now = desk.now();
        let resealed = match &row.place {
            Place::DataKey(tenant, id) => desk.keys.rewrap_data_key(
                &data_key_owner(*tenant.uuid_bytes(), *id.as_bytes()),
                &row.bytes,
                now,
            ),
            Place::SigningKey(kid) => {
                desk.keys
                    .reseal(Purpose::SigningKey, &row.bytes, kid.as_bytes(), now)
            }
            Place::SecondFactor(user) => {
                desk.keys
                    .reseal(Purpose::SecondFactor, &row.bytes, user.uuid_bytes(), now)
            }
        };
        let resealed = resealed.with_context(|| {
            format!(
                "{:?} opens under neither master_secret nor master_secret_previous",
                row.place
            )
        })?;
        if sealed::put(&mut tx, row, &resealed).await? {
            count.rewrapped += 1;
        }
    }
    Ok(tx.commit().await?)
}
