//! Open event streams, found by tenant. Each holds one frame: notices are equal, so the newest is
//! enough, and a slow reader never blocks a sender. Ten thousand idle streams are normal, so their
//! size matters: a channel would take 1.5 KB each.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, Waker},
};

use bytes::Bytes;
use portolan_model::{Digest, id::TenantId};

use crate::lock;

/// Reason for the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process stops: the client reconnects to another node.
    Drain,
    /// The token or the session is no longer valid, or the subject of the stream is gone.
    Revoked,
}

/// The group has the maximum number of open streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many open streams")]
pub struct TooManyStreams;

struct StreamEntry<T> {
    group: Digest,
    tag: Arc<T>,
    slot: Arc<Slot>,
}

/// Frame and end that wait for one reader.
#[derive(Default)]
struct Slot(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    frame: Option<Bytes>,
    end: Option<End>,
    reader: Option<Waker>,
}

impl Slot {
    /// Replaces a waiting frame.
    fn put(&self, frame: Bytes) {
        let mut waiting = lock(&self.0);
        waiting.frame = Some(frame);
        if let Some(reader) = waiting.reader.take() {
            reader.wake();
        }
    }

    /// Sets the reason for the end. True for the first reason, which counts.
    fn end(&self, why: End) -> bool {
        let mut waiting = lock(&self.0);
        let first = waiting.end.is_none();
        waiting.end.get_or_insert(why);
        if let Some(reader) = waiting.reader.take() {
            reader.wake();
        }
        first
    }
}

struct Table<T> {
    /// Streams of a tenant in the order of their opening. Frames are sent in this order, so that a
    /// simulation is reproducible.
    tenants: HashMap<TenantId, BTreeMap<u64, StreamEntry<T>>>,
    groups: HashMap<Digest, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            groups: HashMap::new(),
        }
    }
}

impl<T> Table<T> {
    fn close(&mut self, tenant: TenantId, number: u64) {
        let Some(streams) = self.tenants.get_mut(&tenant) else {
            return;
        };
        let Some(entry) = streams.remove(&number) else {
            return;
        };
        if streams.is_empty() {
            self.tenants.remove(&tenant);
        }
        if let Some(count) = self.groups.get_mut(&entry.group) {
            *count -= 1;
            if *count == 0 {
                self.groups.remove(&entry.group);
            }
        }
    }
}

/// The open streams of this process, each with a tag for its service. Cheap to clone; clones share
/// the data.
pub struct Streams<T> {
    table: Arc<Mutex<Table<T>>>,
    next: Arc<AtomicU64>,
}

impl<T> Clone for Streams<T> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            next: Arc::clone(&self.next),
        }
    }
}

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Self {
            table: Arc::default(),
            next: Arc::default(),
        }
    }
}

impl<T> fmt::Debug for Streams<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Streams({} open)", self.len())
    }
}

/// Reading end of a stream. Dropping it closes the stream.
pub struct OpenStream<T> {
    /// Tag that was passed to `open`.
    pub tag: Arc<T>,
    slot: Arc<Slot>,
    tenant: TenantId,
    number: u64,
    table: Weak<Mutex<Table<T>>>,
}

impl<T> fmt::Debug for OpenStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenStream({})", self.number)
    }
}

impl<T> Streams<T> {
    /// Opens a stream. A group (a session, a principal) has at most `limit` streams at once.
    pub fn open(
        &self,
        tenant: TenantId,
        group: Digest,
        limit: usize,
        tag: Arc<T>,
    ) -> Result<OpenStream<T>, TooManyStreams> {
        let slot = Arc::<Slot>::default();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut table = lock(&self.table);
        let count = table.groups.entry(group).or_default();
        if *count >= limit {
            return Err(TooManyStreams);
        }
        *count += 1;
        table.tenants.entry(tenant).or_default().insert(
            number,
            StreamEntry {
                group,
                tag: Arc::clone(&tag),
                slot: Arc::clone(&slot),
            },
        );
        Ok(OpenStream {
            tag,
            slot,
            tenant,
            number,
            table: Arc::downgrade(&self.table),
        })
    }

    /// Frees a stream of a group: ends superseded streams, and also the oldest one if there are
    /// still `limit`.
    pub fn make_room(
        &self,
        tenant: TenantId,
        group: Digest,
        limit: usize,
        is_taken_over: impl Fn(&T) -> bool,
    ) {
        let mut table = lock(&self.table);
        // After a node's death, thousands of clients connect to nodes without their streams. These
        // skip the search.
        if !table.groups.contains_key(&group) {
            return;
        }
        let streams = table.tenants.get(&tenant).into_iter().flatten();
        let own: Vec<(u64, bool, Arc<Slot>)> = streams
            .filter(|(_, entry)| entry.group == group)
            .map(|(number, entry)| (*number, is_taken_over(&entry.tag), Arc::clone(&entry.slot)))
            .collect();
        let is_full = own.len() >= limit && !own.iter().any(|(_, is_over, _)| *is_over);
        for (place, (number, is_over, slot)) in own.into_iter().enumerate() {
            if is_over || (is_full && place == 0) {
                slot.end(End::Revoked);
                table.close(tenant, number);
            }
        }
    }

