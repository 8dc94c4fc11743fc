//! Writer of a stream, as its request uses it. Its task (`task`) does the I/O.

pub(super) mod state;
mod task;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use portolan_model::id::TenantId;
use portolan_traces::Span;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::state::{Ending, Item, WriterState};
use super::{
    envelope,
    inner::Inner,
    payload::{Lost, PayloadPlace},
    settings::HOLD,
};
use crate::{
    lock,
    store::{Class, Epoch, Principal, StreamKey},
};

/// Events and bytes of the queue to the task. `push` waits while the queue is full.
const QUEUE: (usize, usize) = (64, 256 * 1024);

/// Parameters of a stream that a request opens.
#[derive(Debug, Clone)]
pub struct NewStream {
    /// Key of the stream.
    pub stream: StreamKey,
    /// Principal of the session.
    pub principal: Principal,
    /// Key of the request among the running ones.
    pub rpc: String,
    /// Time to the request's deadline.
    pub deadline: Duration,
    /// Facts about the request for a new owner, for [`super::Payloads::lost`].
    pub about: Bytes,
    /// Tenant of the stream. Payloads are sealed with its key, and the log counts as its log in
    /// metrics.
    pub tenant: TenantId,
    /// Span of the call.
    pub trace: Option<Arc<Span>>,
}

/// Error of a write: the stream takes no more events or questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Over {
    /// The stream has ended, or another node owns it.
    #[error("the stream is over")]
    Over,
    /// The request has the maximum number of open questions (8), or this question is already open.
    #[error("too many questions are open")]
    TooManyQuestions,
}

struct Handle {
    shared: Arc<WriterState>,
    inner: Arc<Inner>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The client must receive an error if the work ends without a result.
        self.shared.finish(Ending::Lost(Lost::Stopped));
    }
}

/// Handle that writes a stream. Cheap to clone. If the last handle is dropped before the end, the
/// stream ends with an error.
#[derive(Clone)]
pub struct StreamWriter(Arc<Handle>);

impl fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamWriter")
            .field(&self.0.shared.stream)
            .finish()
    }
}

impl StreamWriter {
    /// Writes an event. Waits only while the queue is full.
    pub async fn push(&self, class: Class, payload: Bytes) -> Result<(), Over> {
        self.put(Item {
            class,
            question: None,
            payload,
        })
        .await
    }

    async fn put(&self, item: Item) -> Result<(), Over> {
        let shared = &self.0.shared;
        loop {
            // Registered before the check, so that no wake-up is missed.
            let room = shared.room.notified();
            {
                let mut queue = lock(&shared.queue);
                if queue.is_over {
                    return Err(Over::Over);
                }
                if queue.items.len() < QUEUE.0 && queue.bytes < QUEUE.1 {
                    queue.bytes += item.payload.len();
                    queue.items.push_back(item);
                    break;
                }
            }
            room.await;
        }
        shared.work.notify_one();
        Ok(())
    }

    /// Sends a question to the client and returns the answer, result or error. `question` is the
    /// JSON-RPC id of the request in `payload`; it is unguessable and unique in the session. Drop
    /// the future to give up.
    pub async fn ask(&self, question: &str, payload: Bytes) -> Result<Bytes, Over> {
        struct Asked<'a>(&'a Inner, StreamKey, &'a str);
        impl Drop for Asked<'_> {
            fn drop(&mut self) {
                self.0.questions.forget(self.1.session, self.2);
            }
        }
        let Handle { shared, inner } = &*self.0;
        let answer = inner
            .questions
            .ask(shared.stream, question)
            .ok_or(Over::TooManyQuestions)?;
        let _asked = Asked(inner, shared.stream, question);
        self.put(Item {
            class: Class::Question,
            question: Some(question.to_owned()),
            payload,
        })
        .await?;
        tokio::select! {
            biased;
            answer = answer => {
                let sealed = answer.map_err(|_| Over::Over)?;
                let place = PayloadPlace::answer(shared.tenant, shared.stream.session, question);
                inner.payloads.open(&place, sealed).ok_or(Over::Over)
            }
            () = shared.fenced.cancelled() => Err(Over::Over),
        }
    }

    /// Ends the stream with the final response.
    pub fn finish(&self, payload: Bytes) {
        self.0.shared.finish(Ending::Final(payload));
    }

    /// Ends the stream without a response, because the request was cancelled.
    pub fn cancel(&self) {
        self.0.shared.finish(Ending::Cancelled);
    }

    /// Ends the stream with an error, because the work was stopped.
    pub fn lose(&self, why: Lost) {
        self.0.shared.finish(Ending::Lost(why));
    }

    /// Token that is cancelled when the work has to stop: another node owns the stream, the session
    /// was ended, the deadline is long over, the log overflows, or this node drains.
    pub fn fenced(&self) -> CancellationToken {
        self.0.shared.fenced.clone()
    }

    /// Token that is cancelled when the end of the stream is in the log.
    pub fn committed(&self) -> CancellationToken {
        self.0.shared.done.clone()
    }
}

/// Starts the writer of a stream that a request opens on this node.
pub(super) fn open(inner: &Arc<Inner>, new: &NewStream) -> StreamWriter {
    let shared = Arc::new(WriterState::new(new.stream, new.tenant));
    let trace = new.trace.clone().filter(|span| span.is_recorded());
    if let Some(span) = &trace {
        span.set("portolan.node.owner", inner.id.to_string());
        span.set("portolan.nonce", new.stream.nonce.to_string());
    }
    task::start(
        inner,
        &shared,
        Epoch::FIRST,
        0,
        envelope::seal(
            &new.rpc,
            new.tenant,
            trace.as_ref().map(|span| span.context()),
            &new.about,
        ),
        trace,
        Instant::now() + new.deadline,
    );
    StreamWriter(Arc::new(Handle {
        shared,
        inner: Arc::clone(inner),
    }))
}

/// Starts the writer of a stream that this node took over, only to end it.
pub(super) fn finish_taken_over(
    inner: &Arc<Inner>,
    stream: StreamKey,
    epoch: Epoch,
    tail: u64,
    envelope: Bytes,
    trace: Option<Arc<Span>>,
    ending: Ending,
) {
    // Long enough for the end to reach the log.
    let deadline = Instant::now() + HOLD * 10;
    let shared = Arc::new(WriterState::new(stream, envelope::open(&envelope).tenant));
    shared.finish(ending);
    task::start(inner, &shared, epoch, tail, envelope, trace, deadline);
}
