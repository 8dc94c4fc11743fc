//! Limits the whole cluster to one fetch of a metadata document at a time (AUTH-C2, CASE-85).
//!
//! A row names the node that fetches. Waiting nodes find the document that it stored. A fetch that
//! fails frees the row for the next node, and the row of a dead node expires.

use std::time::Duration;

use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError,
    oauth::{client_fetches, clients::Client},
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::clients::metadata_document::cached;

/// How long a turn lasts: a fetch has its own deadline of five seconds, and its result has to be
/// stored.
const AT_MOST: Duration = Duration::from_secs(8);

/// Pause between two polls of a waiting node: at first, and at most.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// The result of waiting for the turn.
pub(crate) enum Turn {
    /// The turn is ours: fetch, and give it back.
    Fetch(Uuid),
    /// Another node stored a fresh document.
    Found(Box<Client>),
    /// Others fetched for longer than a request should wait.
    Busy,
}

/// Waits for the turn to fetch the document, or for the document. A waiting node only reads; it
/// writes when the turn is free.
pub(crate) async fn wait(state: &AuthState, url: &str) -> Result<Turn, StorageError> {
    let end = Instant::now() + 2 * AT_MOST;
    let mut pause = LOOK_AGAIN.0;
    loop {
        let holder = at_once(state, url).await?;
        // Read with the turn too: the node before may have stored the document since the last poll.
        if let Some((client, document)) = cached(state, url).await?
            && state.now() < document.fresh_until
        {
            if let Some(holder) = holder {
                give_back(state, url, holder).await;
            }
            return Ok(Turn::Found(Box::new(client)));
        }
        if let Some(holder) = holder {
            return Ok(Turn::Fetch(holder));
        }
        if Instant::now() >= end {
            return Ok(Turn::Busy);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOOK_AGAIN.1);
    }
}

/// Takes the turn if it is free.
pub(crate) async fn at_once(state: &AuthState, url: &str) -> Result<Option<Uuid>, StorageError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    if !client_fetches::is_free(&mut tx, url).await? {
        return Ok(None);
    }
    let holder = Uuid::now_v7();
    let is_ours = client_fetches::claim(&mut tx, url, holder, AT_MOST).await?;
    tx.commit().await?;
    Ok(is_ours.then_some(holder))
}

/// Frees the turn. If that fails, the next node waits until the turn expires; the fetched document
/// stays valid.
pub(crate) async fn give_back(state: &AuthState, url: &str, holder: Uuid) {
    let released = async {
        let mut tx = state.store.system(Reason::OAuth).await?;
        client_fetches::release(&mut tx, url, holder).await?;
        tx.commit().await
    };
    if let Err(error) = released.await {
        tracing::warn!(error = %portolan_site::error_chain::chain(&error), "the turn to fetch a document was not given back");
    }
}
