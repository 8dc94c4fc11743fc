//! Listens on database channels whose notifications say only that a transaction committed. The
//! receiver reads the rows.

use std::time::Duration;

use sqlx::postgres::PgListener;

use crate::{StorageError, Store};

/// While the database does not answer.
const AGAIN: Duration = Duration::from_secs(5);

/// Rings when something was committed, by whatever process. Who misses it finds the rows at the
/// next look.
#[derive(Debug)]
pub struct NotificationListener {
    store: Store,
    channels: &'static [&'static str],
    listener: Option<PgListener>,
}

impl NotificationListener {
    /// Listens to `channels` from the first [`NotificationListener::notified`] on.
    pub(crate) fn new(store: &Store, channels: &'static [&'static str]) -> Self {
        Self {
            store: store.clone(),
            channels,
            listener: None,
        }
    }

    /// Waits for the next notification and returns its channel. Returns `None` after a lost
    /// connection, because any channel may have been notified meanwhile. Cancel safe. While the
    /// database does not answer, it retries every five seconds.
    pub async fn notified(&mut self) -> Option<&'static str> {
        loop {
            if let Some(listener) = &mut self.listener {
                match listener.try_recv().await {
                    Ok(Some(ring)) => {
                        return self
                            .channels
                            .iter()
                            .copied()
                            .find(|channel| *channel == ring.channel());
                    }
                    Ok(None) | Err(_) => self.listener = None,
                }
            }
            match self.listen().await {
                Ok(listener) => {
                    self.listener = Some(listener);
                    return None;
                }
                Err(error) => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        channels = ?self.channels,
                        "cannot listen to the database"
                    );
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn listen(&self) -> Result<PgListener, StorageError> {
        let mut listener = PgListener::connect_with(self.store.pool()).await?;
        listener.listen_all(self.channels.iter().copied()).await?;
        Ok(listener)
    }
}
