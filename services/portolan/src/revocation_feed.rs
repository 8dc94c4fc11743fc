//! Reads the shared state that every process needs: verification keys and revocations.
//!
//! Both are read from Postgres, in one process and in separate ones alike. In a single process the
//! authorization service also notifies its own node at once. Other nodes learn of changes from the
//! feed. Every node learns of an operator's commands from it.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use portolan_cluster::{Revocations, revocations::Revocation};
use portolan_keys::{Jwks, PublicJwk, Verifier};
use portolan_model::{Clock, Timestamp};
use portolan_storage::{
    Reason, Store,
    oauth::{
        revocations::{self, RevocationKind},
        signing_keys,
    },
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::lifecycle::Lifecycle;

/// Poll interval for revocations when no notification arrives (AUTH-4.3: refused everywhere within
/// a second).
const REVOCATIONS: Duration = Duration::from_millis(500);
/// Timeout of one read.
const PATIENCE: Duration = Duration::from_secs(6);
/// Poll interval for the keys. New ones are published a day before they sign.
const KEYS: Duration = Duration::from_secs(60);
/// Rows commit out of order: each read goes back this far. A writer's transaction is shorter; to
/// read a row twice does no harm.
const OVERLAP: time::Duration = time::Duration::MINUTE;

/// Reads for one node.
#[derive(Debug)]
pub(crate) struct RevocationFeed {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) verifier: Verifier,
    pub(crate) revocations: Revocations,
    /// Notified after each read of the keys, so that the signer reads its own keys, too.
    pub(crate) keys_were_read: Arc<Notify>,
}

impl RevocationFeed {
    /// Reads everything once, so that a node is not ready before it knows what is revoked; then
    /// goes on until no call runs any more: a token that is revoked while the process drains is
    /// refused too.
    pub(crate) async fn start(self, life: &Lifecycle) -> anyhow::Result<()> {
        self.read_keys().await?;
        let mut seen = self.read_revocations(None).await?;
        let stop = life.drained.clone();
        life.tasks.spawn(async move {
            let mut listener = revocations::listener(&self.store);
            let mut revocations = tokio::time::interval(REVOCATIONS);
            let mut keys = tokio::time::interval(KEYS);
            revocations.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            keys.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                let outcome = tokio::select! {
                    () = stop.cancelled() => return,
                    channel = listener.notified() => self.hear(channel, &mut seen).await,
                    _ = revocations.tick() => self.look(&mut seen).await,
                    _ = keys.tick() => in_time(self.read_keys()).await,
                };
                if let Err(error) = outcome {
                    // Old keys and known revocations stay in force; the readiness probe reports
                    // that the database is unavailable.
                    tracing::warn!("feed: {error:#}");
                }
            }
        });
        Ok(())
    }

    /// Reads after a notification; `channel` as returned by
    /// [`portolan_storage::NotificationListener::notified`].
    async fn hear(&self, channel: Option<&str>, seen: &mut Timestamp) -> anyhow::Result<()> {
        if channel != Some(revocations::REVOKED) {
            in_time(self.read_keys()).await?;
        }
        if channel != Some(revocations::SIGNING_KEYS) {
            self.look(seen).await?;
        }
        Ok(())
    }

    async fn look(&self, seen: &mut Timestamp) -> anyhow::Result<()> {
        *seen = in_time(self.read_revocations(Some(*seen - OVERLAP))).await?;
        Ok(())
    }

    async fn read_keys(&self) -> anyhow::Result<()> {
        let mut tx = self.store.edge(Reason::KeyRotation).await?;
        let now = self.clock.now();
        // Also what is published only later: nothing is signed with it before, and a clock that is
        // behind must not leave out what is in use (TEST-F13).
        let keys = signing_keys::list_public(&mut tx, now)
            .await?
            .into_iter()
            .map(serde_json::from_value)
            .collect::<Result<Vec<PublicJwk>, _>>()?;
        self.verifier.set_keys(&Jwks { keys })?;
        metrics::counter!("verification_keys_read_total").increment(1);
        self.keys_were_read.notify_one();
        Ok(())
    }

    /// Returns the database's time up to which everything committed has been seen: another
    /// machine's clock may be another.
    async fn read_revocations(&self, since: Option<Timestamp>) -> anyhow::Result<Timestamp> {
        let asked = Instant::now();
        let mut tx = self.store.edge(Reason::Revocations).await?;
        let live = revocations::live(&mut tx, since, self.clock.now()).await?;
        for row in live.entries {
            match event(&row) {
                Some(event) => self.revocations.insert(event, row.expires_at),
                None => tracing::error!(row.seq, "a revocation cannot be read"),
            }
        }
        self.revocations.heard(asked);
        Ok(live.read_at)
    }
}

/// A connection can be dead without telling: the next look takes another one.
async fn in_time<T>(look: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    timeout(PATIENCE, look)
        .await
        .context("the database does not answer in time")?
}

/// A row as an event; `None` if its reference is none.
fn event(row: &revocations::Revocation) -> Option<Revocation> {
    let reference = row.reference.as_str();
    Some(match row.kind {
        RevocationKind::Jti => Revocation::Token(reference.parse().ok()?),
        RevocationKind::Grant => Revocation::Grant(reference.parse().ok()?),
        RevocationKind::Client => Revocation::Client(reference.to_owned()),
        RevocationKind::Kid => Revocation::Key(reference.to_owned()),
        RevocationKind::User => Revocation::User {
            user: reference.parse().ok()?,
            epoch: row.epoch?,
        },
        RevocationKind::Service => Revocation::Service {
            account: reference.parse().ok()?,
            epoch: row.epoch?,
        },
        RevocationKind::Tenant => Revocation::Tenant {
            tenant: reference.parse().ok()?,
            epoch: row.epoch?,
        },
        RevocationKind::Member => {
            let (tenant, user) = reference.split_once('/')?;
            Revocation::Member {
                tenant: tenant.parse().ok()?,
                user: user.parse().ok()?,
                epoch: row.epoch?,
            }
        }
    })
}
