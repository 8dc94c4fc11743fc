//! People.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use portolan_model::{email::EmailAddress, id::UserId};
use portolan_storage::{
    SystemTx,
    accounts::{
        browser_sessions::{self, EndReason},
        identities, passkeys, second_factors,
    },
    oauth::{
        connected_apps::{self, Which},
        grants::REVOCATION_MEMORY,
        revocations::{self, New, RevocationKind},
    },
    platform::operators::{self, AccessChange, People, Person},
};
use serde_json::{Value, json};

use super::{
    clients,
    desk::Desk,
    table::{Table, text_if, when, when_if},
};
use crate::output::say;

/// Commands for people.
#[derive(Debug, clap::Subcommand)]
pub enum UsersCommand {
    /// Lists people, the newest first.
    List {
        /// Only those with this text in their name or address.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Shows one person: account, sessions, connected apps.
    Show {
        /// Id (usr_…) or address.
        user: String,
    },
    /// Locks a person out: sign-in, every session, every connected app, every access token.
    Disable {
        /// Id (usr_…) or address.
        user: String,
    },
    /// Lets a locked person sign in again. Apps have to be connected again.
    Enable {
        /// Id (usr_…) or address.
        user: String,
    },
    /// Ends every session of a person.
    SignOut {
        /// Id (usr_…) or address.
        user: String,
        /// Their connected apps too.
        #[arg(long)]
        apps: bool,
    },
    /// Removes a person's second factor and recovery codes, if they lost both, and ends their
    /// sessions.
    RemoveSecondFactor {
        /// Id (usr_…) or address.
        user: String,
    },
    /// Removes a person's passkeys, if they lost a device or did not add them, and ends
    /// their sessions.
    RemovePasskeys {
        /// Id (usr_…) or address.
        user: String,
    },
    /// Removes the accounts elsewhere by which a person signs in, if they lost one or did not
    /// connect it, and ends their sessions.
    RemoveIdentities {
        /// Id (usr_…) or address.
        user: String,
    },
}

/// Runs one.
pub async fn run(desk: &Desk, command: &UsersCommand) -> Result<ExitCode> {
    match command {
        UsersCommand::List { search, limit } => list(desk, search.as_deref(), *limit).await,
        UsersCommand::Show { user } => show(desk, user).await,
        UsersCommand::Disable { user } => set_locked(desk, user, AccessChange::Stop).await,
        UsersCommand::Enable { user } => set_locked(desk, user, AccessChange::Restore).await,
        UsersCommand::SignOut { user, apps } => sign_out(desk, user, *apps).await,
        UsersCommand::RemoveSecondFactor { user } => remove_second_factor(desk, user).await,
        UsersCommand::RemovePasskeys { user } => remove_passkeys(desk, user).await,
        UsersCommand::RemoveIdentities { user } => remove_identities(desk, user).await,
    }
}

/// The person that an id or a proved address names.
pub(super) async fn find(desk: &Desk, tx: &mut SystemTx, name: &str) -> Result<Person> {
    let address = EmailAddress::parse(name).ok();
    let which = match (name.parse::<UserId>(), &address) {
        (Ok(id), _) => People {
            id: Some(id),
            ..People::default()
        },
        (_, Some(address)) => People {
            address_norm: Some(address.normalised()),
            ..People::default()
        },
        _ => bail!("{name:?} is neither an id (usr_…) nor an address"),
    };
    operators::people(tx, which, 1, desk.now())
        .await?
        .pop()
        .with_context(|| format!("there is no person {name}"))
}

fn facts(person: &Person) -> Value {
    json!({
        "id": person.id,
        "name": person.display_name,
        "email": person.email,
        "status": person.status,
        "created_at": when(person.created_at),
        "verified_at": person.verified_at.map(when),
        "last_login_at": person.last_login_at.map(when),
        "sessions": person.sessions,
        "workspaces": person.workspaces,
        "apps": person.apps,
        "second_factor": person.has_second_factor,
    })
}

async fn list(desk: &Desk, search: Option<&str>, limit: u16) -> Result<ExitCode> {
    let mut tx = desk.begin().await?;
    let which = People {
        text: search,
        ..People::default()
    };
    let people = operators::people(&mut tx, which, i64::from(limit), desk.now()).await?;
    let mut table = Table::new(&[
        "ID",
        "ADDRESS",
        "NAME",
        "STATUS",
        "SESSIONS",
        "APPS",
        "LAST SIGN-IN",
    ]);
    for person in &people {
        table.row([
            person.id.to_string(),
            text_if(person.email.as_deref()),
            person.display_name.clone(),
            status(person).to_owned(),
            person.sessions.to_string(),
            person.apps.to_string(),
            when_if(person.last_login_at),
        ]);
    }
    desk.show(&people.iter().map(facts).collect::<Vec<_>>(), table)?;
    Ok(ExitCode::SUCCESS)
}

fn status(person: &Person) -> &str {
    if person.verified_at.is_none() && person.status == "active" {
        "unconfirmed"
    } else {
        &person.status
    }
}

async fn show(desk: &Desk, name: &str) -> Result<ExitCode> {
    let mut tx = desk.begin().await?;
    let person = find(desk, &mut tx, name).await?;
    let sessions = operators::sessions(&mut tx, Some(person.id), None, 100, desk.now()).await?;
    let which = Which {
        user: Some(person.id),
        ..Which::default()
    };
    let apps = connected_apps::list(&mut tx, which, desk.now()).await?;
    let passkeys = passkeys::count(&mut tx, person.id, None).await?;
    let identities = identities::of_user(&mut tx, person.id).await?;
    if desk.is_json {
        let mut all = facts(&person);
        all["passkeys"] = passkeys.into();
        all["identities"] = identities
            .iter()
            .map(|identity| json!({ "provider": identity.provider, "label": identity.label }))
            .collect();
        all["live_sessions"] = sessions.iter().map(super::sessions::facts).collect();
        all["connected_apps"] = apps.iter().map(clients::grant_facts).collect();
        return desk.done("", all);
    }
    let mut table = Table::new(&["", ""]);
    for (name, value) in [
        ("Id", person.id.to_string()),
        ("Name", person.display_name.clone()),
        ("Address", text_if(person.email.as_deref())),
        ("Status", status(&person).to_owned()),
        ("Since", when(person.created_at)),
        ("Last sign-in", when_if(person.last_login_at)),
        ("Workspaces", person.workspaces.to_string()),
        (
            "Second factor",
            if person.has_second_factor {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
        ),
        ("Passkeys", passkeys.to_string()),
        ("Accounts elsewhere", identities.len().to_string()),
    ] {
        table.row([name.to_owned(), value]);
    }
    say(table.to_string().trim_start());
    say(&format!(
        "\nSessions\n{}",
        super::sessions::table(&sessions)
    ));
    say(&format!(
        "\nConnected apps\n{}",
        clients::grant_table(&apps)
    ));
    Ok(ExitCode::SUCCESS)
}

/// AUTH-R7: a person who is locked has no sessions and no apps, and unlocking brings neither back
/// (CASE-126).
async fn set_locked(desk: &Desk, name: &str, change: AccessChange) -> Result<ExitCode> {
    let locked = change == AccessChange::Stop;
    let person = find(desk, &mut desk.begin().await?, name).await?;
    if locked {
        desk.confirm(&format!(
            "{} will be signed out everywhere and lose {} connected apps.",
            person.id, person.apps
        ))?;
    }
    let mut tx = desk.begin().await?;
    let person = find(desk, &mut tx, &person.id.to_string()).await?;
    let Some(epoch) = operators::set_locked(&mut tx, person.id, change).await? else {
        bail!("{} is {}: nothing was changed", person.id, status(&person));
    };
    let now = desk.now();
    let mut detail = json!({});
    if locked {
        let apps = clients::end(desk, &mut tx, of(person.id), "user_locked").await?;
        let sessions = end_sessions(desk, &mut tx, person.id).await?;
        detail = json!({ "sessions": sessions, "apps": apps });
    }
    let revocation = New {
        kind: RevocationKind::User,
        reference: &person.id.to_string(),
        tenant: None,
        epoch: Some(epoch),
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(&mut tx, &revocation).await?;
    let action = if locked {
        "user.locked"
    } else {
        "user.unlocked"
    };
    desk.record(
        &mut tx,
        None,
        action,
        ("user", person.id.to_string()),
        detail,
    )
    .await?;
    tx.commit().await?;
    let word = if locked { "locked" } else { "active" };
    desk.done(
        &format!("{} is {word}.", person.id),
        json!({ "id": person.id, "status": word }),
    )
}

/// Ends the sessions of a person and their personal tokens. Returns the number of sessions. Logs of
/// tenants are written before this: it writes to the platform's.
async fn end_sessions(desk: &Desk, tx: &mut SystemTx, user: UserId) -> Result<u64> {
    let reason = EndReason::Operator;
    let ended = browser_sessions::end_all(tx, user, None, reason, desk.now()).await?;
    for token in ended.tokens {
        desk.record(
            tx,
            None,
            "access_token.revoked",
            ("access_token", token.id.to_string()),
            json!({ "name": token.name, "user": user }),
        )
        .await?;
    }
    Ok(ended.sessions)
}

fn of(user: UserId) -> Which {
    Which {
        user: Some(user),
        ..Which::default()
    }
}

async fn sign_out(desk: &Desk, name: &str, with_apps: bool) -> Result<ExitCode> {
    let person = find(desk, &mut desk.begin().await?, name).await?;
    if with_apps {
        desk.confirm(&format!(
            "{} apps of {} will have to be connected again.",
            person.apps, person.id
        ))?;
    }
    let mut tx = desk.begin().await?;
    let person = find(desk, &mut tx, &person.id.to_string()).await?;
    let apps = if with_apps {
        clients::end(desk, &mut tx, of(person.id), "operator").await?
    } else {
        0
    };
    let sessions = end_sessions(desk, &mut tx, person.id).await?;
    let detail = json!({ "sessions": sessions, "apps": apps });
    desk.record(
        &mut tx,
        None,
        "user.signed_out",
        ("user", person.id.to_string()),
        detail.clone(),
    )
    .await?;
    tx.commit().await?;
    desk.done(
        &format!("{sessions} sessions and {apps} connected apps were ended."),
        detail,
    )
}

async fn remove_passkeys(desk: &Desk, name: &str) -> Result<ExitCode> {
    let person = find(desk, &mut desk.begin().await?, name).await?;
    desk.confirm(&format!(
        "No passkey will open the account of {} any more. What is left is the password, or the mailbox for a new one.",
        person.id
    ))?;
    let mut tx = desk.begin().await?;
    let person = find(desk, &mut tx, &person.id.to_string()).await?;
    let removed = passkeys::remove_all(&mut tx, person.id).await?;
    if removed == 0 {
        bail!("{} has no passkey", person.id);
    }
    let sessions = end_sessions(desk, &mut tx, person.id).await?;
    desk.record(
        &mut tx,
        None,
        "passkey.removed",
        ("user", person.id.to_string()),
        json!({ "passkeys": removed, "sessions": sessions }),
    )
    .await?;
    tx.commit().await?;
    desk.done(
        &format!("{removed} passkeys of {} are removed.", person.id),
        json!({ "id": person.id, "passkeys": 0 }),
    )
}

/// AUTH-F6, for an operator: also of the only way in, because a password can be set by mail.
async fn remove_identities(desk: &Desk, name: &str) -> Result<ExitCode> {
    let person = find(desk, &mut desk.begin().await?, name).await?;
    desk.confirm(&format!(
        "No account elsewhere will open the account of {} any more. What is left is the password or a passkey, or the mailbox for a new password.",
        person.id
    ))?;
    let mut tx = desk.begin().await?;
    let person = find(desk, &mut tx, &person.id.to_string()).await?;
    let providers: Vec<String> = identities::of_user(&mut tx, person.id)
        .await?
        .into_iter()
        .map(|identity| identity.provider)
        .collect();
    let removed = identities::unlink_all(&mut tx, person.id).await?;
    if removed == 0 {
        bail!("{} has connected no account elsewhere", person.id);
    }
    let sessions = end_sessions(desk, &mut tx, person.id).await?;
    desk.record(
        &mut tx,
        None,
        "identity.removed",
        ("user", person.id.to_string()),
        json!({ "providers": providers, "sessions": sessions }),
    )
    .await?;
    tx.commit().await?;
    desk.done(
        &format!("{removed} accounts elsewhere of {} are removed.", person.id),
        json!({ "id": person.id, "identities": 0, "removed": removed }),
    )
}

async fn remove_second_factor(desk: &Desk, name: &str) -> Result<ExitCode> {
    let person = find(desk, &mut desk.begin().await?, name).await?;
    desk.confirm(&format!(
        "The password alone will open the account of {}.",
        person.id
    ))?;
    let mut tx = desk.begin().await?;
    let person = find(desk, &mut tx, &person.id.to_string()).await?;
    if !second_factors::remove(&mut tx, person.id).await? {
        bail!("{} has no second factor", person.id);
    }
    let sessions = end_sessions(desk, &mut tx, person.id).await?;
    desk.record(
        &mut tx,
        None,
        "second_factor.removed",
        ("user", person.id.to_string()),
        json!({ "sessions": sessions }),
    )
    .await?;
    tx.commit().await?;
    desk.done(
        &format!("{} has no second factor any more.", person.id),
        json!({ "id": person.id, "second_factor": false }),
    )
}
