//! Tools that a server of the session era lists only to clients with a capability (sampling, elicitation, roots): which there are,
//! and what each needs. A server of 2026-07-28 lists the same to everybody (L-21), and says on a call what it misses.

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
    offer::{Offer, OfferedTool},
};

/// In this order a tool that one capability is enough for gets its need: one that a form is enough for does not need pages.
const NEEDS: [Need; 5] = [
    Need::Form,
    Need::Sampling,
    Need::Roots,
    Need::Url,
    Need::SamplingTools,
];

/// What is taken away, and what a tool needs that is not listed any more then.
const WITHOUT: [(&[Need], Need); 5] = [
    (&[Need::Url], Need::Url),
    (&[Need::SamplingTools], Need::SamplingTools),
    (&[Need::Form, Need::Url], Need::Form),
    (&[Need::Sampling, Need::SamplingTools], Need::Sampling),
    (&[Need::Roots], Need::Roots),
];

impl Client {
    /// Asks the server for all that it offers, as a client that can do everything, and then what of it a client needs for which tool.
    /// A server that remembers nothing of a client cannot make a difference, and is asked once.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn look(&self, tracker: &TaskTracker) -> Result<Offer, UpstreamError> {
        let probed = self.probe(&able(&NEEDS), tracker).await?;
        let offered = probed.offer().await;
        probed.connection.end().await;
        let mut offer = offered?;
        let remembers = match &probed.connection {
            Connection::Legacy(legacy) => legacy.ticket().has_session(),
            Connection::Modern(_) | Connection::Link(_) => false,
        };
        if remembers && !offer.tools.is_empty() {
            self.find_needs(&mut offer.tools).await?;
        }
        Ok(offer)
    }

    async fn find_needs(&self, tools: &mut [OfferedTool]) -> Result<(), UpstreamError> {
        let to_all = self.listed_to(&[]).await?;
        let is_gated = |tool: &&mut OfferedTool| !to_all.contains(&tool.name);
        let mut gated: Vec<&mut OfferedTool> = tools.iter_mut().filter(is_gated).collect();
        // One capability is enough for most.
        for need in NEEDS {
            if gated.is_empty() {
                return Ok(());
            }
            let listed = self.listed_to(&[need]).await?;
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
            let listed = self.listed_to(&others).await?;
            for tool in &mut gated {
                if !listed.contains(&tool.name) && !tool.requires_one_of(without) {
                    tool.require(needed);
                }
            }
        }
        Ok(())
    }

    /// Names of the tools that a client with these capabilities sees.
    async fn listed_to(&self, can: &[Need]) -> Result<HashSet<String>, UpstreamError> {
        let (legacy, _) = Legacy::open(self, &able(can)).await?;
        let connection = Connection::Legacy(legacy);
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
