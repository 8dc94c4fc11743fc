//! A Streamable HTTP server in front of a command that speaks MCP on its standard input and output.
//!
//! A command of the session era gets a process for each session, because `initialize` belongs to
//! one. A command of 2026-07-28 gets one process for all requests. Which it is, the command shows
//! at the start: `initialize` first, then `server/discover`.

pub mod command;
mod events;
mod restarts;
mod session;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use portolan_net::tunnel::{ENDPOINT_PATH, OfferState};
use serde_json::value::RawValue;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    command::{CommandLine, Process},
    events::Events,
    restarts::Restarts,
    session::{Envelope, NotSent, Session},
};
use crate::{
    answers::{AnswerBody, empty, events as event_stream, json, text},
    random::random_id,
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Largest message of a node, in bytes.
const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;
/// How long the command may take for its first answer: `npx` may have to fetch it.
const FIRST_ANSWER: Duration = Duration::from_secs(120);
/// How long a node's request waits for a process.
const PATIENCE: Duration = Duration::from_secs(25);
/// Most sessions at once. A new one beyond ends the one that is idle for the longest time.
const SESSIONS: usize = 64;
/// A session without a message for so long is ended.
const IDLE: Duration = Duration::from_secs(3600);
/// Interval of that check.
const SWEEP: Duration = Duration::from_secs(60);
/// The revision without sessions.
const MODERN: &str = "2026-07-28";
/// The first revision whose streams begin with an id alone.
const PRIMED: &str = "2025-11-25";

/// The era of the command, as it shows at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Sessions,
    Modern,
}

/// The server in front of the command.
#[derive(Clone)]
pub struct Stdio(Arc<Inner>);

struct Inner {
    line: CommandLine,
    instance: String,
    era: watch::Sender<Option<Era>>,
    state: Mutex<State>,
    /// Taken by one start at a time.
    starts: AsyncMutex<()>,
    spare_taken: tokio::sync::Notify,
    stop: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Arc<Session>>,
    /// A started process without a session, so that a new session need not wait.
    spare: Option<Process>,
    /// The process of a command of 2026-07-28.
    modern: Option<Arc<Session>>,
    restarts: Restarts,
    error: Option<String>,
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("program", &self.0.line.program)
            .finish_non_exhaustive()
    }
}

/// No process can be had at the moment.
#[derive(Debug)]
struct Unavailable {
    message: String,
    retry_after: Duration,
}

