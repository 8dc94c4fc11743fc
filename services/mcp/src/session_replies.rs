//! Replies of this node to questions about its sessions (PLAY-8, PLAY-9).

use std::collections::HashMap;

use portolan_cluster::SessionKey;
use portolan_model::{Timestamp, id::TenantId};

use crate::{
    live_sessions::{
        board::without_session,
        enquiry::{PLACE, SessionEnquiry, SessionReply, Wanted, open, seal},
    },
    session::ABSOLUTE_LIFE,
    streams::{services::StreamServices, tag::StreamKind},
};

/// Most questions that wait.
const WAITING: usize = 256;

/// Most sessions in a reply: more than a person reads.
const MOST: usize = 1_000;

/// Oldest question that is answered, in seconds: an older one has no asker any more.
const OLDEST: i64 = 60;

/// Replies until the process stops.
pub(crate) async fn reply(state: StreamServices) {
    let mut asked = state.node.subscribe_with_capacity(PLACE, WAITING);
    loop {
        let sealed = tokio::select! {
            () = state.stopping.cancelled() => return,
            sealed = asked.next() => sealed,
        };
        let now = state.clock.now();
        let Some(enquiry) = open::<SessionEnquiry>(&state.keys, PLACE, &sealed, now) else {
            continue;
        };
        if (now.unix_timestamp() - enquiry.at).abs() > OLDEST {
            continue;
        }
        let place = SessionKey(enquiry.reply_to);
        let reply = answer(&state, enquiry, now).await;
        if let Some(body) = seal(&state.keys, place, &reply) {
            // Who asked sees that this node is silent.
            let _ = state.node.reply(place, body).await;
        }
    }
}

async fn answer(state: &StreamServices, enquiry: SessionEnquiry, now: Timestamp) -> SessionReply {
    let (board, tenant) = (&state.sessions, enquiry.tenant);
    let node = String::from_utf8_lossy(&state.node.id().0).into_owned();
    match enquiry.wanted {
        Wanted::List => SessionReply {
            sessions: board.list(tenant, now, &node, &open_streams(state, tenant), MOST),
            ..SessionReply::default()
        },
        Wanted::One(id) => {
            let one = board.one(tenant, &id, &node, &open_streams(state, tenant));
            SessionReply {
                sessions: one.into_iter().collect(),
                ..SessionReply::default()
            }
        }
        Wanted::Moments(id) => SessionReply {
            moments: board.moments(tenant, &id, &node),
            ..SessionReply::default()
        },
        Wanted::End(id) => {
            let ended = match board.session(tenant, &id) {
                None => false,
                Some((key, principal, created_at)) => {
                    let life = (created_at + ABSOLUTE_LIFE - now).try_into();
                    let ended = state
                        .node
                        .end(key, principal, life.unwrap_or_default())
                        .await;
                    if ended.is_ok() {
                        board.ended(key, now);
                    }
                    ended.is_ok()
                }
            };
            SessionReply {
                ended,
                ..SessionReply::default()
            }
        }
    }
}

/// Open streams of a tenant on this node, by session.
fn open_streams(state: &StreamServices, tenant: TenantId) -> HashMap<SessionKey, u32> {
    let mut open = HashMap::new();
    for tag in state.streams.tags(tenant) {
        let key = match &tag.kind {
            StreamKind::Session { session, .. } => session.key,
            StreamKind::Listen { .. } => {
                without_session(tag.caller.session_principal(), tag.server)
            }
        };
        *open.entry(key).or_default() += 1;
    }
    open
}
