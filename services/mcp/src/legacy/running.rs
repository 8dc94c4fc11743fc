//! Calls of sessions that are running: to refuse an id that is in flight (J-3), to cancel (CN-1), and to go on without their
//! client (T-29).

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use portolan_cluster::SessionKey;
use portolan_protocol::jsonrpc::RequestId;
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

type Table = HashMap<(SessionKey, RequestId), CancellationToken>;

/// The calls of this node. Cheap to clone; clones share.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<Table>>);

/// A call's place in the table; dropping it ends that.
#[derive(Debug)]
pub(crate) struct RunningCall {
    calls: RunningCalls,
    key: Option<(SessionKey, RequestId)>,
    /// Cancelled when the client no longer wants the answer.
    pub(crate) cancelled: CancellationToken,
}

impl RunningCalls {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a call. `None` if the session has one with this id in flight.
    pub(crate) fn begin(&self, session: SessionKey, id: &RequestId) -> Option<RunningCall> {
        let key = (session, id.clone());
        let cancelled = CancellationToken::new();
        let mut table = self.table();
        if table.contains_key(&key) {
            return None;
        }
        table.insert(key.clone(), cancelled.clone());
        Some(RunningCall {
            calls: self.clone(),
            key: Some(key),
            cancelled,
        })
    }

    /// Cancels a call. Unknown and finished ones are nothing (CN-6).
    pub(crate) fn cancel(&self, session: SessionKey, id: &RequestId) {
        if let Some(call) = self.table().get(&(session, id.clone())) {
            call.cancel();
        }
    }

    /// Cancels every call of a session (T-45).
    pub(crate) fn cancel_all(&self, session: SessionKey) {
        for ((of, _), call) in &*self.table() {
            if *of == session {
                call.cancel();
            }
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.calls.table().remove(&key);
        }
    }
}

/// Work that runs where it is awaited, and as a task of the process from the moment nobody awaits it any more. A task from the
/// start would wake another thread twice for every call.
pub(crate) struct Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    work: Option<Pin<Box<F>>>,
    tracker: TaskTracker,
}

impl<F> Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    /// Dropped before its end, it goes on.
    pub(crate) fn new(tracker: &TaskTracker, work: F) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tracker: tracker.clone(),
        }
    }
}

impl<F> Future for Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let outcome = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(outcome)
    }
}

impl<F> Drop for Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn drop(&mut self) {
        // At the end of the process there is no runtime to go on in.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            self.tracker.spawn_on(work, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionKey = SessionKey([1; 16]);

    #[test]
    fn j_3_an_id_in_flight_is_refused_and_free_again_afterwards() {
        let calls = RunningCalls::default();
        let id = RequestId::from(1);
        let running = calls.begin(SESSION, &id).unwrap();
        assert!(calls.begin(SESSION, &id).is_none());
        assert!(
            calls.begin(SESSION, &RequestId::from("1")).is_some(),
            "J-5: a string is another id"
        );
        assert!(
            calls.begin(SessionKey([2; 16]), &id).is_some(),
            "J-4: another session has its own ids"
        );
        drop(running);
        assert!(calls.begin(SESSION, &id).is_some());
    }

    #[test]
    fn cn_1_a_cancel_reaches_its_call_and_no_other() {
        let calls = RunningCalls::default();
        let (first, second) = (RequestId::from(1), RequestId::from(2));
        let (one, two) = (
            calls.begin(SESSION, &first).unwrap(),
            calls.begin(SESSION, &second).unwrap(),
        );
        calls.cancel(SessionKey([2; 16]), &first);
        calls.cancel(SESSION, &RequestId::from(9));
        assert!(!one.cancelled.is_cancelled());
        calls.cancel(SESSION, &first);
        assert!(one.cancelled.is_cancelled() && !two.cancelled.is_cancelled());
        calls.cancel_all(SESSION);
        assert!(two.cancelled.is_cancelled(), "T-45");
    }
}
