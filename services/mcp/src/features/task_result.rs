//! `tasks/result` of 2025-11-25 (MCP-TK-7): waits for the outcome of a task, and sends the task's
//! questions to the client meanwhile (MCP-TK-13, MCP-X-58).

use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{AbortHandle, Aborted, abortable},
    stream::FuturesUnordered,
};
use portolan_cluster::store::StreamKey;
use portolan_protocol::{
    input_required::InputRequest,
    jsonrpc::{Raw, RequestId},
    progress,
    revision::Revision,
    task::{self, TaskParams},
};
use tokio::time::sleep;

use crate::{
    call::{
        Call,
        client_channel::{ClientChannel, Unanswered},
    },
    error::McpError,
    tasks::{caller_tasks::CallerTasks, record::Record},
};

/// The poll interval of a task that runs on another node.
const LOOK: Duration = Duration::from_millis(500);

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) caller_tasks: CallerTasks,
    pub(crate) item: StreamKey,
    /// The rest of the task's lifetime.
    pub(crate) left: Duration,
}

type Answered = (String, Result<Raw, Unanswered>);

impl Wait {
    /// Waits for the task.
    pub(crate) async fn run(
        &self,
        call: &Call,
        channel: Option<&ClientChannel>,
    ) -> Result<Vec<u8>, McpError> {
        let mut asking = FuturesUnordered::new();
        let mut asked: HashMap<String, AbortHandle> = HashMap::new();
        loop {
            let watch = self.caller_tasks.state.tasks.watch(self.item);
            let changed = async {
                match &watch {
                    Some(changed) => tokio::select! {
                        () = changed.notified() => {}
                        () = sleep(10 * LOOK) => {}
                    },
                    None => sleep(LOOK).await,
                }
            };
            tokio::pin!(changed);
            // Subscribes to changes before the record is read.
            let _ = futures_util::poll!(&mut changed);
            let record = self.caller_tasks.look(self.item).await;
            let record = record.map_err(|why| why.refuse(call.revision, &call.id))?;
            let Some(record) = record else {
                return Err(unknown(call));
            };
            if record.status.is_terminal() {
                return Ok(self.answer(call, &record));
            }
            // MCP-X-7B: the question was answered elsewhere or cancelled.
            let requests = record.asked(call.revision);
            for (key, handle) in &asked {
                if !requests.iter().any(|(open, _)| open == key) {
                    handle.abort();
                }
            }
            if let Some(channel) = channel {
                for (key, request) in requests {
                    if let Entry::Vacant(place) = asked.entry(key.clone()) {
                        let (asks, handle) =
                            abortable(self.ask(call.revision, channel, key, request));
                        place.insert(handle);
                        asking.push(asks);
                    }
                }
            }
            tokio::select! {
                Some(answered) = asking.next(), if !asking.is_empty() => self.take(call, answered).await?,
                () = changed => {}
            }
        }
    }

    async fn ask(
        &self,
        revision: Revision,
        channel: &ClientChannel,
        key: String,
        request: InputRequest,
    ) -> Answered {
        let params = task::related(&request.params, &self.caller_tasks.id(self.item));
        // The token is ours already, whatever the source of the question.
        let token = progress::wanted(&params).and_then(|token| token.string());
        let answer = channel
            .request_with_progress(revision, request.method, &params, token.as_deref())
            .await;
        (key, answer)
    }

    async fn take(&self, call: &Call, answered: Result<Answered, Aborted>) -> Result<(), McpError> {
        let Ok((key, answer)) = answered else {
            return Ok(());
        };
        let answer = match &answer {
            Ok(result) => wrapped("result", result),
            Err(Unanswered::Refused(error)) => wrapped("error", error),
            // The question stays open: the next waiting request sends it again.
            Err(_) => return Ok(()),
        };
        let given = self.caller_tasks.give(self.item, &[(key, answer)]).await;
        given
            .map(|_| ())
            .map_err(|why| why.refuse(call.revision, &call.id))
    }

    /// MCP-TK-7, MCP-TK-12: the answer of the plain call, with the id of the task.
    fn answer(&self, call: &Call, record: &Record) -> Vec<u8> {
        let identity = &self.caller_tasks.server.identity;
        match record.outcome(call.revision, identity) {
            Some(Ok(result)) => {
                let result = task::related(&result, &self.caller_tasks.id(self.item));
                call.result(result.as_bytes())
            }
            Some(Err(error)) => failed(&call.id, &error),
            // The task was cancelled.
            None => {
                let error = br#"{"code":-32603,"message":"The task was cancelled."}"#;
                let error = Raw::parse(&error[..]).unwrap_or_else(|_| Raw::empty_object());
                failed(&call.id, &error)
            }
        }
    }
}

/// An answer in the form of the record.
pub(crate) fn wrapped(name: &str, value: &Raw) -> Raw {
    let out = format!(r#"{{"{name}":{}}}"#, value.as_str());
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}

/// An error response with the error unchanged.
fn failed(id: &RequestId, error: &Raw) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    id.write(&mut out);
    out.extend_from_slice(br#","error":"#);
    out.extend_from_slice(error.as_bytes());
    out.push(b'}');
    out
}

/// MCP-TK-11, MCP-TX-11: unknown, expired and foreign tasks get the same error.
pub(crate) fn unknown(call: &Call) -> McpError {
    call.misfit(TaskParams::unknown())
}
