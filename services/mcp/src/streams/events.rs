//! Events of the process that concern open streams.

use std::sync::{Arc, Weak};

use crate::{
    nodes::events::{Event, EventSubscriber, UpstreamChange},
    streams::{
        services::{StreamParts, StreamServices},
        subscriptions, tasks,
    },
};

impl EventSubscriber for StreamParts {
    fn receive(self: Arc<Self>, event: &Event) {
        let state = StreamServices::of(self);
        match event {
            Event::TaskChanged {
                tenant,
                item,
                session,
            } => tasks::changed(&state, *tenant, *item, *session),
            Event::TaskNotice {
                tenant,
                session,
                item,
                kind,
                notice,
            } => tasks::said(&state, *tenant, *session, (*item, *kind), notice),
            Event::PollTasks(round) => tasks::look_again(&state, *round),
            Event::Upstream {
                tenant,
                place,
                change,
            } => match change {
                UpstreamChange::Updated(own) => {
                    subscriptions::tell_updated(&state, *tenant, place, own);
                }
                UpstreamChange::Subscribed { session, own, uri } => {
                    let server = (*tenant, place.as_str());
                    subscriptions::subscribed(&state, server, *session, own.as_deref(), uri);
                }
                UpstreamChange::ReadRecord(session) => {
                    subscriptions::read_record(&state, *tenant, *session);
                }
            },
        }
    }
}

/// Lets the open streams receive the events of their node.
pub(crate) fn subscribe(state: &StreamServices) {
    let streams: Weak<StreamParts> = Arc::downgrade(state.parts());
    state.events.subscribe(streams);
}