impl Stdio {
    /// Starts the command, and finds its era.
    pub fn start(line: CommandLine, instance: String) -> Self {
        let this = Self(Arc::new(Inner {
            line,
            instance,
            era: watch::Sender::new(None),
            state: Mutex::default(),
            starts: AsyncMutex::default(),
            spare_taken: tokio::sync::Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }));
        let inner = Arc::clone(&this.0);
        this.0.tasks.spawn(async move {
            let stop = inner.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = inner.keep() => {}
            }
        });
        this
    }

    /// Whether the command takes requests, and its last failure.
    pub fn state(&self) -> OfferState {
        let state = self.0.state();
        OfferState {
            // A command that ended is started again; its last failure stays visible.
            is_ready: self.0.era.borrow().is_some()
                && state.restarts.pause(Instant::now()).is_zero(),
            error: state.error.clone(),
        }
    }

    /// Ends all processes.
    pub async fn end(&self) {
        self.0.stop.cancel();
        let (sessions, spare) = {
            let mut state = self.0.state();
            let mut sessions: Vec<_> = state.sessions.drain().map(|(_, one)| one).collect();
            sessions.extend(state.modern.take());
            (sessions, state.spare.take())
        };
        for session in &sessions {
            session.dismiss();
        }
        if let Some(mut spare) = spare {
            drop(spare.input);
            command::end(&mut spare.child, spare.pid).await;
        }
        for session in sessions {
            session.end().await;
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Answers a request of a node.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        if request.uri().path() != ENDPOINT_PATH {
            return text(StatusCode::NOT_FOUND, "There is only /mcp here.");
        }
        let answered = match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request),
            Method::DELETE => self.delete(&request),
            _ => return text(StatusCode::METHOD_NOT_ALLOWED, "POST, GET or DELETE."),
        };
        answered.unwrap_or_else(|refused| *refused)
    }

    fn session_of<B>(&self, request: &Request<B>) -> Result<Option<Arc<Session>>, Refused> {
        let Some(id) = request.headers().get(&SESSION) else {
            return Ok(None);
        };
        let state = self.0.state();
        let found = id.to_str().ok().and_then(|id| state.sessions.get(id));
        match found.filter(|session| !session.is_over()) {
            Some(session) => Ok(Some(Arc::clone(session))),
            None => Err(refused(StatusCode::NOT_FOUND, "This session has ended.")),
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        let session = self.session_of(&request)?;
        let version = request.headers().get(&VERSION);
        let version = version.and_then(|version| version.to_str().ok());
        let version = version.unwrap_or_default().to_owned();
        let body = Limited::new(request.into_body(), LARGEST_MESSAGE);
        let body = body.collect().await.map_err(|_| {
            refused(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The message is too large, or was cut off.",
            )
        })?;
        let line = one_line(body.to_bytes());
        let message = Envelope::read(&line)
            .ok_or_else(|| refused(StatusCode::BAD_REQUEST, "The body is not a message of MCP."))?;
        let id = message.id.map(|id| id.get().to_owned());
        match (session, id) {
            (Some(session), Some(id)) if message.method.is_some() => {
                let has_priming = version.as_str() >= PRIMED;
                let sent = session
                    .request(&message, &id, line.clone(), has_priming)
                    .await;
                Ok(stream(sent.map_err(not_sent)?))
            }
            (Some(session), _) => {
                session.send(line.clone()).await.map_err(not_sent)?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            (None, Some(id)) if message.method.as_deref() == Some("initialize") => {
                self.initialize(&message, &id, line.clone()).await
            }
            (None, Some(id)) if version == MODERN => self.modern(&message, &id, line.clone()).await,
            (None, None) if version == MODERN => {
                let session = self.modern_session().await?;
                session.send(line.clone()).await.map_err(not_sent)?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            // A client that sees this without a JSON-RPC body begins a session.
            _ => Err(refused(
                StatusCode::BAD_REQUEST,
                "This server has sessions: send `initialize` first.",
            )),
        }
    }

    /// A new session with a process of its own.
    async fn initialize(
        &self,
        message: &Envelope<'_>,
        id: &str,
        line: Bytes,
    ) -> Result<Response<AnswerBody>, Refused> {
        if self.era().await? == Era::Modern {
            return Ok(json(
                StatusCode::BAD_REQUEST,
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"This server has no sessions"}}}}"#
                ),
            ));
        }
        let process = self.0.process().await.map_err(unavailable)?;
        let session = self.0.session(process);
        let events = session
            .request(message, id, line, false)
            .await
            .map_err(|error| self.0.not_begun(error))?;
        let answer = first_answer(&events).await;
        let Some(answer) = answer else {
            session.dismiss();
            return Err(refused(
                StatusCode::GATEWAY_TIMEOUT,
                "The command did not answer `initialize` in time.",
            ));
        };
        let is_good = Envelope::read(&answer).is_some_and(|answer| answer.result.is_some());
        if !is_good && session.is_over() {
            return Err(self.0.not_begun(NotSent::Over));
        }
        let mut response = json(StatusCode::OK, answer);
        if is_good && let Ok(value) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION, value);
            self.0.admit(session);
        } else {
            session.dismiss();
        }
        Ok(response)
    }

    /// A request that stands alone.
    async fn modern(
        &self,
        message: &Envelope<'_>,
        id: &str,
        line: Bytes,
    ) -> Result<Response<AnswerBody>, Refused> {
        let session = self.modern_session().await?;
        let events = session
            .request(message, id, line, false)
            .await
            .map_err(|error| self.0.not_begun(error))?;
        let (weak, id) = (Arc::downgrade(&session), id.to_owned());
        let reader = events.read(0).or_else(Box::new(move || {
            if let Some(session) = weak.upgrade() {
                session.forget(&id);
            }
        }));
        Ok(event_stream(reader.boxed()))
    }

    async fn modern_session(&self) -> Result<Arc<Session>, Refused> {
        if self.era().await? == Era::Sessions {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                "This server has sessions: send `initialize` first.",
            ));
        }
        let _one = self.0.starts.lock().await;
        let running = self.0.state().modern.clone();
        if let Some(session) = running.filter(|session| !session.is_over()) {
            return Ok(session);
        }
        let process = self.0.process().await.map_err(unavailable)?;
        let session = self.0.session(process);
        self.0.state().modern = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn era(&self) -> Result<Era, Refused> {
        let mut era = self.0.era.subscribe();
        let known = timeout(PATIENCE, era.wait_for(Option::is_some)).await;
        if let Ok(Ok(known)) = known
            && let Some(era) = *known
        {
            return Ok(era);
        }
        let message = self.0.state().error.clone();
        Err(unavailable(Unavailable {
            message: message.unwrap_or_else(|| "The command has not started yet.".to_owned()),
            retry_after: Duration::from_secs(5),
        }))
    }

    /// The stream of a session beside its requests, or the rest of a stream that broke.
    fn get(&self, request: &Request<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        let Some(session) = self.session_of(request)? else {
            return Err(refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "A stream belongs to a session.",
            ));
        };
        session.touch();
        let Some(last) = request.headers().get(&LAST_EVENT) else {
            return Ok(event_stream(session.beside.read_on().boxed()));
        };
        let found = last.to_str().ok().and_then(|last| session.stream(last));
        let (events, seq) = found
            .ok_or_else(|| refused(StatusCode::NOT_FOUND, "This stream is not kept any more."))?;
        Ok(event_stream(events.read(seq).boxed()))
    }

    fn delete(&self, request: &Request<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        if let Some(session) = self.session_of(request)? {
            self.0.state().sessions.remove(&session.id);
            session.dismiss();
        }
        Ok(empty(StatusCode::NO_CONTENT))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the era; then keeps a spare process, and ends sessions that nothing uses.
    async fn keep(self: &Arc<Self>) {
        let era = loop {
            match self.find_era().await {
                Ok(era) => break era,
                Err(error) => {
                    let pause = self.state().restarts.pause(Instant::now());
                    let pause = pause.max(Duration::from_millis(500));
                    tracing::error!(
                        next_start_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                        "{error}"
                    );
                    self.state().error = Some(error);
                    sleep(pause).await;
                }
            }
        };
        self.era.send_replace(Some(era));
        loop {
            self.sweep();
            if era == Era::Sessions && self.state().spare.is_none() {
                let pause = self.state().restarts.pause(Instant::now());
                sleep(pause).await;
                match self.line.start() {
                    Ok(process) => self.state().spare = Some(process),
                    Err(error) => tracing::error!("{}", self.not_started(&error)),
                }
            }
            let _ = timeout(SWEEP, self.spare_taken.notified()).await;
        }
    }

    fn sweep(&self) {
        let idle: Vec<_> = {
            let mut state = self.state();
            // A spare process that ended is replaced.
            let is_gone = |spare: &mut Process| !matches!(spare.child.try_wait(), Ok(None));
            if state.spare.as_mut().is_some_and(is_gone)
                && let Some(spare) = state.spare.take()
            {
                state.restarts.failed(spare.started, Instant::now());
            }
            let is_idle = |session: &Session| {
                session
                    .idle_since()
                    .is_some_and(|since| since.elapsed() >= IDLE)
            };
            let sessions = &mut state.sessions;
            let ids: Vec<String> = sessions
                .iter()
                .filter(|(_, session)| is_idle(session))
                .map(|(id, _)| id.clone())
                .collect();
            ids.iter().filter_map(|id| sessions.remove(id)).collect()
        };
        for session in idle {
            tracing::info!(pid = session.pid, "an idle session is ended");
            session.dismiss();
        }
    }

    fn not_started(&self, error: &std::io::Error) -> String {
        let program = self.line.program.to_string_lossy();
        let message = format!("{program} cannot be started: {error}");
        let mut state = self.state();
        let now = Instant::now();
        state.restarts.failed(now, now);
        state.error = Some(message.clone());
        message
    }

    /// A process for a session: the spare one, or a new one when the rule allows it.
    async fn process(self: &Arc<Self>) -> Result<Process, Unavailable> {
        let until = Instant::now() + PATIENCE;
        loop {
            let spare = self.state().spare.take();
            if let Some(mut spare) = spare {
                self.spare_taken.notify_one();
                if matches!(spare.child.try_wait(), Ok(None)) {
                    return Ok(spare);
                }
                self.state().restarts.failed(spare.started, Instant::now());
            }
            let (pause, error) = {
                let state = self.state();
                (state.restarts.pause(Instant::now()), state.error.clone())
            };
            if Instant::now() + pause > until {
                return Err(Unavailable {
                    message: error.unwrap_or_else(|| "The command does not start.".to_owned()),
                    retry_after: pause,
                });
            }
            sleep(pause).await;
            match self.line.start() {
                Ok(process) => return Ok(process),
                Err(error) => {
                    self.not_started(&error);
                }
            }
        }
    }

    /// Makes a session of a process. It is not found before it is admitted.
    fn session(self: &Arc<Self>, process: Process) -> Arc<Session> {
        let id = format!("{}.{}", self.instance, random_id());
        let this = Arc::downgrade(self);
        tracing::info!(pid = process.pid, "a process for a session");
        Session::begin(id, process, move |session, failure| {
            if let Some(this) = this.upgrade() {
                this.ended(session, failure);
            }
        })
    }

    fn ended(&self, session: &Arc<Session>, failure: Option<String>) {
        let mut state = self.state();
        state.sessions.remove(&session.id);
        if state
            .modern
            .as_ref()
            .is_some_and(|modern| Arc::ptr_eq(modern, session))
        {
            state.modern = None;
        }
        let Some(words) = failure else {
            tracing::info!(pid = session.pid, "a process has ended");
            return;
        };
        let pause = state.restarts.failed(session.started, Instant::now());
        state.error = Some(format!("The command ended by itself ({words})."));
        drop(state);
        tracing::warn!(
            pid = session.pid,
            next_start_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            "the command ended by itself ({words}); its requests are answered with an error"
        );
    }

    /// The refusal of a request that needs no session: 404 would mean that the command has another
    /// era (MCP-X-3).
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "errors of a `Result` stay small"
    )]
    fn not_begun(&self, error: NotSent) -> Refused {
        if error == NotSent::Repeated {
            return not_sent(error);
        }
        let state = self.state();
        let message = state.error.clone();
        unavailable(Unavailable {
            message: message.unwrap_or_else(|| "The command has ended.".to_owned()),
            retry_after: state.restarts.pause(Instant::now()),
        })
    }

    fn admit(&self, session: Arc<Session>) {
        let oldest = {
            let mut state = self.state();
            state.error = None;
            let idle = state.sessions.values().filter_map(|one| {
                let since = one.idle_since()?;
                Some((since, Arc::clone(one)))
            });
            let oldest = idle.min_by_key(|(since, _)| *since);
            let oldest = oldest.filter(|_| state.sessions.len() >= SESSIONS);
            if let Some((_, oldest)) = &oldest {
                state.sessions.remove(&oldest.id);
            }
            if !session.is_over() {
                state.sessions.insert(session.id.clone(), session);
            }
            oldest
        };
        if let Some((_, oldest)) = oldest {
            tracing::info!(pid = oldest.pid, "an idle session is ended for a new one");
            oldest.dismiss();
        }
    }

    /// `initialize` first; a command that refuses it is asked by `server/discover`.
    async fn find_era(self: &Arc<Self>) -> Result<Era, String> {
        let process = self.line.start();
        let process = process.map_err(|error| self.not_started(&error))?;
        let session = self.session(process);
        let found = self.ask_era(&session).await;
        let failure = session.failure();
        session.dismiss();
        match (found, failure) {
            (Ok(era), _) => {
                self.state().error = None;
                Ok(era)
            }
            (Err(_), Some(words)) => Err(format!(
                "The command ended before its first answer ({words})."
            )),
            (Err(error), None) => {
                session.end().await;
                let now = Instant::now();
                self.state().restarts.failed(session.started, now);
                Err(error)
            }
        }
    }

    async fn ask_era(&self, session: &Arc<Session>) -> Result<Era, String> {
        let ourselves = format!(
            r#"{{"name":"portolan-attach","version":"{}"}}"#,
            env!("CARGO_PKG_VERSION")
        );
        let initialize = format!(
            r#"{{"jsonrpc":"2.0","id":"attach-1","method":"initialize","params":{{"protocolVersion":"{PRIMED}","capabilities":{{}},"clientInfo":{ourselves}}}}}"#
        );
        let answer = exchange(session, "\"attach-1\"", initialize).await?;
        let answer = Envelope::read(&answer).ok_or("The command answered with no message.")?;
        if let Some(result) = answer.result {
            tracing::info!(pid = session.pid, "the command speaks MCP: {}", of(result));
            return Ok(Era::Sessions);
        }
        let refusal = answer.error.map_or("", RawValue::get).to_owned();
        let discover = format!(
            r#"{{"jsonrpc":"2.0","id":"attach-2","method":"server/discover","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientInfo":{ourselves},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let answer = exchange(session, "\"attach-2\"", discover).await?;
        let answer = Envelope::read(&answer).ok_or("The command answered with no message.")?;
        match answer.result {
            Some(result) => {
                tracing::info!(pid = session.pid, "the command speaks MCP: {}", of(result));
                Ok(Era::Modern)
            }
            None => Err(format!(
                "The command speaks no revision of MCP that is known here: {}",
                refusal.chars().take(300).collect::<String>()
            )),
        }
    }
}

