//! Sends concurrent queries of one kind in one message (ADR 31).
//!
//! A single query is sent at once. Queries that arrive while a message is in flight form the next
//! one. Queries of a message share the cost of a commit, a snapshot and a round trip.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection};
use tokio::sync::oneshot;

use crate::StorageError;

/// The most queries in one message. More would delay the callers that wait for the next one.
const MOST: usize = 64;

/// A query that is sent together with others of its kind.
pub(crate) trait BatchQuery: Send + Sync + Sized + 'static {
    type Answer: Send + 'static;

    /// Runs all queries and returns their answers in order. The other queries of the message must
    /// not change the answer of one.
    fn run(
        connection: &mut BatchConnection,
        all: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StorageError>> + Send;
}

/// The answer of the query with this number, as a function of the database returns it from one.
pub(crate) fn slot_of<A>(answers: &mut [A], slot: i64) -> Option<&mut A> {
    answers.get_mut(usize::try_from(slot.checked_sub(1)?).ok()?)
}

/// The connection of a row of messages: the next message finds the plans of this one.
#[derive(Debug)]
pub(crate) struct BatchConnection {
    pool: PgPool,
    open: Option<PoolConnection<Postgres>>,
}

impl BatchConnection {
    pub(crate) async fn get(&mut self) -> Result<&mut PgConnection, StorageError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.pool.acquire().await?,
        };
        Ok(self.open.insert(open))
    }
}

/// Collects the queries of one kind into messages.
pub(crate) struct QueryBatcher<Q: BatchQuery> {
    pool: PgPool,
    waiting: Mutex<WaitingQueries<Q>>,
}

/// The sender of the answer to a waiting caller.
type Reply<Q> = oneshot::Sender<Result<<Q as BatchQuery>::Answer, StorageError>>;

struct WaitingQueries<Q: BatchQuery> {
    queries: Vec<(Q, Reply<Q>)>,
    /// A task is sending queries, and will send these too.
    is_sending: bool,
}

impl<Q: BatchQuery> fmt::Debug for QueryBatcher<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueryBatcher")
    }
}

impl<Q: BatchQuery> QueryBatcher<Q> {
    pub(crate) fn new(pool: PgPool) -> Arc<Self> {
        let waiting = Mutex::new(WaitingQueries {
            queries: Vec::new(),
            is_sending: false,
        });
        Arc::new(Self { pool, waiting })
    }

    /// Sends the query, with others that wait now. A query is sent even if this future is dropped.
    pub(crate) async fn send(self: &Arc<Self>, query: Q) -> Result<Q::Answer, StorageError> {
        let (answer, answered) = oneshot::channel();
        let is_sending = {
            let mut waiting = self.waiting();
            waiting.queries.push((query, answer));
            mem::replace(&mut waiting.is_sending, true)
        };
        if !is_sending {
            // Not in this future: if it is dropped, the other queries are still sent.
            SendTask::begin(Arc::clone(self));
        }
        answered
            .await
            .unwrap_or(Err(StorageError::Unavailable(sqlx::Error::WorkerCrashed)))
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingQueries<Q>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that sends queries until none is waiting.
struct SendTask<Q: BatchQuery> {
    batcher: Arc<QueryBatcher<Q>>,
    is_over: bool,
}

impl<Q: BatchQuery> SendTask<Q> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the caller waits for it, and shutdown waits for the callers"
    )]
    fn begin(batcher: Arc<QueryBatcher<Q>>) {
        let sending = Self {
            batcher,
            is_over: false,
        };
        tokio::spawn(sending.all());
    }

    async fn all(mut self) {
        let mut connection = BatchConnection {
            pool: self.batcher.pool.clone(),
            open: None,
        };
        while let Some((queries, answers)) = self.next() {
            for (answer, heard) in answer_all(&mut connection, &queries)
                .await
                .into_iter()
                .zip(answers)
            {
                // A caller that no longer waits has dropped its receiver.
                let _ = heard.send(answer);
            }
        }
    }

    /// Takes the waiting queries, as many as fit in a message. `None` ends the task.
    fn next(&mut self) -> Option<(Vec<Q>, Vec<Reply<Q>>)> {
        let mut waiting = self.batcher.waiting();
        if waiting.queries.is_empty() {
            waiting.is_sending = false;
            self.is_over = true;
            return None;
        }
        let some = waiting.queries.len().min(MOST);
        Some(waiting.queries.drain(..some).unzip())
    }
}

