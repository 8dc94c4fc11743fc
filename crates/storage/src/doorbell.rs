//! A channel of the database that says no more than that something was committed: whoever hears it looks at the rows.

use std::time::Duration;

use sqlx::postgres::PgListener;

use crate::{StorageError, Store};

/// While the database does not answer.
const AGAIN: Duration = Duration::from_secs(5);

/// Rings when something was committed, by whatever process. Who misses it finds the rows at the next look.
#[derive(Debug)]
pub struct Doorbell {
    store: Store,
    channel: &'static str,
    listener: Option<PgListener>,
}

impl Doorbell {
    /// Listens to `channel` from the first [`Doorbell::rang`] on.
    pub(crate) fn new(store: &Store, channel: &'static str) -> Self {
        Self {
            store: store.clone(),
            channel,
            listener: None,
        }
    }

    /// Waits for the next ring, and rings too when the connection was away. Cancel safe. While the database does not answer it tries
    /// once in five seconds.
    pub async fn rang(&mut self) {
        loop {
            if let Some(listener) = &mut self.listener {
                match listener.try_recv().await {
                    Ok(Some(_)) => return,
                    Ok(None) | Err(_) => self.listener = None,
                }
            }
            match self.listen().await {
                Ok(listener) => {
                    self.listener = Some(listener);
                    return;
                }
                Err(error) => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        channel = self.channel,
                        "cannot listen to the database"
                    );
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn listen(&self) -> Result<PgListener, StorageError> {
        let mut listener = PgListener::connect_with(self.store.pool()).await?;
        listener.listen(self.channel).await?;
        Ok(listener)
    }
}
