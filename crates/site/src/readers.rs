//! Documents that are read: on threads of their own, a few at a time, of each tenant one, and no
//! longer than they are waited for (REVIEW-S-1).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use portolan_http_tools::Stop;
use portolan_model::id::TenantId;
use tokio::sync::Semaphore;

use crate::{console_error::ConsoleError, turns::Turns};

/// Documents read at the same time: each may take seconds of CPU and a hundred megabytes.
const SEATS: usize = 4;

/// Of one tenant among them, and its requests that may wait for that.
const OF_A_TENANT: usize = 1;

const WAITING: usize = 4;

/// From the request to the end of the work.
const LONGEST: Duration = Duration::from_secs(20);

/// No tenant waits longer because of others.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Seconds after which a request that found no seat may come again.
const COME_AGAIN: i64 = 5;

/// The readers of a process.
#[derive(Debug)]
pub struct Readers {
    turns: Turns,
    seats: Arc<Semaphore>,
}

impl Default for Readers {
    fn default() -> Self {
        Self {
            turns: Turns::new(OF_A_TENANT, WAITING),
            seats: Arc::new(Semaphore::new(SEATS)),
        }
    }
}

impl Readers {
    /// Runs work for a tenant on a dedicated thread. The work gets its deadline, and [`Stop`]
    /// signals that the request has ended. The work holds its seat until it ends itself.
    ///
    /// # Errors
    /// 503 with `Retry-After` if the tenant's queue is full, or no seat is free within a second.
    pub async fn read<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl FnOnce(Instant, &Stop) -> T + Send + 'static,
    ) -> Result<T, ConsoleError> {
        let until = Instant::now() + LONGEST;
        let own = || {
            ConsoleError::busy(
                COME_AGAIN,
                "This workspace reads as many documents as it may at a time. Try again in a moment.",
            )
        };
        let turn = self.turns.take(tenant, LONGEST).await.ok_or_else(own)?;
        let seat = Arc::clone(&self.seats).acquire_owned();
        let seat = tokio::time::timeout(LONGEST_WAIT, seat)
            .await
            .map_err(|_elapsed| {
                ConsoleError::busy(
                    COME_AGAIN,
                    "Many documents are being read just now. Try again in a moment.",
                )
            })?
            .map_err(|error| ConsoleError::internal("import semaphore", error))?;
        let stop = Stop::default();
        let _with_the_request = stop.when_dropped();
        tokio::task::spawn_blocking(move || {
            let _held = (turn, seat);
            work(until, &stop)
        })
        .await
        .map_err(|error| ConsoleError::internal("import", error))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};

    use portolan_http_tools::{ImportOptions, ReadError, read};

    use super::*;

    /// Nothing here takes longer, whatever else the machine does.
    const SOON: Duration = Duration::from_secs(30);

    /// A document that takes its time: some hundred thousand values, all different.
    fn large() -> Vec<u8> {
        let values: Vec<String> = (0..400_000).map(|n| format!("{{\"v\":[{n}]}}")).collect();
        let values = values.join(",");
        format!("{{\"openapi\":\"3.1.0\",\"paths\":{{}},\"x-a\":[{values}]}}").into_bytes()
    }

    async fn until(mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < SOON);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Runs until it is stopped, like a document that never ends.
    fn endless(until: Instant, stop: &Stop) -> Result<(), ReadError> {
        let text = large();
        loop {
            read(&text, &ImportOptions::default(), until, stop)?;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn s1_work_ends_with_its_request_and_holds_its_seat_until_then() {
        let readers = Readers::default();
        let tenant = TenantId::generate();
        let (ended, end) = std::sync::mpsc::channel();
        let work = move |until: Instant, stop: &Stop| {
            let outcome = endless(until, stop);
            ended.send(outcome.unwrap_err()).unwrap();
        };
        let request = tokio::time::timeout(Duration::from_millis(200), readers.read(tenant, work));
        assert!(request.await.is_err(), "the client goes away");
        let why = tokio::task::spawn_blocking(move || end.recv_timeout(SOON));
        let why = why.await.unwrap().unwrap();
        assert!(matches!(why, ReadError::Stopped), "{why}");
        until(|| readers.seats.available_permits() == SEATS).await;
        // The tenant's turn is free again, too.
        assert!(readers.read(tenant, |_, _| ()).await.is_ok());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn s1_what_ends_too_late_is_told_so_and_keeps_its_seat_meanwhile() {
        let readers = Readers::default();
        let late = |_: Instant, stop: &Stop| endless(Instant::now(), stop);
        let outcome = readers.read(TenantId::generate(), late).await.unwrap();
        assert!(matches!(outcome, Err(ReadError::TooLate)));
        assert_eq!(readers.seats.available_permits(), SEATS);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn s1_a_tenant_that_fills_its_queue_keeps_nobody_else_waiting() {
        let readers = Readers::default();
        let (a, b) = (TenantId::generate(), TenantId::generate());
        let mut requests: Vec<_> = (0..8).map(|_| Box::pin(readers.read(a, endless))).collect();
        // All of A's requests come in; those that find no place are answered at once.
        let mut refused = 0;
        for request in &mut requests {
            let polled = poll_fn(|cx| {
                let polled = request.as_mut().poll(cx);
                std::task::Poll::Ready(match polled {
                    std::task::Poll::Ready(Err(error)) => Some(error),
                    _ => None,
                })
            });
            if let Some(error) = polled.await {
                assert_eq!(error.status(), http::StatusCode::SERVICE_UNAVAILABLE);
                refused += 1;
            }
        }
        assert_eq!(refused, 8 - OF_A_TENANT - WAITING);
        until(|| readers.seats.available_permits() == SEATS - 1).await;
        let small = b"openapi: 3.1.0\npaths: {}";
        let served = readers.read(b, |until, stop| {
            read(small, &ImportOptions::default(), until, stop).is_ok()
        });
        assert!(tokio::time::timeout(SOON, served).await.unwrap().unwrap());
        assert_eq!(
            readers.seats.available_permits(),
            SEATS - 1,
            "A's document is still being read"
        );
        drop(requests);
        until(|| readers.seats.available_permits() == SEATS).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn s1_a_tenant_that_finds_no_seat_is_told_to_come_again() {
        let readers = Readers::default();
        let mut held: Vec<_> = (0..SEATS)
            .map(|_| Box::pin(readers.read(TenantId::generate(), endless)))
            .collect();
        for request in &mut held {
            poll_fn(|cx| std::task::Poll::Ready(request.as_mut().poll(cx).is_pending())).await;
        }
        until(|| readers.seats.available_permits() == 0).await;
        let refused = readers.read(TenantId::generate(), |_, _| ()).await;
        let error = refused.unwrap_err();
        assert_eq!(error.status(), http::StatusCode::SERVICE_UNAVAILABLE);
        drop(held);
        until(|| readers.seats.available_permits() == SEATS).await;
    }
}
