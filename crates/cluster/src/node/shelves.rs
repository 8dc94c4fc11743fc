//! Things that are kept for their owner, sealed like all that the store holds.

use portolan_model::id::TenantId;

use super::{
    Inner, Node, PayloadPlace,
    sessions::{Unavailable, patiently},
};
use crate::store::{Kept, NodeId, OnShelf, SessionKey, Shelve, Shelved, StreamKey};

impl Node {
    /// Makes or changes a thing on a shelf.
    ///
    /// # Errors
    /// [`Unavailable`]: whether it was done is not known.
    pub async fn shelve(
        &self,
        tenant: TenantId,
        item: StreamKey,
        shelve: Shelve,
    ) -> Result<Shelved, Unavailable> {
        let inner = &self.inner;
        let seal = |is_head, payload| {
            let place = PayloadPlace::shelved(tenant, item, is_head);
            inner.payloads.seal(&place, payload)
        };
        let sealed = Shelve {
            head: seal(true, shelve.head),
            rest: shelve.rest.map(|rest| seal(false, rest)),
            ..shelve
        };
        let shelved = patiently(inner, "shelve", || inner.link.store.shelve(item, &sealed)).await?;
        Ok(match shelved {
            // What cannot be opened is nobody's.
            Shelved::Conflict(kept) => {
                open(inner, tenant, item, kept).map_or(Shelved::Unknown, Shelved::Conflict)
            }
            other => other,
        })
    }

    /// A thing on a shelf.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn kept(
        &self,
        tenant: TenantId,
        item: StreamKey,
    ) -> Result<Option<Kept>, Unavailable> {
        let inner = &self.inner;
        let kept = patiently(inner, "kept", || inner.link.store.kept(item)).await?;
        Ok(kept.and_then(|kept| open(inner, tenant, item, kept)))
    }

    /// The things on a shelf, in no order.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn shelf(
        &self,
        tenant: TenantId,
        shelf: SessionKey,
    ) -> Result<Vec<OnShelf>, Unavailable> {
        let inner = &self.inner;
        let items = patiently(inner, "shelf", || inner.link.store.shelf(shelf)).await?;
        let opened = items.into_iter().filter_map(|item| {
            let key = StreamKey {
                session: shelf,
                nonce: item.nonce,
            };
            let place = PayloadPlace::shelved(tenant, key, true);
            let head = inner.payloads.open(&place, item.head)?;
            Some(OnShelf { head, ..item })
        });
        Ok(opened.collect())
    }

    /// Whether a node is thought to be dead: what it was doing, nobody does any more.
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.inner.watcher.is_suspected(node)
    }
}

fn open(inner: &Inner, tenant: TenantId, item: StreamKey, kept: Kept) -> Option<Kept> {
    let open = |is_head, payload| {
        let place = PayloadPlace::shelved(tenant, item, is_head);
        inner.payloads.open(&place, payload)
    };
    let head = open(true, kept.head)?;
    let rest = if kept.rest.is_empty() {
        kept.rest
    } else {
        open(false, kept.rest)?
    };
    Some(Kept { head, rest, ..kept })
}
