//! Small orders to the store that nobody waits for. Losing one costs nothing but space until it expires.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::Notify;

use super::{Inner, sessions};
use crate::{
    lock,
    store::{Principal, SessionKey, StreamKey},
};

/// Under way at once.
const AT_ONCE: usize = 64;
/// Beyond this many, orders are dropped.
const AT_MOST: usize = 100_000;

#[derive(Debug)]
pub(super) enum Chore {
    Unregister {
        session: SessionKey,
        rpc: String,
    },
    Detach {
        stream: StreamKey,
        generation: u64,
    },
    /// A record was made for a session: the oldest idle ones of its principal may have to go.
    Remember {
        session: SessionKey,
        principal: Principal,
    },
    /// An answer came whose payload was too big for its doorbell, or may have come unheard.
    TakeAnswer {
        session: SessionKey,
        question: String,
    },
}

#[derive(Debug, Default)]
pub(super) struct Chores {
    queue: Mutex<VecDeque<Chore>>,
    wake: Notify,
}

impl Chores {
    pub(super) fn add(&self, chore: Chore) {
        let mut queue = lock(&self.queue);
        if queue.len() < AT_MOST {
            queue.push_back(chore);
            self.wake.notify_one();
        }
    }
}

/// Does them, until the node stops.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut flight = FuturesUnordered::new();
    loop {
        while flight.len() < AT_ONCE {
            let Some(chore) = lock(&inner.chores.queue).pop_front() else {
                break;
            };
            flight.push(run_one(&inner, chore));
        }
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            Some(()) = flight.next() => {}
            () = inner.chores.wake.notified() => {}
        }
    }
}

async fn run_one(inner: &Inner, chore: Chore) {
    let (link, within) = (&inner.link, inner.settings.call_within);
    match chore {
        Chore::Unregister { session, rpc } => {
            let unregister = link.store.unregister(session, &rpc);
            let _ = link.call("unregister", within, unregister).await;
        }
        Chore::Detach { stream, generation } => {
            let detach = link.store.detach(stream, inner.id, generation);
            let _ = link.call("detach", within, detach).await;
        }
        Chore::Remember { session, principal } => {
            sessions::keep_few(inner, session, principal).await;
        }
        Chore::TakeAnswer { session, question } => {
            let take = link.store.take_answer(session, &question);
            if let Ok(Some(payload)) = link.call("take_answer", within, take).await {
                inner.questions.answered(session, &question, payload);
            }
        }
    }
}
