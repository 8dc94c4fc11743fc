//! Notifies open streams after a change of the registry.

use std::collections::HashSet;

use futures_util::StreamExt;
use portolan_cluster::End;
use portolan_model::id::TenantId;

use crate::{
    catalog::Place,
    streams::{services::StreamServices, tag::DOORBELL},
};

/// Streams that are compared concurrently after a change of the registry.
pub(crate) const AT_ONCE: usize = 64;

/// Notifies the open streams of a tenant after a change of its registry.
///
/// Reloads the catalogue of each stream, and notifies those whose lists have changed. A server that
/// is no longer published ends its streams. False if an entry could not be read: the caller
/// retries.
pub(crate) async fn tell_tenant(state: &StreamServices, tenant: TenantId) -> bool {
    let mut is_told = true;
    let places: HashSet<Place> = state
        .streams
        .tags(tenant)
        .iter()
        .map(|tag| tag.place.clone())
        .collect();
    for place in places {
        let Ok(entry) = state.catalog.resolve_again(&place).await else {
            is_told = false;
            continue;
        };
        // While the database does not answer, the former entry is served, without notifications.
        is_told &= state.catalog.is_current(&place, &entry);
        let server = entry.server.as_deref();
        state.streams.end(End::Revoked, |tag| {
            tag.place == place
                // MCP-DP-6: a disabled transport ends its open streams, too.
                && (server.is_none_or(|server| server.id != tag.server)
                    || (!entry.reach.http_sse && tag.is_of_http_sse())
                    || !entry.admits(&tag.caller))
        });
        if let Some(server) = server {
            let sources = server.upstreams();
            let tags = state.streams.tags(tenant).into_iter();
            let of_server = tags.filter(|tag| tag.place == place);
            // Some read their session's record from the store, so they run concurrently.
            futures_util::stream::iter(of_server)
                .for_each_concurrent(AT_ONCE, async |tag| {
                    tag.update_subscriptions(state, server, &sources);
                    tag.compare(state, server).await;
                })
                .await;
            let sent = state.streams.send(tenant, |tag| {
                let waits = tag.place == place && tag.seen().waits();
                waits.then_some(DOORBELL)
            });
            crate::instruments::news_sent(sent);
        }
    }
    is_told
}
