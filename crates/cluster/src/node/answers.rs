//! Delivery of clients' answers to the questions of running calls (STREAM-14, STREAM-17.1).
//!
//! The store decides which of two answers is the first. While the store is down or full, the
//! client's request waits. If the store does not know the question, the node accepts the answer and
//! retries for a while. The question may not be stored yet, and only its own node can see that. No
//! node can distinguish such a question from one that never existed or has ended, so all of them
//! are retried alike. Only the first answer to a question is kept for retries.

pub(super) mod deliver;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicUsize},
    time::Duration,
};

use bytes::Bytes;
use portolan_model::id::TenantId;
use tokio::{sync::Notify, time::Instant};

use super::questions::OPEN_AT_MOST;
use crate::store::{Principal, Routed, SessionKey};

/// The same for an answer whose question is unknown. A writer tries every 250 ms.
const EARLY_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// Bounds of the answers that this node keeps: in total, per tenant, per session, and in bytes. The
/// tenant's bound leaves space for other tenants.
const KEPT: usize = 1_000;
const OF_TENANT: usize = KEPT / 4;
const OF_ONE: usize = 2 * OPEN_AT_MOST;
const BYTES: usize = 8 * 1024 * 1024;
const BYTES_OF_TENANT: usize = BYTES / 4;

/// An answer as the client sent it, sealed for its question.
#[derive(Debug)]
pub(super) struct ClientAnswer {
    pub(super) tenant: TenantId,
    pub(super) session: SessionKey,
    pub(super) principal: Principal,
    pub(super) question: String,
    pub(super) payload: Bytes,
}

#[derive(Debug)]
struct RetriedAnswer {
    answer: Arc<ClientAnswer>,
    until: Instant,
    /// `None` during an attempt.
    next: Option<Instant>,
    pause: Duration,
}

#[derive(Debug, Default)]
struct Early {
    kept: BTreeMap<u64, RetriedAnswer>,
    last: u64,
    bytes: usize,
}

impl Early {
    fn may_keep(&self, answer: &ClientAnswer) -> bool {
        let (mut of_tenant, mut bytes_of_tenant, mut of_one) = (0, 0_usize, 0);
        for RetriedAnswer { answer: other, .. } in self.kept.values() {
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

    fn keep(&mut self, answer: ClientAnswer, now: Instant, wait: Duration) {
        self.last += 1;
        self.bytes += answer.payload.len();
        let kept = RetriedAnswer {
            answer: Arc::new(answer),
            until: now + wait,
            next: Some(now + EARLY_AGAIN.0),
            pause: EARLY_AGAIN.0 * 2,
        };
        self.kept.insert(self.last, kept);
    }

    /// Takes one answer that is due for a retry.
    fn take_due(&mut self, now: Instant) -> Option<(u64, Arc<ClientAnswer>)> {
        let is_due = |kept: &RetriedAnswer| kept.next.is_some_and(|at| at <= now);
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

pub(super) fn count(outcome: &'static str) {
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
            ClientAnswer {
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
