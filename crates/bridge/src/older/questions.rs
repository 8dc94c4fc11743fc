//! Questions of the server: results of 2026-07-28, requests to a client with sessions (MCP-X-20…
//! MCP-X-2C).

use std::time::Duration;

use bytes::Bytes;
use portolan_protocol::{
    ask::{self, Asked},
    input_required::{InputRequired, MOST_ROUNDS},
    jsonrpc::{Raw, RequestId},
    method::Method,
    result::write_string,
    translate::Shaped,
    visible::Visible,
};

use super::{Older, Round, TranslatedCall};
use crate::{
    message::{self, LineMessage},
    relay::NEWEST,
};

/// MCP-X-21: the first pause before a call without questions is sent again, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Older {
    /// Asks the client what the server wants to know.
    pub(super) async fn ask(&self, own: &RequestId, call: TranslatedCall, result: &Raw) {
        match InputRequired::read(result) {
            Ok(required) => self.ask_for(own, call, required).await,
            Err(_) => self.show(&call, &Visible::Invalid).await,
        }
    }

    /// Asks the client, and goes on with the call when all answers are there.
    pub(super) async fn ask_for(
        &self,
        own: &RequestId,
        mut call: TranslatedCall,
        required: InputRequired,
    ) {
        if call.rounds >= MOST_ROUNDS {
            self.show(&call, &Visible::TooManyRounds).await;
            return;
        }
        let rounds = call.rounds;
        call.rounds += 1;
        if required.requests.is_empty() {
            call.round = Some(Round {
                state: required.state,
                questions: Vec::new(),
            });
            self.send_later(call, PAUSE.saturating_mul(1 << rounds).min(LONGEST_PAUSE));
            return;
        }
        let asked = match self.written(&mut call, &required) {
            Ok(asked) => asked,
            Err(visible) => {
                self.cancel_task(&call);
                self.show(&call, &visible).await;
                return;
            }
        };
        call.round = Some(Round {
            state: required.state,
            questions: required
                .requests
                .into_iter()
                .map(|(key, request)| (key, request, None))
                .collect(),
        });
        {
            // Before the questions are written: the answers may come at once.
            let mut state = self.state();
            state.calls.insert(own.clone(), call);
            for (id, key, _) in &asked {
                state.asked.insert(id.clone(), (own.clone(), key.clone()));
            }
        }
        for (_, _, text) in asked {
            self.0.out.write(text).await;
        }
    }

    /// The questions as requests to the client: id, key and text of each.
    fn written(
        &self,
        call: &mut TranslatedCall,
        required: &InputRequired,
    ) -> Result<Vec<(RequestId, String, Bytes)>, Visible> {
        let mut asked = Vec::new();
        for (key, request) in &required.requests {
            let id = self.state().new_id();
            let made_up = portolan_keys::random::bytes::<16>().map_err(|_| Visible::Invalid)?;
            let made_up: String = made_up.iter().map(|byte| format!("{byte:02x}")).collect();
            let context = Asked {
                from: NEWEST,
                to: self.0.revision,
                capabilities: &self.0.can,
                made_up_id: &made_up,
            };
            let question = ask::question(request.method, &request.params, &context)?.into_raw();
            let url = question.get("elicitationId").and_then(|id| id.string());
            call.urls.extend(url.filter(|url| *url == made_up));
            let text = message::request(&id, request.method.name(), &question);
            asked.push((id, key.clone(), text));
        }
        Ok(asked)
    }

    /// An answer of the client. When all are there, the call goes on.
    pub(super) async fn answered(&self, id: &RequestId, message: &LineMessage) {
        let Some((own, key)) = self.state().asked.remove(id) else {
            return;
        };
        let outcome = {
            let mut state = self.state();
            let call = state.calls.get_mut(&own);
            let round = call.and_then(|call| call.round.as_mut());
            let Some(round) = round else { return };
            let question = round
                .questions
                .iter_mut()
                .find(|(known, _, _)| *known == key);
            let Some((_, request, given)) = question else {
                return;
            };
            let answer = match message.raw.get("result") {
                Some(result) => {
                    let checked = ask::answer(request.method, &request.params, &result, NEWEST);
                    checked.map(Shaped::into_raw).map_err(|_| Visible::Unfit)
                }
                // MCP-X-2A…MCP-X-2C.
                None => ask::refusal(request.method).ok_or(Visible::Declined),
            };
            match answer {
                Ok(answer) => {
                    *given = Some(answer);
                    let is_whole = round.questions.iter().all(|(_, _, given)| given.is_some());
                    if !is_whole {
                        return;
                    }
                    Ok(())
                }
                Err(visible) => Err(visible),
            }
        };
        let call = self.state().calls.remove(&own);
        let Some(call) = call else { return };
        match outcome {
            Ok(()) => self.send(call),
            Err(visible) => {
                self.withdraw(&own).await;
                self.cancel_task(&call);
                self.show(&call, &visible).await;
            }
        }
    }

    /// Cancels the questions of a call.
    pub(super) async fn withdraw(&self, own: &RequestId) {
        let open: Vec<RequestId> = {
            let mut state = self.state();
            let of_call = state.asked.iter().filter(|(_, (call, _))| call == own);
            let open: Vec<RequestId> = of_call.map(|(id, _)| id.clone()).collect();
            for id in &open {
                state.asked.remove(id);
            }
            open
        };
        for id in open {
            let mut params = br#"{"requestId":"#.to_vec();
            id.write(&mut params);
            params.push(b'}');
            let params = Raw::parse(params).unwrap_or(Raw::empty_object());
            let text = message::notification(Method::Cancelled.name(), Some(&params));
            self.0.out.write(text).await;
        }
    }

    /// MCP-X-35: the server no longer asks for the page.
    pub(super) async fn complete_urls(&self, call: &mut TranslatedCall) {
        for id in call.urls.drain(..) {
            let mut params = br#"{"elicitationId":"#.to_vec();
            write_string(&id, &mut params);
            params.push(b'}');
            let params = Raw::parse(params).unwrap_or(Raw::empty_object());
            let method = Method::ElicitationComplete.name();
            let text = message::notification(method, Some(&params));
            self.0.out.write(text).await;
        }
    }
}
