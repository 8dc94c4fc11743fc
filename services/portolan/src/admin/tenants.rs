//! Workspaces (AUTH-M6, AUTH-F7).

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use portolan_model::id::TenantId;
use portolan_storage::{
    SystemTx,
    accounts::{
        endings::{self, Ending},
        single_sign_on,
    },
    platform::operators::{self, Tenant},
};
use serde_json::{Value, json};

use super::{
    desk::Desk,
    table::{Table, text_if, when, when_if},
};
use crate::output::say;

/// Commands for workspaces.
#[derive(Debug, clap::Subcommand)]
pub enum TenantsCommand {
    /// Lists workspaces, the newest first.
    List {
        /// Only those with this text in their name or address.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Shows one workspace.
    Show {
        /// Id (ten_…) or slug.
        tenant: String,
    },
    /// Stops a workspace: its servers, its tokens, its console. Nothing is lost.
    Disable {
        /// Id (ten_…) or slug.
        tenant: String,
        /// Message that its members see.
        #[arg(long, value_name = "TEXT", default_value = "")]
        message: String,
    },
    /// Lets a stopped workspace work again.
    Enable {
        /// Id (ten_…) or slug.
        tenant: String,
    },
    /// Stops a workspace and destroys it after 30 days: credentials, registry, members, grants. Its
    /// addresses are never given away. One that its owner deleted cannot be restored by them any
    /// more.
    Delete {
        /// Id (ten_…) or slug.
        tenant: String,
    },
    /// Takes a deletion back, as long as the 30 days are not over.
    Restore {
        /// Id (ten_…) or slug.
        tenant: String,
    },
    /// Turns off sign-in by a workspace's own provider, if the provider locks the workspace out.
    /// Its settings are kept: an admin turns it on by saving it again.
    SsoOff {
        /// Id (ten_…) or slug.
        tenant: String,
    },
}

/// Runs one.
pub async fn run(desk: &Desk, command: &TenantsCommand) -> Result<ExitCode> {
    match command {
        TenantsCommand::List { search, limit } => list(desk, search.as_deref(), *limit).await,
        TenantsCommand::Show { tenant } => {
            let mut tx = desk.begin().await?;
            let tenant = find(&mut tx, tenant).await?;
            show(desk, &tenant)
        }
        TenantsCommand::Disable { tenant, message } => {
            change(desk, tenant, Ending::Suspend(message), "tenant.suspended").await
        }
        TenantsCommand::Enable { tenant } => {
            change(desk, tenant, Ending::Resume, "tenant.resumed").await
        }
        TenantsCommand::Delete { tenant } => {
            change(desk, tenant, Ending::Evict, "tenant.deletion_began").await
        }
        TenantsCommand::Restore { tenant } => {
            change(desk, tenant, Ending::Restore, "tenant.restored").await
        }
        TenantsCommand::SsoOff { tenant } => turn_sso_off(desk, tenant).await,
    }
}

/// The workspace that an id or a slug names, also one of former times.
pub(super) async fn find(tx: &mut SystemTx, name: &str) -> Result<Tenant> {
    let found = match name.parse::<TenantId>() {
        Ok(id) => operators::tenants(tx, Some(id), None, None, 1).await?,
        Err(_) => operators::tenants(tx, None, Some(name), None, 1).await?,
    };
    found
        .into_iter()
        .next()
        .with_context(|| format!("there is no workspace {name}"))
}

fn facts(tenant: &Tenant) -> Value {
    json!({
        "id": tenant.id,
        "slug": tenant.slug,
        "name": tenant.name,
        "status": tenant.status,
        "created_at": when(tenant.created_at),
        "suspended_at": tenant.suspended_at.map(when),
        "message": tenant.suspend_reason,
        "delete_after": tenant.delete_after.map(when),
        "members": tenant.members,
        "servers": tenant.servers,
        "apps": tenant.apps,
    })
}

async fn list(desk: &Desk, search: Option<&str>, limit: u16) -> Result<ExitCode> {
    let mut tx = desk.begin().await?;
    let tenants = operators::tenants(&mut tx, None, None, search, i64::from(limit)).await?;
    let mut table = Table::new(&[
        "ID", "SLUG", "NAME", "STATUS", "MEMBERS", "SERVERS", "APPS", "SINCE",
    ]);
    for tenant in &tenants {
        table.row([
            tenant.id.to_string(),
            text_if(tenant.slug.as_deref()),
            tenant.name.clone(),
            tenant.status.clone(),
            tenant.members.to_string(),
            tenant.servers.to_string(),
            tenant.apps.to_string(),
            when(tenant.created_at),
        ]);
    }
    desk.show(&tenants.iter().map(facts).collect::<Vec<_>>(), table)?;
    Ok(ExitCode::SUCCESS)
}

fn show(desk: &Desk, tenant: &Tenant) -> Result<ExitCode> {
    if desk.is_json {
        return desk.done("", facts(tenant));
    }
    let mut table = Table::new(&["", ""]);
    for (name, value) in [
        ("Id", tenant.id.to_string()),
        ("Slug", text_if(tenant.slug.as_deref())),
        ("Name", text_if(Some(&tenant.name))),
        ("Status", tenant.status.clone()),
        ("Since", when(tenant.created_at)),
        ("Suspended", when_if(tenant.suspended_at)),
        (
            "Members are told",
            text_if(tenant.suspend_reason.as_deref()),
        ),
        ("Deleted after", when_if(tenant.delete_after)),
        ("Members", tenant.members.to_string()),
        ("Published servers", tenant.servers.to_string()),
        ("Connected apps", tenant.apps.to_string()),
    ] {
        table.row([name.to_owned(), value]);
    }
    say(table.to_string().trim_start());
    Ok(ExitCode::SUCCESS)
}

async fn change(
    desk: &Desk,
    name: &str,
    ending: Ending<'_>,
    action: &'static str,
) -> Result<ExitCode> {
    let tenant = find(&mut desk.begin().await?, name).await?;
    let shown = tenant.slug.unwrap_or_else(|| name.to_owned());
    match ending {
        Ending::Suspend(_) => desk.confirm(&format!(
            "{} servers of {shown} will refuse every call.",
            tenant.servers
        ))?,
        Ending::Delete | Ending::Evict => desk.confirm(&format!(
            "Everything in {shown} will be destroyed in 30 days: {} members, {} servers, all credentials.",
            tenant.members, tenant.servers
        ))?,
        Ending::Resume | Ending::TakeBack | Ending::Restore => {}
    }
    let mut tx = desk.begin().await?;
    let tenant = find(&mut tx, &tenant.id.to_string()).await?;
    if !endings::apply(&mut tx, tenant.id, ending, desk.now()).await? {
        bail!("{shown} is {}: nothing was changed", tenant.status);
    }
    desk.record(
        &mut tx,
        Some(tenant.id),
        action,
        ("tenant", tenant.id.to_string()),
        json!({ "slug": tenant.slug, "from": tenant.status }),
    )
    .await?;
    let after = find(&mut tx, &tenant.id.to_string()).await?;
    tx.commit().await?;
    let sentence = match after.delete_after {
        Some(at) => format!(
            "{shown} is stopped and will be destroyed after {}.",
            when(at)
        ),
        None => format!("{shown} is {}.", after.status),
    };
    desk.done(&sentence, facts(&after))
}

/// AUTH-F7: who came by the provider alone has no session and no app any more, as after its removal
/// in the console (AUTH-R7).
async fn turn_sso_off(desk: &Desk, name: &str) -> Result<ExitCode> {
    let tenant = find(&mut desk.begin().await?, name).await?;
    let shown = tenant.slug.unwrap_or_else(|| name.to_owned());
    desk.confirm(&format!(
        "Nobody will sign in to {shown} by its own provider, and who did is signed out. What is left is the password, or the mailbox for a new one."
    ))?;
    let (mut tx, now) = (desk.begin().await?, desk.now());
    let Some(provider) = single_sign_on::turn_off(&mut tx, tenant.id, now).await? else {
        bail!("{shown} has no provider of its own that is on: nothing was changed");
    };
    let sessions = single_sign_on::end_confined(&mut tx, tenant.id, now).await?;
    let apps = single_sign_on::end_others(&mut tx, tenant.id, now)
        .await?
        .len();
    desk.record(
        &mut tx,
        Some(tenant.id),
        "sso.turned_off",
        ("provider", provider.to_string()),
        json!({ "sessions": sessions, "apps_disconnected": apps }),
    )
    .await?;
    tx.commit().await?;
    desk.done(
        &format!(
            "The provider of {shown} is off; {sessions} sessions and {apps} connected apps were ended."
        ),
        json!({ "id": tenant.id, "provider": provider, "sessions": sessions, "apps": apps }),
    )
}
