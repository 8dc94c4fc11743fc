//! A client with sessions in front of a server of 2026-07-28. What such a server cannot do in a
//! request of its own, the bridge does for it: questions, the log level, subscriptions
//! (MCP-X-14, MCP-X-20, MCP-X-40, MCP-X-73 of the translation rules).
//!
//! The bridge is a client of [`Relay`] here: its messages go in there, and what comes out is
//! translated.

mod listening;
mod questions;
mod tasks;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use portolan_protocol::{
    capability::{ClientCapabilities, TASKS_EXTENSION},
    error::RpcError,
    initialize::{Implementation, negotiate},
    input_required::{InputRequest, InputRequired},
    jsonrpc::{Kind, Raw, RequestId},
    meta,
    method::Method,
    result::{Identity, write_string},
    revision::Revision,
    task::Task,
    translate::{self, Failed, Listed, Shape},
    visible::Visible,
};
use tokio::sync::mpsc;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::{
    fault::BridgeFault,
    lines::Out,
    message::{self, LineMessage, MessageBody, Sort},
    note::Notes,
    relay::{Era, NEWEST, Relay},
    wire::Wire,
};

/// The log level before the client names one (MCP-X-73).
const LEVEL: &str = "\"warning\"";

/// A conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Older(Arc<OlderInner>);

#[derive(Debug)]
struct OlderInner {
    relay: Relay,
    tasks: TaskTracker,
    out: Out,
    notes: Notes,
    /// The revision of the client.
    revision: Revision,
    can: ClientCapabilities,
    /// The client's name card, and its capabilities in the form of 2026-07-28.
    card: Raw,
    capabilities: Raw,
    /// The same with the extension for tasks (MCP-X-52).
    with_tasks: Raw,
    /// Capabilities that the server declared.
    declared: Raw,
    identity: Identity,
    state: Mutex<OlderState>,
    reader: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Debug, Default)]
struct OlderState {
    count: u64,
    /// Requests at the server, by the bridge's id.
    calls: HashMap<RequestId, TranslatedCall>,
    /// Questions at the client, by the bridge's id: the call, and the key of the question.
    asked: HashMap<RequestId, (RequestId, String)>,
    /// The log level, as JSON.
    level: Option<Raw>,
    uris: BTreeSet<String>,
    listen: Option<RequestId>,
    /// The subscription that the newest one replaces.
    replaced: Option<RequestId>,
}

/// A request of the client.
#[derive(Debug)]
struct TranslatedCall {
    /// The client's id.
    id: RequestId,
    method: Method,
    params: Raw,
    rounds: u8,
    round: Option<Round>,
    /// The last progress that the client saw.
    progress: f64,
    /// Questions by URL that the client answered, by the ids that were made up for them.
    urls: Vec<String>,
    task: tasks::FollowedTask,
}

/// Questions that wait for their answers.
#[derive(Debug)]
struct Round {
    state: Option<String>,
    questions: Vec<(String, InputRequest, Option<Raw>)>,
}

/// Opens the conversation. `None` if the server does not speak 2026-07-28.
pub(crate) async fn open(
    wire: &Arc<Wire>,
    out: &Out,
    notes: Notes,
    hello: &LineMessage,
) -> Result<Option<(Older, Bytes)>, BridgeFault> {
    let params = hello.params();
    let object = |name: &str| {
        let value = params.get(name).filter(|raw| raw.kind() == Kind::Object);
        value.unwrap_or(Raw::empty_object())
    };
    let requested = params.get("protocolVersion").and_then(|raw| raw.string());
    let can = ClientCapabilities::read(&object("capabilities"));
    let written = |can: &ClientCapabilities| {
        let mut capabilities = Vec::with_capacity(96);
        can.write(NEWEST, &mut capabilities);
        Raw::parse(capabilities).unwrap_or(Raw::empty_object())
    };
    let mut with_tasks = can.clone();
    let extension = TASKS_EXTENSION.to_owned();
    with_tasks.extensions.insert(extension, Raw::empty_object());
    let (sender, receiver) = Out::channel();
    let relay = Relay::new(Arc::clone(wire), sender, notes);
    let mut inner = OlderInner {
        relay,
        tasks: wire.tasks.clone(),
        out: out.clone(),
        notes,
        revision: negotiate(&requested.unwrap_or_default()),
        capabilities: written(&can),
        with_tasks: written(&with_tasks),
        can,
        card: object("clientInfo"),
        declared: Raw::empty_object(),
        identity: Identity::new(&Implementation::new(
            "portolan-connect",
            env!("CARGO_PKG_VERSION"),
        )),
        state: Mutex::default(),
        reader: Mutex::default(),
    };
    let mut receiver = receiver;
    let Some(found) = inner.discover(&mut receiver).await? else {
        return Ok(None);
    };
    let answer = inner.handshake(&found);
    inner.declared = found.get("capabilities").unwrap_or(Raw::empty_object());
    notes.detail(&format!(
        "the client speaks {}, the server {NEWEST}",
        inner.revision
    ));
    let this = Older(Arc::new(inner));
    this.start_reader(receiver);
    Ok(Some((this, answer)))
}

