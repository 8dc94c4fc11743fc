//! Interleavings (testing.md, layer I): the tasks of this crate under a scheduler that decides at every lock which of them goes on, as
//! threads would have it (`shuttle`). What runs is the product's own code; only [`lock`] and [`spawn`] are other ones.
//!
//! Tokio's channels, notices and tokens are taken for what they promise: each of their operations is one step. Time stands still: what is
//! done now and then, to make good for a wake-up that was lost, is not done here, so that whoever loses one waits for ever. The
//! scheduler sees that nobody can go on, and prints the seed that leads there (`SHUTTLE_RANDOM_SEED`).

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    time::Duration,
};

use shuttle::{Config, Runner, scheduler::RandomScheduler};
use tokio_util::task::TaskTracker;

/// The same orders in every run.
const SEED: u64 = 20_261_122;
/// Bytes of a task's stack: the frames of a debug build are large.
const STACK: usize = 512 * 1024;

thread_local! {
    /// This thread runs interleavings.
    static IS_EXPLORING: Cell<bool> = const { Cell::new(false) };
}

/// Another task may go on here.
fn point() {
    if IS_EXPLORING.get() {
        // Here a sleep is a switch and nothing else. A yield would wake the task, and so hide that nobody else does.
        shuttle::thread::sleep(Duration::ZERO);
    }
}

/// `crate::lock`, with a point before and after.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    point();
    let guard = loop {
        match mutex.try_lock() {
            Ok(guard) => break guard,
            Err(TryLockError::Poisoned(guard)) => break guard.into_inner(),
            // Whoever has it stands at a point of its own, and goes on some time.
            Err(TryLockError::WouldBlock) if IS_EXPLORING.get() => point(),
            Err(TryLockError::WouldBlock) => {
                break mutex.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    };
    Guard(Some(guard))
}

/// What `lock` gives.
pub(crate) struct Guard<'a, T>(Option<MutexGuard<'a, T>>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect("held until it is dropped")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("held until it is dropped")
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0 = None;
        point();
    }
}

/// `crate::spawn`: within an interleaving, on its scheduler.
pub(crate) fn spawn(tracker: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    if IS_EXPLORING.get() {
        drop(shuttle::future::spawn(tracker.track_future(task)));
    } else {
        tracker.spawn(task);
    }
}

/// Runs a test so many times, each time in another order of events.
pub(crate) fn explore<F>(times: usize, test: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()>,
{
    /// Also when a test fails.
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            IS_EXPLORING.set(false);
        }
    }
    let mut config = Config::new();
    config.stack_size = STACK;
    IS_EXPLORING.set(true);
    let _over = Over;
    let scheduler = RandomScheduler::new_from_seed(SEED, times);
    Runner::new(scheduler, config).run(move || {
        // Nobody drives it: its clock is asked for the time, and timers are set that never ring.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a clock");
        let _clock = runtime.enter();
        shuttle::future::block_on(test());
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// The check itself: a wake-up that is lost in one order of events is found. Between the look and the wait, what is waited for may come.
    #[test]
    fn a_lost_wake_up_is_found() {
        let run = || {
            explore(1_000, || async {
                let (ready, wake) = (Arc::new(Mutex::new(false)), Arc::new(Notify::new()));
                let (told, woken) = (Arc::clone(&ready), Arc::clone(&wake));
                let telling = shuttle::future::spawn(async move {
                    *lock(&told) = true;
                    woken.notify_waiters();
                });
                if !*lock(&ready) {
                    wake.notified().await;
                }
                telling.await.expect("told");
            });
        };
        // On a thread of its own: what a failed run leaves behind goes with it.
        assert!(std::thread::spawn(run).join().is_err());
    }
}
