//! A load of so many requests a second, whatever their outcome: for measures during a fault, or
//! while some clients are refused.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};

use crate::load::Connection;

/// A client without an answer by then repeats the request on another connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// The wait of a client before it reconnects.
const AGAIN: Duration = Duration::from_millis(50);

/// The outcomes of the requests.
#[derive(Debug, Default)]
struct Counts {
    /// When each good answer was there.
    good: Mutex<Vec<Instant>>,
    refused: AtomicUsize,
}

/// A running load. Dropping it cuts its connections.
pub(crate) struct Paced {
    counts: Arc<Counts>,
    _senders: JoinSet<()>,
}

impl Paced {
    /// Shares `a_second` out among as many connections as there are requests. A good answer is a success that contains `expected`.
    pub(crate) fn start(
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
        a_second: u32,
        expected: &'static str,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let mut senders = JoinSet::new();
        let between = Duration::from_secs(1) / a_second;
        let turn = between * u32::try_from(requests.len()).unwrap_or(u32::MAX);
        let begin = tokio::time::Instant::now();
        for (number, request) in (0..).zip(requests) {
            let counts = Arc::clone(&counts);
            senders.spawn(async move {
                let mut next = begin + between * number;
                let mut connection = None;
                loop {
                    sleep_until(next).await;
                    // Requests that could not be sent are skipped.
                    next = (next + turn).max(tokio::time::Instant::now());
                    let asked = send(&mut connection, address, &request, expected);
                    match timeout(PATIENCE, asked).await {
                        Ok(Ok(true)) => counts
                            .good
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(Instant::now()),
                        Ok(Ok(false)) => drop(counts.refused.fetch_add(1, Ordering::Relaxed)),
                        _ => {
                            connection = None;
                            sleep(AGAIN).await;
                        }
                    }
                }
            });
        }
        Self {
            counts,
            _senders: senders,
        }
    }

    /// Good answers in this second.
    pub(crate) fn good_within_a_second_of(&self, from: Instant) -> usize {
        let good = self.counts.good.lock();
        let good = good.unwrap_or_else(PoisonError::into_inner);
        let until = from + Duration::from_secs(1);
        good.iter().filter(|at| (from..until).contains(*at)).count()
    }

    /// Good answers, and answers of other kinds, so far.
    pub(crate) fn answers(&self) -> (usize, usize) {
        let good = self.counts.good.lock();
        let good = good.unwrap_or_else(PoisonError::into_inner).len();
        (good, self.counts.refused.load(Ordering::Relaxed))
    }
}

async fn send(
    kept: &mut Option<Connection>,
    address: SocketAddr,
    request: &[u8],
    expected: &str,
) -> Result<bool> {
    let connection = match kept {
        Some(connection) => connection,
        none => none.insert(Connection::open(address).await?),
    };
    Ok(connection.call(request).await?.check(expected).is_ok())
}
