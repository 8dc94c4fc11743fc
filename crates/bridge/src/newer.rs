//! A client of 2026-07-28 in front of a server with sessions (MCP-X-10, MCP-X-11, MCP-X-22…
//! MCP-X-27, MCP-X-42, MCP-X-65…MCP-X-6A, MCP-X-74 of the translation rules).
//!
//! The bridge is a client of [`RemoteSession`] here: its messages go in there, and what comes out
//! is translated. One session serves all requests that declare the same capabilities.

mod listening;
mod parking;
mod shapes;
mod tasks;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use portolan_protocol::{
    ask::AskMethod,
    capability::ClientCapabilities,
    error::RpcError,
    initialize::Implementation,
    jsonrpc::{Kind, Raw, RequestId},
    logging::Level,
    meta,
    method::Method,
    result::{Identity, write_string},
    revision::Revision,
    subscription::Filter,
    translate::UrlStep,
};
use tokio::sync::mpsc;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::{
    fault::BridgeFault,
    lines::Out,
    message::{self, LineMessage, MessageBody, Sort},
    note::Notes,
    relay::NEWEST,
    session::{self, RemoteSession, SessionOpening},
    wire::Wire,
};

/// A conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Newer(Arc<NewerInner>);

#[derive(Debug)]
struct NewerInner {
    wire: Arc<Wire>,
    tasks: TaskTracker,
    out: Out,
    notes: Notes,
    /// Sessions by the capabilities that they were opened with.
    sessions: tokio::sync::Mutex<HashMap<u8, Served>>,
    state: Mutex<NewerState>,
}

/// A session and what its server declared.
#[derive(Debug, Clone)]
struct Served {
    session: RemoteSession,
    revision: Revision,
    /// The result of `initialize`.
    facts: Raw,
    identity: Arc<Identity>,
    _reader: Arc<AbortOnDropHandle<()>>,
}

#[derive(Debug, Default)]
struct NewerState {
    count: u64,
    /// Requests that wait for their session, by the client's id.
    beginning: HashSet<RequestId>,
    /// Requests at the server, by the bridge's id.
    calls: HashMap<RequestId, SessionCall>,
    /// Calls that wait for their client, by their `requestState`.
    parked: HashMap<String, RequestId>,
    /// Subscriptions, by the client's id.
    listens: HashMap<RequestId, (u8, Filter)>,
    /// Log levels of the sessions.
    levels: HashMap<u8, Level>,
}

/// A request of the client.
#[derive(Debug)]
struct SessionCall {
    served: Served,
    can: ClientCapabilities,
    bits: u8,
    /// The client's id; none while the call waits for its client.
    client: Option<RequestId>,
    method: Method,
    params: Raw,
    level: Option<Level>,
    questions: Vec<ServerQuestion>,
    /// Pages that the person has to visit before the call is sent again (MCP-X-36).
    steps: Vec<UrlStep>,
    /// How often the server sent the person to pages.
    rounds: u8,
    task: tasks::SessionTask,
    /// Questions are being gathered.
    is_gathering: bool,
    /// An answer that came while the client was away.
    answer: Option<LineMessage>,
    order: u64,
}

/// A question of the server that the client has not answered.
#[derive(Debug, Clone)]
struct ServerQuestion {
    key: String,
    id: RequestId,
    method: AskMethod,
    params: Raw,
    tries: u8,
}

