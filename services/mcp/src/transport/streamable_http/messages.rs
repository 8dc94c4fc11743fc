//! Questions to a legacy client: JSON-RPC requests on the stream of the call (MCP-T-32,
//! STREAM-6.7, STREAM-14).

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use portolan_cluster::{
    SessionKey,
    node::{Over, StreamWriter},
    store::Class,
};
use portolan_model::live_session::MomentKind;
use portolan_protocol::{
    ask::AskMethod,
    cancel,
    capability::ClientCapabilities,
    jsonrpc::{Raw, RequestId, Response},
    method::Method,
};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    call::{
        Call,
        client_channel::{ChannelMessage, ClientChannel, Question, Unanswered, random_name},
        notices::Notices,
    },
    config::McpConfig,
    session::written::SessionId,
    transport::services::TransportServices,
};

/// How long to wait for an answer (MCP-X-24): longer for people than for programs.
fn patience(config: &McpConfig, method: AskMethod) -> Duration {
    Duration::from_secs(match method {
        AskMethod::Elicit => config.ask_person_secs,
        AskMethod::CreateMessage | AskMethod::ListRoots => config.ask_program_secs,
    })
}

/// The messages of a call of a session before its answer.
pub(crate) struct CallMessages {
    said: mpsc::Receiver<ChannelMessage>,
    /// A received message that is not yet forwarded.
    waiting: Option<ChannelMessage>,
    notices: Notices,
    state: TransportServices,
    session: SessionKey,
    asking: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl std::fmt::Debug for CallMessages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Talking").finish_non_exhaustive()
    }
}

impl CallMessages {
    /// For a call of `session`. A client that reads no stream gets no questions
    /// (`docs/translation-rules.md`, *Lifecycle, sessions, capabilities*).
    pub(crate) fn new(
        state: &TransportServices,
        call: &Call,
        session: &SessionId,
        may_stream: bool,
    ) -> (ClientChannel, Self) {
        let capabilities = if may_stream {
            session.capabilities()
        } else {
            ClientCapabilities::default()
        };
        let revision = session.revision;
        let (channel, mut said) = ClientChannel::of_session(revision, capabilities);
        if !may_stream {
            // Closed, so that the call does not wait for messages that reach no client.
            said.close();
        }
        let messages = Self {
            said,
            waiting: None,
            notices: Notices::new(revision, call.progress.clone()),
            state: state.clone(),
            session: session.key,
            asking: FuturesUnordered::new(),
        };
        (channel, messages)
    }

    /// Completes when there is a message to forward.
    pub(crate) async fn received(&mut self) {
        loop {
            match self.said.recv().await {
                // Progress without a token (MCP-PP-1).
                Some(ChannelMessage::Progress(_)) if !self.notices.wants_progress() => {}
                Some(said) => {
                    self.waiting = Some(said);
                    return;
                }
                None => std::future::pending().await,
            }
        }
    }

    /// True if there is a message to forward now.
    pub(crate) fn has_more(&mut self) -> bool {
        while self.waiting.is_none() {
            match self.said.try_recv() {
                Ok(ChannelMessage::Progress(_)) if !self.notices.wants_progress() => {}
                Ok(said) => self.waiting = Some(said),
                Err(_) => return false,
            }
        }
        true
    }

    /// The last notifications before an answer that is ready. Questions are dropped.
    pub(crate) fn rest(&mut self) -> Vec<Bytes> {
        let mut notices = Vec::new();
        while self.has_more() {
            notices.extend(self.waiting.take().and_then(|said| self.notice(said)));
        }
        notices.extend(std::iter::from_fn(|| self.notices.last()));
        notices
    }

    fn notice(&mut self, said: ChannelMessage) -> Option<Bytes> {
        match said {
            ChannelMessage::Message(notice) => self.notices.message(notice),
            ChannelMessage::Progress(progress) => self.notices.progress(&progress),
            ChannelMessage::Question(_) | ChannelMessage::Task => None,
        }
    }

