//! Orphaned sessions with servers, whose clients disconnected without a DELETE (STREAM-13).
//!
//! The record with a session's ticket expires after a day without use, and the ticket with it. So
//! the nodes that used a session remember it within limits, and a node that finds its record gone
//! ends the session at the server. A dead node ends none; servers end unused sessions themselves.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{MutexGuard, PoisonError},
};

use portolan_cluster::SessionKey;
use portolan_model::{Timestamp, id::TenantId};
use portolan_upstream::{Connection, Legacy, Ticket};

use crate::backends::{
    services::Backends,
    upstream::{
        pool::{OrphanedSession, OrphanedSessions},
        tickets::peek,
    },
};

/// Most sessions that a node remembers; others are not ended.
const MOST: usize = 10_000;

/// Most sessions of one tenant; the oldest are forgotten.
const MOST_OF_A_TENANT: usize = 1_000;

/// Sessions that are checked concurrently.
const AT_ONCE: usize = 16;

/// A record expires after a day without use; after this time it certainly has.
const IDLE: time::Duration = time::Duration::hours(24).saturating_add(time::Duration::MINUTE);

/// The time until the next check of a session in use, or of one whose record could not be read.
const AGAIN: time::Duration = time::Duration::HOUR;

impl OrphanedSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, OrphanedSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the use of a session.
    pub(crate) fn note(
        &self,
        place: SessionKey,
        ticket: &Ticket,
        now: Timestamp,
        used: impl FnOnce() -> OrphanedSession,
    ) {
        let due = now + IDLE;
        let mut known = self.lock();
        let has_room = known.len() < MOST;
        match known.entry(place) {
            Entry::Occupied(mut one) if one.get().ticket == *ticket => one.get_mut().due = due,
            Entry::Occupied(mut one) => {
                one.insert(OrphanedSession { due, ..used() });
            }
            Entry::Vacant(place) if has_room => {
                place.insert(OrphanedSession { due, ..used() });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Forgets a session that was ended.
    pub(crate) fn forget(&self, place: SessionKey) {
        self.lock().remove(&place);
    }

    /// Forgets sessions of tenants above their share, the oldest first.
    fn make_room(&self) {
        let mut known = self.lock();
        let mut of: HashMap<TenantId, Vec<(Timestamp, SessionKey)>> = HashMap::new();
        for (place, one) in known.iter() {
            let all = of.entry(one.source.tenant).or_default();
            all.push((one.due, *place));
        }
        for mut all in of.into_values() {
            let over = all.len().saturating_sub(MOST_OF_A_TENANT);
            if over > 0 {
                all.sort_by_key(|(due, place)| (*due, place.0));
                for (_, place) in &all[..over] {
                    known.remove(place);
                }
            }
        }
    }

    /// Ends the sessions that are due by now, a few at a time.
    pub(crate) fn look(&self, state: &Backends) {
        self.make_room();
        let now = state.clock.now();
        let due: Vec<(SessionKey, OrphanedSession)> = {
            let mut known = self.lock();
            let due = known.iter_mut().filter(|(_, one)| one.due <= now);
            let due = due.take(AT_ONCE).map(|(place, one)| {
                // The session is not checked again meanwhile, in any case.
                one.due = now + AGAIN;
                (*place, one.clone())
            });
            due.collect()
        };
        if due.is_empty() {
            return;
        }
        let state = state.clone();
        let tracker = state.tracker.clone();
        tracker.spawn(async move {
            for (place, one) in due {
                // A session in use, or without a readable record, is checked again.
                if let Ok(None) = peek(&state, place, one.principal).await {
                    state.upstreams.left.forget(place);
                    one.take_leave(&state).await;
                }
            }
        });
    }
}

impl OrphanedSession {
    async fn take_leave(self, state: &Backends) {
        // The source as published now: no request goes to a moved or deleted source, or with an old
        // credential.
        let (tenant, id) = (self.source.tenant, self.source.id);
        let source = state.catalog.source(tenant, id).await;
        let Some(source) = source.filter(|source| source.place == self.source.place) else {
            return;
        };
        let account = source.account_of(state, self.person).await;
        // A session of a disconnected account expires at the server.
        if account.ok() != Some(self.account) {
            return;
        }
        let Ok(signed_in) = source.sign_in(state, self.person).await else {
            return;
        };
        if signed_in.account() == self.account {
            let legacy = Legacy::resume(signed_in.client, self.ticket);
            Connection::Legacy(legacy).end().await;
        }
    }
}