impl NewerState {
    fn new_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

impl Newer {
    pub(crate) fn new(wire: Arc<Wire>, out: Out, notes: Notes) -> Self {
        Self(Arc::new(NewerInner {
            tasks: wire.tasks.clone(),
            wire,
            out,
            notes,
            sessions: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, NewerState> {
        let state = &self.0.state;
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message of the client.
    pub(crate) fn take(&self, message: LineMessage) {
        if let Some(id) = message.cancels() {
            self.cancel(&id);
            return;
        }
        if let Sort::Request { id, method } = &message.sort {
            let (this, id, method) = (self.clone(), id.clone(), method.clone());
            self.state().beginning.insert(id.clone());
            self.0.tasks.spawn(async move {
                let begun = this.begin(&id, &method, &message).await;
                if let Err(fault) = begun
                    && this.is_wanted(&id)
                {
                    this.0.notes.say(&fault.to_string());
                    this.error(&id, &fault.to_rpc()).await;
                }
            });
        }
    }

    /// Once, when a request has its session: false if the client cancelled it meanwhile.
    fn is_wanted(&self, id: &RequestId) -> bool {
        self.state().beginning.remove(id)
    }

    async fn error(&self, id: &RequestId, error: &RpcError) {
        self.0.out.write(message::error(Some(id), error)).await;
    }

    async fn write(&self, text: impl Into<Bytes>) {
        self.0.out.write(text.into()).await;
    }

    async fn begin(
        &self,
        id: &RequestId,
        method: &str,
        message: &LineMessage,
    ) -> Result<(), BridgeFault> {
        let params = message.params();
        let own = params.get("_meta").unwrap_or(Raw::empty_object());
        let declared = own.get(meta::CLIENT_CAPABILITIES);
        let can = ClientCapabilities::read(&declared.unwrap_or(Raw::empty_object()));
        let card = own.get(meta::CLIENT_INFO);
        let served = self.served(&can, card).await?;
        if !self.is_wanted(id) {
            return Ok(());
        }
        let Some(method) = Method::of_client(method, NEWEST).filter(|method| !method.is_task())
        else {
            let error = message::own_error(-32601, "Method not found");
            self.error(id, &error).await;
            return Ok(());
        };
        match method {
            Method::Discover => self.write(served.discovered(id)).await,
            Method::SubscriptionsListen => self.listen(id, &served, &can, params).await,
            _ if params.get("requestState").is_some() => self.resume(id, method, &params).await,
            _ => {
                let level = own.get(meta::LOG_LEVEL).and_then(|level| level.string());
                let level = level.and_then(|level| level.parse::<Level>().ok());
                let order = self.state().new_number();
                let call = SessionCall {
                    bits: can.bits(),
                    can,
                    served,
                    client: Some(id.clone()),
                    method,
                    params,
                    level,
                    questions: Vec::new(),
                    steps: Vec::new(),
                    rounds: 0,
                    task: tasks::SessionTask::None,
                    is_gathering: false,
                    answer: None,
                    order,
                };
                self.send(call);
            }
        }
        Ok(())
    }

    /// Sends a call. Its progress token stays; what only 2026-07-28 knows goes.
    fn send(&self, call: SessionCall) {
        if let Some(level) = call.level {
            self.want_level(&call.served, call.bits, level);
        }
        let mut params = b"{".to_vec();
        for (name, value) in call.params.members() {
            if matches!(name.as_str(), "inputResponses" | "requestState") {
                continue;
            }
            let value = if name == "_meta" {
                own_meta(&value)
            } else {
                value
            };
            if params.len() > 1 {
                params.push(b',');
            }
            write_string(&name, &mut params);
            params.push(b':');
            params.extend_from_slice(value.as_bytes());
        }
        if call.task == tasks::SessionTask::Begun {
            params.extend_from_slice(if params.len() > 1 { b"," } else { b"" });
            params.extend_from_slice(tasks::WANTED);
        }
        params.push(b'}');
        let params = Raw::parse(params).unwrap_or(Raw::empty_object());
        let method = call.method;
        self.send_as(call, method, &params);
    }

    /// Sends a request in the place of a call, under an id of its own.
    fn send_as(&self, mut call: SessionCall, method: Method, params: &Raw) {
        call.order = self.state().new_number();
        let id = RequestId::from(format!("portolan-connect-call-{}", call.order));
        let text = message::request(&id, method.name(), params);
        let session = call.served.session.clone();
        self.state().calls.insert(id, call);
        tell(&session, text);
    }

    /// MCP-X-74: the most verbose level that any request wanted.
    fn want_level(&self, served: &Served, bits: u8, level: Level) {
        let is_new = {
            let mut state = self.state();
            let known = state.levels.get(&bits).copied();
            let is_new = known.is_none_or(|known| level < known);
            if is_new {
                state.levels.insert(bits, level);
            }
            is_new
        };
        if is_new && served.declares("logging", None) {
            let params = format!(r#"{{"level":"{}"}}"#, level.as_str());
            self.order(served, Method::SetLevel, &params);
        }
    }

    /// A request whose answer does not matter.
    fn order(&self, served: &Served, method: Method, params: &str) {
        let number = self.state().new_number();
        let id = RequestId::from(format!("portolan-connect-order-{number}"));
        if let Ok(params) = Raw::parse(params.to_owned()) {
            tell(
                &served.session,
                message::request(&id, method.name(), &params),
            );
        }
    }

    /// The session for these capabilities; opened if there is none.
    async fn served(
        &self,
        can: &ClientCapabilities,
        card: Option<Raw>,
    ) -> Result<Served, BridgeFault> {
        let mut sessions = self.0.sessions.lock().await;
        let bits = can.bits();
        if let Some(served) = sessions.get(&bits) {
            return Ok(served.clone());
        }
        let mut capabilities = Vec::with_capacity(96);
        can.write(Revision::LATEST_LEGACY, &mut capabilities);
        let mut params = br#"{"protocolVersion":"#.to_vec();
        write_string(Revision::LATEST_LEGACY.as_str(), &mut params);
        params.extend_from_slice(br#","capabilities":"#);
        params.extend_from_slice(&capabilities);
        params.extend_from_slice(br#","clientInfo":"#);
        let unnamed = br#"{"name":"portolan-connect","version":"0"}"#;
        params.extend_from_slice(card.as_ref().map_or(&unnamed[..], Raw::as_bytes));
        params.push(b'}');
        let params = Raw::parse(params).unwrap_or(Raw::empty_object());
        let id = RequestId::from("portolan-connect-initialize");
        let text = message::request(&id, Method::Initialize.name(), &params);
        let Ok(MessageBody::One(hello)) = MessageBody::read(text) else {
            return Err(BridgeFault::Invalid("its handshake cannot be written"));
        };
        let (sender, receiver) = Out::channel();
        let served = self.open(&hello, sender, receiver, bits).await?;
        sessions.insert(bits, served.clone());
        Ok(served)
    }

    async fn open(
        &self,
        hello: &LineMessage,
        sender: Out,
        receiver: mpsc::Receiver<Bytes>,
        bits: u8,
    ) -> Result<Served, BridgeFault> {
        let (wire, notes) = (&self.0.wire, self.0.notes);
        let opened = match session::open(wire, &sender, notes, hello).await? {
            SessionOpening::RemoteSession(session, answer) => Some((session, answer)),
            SessionOpening::Refused(_) => {
                session::open_one_stream(wire, &sender, notes, hello).await?
            }
        };
        let no_mcp = BridgeFault::Invalid("its address does not speak MCP");
        let (session, answer) = opened.ok_or(no_mcp)?;
        let revision = session.revision();
        let revision = revision.ok_or(BridgeFault::Invalid("its revision is not known"))?;
        let facts = answer.get("result").unwrap_or(Raw::empty_object());
        let card = facts.get("serverInfo");
        let card = card.and_then(|card| card.read::<Implementation>("serverInfo").ok());
        let card = card.unwrap_or_else(|| Implementation::new("unnamed", "0"));
        let ready = message::notification(Method::Initialized.name(), None);
        tell(&session, ready);
        Ok(Served {
            _reader: Arc::new(self.read(receiver, session.clone(), bits)),
            session,
            revision,
            facts,
            identity: Arc::new(Identity::new(&card)),
        })
    }

    fn read(
        &self,
        mut receiver: mpsc::Receiver<Bytes>,
        session: RemoteSession,
        bits: u8,
    ) -> AbortOnDropHandle<()> {
        let weak = Arc::downgrade(&self.0);
        AbortOnDropHandle::new(self.0.tasks.spawn(async move {
            while let Some(text) = receiver.recv().await {
                let Some(inner) = weak.upgrade() else { return };
                let Ok(body) = MessageBody::read(text) else {
                    continue;
                };
                let this = Self(inner);
                for message in body.into_messages() {
                    this.hand(message, &session, bits).await;
                }
            }
        }))
    }

    /// Translates a message of the server.
    async fn hand(&self, message: LineMessage, session: &RemoteSession, bits: u8) {
        match message.sort.clone() {
            Sort::Request { id, method } => {
                if method == Method::Ping.name() {
                    tell(session, message::result(&id, b"{}"));
                } else {
                    self.asked(id, &method, message.params(), session, bits);
                }
            }
            Sort::Notification { method } => {
                let method = Method::from_name(&method);
                self.notified(method, message, bits).await;
            }
            Sort::Response { id: Some(own) } => {
                let call = {
                    let mut state = self.state();
                    match state.calls.get_mut(&own) {
                        Some(call) if call.client.is_none() => {
                            call.answer = Some(message.clone());
                            None
                        }
                        Some(_) => state.calls.remove(&own),
                        None => None,
                    }
                };
                if let Some(call) = call {
                    self.finish(call, &message).await;
                }
            }
            Sort::Response { id: None } => {}
        }
    }

    /// Passes on the answer to a call, or goes on with the call.
    async fn finish(&self, call: SessionCall, message: &LineMessage) {
        let Some(id) = call.client.clone() else {
            return;
        };
        let Some(call) = self.goes_on_as_task(call, &message.raw) else {
            return;
        };
        match shapes::answer(&call, &id, &message.raw) {
            shapes::Answer::Text(text) => self.write(text).await,
            shapes::Answer::Steps(steps) => self.send_to_pages(call, steps).await,
        }
    }

    async fn notified(&self, method: Option<Method>, message: LineMessage, bits: u8) {
        match method {
            Some(Method::Progress) => {
                let token = message.params().get("progressToken");
                let is_wanted = self.state().calls.values().any(|call| {
                    let own = call.params.get("_meta");
                    call.client.is_some() && own.and_then(|own| own.get("progressToken")) == token
                });
                if is_wanted {
                    self.write(message.raw.bytes().clone()).await;
                }
            }
            Some(Method::LogMessage) => {
                let level = message
                    .params()
                    .get("level")
                    .and_then(|level| level.string());
                let Some(level) = level.and_then(|level| level.parse::<Level>().ok()) else {
                    return;
                };
                let is_wanted = self.state().calls.values().any(|call| {
                    call.bits == bits
                        && call.client.is_some()
                        && call.level.is_some_and(|wanted| wanted <= level)
                });
                if is_wanted {
                    self.write(message.raw.bytes().clone()).await;
                }
            }
            Some(method) => self.changed(method, &message, bits).await,
            None => {}
        }
    }

    /// MCP-X-79.
    fn cancel(&self, id: &RequestId) {
        // It was not sent yet.
        if self.is_wanted(id) || self.end_listen(id) {
            return;
        }
        let found = {
            let mut state = self.state();
            let own = state
                .calls
                .iter()
                .find(|(_, call)| call.client.as_ref() == Some(id))
                .map(|(own, _)| own.clone());
            own.and_then(|own| Some((state.calls.remove(&own)?, own)))
        };
        if let Some((call, own)) = found {
            self.abandon(&call, &own);
        }
    }

    /// Refuses what the server asks in a call, and cancels it.
    fn abandon(&self, call: &SessionCall, own: &RequestId) {
        if !call.steps.is_empty() {
            // It is not at the server.
            return;
        }
        self.cancel_task(call);
        for question in &call.questions {
            parking::refuse(&call.served.session, question);
        }
        let mut params = br#"{"requestId":"#.to_vec();
        own.write(&mut params);
        params.push(b'}');
        if let Ok(params) = Raw::parse(params) {
            let text = message::notification(Method::Cancelled.name(), Some(&params));
            tell(&call.served.session, text);
        }
    }

    /// How many requests of the client wait.
    pub(crate) fn count_open(&self) -> usize {
        let state = self.state();
        let calls = state.calls.values();
        let open = calls.filter(|call| call.client.is_some()).count();
        open + state.beginning.len()
    }

    /// How many messages without an answer are on their way to the server.
    pub(crate) fn count_unsent(&self) -> usize {
        // The lock is held while a session is opened: nothing was sent in it.
        let sessions = self.0.sessions.try_lock();
        sessions.map_or(0, |sessions| {
            let sessions = sessions.values();
            sessions.map(|served| served.session.count_unsent()).sum()
        })
    }

    /// Ends the sessions.
    pub(crate) async fn end(&self) {
        let sessions = self.0.sessions.lock().await;
        for served in sessions.values() {
            served.session.end().await;
        }
    }
}

/// Passes a text of the bridge to a session.
fn tell(session: &RemoteSession, text: Bytes) {
    if let Ok(body) = MessageBody::read(text) {
        session.take(body);
    }
}

/// `_meta` without the keys of 2026-07-28.
fn own_meta(meta: &Raw) -> Raw {
    let mut out = b"{".to_vec();
    for (name, value) in meta.members() {
        if name.starts_with(meta::RESERVED_PREFIX) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(&name, &mut out);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
    Raw::parse(out).unwrap_or(Raw::empty_object())
}

impl Served {
    /// True if the server declared a capability, and a flag of it.
    fn declares(&self, capability: &str, flag: Option<&str>) -> bool {
        let declared = self.facts.get("capabilities");
        let declared = declared.and_then(|all| all.get(capability));
        let Some(declared) = declared.filter(|raw| raw.kind() == Kind::Object) else {
            return false;
        };
        flag.is_none_or(|flag| declared.get(flag).and_then(|raw| raw.boolean()) == Some(true))
    }
}
