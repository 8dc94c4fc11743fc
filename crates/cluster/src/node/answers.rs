//! Delivery of clients' answers to the questions of running calls (STREAM-14, STREAM-17.1).
//!
//! The store decides which of two answers is the first. While the store is down or full, the
//! client's request waits. If the store does not know the question, the node accepts the answer and
//! retries for a while. The question may not be stored yet, and only its own node can see that. No
//! node can distinguish such a question from one that never existed or has ended, so all of them
//! are retried alike. Only the first answer to a question is kept for retries.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicUsize},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use portolan_model::id::TenantId;
use tokio::{sync::Notify, time::Instant};

use super::{
    Inner,
    questions::OPEN_AT_MOST,
    sessions::{Place, Unavailable},
};
use crate::{
    lock,
    store::{self, Principal, Routed, SessionKey, StoreError},
};

/// Pause between two attempts of a request that waits for the store: first, and longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// The same for an answer whose question is unknown. A writer tries every 250 ms.
const EARLY_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// Maximum number of answers that are retried at once.
const AT_ONCE: usize = 64;
/// Bounds of the answers that this node keeps: in total, per tenant, per session, and in bytes. The
/// tenant's bound leaves space for other tenants.
const KEPT: usize = 1_000;
const OF_TENANT: usize = KEPT / 4;
const OF_ONE: usize = 2 * OPEN_AT_MOST;
const BYTES: usize = 8 * 1024 * 1024;
const BYTES_OF_TENANT: usize = BYTES / 4;

/// An answer as the client sent it, sealed for its question.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) tenant: TenantId,
    pub(super) session: SessionKey,
    pub(super) principal: Principal,
    pub(super) question: String,
    pub(super) payload: Bytes,
}

#[derive(Debug)]
struct Kept {
    answer: Arc<Answer>,
    until: Instant,
    /// `None` during an attempt.
    next: Option<Instant>,
    pause: Duration,
}

#[derive(Debug, Default)]
struct Early {
    kept: BTreeMap<u64, Kept>,
    last: u64,
    bytes: usize,
}

impl Early {
    fn may_keep(&self, answer: &Answer) -> bool {
        let (mut of_tenant, mut bytes_of_tenant, mut of_one) = (0, 0_usize, 0);
        for Kept { answer: other, .. } in self.kept.values() {
            if other.tenant == answer.tenant {
                of_tenant += 1;
                bytes_of_tenant += other.payload.len();
            }
            if other.session == answer.session {
                of_one += 1;
                if other.question == answer.question {
                    return false;
                }
            }
        }
        let size = answer.payload.len();
        of_one < OF_ONE
            && of_tenant < OF_TENANT
            && bytes_of_tenant.saturating_add(size) <= BYTES_OF_TENANT
            && self.kept.len() < KEPT
            && self.bytes.saturating_add(size) <= BYTES
    }

    fn keep(&mut self, answer: Answer, now: Instant, wait: Duration) {
        self.last += 1;
        self.bytes += answer.payload.len();
        let kept = Kept {
            answer: Arc::new(answer),
            until: now + wait,
            next: Some(now + EARLY_AGAIN.0),
            pause: EARLY_AGAIN.0 * 2,
        };
        self.kept.insert(self.last, kept);
    }

    /// Takes one answer that is due for a retry.
    fn take_due(&mut self, now: Instant) -> Option<(u64, Arc<Answer>)> {
        let is_due = |kept: &Kept| kept.next.is_some_and(|at| at <= now);
        let (number, kept) = self.kept.iter_mut().find(|(_, kept)| is_due(kept))?;
        kept.next = None;
        Some((*number, Arc::clone(&kept.answer)))
    }

    fn next(&self) -> Option<Instant> {
        self.kept.values().filter_map(|kept| kept.next).min()
    }

    /// Records an attempt. Returns true if it was the last one.
    fn tried(&mut self, number: u64, is_over: bool, now: Instant) -> bool {
        let Some(kept) = self.kept.get_mut(&number) else {
            return true;
        };
        if is_over || now >= kept.until {
            self.bytes -= kept.answer.payload.len();
            self.kept.remove(&number);
            return true;
        }
        kept.next = Some(kept.until.min(now + kept.pause));
        kept.pause = (kept.pause * 2).min(EARLY_AGAIN.1);
        false
    }
}

/// Answers that wait on this node.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Number of client requests that wait with their answers.
    waiting: AtomicUsize,
    early: Mutex<Early>,
    wake: Notify,
}

