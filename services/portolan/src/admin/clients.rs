//! OAuth clients, and what people allowed them to do.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context, Result, bail};
use portolan_model::id::{ApiKeyId, GrantId, TenantId};
use portolan_storage::{
    SystemTx,
    oauth::connected_apps::{self, ConnectedApp, Ended, Which},
    platform::operators::{self, AccessChange, ClientRow},
};
use serde_json::{Value, json};

use super::{
    desk::Desk,
    table::{Table, when, when_if},
    tenants, users,
};
use crate::output::say;

/// Commands for clients.
#[derive(Debug, clap::Subcommand)]
pub enum ClientsCommand {
    /// Lists clients, those in most use first.
    List {
        /// Only those with this text in their name or id.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Shows one client and who uses it.
    Show {
        /// Its id on the wire: an opaque text, or the URL of its metadata document.
        client: String,
    },
    /// Refuses a client from now on, everywhere, and ends what people allowed it.
    Disable {
        /// Its id on the wire.
        client: String,
    },
    /// Lets a client in again. People have to connect it again.
    Enable {
        /// Its id on the wire.
        client: String,
    },
}

/// Commands for grants.
#[derive(Debug, clap::Subcommand)]
pub enum GrantCommand {
    /// Lists live grants; at least one part must be named.
    List(GrantFilter),
    /// Ends live grants with their refresh and access tokens; at least one part must be named.
    Revoke(GrantFilter),
}

/// Which grants.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub struct GrantFilter {
    /// This one (gr_…).
    #[arg(long)]
    grant: Option<GrantId>,
    /// Of this person: id (usr_…) or address.
    #[arg(long)]
    user: Option<String>,
    /// In this workspace: id (ten_…) or slug.
    #[arg(long)]
    tenant: Option<String>,
    /// Of this client, by its id on the wire.
    #[arg(long)]
    client: Option<String>,
}

/// Runs one.
pub async fn run(desk: &Desk, command: &ClientsCommand) -> Result<ExitCode> {
    match command {
        ClientsCommand::List { search, limit } => {
            let mut tx = desk.begin().await?;
            let clients =
                operators::clients(&mut tx, None, search.as_deref(), i64::from(*limit)).await?;
            let mut table = Table::new(&[
                "CLIENT", "NAME", "KIND", "STATUS", "APPS", "PEOPLE", "SINCE",
            ]);
            for client in &clients {
                table.row([
                    client.client_id.clone(),
                    client.name.clone(),
                    client.kind.clone(),
                    client.status.clone(),
                    client.apps.to_string(),
                    client.people.to_string(),
                    when(client.created_at),
                ]);
            }
            desk.show(&clients.iter().map(facts).collect::<Vec<_>>(), table)?;
            Ok(ExitCode::SUCCESS)
        }
        ClientsCommand::Show { client } => show(desk, client).await,
        ClientsCommand::Disable { client } => set_blocked(desk, client, AccessChange::Stop).await,
        ClientsCommand::Enable { client } => set_blocked(desk, client, AccessChange::Restore).await,
    }
}

async fn find(tx: &mut SystemTx, client_id: &str) -> Result<ClientRow> {
    operators::clients(tx, Some(client_id), None, 1)
        .await?
        .pop()
        .with_context(|| format!("there is no client {client_id}"))
}

fn facts(client: &ClientRow) -> Value {
    json!({
        "id": client.id,
        "client_id": client.client_id,
        "name": client.name,
        "kind": client.kind,
        "auth_method": client.auth_method,
        "status": client.status,
        "created_at": when(client.created_at),
        "apps": client.apps,
        "people": client.people,
    })
}

async fn show(desk: &Desk, client_id: &str) -> Result<ExitCode> {
    let mut tx = desk.begin().await?;
    let client = find(&mut tx, client_id).await?;
    let which = Which {
        client: Some(client.id),
        ..Which::default()
    };
    let apps = connected_apps::list(&mut tx, which, desk.now()).await?;
    let mut all = facts(&client);
    if desk.is_json {
        all["connected_apps"] = apps.iter().map(grant_facts).collect();
        return desk.done("", all);
    }
    let mut table = Table::new(&["", ""]);
    for (name, value) in [
        ("Client", client.client_id.clone()),
        ("Name", client.name.clone()),
        ("Kind", client.kind.clone()),
        ("Proves itself by", client.auth_method.clone()),
        ("Status", client.status.clone()),
        ("Since", when(client.created_at)),
    ] {
        table.row([name.to_owned(), value]);
    }
    say(table.to_string().trim_start());
    say(&format!("\nConnected apps\n{}", grant_table(&apps)));
    Ok(ExitCode::SUCCESS)
}

async fn set_blocked(desk: &Desk, client_id: &str, change: AccessChange) -> Result<ExitCode> {
    let blocked = change == AccessChange::Stop;
    let client = find(&mut desk.begin().await?, client_id).await?;
    if blocked {
        desk.confirm(&format!(
            "{} people will lose {} connections with {}.",
            client.people, client.apps, client.name
        ))?;
    }
    let mut tx = desk.begin().await?;
    let client = find(&mut tx, client_id).await?;
    // A command that was interrupted may have left apps of a client that is blocked.
    let has_more = blocked && client.apps > 0;
    if !operators::set_blocked(&mut tx, client.id, change).await? && !has_more {
        bail!("{client_id} is {}: nothing was changed", client.status);
    }
    let action = if blocked {
        "client.blocked"
    } else {
        "client.unblocked"
    };
    desk.record(
        &mut tx,
        None,
        action,
        ("client", client.client_id.clone()),
        json!({ "name": client.name, "apps": client.apps }),
    )
    .await?;
    // It is refused from here on, however long the rest takes.
    tx.commit().await?;
    let apps = if blocked {
        end_client(desk, &client).await?
    } else {
        0
    };
    let word = if blocked { "blocked" } else { "active" };
    desk.done(
        &format!("{client_id} is {word}; {apps} connected apps were ended."),
        json!({ "client_id": client_id, "status": word, "apps": apps }),
    )
}

