//! The ticket of a client's session with a server: sealed, in a record beside that of the client's session, so that any node goes on with it (X-12, `streams.md` §13).

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    node::SessionError,
    store::{Fresh, Principal, Update, Version},
};
use portolan_keys::{Purpose, digest};
use portolan_model::id::SourceId;
use portolan_upstream::{Client, Connection, Legacy, Ticket};
use uuid::Uuid;

use super::sessions::{NoConversation, OfSession, Who, is_same, set_level};
use crate::state::McpState;

/// Where the ticket of a client's session with a source lies, begun with an account: in the lane of the session itself.
pub(super) fn place(session: SessionKey, source: SourceId, account: Option<Uuid>) -> SessionKey {
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

fn seal(state: &McpState, place: SessionKey, ticket: &Ticket) -> Option<Bytes> {
    let text = ticket.to_text();
    let sealed = state
        .keys
        .seal(Purpose::StreamPayload, text.as_bytes(), &place.0);
    sealed.ok().map(Bytes::from)
}

fn open(state: &McpState, place: SessionKey, body: &Bytes) -> Option<Ticket> {
    if body.is_empty() {
        return None;
    }
    let opened = &state.upstreams.opened;
    if let Some((sealed, ticket)) = opened.get(&place.0)
        && sealed == *body
    {
        return Some(ticket);
    }
    let now = state.clock.now();
    let text = state
        .keys
        .open(Purpose::StreamPayload, body, &place.0, now)
        .ok()?;
    let ticket = Ticket::read(std::str::from_utf8(text.expose()).ok()?)?;
    // A copy of its own: the body may be a part of a larger answer of the store.
    let sealed = Bytes::copy_from_slice(body);
    opened.insert(place.0, (sealed, ticket.clone()));
    Some(ticket)
}

async fn record(
    state: &McpState,
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

/// The ticket of a client's session, if it has one. Nothing is made and nothing prolonged: no record has this version.
pub(super) async fn peek(
    state: &McpState,
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

/// The upstream session of a client's session: one, whichever node asks (`streams.md` §13).
pub(super) async fn of_session(
    state: &McpState,
    place: SessionKey,
    client: &Client,
    session: OfSession,
    who: &Who,
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
    let speaker = who.speaker();
    let (legacy, facts) = Box::pin(Legacy::open(client, &speaker)).await?;
    let ours = Connection::Legacy(legacy.clone());
    Box::pin(set_level(&ours, &facts, session.level)).await;
    let Some(body) = seal(state, place, legacy.ticket()) else {
        return Ok(ours);
    };
    let updated = state
        .node
        .update(place, session.principal, version, body)
        .await;
    match updated {
        // Somebody was faster: the session is theirs, and ours is given back.
        Ok(Update::Conflict { body, .. }) => match open(state, place, &body) {
            Some(theirs) => {
                state.tracker.spawn(async move { ours.end().await });
                Ok(resume(theirs))
            }
            None => Ok(ours),
        },
        // Kept or not, it can be used: what is lost is that the next call may open another.
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
