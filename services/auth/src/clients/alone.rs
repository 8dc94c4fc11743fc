//! One fetch of a metadata document at a time in the whole cluster (`auth.md` C2, case 85): a row says who fetches. Whoever waits finds what
//! the other one stored; a fetch that failed lets the next one try, and so does a node that died.

use std::time::Duration;

use portolan_storage::{Reason, StorageError, client_fetches, clients::Client};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::metadata_document::cached;
use crate::state::AuthState;

/// A fetch has its own deadline of five seconds, and what it gave has to be stored.
const AT_MOST: Duration = Duration::from_secs(8);
/// Between two looks whether the other one is done: at first, and at most.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// What came of waiting for the turn.
pub(super) enum Turn {
    /// It is ours: fetch, and give it back.
    Fetch(Uuid),
    /// Somebody stored a document that is fresh.
    Found(Box<Client>),
    /// Others fetched for so long that nobody should wait any more.
    Busy,
}

/// Waits for the turn to fetch the document, or for the document. Who waits only looks; it writes when nobody fetches any more.
pub(super) async fn wait(state: &AuthState, url: &str) -> Result<Turn, StorageError> {
    let end = Instant::now() + 2 * AT_MOST;
    let mut pause = LOOK_AGAIN.0;
    loop {
        let holder = at_once(state, url).await?;
        // Also with the turn: the one before may have stored it between our last look and now.
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

/// The turn, if nobody has it.
pub(super) async fn at_once(state: &AuthState, url: &str) -> Result<Option<Uuid>, StorageError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    if !client_fetches::is_free(&mut tx, url).await? {
        return Ok(None);
    }
    let holder = Uuid::now_v7();
    let is_ours = client_fetches::claim(&mut tx, url, holder, AT_MOST).await?;
    tx.commit().await?;
    Ok(is_ours.then_some(holder))
}

/// Lets the next one. If that fails, the next one waits until the time is over: what was fetched is good all the same.
pub(super) async fn give_back(state: &AuthState, url: &str, holder: Uuid) {
    let released = async {
        let mut tx = state.store.system(Reason::OAuth).await?;
        client_fetches::release(&mut tx, url, holder).await?;
        tx.commit().await
    };
    if let Err(error) = released.await {
        tracing::warn!(error = %crate::error::chain(&error), "the turn to fetch a document was not given back");
    }
}
