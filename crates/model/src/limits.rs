//! The limits of a tenant: what the platform gives, what the tenant has set, what holds
//! (STREAM-16).

use std::str::FromStr;

use crate::registry::UnknownWord;

/// A limit that can be set for a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitName {
    /// Calls of the whole tenant, a minute.
    TenantCalls,
    /// Requests of one person with one client, a minute.
    ClientRequests,
    /// Calls of one tool, a minute.
    ToolCalls,
    /// Calls of the tenant that run at once, over all nodes.
    RunningCalls,
    /// Event streams of the tenant open at once, over all nodes.
    OpenStreams,
    /// Event streams that one person with one client opens, a minute. Coming back for one is not
    /// opening one.
    StreamOpens,
    /// Event streams of one session open at once, on each node.
    SessionStreams,
    /// `subscriptions/listen` streams of one person with one client open at once, on each node.
    Listens,
    /// Calls of one person with one client that wait for its answer at once, on each node.
    ParkedCalls,
    /// Tasks of one person with one client on one server that are kept at once.
    Tasks,
}

impl LimitName {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::TenantCalls,
        Self::ClientRequests,
        Self::ToolCalls,
        Self::RunningCalls,
        Self::OpenStreams,
        Self::StreamOpens,
        Self::SessionStreams,
        Self::Listens,
        Self::ParkedCalls,
        Self::Tasks,
    ];

    /// The word in the database, the API and the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TenantCalls => "tenant_calls",
            Self::ClientRequests => "client_requests",
            Self::ToolCalls => "tool_calls",
            Self::RunningCalls => "running_calls",
            Self::OpenStreams => "open_streams",
            Self::StreamOpens => "stream_opens",
            Self::SessionStreams => "session_streams",
            Self::Listens => "listens",
            Self::ParkedCalls => "parked_calls",
            Self::Tasks => "tasks",
        }
    }

    /// Counts what is there at once, and not what comes in a minute.
    pub const fn is_at_once(self) -> bool {
        matches!(
            self,
            Self::RunningCalls
                | Self::OpenStreams
                | Self::SessionStreams
                | Self::Listens
                | Self::ParkedCalls
                | Self::Tasks
        )
    }
}

impl FromStr for LimitName {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or(UnknownWord)
    }
}

/// A number for each limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitSet([Option<u32>; LimitName::ALL.len()]);

impl LimitSet {
    /// The number of a limit.
    pub const fn get(&self, name: LimitName) -> Option<u32> {
        self.0[name as usize]
    }

    /// The same as a bound of what there is at once: `usize::MAX` where there is no limit.
    pub fn at_most(&self, name: LimitName) -> usize {
        self.get(name).map_or(usize::MAX, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        })
    }

    /// Sets a limit; 0 counts as none.
    pub fn set(&mut self, name: LimitName, value: Option<u32>) {
        self.0[name as usize] = value.filter(|value| *value > 0);
    }

    /// The same with one limit set.
    #[must_use]
    pub fn with(mut self, name: LimitName, value: u32) -> Self {
        self.set(name, Some(value));
        self
    }
}

/// The platform's limits for every tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlatformLimits {
    /// The limits of a tenant that has set none; none = no limit.
    pub defaults: LimitSet,
    /// How many times a default a tenant may set, at least 1.
    pub headroom: u32,
}

impl PlatformLimits {
    /// The most that a tenant may set. A limit that the platform does not have is bounded by that
    /// of all calls.
    pub fn maximum(&self, name: LimitName) -> u32 {
        /// The largest value that the database and the consoles' numbers hold safely.
        const MOST: u32 = 1_000_000_000;
        let base = self
            .defaults
            .get(name)
            .or_else(|| self.defaults.get(LimitName::TenantCalls))
            .unwrap_or(MOST);
        base.saturating_mul(self.headroom.max(1)).min(MOST)
    }

    /// Returns the limits of a tenant that has set `own`. A value set under a larger former maximum
    /// counts as the present maximum.
    pub fn effective(&self, own: &LimitSet) -> LimitSet {
        let mut effective = self.defaults;
        for name in LimitName::ALL {
            if let Some(value) = own.get(name) {
                effective.set(name, Some(value.min(self.maximum(name))));
            }
        }
        effective
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tenant_sets_holds_up_to_the_platforms_maximum() {
        let platform = PlatformLimits {
            defaults: LimitSet::default()
                .with(LimitName::TenantCalls, 600)
                .with(LimitName::RunningCalls, 20),
            headroom: 5,
        };
        let own = LimitSet::default()
            .with(LimitName::RunningCalls, 7)
            .with(LimitName::TenantCalls, 9_000);
        let effective = platform.effective(&own);
        assert_eq!(effective.get(LimitName::RunningCalls), Some(7));
        assert_eq!(effective.get(LimitName::TenantCalls), Some(3_000));
        assert_eq!(effective.get(LimitName::ToolCalls), None, "no such limit");
        assert_eq!(platform.maximum(LimitName::ToolCalls), 3_000);
        assert_eq!(platform.effective(&LimitSet::default()), platform.defaults);
    }

    #[test]
    fn names_are_read_back_as_written() {
        for name in LimitName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert_eq!(LimitName::ALL[name as usize], name);
        }
        assert!("other".parse::<LimitName>().is_err());
    }
}
