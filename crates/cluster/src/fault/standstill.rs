//! A process that is stopped for a while, as by `SIGSTOP`.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use crate::lock;

/// Stops what runs around it, and lets it go on. Time goes on meanwhile: whoever is stopped finds all its timers over at once. Cheap to
/// clone; clones share.
#[derive(Debug, Clone, Default)]
pub struct Standstill(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    /// Who wanted to go on, in the order in which they came.
    waiting: Vec<Waker>,
}

impl PartialEq for Standstill {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Standstill {}

impl Standstill {
    /// From now on nothing goes on.
    pub fn stop(&self) {
        lock(&self.0).is_stopped = true;
    }

    /// Everything goes on.
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

    /// Whether it is stopped now.
    pub fn is_stopped(&self) -> bool {
        lock(&self.0).is_stopped
    }

    /// The same task, which goes on only while nothing is stopped.
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
