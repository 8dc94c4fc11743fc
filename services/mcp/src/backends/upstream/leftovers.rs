//! Sessions with servers whose clients are gone without a word (`streams.md` §13). The record in which a session's ticket lies is over after a day without use, and what it
//! held with it: so the nodes that used a session remember it, as far as they can, and whichever finds its record gone takes leave of the server. A node that is
//! gone by then takes no leave; servers end what nobody uses by themselves.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portolan_cluster::{SessionKey, store::Principal};
use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
};
use portolan_upstream::{Connection, Legacy, Ticket};
use uuid::Uuid;

use super::{UpstreamSource, tickets::peek};
use crate::state::McpState;

/// Sessions that a node remembers; what is more is not taken leave of.
const MOST: usize = 10_000;
/// Those of one tenant: what is more makes room.
const MOST_OF_A_TENANT: usize = 1_000;
/// Those that are looked at together.
const AT_ONCE: usize = 16;
/// A record is over after a day without use; a little later it surely is.
const IDLE: time::Duration = time::Duration::hours(24).saturating_add(time::Duration::MINUTE);
/// Before one is looked at again that another node uses, or whose record could not be looked at.
const AGAIN: time::Duration = time::Duration::HOUR;

/// What a node remembers.
#[derive(Debug, Default)]
pub(crate) struct Leftovers(Mutex<HashMap<SessionKey, Leftover>>);

#[derive(Debug, Clone)]
pub(super) struct Leftover {
    pub(super) source: Arc<UpstreamSource>,
    pub(super) principal: Principal,
    pub(super) person: Option<UserId>,
    /// The account that began it.
    pub(super) account: Option<Uuid>,
    pub(super) ticket: Ticket,
    pub(super) due: Timestamp,
}

impl Leftovers {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Leftover>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is used now.
    pub(super) fn note(
        &self,
        place: SessionKey,
        ticket: &Ticket,
        now: Timestamp,
        used: impl FnOnce() -> Leftover,
    ) {
        let due = now + IDLE;
        let mut known = self.lock();
        let has_room = known.len() < MOST;
        match known.entry(place) {
            Entry::Occupied(mut one) if one.get().ticket == *ticket => one.get_mut().due = due,
            Entry::Occupied(mut one) => {
                one.insert(Leftover { due, ..used() });
            }
            Entry::Vacant(place) if has_room => {
                place.insert(Leftover { due, ..used() });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// It was taken leave of.
    pub(super) fn forget(&self, place: SessionKey) {
        self.lock().remove(&place);
    }

    /// Forgets those of tenants that have more than their share, the oldest first.
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

    /// Takes leave for those that are due by now, a few at a time.
    pub(crate) fn look(&self, state: &McpState) {
        self.make_room();
        let now = state.clock.now();
        let due: Vec<(SessionKey, Leftover)> = {
            let mut known = self.lock();
            let due = known.iter_mut().filter(|(_, one)| one.due <= now);
            let due = due.take(AT_ONCE).map(|(place, one)| {
                // Whatever becomes of the look, nobody looks at it meanwhile.
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
                // One that cannot be looked at, or is used, is looked at again.
                if let Ok(None) = peek(&state, place, one.principal).await {
                    state.upstreams.left.forget(place);
                    one.take_leave(&state).await;
                }
            }
        });
    }
}

impl Leftover {
    async fn take_leave(self, state: &McpState) {
        // As it is published now: who moved, was deleted or has another credential is not spoken to as it was.
        let (tenant, id) = (self.source.tenant, self.source.id);
        let source = state.catalog.source(tenant, id).await;
        let Some(source) = source.filter(|source| source.place == self.source.place) else {
            return;
        };
        let account = source.account_of(state, self.person).await;
        // What an account began that is not there any more ends by itself, some time.
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
