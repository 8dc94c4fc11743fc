//! The dimensions of a count. Their numbers stand in the database: a number is never used again
//! for something else.

use std::sync::Arc;

use portolan_model::{
    id::{ServerId, TenantId},
    registry::CallOutcome,
};

/// The item of the key that holds what is beyond the cap of a tenant's keys (METER-5). No tool has
/// a name with parentheses.
pub const OTHER: &str = "(other)";

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $word:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The number in the database.
            pub const fn code(self) -> i16 {
                match self { $(Self::$variant => $code,)* }
            }
            /// The one with this number; `None` for a number of a newer release.
            pub const fn of_code(code: i16) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
            /// The word in the API and in queries.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
            /// The one with this word.
            pub fn of_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

numbered! {
    /// The kind of a caller.
    CallerKind {
        /// A person with an access token.
        Person = 0, "person";
        /// A service account with an access token.
        Service = 1, "service";
        /// An API key.
        ApiKey = 2, "api_key";
        /// A member who tries a tool in the console.
        Console = 3, "console";
        /// A call of a release that did not note it.
        Unknown = 4, "unknown";
    }
}

numbered! {
    /// The era in which a call came.
    CallEra {
        /// A session: revisions up to 2025-11-25.
        Session = 0, "session";
        /// Without a session: 2026-07-28.
        Stateless = 1, "stateless";
        /// No MCP: the console.
        Console = 2, "console";
        /// A call of a release that did not note it.
        Unknown = 4, "unknown";
    }
}

/// The number of an outcome in the database.
pub const fn outcome_code(outcome: CallOutcome) -> i16 {
    match outcome {
        CallOutcome::Ok => 0,
        CallOutcome::ToolError => 1,
        CallOutcome::InvalidArguments => 2,
        CallOutcome::UpstreamError => 3,
        CallOutcome::Internal => 4,
    }
}

/// The outcome with a number; `None` for a number of a newer release.
pub const fn outcome_of(code: i16) -> Option<CallOutcome> {
    match code {
        0 => Some(CallOutcome::Ok),
        1 => Some(CallOutcome::ToolError),
        2 => Some(CallOutcome::InvalidArguments),
        3 => Some(CallOutcome::UpstreamError),
        4 => Some(CallOutcome::Internal),
        _ => None,
    }
}

/// The dimensions of a count. A clone allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The tenant that publishes the server.
    pub tenant: TenantId,
    /// The server; `None` in the console.
    pub server: Option<ServerId>,
    /// The name of the tool, as called.
    pub item: Arc<str>,
    /// The name of the client, as it says.
    pub client: Option<Arc<str>>,
    /// The kind of caller.
    pub caller: i16,
    /// How the call ended.
    pub outcome: i16,
    /// The era of the client.
    pub era: i16,
}

impl Key {
    /// The key that holds calls of this one beyond the cap: without item and client.
    #[must_use]
    pub fn other(&self, item: &Arc<str>) -> Self {
        Self {
            item: Arc::clone(item),
            client: None,
            ..self.clone()
        }
    }
}
