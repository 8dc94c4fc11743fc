//! What stops a call from outside, and how one that stands alone is still answered then (`streams.md` §16.4, `auth.md` §4.3).

use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use portolan_cluster::node::Lost;
use tokio_util::sync::CancellationToken;

use crate::{endpoint::bearer::Caller, state::McpState};

/// The moment in which a process that stops asks for the last words of what still runs.
#[derive(Debug)]
pub(crate) struct LastWords {
    /// Looked at by every request that waits, hence no token: a token has a lock.
    is_now: AtomicBool,
    told: CancellationToken,
}

impl LastWords {
    /// `told` wakes whoever waits, connections included.
    pub(crate) const fn new(told: CancellationToken) -> Self {
        Self {
            is_now: AtomicBool::new(false),
            told,
        }
    }

    /// It is now.
    pub(crate) fn ask(&self) {
        self.is_now.store(true, Ordering::Release);
        self.told.cancel();
    }
}

/// The outcome of a request, or `None` if the process cannot wait for it. Costs a request that waits one look at a flag each time it
/// is woken: the connection of a request that is still open is woken when the flag is set.
pub(crate) async fn in_time<T>(words: &LastWords, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if words.is_now.load(Ordering::Acquire) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Completes when what runs under a token has to stop, and says why. For what waits for long: it takes locks.
pub(crate) async fn stopped(state: &McpState, caller: &Caller) -> Lost {
    tokio::select! {
        () = caller.revoked.cancelled() => Lost::Revoked,
        () = state.last_words.told.cancelled() => Lost::Draining,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn s16_4_what_waits_is_let_go_and_what_is_done_is_told() {
        let words = LastWords::new(CancellationToken::new());
        assert_eq!(in_time(&words, ready(1)).await, Some(1));
        let mut waiting = pin!(in_time(&words, pending::<u8>()));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        words.ask();
        assert!(words.told.is_cancelled(), "who sleeps is woken");
        assert_eq!(futures_util::poll!(&mut waiting), Poll::Ready(None));
        assert_eq!(in_time(&words, ready(2)).await, Some(2));
    }
}
