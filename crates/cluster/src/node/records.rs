//! Records of a node's callers, sealed like all data in the store.

use portolan_model::id::TenantId;

use super::{
    Node,
    inner::Inner,
    payload::PayloadPlace,
    sessions::{Unavailable, operations::patiently},
};
use crate::store::{NodeId, PutRecord, Record, RecordPut, SessionKey, StreamKey};

impl Node {
    /// Creates or changes a record.
    ///
    /// # Errors
    /// [`Unavailable`]: it is unknown whether the change was applied.
    pub async fn put_record(
        &self,
        tenant: TenantId,
        item: StreamKey,
        put_record: PutRecord,
    ) -> Result<RecordPut, Unavailable> {
        let inner = &self.inner;
        let seal = |is_head, payload| {
            let place = PayloadPlace::record_put(tenant, item, is_head);
            inner.payloads.seal(&place, payload)
        };
        let sealed = PutRecord {
            head: seal(true, put_record.head),
            rest: put_record.rest.map(|rest| seal(false, rest)),
            ..put_record
        };
        let record_put = patiently(inner, "shelve", || {
            inner.guarded_store.store.put_record(item, &sealed)
        })
        .await?;
        Ok(match record_put {
            // A record that does not open was written by another owner or program.
            RecordPut::Conflict(kept) => {
                open(inner, tenant, item, kept).map_or(RecordPut::Unknown, RecordPut::Conflict)
            }
            other => other,
        })
    }

    /// Returns a record, or `None`.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn record(
        &self,
        tenant: TenantId,
        item: StreamKey,
    ) -> Result<Option<Record>, Unavailable> {
        let inner = &self.inner;
        let StreamKey { session, nonce } = item;
        let kept = patiently(inner, "kept", || {
            inner.guarded_store.store.records(session, Some(nonce))
        })
        .await?;
        Ok(kept
            .into_iter()
            .find_map(|kept| open(inner, tenant, item, kept)))
    }

    /// Returns the records of a list in no order, without their `rest`.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn records(
        &self,
        tenant: TenantId,
        shelf: SessionKey,
    ) -> Result<Vec<Record>, Unavailable> {
        let inner = &self.inner;
        let items = patiently(inner, "shelf", || {
            inner.guarded_store.store.records(shelf, None)
        })
        .await?;
        let opened = items.into_iter().filter_map(|kept| {
            let key = StreamKey {
                session: shelf,
                nonce: kept.nonce,
            };
            open(inner, tenant, key, kept)
        });
        Ok(opened.collect())
    }

    /// Whether a node is suspected to be dead. Its work is then lost.
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.inner.watcher.is_suspected(node)
    }
}

fn open(inner: &Inner, tenant: TenantId, item: StreamKey, kept: Record) -> Option<Record> {
    let open = |is_head, payload| {
        let place = PayloadPlace::record_put(tenant, item, is_head);
        inner.payloads.open(&place, payload)
    };
    let head = open(true, kept.head)?;
    let rest = if kept.rest.is_empty() {
        kept.rest
    } else {
        open(false, kept.rest)?
    };
    Some(Record { head, rest, ..kept })
}