async fn answer_all<Q: BatchQuery>(
    connection: &mut BatchConnection,
    queries: &[Q],
) -> Vec<Result<Q::Answer, StorageError>> {
    match Q::run(connection, queries).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        // The database refused the message because of one query, and did nothing.
        Err(error) if queries.len() > 1 && !error.is_unavailable() => {
            let mut answers = Vec::with_capacity(queries.len());
            for query in queries {
                match Q::run(connection, std::slice::from_ref(query)).await {
                    Ok(alone) => answers.extend(alone.into_iter().map(Ok)),
                    Err(error) => answers.push(Err(error)),
                }
            }
            answers
        }
        Err(error) => {
            // It may be broken. The pool tests it.
            connection.open = None;
            let error = Arc::new(error);
            let shared = || Err(StorageError::Shared(Arc::clone(&error)));
            queries.iter().map(|_| shared()).collect()
        }
    }
}

impl<Q: BatchQuery> Drop for SendTask<Q> {
    /// After a panic, or when the runtime ends: waiting callers receive an error, and later queries
    /// start a new task.
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.batcher.waiting();
            waiting.is_sending = false;
            waiting.queries.clear();
        }
    }
}

/// One batcher for each kind of query, made at its first use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct QueryBatchers {
    pool: PgPool,
    by_kind: Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>,
}

impl fmt::Debug for QueryBatchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueryBatchers")
    }
}

