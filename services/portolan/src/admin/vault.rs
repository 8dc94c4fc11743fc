//! Counts the secrets that are sealed under the master secret, and reseals them when it changes
//! (AUTH-3.5, AUTH-J5).

use std::process::ExitCode;

use anyhow::Result;
use portolan_keys::{OpenError, Purpose, vault::data_key_owner};
use portolan_storage::{
    SystemTx,
    platform::sealed::{self, Sealed, SealedColumn},
};
use serde_json::json;

use super::{desk::Desk, table::Table};
use crate::output::say;

/// Rows in one transaction.
const BATCH: i64 = 200;

/// Commands for sealed secrets.
#[derive(Debug, clap::Subcommand)]
pub enum VaultCommand {
    /// Says how much is sealed under the present master secret, and how much under a former one.
    Status,
    /// Seals everything again that is under a former master secret (master_secret_previous), which
    /// is not needed afterwards.
    Rewrap,
}

/// The counts for one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    current: u64,
    former: u64,
    failed: u64,
    rewrapped: u64,
}

const KINDS: [&str; 3] = ["data keys of workspaces", "signing keys", "second factors"];

/// Runs one.
pub async fn run(desk: &Desk, command: &VaultCommand) -> Result<ExitCode> {
    let rewraps = matches!(command, VaultCommand::Rewrap);
    let mut counts = [Count::default(); 3];
    let mut after = (None, None);
    loop {
        let mut tx = desk.begin().await?;
        let rows = sealed::data_keys(&mut tx, after.0, BATCH).await?;
        after.0 = rows.last().and_then(|row| match &row.place {
            SealedColumn::DataKey(tenant, id) => Some((*tenant, *id)),
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
            SealedColumn::SecondFactor(user) => Some(*user),
            _ => None,
        });
        if rows.is_empty() {
            break;
        }
        batch(desk, tx, &rows, &mut counts[2], rewraps).await?;
    }
    let mut table = Table::new(&[
        "SEALED",
        "UNDER THE PRESENT SECRET",
        "UNDER A FORMER ONE",
        "DO NOT OPEN",
    ]);
    let mut facts = Vec::new();
    for (kind, count) in KINDS.into_iter().zip(counts) {
        table.row([
            kind.to_owned(),
            count.current.to_string(),
            count.former.to_string(),
            count.failed.to_string(),
        ]);
        facts.push(json!({
            "kind": kind, "current": count.current, "former": count.former, "failed": count.failed, "rewrapped": count.rewrapped,
        }));
    }
    desk.show(&facts, table)?;
    if !rewraps {
        return Ok(ExitCode::SUCCESS);
    }
    if counts.iter().any(|count| count.former + count.failed > 0) {
        eprintln!(
            "portolan: not everything is under the present master secret: master_secret_previous must stay. What was changed at the same \
             time is sealed again by another `vault rewrap`; what does not open needs the master secret that it is under."
        );
        return Ok(ExitCode::FAILURE);
    }
    if !desk.is_json {
        let rewrapped: u64 = counts.iter().map(|count| count.rewrapped).sum();
        say(&format!(
            "{rewrapped} values were sealed again. Let a week go by before master_secret_previous goes: sessions of MCP clients and \
             recovery codes are read under it. Recovery codes that are older do not work afterwards."
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts, and seals again, each as it opens: one that does not must keep no other one under a
/// former secret.
async fn batch(
    desk: &Desk,
    mut tx: SystemTx,
    rows: &[Sealed],
    count: &mut Count,
    rewraps: bool,
) -> Result<()> {
    let mut rewrapped = 0;
    for row in rows {
        if desk.keys.is_current(&row.bytes) {
            count.current += 1;
            continue;
        }
        let resealed = match reseal(desk, row) {
            Ok(resealed) => resealed,
            Err(error) => {
                count.failed += 1;
                eprintln!("portolan: {} does not open: {error}", place(&row.place));
                continue;
            }
        };
        if rewraps && sealed::put(&mut tx, row, &resealed).await? {
            count.current += 1;
            rewrapped += 1;
        } else {
            count.former += 1;
        }
    }
    if rewrapped > 0 {
        desk.record(
            &mut tx,
            None,
            "vault.rewrapped",
            ("platform", "vault".to_owned()),
            json!({ "values": rewrapped }),
        )
        .await?;
    }
    tx.commit().await?;
    count.rewrapped += rewrapped;
    Ok(())
}

fn reseal(desk: &Desk, row: &Sealed) -> Result<Vec<u8>, OpenError> {
    let (keys, now) = (&desk.keys, desk.now());
    match &row.place {
        SealedColumn::DataKey(tenant, id) => keys.rewrap_data_key(
            &data_key_owner(*tenant.uuid_bytes(), *id.as_bytes()),
            &row.bytes,
            now,
        ),
        SealedColumn::SigningKey(kid) => {
            keys.reseal(Purpose::SigningKey, &row.bytes, kid.as_bytes(), now)
        }
        SealedColumn::SecondFactor(user) => {
            keys.reseal(Purpose::SecondFactor, &row.bytes, user.uuid_bytes(), now)
        }
    }
}

/// For an operator.
fn place(place: &SealedColumn) -> String {
    match place {
        SealedColumn::DataKey(tenant, id) => format!("data key {id} of {tenant}"),
        SealedColumn::SigningKey(kid) => format!("signing key {kid}"),
        SealedColumn::SecondFactor(user) => format!("the second factor of {user}"),
    }
}
