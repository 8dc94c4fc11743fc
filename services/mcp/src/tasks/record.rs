//! The record of a task: a head for lists, and a rest with its questions, answers and outcome.

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    store::{NodeId, Record as StoredRecord},
};
use portolan_model::Timestamp;
use portolan_protocol::{
    ask::{self, Asked},
    capability::ClientCapabilities,
    error::RpcError,
    input_required::{
        InputRequest, InputRequired, read_responses, write_requests, write_responses,
    },
    jsonrpc::{Body, Message, Raw},
    method::Method,
    result::Identity,
    revision::Revision,
    task::{self, Detail, Status, Task},
    translate::{self, Shape},
    visible::Visible,
};
use serde::{Deserialize, Serialize};
use time::format_description::well_known::Rfc3339;

use crate::hex::{hex, unhex};

/// MCP-TK-15: the poll interval for clients, in milliseconds.
const POLL_MS: u64 = 1_000;

/// Characters of an error that become the status message of a task.
const LONGEST_MESSAGE: usize = 300;

/// The outcome of a task: the result, or the JSON-RPC error object, of the plain call.
pub(crate) type Outcome = Result<Raw, Raw>;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The status as of 2026-07-28: a tool that failed is completed (MCP-TX-7).
    pub(crate) status: Status,
    message: Option<String>,
    /// Unix time in milliseconds.
    pub(crate) created: i64,
    updated: i64,
    /// Milliseconds from `created`.
    pub(crate) ttl: u64,
    /// The revision of the client that made it, in which its questions and outcome are written.
    pub(crate) revision: Revision,
    /// The session that made it, if one did: it gets notifications (MCP-TK-14).
    pub(crate) session: Option<SessionKey>,
    /// The node that runs it.
    pub(crate) owner: NodeId,
    /// The result has `isError` (MCP-TK-8).
    is_error: bool,
    /// The open questions.
    pub(crate) requests: Vec<(String, InputRequest)>,
    /// Answers that the task's node has not read yet: `{"result":…}` or `{"error":…}`.
    pub(crate) answers: Vec<(String, Raw)>,
    outcome: Option<Outcome>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    created: i64,
    updated: i64,
    ttl: u64,
    revision: u8,
    owner: String,
    /// In hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default)]
    is_error: bool,
}

/// Unix time in milliseconds.
pub(crate) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

fn iso(millis: i64) -> String {
    let at = Timestamp::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000);
    let text = at.ok().and_then(|at| at.format(&Rfc3339).ok());
    text.unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

impl Record {
    /// A task that begins to run on `owner`.
    pub(crate) fn new(revision: Revision, ttl: u64, owner: NodeId, now: Timestamp) -> Self {
        let now = millis(now);
        Self {
            status: Status::Working,
            message: None,
            created: now,
            updated: now,
            ttl,
            revision,
            session: None,
            owner,
            is_error: false,
            requests: Vec::new(),
            answers: Vec::new(),
            outcome: None,
        }
    }