    /// The next notification.
    ///
    /// Questions go to `writer` meanwhile, and their answers are processed while this is polled.
    pub(crate) async fn next(&mut self, writer: &StreamWriter) -> Bytes {
        loop {
            if self.waiting.is_none() {
                tokio::select! {
                    biased;
                    Some(()) = self.asking.next(), if !self.asking.is_empty() => continue,
                    notice = self.notices.due() => return notice,
                    Some(said) = self.said.recv() => self.waiting = Some(said),
                }
            }
            match self.waiting.take() {
                Some(ChannelMessage::Question(question)) => {
                    let within = patience(&self.state.config, question.method);
                    let (board, now) = (&self.state.sessions, self.state.clock.now());
                    let method = Method::from_name(question.method.name());
                    board.note(self.session, now, MomentKind::Question, method);
                    self.asking
                        .push(Box::pin(ask(writer.clone(), question, within)));
                }
                Some(said) => {
                    if let Some(notice) = self.notice(said) {
                        return notice;
                    }
                }
                None => {}
            }
        }
    }
}

/// Sends a question on `writer`, and gives the answer to the asker.
///
/// If the asker stops or the time is over, the question is cancelled on the same stream (MCP-CN-3,
/// MCP-X-7B).
async fn ask(writer: StreamWriter, mut question: Question, within: Duration) {
    let Some(id) = random_name("q") else {
        return question.give(Err(Unanswered::Gone));
    };
    let request = request(&id, &question);
    let answered = tokio::select! {
        answered = timeout(within, writer.ask(&id, request.into())) => Some(answered),
        () = question.answer.closed() => None,
    };
    let answer = match answered {
        Some(Ok(Ok(payload))) => read(&payload).and_then(|outcome| match outcome {
            Ok(result) => question.check(&result).ok_or(Unanswered::Unfit),
            Err(error) => Err(Unanswered::Refused(error)),
        }),
        Some(Ok(Err(Over::TooManyQuestions))) => Err(Unanswered::TooMany),
        Some(Ok(Err(Over::Over))) => Err(Unanswered::Gone),
        Some(Err(_)) => {
            withdraw(&writer, &id, "Timed out").await;
            Err(Unanswered::TimedOut)
        }
        None => {
            withdraw(&writer, &id, "No longer needed").await;
            return;
        }
    };
    question.give(answer);
}

fn request(id: &str, question: &Question) -> Vec<u8> {
    let mut out = format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"{}","params":"#,
        question.method.name()
    )
    .into_bytes();
    out.extend_from_slice(question.shown.as_bytes());
    out.push(b'}');
    out
}

async fn withdraw(writer: &StreamWriter, id: &str, reason: &str) {
    let notice = cancel::notification(&RequestId::from(id), Some(reason));
    // If the stream is over, so is the question.
    let _ = writer.push(Class::Notification, notice.into()).await;
}

/// A client's response in the form for the node that waits for it, with the id of the question.
///
/// The payload is `{"result":…}` or `{"error":…}`.
pub(crate) fn to_payload(response: &Response) -> Option<(String, Vec<u8>)> {
    let id = response.id.as_ref()?.as_text()?.to_owned();
    let (name, value) = match &response.outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let mut out = format!(r#"{{"{name}":"#).into_bytes();
    out.extend_from_slice(value.as_bytes());
    out.push(b'}');
    Some((id, out))
}

fn read(payload: &Bytes) -> Result<Result<Raw, Raw>, Unanswered> {
    let payload = Raw::parse(payload.clone()).map_err(|_| Unanswered::Unfit)?;
    match (payload.get("result"), payload.get("error")) {
        (Some(result), _) => Ok(Ok(result)),
        (None, Some(error)) => Ok(Err(error)),
        (None, None) => Err(Unanswered::Unfit),
    }
}
