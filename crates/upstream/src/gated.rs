//! Finds the tools that a server of the session era lists only to clients with a capability
//! (sampling, elicitation, roots), and the capability that each needs. A server of 2026-07-28 lists
//! the same tools to every client (MCP-L-21), and names a missing capability when a tool is called.
//! A server of both eras may list other tools in sessions; these are included.

use std::collections::HashSet;

use portolan_protocol::{
    ask::Need, capability::ClientCapabilities, jsonrpc::Raw, revision::Revision,
};
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::{
    connection::Connection,
    drain::List,
    endpoint::{Client, Speaker},
    error::UpstreamError,
    legacy::Legacy,
    link::Link,
    offer::{Offer, OfferedTool},
};

/// In this order a tool that one capability is enough for gets its need: one that a form is enough
/// for does not need pages.
const NEEDS: [Need; 5] = [
    Need::Form,
    Need::Sampling,
    Need::Roots,
    Need::Url,
    Need::SamplingTools,
];

/// Capabilities that are withheld, and the capability that a tool needs if it is then no longer
/// listed.
const WITHOUT: [(&[Need], Need); 5] = [
    (&[Need::Url], Need::Url),
    (&[Need::SamplingTools], Need::SamplingTools),
    (&[Need::Form, Need::Url], Need::Form),
    (&[Need::Sampling, Need::SamplingTools], Need::Sampling),
    (&[Need::Roots], Need::Roots),
];

/// How sessions are opened.
#[derive(Clone, Copy)]
enum Door<'a> {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE; the task reads the stream.
    Links(&'a TaskTracker),
}

impl Client {
    /// Fetches all that the server offers, as a client with every capability. Then finds the
    /// capability that each tool needs. A stateless server cannot distinguish clients and is
    /// queried once. A server of both eras is queried for its tools in both.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn look(&self, tracker: &TaskTracker) -> Result<Offer, UpstreamError> {
        let probed = self.probe(&able(&NEEDS), tracker).await?;
        let offered = probed.offer().await;
        probed.connection.end().await;
        let mut offer = offered?;
        let door = match probed.connection {
            Connection::Modern(_) => {
                match self.look_in_sessions().await {
                    Ok(Some(sessions)) => offer.join(sessions),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::debug!(reason = %error, "an upstream server does not say what it lists in sessions");
                        offer.sessions_unsaid = true;
                    }
                }
                return Ok(offer);
            }
            Connection::Legacy(legacy) if !legacy.ticket().has_session() => return Ok(offer),
            Connection::Legacy(_) => Door::Streamable,
            // The first stream is closed before others are opened.
            Connection::Link(link) => {
                drop(link);
                Door::Links(tracker)
            }
        };
        self.find_needs(door, &mut offer.tools).await?;
        Ok(offer)
    }

    /// The tools that a server of 2026-07-28 lists in sessions, with their needs; `None` if it
    /// holds no sessions.
    async fn look_in_sessions(&self) -> Result<Option<Offer>, UpstreamError> {
        let Some(held) = self.holds_sessions(&able(&NEEDS)).await? else {
            return Ok(None);
        };
        let listed = held.offer_of(&[List::Tools]).await;
        held.connection.end().await;
        let mut offer = listed?;
        self.find_needs(Door::Streamable, &mut offer.tools).await?;
        Ok(Some(offer))
    }

    async fn find_needs(
        &self,
        door: Door<'_>,
        tools: &mut [OfferedTool],
    ) -> Result<(), UpstreamError> {
        if tools.is_empty() {
            return Ok(());
        }
        let to_all = self.listed_to(door, &[]).await?;
        let is_gated = |tool: &&mut OfferedTool| !to_all.contains(&tool.name);
        let mut gated: Vec<&mut OfferedTool> = tools.iter_mut().filter(is_gated).collect();
        // One capability is enough for most.
        for need in NEEDS {
            if gated.is_empty() {
                return Ok(());
            }
            let listed = self.listed_to(door, &[need]).await?;
            gated.retain_mut(|tool| {
                let is_enough = listed.contains(&tool.name);
                if is_enough {
                    tool.require(need);
                }
                !is_enough
            });
        }
        // The others need what they are not listed without: a mode, or the whole feature.
        for (without, needed) in WITHOUT {
            if gated.is_empty() {
                return Ok(());
            }
            let others: Vec<Need> = NEEDS
                .into_iter()
                .filter(|need| !without.contains(need))
                .collect();
            let listed = self.listed_to(door, &others).await?;
            for tool in &mut gated {
                if !listed.contains(&tool.name) && !tool.requires_one_of(without) {
                    tool.require(needed);
                }
            }
        }
        Ok(())
    }

    /// Names of the tools that a client with these capabilities sees.
    async fn listed_to(
        &self,
        door: Door<'_>,
        can: &[Need],
    ) -> Result<HashSet<String>, UpstreamError> {
        let speaker = able(can);
        let connection = match door {
            Door::Streamable => Connection::Legacy(Legacy::open(self, &speaker).await?.0),
            Door::Links(tracker) => Connection::Link(Link::open(self, &speaker, tracker).await?.0),
        };
        let listed = connection.list(List::Tools).await;
        connection.end().await;
        let names = listed?.into_iter();
        Ok(names
            .filter_map(|tool| tool.get("name")?.string())
            .collect())
    }
}

impl OfferedTool {
    fn requires_one_of(&self, needs: &[Need]) -> bool {
        let requires = self.plan["upstream"]["requires"].as_array();
        let is_named = |need: &Need| {
            requires.is_some_and(|requires| requires.iter().any(|word| word == need.feature()))
        };
        needs.iter().any(is_named)
    }

    fn require(&mut self, need: Need) {
        let requires = &mut self.plan["upstream"]["requires"];
        match requires.as_array_mut() {
            Some(requires) => requires.push(json!(need.feature())),
            None => *requires = json!([need.feature()]),
        }
    }
}

/// Ourselves, with these capabilities.
fn able(needs: &[Need]) -> Speaker {
    let can = |need: Need| needs.contains(&need);
    let capabilities = ClientCapabilities {
        roots: can(Need::Roots),
        sampling: can(Need::Sampling) || can(Need::SamplingTools),
        sampling_tools: can(Need::SamplingTools),
        elicitation_form: can(Need::Form),
        elicitation_url: can(Need::Url),
        ..ClientCapabilities::default()
    };
    let mut text = Vec::with_capacity(96);
    capabilities.write(Revision::LATEST_LEGACY, &mut text);
    Speaker {
        capabilities: Raw::parse(text).unwrap_or_else(|_| Raw::empty_object()),
        ..Speaker::ourselves()
    }
}
