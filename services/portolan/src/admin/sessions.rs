//! Signed-in browsers.

use std::process::ExitCode;

use anyhow::{Context, Result};
use portolan_model::id::SessionId;
use portolan_storage::{
    accounts::browser_sessions::{self, EndReason},
    platform::operators::{self, SessionRow},
};
use serde_json::{Value, json};

use super::{
    desk::Desk,
    table::{Table, text_if, when},
    users,
};

/// Commands for sessions.
#[derive(Debug, clap::Subcommand)]
pub enum SessionsCommand {
    /// Lists live sessions, the last used first.
    List {
        /// Only of this person: id (usr_…) or address.
        #[arg(long)]
        user: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Ends one session.
    Revoke {
        /// Its id (ses_…).
        session: SessionId,
    },
}

/// Runs one.
pub async fn run(desk: &Desk, command: &SessionsCommand) -> Result<ExitCode> {
    let mut tx = desk.begin().await?;
    match command {
        SessionsCommand::List { user, limit } => {
            let user = match user {
                Some(name) => Some(users::find(desk, &mut tx, name).await?.id),
                None => None,
            };
            let sessions =
                operators::sessions(&mut tx, user, None, i64::from(*limit), desk.now()).await?;
            desk.show(
                &sessions.iter().map(facts).collect::<Vec<_>>(),
                table(&sessions),
            )?;
            Ok(ExitCode::SUCCESS)
        }
        SessionsCommand::Revoke { session } => {
            let found = operators::sessions(&mut tx, None, Some(*session), 1, desk.now())
                .await?
                .pop()
                .with_context(|| format!("there is no live session {session}"))?;
            browser_sessions::end_one(
                &mut tx,
                found.user,
                *session,
                EndReason::Operator,
                desk.now(),
            )
            .await?;
            desk.record(
                &mut tx,
                None,
                "session.ended",
                ("session", session.to_string()),
                json!({ "user": found.user }),
            )
            .await?;
            tx.commit().await?;
            desk.done(
                &format!("Session {session} of {} was ended.", found.user),
                json!({ "id": session, "user": found.user, "ended": true }),
            )
        }
    }
}

pub(super) fn facts(session: &SessionRow) -> Value {
    json!({
        "id": session.id,
        "user": session.user,
        "email": session.email,
        "created_at": when(session.created_at),
        "last_seen_at": when(session.last_seen_at),
        "amr": session.amr,
        "network": session.ip_block,
        "browser": session.ua_label,
    })
}

pub(super) fn table(sessions: &[SessionRow]) -> Table {
    let mut table = Table::new(&[
        "ID",
        "USER",
        "ADDRESS",
        "BROWSER",
        "NETWORK",
        "SIGNED IN BY",
        "LAST USED",
    ]);
    for session in sessions {
        table.row([
            session.id.to_string(),
            session.user.to_string(),
            text_if(session.email.as_deref()),
            text_if(session.ua_label.as_deref()),
            text_if(session.ip_block.as_deref()),
            session.amr.join("+"),
            when(session.last_seen_at),
        ]);
    }
    table
}