    /// Tags of a tenant's open streams.
    pub fn tags(&self, tenant: TenantId) -> Vec<Arc<T>> {
        let table = lock(&self.table);
        table
            .tenants
            .get(&tenant)
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|entry| Arc::clone(&entry.tag))
            .collect()
    }

    /// Tenants with an open stream.
    pub fn tenants(&self) -> Vec<TenantId> {
        lock(&self.table).tenants.keys().copied().collect()
    }

    /// Sends a frame to every stream of a tenant. `frame` builds it, or skips the stream. Returns
    /// the number of sent frames. A frame that still waits is replaced, because it says the same.
    pub fn send(&self, tenant: TenantId, frame: impl Fn(&T) -> Option<Bytes>) -> usize {
        let streams = self.of(Some(tenant));
        streams
            .iter()
            .filter(|(tag, slot)| frame(tag).map(|bytes| slot.put(bytes)).is_some())
            .count()
    }

    /// The open streams of a tenant, or of all. Copied, so that `open` and `close` do not wait
    /// during the sends.
    fn of(&self, tenant: Option<TenantId>) -> Vec<(Arc<T>, Arc<Slot>)> {
        let table = lock(&self.table);
        let entries = |streams: &BTreeMap<u64, StreamEntry<T>>| {
            let copied = streams
                .values()
                .map(|entry| (Arc::clone(&entry.tag), Arc::clone(&entry.slot)));
            copied.collect::<Vec<_>>()
        };
        match tenant {
            Some(tenant) => table.tenants.get(&tenant).map(entries).unwrap_or_default(),
            None => table.tenants.values().flat_map(entries).collect(),
        }
    }

    /// Ends every stream that `which` selects. The reader decides how it says so to the client.
    pub fn end(&self, why: End, which: impl Fn(&T) -> bool) -> usize {
        let streams = self.of(None);
        let named = streams.iter().filter(|(tag, _)| which(tag));
        named.filter(|(_, slot)| slot.end(why)).count()
    }

    /// Number of open streams.
    pub fn len(&self) -> usize {
        lock(&self.table).tenants.values().map(BTreeMap::len).sum()
    }

    /// True if no stream is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reference to one open stream, without a search among those of its tenant. Does not keep the
/// stream open.
pub struct Doorway<T> {
    /// Tag that was passed to `open`.
    pub tag: Arc<T>,
    slot: Arc<Slot>,
}

impl<T> Clone for Doorway<T> {
    fn clone(&self) -> Self {
        Self {
            tag: Arc::clone(&self.tag),
            slot: Arc::clone(&self.slot),
        }
    }
}

impl<T> fmt::Debug for Doorway<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doorway")
    }
}

impl<T> Doorway<T> {
    /// Replaces a waiting frame.
    pub fn put(&self, frame: Bytes) {
        self.slot.put(frame);
    }
}

impl<T> OpenStream<T> {
    /// Returns a reference to this stream.
    pub fn doorway(&self) -> Doorway<T> {
        Doorway {
            tag: Arc::clone(&self.tag),
            slot: Arc::clone(&self.slot),
        }
    }

    /// True if the reader may receive nothing more.
    pub fn is_revoked(&self) -> bool {
        lock(&self.slot.0).end == Some(End::Revoked)
    }

