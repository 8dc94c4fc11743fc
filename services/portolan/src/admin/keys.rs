//! Keys that sign access tokens (AUTH-J1 to AUTH-J3).

use std::process::ExitCode;

use anyhow::{Result, bail};
use portolan_keys::ring::{KeyState, KeyTimes};
use portolan_model::Timestamp;
use portolan_oauth::jwks;
use portolan_storage::oauth::signing_keys::{self, KnownKey};
use serde_json::{Value, json};

use super::{
    desk::Desk,
    table::{Table, when},
};

/// Commands for signing keys.
#[derive(Debug, clap::Subcommand)]
pub enum KeysCommand {
    /// Lists the keys, the newest first.
    List,
    /// Lets the standby take over as planned: it signs when it has been published for a day, the
    /// present key stays published until its last token is over. No client notices.
    Rotate,
    /// Removes a key in an emergency: the tokens it signed are refused at once, on all nodes.
    /// Clients renew theirs without a new sign-in.
    Revoke {
        /// Its id, as in the list.
        // It is base64url: one in sixty-four begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        kid: String,
    },
}

/// Runs one.
pub async fn run(desk: &Desk, command: &KeysCommand) -> Result<ExitCode> {
    match command {
        KeysCommand::List => {
            let keys = known(desk).await?;
            let mut table = Table::new(&[
                "KEY",
                "STATE",
                "PUBLISHED",
                "SIGNS FROM",
                "SIGNS UNTIL",
                "GONE",
            ]);
            for key in &keys {
                table.row([
                    key.kid.clone(),
                    state(key, desk.now()).to_owned(),
                    when(key.publish_at),
                    when(key.sign_from),
                    when(key.sign_until),
                    when(key.gone_at),
                ]);
            }
            let facts: Vec<Value> = keys.iter().map(|key| facts(key, desk.now())).collect();
            desk.show(&facts, table)?;
            Ok(ExitCode::SUCCESS)
        }
        KeysCommand::Rotate => rotate(desk).await,
        KeysCommand::Revoke { kid } => revoke(desk, kid).await,
    }
}

async fn known(desk: &Desk) -> Result<Vec<KnownKey>> {
    Ok(signing_keys::known(&mut desk.begin().await?).await?)
}

fn state(key: &KnownKey, now: Timestamp) -> &'static str {
    if key.denied_at.is_some() {
        return "removed";
    }
    let times = KeyTimes {
        publish_at: key.publish_at,
        sign_from: key.sign_from,
        sign_until: key.sign_until,
        gone_at: key.gone_at,
    };
    match times.state(now) {
        KeyState::Pending => "standby",
        KeyState::Active => "signs",
        KeyState::Retiring => "retiring",
        KeyState::Retired => "gone",
    }
}

fn facts(key: &KnownKey, now: Timestamp) -> Value {
    json!({
        "kid": key.kid,
        "state": state(key, now),
        "created_at": when(key.created_at),
        "publish_at": when(key.publish_at),
        "sign_from": when(key.sign_from),
        "sign_until": when(key.sign_until),
        "gone_at": when(key.gone_at),
        "removed_at": key.denied_at.map(when),
    })
}

async fn rotate(desk: &Desk) -> Result<ExitCode> {
    let now = desk.now();
    let mut tx = desk.begin().await?;
    let standby = jwks::hand_over(&mut tx, &desk.keys, now).await?;
    desk.record(
        &mut tx,
        None,
        "signing_key.rotated",
        ("signing_key", standby.kid.clone()),
        json!({ "sign_from": when(standby.sign_from) }),
    )
    .await?;
    tx.commit().await?;
    let sentence = if standby.sign_from <= now {
        format!("{} signs from now on.", standby.kid)
    } else {
        format!(
            "{} is published and signs from {} on.",
            standby.kid,
            when(standby.sign_from)
        )
    };
    desk.done(
        &sentence,
        json!({ "kid": standby.kid, "sign_from": when(standby.sign_from) }),
    )
}

async fn revoke(desk: &Desk, kid: &str) -> Result<ExitCode> {
    let known = known(desk).await?;
    let Some(key) = known.iter().find(|key| key.kid == kid) else {
        bail!("there is no key {kid} (portolan admin keys list)");
    };
    let was = state(key, desk.now());
    if was == "removed" {
        bail!("{kid} was removed before");
    }
    desk.confirm(&format!(
        "Every access token that {kid} signed will be refused at once; clients renew theirs."
    ))?;
    let mut tx = desk.begin().await?;
    let signs = jwks::remove(&mut tx, &desk.keys, kid, desk.now()).await?;
    desk.record(
        &mut tx,
        None,
        "signing_key.removed",
        ("signing_key", kid.to_owned()),
        json!({ "was": was, "signs": signs }),
    )
    .await?;
    tx.commit().await?;
    desk.done(
        &format!("{kid} is removed; {signs} signs."),
        json!({ "kid": kid, "state": "removed", "signs": signs }),
    )
}
