//! Messages of a running call to its client before its answer: progress, logs and questions
//! (MCP-X-20…MCP-X-2C).
//!
//! A backend uses a [`ClientChannel`] and sees neither socket nor era. The carrier depends on the
//! era:
//!
//! | Client | A notification | A question |
//! |---|---|---|
//! | legacy | an event of the call's stream | a JSON-RPC request on that stream |
//! | 2026-07-28 | an event of the answer, if it may be a stream | `input_required` |
//!
//! Any node takes the answer of a legacy client. A call of a modern client is suspended on its node
//! (`suspended`), and any node takes the retry (`retry`).
//!
//! | Module | Subject |
//! |---|---|
//! | `transport::streamable_http::messages` | questions of legacy clients |
//! | `notices` | how often a client receives progress and logs |
//! | `transport::stateless::call` | the first connection of a modern request |
//! | `suspended` | a suspended call, on its node |
//! | `retry` | the rest of a suspended call, on any node |
//! | `features` | the state of an earlier round in a modern request |
//! | `request_state` | `requestState`: sealed, and verified before use |
//! | `limits::suspended_calls` | the limits on suspended calls |

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future;
use portolan_keys::random;
use portolan_protocol::{
    ask::{self, AskMethod, Asked, Need, Unaskable},
    capability::ClientCapabilities,
    input_required::{self, InputRequest, InputRequired, MOST_ROUNDS},
    jsonrpc::{self, Raw},
    method::Method,
    progress::{self, Progress},
    revision::Revision,
    task,
    translate::{Loss, Shaped},
    visible::{Awaited, Visible},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use crate::{
    call::{Call, request_state::Continued},
    hex::hex,
};

/// Most messages of a call that wait for the carrier to its client.
const UNSAID: usize = 32;

/// MCP-X-21: first and longest wait before a call is repeated whose upstream only requested a
/// retry.
const COME_BACK: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// A message to the client.
#[derive(Debug)]
pub(crate) enum ChannelMessage {
    /// Progress. The carrier knows the token, and forwards only growing values.
    Progress(Progress),
    /// A whole JSON-RPC notification.
    Message(Bytes),
    /// A question that waits for an answer.
    Question(Question),
    /// The call continues as a task (MCP-X-50, MCP-X-53): the carrier answers the request with one.
    Task,
}

/// A question on its way to the client.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) method: AskMethod,
    /// The original parameters, which the answer has to fit.
    pub(crate) asked: Raw,
    /// The revision of the asker.
    pub(crate) from: Revision,
    /// The parameters in the form of the client.
    pub(crate) shown: Raw,
    pub(crate) answer: oneshot::Sender<Result<Raw, Unanswered>>,
}

impl Question {
    /// The answer in the form of the asker, if it fits (MCP-X-39, MCP-EL-8).
    pub(crate) fn check(&self, result: &Raw) -> Option<Raw> {
        let fits = ask::answer(self.method, &self.asked, result, self.from);
        fits.ok().map(Shaped::into_raw)
    }

    /// The question in the form of the client.
    pub(crate) fn request(&self) -> InputRequest {
        InputRequest {
            method: self.method,
            params: self.shown.clone(),
        }
    }

    /// The method of the question.
    pub(crate) const fn method(&self) -> AskMethod {
        self.method
    }

    /// True if the asker does not wait for the answer any more (MCP-X-7B).
    pub(crate) fn is_closed(&self) -> bool {
        self.answer.is_closed()
    }

    /// Sends the answer to the asker.
    pub(crate) fn give(self, answer: Result<Raw, Unanswered>) {
        // The asker may have stopped meanwhile.
        let _ = self.answer.send(answer);
    }
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The client does not support this question (MCP-V-1, MCP-V-2, MCP-V-11).
    NotAskable(Visible),
    /// The client answered with this JSON-RPC error object (MCP-X-2A).
    Refused(Raw),
    /// The answer does not fit the question (MCP-EL-8).
    Unfit,
    /// The client did not answer in time (MCP-V-4).
    TimedOut,
    /// The call asked too many questions, in all or at once (MCP-V-3).
    TooMany,
    /// The connection to the client is gone.
    Gone,
}

impl From<Unanswered> for Visible {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::NotAskable(visible) => visible,
            Unanswered::Refused(_) => Self::Declined,
            Unanswered::Unfit => Self::Unfit,
            Unanswered::TimedOut => Self::TimedOut(Awaited::Client),
            Unanswered::TooMany => Self::TooManyRounds,
            Unanswered::Gone => Self::Lost,
        }
    }
}

/// The next step after a result that asks.
#[derive(Debug)]
pub(crate) enum Round {
    /// Call the upstream again with these answers and its own state (MCP-X-20, MCP-X-21).
    Again(Option<Raw>),
    /// The client answers the upstream itself: this is the answer to its request (MCP-X-29).
    Answer(Vec<u8>),
}

