//! Change notifications: on a session's stream (legacy), or on `subscriptions/listen`
//! (MCP-SB-1…MCP-SB-13).

use crate::capability::{ClientCapabilities, TASKS_EXTENSION};
use crate::error::ErrorKind;
use crate::json::Object;
use crate::jsonrpc::{self, Kind, Misfit, Params, Raw, RequestId};
use crate::meta;
use crate::method::Method;
use crate::result::{Identity, ResultObject};
use crate::revision::Revision;

/// Notifications that a listen request selects, or those of them that the server honours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `notifications/tools/list_changed`
    pub tools: bool,
    /// `notifications/prompts/list_changed`
    pub prompts: bool,
    /// `notifications/resources/list_changed`
    pub resources: bool,
    /// `notifications/resources/updated` of these.
    pub uris: Vec<String>,
    /// `notifications/tasks` of these (tasks extension).
    pub task_ids: Option<Vec<String>>,
}

/// A list that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
}

impl List {
    /// Notification that announces this change.
    pub const fn notification(self) -> Method {
        match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources => Method::ResourcesListChanged,
        }
    }
}

impl Filter {
    /// Reads the parameters of `subscriptions/listen` (MCP-SB-1, MCP-SB-7). `taskIds` from a client
    /// that did not declare the tasks extension is `MissingCapability` (MCP-SB-13).
    pub fn read(params: &Params, client: &ClientCapabilities) -> Result<Self, ErrorKind> {
        let misfit =
            |path: String, expected: &str| ErrorKind::InvalidParams(Misfit::new(path, expected));
        let Some(wanted) = params.get("notifications") else {
            return Err(misfit("params.notifications".into(), "required"));
        };
        if wanted.kind() != Kind::Object {
            return Err(misfit("params.notifications".into(), "expected an object"));
        }
        let flag = |name: &str| match wanted.get(name) {
            None => Ok(false),
            Some(raw) => raw.boolean().ok_or_else(|| {
                misfit(
                    format!("params.notifications.{name}"),
                    "expected true or false",
                )
            }),
        };
        let list = |name: &str| match wanted.get(name) {
            None => Ok(None),
            Some(raw) => raw
                .read::<Vec<String>>(&format!("params.notifications.{name}"))
                .map(Some)
                .map_err(ErrorKind::InvalidParams),
        };
        let filter = Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: list("resourceSubscriptions")?.unwrap_or_default(),
            task_ids: list("taskIds")?,
        };
        if filter.task_ids.is_some() && !client.extensions.contains_key(TASKS_EXTENSION) {
            let required = serde_json::json!({ "extensions": { TASKS_EXTENSION: {} } });
            let required = Raw::of(&required).unwrap_or(Raw::empty_object());
            return Err(ErrorKind::MissingCapability { required });
        }
        Ok(filter)
    }

    /// True if changes of `list` were requested (MCP-SB-4).
    pub const fn wants(&self, list: List) -> bool {
        match list {
            List::Tools => self.tools,
            List::Prompts => self.prompts,
            List::Resources => self.resources,
        }
    }

    /// Appends the filter as the acknowledgement shows it: only what is honoured (MCP-SB-2,
    /// MCP-SB-6).
    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        for (name, set) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if set {
                object.raw(name, b"true");
            }
        }
        if !self.uris.is_empty() {
            object.value("resourceSubscriptions", &self.uris);
        }
        if let Some(ids) = self.task_ids.as_ref().filter(|ids| !ids.is_empty()) {
            object.value("taskIds", ids);
        }
        object.end();
    }
}

fn write_subscription(object: &mut Object<'_>, subscription: &RequestId) {
    object.key("_meta");
    let mut meta = Object::begin(object.out());
    meta.key(meta::SUBSCRIPTION_ID);
    subscription.write(meta.out());
    meta.end();
}

/// The first message of a listen stream (MCP-SB-2). `listen` is the id of the request (MCP-SB-3).
pub fn acknowledged(listen: &RequestId, honoured: &Filter) -> Vec<u8> {
    let mut params = Vec::with_capacity(256);
    let mut object = Object::begin(&mut params);
    write_subscription(&mut object, listen);
    object.key("notifications");
    honoured.write(object.out());
    object.end();
    jsonrpc::notification(Method::SubscriptionsAcknowledged.name(), Some(&params))
}

/// News of a list: on a listen stream with its id (MCP-SB-3), on a legacy stream without.
pub fn list_changed(list: List, listen: Option<&RequestId>) -> Vec<u8> {
    let params = listen.map(|listen| {
        let mut params = Vec::with_capacity(96);
        let mut object = Object::begin(&mut params);
        write_subscription(&mut object, listen);
        object.end();
        params
    });
    jsonrpc::notification(list.notification().name(), params.as_deref())
}

/// News of one resource: on a listen stream with its id, on a legacy stream without.
pub fn resource_updated(uri: &str, listen: Option<&RequestId>) -> Vec<u8> {
    let mut params = Vec::with_capacity(128);
    let mut object = Object::begin(&mut params);
    if let Some(listen) = listen {
        write_subscription(&mut object, listen);
    }
    object.value("uri", uri);
    object.end();
    jsonrpc::notification(Method::ResourceUpdated.name(), Some(&params))
}

/// The response that ends a listen stream gracefully (MCP-SB-8).
pub fn completed(listen: &RequestId, revision: Revision, identity: &Identity) -> Vec<u8> {
    let mut own = Vec::with_capacity(96);
    let mut object = Object::begin(&mut own);
    object.key(meta::SUBSCRIPTION_ID);
    listen.write(object.out());
    object.end();
    let own = Raw::parse(own).ok();
    jsonrpc::response_with(listen, 256, |out| {
        ResultObject::begin(out, revision).end(identity, own.as_ref());
    })
}
