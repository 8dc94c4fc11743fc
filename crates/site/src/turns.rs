//! Turns of tenants at work that is dear: each has a few, and a short queue, so that none of them
//! can take it all (REVIEW-S-1).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portolan_model::id::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns of every tenant at one kind of work, in this process.
#[derive(Debug)]
pub struct Turns {
    at_once: usize,
    waiting: usize,
    queues: Mutex<HashMap<TenantId, Queue>>,
}

/// Queue of one tenant.
#[derive(Debug, Clone)]
struct Queue {
    /// Those that wait or run.
    places: Arc<Semaphore>,
    /// Those that run.
    turns: Arc<Semaphore>,
}

/// A tenant's turn, until it is dropped. It moves to where the work is done, and is over when that is.
#[derive(Debug)]
pub struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Turns {
    /// Each tenant has so many turns at once, and so many requests may wait for one.
    pub fn new(at_once: usize, waiting: usize) -> Self {
        Self {
            at_once,
            waiting,
            queues: Mutex::default(),
        }
    }

    /// Takes a turn of a tenant, waiting no longer than `patience`. `None`: its queue is full, or it took too long.
    pub async fn take(&self, tenant: TenantId, patience: Duration) -> Option<Turn> {
        let queue = self.queue(tenant);
        let place = queue.places.try_acquire_owned().ok()?;
        let turn = queue.turns.acquire_owned();
        let turn = tokio::time::timeout(patience, turn).await.ok()?.ok()?;
        Some(Turn {
            _turn: turn,
            _place: place,
        })
    }

    fn queue(&self, tenant: TenantId) -> Queue {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // Each permit holds its semaphore: a queue without permits in use is idle.
        queues.retain(|_, queue| Arc::strong_count(&queue.places) > 1);
        let queue = queues.entry(tenant).or_insert_with(|| Queue {
            places: Arc::new(Semaphore::new(self.at_once + self.waiting)),
            turns: Arc::new(Semaphore::new(self.at_once)),
        });
        queue.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn s1_a_tenant_has_its_turns_and_its_queue_and_takes_none_of_another() {
        let turns = Turns::new(1, 1);
        let (a, b) = (TenantId::generate(), TenantId::generate());
        let first = turns.take(a, SOON).await.unwrap();
        assert!(turns.take(a, Duration::ZERO).await.is_none(), "it runs");
        let second = turns.take(a, SOON);
        tokio::pin!(second);
        let waits = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(second.as_mut().poll(cx).is_pending())
        });
        assert!(waits.await);
        assert!(turns.take(a, SOON).await.is_none(), "the queue is full");
        let other = turns.take(b, SOON).await;
        assert!(other.is_some());
        drop(first);
        assert!(second.await.is_some());
        drop(other);
        turns.queue(TenantId::generate());
        assert_eq!(
            turns.queues.lock().unwrap().len(),
            1,
            "idle queues are gone"
        );
    }
}
