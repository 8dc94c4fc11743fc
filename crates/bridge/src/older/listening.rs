//! Changes of lists and resources: one `subscriptions/listen` for everything that the client wants
//! (MCP-X-40, MCP-X-41).

use portolan_protocol::{
    jsonrpc::{Raw, RequestId},
    method::Method,
};
use serde_json::json;

use super::Older;
use crate::message::{self, LineMessage};

impl Older {
    /// True if the server declared a flag of a capability.
    fn declares(&self, capability: &str, flag: &str) -> bool {
        let declared = self.0.declared.get(capability);
        declared.and_then(|raw| raw.get(flag)?.boolean()) == Some(true)
    }

    /// Opens the subscription; the one before it ends when this one is acknowledged.
    pub(super) fn listen(&self) {
        let uris: Vec<String> = self.state().uris.iter().cloned().collect();
        let mut wanted = json!({});
        for (capability, flag) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if self.declares(capability, "listChanged") {
                wanted[flag] = json!(true);
            }
        }
        if !uris.is_empty() {
            wanted["resourceSubscriptions"] = json!(uris);
        }
        let is_empty = wanted.as_object().is_none_or(serde_json::Map::is_empty);
        let id = {
            let mut state = self.state();
            let before = state.listen.take();
            // An unacknowledged one in between ends at once.
            let skipped = state.replaced.take();
            state.replaced = before;
            if let Some(skipped) = skipped {
                drop(state);
                self.stop(&skipped);
                state = self.state();
            }
            let id = state.new_id();
            state.listen = (!is_empty).then(|| id.clone());
            id
        };
        if is_empty {
            self.acknowledged();
            return;
        }
        let Ok(params) = Raw::of(&json!({ "notifications": wanted })) else {
            return;
        };
        let (method, can) = (Method::SubscriptionsListen, &self.0.capabilities);
        let text = self.0.request(&id, method, &params, can, &[]);
        self.hand_over(text);
    }

    pub(super) fn acknowledged(&self) {
        let replaced = self.state().replaced.take();
        if let Some(replaced) = replaced {
            self.stop(&replaced);
        }
    }

    pub(super) fn listen_ended(&self, own: &RequestId) {
        let mut state = self.state();
        if state.listen.as_ref() == Some(own) {
            self.0
                .notes
                .detail("the server ended the subscription; changes are not announced");
            state.listen = None;
        }
    }

    /// `resources/subscribe` and `resources/unsubscribe`.
    pub(super) async fn watch(&self, id: &RequestId, method: Method, params: &Raw) {
        let uri = params.get("uri").and_then(|uri| uri.string());
        let error = match uri {
            None => Some("params.uri: expected a string"),
            Some(_) if !self.declares("resources", "subscribe") => {
                Some("Resource does not support subscription")
            }
            Some(uri) => {
                let is_changed = if method == Method::ResourcesSubscribe {
                    self.state().uris.insert(uri)
                } else {
                    self.state().uris.remove(&uri)
                };
                if is_changed {
                    self.listen();
                }
                None
            }
        };
        match error {
            None => self.result(id, b"{}").await,
            Some(why) => {
                let error = message::own_error(-32602, why);
                self.0.out.write(message::error(Some(id), &error)).await;
            }
        }
    }

    /// A change, without the subscription that it came by.
    pub(super) async fn changed(&self, method: Method, message: &LineMessage) {
        let uri = message.params().get("uri");
        let params = uri.and_then(|uri| {
            let text = [br#"{"uri":"#, uri.as_bytes(), b"}"].concat();
            Raw::parse(text).ok()
        });
        let text = message::notification(method.name(), params.as_ref());
        self.0.out.write(text).await;
    }
}
