//! Suspends a process for a while, like `SIGSTOP`.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use crate::lock;

/// Suspends the tasks that it wraps, and continues them. Time goes on meanwhile, so all timers of a
/// suspended task fire at once later. Cheap to clone; clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Standstill(Arc<Mutex<StandstillState>>);

#[derive(Debug, Default)]
struct StandstillState {
    is_stopped: bool,
    /// Suspended tasks, in the order in which they were woken.
    waiting: Vec<Waker>,
}

impl PartialEq for Standstill {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Standstill {}

impl Standstill {
    /// Suspends all tasks.
    pub fn stop(&self) {
        lock(&self.0).is_stopped = true;
    }

    /// Continues all tasks.
    pub fn go_on(&self) {
        let waiting = {
            let mut state = lock(&self.0);
            state.is_stopped = false;
            std::mem::take(&mut state.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }

    /// Whether the tasks are suspended.
    pub fn is_stopped(&self) -> bool {
        lock(&self.0).is_stopped
    }

    /// Wraps a task, which then runs only while it is not suspended.
    pub fn around<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        let (standstill, mut task) = (self.clone(), Box::pin(task));
        poll_fn(move |cx| {
            {
                let mut state = lock(&standstill.0);
                if state.is_stopped {
                    if !state
                        .waiting
                        .iter()
                        .any(|waker| waker.will_wake(cx.waker()))
                    {
                        state.waiting.push(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
            }
            task.as_mut().poll(cx)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_stopped_goes_on_where_it_was_and_its_timers_are_over() {
        let standstill = Standstill::default();
        let begun = Instant::now();
        let mut task = Box::pin(standstill.around(async {
            sleep(Duration::from_secs(1)).await;
            begun.elapsed()
        }));
        let long = Duration::from_millis(500);
        assert!(timeout(long, &mut task).await.is_err());
        standstill.stop();
        let long = Duration::from_secs(10);
        assert!(timeout(long, &mut task).await.is_err(), "time goes on");
        standstill.go_on();
        assert_eq!(task.await, Duration::from_millis(10_500));
    }
}