/// Name, version and revision of a server, for the log.
fn of(result: &RawValue) -> String {
    let result: serde_json::Value = serde_json::from_str(result.get()).unwrap_or_default();
    let info = result
        .get("serverInfo")
        .or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
    let text = |name: &str| -> String {
        let value = info.and_then(|info| info.get(name));
        let value = value.and_then(serde_json::Value::as_str).unwrap_or("?");
        value.chars().filter(|c| !c.is_control()).take(80).collect()
    };
    let revision = result.get("protocolVersion");
    let revision = revision.and_then(serde_json::Value::as_str);
    format!(
        "{} {}, {}",
        text("name"),
        text("version"),
        revision.unwrap_or(MODERN)
    )
}

async fn exchange(session: &Arc<Session>, id: &str, line: String) -> Result<Bytes, String> {
    let line = Bytes::from(line);
    let message = Envelope::read(&line).ok_or("no message")?;
    let events = session
        .request(&message, id, line.clone(), false)
        .await
        .map_err(|_| "The command ended before its first answer.")?;
    let answer = first_answer(&events).await;
    answer.ok_or_else(|| "The command did not answer in time.".to_owned())
}

/// The answer on a stream, without what comes before it.
async fn first_answer(events: &Arc<Events>) -> Option<Bytes> {
    let mut reader = events.read(0);
    let mut decoder = portolan_protocol::sse::Decoder::new(LARGEST_MESSAGE);
    let answered = async {
        while let Some(Ok(frame)) = reader.frame().await {
            let data = frame.into_data().unwrap_or_default();
            for event in decoder.push(&data).ok()? {
                let text = Bytes::from(event.data);
                let is_answer = Envelope::read(&text)
                    .is_some_and(|message| message.method.is_none() && message.id.is_some());
                if is_answer {
                    return Some(text);
                }
            }
        }
        None
    };
    timeout(FIRST_ANSWER, answered).await.ok().flatten()
}

/// A JSON text on one line: a line break in it can only be white space.
fn one_line(body: Bytes) -> Bytes {
    if !body.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return body;
    }
    let mut body = body.to_vec();
    for byte in &mut body {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    body.into()
}

type Refused = Box<Response<AnswerBody>>;

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors of a `Result` stay small"
)]
fn refused(status: StatusCode, words: &str) -> Refused {
    Box::new(text(status, words))
}

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors of a `Result` stay small"
)]
fn unavailable(error: Unavailable) -> Refused {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, error.message);
    let seconds = HeaderValue::from(error.retry_after.as_secs().max(1));
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    Box::new(response)
}

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors of a `Result` stay small"
)]
fn not_sent(error: NotSent) -> Refused {
    match error {
        NotSent::Repeated => refused(
            StatusCode::BAD_REQUEST,
            "Another request with this id is running.",
        ),
        NotSent::Over => refused(StatusCode::NOT_FOUND, "This session has ended."),
    }
}

fn stream(events: Arc<Events>) -> Response<AnswerBody> {
    event_stream(events.read(0).boxed())
}
