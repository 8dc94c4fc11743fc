//! Events that stop a call from outside, and its answer then (STREAM-16.4, AUTH-4.3).

use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use portolan_cluster::node::Lost;
use portolan_net::egress::MOMENT;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;

/// The moment at which a stopping process ends its waiting requests.
#[derive(Debug)]
pub(crate) struct Shutdown {
    /// Read by every waiting request, hence not a token: a token has a lock.
    is_now: AtomicBool,
    told: CancellationToken,
}

impl Shutdown {
    /// `told` wakes all waiting requests and their connections.
    pub(crate) const fn new(told: CancellationToken) -> Self {
        Self {
            is_now: AtomicBool::new(false),
            told,
        }
    }

    /// Ends the waiting requests now.
    pub(crate) fn begin(&self) {
        self.is_now.store(true, Ordering::Release);
        self.told.cancel();
    }
}

/// The outcome of a request, or `None` if the process cannot wait for it.
///
/// Each wake of the request adds one read of a flag. Connections of open requests are woken when
/// the flag is set.
pub(crate) async fn in_time<T>(words: &Shutdown, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if words.is_now.load(Ordering::Acquire) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// The outcome of a call under a token, or the reason to stop waiting.
///
/// A quick call needs no more than in [`in_time`]. Only a call that waits for an API checks the
/// token, because a token has a lock. The client of the API wakes the call for that ([`MOMENT`]).
pub(crate) async fn in_time_under<T>(
    words: &Shutdown,
    caller: &Caller,
    work: impl Future<Output = T>,
) -> Result<T, Lost> {
    let begun = Instant::now();
    let mut work = pin!(work);
    let mut revoked = None;
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        if words.is_now.load(Ordering::Acquire) {
            return Poll::Ready(Err(Lost::Draining));
        }
        if begun.elapsed() < MOMENT {
            return Poll::Pending;
        }
        let revoked = revoked.get_or_insert_with(|| Box::pin(caller.revoked.cancelled()));
        revoked.as_mut().poll(cx).map(|()| Err(Lost::Revoked))
    })
    .await
}

/// Completes with the reason when work under a token must stop.
///
/// It takes locks, so it is for long waits.
pub(crate) async fn stopped(shutdown: &Shutdown, caller: &Caller) -> Lost {
    tokio::select! {
        () = caller.revoked.cancelled() => Lost::Revoked,
        () = shutdown.told.cancelled() => Lost::Draining,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn s16_4_what_waits_is_let_go_and_what_is_done_is_told() {
        let words = Shutdown::new(CancellationToken::new());
        assert_eq!(in_time(&words, ready(1)).await, Some(1));
        let mut waiting = pin!(in_time(&words, pending::<u8>()));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        words.begin();
        assert!(words.told.is_cancelled(), "who sleeps is woken");
        assert_eq!(futures_util::poll!(&mut waiting), Poll::Ready(None));
        assert_eq!(in_time(&words, ready(2)).await, Some(2));
    }
}
