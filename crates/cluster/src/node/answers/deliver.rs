//! Passes clients' answers to the store, and repeats those whose question is unknown.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::Instant;

use super::{ClientAnswer, count, outcome};
use crate::{
    lock,
    node::{
        inner::Inner,
        sessions::{Unavailable, WaitingPermit},
        settings::{ANSWER_WAIT, CALL_WITHIN, WAITERS},
    },
    store::{self, Routed, StoreError},
};

/// Pause between two attempts of a request that waits for the store: first, and longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Maximum number of answers that are retried at once.
const AT_ONCE: usize = 64;

/// Passes an answer to the request that waits for it, on any node.
pub(crate) async fn give(inner: &Inner, answer: ClientAnswer) -> Result<Routed, Unavailable> {
    let until = Instant::now() + ANSWER_WAIT;
    let (mut pause, most) = AGAIN;
    let mut permit = None;
    let routed = loop {
        match offer(inner, &answer).await {
            Ok(routed) => break routed,
            Err(StoreError::Corrupt(_)) => return Err(Unavailable),
            Err(_) if Instant::now() >= until => return Err(Unavailable),
            Err(_) => {}
        }
        if permit.is_none() {
            permit = WaitingPermit::take(&inner.answers.waiting, WAITERS);
            if permit.is_none() {
                return Err(Unavailable);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(most);
    };
    if routed == Routed::Unasked {
        let mut early = lock(&inner.answers.early);
        if early.may_keep(&answer) {
            early.keep(answer, Instant::now(), ANSWER_WAIT);
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
async fn offer(inner: &Inner, answer: &ClientAnswer) -> store::Result<Routed> {
    let ClientAnswer {
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
        guarded_store.call("answer", CALL_WITHIN, offer).await
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
pub(crate) async fn try_again(inner: Arc<Inner>) {
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

async fn try_one(inner: &Inner, number: u64, answer: Arc<ClientAnswer>) {
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
