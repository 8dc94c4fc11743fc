//! Limits on simultaneous use (STREAM-16.2). The script `hold_slots.lua` has the same rules.

use std::collections::HashMap;

use crate::store::{HeldSlots, HoldSlots, NodeId};

/// Share of one node in a limit.
#[derive(Debug, Clone, Copy)]
struct Share {
    held: u64,
    used: u64,
    /// End of the share, ms.
    until: u64,
}

/// Shares of nodes, by limit.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds(HashMap<(String, String), HashMap<NodeId, Share>>);

impl Holds {
    pub(super) fn hold(
        &mut self,
        node: NodeId,
        life: u64,
        wanted: &HoldSlots,
        now: u64,
    ) -> HeldSlots {
        let wanted = wanted.bounded();
        let key = (wanted.shard, wanted.bucket);
        let shares = self.0.entry(key.clone()).or_default();
        shares.retain(|owner, share| *owner == node || share.until > now);
        let others = shares.iter().filter(|(owner, _)| **owner != node);
        let (held_elsewhere, used_elsewhere) = others.fold((0, 0), |(held, used), (_, share)| {
            (held + share.held, used + share.used)
        });
        let room = wanted.limit.saturating_sub(held_elsewhere);
        let held = wanted.used.max(wanted.want.min(room));
        if held > 0 {
            let share = Share {
                held,
                used: wanted.used,
                until: now + life,
            };
            shares.insert(node, share);
        } else {
            shares.remove(&node);
            if shares.is_empty() {
                self.0.remove(&key);
            }
        }
        HeldSlots {
            held,
            held_elsewhere,
            used_elsewhere,
        }
    }

    pub(super) fn purge(&mut self, now: u64) {
        self.0.retain(|_, shares| {
            shares.retain(|_, share| share.until > now);
            !shares.is_empty()
        });
    }
}
