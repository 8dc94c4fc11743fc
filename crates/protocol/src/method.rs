//! Every method and notification, with its sender and its revisions (`docs/design/protocol.md`,
//! method matrix).

use crate::revision::Revision::{
    self, V2024_11_05 as R1, V2025_06_18 as R3, V2025_11_25 as R4, V2026_07_28 as R5,
};

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    FromClient,
    /// The server.
    FromServer,
    /// Either.
    Both,
}

/// Whether an answer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Answered by a result or an error.
    Request,
    /// Never answered.
    Notification,
}

macro_rules! methods {
    ($($variant:ident $name:literal $sort:ident $direction:ident $first:ident..=$last:ident $doc:literal),* $(,)?) => {
        /// A method or notification that some revision defines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method { $(#[doc = $doc] $variant),* }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The method of that name in any revision. `initialized` is an alias (MCP-L-5).
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    "initialized" => Some(Self::Initialized),
                    _ => None,
                }
            }

            /// Request or notification.
            pub const fn sort(self) -> Sort {
                match self { $(Self::$variant => Sort::$sort),* }
            }

            const fn reach(self) -> (Direction, Revision, Revision) {
                match self { $(Self::$variant => (Direction::$direction, $first, $last)),* }
            }
        }
    };
}

methods! {
    Initialize "initialize" Request FromClient R1..=R4 "Opens a session.",
    Initialized "notifications/initialized" Notification FromClient R1..=R4 "The client is ready.",
    Discover "server/discover" Request FromClient R5..=R5 "Versions and capabilities of the server.",
    Ping "ping" Request Both R1..=R4 "Are you there?",
    ToolsList "tools/list" Request FromClient R1..=R5 "The tools, by pages.",
    ToolsCall "tools/call" Request FromClient R1..=R5 "Calls a tool.",
    ResourcesList "resources/list" Request FromClient R1..=R5 "The resources, by pages.",
    ResourceTemplatesList "resources/templates/list" Request FromClient R1..=R5 "The resource templates, by pages.",
    ResourcesRead "resources/read" Request FromClient R1..=R5 "Reads a resource.",
    PromptsList "prompts/list" Request FromClient R1..=R5 "The prompts, by pages.",
    PromptsGet "prompts/get" Request FromClient R1..=R5 "Renders a prompt.",
    Complete "completion/complete" Request FromClient R1..=R5 "Suggests values of an argument.",
    ResourcesSubscribe "resources/subscribe" Request FromClient R1..=R4 "Wants news of a resource.",
    ResourcesUnsubscribe "resources/unsubscribe" Request FromClient R1..=R4 "Wants no more news of a resource.",
    SubscriptionsListen "subscriptions/listen" Request FromClient R5..=R5 "A stream of change notifications.",
    SetLevel "logging/setLevel" Request FromClient R1..=R4 "The least level of log messages of the session.",
    TasksGet "tasks/get" Request Both R4..=R5 "State of a task.",
    TasksCancel "tasks/cancel" Request Both R4..=R5 "Cancels a task.",
    TasksResult "tasks/result" Request Both R4..=R4 "Waits for the result of a task.",
    TasksList "tasks/list" Request Both R4..=R4 "The tasks, by pages.",
    TasksUpdate "tasks/update" Request FromClient R5..=R5 "Answers the questions of a task.",
    CreateMessage "sampling/createMessage" Request FromServer R1..=R4 "Asks the client's model.",
    RootsList "roots/list" Request FromServer R1..=R4 "Asks for the client's roots.",
    Elicit "elicitation/create" Request FromServer R3..=R4 "Asks the person.",
    Cancelled "notifications/cancelled" Notification Both R1..=R5 "A running request is no longer wanted.",
    Progress "notifications/progress" Notification Both R1..=R5 "How far a request has come.",
    LogMessage "notifications/message" Notification FromServer R1..=R5 "A log message.",
    RootsListChanged "notifications/roots/list_changed" Notification FromClient R1..=R4 "The client's roots changed.",
    ToolsListChanged "notifications/tools/list_changed" Notification FromServer R1..=R5 "The tools changed.",
    PromptsListChanged "notifications/prompts/list_changed" Notification FromServer R1..=R5 "The prompts changed.",
    ResourcesListChanged "notifications/resources/list_changed" Notification FromServer R1..=R5 "The resources changed.",
    ResourceUpdated "notifications/resources/updated" Notification FromServer R1..=R5 "A resource changed.",
    ElicitationComplete "notifications/elicitation/complete" Notification FromServer R4..=R4 "A question by URL is done.",
    TaskStatus "notifications/tasks/status" Notification Both R4..=R4 "A task changed its state.",
    SubscriptionsAcknowledged "notifications/subscriptions/acknowledged" Notification FromServer R5..=R5 "What a listen stream will carry.",
    TaskNotification "notifications/tasks" Notification FromServer R5..=R5 "A task changed (extension).",
}

impl Method {
    /// The request `name` that a client of `revision` may send. `None` is `-32601`.
    ///
    /// Says nothing about what this server offers: a method of a capability that was not declared
    /// is the caller's to refuse.
    pub fn of_client(name: &str, revision: Revision) -> Option<Self> {
        Self::from_name(name)
            .filter(|method| method.sort() == Sort::Request && method.from_client_in(revision))
    }

    /// The notification `name` that a client of `revision` may send. `None` is accepted and dropped
    /// (MCP-J-9).
    pub fn notice_of_client(name: &str, revision: Revision) -> Option<Self> {
        Self::from_name(name)
            .filter(|method| method.sort() == Sort::Notification && method.from_client_in(revision))
    }

    /// Sender of this method.
    pub const fn direction(self) -> Direction {
        self.reach().0
    }

    /// True if `revision` defines it.
    pub fn exists_in(self, revision: Revision) -> bool {
        let (_, first, last) = self.reach();
        first <= revision && revision <= last
    }

    /// True if a client of `revision` may send it.
    pub fn from_client_in(self, revision: Revision) -> bool {
        self.direction() != Direction::FromServer && self.exists_in(revision)
    }

    /// True for `tasks/*`, which only a server that offers tasks answers.
    pub const fn is_task(self) -> bool {
        matches!(
            self,
            Self::TasksGet
                | Self::TasksCancel
                | Self::TasksResult
                | Self::TasksList
                | Self::TasksUpdate
        )
    }

    /// The parameter that `Mcp-Name` repeats (MCP-H-2, MCP-H-3).
    pub const fn mirrored_param(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            Self::TasksGet | Self::TasksUpdate | Self::TasksCancel => Some("taskId"),
            _ => None,
        }
    }
}
