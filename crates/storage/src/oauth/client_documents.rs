//! Cached client ID metadata documents (AUTH-C4, AUTH-C5). Only good ones are kept; errors never.

use portolan_model::{Digest, Timestamp, id::ClientId};

use crate::{StorageError, SystemTx};

/// Facts about the cached copy of a document. Its content is in the client's row.
#[derive(Debug, Clone, Copy)]
pub struct Document {
    /// The client it describes.
    pub client: ClientId,
    /// Digest of the body.
    pub digest: Digest,
    /// Until then it is used without asking.
    pub fresh_until: Timestamp,
    /// Until then it is used when asking fails.
    pub stale_until: Timestamp,
}

/// The cached copy of `url`.
pub async fn find(tx: &mut SystemTx, url: &str) -> Result<Option<Document>, StorageError> {
    let row = sqlx::query!(
        "select client_ref, digest, fresh_until, stale_until from client_documents where url = $1",
        url
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(Document {
            client: row.client_ref.into(),
            digest: Digest::from_slice(&row.digest).ok_or(StorageError::Inconsistent {
                table: "client_documents",
                column: "digest",
            })?,
            fresh_until: row.fresh_until,
            stale_until: row.stale_until,
        })
    })
    .transpose()
}

/// Writes what a fetch found.
pub async fn store(
    tx: &mut SystemTx,
    url: &str,
    document: &Document,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into client_documents (url, client_ref, digest, fetched_at, fresh_until, stale_until) values ($1, $2, $3, $4, $5, $6)
         on conflict (url) do update set digest = excluded.digest, fetched_at = excluded.fetched_at,
           fresh_until = excluded.fresh_until, stale_until = excluded.stale_until",
        url,
        document.client.uuid(),
        document.digest.as_bytes().as_slice(),
        now,
        document.fresh_until,
        document.stale_until,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
