//! Work that continues after its connection ends (MCP-T-29).

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// Work that runs where it is awaited, and as a task of the process once the awaiter drops it.
///
/// A task from the start would wake another thread twice for every call.
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
    /// Wraps `work`. If dropped before its end, it continues as a task.
    pub(crate) fn new(tracker: &TaskTracker, work: F) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tracker: tracker.clone(),
        }
    }

    /// The work, for the caller to continue.
    pub(crate) fn into_work(mut self) -> Option<Pin<Box<F>>> {
        self.work.take()
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
        // At the end of the process there is no runtime for the task.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            self.tracker.spawn_on(work, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn t_29_work_that_nobody_awaits_any_more_goes_on() {
        let (tracker, gate) = (TaskTracker::new(), Arc::new(Notify::new()));
        let done = Arc::new(AtomicBool::new(false));
        let (opened, told) = (Arc::clone(&gate), Arc::clone(&done));
        let mut work = Unbroken::new(&tracker, async move {
            opened.notified().await;
            told.store(true, Ordering::Release);
        });
        assert!(futures_util::poll!(&mut work).is_pending());
        drop(work);
        gate.notify_one();
        tracker.close();
        tracker.wait().await;
        assert!(done.load(Ordering::Acquire));
    }
}