impl OlderInner {
    async fn discover(
        &self,
        receiver: &mut mpsc::Receiver<Bytes>,
    ) -> Result<Option<Raw>, BridgeFault> {
        let id = RequestId::from("portolan-connect-discover");
        let nothing = Raw::empty_object();
        let text = self.request(&id, Method::Discover, &nothing, &self.capabilities, &[]);
        let Ok(MessageBody::One(probe)) = MessageBody::read(text) else {
            return Ok(None);
        };
        if self.relay.first(probe).await? == Era::Earlier {
            return Ok(None);
        }
        let Ok(answer) = receiver.try_recv() else {
            return Ok(None);
        };
        let Ok(MessageBody::One(answer)) = MessageBody::read(answer) else {
            return Ok(None);
        };
        Ok(answer.raw.get("result").filter(|result| {
            let versions = result.get("supportedVersions");
            let mut versions = versions.iter().flat_map(Raw::elements);
            versions.any(|version| version.string().as_deref() == Some(NEWEST.as_str()))
        }))
    }

    /// The result of `initialize`, from that of `server/discover`.
    fn handshake(&self, found: &Raw) -> Bytes {
        let mut out = br#"{"protocolVersion":"#.to_vec();
        write_string(self.revision.as_str(), &mut out);
        out.extend_from_slice(br#","capabilities":{"#);
        let declared = found.get("capabilities").unwrap_or(Raw::empty_object());
        let mut is_first = true;
        for (name, value) in declared.members() {
            let is_known = match name.as_str() {
                "tools" | "prompts" | "resources" | "logging" | "experimental" => true,
                "completions" => self.revision.facts().completions_flag,
                _ => false,
            };
            if is_known {
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                write_string(&name, &mut out);
                out.push(b':');
                out.extend_from_slice(value.as_bytes());
            }
        }
        out.extend_from_slice(br#"},"serverInfo":"#);
        let card = found
            .get("_meta")
            .and_then(|own| own.get(meta::SERVER_INFO));
        let card = card.or_else(|| found.get("serverInfo"));
        let card = card.and_then(|card| card.read::<Implementation>("serverInfo").ok());
        let card = card.map_or_else(|| self.identity.clone(), |card| Identity::new(&card));
        out.extend_from_slice(card.json(self.revision).as_bytes());
        if let Some(instructions) = found.get("instructions") {
            out.extend_from_slice(br#","instructions":"#);
            out.extend_from_slice(instructions.as_bytes());
        }
        out.push(b'}');
        out.into()
    }

    /// A request as 2026-07-28 has it (MCP-X-14), with these capabilities and `more` parameters.
    /// The client's progress token stays.
    fn request(
        &self,
        id: &RequestId,
        method: Method,
        params: &Raw,
        capabilities: &Raw,
        more: &[(&str, Raw)],
    ) -> Bytes {
        let mut object = b"{".to_vec();
        let mut member = |name: &str, value: &[u8]| {
            write_string(name, &mut object);
            object.push(b':');
            object.extend_from_slice(value);
            object.push(b',');
        };
        let mut own_meta = None;
        for (name, value) in params.members() {
            if name == "_meta" {
                own_meta = Some(value);
            } else if method != Method::ToolsCall || name != "task" {
                member(&name, value.as_bytes());
            }
        }
        for (name, value) in more {
            member(name, value.as_bytes());
        }
        write_string("_meta", &mut object);
        object.extend_from_slice(b":{");
        for (name, value) in own_meta.iter().flat_map(Raw::members) {
            if !name.starts_with(meta::RESERVED_PREFIX) {
                write_string(&name, &mut object);
                object.push(b':');
                object.extend_from_slice(value.as_bytes());
                object.push(b',');
            }
        }
        let level = self.state().level.clone();
        let level = level.as_ref().map_or(LEVEL, Raw::as_str);
        for (name, value) in [
            (meta::CLIENT_INFO, self.card.as_str()),
            (meta::CLIENT_CAPABILITIES, capabilities.as_str()),
            (meta::LOG_LEVEL, level),
        ] {
            write_string(name, &mut object);
            object.push(b':');
            object.extend_from_slice(value.as_bytes());
            object.push(b',');
        }
        write_string(meta::PROTOCOL_VERSION, &mut object);
        object.push(b':');
        write_string(NEWEST.as_str(), &mut object);
        object.extend_from_slice(b"}}");
        let params = Raw::parse(object).unwrap_or(Raw::empty_object());
        message::request(id, method.name(), &params)
    }

    fn state(&self) -> MutexGuard<'_, OlderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OlderState {
    fn new_id(&mut self) -> RequestId {
        self.count += 1;
        RequestId::from(format!("portolan-connect-{}", self.count))
    }
}

impl Older {
    fn state(&self) -> MutexGuard<'_, OlderState> {
        self.0.state()
    }

    /// Takes a line of the client.
    pub(crate) async fn take(&self, body: MessageBody) {
        // MCP-X-7C: a batch is taken apart.
        for message in body.into_messages() {
            self.take_one(message).await;
        }
    }

    async fn take_one(&self, message: LineMessage) {
        match message.sort.clone() {
            Sort::Request { id, method } => self.begin(id, &method, message.params()).await,
            Sort::Notification { .. } => {
                if let Some(id) = message.cancels() {
                    self.cancel(&id).await;
                } else if message.is(Method::Initialized) {
                    self.listen();
                }
                // MCP-X-3H: roots are asked for when they are needed.
            }
            Sort::Response { id: Some(id) } => self.answered(&id, &message).await,
            Sort::Response { id: None } => {}
        }
    }

    async fn begin(&self, id: RequestId, method: &str, params: Raw) {
        let known = Method::of_client(method, self.0.revision);
        match known {
            Some(Method::Ping) => self.result(&id, b"{}").await,
            Some(Method::SetLevel) => {
                self.state().level = params.get("level").filter(|raw| raw.kind() == Kind::String);
                self.result(&id, b"{}").await;
            }
            Some(method @ (Method::ResourcesSubscribe | Method::ResourcesUnsubscribe)) => {
                self.watch(&id, method, &params).await;
            }
            Some(method) if method.exists_in(NEWEST) && !method.is_task() => {
                self.send(TranslatedCall {
                    id,
                    method,
                    params,
                    rounds: 0,
                    round: None,
                    progress: f64::NEG_INFINITY,
                    urls: Vec::new(),
                    task: tasks::FollowedTask::None,
                });
            }
            _ => {
                let error = message::own_error(-32601, "Method not found");
                self.0.out.write(message::error(Some(&id), &error)).await;
            }
        }
    }

    /// Sends a call, with the answers of its last round.
    fn send(&self, mut call: TranslatedCall) {
        let mut more = Vec::new();
        if let Some(round) = call.round.take() {
            let given = round.questions.iter();
            let given = given.filter_map(|(key, _, given)| Some((key.as_str(), given.as_ref()?)));
            let responses = portolan_protocol::input_required::write_responses(given);
            more.push(("inputResponses", responses));
            if let Some(state) = &round.state {
                more.push((
                    "requestState",
                    Raw::of(state).unwrap_or(Raw::empty_object()),
                ));
            }
        }
        let id = self.state().new_id();
        let (method, params, capabilities) = self.place_of(&mut call, &mut more);
        let text = self.0.request(&id, method, &params, capabilities, &more);
        self.state().calls.insert(id, call);
        self.hand_over(text);
    }

    /// Gives the relay a message to send.
    fn hand_over(&self, text: Bytes) {
        if let Ok(MessageBody::One(message)) = MessageBody::read(text) {
            self.0.relay.take(message);
        }
    }

    /// Sends a call after a pause, if it is not cancelled meanwhile.
    fn send_later(&self, call: TranslatedCall, pause: Duration) {
        let own = {
            let mut state = self.state();
            let own = state.new_id();
            state.calls.insert(own.clone(), call);
            own
        };
        let this = self.clone();
        self.0.tasks.spawn(async move {
            tokio::time::sleep(pause).await;
            let call = this.state().calls.remove(&own);
            if let Some(call) = call {
                this.send(call);
            }
        });
    }

    async fn result(&self, id: &RequestId, result: &[u8]) {
        self.0.out.write(message::result(id, result)).await;
    }

    async fn show(&self, call: &TranslatedCall, visible: &Visible) {
        let (method, identity) = (call.method, &self.0.identity);
        let (_, answer) = visible.answer(method, &call.id, self.0.revision, identity);
        self.0.out.write(answer.into()).await;
    }

    /// MCP-X-78: the stream of the request is closed.
    async fn cancel(&self, id: &RequestId) {
        let own = {
            let mut state = self.state();
            let own = state.calls.iter().find(|(_, call)| call.id == *id);
            let own = own.map(|(own, _)| own.clone());
            own.and_then(|own| Some((state.calls.remove(&own)?, own)))
        };
        if let Some((call, own)) = own {
            self.stop(&own);
            self.cancel_task(&call);
            self.withdraw(&own).await;
        }
    }

    /// Cancels a request at the server.
    fn stop(&self, own: &RequestId) {
        let mut params = br#"{"requestId":"#.to_vec();
        own.write(&mut params);
        params.push(b'}');
        let params = Raw::parse(params).unwrap_or(Raw::empty_object());
        let text = message::notification(Method::Cancelled.name(), Some(&params));
        self.hand_over(text);
    }

    fn start_reader(&self, mut receiver: mpsc::Receiver<Bytes>) {
        let weak = Arc::downgrade(&self.0);
        let reader = self.0.tasks.spawn(async move {
            while let Some(text) = receiver.recv().await {
                let Some(inner) = weak.upgrade() else { return };
                if let Ok(MessageBody::One(message)) = MessageBody::read(text) {
                    Self(inner).hand(message).await;
                }
            }
        });
        let mut slot = self.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(AbortOnDropHandle::new(reader));
    }

    /// Translates a message of the server.
    async fn hand(&self, message: LineMessage) {
        match &message.sort {
            Sort::Notification { method } => {
                let method = Method::from_name(method);
                self.notified(method, message).await;
            }
            Sort::Response { id: Some(own) } => {
                let call = self.state().calls.remove(own);
                let Some(call) = call else {
                    // A subscription that ended.
                    self.listen_ended(own);
                    return;
                };
                match message.raw.get("result") {
                    Some(result) => self.finish(own, call, &result).await,
                    None => {
                        let error = message.raw.get("error").unwrap_or(Raw::empty_object());
                        self.failed(call, read_error(&error)).await;
                    }
                }
            }
            Sort::Request { .. } | Sort::Response { id: None } => {}
        }
    }

    async fn notified(&self, method: Option<Method>, message: LineMessage) {
        match method {
            Some(Method::Progress) => {
                if let Some(progress) = self.progress(&message) {
                    self.0.out.write(progress).await;
                }
            }
            Some(Method::LogMessage) => self.0.out.write(message.raw.bytes().clone()).await,
            Some(Method::SubscriptionsAcknowledged) => self.acknowledged(),
            Some(
                method @ (Method::ToolsListChanged
                | Method::PromptsListChanged
                | Method::ResourcesListChanged
                | Method::ResourceUpdated),
            ) => self.changed(method, &message).await,
            _ => {}
        }
    }

    /// MCP-X-76: only increasing values pass; 2024-11-05 has no message.
    fn progress(&self, message: &LineMessage) -> Option<Bytes> {
        let params = message.params();
        let token = params.get("progressToken")?;
        let value: f64 = params.get("progress")?.as_str().parse().ok()?;
        let mut state = self.state();
        let call = state.calls.values_mut().find(|call| {
            let own = call
                .params
                .get("_meta")
                .and_then(|own| own.get("progressToken"));
            own.as_ref() == Some(&token)
        })?;
        if value <= call.progress {
            return None;
        }
        call.progress = value;
        if self.0.revision.facts().progress_message || params.get("message").is_none() {
            return Some(message.raw.bytes().clone());
        }
        let mut kept = b"{".to_vec();
        for (name, value) in params.members().filter(|(name, _)| name != "message") {
            if kept.len() > 1 {
                kept.push(b',');
            }
            write_string(&name, &mut kept);
            kept.push(b':');
            kept.extend_from_slice(value.as_bytes());
        }
        kept.push(b'}');
        let kept = Raw::parse(kept).ok()?;
        Some(message::notification(Method::Progress.name(), Some(&kept)))
    }

    async fn finish(&self, own: &RequestId, mut call: TranslatedCall, result: &Raw) {
        self.complete_urls(&mut call).await;
        if InputRequired::is(result) {
            self.ask(own, call, result).await;
            return;
        }
        if call.method == Method::ToolsCall && (call.task.is_followed() || Task::is(result, NEWEST))
        {
            Box::pin(self.follow_task(own, call, result)).await;
            return;
        }
        self.complete(&call, result).await;
    }

    /// Passes on the last result of a call.
    async fn complete(&self, call: &TranslatedCall, result: &Raw) {
        let listed = match call.method {
            Method::ToolsList => Some(("tools", Listed::Tool)),
            Method::PromptsList => Some(("prompts", Listed::Prompt)),
            Method::ResourcesList => Some(("resources", Listed::Resource)),
            Method::ResourceTemplatesList => Some(("resourceTemplates", Listed::Template)),
            _ => None,
        };
        if let Some((member, listed)) = listed {
            let list = list(result, member, listed, self.0.revision);
            self.result(&call.id, &list).await;
            return;
        }
        let shape = Shape {
            from: NEWEST,
            to: self.0.revision,
            identity: &self.0.identity,
            uniform: false,
        };
        match translate::result(call.method, result, &shape) {
            Ok(shaped) => self.result(&call.id, &shaped.json).await,
            Err(violation) => {
                self.0
                    .notes
                    .detail(&format!("an answer is invalid: {violation}"));
                self.show(call, &Visible::Invalid).await;
            }
        }
    }

    /// Passes on an error, or goes on with a call that has to be a task.
    async fn failed(&self, call: TranslatedCall, error: RpcError) {
        if let Some(call) = self.goes_on_as_task(call, &error).await {
            self.refuse(&call, &error).await;
        }
    }

    /// Passes on an error.
    async fn refuse(&self, call: &TranslatedCall, error: &RpcError) {
        let (method, can) = (call.method, &self.0.can);
        match translate::error(error, method, NEWEST, self.0.revision, can) {
            Failed::Error(error, _) | Failed::Degraded(error) => {
                let answer = message::error(Some(&call.id), &error);
                self.0.out.write(answer).await;
            }
            Failed::Visible(visible) => self.show(call, &visible).await,
            _ => self.show(call, &Visible::Invalid).await,
        }
    }

    /// How many requests of the client wait.
    pub(crate) fn count_open(&self) -> usize {
        self.state().calls.len()
    }
}

/// Reads the error of a response.
fn read_error(error: &Raw) -> RpcError {
    let code = error
        .get("code")
        .and_then(|code| code.as_str().parse().ok());
    let message = error.get("message").and_then(|text| text.string());
    RpcError {
        code: code.unwrap_or(-32603),
        message: message.unwrap_or_default(),
        data: error.get("data").filter(|data| !data.is_null()),
    }
}

/// A list with definitions as the client's revision knows them. Those that it cannot know are left
/// out.
fn list(result: &Raw, member: &str, listed: Listed, to: Revision) -> Vec<u8> {
    let mut out = b"{".to_vec();
    write_string(member, &mut out);
    out.extend_from_slice(b":[");
    let entries = result.get(member);
    let mut is_first = true;
    for entry in entries.iter().flat_map(Raw::elements) {
        let Ok(shaped) = translate::definition(listed, &entry, NEWEST, to) else {
            continue;
        };
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(&shaped.json);
    }
    out.push(b']');
    if let Some(cursor) = result.get("nextCursor").filter(|raw| !raw.is_null()) {
        out.extend_from_slice(br#","nextCursor":"#);
        out.extend_from_slice(cursor.as_bytes());
    }
    out.push(b'}');
    out
}