    /// Returns the next frame, or the reason for the end. Cancel safe. A waiting frame comes before
    /// the end, unless the stream is revoked.
    pub async fn next(&mut self) -> Result<Bytes, End> {
        poll_fn(|cx| {
            let mut waiting = lock(&self.slot.0);
            if waiting.end == Some(End::Revoked) {
                return Poll::Ready(Err(End::Revoked));
            }
            if let Some(frame) = waiting.frame.take() {
                return Poll::Ready(Ok(frame));
            }
            if let Some(end) = waiting.end {
                return Poll::Ready(Err(end));
            }
            let is_known = waiting.reader.as_ref();
            if !is_known.is_some_and(|reader| reader.will_wake(cx.waker())) {
                waiting.reader = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Takes a waiting frame.
    pub fn take_waiting(&mut self) -> Option<Bytes> {
        lock(&self.slot.0).frame.take()
    }
}

impl<T> Drop for OpenStream<T> {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            lock(&table).close(self.tenant, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
    use portolan_model::Id;

    use super::*;

    const GROUP: Digest = Digest::from_bytes([1; 32]);

    #[tokio::test]
    async fn a_frame_reaches_the_streams_of_its_tenant_that_want_it() {
        let streams = Streams::<u8>::default();
        let (here, there) = (Id::generate(), Id::generate());
        let mut wanting = streams.open(here, GROUP, 9, Arc::new(1)).unwrap();
        let mut idle = streams.open(here, GROUP, 9, Arc::new(2)).unwrap();
        let mut foreign = streams.open(there, GROUP, 9, Arc::new(1)).unwrap();
        assert_eq!(
            streams.send(here, |tag| (*tag == 1).then(|| Bytes::from_static(b"news"))),
            1
        );
        assert_eq!(wanting.next().await.unwrap(), "news");
        assert!(idle.take_waiting().is_none() && foreign.take_waiting().is_none());
    }

    #[tokio::test]
    async fn a_reader_that_does_not_keep_up_makes_nobody_wait() {
        let streams = Streams::<()>::default();
        let tenant = Id::generate();
        let mut slow = streams.open(tenant, GROUP, 1, Arc::new(())).unwrap();
        for frame in ["first", "second", "third"] {
            let frame = Bytes::from_static(frame.as_bytes());
            assert_eq!(streams.send(tenant, |()| Some(frame.clone())), 1);
        }
        assert_eq!(slow.take_waiting().unwrap(), "third", "the newest");
        assert!(slow.take_waiting().is_none());
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken_by_a_frame_and_by_the_end() {
        let streams = Streams::<()>::default();
        let tenant = Id::generate();
        let mut stream = streams.open(tenant, GROUP, 1, Arc::new(())).unwrap();
        let reading = async { (stream.next().await, stream.next().await) };
        let telling = async {
            tokio::task::yield_now().await;
            assert_eq!(streams.send(tenant, |()| Some(Bytes::from_static(b"."))), 1);
            tokio::task::yield_now().await;
            assert_eq!(streams.end(End::Drain, |()| true), 1);
        };
        // Each has its own future, so that only a wake-up polls the reader again.
        let mut both = FuturesUnordered::new();
        both.push(reading.map(Some).left_future());
        both.push(telling.map(|()| None).right_future());
        let mut outcome = None;
        while let Some(done) = both.next().await {
            outcome = outcome.or(done);
        }
        let (frame, end) = outcome.unwrap();
        assert_eq!(frame.unwrap(), ".");
        assert_eq!(end.unwrap_err(), End::Drain);
    }

    #[tokio::test]
    async fn a_group_is_bounded_and_a_dropped_stream_makes_room() {
        let streams = Streams::<()>::default();
        let tenant = Id::generate();
        let first = streams.open(tenant, GROUP, 1, Arc::new(())).unwrap();
        assert_eq!(
            streams.open(tenant, GROUP, 1, Arc::new(())).unwrap_err(),
            TooManyStreams
        );
        drop(first);
        assert!(streams.is_empty());
        assert!(streams.open(tenant, GROUP, 1, Arc::new(())).is_ok());
    }

    #[tokio::test]
    async fn an_end_comes_after_the_frames_that_wait_and_the_first_reason_stands() {
        let streams = Streams::<u8>::default();
        let tenant = Id::generate();
        let mut stream = streams.open(tenant, GROUP, 1, Arc::new(7)).unwrap();
        streams.send(tenant, |_| Some(Bytes::from_static(b"last words")));
        assert_eq!(streams.end(End::Revoked, |tag| *tag == 8), 0);
        assert_eq!(streams.end(End::Drain, |tag| *tag == 7), 1);
        assert_eq!(streams.end(End::Revoked, |_| true), 0);
        assert_eq!(stream.next().await.unwrap(), "last words");
        assert_eq!(stream.next().await.unwrap_err(), End::Drain);
    }

    #[tokio::test]
    async fn sb_10_what_waits_for_a_stream_that_was_revoked_is_not_given() {
        let streams = Streams::<()>::default();
        let tenant = Id::generate();
        let mut stream = streams.open(tenant, GROUP, 1, Arc::new(())).unwrap();
        let door = stream.doorway();
        door.put(Bytes::from_static(b"first"));
        assert_eq!(stream.next().await.unwrap(), "first");
        door.put(Bytes::from_static(b"second"));
        assert!(!stream.is_revoked());
        streams.end(End::Revoked, |()| true);
        assert!(stream.is_revoked());
        assert_eq!(stream.next().await.unwrap_err(), End::Revoked);
    }
}
