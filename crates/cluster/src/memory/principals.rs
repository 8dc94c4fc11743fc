//! Sessions of each principal (STREAM-10). The script `remember.lua` has the same rules.

use std::collections::{HashMap, VecDeque};

use crate::store::{FORGET_AT_ONCE, Principal, SessionKey};

/// Sessions of one principal, oldest first.
#[derive(Debug, Clone, Default)]
struct Sessions {
    noted: VecDeque<SessionKey>,
    /// Expiry of the list, ms.
    until: u64,
}

/// Sessions of all principals.
#[derive(Debug, Clone, Default)]
pub(super) struct OfPrincipals(HashMap<Principal, Sessions>);

impl OfPrincipals {
    pub(super) fn remember(
        &mut self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
        until: u64,
    ) -> Vec<SessionKey> {
        let sessions = self.0.entry(principal).or_default();
        sessions.until = until;
        sessions
            .noted
            .retain(|known| *known != session && !gone.contains(known));
        sessions.noted.push_back(session);
        let over = sessions.noted.len().saturating_sub(most);
        let over = over.min(FORGET_AT_ONCE);
        sessions.noted.iter().take(over).copied().collect()
    }

    pub(super) fn purge(&mut self, now: u64) {
        self.0.retain(|_, sessions| sessions.until > now);
    }
}
