//! The ticket of a client's session with a server, sealed in a record beside that of the session.
//!
//! Any node can continue the session with it (MCP-X-12, STREAM-13).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    node::SessionError,
    store::{Fresh, Principal, Update, Version},
};
use portolan_keys::{Purpose, digest};
use portolan_model::id::SourceId;
use portolan_upstream::{Client, Connection, Legacy, Ticket};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    backends::{
        services::Backends,
        upstream::{
            conversation::{NoConversation, is_same, set_level},
            pool::OpenedTicket,
        },
    },
    call::Call,
    session::OfSession,
};

/// The key of a ticket's record, in the partition of the client's session.
///
/// It depends on session, source, and the account that began the conversation.
pub(crate) fn place(session: SessionKey, source: SourceId, account: Option<Uuid>) -> SessionKey {
    let name = [
        &b"upstream session"[..],
        &session.0[..],
        &source.uuid().as_bytes()[..],
        account
            .as_ref()
            .map_or(&b""[..], |account| &account.as_bytes()[..]),
    ]
    .concat();
    let mut key = [0; 16];
    key.copy_from_slice(&digest(&name).as_bytes()[..16]);
    key[0] = session.0[0];
    SessionKey(key)
}

fn seal(state: &Backends, place: SessionKey, ticket: &Ticket) -> Option<Bytes> {
    let text = ticket.to_text();
    let sealed = state
        .keys
        .seal(Purpose::StreamPayload, text.as_bytes(), &place.0);
    sealed.ok().map(Bytes::from)
}

/// How long a ticket is used without a read of its record.
///
/// Another node replaces a ticket only after the server has forgotten it. The server then answers
/// so (MCP-X-7), and the record is read. The reads also keep the record, which expires after a day
/// without use, for as long as its session is used.
const TRUSTED: Duration = Duration::from_secs(60);

fn remember(state: &Backends, place: SessionKey, sealed: Bytes, ticket: &Ticket) {
    let opened = OpenedTicket {
        sealed,
        ticket: ticket.clone(),
        looked: Instant::now(),
    };
    state.upstreams.opened.insert(place.0, opened);
}

fn remembered(state: &Backends, place: SessionKey) -> Option<Ticket> {
    let opened = state.upstreams.opened.get(&place.0)?;
    (opened.looked.elapsed() < TRUSTED).then_some(opened.ticket)
}

fn open(state: &Backends, place: SessionKey, body: &Bytes) -> Option<Ticket> {
    if body.is_empty() {
        return None;
    }
    if let Some(known) = state.upstreams.opened.get(&place.0)
        && known.sealed == *body
    {
        remember(state, place, known.sealed, &known.ticket);
        return Some(known.ticket);
    }
    let now = state.clock.now();
    let text = state
        .keys
        .open(Purpose::StreamPayload, body, &place.0, now)
        .ok()?;
    let ticket = Ticket::read(std::str::from_utf8(text.expose()).ok()?)?;
    // A copy: the body may be a slice of a larger answer of the store.
    remember(state, place, Bytes::copy_from_slice(body), &ticket);
    Some(ticket)
}

async fn record(
    state: &Backends,
    place: SessionKey,
    session: OfSession,
) -> Result<(Version, Option<Ticket>), NoConversation> {
    let fresh = Fresh {
        body: Bytes::new(),
        life: session.life,
    };
    match state.node.begin(place, session.principal, &fresh).await {
        Ok(begun) => Ok((begun.version, open(state, place, &begun.body))),
        Err(SessionError::Unknown) => Err(NoConversation::Over),
        Err(SessionError::Unavailable) => Err(NoConversation::Store),
    }
}

/// The ticket of a client's session, if it has one.
///
/// Nothing is created or prolonged, because no record has this version.
pub(crate) async fn peek(
    state: &Backends,
    place: SessionKey,
    principal: Principal,
) -> Result<Option<Ticket>, NoConversation> {
    let never = Version(u32::MAX);
    let looked = state.node.update(place, principal, never, Bytes::new());
    match looked.await.map_err(|_| NoConversation::Store)? {
        Update::Conflict { body, .. } => Ok(open(state, place, &body)),
        Update::Unknown | Update::Done(_) => Ok(None),
    }
}

/// The upstream session of a client's session: the same on every node (STREAM-13).
pub(crate) async fn of_session(
    state: &Backends,
    place: SessionKey,
    client: &Client,
    session: OfSession,
    call: &Call,
    gone: Option<&Connection>,
) -> Result<Connection, NoConversation> {
    let resume = |ticket| Connection::Legacy(Legacy::resume(client.clone(), ticket));
    if gone.is_none()
        && let Some(ticket) = remembered(state, place)
    {
        return Ok(resume(ticket));
    }
    // Boxed: most calls do not need this large future.
    Box::pin(looked_up(state, place, client, session, call, gone)).await
}

async fn looked_up(
    state: &Backends,
    place: SessionKey,
    client: &Client,
    session: OfSession,
    call: &Call,
    gone: Option<&Connection>,
) -> Result<Connection, NoConversation> {
    let resume = |ticket| Connection::Legacy(Legacy::resume(client.clone(), ticket));
    let (version, ticket) = record(state, place, session).await?;
    if let Some(ticket) = ticket {
        let kept = resume(ticket);
        if !gone.is_some_and(|gone| is_same(gone, &kept)) {
            return Ok(kept);
        }
    }
    let speaker = call.speaker();
    let (legacy, facts) = Box::pin(Legacy::open(client, &speaker)).await?;
    let ours = Connection::Legacy(legacy.clone());
    Box::pin(set_level(&ours, &facts, session.level)).await;
    let Some(body) = seal(state, place, legacy.ticket()) else {
        return Ok(ours);
    };
    let updated = state
        .node
        .update(place, session.principal, version, body.clone())
        .await;
    match updated {
        Ok(Update::Done(_)) => {
            remember(state, place, body, legacy.ticket());
            Ok(ours)
        }
        // Another node was faster: its session is used, and this one is ended.
        Ok(Update::Conflict { body, .. }) => match open(state, place, &body) {
            Some(theirs) => {
                state.tracker.spawn(async move { ours.end().await });
                Ok(resume(theirs))
            }
            None => Ok(ours),
        },
        // It works without a record; the next call opens another one.
        _ => Ok(ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_12_what_one_account_began_no_other_goes_on_with() {
        let (session, source) = (SessionKey([7; 16]), SourceId::generate());
        let accounts = [None, Some(Uuid::from_u128(1)), Some(Uuid::from_u128(2))];
        let places = accounts.map(|account| place(session, source, account).0);
        assert!(places[0] != places[1] && places[0] != places[2] && places[1] != places[2]);
        for (place, account) in places.into_iter().zip(accounts) {
            assert_eq!(place[0], session.0[0], "in the lane of the session");
            assert_eq!(place, super::place(session, source, account).0);
        }
    }
}
