//! Reading an account's tokens, and renewing them by one node at a time (AUTH-3.5, CASE-167).

use std::{sync::Arc, time::Duration};

use portolan_model::Timestamp;
use portolan_storage::{
    StorageError,
    registry::upstream_oauth::{self as stored, ConnectedAccount, Refreshed},
};
use portolan_upstream::oauth::{AuthorizationServer, Grant, OauthError, redeem};
use tokio::time::{Instant, sleep};

use crate::{Account, Connections, Held, MARGIN, NoToken, Token, TokenName, open, seal};

/// How long the right to renew is held, in seconds: longer than a request to a token endpoint may
/// take.
const LEASE: u16 = 30;
/// Longest wait for a renewal by another task or node.
const LONGEST_WAIT: Duration = Duration::from_secs(35);
/// Between two looks whether it is done.
const STEP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// Between two attempts to keep tokens that were renewed.
const WRITE_AGAIN: Duration = Duration::from_millis(500);

type RenewedToken = Result<(Token, Timestamp), NoToken>;

impl Connections {
    /// The tokens as they are kept, renewed if they are about to expire or are those that were
    /// refused.
    pub(crate) async fn ask(
        &self,
        account: Account,
        address: Arc<str>,
        refused: Option<TokenName>,
        remembered: Option<Token>,
    ) -> RenewedToken {
        let give_up = Instant::now() + LONGEST_WAIT;
        let mut step = STEP.0;
        loop {
            let mut tx = self.0.store.node(account.tenant).await?;
            let row = stored::connection(&mut tx, account.source, account.owner).await?;
            drop(tx);
            let row = row
                .filter(|row| row.address == *address)
                .ok_or(NoToken::NotConnected)?;
            if row.status != "ok" {
                return Err(NoToken::NeedsSignIn);
            }
            let now = self.0.clock.now();
            if refused != Some(TokenName::of(&row)) && row.expires_at - MARGIN > now {
                let until = row.expires_at - MARGIN;
                // Not opened again while it is the same.
                if let Some(token) = remembered.filter(|token| token.name == TokenName::of(&row)) {
                    return Ok((token, until));
                }
                let held = self.open(&account, &row)?;
                return Ok((token_of(&held, &row), until));
            }
            if let Some(found) = self.renew(&account, &row, refused).await? {
                return Ok(found);
            }
            // Another task or node renews them, or just did.
            if Instant::now() > give_up {
                return Err(NoToken::Server(Arc::new(OauthError::Unusable(
                    "token answer",
                ))));
            }
            sleep(step).await;
            step = (step * 2).min(STEP.1);
        }
    }

    fn open(&self, account: &Account, row: &ConnectedAccount) -> Result<Held, NoToken> {
        let (keys, now) = (&self.0.keys, self.0.clock.now());
        let held = open(
            keys,
            account.tenant,
            &row.key,
            (row.id, row.version),
            &row.sealed,
            now,
        );
        Ok(held?)
    }

    /// The token that nothing follows, until it expires. Then the account needs a sign-in.
    async fn used_up(
        &self,
        account: &Account,
        row: &ConnectedAccount,
        held: &Held,
        refused: Option<TokenName>,
    ) -> RenewedToken {
        let now = self.0.clock.now();
        // The last seconds of a token that nothing follows are used too.
        if refused.is_none() && row.expires_at > now {
            return Ok((token_of(held, row), row.expires_at));
        }
        let mut tx = self.0.store.node(account.tenant).await?;
        stored::needs_sign_in(&mut tx, row, "expired", None).await?;
        tx.commit().await?;
        Err(NoToken::NeedsSignIn)
    }

