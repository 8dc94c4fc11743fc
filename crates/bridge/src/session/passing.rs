//! Messages of the server on their way to the client, and the resume of the streams that bring
//! them.

use portolan_net::egress::EgressStream;
use portolan_protocol::jsonrpc::{Raw, RequestId};

use super::{LAST_EVENT_ID, PAUSE, RemoteSession, Seat, ServerRequest, TRIES, Transport};
use crate::{
    account::For,
    fault::BridgeFault,
    message::{LineMessage, MessageBody, Sort},
    stream::{Events, StreamPosition, is_events, is_json},
};

impl RemoteSession {
    /// Passes on the answer to a POST.
    pub(super) async fn pass(
        &self,
        answer: EgressStream,
        ids: &[RequestId],
        seat: &Seat,
    ) -> Result<(), BridgeFault> {
        let status = answer.status;
        if status.is_success() && is_events(&answer.headers) {
            return self.follow(answer, ids, seat).await;
        }
        if status.is_success() && self.0.transport == Transport::OneStream {
            return Ok(());
        }
        if !is_json(&answer.headers) {
            return Err(if status.is_success() {
                BridgeFault::Invalid("neither JSON nor an event stream")
            } else {
                BridgeFault::Status(status.as_u16())
            });
        }
        let body = answer.whole().await?.body;
        let Ok(read) = MessageBody::read(body) else {
            return Err(if status.is_success() {
                BridgeFault::Invalid("what it sent is no message")
            } else {
                BridgeFault::Status(status.as_u16())
            });
        };
        let is_batch = matches!(&read, MessageBody::Batch(_)) && ids.len() > 1;
        let messages = read.into_messages();
        if is_batch {
            self.hand_batch(messages, seat.generation).await;
            return Ok(());
        }
        for message in messages {
            // An HTTP error refuses this request, whatever id it names.
            if let (false, Sort::Response { id }, [own]) = (status.is_success(), &message.sort, ids)
                && id.as_ref() != Some(own)
            {
                self.refuse(own, &message.raw).await;
                continue;
            }
            self.hand(message, seat.generation, ids.first()).await;
        }
        Ok(())
    }

    /// Passes on an error under the id of the request that it refuses.
    async fn refuse(&self, id: &RequestId, raw: &Raw) {
        let Some(error) = raw.get("error") else {
            return;
        };
        if self.settle(id) {
            let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
            id.write(&mut out);
            out.extend_from_slice(br#","error":"#);
            out.extend_from_slice(error.as_bytes());
            out.push(b'}');
            self.0.out.write(out.into()).await;
        }
    }

    /// True if one of the requests has no answer yet and was not cancelled.
    fn is_open(&self, ids: &[RequestId]) -> bool {
        let waiting = self.waiting();
        ids.iter().any(|id| {
            let request = waiting.client.get(id);
            request.is_some_and(|request| !request.is_cancelled)
        })
    }

    /// Reads the stream of a POST, and resumes it where that is possible.
    async fn follow(
        &self,
        answer: EgressStream,
        ids: &[RequestId],
        seat: &Seat,
    ) -> Result<(), BridgeFault> {
        let mut place = StreamPosition::default();
        let mut events = Events::new(answer);
        let mut tries = 0;
        loop {
            while let Some(event) = events.next(&mut place).await {
                tries = 0;
                self.hand_event(&event.event, event.data, seat.generation, ids.first())
                    .await?;
            }
            if !self.is_open(ids) {
                return Ok(());
            }
            events = loop {
                let last = place.header().filter(|_| self.0.agreed.is_resumable());
                let Some(last) = last.filter(|_| tries < TRIES) else {
                    return Err(BridgeFault::Lost);
                };
                let doubled = PAUSE.saturating_mul(1 << tries);
                tokio::time::sleep(place.pause.unwrap_or(doubled)).await;
                tries += 1;
                self.0.notes.detail("a broken stream is resumed");
                let mut headers = self.headers(seat);
                headers.push((LAST_EVENT_ID, last));
                let url = &self.0.wire.url;
                match self.0.wire.listen(url, &headers, For::Client).await {
                    Ok(answer) if answer.status.is_success() && is_events(&answer.headers) => {
                        break Events::new(answer);
                    }
                    Ok(answer) if answer.status.is_server_error() => {}
                    Err(BridgeFault::Unreachable(_) | BridgeFault::Limited) => {}
                    Ok(_) => return Err(BridgeFault::Lost),
                    Err(fault) => return Err(fault),
                }
            };
        }
    }

    /// Passes on the data of an event.
    pub(super) async fn hand_event(
        &self,
        name: &str,
        data: String,
        generation: u64,
        during: Option<&RequestId>,
    ) -> Result<(), BridgeFault> {
        if name != "message" {
            return Ok(());
        }
        let read = MessageBody::read(data)
            .map_err(|_| BridgeFault::Invalid("what it sent is no message"))?;
        for message in read.into_messages() {
            self.hand(message, generation, during).await;
        }
        Ok(())
    }

    /// Passes on a message of the server.
    pub(super) async fn hand(
        &self,
        message: LineMessage,
        generation: u64,
        during: Option<&RequestId>,
    ) {
        if self.is_for_client(&message, generation, during) {
            self.0.out.write(message.raw.bytes().clone()).await;
        }
    }

    /// Passes on a batch of answers as a batch.
    async fn hand_batch(&self, messages: Vec<LineMessage>, generation: u64) {
        let mut out = b"[".to_vec();
        for message in messages {
            if !self.is_for_client(&message, generation, None) {
                continue;
            }
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(message.raw.as_bytes());
        }
        if out.len() > 1 {
            out.push(b']');
            self.0.out.write(out.into()).await;
        }
    }

    /// Keeps the books about a message of the server; true if the client gets it.
    fn is_for_client(
        &self,
        message: &LineMessage,
        generation: u64,
        during: Option<&RequestId>,
    ) -> bool {
        let mut waiting = self.waiting();
        match &message.sort {
            Sort::Request { id, .. } => {
                let during = during.cloned();
                let asked = ServerRequest { generation, during };
                waiting.server.insert(id.clone(), asked);
                true
            }
            Sort::Notification { .. } => {
                if let Some(id) = message.cancels() {
                    waiting.server.remove(&id);
                }
                true
            }
            // Legacy errors without an id concern what could not be read.
            Sort::Response { id: None } => false,
            Sort::Response { id: Some(id) } => {
                if let Some(own) = waiting.own.remove(id) {
                    let outcome = message.raw.get("result");
                    let _ = own.send(outcome.ok_or(BridgeFault::Invalid("it refused its session")));
                    return false;
                }
                // Late answers to cancelled requests, and doubles after a resume, end here.
                let request = waiting.client.remove(id);
                request.is_some_and(|request| !request.is_cancelled)
            }
        }
    }
}
