//! Questions of the server: requests in a session, results of 2026-07-28. The call waits at the
//! server until its client comes back with the answers (MCP-X-22…MCP-X-27).

use std::time::Duration;

use portolan_protocol::{
    ask::{self, AskMethod, Asked},
    input_required::{InputRequest, InputRequired, read_responses},
    jsonrpc::{Raw, RequestId},
    method::Method,
    translate::{Shaped, UrlStep},
    visible::Visible,
};
use portolan_upstream::unavailable;

use super::{Newer, ServerQuestion, SessionCall, shapes, tell};
use crate::{message, relay::NEWEST, session::RemoteSession};

/// Time in which questions are gathered into one result (MCP-X-22).
const GATHER: Duration = Duration::from_millis(100);
/// Time for the client to come back (MCP-X-22).
const PARKED: Duration = Duration::from_secs(900);
/// How often a question is put again that a retry did not answer (MCP-X-25).
const TRIES: u8 = 3;

impl Newer {
    /// A request of the server.
    pub(super) fn asked(
        &self,
        id: RequestId,
        method: &str,
        params: Raw,
        session: &RemoteSession,
        bits: u8,
    ) {
        let refuse = || tell(session, message::error(Some(&id), &unavailable(method)));
        let Some(ask_method) = AskMethod::from_name(method) else {
            refuse();
            return;
        };
        let during = session.during(&id);
        let mut state = self.state();
        // MCP-X-23: the call on whose stream it came, else the newest one that is open.
        let own = during
            .filter(|own| state.calls.contains_key(own))
            .or_else(|| {
                let open = state.calls.iter().filter(|(_, call)| call.bits == bits);
                let newest = open.max_by_key(|(_, call)| call.order);
                newest.map(|(own, _)| own.clone())
            });
        let call = own.as_ref().and_then(|own| state.calls.get_mut(own));
        let (Some(call), Some(own)) = (call, own.clone()) else {
            drop(state);
            refuse();
            return;
        };
        let context = Asked {
            from: call.served.revision,
            to: NEWEST,
            capabilities: &call.can,
            made_up_id: "",
        };
        if ask::question(ask_method, &params, &context).is_err() {
            drop(state);
            refuse();
            return;
        }
        call.questions.push(ServerQuestion {
            key: format!("{}-{}", ask_method.name().replace('/', "-"), id),
            id,
            method: ask_method,
            params,
            tries: 0,
        });
        if call.client.is_some() && !std::mem::replace(&mut call.is_gathering, true) {
            drop(state);
            let this = self.clone();
            self.0.tasks.spawn(async move {
                tokio::time::sleep(GATHER).await;
                this.park(&own).await;
            });
        }
    }