    /// Renews the tokens. `None` if another task or node renews them.
    async fn renew(
        &self,
        account: &Account,
        row: &ConnectedAccount,
        refused: Option<TokenName>,
    ) -> Result<Option<(Token, Timestamp)>, NoToken> {
        let store = &self.0.store;
        let held = self.open(account, row)?;
        if !held.is_renewable() {
            return self.used_up(account, row, &held, refused).await.map(Some);
        }
        let lease_ends = Instant::now() + Duration::from_secs(LEASE.into());
        let mut tx = store.node(account.tenant).await?;
        let lease = stored::begin_refresh(&mut tx, row, LEASE.into()).await?;
        tx.commit().await?;
        let Some(lease) = lease else {
            return Ok(None);
        };
        let server: AuthorizationServer =
            serde_json::from_value(row.server.clone()).map_err(|_| NoToken::Broken)?;
        let grant = match &held.refresh {
            Some(token) => Grant::Refresh { token },
            None => Grant::ClientCredentials,
        };
        // RFC 6749 §6: a refresh without a scope keeps the granted scopes; client credentials send
        // it each time.
        let scope = held
            .refresh
            .is_none()
            .then_some(row.scope.as_deref())
            .flatten();
        let resource = row.resource.as_deref();
        let now = self.0.clock.now();
        let answered = redeem(
            &self.0.egress,
            &server,
            &held.client,
            grant,
            resource,
            scope,
            now,
        )
        .await;
        let tokens = match answered {
            Ok(tokens) => tokens,
            Err(error) => {
                let about = (row, &held, lease);
                return self.not_renewed(account, about, refused, error).await;
            }
        };
        let now = self.0.clock.now();
        let expires_at = now + tokens.life;
        let granted = tokens.scope.clone();
        let held = held.with(tokens);
        let version = row.version + 1;
        let sealed = seal(
            &self.0.keys,
            account.tenant,
            &row.key,
            (row.id, version),
            &held,
            now,
        )?;
        let new = Refreshed {
            sealed: &sealed,
            key: row.key.id,
            scope: granted.as_deref(),
            expires_at,
        };
        let kept = self.keep_until(lease_ends, account, row, &new, now).await?;
        tracing::debug!(tenant.id = %account.tenant, source.id = %account.source, "tokens of an upstream account were renewed");
        Ok(kept.then(|| {
            // A token of a few seconds is used for most of them.
            let until = (expires_at - MARGIN).max(now + (expires_at - now) / 2);
            (issued(&held, row, version, now), until)
        }))
    }

    /// Commits the tokens before they are used; false if the account was disconnected meanwhile. A
    /// rotated refresh token cannot be obtained a second time, so the write is retried until the end
    /// of the lease. The version ensures that it is applied once.
    async fn keep_until(
        &self,
        lease_ends: Instant,
        account: &Account,
        row: &ConnectedAccount,
        new: &Refreshed<'_>,
        now: Timestamp,
    ) -> Result<bool, NoToken> {
        loop {
            match self.keep(account, row, new, now).await {
                Ok(kept) => return Ok(kept),
                Err(error) if Instant::now() < lease_ends => {
                    tracing::warn!(tenant.id = %account.tenant, source.id = %account.source, reason = %error, "renewed tokens are not kept yet");
                    sleep(WRITE_AGAIN).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn keep(
        &self,
        account: &Account,
        row: &ConnectedAccount,
        new: &Refreshed<'_>,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        let mut tx = self.0.store.node(account.tenant).await?;
        let kept = stored::refreshed(&mut tx, row, new, now).await?;
        tx.commit().await?;
        Ok(kept)
    }

    async fn not_renewed(
        &self,
        account: &Account,
        (row, held, lease): (&ConnectedAccount, &Held, Timestamp),
        refused: Option<TokenName>,
        error: OauthError,
    ) -> Result<Option<(Token, Timestamp)>, NoToken> {
        tracing::info!(tenant.id = %account.tenant, source.id = %account.source, kind = error.kind(), reason = %error,
            "tokens of an upstream account could not be renewed");
        let mut tx = self.0.store.node(account.tenant).await?;
        // A client that the server no longer knows is replaced at the next sign-in.
        let reason = match &error {
            error if error.is_final() => Some("ended"),
            error if error.is_unknown_client() => Some("client"),
            _ => None,
        };
        if let Some(reason) = reason {
            stored::needs_sign_in(&mut tx, row, reason, Some(lease)).await?;
            tx.commit().await?;
            return Err(NoToken::NeedsSignIn);
        }
        stored::not_refreshed(&mut tx, row, lease).await?;
        tx.commit().await?;
        let now = self.0.clock.now();
        if refused.is_none() && row.expires_at > now {
            return Ok(Some((token_of(held, row), row.expires_at)));
        }
        Err(NoToken::Server(Arc::new(error)))
    }
}

fn token_of(held: &Held, row: &ConnectedAccount) -> Token {
    issued(
        held,
        row,
        row.version,
        row.refreshed_at.unwrap_or(row.connected_at),
    )
}

/// A token of a version that the row may not have yet.
fn issued(held: &Held, row: &ConnectedAccount, version: i32, issued_at: Timestamp) -> Token {
    Token {
        access: held.access.as_str().into(),
        name: TokenName {
            connection: row.id,
            version,
        },
        address: row.address.as_str().into(),
        is_renewable: held.is_renewable(),
        issued_at,
    }
}