/// Ends what people allowed a client: one by one and not by the client's name, which nodes would
/// refuse for hours after it is let in again.
async fn end_client(desk: &Desk, client: &ClientRow) -> Result<usize> {
    let which = Which {
        client: Some(client.id),
        ..Which::default()
    };
    let why = "client_blocked";
    let mut apps = 0;
    loop {
        let mut tx = desk.begin().await?;
        let ended = connected_apps::end_some(&mut tx, which, why, desk.now()).await?;
        if ended.apps() == 0 {
            return Ok(apps);
        }
        record_ended(desk, &mut tx, &ended, why).await?;
        tx.commit().await?;
        apps += ended.apps();
    }
}

/// Runs one.
pub async fn run_grants(desk: &Desk, command: &GrantCommand) -> Result<ExitCode> {
    match command {
        GrantCommand::List(filter) => {
            let mut tx = desk.begin().await?;
            let which = which(desk, &mut tx, filter).await?;
            let apps = connected_apps::list(&mut tx, which, desk.now()).await?;
            desk.show(
                &apps.iter().map(grant_facts).collect::<Vec<_>>(),
                grant_table(&apps),
            )?;
            Ok(ExitCode::SUCCESS)
        }
        GrantCommand::Revoke(filter) => {
            let which = which(desk, &mut desk.begin().await?, filter).await?;
            desk.confirm("Apps will have to be connected again.")?;
            let mut tx = desk.begin().await?;
            let ended = end(desk, &mut tx, which, "operator").await?;
            desk.record(
                &mut tx,
                None,
                "grants.revoked",
                ("platform", "grants".to_owned()),
                json!({
                    "grant": filter.grant, "user": which.user, "tenant": which.tenant, "client": filter.client, "apps": ended,
                }),
            )
            .await?;
            tx.commit().await?;
            desk.done(
                &format!("{ended} connected apps were ended."),
                json!({ "apps": ended }),
            )
        }
    }
}

async fn which(desk: &Desk, tx: &mut SystemTx, filter: &GrantFilter) -> Result<Which> {
    let mut which = Which {
        grant: filter.grant,
        ..Which::default()
    };
    if let Some(name) = &filter.user {
        which.user = Some(users::find(desk, tx, name).await?.id);
    }
    if let Some(name) = &filter.tenant {
        which.tenant = Some(tenants::find(tx, name).await?.id);
    }
    if let Some(name) = &filter.client {
        which.client = Some(find(tx, name).await?.id);
    }
    Ok(which)
}

/// Ends grants with their tokens, and writes that to the logs of the workspaces. Returns the number
/// of apps.
pub(super) async fn end(desk: &Desk, tx: &mut SystemTx, which: Which, why: &str) -> Result<usize> {
    let ended = connected_apps::end(tx, which, why, desk.now()).await?;
    record_ended(desk, tx, &ended, why).await?;
    Ok(ended.apps())
}

/// AUTH-M8: each workspace finds in its log what was ended there.
async fn record_ended(desk: &Desk, tx: &mut SystemTx, ended: &Ended, why: &str) -> Result<()> {
    let mut tenants: BTreeMap<TenantId, (Vec<GrantId>, Vec<ApiKeyId>)> = BTreeMap::new();
    for (grant, tenant) in &ended.grants {
        tenants.entry(*tenant).or_default().0.push(*grant);
    }
    for (key, tenant) in &ended.keys {
        tenants.entry(*tenant).or_default().1.push(*key);
    }
    for (tenant, (grants, keys)) in tenants {
        if !grants.is_empty() {
            // Long lists would fill the log: the first ones name the rest.
            let first = &grants[..grants.len().min(20)];
            desk.record(
                tx,
                Some(tenant),
                "grants.revoked",
                ("tenant", tenant.to_string()),
                json!({ "why": why, "grants": grants.len(), "first": first }),
            )
            .await?;
        }
        for key in keys {
            desk.record(
                tx,
                Some(tenant),
                "api_key.revoked",
                ("api_key", key.to_string()),
                json!({ "why": why }),
            )
            .await?;
        }
    }
    Ok(())
}

pub(super) fn grant_facts(app: &ConnectedApp) -> Value {
    json!({
        "id": app.grant,
        "tenant": app.tenant,
        "tenant_name": app.tenant_name,
        "user": app.user,
        "email": app.user_email,
        "client_id": app.client_id,
        "client_name": app.client_name,
        "scopes": app.scopes,
        "resource": app.resource,
        "created_at": when(app.created_at),
        "last_used_at": app.last_used_at.map(when),
        "expires_at": when(app.expires_at),
        "refreshes": app.refreshes,
    })
}

pub(super) fn grant_table(apps: &[ConnectedApp]) -> Table {
    let mut table = Table::new(&[
        "GRANT",
        "CLIENT",
        "PERSON",
        "WORKSPACE",
        "RESOURCE",
        "LAST USED",
    ]);
    for app in apps {
        table.row([
            app.grant.to_string(),
            app.client_name.clone(),
            app.user_email.clone(),
            app.tenant_name.clone(),
            app.resource.clone(),
            when_if(app.last_used_at),
        ]);
    }
    table
}