    /// Head and rest.
    pub(crate) fn to_bytes(&self) -> (Bytes, Bytes) {
        let head = Head {
            status: self.status,
            message: self.message.clone(),
            created: self.created,
            updated: self.updated,
            ttl: self.ttl,
            revision: self.revision.ordinal(),
            owner: String::from_utf8_lossy(&self.owner.0).into_owned(),
            session: self.session.map(|session| hex(&session.0)),
            is_error: self.is_error,
        };
        // A struct of plain members always serializes.
        let head = serde_json::to_vec(&head).unwrap_or_default();
        let mut rest = br#"{"requests":"#.to_vec();
        write_requests(&self.requests, &mut rest);
        rest.extend_from_slice(br#","answers":"#);
        let answers = self
            .answers
            .iter()
            .map(|(key, answer)| (key.as_str(), answer));
        rest.extend_from_slice(write_responses(answers).as_bytes());
        let outcome = match &self.outcome {
            None => None,
            Some(Ok(result)) => Some((&br#","result":"#[..], result)),
            Some(Err(error)) => Some((&br#","error":"#[..], error)),
        };
        if let Some((name, value)) = outcome {
            rest.extend_from_slice(name);
            rest.extend_from_slice(value.as_bytes());
        }
        rest.push(b'}');
        (head.into(), rest.into())
    }

    /// Reads the head alone, for a list.
    pub(crate) fn read_head(head: &Bytes) -> Option<Self> {
        let head: Head = serde_json::from_slice(head).ok()?;
        Some(Self {
            status: head.status,
            message: head.message,
            created: head.created,
            updated: head.updated,
            ttl: head.ttl,
            revision: Revision::from_ordinal(head.revision)?,
            session: head.session.and_then(|session| {
                let session = unhex(&session)?.try_into().ok()?;
                Some(SessionKey(session))
            }),
            owner: NodeId(head.owner.as_bytes().try_into().ok()?),
            is_error: head.is_error,
            requests: Vec::new(),
            answers: Vec::new(),
            outcome: None,
        })
    }

    /// Reads the whole record.
    pub(crate) fn read(kept: &StoredRecord) -> Option<Self> {
        let rest = Raw::parse(kept.rest.clone()).ok()?;
        let requests = InputRequired::requests(&rest.get("requests")?).ok()?;
        let answers = read_responses(&rest.get("answers")?).ok()?;
        let outcome = match (rest.get("result"), rest.get("error")) {
            (Some(result), _) => Some(Ok(result)),
            (None, Some(error)) => Some(Err(error)),
            (None, None) => None,
        };
        Some(Self {
            requests,
            answers,
            outcome,
            ..Self::read_head(&kept.head)?
        })
    }

    /// The part of the status that subscribers see: a difference is a notification.
    pub(crate) fn standing(&self) -> (Status, Vec<String>) {
        let asked = self.requests.iter().map(|(key, _)| key.clone());
        (self.status, asked.collect())
    }

    /// The rest of its lifetime.
    pub(crate) fn left(&self, now: Timestamp) -> Duration {
        let until = self.created.saturating_add_unsigned(self.ttl);
        Duration::from_millis(u64::try_from(until - millis(now)).unwrap_or(0))
    }

    fn become_status(&mut self, status: Status, now: Timestamp) -> bool {
        let may = self.status.may_become(status);
        if may {
            self.status = status;
            self.updated = millis(now);
            if status.is_terminal() {
                self.requests.clear();
                self.answers.clear();
            }
        }
        may
    }

    /// MCP-TK-13, MCP-TX-6: adds questions to its client. Each key names one question for ever
    /// (MCP-TX-9).
    pub(crate) fn ask(&mut self, asked: Vec<(String, InputRequest)>, now: Timestamp) -> bool {
        if self.status.is_terminal() {
            return false;
        }
        self.requests.extend(asked);
        let waits = if self.requests.is_empty() {
            Status::Working
        } else {
            Status::InputRequired
        };
        self.become_status(waits, now);
        true
    }

    /// MCP-TX-8: takes the answers to open questions. With the last one the task works again.
    pub(crate) fn answer(&mut self, answers: &[(String, Raw)], now: Timestamp) -> bool {
        if self.status.is_terminal() {
            return false;
        }
        let before = self.requests.len();
        for (key, answer) in answers {
            if let Some(at) = self.requests.iter().position(|(asked, _)| asked == key) {
                self.requests.remove(at);
                self.answers.push((key.clone(), answer.clone()));
            }
        }
        if self.requests.is_empty() {
            self.become_status(Status::Working, now);
        }
        self.requests.len() < before
    }

    /// Cancels the task (MCP-TK-10, MCP-TX-10). False if it ended before.
    pub(crate) fn cancel(&mut self, now: Timestamp) -> bool {
        let is_new = self.become_status(Status::Cancelled, now);
        if is_new {
            self.message = Some("The task was cancelled.".to_owned());
        }
        is_new
    }

    /// Ends the task with the JSON-RPC response of its call.
    pub(crate) fn finish(&mut self, body: &[u8], now: Timestamp) -> bool {
        let parsed = Body::parse(Bytes::copy_from_slice(body));
        let Ok(Body::Single(Message::Response(response))) = parsed else {
            return self.lose(now);
        };
        match response.outcome {
            Ok(result) => {
                let is_error = result.get("isError").and_then(|raw| raw.boolean()) == Some(true);
                if !self.become_status(Status::Completed, now) {
                    return false;
                }
                self.is_error = is_error;
                self.message = is_error.then(|| "The tool reported an error.".to_owned());
                self.outcome = Some(Ok(result));
                true
            }
            Err(error) => self.fail(error, now),
        }
    }

    /// Ends the task with an error of the protocol (MCP-TX-7).
    pub(crate) fn fail(&mut self, error: Raw, now: Timestamp) -> bool {
        if !self.become_status(Status::Failed, now) {
            return false;
        }
        let message = error.get("message").and_then(|message| message.string());
        self.message = message.map(|message| message.chars().take(LONGEST_MESSAGE).collect());
        self.outcome = Some(Err(error));
        true
    }

    /// MCP-X-5F: ends the task as lost: no node runs it any more, and its outcome is unknown.
    pub(crate) fn lose(&mut self, now: Timestamp) -> bool {
        self.fail(raw_error(&Visible::Lost.error()), now)
    }

    /// The task in the form for a client of `revision`, under its id.
    pub(crate) fn task(&self, id: String, revision: Revision) -> Task {
        Task {
            id,
            status: self.status.shaped(revision, self.is_error),
            message: self.message.clone(),
            created_at: iso(self.created),
            updated_at: iso(self.updated),
            ttl_ms: Some(self.ttl),
            poll_interval_ms: Some(POLL_MS),
        }
    }

    /// The additional members of `tasks/get` of 2026-07-28 (MCP-TX-6).
    pub(crate) fn detail(&self, revision: Revision, identity: &Identity) -> Detail {
        match (self.status, &self.outcome) {
            (Status::InputRequired, _) => Detail::Requests(self.asked(revision)),
            (Status::Completed | Status::Failed, Some(_)) => match self.outcome(revision, identity)
            {
                Some(Ok(result)) => Detail::Result(result),
                Some(Err(error)) => Detail::Error(error),
                None => Detail::None,
            },
            _ => Detail::None,
        }
    }

    /// The open questions, in the form of `revision` (MCP-TX-17).
    pub(crate) fn asked(&self, revision: Revision) -> Vec<(String, InputRequest)> {
        if revision == self.revision {
            return self.requests.clone();
        }
        // The questions fit the first client's capabilities; this client decides which it can
        // answer.
        let capabilities = ClientCapabilities::from_bits(u8::MAX);
        let shaped = self.requests.iter().map(|(key, request)| {
            let asked = Asked {
                from: self.revision,
                to: revision,
                capabilities: &capabilities,
                made_up_id: key,
            };
            let params = match ask::question(request.method, &request.params, &asked) {
                Ok(shaped) => shaped.into_raw(),
                Err(_) => request.params.clone(),
            };
            let request = InputRequest {
                method: request.method,
                params,
            };
            (key.clone(), request)
        });
        shaped.collect()
    }

    /// The outcome in the form of `revision` (MCP-TX-17); a JSON-RPC error if it has no such form.
    pub(crate) fn outcome(&self, revision: Revision, identity: &Identity) -> Option<Outcome> {
        let outcome = self.outcome.as_ref()?;
        let result = match outcome {
            Ok(result) if revision != self.revision => result,
            other => return Some(other.clone()),
        };
        let shape = Shape {
            from: self.revision,
            to: revision,
            identity,
            uniform: false,
        };
        Some(
            translate::result(Method::ToolsCall, result, &shape)
                .map(translate::Shaped::into_raw)
                .map_err(|_| raw_error(&Visible::Invalid.error())),
        )
    }
}

/// An error as an object.
pub(crate) fn raw_error(error: &RpcError) -> Raw {
    match task::error_detail(error) {
        Detail::Error(raw) => raw,
        _ => Raw::empty_object(),
    }
}

#[cfg(test)]
mod tests {
    use portolan_protocol::{ask::AskMethod, initialize::Implementation};
    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = time::macros::datetime!(2026-11-22 03:00 UTC);
    const R4: Revision = Revision::V2025_11_25;
    const R5: Revision = Revision::V2026_07_28;

    fn record() -> Record {
        Record::new(R4, 60_000, NodeId(*b"naaaaaaaaaaaaa"), NOW)
    }

    fn question() -> InputRequest {
        let params = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
        InputRequest {
            method: AskMethod::Elicit,
            params: Raw::of(&params).unwrap(),
        }
    }

    fn answered(name: &str) -> (String, Raw) {
        let answer = json!({"result": {"action": "accept"}});
        (name.to_owned(), Raw::of(&answer).unwrap())
    }

    fn again(record: &Record) -> Record {
        let (head, rest) = record.to_bytes();
        let kept = StoredRecord {
            nonce: portolan_cluster::store::Nonce([1; 8]),
            version: portolan_cluster::store::Version(1),
            left: Duration::from_secs(1),
            head,
            rest,
        };
        Record::read(&kept).unwrap()
    }

    #[test]
    fn tk_5_a_record_goes_through_its_states_and_reads_back_in_each() {
        let mut record = Record {
            session: Some(SessionKey([200; 16])),
            ..record()
        };
        assert_eq!(again(&record), record);
        assert!(record.ask(
            vec![("q1".into(), question()), ("q2".into(), question())],
            NOW
        ));
        assert_eq!(record.status, Status::InputRequired);
        assert_eq!(again(&record), record);
        assert!(record.answer(&[answered("q1"), answered("unknown")], NOW));
        assert_eq!(
            record.status,
            Status::InputRequired,
            "MCP-TX-8: one is left"
        );
        assert!(!record.answer(&[answered("q1")], NOW), "answered before");
        assert_eq!(again(&record), record);
        assert!(record.answer(&[answered("q2")], NOW));
        assert_eq!(record.status, Status::Working);
        let body = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#;
        assert!(record.finish(body, NOW));
        assert_eq!(again(&record), record);
        assert!(
            !record.cancel(NOW) && !record.lose(NOW),
            "it stays as it is"
        );
        assert_eq!(record.status, Status::Completed);
    }

    #[test]
    fn tk_8_x_57_and_tx_17_one_record_tells_each_era_in_its_words() {
        let mut record = record();
        let body = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#;
        assert!(record.finish(body, NOW));
        let identity = Identity::new(&Implementation::new("pets", "1"));
        assert_eq!(record.task("t".into(), R4).status, Status::Failed);
        assert_eq!(record.task("t".into(), R5).status, Status::Completed);
        assert!(record.task("t".into(), R4).message.is_some(), "MCP-TK-8");
        let Detail::Result(result) = record.detail(R5, &identity) else {
            panic!("a result")
        };
        let result: Value = serde_json::from_slice(result.as_bytes()).unwrap();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["isError"], true);
        let plain = record.outcome(R4, &identity).unwrap().unwrap();
        assert!(plain.get("resultType").is_none(), "as it was made");
        assert_eq!(
            record.task("t".into(), R4).created_at,
            "2026-11-22T03:00:00Z"
        );
    }

    #[test]
    fn x_5f_a_lost_task_failed_and_says_so() {
        let mut record = record();
        assert!(record.lose(NOW));
        let identity = Identity::new(&Implementation::new("pets", "1"));
        let error = record.outcome(R5, &identity).unwrap().unwrap_err();
        assert_eq!(error.get("code").unwrap().as_str(), "-31004");
        assert_eq!(record.task("t".into(), R5).status, Status::Failed);
    }
}
