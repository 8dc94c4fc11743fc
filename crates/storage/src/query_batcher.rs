//! Sends concurrent queries of one kind in one message (ADR 31).
//!
//! A single query is sent at once. Queries that arrive while a message is in flight form the next
//! one. Queries of a message share the cost of a commit, a snapshot and a round trip.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::{PgConnection, PgPool, Postgres, pool::PoolConnection};
use tokio::sync::oneshot;

use crate::StorageError;

/// The most queries in one message. More would delay the callers that wait for the next one.
const MOST: usize = 64;

/// Something that can be asked together with others of its kind.
pub(crate) trait Question: Send + Sync + Sized + 'static {
    type Answer: Send;

    /// Answers all, each in its place. A question must not be answered otherwise because of those
    /// beside it.
    fn ask(
        way: &mut Way,
        all: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StorageError>> + Send;
}

/// The answer to which a function of the database means this place: it counts from one.
pub(crate) fn place_in<A>(answers: &mut [A], place: i64) -> Option<&mut A> {
    answers.get_mut(usize::try_from(place.checked_sub(1)?).ok()?)
}

/// The way to the database of those who ask in a row: the next message finds the plans of this one.
#[derive(Debug)]
pub(crate) struct Way {
    pool: PgPool,
    kept: Option<PoolConnection<Postgres>>,
}

impl Way {
    pub(crate) async fn connection(&mut self) -> Result<&mut PgConnection, StorageError> {
        let kept = match self.kept.take() {
            Some(kept) => kept,
            None => self.pool.acquire().await?,
        };
        Ok(self.kept.insert(kept))
    }
}

/// Where the questions of one kind come together.
pub(crate) struct QueryBatcher<Q: Question> {
    pool: PgPool,
    waiting: Mutex<Waiting<Q>>,
}

/// The sender of the answer to a waiting caller.
type Asker<Q> = oneshot::Sender<Result<<Q as Question>::Answer, StorageError>>;

struct Waiting<Q: Question> {
    questions: Vec<(Q, Asker<Q>)>,
    /// A task is sending queries, and will send these too.
    is_asked: bool,
}

impl<Q: Question> fmt::Debug for QueryBatcher<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Together")
    }
}

impl<Q: Question> QueryBatcher<Q> {
    pub(crate) fn new(pool: PgPool) -> Arc<Self> {
        let waiting = Mutex::new(Waiting {
            questions: Vec::new(),
            is_asked: false,
        });
        Arc::new(Self { pool, waiting })
    }

    /// Sends the query, with others that wait now. A query is sent even if this future is dropped.
    pub(crate) async fn ask(self: &Arc<Self>, question: Q) -> Result<Q::Answer, StorageError> {
        let (answer, answered) = oneshot::channel();
        let is_asked = {
            let mut waiting = self.waiting();
            waiting.questions.push((question, answer));
            mem::replace(&mut waiting.is_asked, true)
        };
        if !is_asked {
            // Not in this future: if it is dropped, the others' questions are still asked.
            Asking::begin(Arc::clone(self));
        }
        answered
            .await
            .unwrap_or(Err(StorageError::Unavailable(sqlx::Error::WorkerCrashed)))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<Q>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that sends queries until none is waiting.
struct Asking<Q: Question> {
    query_batcher: Arc<QueryBatcher<Q>>,
    is_over: bool,
}

impl<Q: Question> Asking<Q> {
    #[expect(
        clippy::disallowed_methods,
        reason = "who asked waits for it, and shutdown waits for them"
    )]
    fn begin(query_batcher: Arc<QueryBatcher<Q>>) {
        let asking = Self {
            query_batcher,
            is_over: false,
        };
        tokio::spawn(asking.all());
    }

    async fn all(mut self) {
        let mut way = Way {
            pool: self.query_batcher.pool.clone(),
            kept: None,
        };
        while let Some((questions, answers)) = self.next() {
            for (answer, heard) in some(&mut way, &questions).await.into_iter().zip(answers) {
                // A caller that no longer waits has dropped its receiver.
                let _ = heard.send(answer);
            }
        }
    }

    /// Takes the waiting queries, as many as fit in a message. `None` ends the task.
    fn next(&mut self) -> Option<(Vec<Q>, Vec<Asker<Q>>)> {
        let mut waiting = self.query_batcher.waiting();
        if waiting.questions.is_empty() {
            waiting.is_asked = false;
            self.is_over = true;
            return None;
        }
        let some = waiting.questions.len().min(MOST);
        Some(waiting.questions.drain(..some).unzip())
    }
}

