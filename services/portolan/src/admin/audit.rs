//! The audit log: are its chains whole?

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use portolan_keys::digest;
use portolan_model::{
    audit_chain::{ChainFault, Walk},
    id::TenantId,
};
use portolan_storage::platform::audit_chain::{self, Chain};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{desk::Desk, table::Table, tenants};
use crate::output::say;

/// Entries read at once.
const BATCH: i64 = 500;
/// Faults reported per chain; further ones are only counted.
const TOLD: usize = 20;

/// Commands for the audit log.
#[derive(Debug, clap::Subcommand)]
pub enum AuditCommand {
    /// Walks along every chain of the log and says what was edited, removed or moved. Exit code 3
    /// if anything was.
    Verify {
        /// Only the log of this workspace: id (ten_…) or slug.
        #[arg(long)]
        tenant: Option<String>,
        /// Output of an earlier `verify --json`: the chains must still lead through the ends that
        /// they had then. Finds a log that was cut off or made anew.
        #[arg(long, value_name = "FILE")]
        since: Option<PathBuf>,
    },
}

/// The result for one chain.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    /// `None` is the platform's log.
    tenant: Option<TenantId>,
    slug: Option<String>,
    entries: i64,
    /// SHA-256 of the last entry, base64.
    head: String,
    faults: Vec<String>,
}

/// Runs one.
pub async fn run(desk: &Desk, command: &AuditCommand) -> Result<ExitCode> {
    let AuditCommand::Verify { tenant, since } = command;
    let mut tx = desk.begin().await?;
    let only = match tenant {
        Some(name) => Some(tenants::find(&mut tx, name).await?.id),
        None => None,
    };
    let mut known = match since {
        Some(path) => earlier(path)?,
        None => KnownHeads::new(),
    };
    let mut chains = audit_chain::list(&mut tx, only).await?;
    let mut unchained: BTreeMap<Option<TenantId>, i64> = audit_chain::unchained(&mut tx, only)
        .await?
        .into_iter()
        .collect();
    drop(tx);
    // A chain that is gone as a whole is no less of a fault.
    for tenant in known.keys().chain(unchained.keys()) {
        if chains.iter().all(|chain| chain.tenant != *tenant) && (only.is_none() || *tenant == only)
        {
            chains.push(Chain {
                tenant: *tenant,
                slug: None,
                length: 0,
            });
        }
    }
    let mut verdicts = Vec::new();
    for chain in chains {
        let known = known.remove(&chain.tenant).filter(|(seq, _)| *seq > 0);
        let mut verdict = walk(desk, &chain, known).await?;
        if let Some(count) = unchained.remove(&chain.tenant) {
            verdict
                .faults
                .push(ChainFault::Unchained { count }.to_string());
        }
        verdicts.push(verdict);
    }
    desk.show(&verdicts, table(&verdicts))?;
    if !desk.is_json {
        for verdict in &verdicts {
            for fault in &verdict.faults {
                let name = verdict.slug.as_deref().unwrap_or("platform");
                say(&format!("{name}: {fault}"));
            }
        }
    }
    let mut tx = desk.begin().await?;
    let faults: usize = verdicts.iter().map(|verdict| verdict.faults.len()).sum();
    desk.record(
        &mut tx,
        only,
        "audit.verified",
        ("platform", "audit".to_owned()),
        json!({ "chains": verdicts.len(), "faults": faults }),
    )
    .await?;
    tx.commit().await?;
    Ok(if faults == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}

/// Entries and last digest of each log.
type KnownHeads = BTreeMap<Option<TenantId>, (i64, Vec<u8>)>;

/// The heads that an earlier run printed.
fn earlier(path: &Path) -> Result<KnownHeads> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let verdicts: Vec<Verdict> = serde_json::from_str(&text)
        .with_context(|| format!("{} is not what `verify --json` prints", path.display()))?;
    verdicts
        .into_iter()
        .map(|verdict| {
            let head = STANDARD_NO_PAD.decode(&verdict.head)?;
            Ok((verdict.tenant, (verdict.entries, head)))
        })
        .collect()
}

fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&["LOG", "ENTRIES", "END", ""]);
    for verdict in verdicts {
        let name = match (&verdict.slug, verdict.tenant) {
            (Some(slug), _) => slug.clone(),
            (None, Some(tenant)) => tenant.to_string(),
            (None, None) => "platform".to_owned(),
        };
        table.row([
            name,
            verdict.entries.to_string(),
            verdict.head.chars().take(16).collect(),
            if verdict.faults.is_empty() {
                "whole".to_owned()
            } else {
                "NOT WHOLE".to_owned()
            },
        ]);
    }
    table
}

async fn walk(desk: &Desk, chain: &Chain, known: Option<(i64, Vec<u8>)>) -> Result<Verdict> {
    let mut walk = Walk::new(known);
    let mut faults = Vec::new();
    let mut more = 0;
    loop {
        let mut tx = desk.begin().await?;
        let links = audit_chain::links(&mut tx, chain.tenant, walk.head().0, BATCH).await?;
        if links.is_empty() {
            break;
        }
        for link in &links {
            for fault in walk.step(link, |bytes| *digest(bytes).as_bytes()) {
                if faults.len() < TOLD {
                    faults.push(fault.to_string());
                } else {
                    more += 1;
                }
            }
        }
    }
    let (entries, head) = walk.head();
    let head = STANDARD_NO_PAD.encode(head);
    faults.extend(walk.end().map(|fault| fault.to_string()));
    if more > 0 {
        faults.push(format!("and {more} more"));
    }
    Ok(Verdict {
        tenant: chain.tenant,
        slug: chain.slug.clone(),
        entries,
        head,
        faults,
    })
}