    /// Answers the client's request with the questions of its call.
    async fn park(&self, own: &RequestId) {
        let Ok(chance) = portolan_keys::random::bytes::<24>() else {
            return;
        };
        let token: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(own) else {
                return;
            };
            call.is_gathering = false;
            if call.questions.is_empty() && call.steps.is_empty() {
                return;
            }
            let Some(id) = call.client.take() else { return };
            let context = Asked {
                from: call.served.revision,
                to: NEWEST,
                capabilities: &call.can,
                made_up_id: "",
            };
            let shown = |method: AskMethod, params: &Raw| {
                let params = ask::question(method, params, &context);
                let params = params.map_or(Raw::empty_object(), Shaped::into_raw);
                InputRequest { method, params }
            };
            let pages = call.steps.iter().enumerate();
            let pages =
                pages.map(|(at, step)| (page_key(at), shown(AskMethod::Elicit, &step.params())));
            let requests = call.questions.iter().map(|question| {
                let request = shown(question.method, &question.params);
                (question.key.clone(), request)
            });
            let required = InputRequired {
                requests: pages.chain(requests).collect(),
                state: Some(token.clone()),
            };
            let text = message::result(&id, &required.to_json(&call.served.identity));
            state.parked.insert(token.clone(), own.clone());
            text
        };
        self.write(text).await;
        let (this, own) = (self.clone(), own.clone());
        self.0.tasks.spawn(async move {
            tokio::time::sleep(PARKED).await;
            // MCP-X-26: the client never came back.
            let call = {
                let mut state = this.state();
                state
                    .parked
                    .remove(&token)
                    .and_then(|_| state.calls.remove(&own))
            };
            if let Some(call) = call {
                this.abandon(&call, &own);
            }
        });
    }

    /// A retry of the client, with answers.
    pub(super) async fn resume(&self, id: &RequestId, method: Method, params: &Raw) {
        let token = params.get("requestState").and_then(|token| token.string());
        let refuse = |why: &str| message::own_error(-32602, why);
        let taken = {
            let mut state = self.state();
            match token.and_then(|token| state.parked.remove(&token)) {
                None => Err(refuse("requestState is not known, or was used before")),
                Some(own) => match state.calls.get_mut(&own) {
                    Some(call) if call.method == method && is_same(&call.params, params) => {
                        call.client = Some(id.clone());
                        Ok(own)
                    }
                    _ => Err(refuse("requestState belongs to another request")),
                },
            }
        };
        let own = match taken {
            Ok(own) => own,
            Err(error) => {
                self.error(id, &error).await;
                return;
            }
        };
        let given = params.get("inputResponses");
        let given = given.and_then(|given| read_responses(&given).ok());
        let given = given.unwrap_or_default();
        if self.visited(&own, params, &given).await {
            return;
        }
        let (finished, asks_again) = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&own) else {
                return;
            };
            let revision = call.served.revision;
            let session = call.served.session.clone();
            call.questions.retain_mut(|question| {
                let answer = given.iter().find(|(key, _)| *key == question.key);
                let answer = answer.map(|(_, answer)| {
                    ask::answer(question.method, &question.params, answer, revision)
                });
                match answer {
                    Some(Ok(shaped)) => {
                        tell(&session, message::result(&question.id, &shaped.json));
                        false
                    }
                    Some(Err(_)) => {
                        self::refuse(&session, question);
                        false
                    }
                    None => {
                        question.tries += 1;
                        let is_last = question.tries >= TRIES;
                        if is_last {
                            self::refuse(&session, question);
                        }
                        !is_last
                    }
                }
            });
            let asks_again = !call.questions.is_empty();
            let answer = call.answer.take();
            let finished = answer.and_then(|answer| Some((state.calls.remove(&own)?, answer)));
            (finished, asks_again)
        };
        match finished {
            Some((call, answer)) => self.finish(call, &answer).await,
            None if asks_again => self.park(&own).await,
            None => {}
        }
    }

    /// MCP-X-36: the call waits until the person has visited the server's pages, and is then sent
    /// again.
    pub(super) async fn send_to_pages(&self, mut call: SessionCall, steps: Vec<UrlStep>) {
        call.steps = steps;
        call.rounds += 1;
        let own = {
            let mut state = self.state();
            let own = RequestId::from(format!("portolan-connect-pages-{}", state.new_number()));
            state.calls.insert(own.clone(), call);
            own
        };
        self.park(&own).await;
    }

    /// Goes on with a call that waits for pages; false if `own` waits for none.
    async fn visited(&self, own: &RequestId, params: &Raw, given: &[(String, Raw)]) -> bool {
        let waiting = {
            let mut state = self.state();
            let call = state.calls.get(own);
            let waits = call.is_some_and(|call| !call.steps.is_empty());
            waits.then(|| state.calls.remove(own)).flatten()
        };
        let Some(mut call) = waiting else {
            return false;
        };
        // The same request, with a progress token of its own.
        call.params = params.clone();
        let is_accepted = (0..call.steps.len()).all(|at| {
            let answer = given.iter().find(|(key, _)| *key == page_key(at));
            let action = answer.and_then(|(_, answer)| answer.get("action")?.string());
            action.as_deref() == Some("accept")
        });
        call.steps.clear();
        match call.client.clone() {
            _ if is_accepted => self.send(call),
            Some(id) => {
                let declined = shapes::visible(&call, &id, &Visible::Declined);
                self.write(declined).await;
            }
            None => {}
        }
        true
    }
}

/// The key of a page among the questions of a call.
fn page_key(at: usize) -> String {
    format!("page-{at}")
}

/// MCP-X-25: the answer in place of a person's.
pub(super) fn refuse(session: &RemoteSession, question: &ServerQuestion) {
    let text = match ask::refusal(question.method) {
        Some(refusal) => message::result(&question.id, refusal.as_bytes()),
        None => {
            let error = message::own_error(-32603, "The client did not answer");
            message::error(Some(&question.id), &error)
        }
    };
    tell(session, text);
}

/// MCP-X-27: a retry repeats the request.
fn is_same(before: &Raw, now: &Raw) -> bool {
    let kept = |params: &Raw| -> Vec<(String, Raw)> {
        let is_kept = |(name, _): &(String, Raw)| {
            !matches!(name.as_str(), "_meta" | "inputResponses" | "requestState")
        };
        let mut kept: Vec<_> = params.members().filter(is_kept).collect();
        kept.sort_by(|one, other| one.0.cmp(&other.0));
        kept
    };
    kept(before) == kept(now)
}
