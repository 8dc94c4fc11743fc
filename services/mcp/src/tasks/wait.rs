//! `tasks/result` of 2025-11-25 (TK-7): waits for what the task comes to, and asks the client meanwhile what the task wants to know
//! (TK-13, X-58).

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
    jsonrpc::{self, Raw, RequestId},
    progress,
    revision::Revision,
    task,
};
use tokio::time::sleep;

use super::{Shelf, methods::unknown, record::Record};
use crate::{
    ask::{Asker, Unanswered},
    error::McpError,
    legacy::call::{Facts, Work},
    payloads::About,
};

/// Between two looks at a task that runs on another node.
const LOOK: Duration = Duration::from_millis(500);

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(super) shelf: Shelf,
    pub(super) item: StreamKey,
    pub(super) id: RequestId,
    pub(super) revision: Revision,
    /// What is left of the task's life.
    pub(super) left: Duration,
}

type Answered = (String, Result<Raw, Unanswered>);

impl Wait {
    /// What has to be known of it beside its work.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            id: self.id.clone(),
            deadline: self.left,
            about: About {
                id: Some(self.id.clone()),
                // A second look does no harm.
                retryable: true,
            },
            progress: None,
            talks: true,
        }
    }

    /// Waits.
    pub(crate) fn run(self: Box<Self>, asker: Option<Asker>) -> Work {
        Box::pin(async move { self.wait(asker.as_ref()).await })
    }

    async fn wait(&self, asker: Option<&Asker>) -> Result<Vec<u8>, McpError> {
        let mut asking = FuturesUnordered::new();
        let mut asked: HashMap<String, AbortHandle> = HashMap::new();
        loop {
            let watch = self.shelf.state.tasks.watch(self.item);
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
            // What changes from now on is heard.
            let _ = futures_util::poll!(&mut changed);
            let record = self.shelf.look(self.item).await;
            let record = record.map_err(|why| why.refuse(self.revision, &self.id))?;
            let Some(record) = record else {
                return Err(unknown(self.revision, &self.id));
            };
            if record.status.is_terminal() {
                return Ok(self.answer(&record));
            }
            // X-7B: answered elsewhere, or not wanted any more.
            let requests = record.asked(self.revision);
            for (key, handle) in &asked {
                if !requests.iter().any(|(open, _)| open == key) {
                    handle.abort();
                }
            }
            if let Some(asker) = asker {
                for (key, request) in requests {
                    if let Entry::Vacant(place) = asked.entry(key.clone()) {
                        let (asks, handle) = abortable(self.ask(asker, key, request));
                        place.insert(handle);
                        asking.push(asks);
                    }
                }
            }
            tokio::select! {
                Some(answered) = asking.next(), if !asking.is_empty() => self.take(answered).await?,
                () = changed => {}
            }
        }
    }

    async fn ask(&self, asker: &Asker, key: String, request: InputRequest) -> Answered {
        let params = task::related(&request.params, &self.shelf.id(self.item));
        // The token is ours already, whoever it is that asks.
        let token = progress::wanted(&params).and_then(|token| token.string());
        let answer = asker
            .ask_under(self.revision, request.method, &params, token.as_deref())
            .await;
        (key, answer)
    }

    async fn take(&self, answered: Result<Answered, Aborted>) -> Result<(), McpError> {
        let Ok((key, answer)) = answered else {
            return Ok(());
        };
        let answer = match &answer {
            Ok(result) => wrapped("result", result),
            Err(Unanswered::Refused(error)) => wrapped("error", error),
            // It stays open: whoever waits next is asked.
            Err(_) => return Ok(()),
        };
        let given = self.shelf.give(self.item, &[(key, answer)]).await;
        given
            .map(|_| ())
            .map_err(|why| why.refuse(self.revision, &self.id))
    }

    /// TK-7, TK-12: what the plain call would have returned, and which task it is of.
    fn answer(&self, record: &Record) -> Vec<u8> {
        let identity = &self.shelf.server.identity;
        match record.outcome(self.revision, identity) {
            Some(Ok(result)) => {
                let result = task::related(&result, &self.shelf.id(self.item));
                jsonrpc::response(&self.id, result.as_bytes())
            }
            Some(Err(error)) => failed(&self.id, &error),
            // Cancelled.
            None => {
                let error = br#"{"code":-32603,"message":"The task was cancelled."}"#;
                let error = Raw::parse(&error[..]).unwrap_or_else(|_| Raw::empty_object());
                failed(&self.id, &error)
            }
        }
    }
}

/// An answer as a record keeps it.
pub(super) fn wrapped(name: &str, value: &Raw) -> Raw {
    let out = format!(r#"{{"{name}":{}}}"#, value.as_str());
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}

/// An error response with the error as it was written.
fn failed(id: &RequestId, error: &Raw) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    id.write(&mut out);
    out.extend_from_slice(br#","error":"#);
    out.extend_from_slice(error.as_bytes());
    out.push(b'}');
    out
}