async fn some<Q: Question>(way: &mut Way, questions: &[Q]) -> Vec<Result<Q::Answer, StorageError>> {
    match Q::ask(way, questions).await {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        // The database said no to all because of one of them, and did nothing.
        Err(error) if questions.len() > 1 && !error.is_unavailable() => {
            let mut answers = Vec::with_capacity(questions.len());
            for question in questions {
                match Q::ask(way, std::slice::from_ref(question)).await {
                    Ok(alone) => answers.extend(alone.into_iter().map(Ok)),
                    Err(error) => answers.push(Err(error)),
                }
            }
            answers
        }
        Err(error) => {
            // It may be broken. The pool looks.
            way.kept = None;
            let error = Arc::new(error);
            let shared = || Err(StorageError::Shared(Arc::clone(&error)));
            questions.iter().map(|_| shared()).collect()
        }
    }
}

impl<Q: Question> Drop for Asking<Q> {
    /// After a panic, or when the runtime ends: waiting callers receive an error, and later queries
    /// start a new task.
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.query_batcher.waiting();
            waiting.is_asked = false;
            waiting.questions.clear();
        }
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

    impl Question for Number {
        type Answer = u32;

        async fn ask(_: &mut Way, all: &[Self]) -> Result<Vec<u32>, StorageError> {
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
    async fn ask(
        query_batcher: &Arc<QueryBatcher<Number>>,
        numbers: impl IntoIterator<Item = Number>,
    ) -> Vec<tokio::task::JoinHandle<Result<u32, StorageError>>> {
        let asking = numbers
            .into_iter()
            .map(|number| {
                let query_batcher = Arc::clone(query_batcher);
                tokio::spawn(async move { query_batcher.ask(number).await })
            })
            .collect();
        tokio::task::yield_now().await;
        asking
    }

    #[tokio::test]
    async fn who_comes_while_one_is_asked_is_asked_next_with_the_others() {
        let (query_batcher, number, mut messages) = begin();
        let mut asking = ask(&query_batcher, [number(1)]).await;
        let (asked, first) = messages.recv().await.unwrap();
        assert_eq!(asked, [1], "nobody waits for company");
        asking.extend(ask(&query_batcher, (2..100).map(&number)).await);
        assert!(messages.try_recv().is_err(), "one message at a time");
        first.send(Ok(())).unwrap();
        let (asked, second) = messages.recv().await.unwrap();
        assert_eq!(asked, (2..66).collect::<Vec<_>>(), "as many as may");
        second.send(Ok(())).unwrap();
        let (asked, third) = messages.recv().await.unwrap();
        assert_eq!(asked, (66..100).collect::<Vec<_>>());
        third.send(Ok(())).unwrap();
        let answers = join_all(asking).await.into_iter();
        let answers: Vec<u32> = answers.map(|answer| answer.unwrap().unwrap()).collect();
        assert_eq!(
            answers,
            (1..100).map(|value| value * 10).collect::<Vec<_>>()
        );

        let asking = ask(&query_batcher, [number(7)]).await;
        messages.recv().await.unwrap().1.send(Ok(())).unwrap();
        for answer in asking {
            assert_eq!(answer.await.unwrap().unwrap(), 70, "and it begins again");
        }
    }

    #[tokio::test]
    async fn who_goes_away_takes_nobody_with_it() {
        let (query_batcher, number, mut messages) = begin();
        let first = ask(&query_batcher, [number(1)]).await;
        let (_, answer) = messages.recv().await.unwrap();
        let second = ask(&query_batcher, [number(2)]).await;
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
        let (query_batcher, number, mut messages) = begin();
        let first = ask(&query_batcher, [number(1)]).await;
        let (_, answer) = messages.recv().await.unwrap();
        let others = ask(&query_batcher, [number(2), number(3), number(4)]).await;
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

        let asking = ask(&query_batcher, [number(5), number(6)]).await;
        let away = StorageError::Unavailable(sqlx::Error::PoolTimedOut);
        let (asked, answer) = messages.recv().await.unwrap();
        assert_eq!(asked, [5, 6]);
        answer.send(Err(away)).unwrap();
        for answer in asking {
            assert!(answer.await.unwrap().unwrap_err().is_unavailable());
        }
        assert!(messages.try_recv().is_err(), "nobody asks again");
    }

    #[tokio::test]
    async fn a_panic_is_an_outage_for_those_who_waited_and_nothing_for_who_comes_later() {
        let (query_batcher, number, mut messages) = begin();
        let first = ask(&query_batcher, [number(1)]).await;
        let (_, answer) = messages.recv().await.unwrap();
        let second = ask(&query_batcher, [number(2)]).await;
        drop(answer);
        for answer in first.into_iter().chain(second) {
            assert!(answer.await.unwrap().unwrap_err().is_unavailable());
        }
        let asking = ask(&query_batcher, [number(3)]).await;
        messages.recv().await.unwrap().1.send(Ok(())).unwrap();
        for answer in asking {
            assert_eq!(answer.await.unwrap().unwrap(), 30);
        }
    }
}