impl QueryBatchers {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            by_kind: Arc::default(),
        }
    }

    /// The batcher of the queries `Q`.
    pub(crate) fn of_kind<Q: BatchQuery>(&self) -> Arc<QueryBatcher<Q>> {
        let mut by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_kind.get(&TypeId::of::<Q>());
        if let Some(batcher) = known.and_then(|known| Arc::clone(known).downcast().ok()) {
            return batcher;
        }
        let batcher = QueryBatcher::<Q>::new(self.pool.clone());
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(&batcher) as _;
        by_kind.insert(TypeId::of::<Q>(), any);
        batcher
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use sqlx::postgres::PgPoolOptions;
    use tokio::sync::mpsc;

    use super::*;

    /// The queries of one message, and the sender of the answer to all of them.
    type Message = (Vec<u32>, oneshot::Sender<Result<(), StorageError>>);

    /// Answered by the test.
    #[derive(Clone)]
    struct Number {
        value: u32,
        told: mpsc::UnboundedSender<Message>,
    }

    impl BatchQuery for Number {
        type Answer = u32;

        async fn run(_: &mut BatchConnection, all: &[Self]) -> Result<Vec<u32>, StorageError> {
            let (answer, answered) = oneshot::channel();
            let values: Vec<u32> = all.iter().map(|number| number.value).collect();
            all[0].told.send((values.clone(), answer)).unwrap();
            answered.await.unwrap()?;
            Ok(values.iter().map(|value| value * 10).collect())
        }
    }

    fn begin() -> (
        Arc<QueryBatcher<Number>>,
        impl Fn(u32) -> Number,
        mpsc::UnboundedReceiver<Message>,
    ) {
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_secs(1))
            .connect_lazy("postgres://nobody@127.0.0.1:1/nothing")
            .unwrap();
        let (told, messages) = mpsc::unbounded_channel();
        let number = move |value| Number {
            value,
            told: told.clone(),
        };
        (QueryBatcher::new(pool), number, messages)
    }

    /// Asks for these in tasks of their own, and lets them begin.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test waits for them, or ends them"
    )]
    async fn send(
        batcher: &Arc<QueryBatcher<Number>>,
        numbers: impl IntoIterator<Item = Number>,
    ) -> Vec<tokio::task::JoinHandle<Result<u32, StorageError>>> {
        let sending = numbers
            .into_iter()
            .map(|number| {
                let batcher = Arc::clone(batcher);
                tokio::spawn(async move { batcher.send(number).await })
            })
            .collect();
        tokio::task::yield_now().await;
        sending
    }

    #[tokio::test]
    async fn who_comes_while_one_is_asked_is_asked_next_with_the_others() {
        let (batcher, number, mut messages) = begin();
        let mut sending = send(&batcher, [number(1)]).await;
        let (asked, first) = messages.recv().await.unwrap();
        assert_eq!(asked, [1], "nobody waits for company");
        sending.extend(send(&batcher, (2..100).map(&number)).await);
        assert!(messages.try_recv().is_err(), "one message at a time");
        first.send(Ok(())).unwrap();
        let (asked, second) = messages.recv().await.unwrap();
        assert_eq!(asked, (2..66).collect::<Vec<_>>(), "as many as may");
        second.send(Ok(())).unwrap();
        let (asked, third) = messages.recv().await.unwrap();
        assert_eq!(asked, (66..100).collect::<Vec<_>>());
        third.send(Ok(())).unwrap();
        let answers = join_all(sending).await.into_iter();
        let answers: Vec<u32> = answers.map(|answer| answer.unwrap().unwrap()).collect();
        assert_eq!(
            answers,
            (1..100).map(|value| value * 10).collect::<Vec<_>>()
        );

        let sending = send(&batcher, [number(7)]).await;
        messages.recv().await.unwrap().1.send(Ok(())).unwrap();
        for answer in sending {
            assert_eq!(answer.await.unwrap().unwrap(), 70, "and it begins again");
        }
    }

    #[tokio::test]
    async fn who_goes_away_takes_nobody_with_it() {
        let (batcher, number, mut messages) = begin();
        let first = send(&batcher, [number(1)]).await;
        let (_, answer) = messages.recv().await.unwrap();
        let second = send(&batcher, [number(2)]).await;
        for gone in first {
            gone.abort();
        }
        answer.send(Ok(())).unwrap();
        messages.recv().await.unwrap().1.send(Ok(())).unwrap();
        for answer in second {
            assert_eq!(answer.await.unwrap().unwrap(), 20);
        }
    }

    #[tokio::test]
    async fn what_is_refused_for_one_is_asked_one_by_one_and_an_outage_is_everybodys() {
        let (batcher, number, mut messages) = begin();
        let first = send(&batcher, [number(1)]).await;
        let (_, answer) = messages.recv().await.unwrap();
        let others = send(&batcher, [number(2), number(3), number(4)]).await;
        answer.send(Ok(())).unwrap();
        let refused = || Err(StorageError::Database(sqlx::Error::RowNotFound));
        messages.recv().await.unwrap().1.send(refused()).unwrap();
        for value in 2..5 {
            let (asked, answer) = messages.recv().await.unwrap();
            assert_eq!(asked, [value]);
            answer
                .send(if value == 3 { refused() } else { Ok(()) })
                .unwrap();
        }
        let mut good = Vec::new();
        for answer in first.into_iter().chain(others) {
            good.push(answer.await.unwrap().is_ok());
        }
        assert_eq!(good, [true, true, false, true]);

        let sending = send(&batcher, [number(5), number(6)]).await;
        let away = StorageError::Unavailable(sqlx::Error::PoolTimedOut);
        let (asked, answer) = messages.recv().await.unwrap();
        assert_eq!(asked, [5, 6]);
        answer.send(Err(away)).unwrap();
        for answer in sending {
            assert!(answer.await.unwrap().unwrap_err().is_unavailable());
        }
        assert!(messages.try_recv().is_err(), "nobody asks again");
    }

    #[tokio::test]
    async fn a_panic_is_an_outage_for_those_who_waited_and_nothing_for_who_comes_later() {
        let (batcher, number, mut messages) = begin();
        let first = send(&batcher, [number(1)]).await;
        let (_, answer) = messages.recv().await.unwrap();
        let second = send(&batcher, [number(2)]).await;
        drop(answer);
        for answer in first.into_iter().chain(second) {
            assert!(answer.await.unwrap().unwrap_err().is_unavailable());
        }
        let sending = send(&batcher, [number(3)]).await;
        messages.recv().await.unwrap().1.send(Ok(())).unwrap();
        for answer in sending {
            assert_eq!(answer.await.unwrap().unwrap(), 30);
        }
    }
}