/// Whether a call may be a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AsTask {
    /// Its client waits for the answer.
    Never,
    /// Its client accepts a task as the answer (MCP-TX-1).
    May,
    /// It is a task already.
    Is,
}

#[derive(Debug)]
struct Inner {
    said: mpsc::Sender<ChannelMessage>,
    revision: Revision,
    /// Empty for a client that cannot answer questions on this request.
    capabilities: ClientCapabilities,
    rounds: AtomicU8,
    /// Generated ids of questions by URL that the client accepted (MCP-X-35).
    open_urls: Mutex<Vec<String>>,
    /// A modern request: its client answers an upstream by a retry.
    call: Option<Arc<Call>>,
    as_task: AsTask,
    /// The call has announced that it is a task now.
    became_task: AtomicBool,
}

/// The channel of one running call to its client. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ClientChannel(Arc<Inner>);

impl ClientChannel {
    /// For a call of a legacy client.
    ///
    /// `capabilities` are empty if its answer may not be a stream.
    pub(crate) fn of_session(
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> (Self, mpsc::Receiver<ChannelMessage>) {
        Self::new(revision, capabilities, None, AsTask::Never)
    }

    /// For a call that is a task. Notifications are dropped; questions go through the task
    /// (MCP-TK-13).
    pub(crate) fn of_task(
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> (Self, mpsc::Receiver<ChannelMessage>) {
        Self::new(revision, capabilities, None, AsTask::Is)
    }

    /// For a modern request.
    pub(crate) fn of_request(call: Arc<Call>) -> (Self, mpsc::Receiver<ChannelMessage>) {
        let (revision, capabilities) = (call.revision, call.client.capabilities.clone());
        let may = call.method == Method::ToolsCall && task::is_declared(&capabilities);
        let as_task = if may { AsTask::May } else { AsTask::Never };
        Self::new(revision, capabilities, Some(call), as_task)
    }

    fn new(
        revision: Revision,
        capabilities: ClientCapabilities,
        call: Option<Arc<Call>>,
        as_task: AsTask,
    ) -> (Self, mpsc::Receiver<ChannelMessage>) {
        let (said, unsaid) = mpsc::channel(UNSAID);
        let continued = call.as_ref().and_then(|call| call.continued.as_ref());
        let rounds = continued.map_or(0, |continued| continued.round);
        let inner = Inner {
            said,
            revision,
            capabilities,
            rounds: AtomicU8::new(rounds),
            open_urls: Mutex::default(),
            call,
            as_task,
            became_task: AtomicBool::new(false),
        };
        (Self(Arc::new(inner)), unsaid)
    }

    /// The client's revision.
    pub(crate) fn revision(&self) -> Revision {
        self.0.revision
    }

    /// The capabilities that may be declared to an upstream for the client
    /// (`docs/translation-rules.md`, *Lifecycle, sessions, capabilities*).
    pub(crate) fn capabilities(&self) -> &ClientCapabilities {
        &self.0.capabilities
    }

    /// The state that the client brought from an earlier round.
    pub(crate) fn continued(&self) -> Option<&Continued> {
        self.0.call.as_ref()?.continued.as_ref()
    }

    /// True if an upstream server may answer with a task: its client can have one, or has one.
    pub(crate) fn takes_tasks(&self) -> bool {
        self.0.as_task != AsTask::Never
    }

    /// True if the client knows the call as a task.
    pub(crate) fn is_task(&self) -> bool {
        self.0.as_task == AsTask::Is || self.0.became_task.load(Ordering::Acquire)
    }

    /// Makes the call a task of the client too, if the client accepts tasks.
    ///
    /// The upstream server has made a task of the call. The caller still awaits it.
    pub(crate) async fn becomes_task(&self) {
        if self.0.as_task == AsTask::May && !self.0.became_task.swap(true, Ordering::AcqRel) {
            let _ = self.0.said.send(ChannelMessage::Task).await;
        }
    }

    /// True if the client supports this question.
    pub(crate) fn can(&self, need: Need) -> bool {
        need.exists_in(self.0.revision) && need.is_met_by(&self.0.capabilities)
    }

    /// Sends progress. Waits while the client is slow; does nothing after the client has gone.
    pub(crate) async fn progress(&self, progress: Progress) {
        let _ = self.0.said.send(ChannelMessage::Progress(progress)).await;
    }

    /// Sends a whole notification, in the form of the client's revision.
    pub(crate) async fn notify(&self, notification: Bytes) {
        let _ = self
            .0
            .said
            .send(ChannelMessage::Message(notification))
            .await;
    }

    /// Sends a question to the client and waits for the answer.
    ///
    /// `params` and the answer have the form of the revision `from`. Dropping the future cancels
    /// the question at the client (MCP-X-7B).
    pub(crate) async fn request(
        &self,
        from: Revision,
        method: AskMethod,
        params: &Raw,
    ) -> Result<Raw, Unanswered> {
        self.request_with_progress(from, method, params, None).await
    }

    /// The same, with a token under which the client may send progress (MCP-X-7J).
    pub(crate) async fn request_with_progress(
        &self,
        from: Revision,
        method: AskMethod,
        params: &Raw,
        token: Option<&str>,
    ) -> Result<Raw, Unanswered> {
        let (_, answer) = self.put(from, method, params, token).await?;
        answer.await.unwrap_or(Err(Unanswered::Gone))
    }

    async fn put(
        &self,
        from: Revision,
        method: AskMethod,
        params: &Raw,
        token: Option<&str>,
    ) -> Result<(String, oneshot::Receiver<Result<Raw, Unanswered>>), Unanswered> {
        let made_up_id = random_name("e").ok_or(Unanswered::Gone)?;
        let asked = Asked {
            from,
            to: self.0.revision,
            capabilities: &self.0.capabilities,
            made_up_id: &made_up_id,
        };
        let shaped = ask::question(method, params, &asked)
            .map_err(|why: Unaskable| Unanswered::NotAskable(why.into()))?;
        for loss in shaped.losses.iter() {
            if token.is_none() || loss != Loss::QuestionProgress {
                crate::instruments::lost_in_translation(loss);
            }
        }
        let shown = shaped.into_raw();
        let (answer, answered) = oneshot::channel();
        let question = Question {
            method,
            asked: params.clone(),
            from,
            shown: match token {
                Some(token) => progress::want(&shown, token),
                None => shown,
            },
            answer,
        };
        let sent = self.0.said.send(ChannelMessage::Question(question)).await;
        sent.map_err(|_| Unanswered::Gone)?;
        Ok((made_up_id, answered))
    }

    /// Handles an upstream's result that asks instead of answering (MCP-X-20, MCP-X-21, MCP-X-29).
    pub(crate) async fn round(&self, asked: InputRequired) -> Result<Round, Unanswered> {
        let rounds = self.0.rounds.fetch_add(1, Ordering::AcqRel);
        if rounds >= MOST_ROUNDS {
            return Err(Unanswered::TooMany);
        }
        if let Some(call) = &self.0.call {
            // MCP-MR-4: the client gets no question that it did not declare support for.
            for (_, request) in &asked.requests {
                let need = Need::of(request.method, &request.params);
                if !self.can(need) {
                    return Err(Unanswered::NotAskable(Visible::Needs(need)));
                }
            }
            let answer = call.hand_on(asked, rounds + 1);
            return answer.map(Round::Answer).ok_or_else(invalid);
        }
        self.settle_urls().await;
        if asked.requests.is_empty() {
            let wait = COME_BACK.0 * 2_u32.saturating_pow(rounds.into());
            sleep(wait.min(COME_BACK.1)).await;
            return Ok(Round::Again(None));
        }
        let answers = asked
            .requests
            .iter()
            .map(|(key, request)| self.one_of(key, request));
        let answers = future::try_join_all(answers).await?;
        let named = answers.iter().map(|(key, answer)| (*key, answer));
        Ok(Round::Again(Some(input_required::write_responses(named))))
    }

    /// Sends one question of a modern upstream to a legacy client. MCP-X-2A…MCP-X-2C: errors as
    /// answers.
    async fn one_of<'k>(
        &self,
        key: &'k str,
        request: &InputRequest,
    ) -> Result<(&'k str, Raw), Unanswered> {
        let method = request.method;
        let (id, answer) = self
            .put(Revision::V2026_07_28, method, &request.params, None)
            .await?;
        match answer.await.unwrap_or(Err(Unanswered::Gone)) {
            Ok(answer) => {
                let by_url = Need::of(method, &request.params) == Need::Url;
                if by_url && self.0.revision.facts().elicitation_ids {
                    self.open_urls().push(id);
                }
                Ok((key, answer))
            }
            Err(Unanswered::Refused(error)) => ask::refusal(method)
                .map(|refusal| (key, refusal))
                .ok_or(Unanswered::Refused(error)),
            Err(other) => Err(other),
        }
    }

    /// Notifies the client that its questions by URL are done, before the final answer (MCP-X-35,
    /// MCP-EL-14).
    pub(crate) async fn settle(&self) {
        self.settle_urls().await;
    }

    async fn settle_urls(&self) {
        let done: Vec<String> = std::mem::take(&mut *self.open_urls());
        for id in done {
            let params = serde_json::json!({ "elicitationId": id }).to_string();
            let name = Method::ElicitationComplete.name();
            self.notify(jsonrpc::notification(name, Some(params.as_bytes())).into())
                .await;
        }
    }

    fn open_urls(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0
            .open_urls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid() -> Unanswered {
    Unanswered::NotAskable(Visible::Invalid)
}

/// An unguessable name: a letter and 32 hex digits (STREAM-4).
pub(crate) fn random_name(letter: &str) -> Option<String> {
    let bytes = random::bytes::<16>().ok()?;
    Some(format!("{letter}{}", hex(&bytes)))
}
