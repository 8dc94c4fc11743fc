//! Subscriptions of open streams at upstream servers (MCP-X-41, MCP-X-42).

use std::sync::Arc;

use portolan_cluster::SessionKey;
use portolan_model::id::TenantId;

use crate::{
    catalog::{server::Server, upstream::UpstreamSource},
    session::LiveSession,
    streams::{
        services::StreamServices,
        tag::{DOORBELL, StreamKind, Tag},
    },
    upstream_subscriptions::{self, Subscription},
};

impl Tag {
    /// Updates the subscriptions if the upstream servers behind `server` have changed.
    pub(crate) fn update_subscriptions(
        &self,
        state: &StreamServices,
        server: &Server,
        sources: &[Arc<UpstreamSource>],
    ) {
        let mut subscriptions = self.subscriptions();
        let is_same = subscriptions.of.len() == sources.len()
            && sources.iter().all(|source| {
                subscriptions
                    .of
                    .iter()
                    .any(|subscription| subscription.is_of(source))
            });
        if is_same {
            return;
        }
        let uris: Vec<String> = match &self.kind {
            StreamKind::Listen { filter, .. } => filter.uris.clone(),
            StreamKind::Session { .. } => subscriptions
                .of
                .iter()
                .flat_map(Subscription::all_names)
                .map(str::to_owned)
                .collect(),
        };
        let uris = uris.iter().map(String::as_str);
        subscriptions.of = state.upstream_subscriptions.want(state, server, uris);
        subscriptions.changes += 1;
    }

    /// Subscribes at each server as the session's record says (MCP-RE-7).
    ///
    /// Any node may change the record. A change that this node receives meanwhile is newer than the
    /// record.
    pub(crate) async fn follow(&self, state: &StreamServices) {
        let StreamKind::Session { session, .. } = &self.kind else {
            return;
        };
        loop {
            let before = self.subscriptions().changes;
            let (marks, now) = (self.seen().current, state.clock.now());
            let found = LiveSession::find(state, *session, &self.caller, marks, now).await;
            let Ok(Some(found)) = found else { return };
            let Ok(entry) = state.catalog.resolve_again(&self.place).await else {
                return;
            };
            let Some(server) = &entry.server else { return };
            let uris = found.body.subscriptions.iter().map(|(uri, _)| uri);
            let wanted: Vec<_> = uris
                .filter_map(|uri| {
                    let (source, own) = upstream_subscriptions::own_uri(server, uri)?;
                    Some((source, own, uri.as_str()))
                })
                .collect();
            let mut subscriptions = self.subscriptions();
            if subscriptions.changes != before {
                continue;
            }
            let mut new = Vec::new();
            for subscription in &mut subscriptions.of {
                let of_server = wanted
                    .iter()
                    .filter(|(source, ..)| subscription.is_of(source));
                let uris: Vec<(&str, &str)> = of_server
                    .map(|(_, own, uri)| (own.as_str(), *uri))
                    .collect();
                new.extend(subscription.set(&uris));
            }
            drop(subscriptions);
            if !new.is_empty() {
                // It may have changed between: a repeated notification is better than a lost one.
                self.seen().updated.extend(new);
                state.streams.send(server.tenant, |tag| {
                    std::ptr::eq(tag, self).then_some(DOORBELL)
                });
            }
            return;
        }
    }
}

/// Notifies the streams of this node that subscribe to a changed resource of an upstream.
pub(crate) fn tell_updated(state: &StreamServices, tenant: TenantId, place: &str, own: &str) {
    let sent = state.streams.send(tenant, |tag| {
        tag.note_update(place, own).then_some(DOORBELL)
    });
    crate::instruments::news_sent(sent);
}

/// Updates a session's streams on this node after it subscribed to a resource of an upstream.
///
/// `own` is `None` after it unsubscribed.
pub(crate) fn subscribed(
    state: &StreamServices,
    (tenant, place): (TenantId, &str),
    session: SessionKey,
    own: Option<&str>,
    uri: &str,
) {
    for tag in of_session(state, tenant, session) {
        let mut subscriptions = tag.subscriptions();
        subscriptions.changes += 1;
        for subscription in subscriptions.of.iter_mut().filter(|one| one.is_at(place)) {
            match own {
                Some(own) => subscription.add(own.to_owned(), uri.to_owned()),
                None => subscription.remove(uri),
            }
        }
    }
}

/// Lets a session's streams on this node read its record, as its subscriptions may have changed.
pub(crate) fn read_record(state: &StreamServices, tenant: TenantId, session: SessionKey) {
    for tag in of_session(state, tenant, session) {
        let looking = state.clone();
        state
            .tracker
            .spawn(async move { tag.follow(&looking).await });
    }
}

pub(crate) fn of_session(
    state: &StreamServices,
    tenant: TenantId,
    session: SessionKey,
) -> impl Iterator<Item = Arc<Tag>> {
    let tags = state.streams.tags(tenant).into_iter();
    tags.filter(
        move |tag| matches!(&tag.kind, StreamKind::Session { session: id, .. } if id.key == session),
    )
}
