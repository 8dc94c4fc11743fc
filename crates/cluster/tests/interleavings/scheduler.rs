//! Interleavings (TEST-I): runs the tasks of this crate under a scheduler that may
//! switch the task at every lock, as threads would (`shuttle`). The product's own code runs; only
//! [`lock`] and [`spawn`] are replaced.
//!
//! Each operation of Tokio's channels, notifications and tokens counts as one step. Time stands
//! still, so periodic work that repairs lost wake-ups does not run. A task that misses its wake-up
//! waits forever. The scheduler detects that no task can continue, and prints the seed of the run
//! (`SHUTTLE_RANDOM_SEED`).

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    time::Duration,
};

use shuttle::{Config, Runner, scheduler::RandomScheduler};
use tokio_util::task::TaskTracker;

/// Fixed seed, for the same orders in every run.
const SEED: u64 = 20_261_122;
/// Bytes of a task's stack: the frames of a debug build are large.
const STACK: usize = 512 * 1024;

thread_local! {
    /// Whether this thread runs interleavings.
    static IS_EXPLORING: Cell<bool> = const { Cell::new(false) };
}

/// Point at which another task may continue.
fn point() {
    if IS_EXPLORING.get() {
        // A sleep only switches here. A yield would wake the task, and so hide a missing wake-up.
        shuttle::thread::sleep(Duration::ZERO);
    }
}

/// Replaces `crate::lock`, with a switch before and after.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    point();
    let guard = loop {
        match mutex.try_lock() {
            Ok(guard) => break guard,
            Err(TryLockError::Poisoned(guard)) => break guard.into_inner(),
            // The holder of the lock is at its own switch point, and continues later.
            Err(TryLockError::WouldBlock) if IS_EXPLORING.get() => point(),
            Err(TryLockError::WouldBlock) => {
                break mutex.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    };
    Guard(Some(guard))
}

/// Guard that `lock` returns.
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

/// Replaces `crate::spawn`: within an interleaving, uses its scheduler.
pub(crate) fn spawn(tracker: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    if IS_EXPLORING.get() {
        drop(shuttle::future::spawn(tracker.track_future(task)));
    } else {
        tracker.spawn(task);
    }
}

/// Runs a test `times` times, each time in another order of events.
pub(crate) fn explore<F>(times: usize, test: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()>,
{
    /// Resets the thread, also when a test fails.
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
        // No task drives this runtime: it only provides the time, and its timers never fire.
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

    /// Tests the check itself: it finds a wake-up that is lost in one order of events. The event
    /// may come between the check and the wait.
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
        // On its own thread, which also discards the state of the failed run.
        assert!(std::thread::spawn(run).join().is_err());
    }
}
