//! Open event streams, found by tenant. Each has room for one frame: news say the same, so that the newest is enough, and a reader
//! that does not keep up never makes a sender wait. Ten thousand streams wait at once and do nothing, so that what they weigh
//! is what counts: a channel would take a kilobyte and a half each.

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

/// Why a stream is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process is stopping: the client comes back elsewhere.
    Drain,
    /// Its token or its session is no longer good, or what it listened to is gone.
    Revoked,
}

/// The group has as many open streams as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many open streams")]
pub struct TooManyStreams;

struct Entry<T> {
    group: Digest,
    tag: Arc<T>,
    slot: Arc<Slot>,
}

/// What waits for one reader.
#[derive(Default)]
struct Slot(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    frame: Option<Bytes>,
    end: Option<End>,
    reader: Option<Waker>,
}

impl Slot {
    /// A frame in place of one that still waits.
    fn put(&self, frame: Bytes) {
        let mut waiting = lock(&self.0);
        waiting.frame = Some(frame);
        if let Some(reader) = waiting.reader.take() {
            reader.wake();
        }
    }

    /// True for the first reason: it stands.
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
    /// Those of a tenant in the order in which they were opened, which is that in which they are told: a simulation can be repeated.
    tenants: HashMap<TenantId, BTreeMap<u64, Entry<T>>>,
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

/// The open streams of this process, each with a tag that only its service understands. Cheap to clone; clones share.
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

/// The reading end of a stream. Dropping it closes the stream.
pub struct OpenStream<T> {
    /// What the stream was opened with.
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
    /// Opens a stream. A group (a session, a principal) has at most `limit` at once.
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
            Entry {
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

    /// Makes room for one more of a group: ends those that are taken over, and the oldest one where there are `limit` all the same.
    pub fn make_room(
        &self,
        tenant: TenantId,
        group: Digest,
        limit: usize,
        is_taken_over: impl Fn(&T) -> bool,
    ) {
        let mut table = lock(&self.table);
        // After a node's death thousands come to nodes that have nothing of theirs: that costs no look at the others.
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

    /// The tags of a tenant's open streams.
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

    /// The tenants that have an open stream.
    pub fn tenants(&self) -> Vec<TenantId> {
        lock(&self.table).tenants.keys().copied().collect()
    }

    /// Gives a frame to every stream of a tenant; `frame` makes it for those that want one. Returns how many there were. It takes
    /// the place of a frame that still waits, which says the same.
    pub fn send(&self, tenant: TenantId, frame: impl Fn(&T) -> Option<Bytes>) -> usize {
        let streams = self.of(Some(tenant));
        streams
            .iter()
            .filter(|(tag, slot)| frame(tag).map(|bytes| slot.put(bytes)).is_some())
            .count()
    }

    /// The open streams of a tenant, or all. Copied, so that nobody who opens or closes one waits while ten thousand are told.
    fn of(&self, tenant: Option<TenantId>) -> Vec<(Arc<T>, Arc<Slot>)> {
        let table = lock(&self.table);
        let entries = |streams: &BTreeMap<u64, Entry<T>>| {
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

    /// Asks every stream that `which` names to end. The reader decides how it says goodbye.
    pub fn end(&self, why: End, which: impl Fn(&T) -> bool) -> usize {
        let streams = self.of(None);
        let named = streams.iter().filter(|(tag, _)| which(tag));
        named.filter(|(_, slot)| slot.end(why)).count()
    }

    /// Number of open streams.
    pub fn len(&self) -> usize {
        lock(&self.table).tenants.values().map(BTreeMap::len).sum()
    }

    /// True if none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A way to one open stream that does not look for it among those of its tenant. It keeps no stream open.
pub struct Doorway<T> {
    /// What the stream was opened with.
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
    /// A frame in place of one that still waits.
    pub fn put(&self, frame: Bytes) {
        self.slot.put(frame);
    }
}

impl<T> OpenStream<T> {
    /// A way to this stream.
    pub fn doorway(&self) -> Doorway<T> {
        Doorway {
            tag: Arc::clone(&self.tag),
            slot: Arc::clone(&self.slot),
        }
    }

    /// True once its reader may not be told anything any more.
    pub fn is_revoked(&self) -> bool {
        lock(&self.slot.0).end == Some(End::Revoked)
    }

    /// The next frame, or why the stream is to end. Cancel safe. A frame that waits is given before the end, unless nobody may read it any more.
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

    /// A frame that is already there.
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
        // A future of its own for each, so that only a wake brings the reader back.
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
