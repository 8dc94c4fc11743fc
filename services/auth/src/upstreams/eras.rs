//! Tools of a server of both eras where it does not say what it lists in sessions: what was
//! known of that still holds.

use portolan_model::registry::ToolState;
use portolan_storage::tools::{Imported, Tool};
use portolan_upstream::{Offer, OfferedIn};

/// Members of a plan that only a look in sessions finds.
const OF_SESSIONS: [&str; 2] = ["era", "requires"];

/// Each tool of the offer keeps the era and the needs with which it is known.
pub(super) fn keep_unsaid(offer: &mut Offer, known: &[Tool]) {
    for tool in &mut offer.tools {
        let same = known.iter().find(|known| known.operation_key == tool.name);
        let Some(own) = same.and_then(|known| known.plan.get("upstream")) else {
            continue;
        };
        for member in OF_SESSIONS {
            if let Some(value) = own.get(member) {
                tool.plan["upstream"][member] = value.clone();
            }
        }
    }
}

/// Whether an offer takes a tool away. One that lies in sessions alone stays where the server does
/// not say what it lists there.
pub(super) fn is_gone(known: &Tool, offer: &Offer, new: &[Imported]) -> bool {
    let is_unsaid = || {
        let place = known.plan.get("upstream").and_then(OfferedIn::of);
        offer.sessions_unsaid && place == Some(OfferedIn::Sessions)
    };
    known.state == ToolState::Active
        && !new
            .iter()
            .any(|new| new.operation_key == known.operation_key)
        && !is_unsaid()
}