/// Passes an answer to the request that waits for it, on any node.
pub(super) async fn give(inner: &Inner, answer: Answer) -> Result<Routed, Unavailable> {
    let settings = &inner.settings;
    let until = Instant::now() + settings.answer_wait;
    let (mut pause, most) = AGAIN;
    let mut place = None;
    let routed = loop {
        match offer(inner, &answer).await {
            Ok(routed) => break routed,
            Err(StoreError::Corrupt(_)) => return Err(Unavailable),
            Err(_) if Instant::now() >= until => return Err(Unavailable),
            Err(_) => {}
        }
        if place.is_none() {
            place = Place::take(&inner.answers.waiting, settings.waiters);
            if place.is_none() {
                return Err(Unavailable);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(most);
    };
    if routed == Routed::Unasked {
        let mut early = lock(&inner.answers.early);
        if early.may_keep(&answer) {
            early.keep(answer, Instant::now(), settings.answer_wait);
            drop(early);
            inner.answers.wake.notify_one();
            // The outcome is counted when it is known.
            return Ok(routed);
        }
    }
    count(outcome(routed));
    Ok(routed)
}

/// Makes one attempt. While the store cannot decide which answer is the first, a question that is
/// open on this node takes the answer.
async fn offer(inner: &Inner, answer: &Answer) -> store::Result<Routed> {
    let Answer {
        session,
        principal,
        question,
        payload,
        ..
    } = answer;
    let guarded_store = &inner.guarded_store;
    let reply = if guarded_store.is_open() && inner.questions.is_open(*session, question) {
        Err(StoreError::Down("the breaker is open".to_owned()))
    } else {
        let offer = guarded_store
            .store
            .answer(*session, *principal, question, payload.clone());
        guarded_store
            .call("answer", inner.settings.call_within, offer)
            .await
    };
    let has_no_say = matches!(
        reply,
        Ok(Routed::Unasked) | Err(StoreError::Down(_) | StoreError::Refused(_))
    );
    if has_no_say
        && inner
            .questions
            .answered(*session, question, payload.clone())
    {
        return Ok(Routed::Notified);
    }
    reply
}

/// Retries answers whose questions were unknown, until the node stops.
pub(super) async fn try_again(inner: Arc<Inner>) {
    let mut flight = FuturesUnordered::new();
    loop {
        let next = {
            let mut early = lock(&inner.answers.early);
            while flight.len() < AT_ONCE {
                let Some((number, answer)) = early.take_due(Instant::now()) else {
                    break;
                };
                flight.push(try_one(&inner, number, answer));
            }
            early.next().filter(|_| flight.len() < AT_ONCE)
        };
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            Some(()) = flight.next() => {}
            () = inner.answers.wake.notified() => {}
            () = sleep => {}
        }
    }
}

async fn try_one(inner: &Inner, number: u64, answer: Arc<Answer>) {
    let came_of_it = match offer(inner, &answer).await {
        Ok(Routed::Unasked) | Err(StoreError::Down(_) | StoreError::Refused(_)) => None,
        Ok(Routed::Notified) => Some("late"),
        Ok(routed) => Some(outcome(routed)),
        Err(StoreError::Corrupt(_)) => Some(outcome(Routed::Unasked)),
    };
    let is_over = lock(&inner.answers.early).tried(number, came_of_it.is_some(), Instant::now());
    if is_over {
        count(came_of_it.unwrap_or(outcome(Routed::Unasked)));
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("answers_total", "outcome" => outcome).increment(1);
}

/// Metric label for the outcome of an answer or a cancellation.
pub(super) const fn outcome(routed: Routed) -> &'static str {
    match routed {
        Routed::Notified => "rung",
        Routed::Nobody => "nobody",
        Routed::Unasked => "unasked",
        Routed::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LARGE: [u8; BYTES_OF_TENANT + 1] = [0; BYTES_OF_TENANT + 1];

    #[test]
    fn a_workspace_that_answers_nothing_leaves_room_for_another() {
        let [mine, theirs] =
            [1, 2].map(|number| TenantId::from_uuid(uuid::Uuid::from_u128(number)));
        let answer = |tenant, number: usize, payload: &'static [u8]| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&number.to_be_bytes());
            Answer {
                tenant,
                session: SessionKey(key),
                principal: Principal(key),
                question: "q1".to_owned(),
                payload: Bytes::from_static(payload),
            }
        };
        let mut early = Early::default();
        let now = Instant::now();
        for number in 0..OF_TENANT {
            let one = answer(mine, number, b"so");
            assert!(early.may_keep(&one), "{number}");
            early.keep(one, now, Duration::from_secs(20));
        }
        assert!(!early.may_keep(&answer(mine, OF_TENANT, b"so")));
        assert!(early.may_keep(&answer(theirs, OF_TENANT, b"so")));
        assert!(!early.may_keep(&answer(theirs, OF_TENANT, &LARGE)));
    }
}
