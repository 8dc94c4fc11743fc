//! `subscriptions/listen` in front of sessions (MCP-X-42).

use portolan_protocol::{
    capability::ClientCapabilities,
    jsonrpc::{Params, Raw, RequestId},
    method::Method,
    subscription::{self, Filter, List},
};
use serde_json::json;

use super::{Newer, Served};
use crate::{message::LineMessage, relay::NEWEST};

impl Newer {
    pub(super) async fn listen(
        &self,
        id: &RequestId,
        served: &Served,
        can: &ClientCapabilities,
        params: Raw,
    ) {
        let wanted = match Filter::read(&Params::from(params), can) {
            Ok(wanted) => wanted,
            Err(kind) => {
                let refusal = kind.refuse(NEWEST, Some(id.clone()));
                self.write(refusal.body()).await;
                return;
            }
        };
        let has = |capability| served.declares(capability, Some("listChanged"));
        let can_watch = served.declares("resources", Some("subscribe"));
        let honoured = Filter {
            tools: wanted.tools && has("tools"),
            prompts: wanted.prompts && has("prompts"),
            resources: wanted.resources && has("resources"),
            uris: if can_watch { wanted.uris } else { Vec::new() },
            task_ids: None,
        };
        let bits = can.bits();
        let fresh: Vec<String> = {
            let mut state = self.state();
            let is_new = |uri: &&String| {
                !state
                    .listens
                    .values()
                    .any(|(of, filter)| *of == bits && filter.uris.contains(uri))
            };
            let fresh = honoured.uris.iter().filter(is_new).cloned().collect();
            state.listens.insert(id.clone(), (bits, honoured.clone()));
            fresh
        };
        for uri in fresh {
            let params = json!({ "uri": uri }).to_string();
            self.order(served, Method::ResourcesSubscribe, &params);
        }
        self.write(subscription::acknowledged(id, &honoured)).await;
    }

    /// Ends a subscription of the client; `false` if there is none.
    pub(super) fn end_listen(&self, id: &RequestId) -> bool {
        let (bits, unused) = {
            let mut state = self.state();
            let Some((bits, filter)) = state.listens.remove(id) else {
                return false;
            };
            let is_unused = |uri: &String| {
                !state
                    .listens
                    .values()
                    .any(|(of, other)| *of == bits && other.uris.contains(uri))
            };
            let unused: Vec<String> = filter.uris.into_iter().filter(is_unused).collect();
            (bits, unused)
        };
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let sessions = this.0.sessions.lock().await;
            let Some(served) = sessions.get(&bits) else {
                return;
            };
            for uri in unused {
                let params = json!({ "uri": uri }).to_string();
                this.order(served, Method::ResourcesUnsubscribe, &params);
            }
        });
        true
    }

    /// Passes on a change to every subscription that wants it.
    pub(super) async fn changed(&self, method: Method, message: &LineMessage, bits: u8) {
        let lists = [List::Tools, List::Prompts, List::Resources];
        let list = lists.into_iter().find(|list| list.notification() == method);
        let uri = message.params().get("uri").and_then(|uri| uri.string());
        let texts: Vec<Vec<u8>> = {
            let state = self.state();
            let listens = state.listens.iter().filter(|(_, (of, _))| *of == bits);
            listens
                .filter_map(|(id, (_, filter))| match (list, &uri) {
                    (Some(list), _) if filter.wants(list) => {
                        Some(subscription::list_changed(list, Some(id)))
                    }
                    (None, Some(uri))
                        if method == Method::ResourceUpdated && filter.uris.contains(uri) =>
                    {
                        Some(subscription::resource_updated(uri, Some(id)))
                    }
                    _ => None,
                })
                .collect()
        };
        for text in texts {
            self.write(text).await;
        }
    }
}
