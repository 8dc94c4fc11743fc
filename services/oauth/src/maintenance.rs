//! Periodic work of the OAuth endpoints.

use portolan_model::token_family::LOST_ANSWER_WINDOW;
use portolan_site::state::AuthState;
use portolan_storage::{Reason, StorageError, oauth::refresh_tokens};

use crate::jwks;

/// Runs one round of periodic work: keys, and data that must not be readable for longer than a day.
/// A tracked task calls it each hour. [`jwks::rotate`] must have been called once before the
/// service is ready. [`portolan_storage::expiry`] deletes expired rows.
pub async fn maintain(state: &AuthState) {
    if let Err(error) = jwks::rotate(state).await {
        tracing::error!(error = %portolan_site::error_chain::chain(&error), "signing keys were not renewed");
    }
    if let Err(error) = forget_successors(state).await {
        tracing::warn!(error = %portolan_site::error_chain::chain(&error), "sealed successors were not removed");
    }
}

/// Deletes sealed successors older than a day (AUTH-K18): until then a superseded refresh token
/// leads to its successor.
pub(crate) async fn forget_successors(state: &AuthState) -> Result<(), StorageError> {
    const BATCH: i64 = 1000;
    let before = state.now() - LOST_ANSWER_WINDOW;
    loop {
        let mut tx = state.store.system(Reason::Janitor).await?;
        let done = refresh_tokens::forget_successors(&mut tx, before, BATCH).await?;
        tx.commit().await?;
        if done < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
