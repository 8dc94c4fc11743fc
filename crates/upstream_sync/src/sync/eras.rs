//! Keeps data about tools of a server of both eras, if the server does not state which tools it
//! lists in sessions (MCP-X-4).

use portolan_model::registry::ToolState;
use portolan_storage::registry::tools::{Imported, Tool};
use portolan_upstream::{Offer, OfferedIn};

/// Members of a plan that only a read in sessions finds.
const OF_SESSIONS: [&str; 2] = ["era", "requires"];

/// Copies the known era and requirements to each tool of the offer.
pub(crate) fn keep_unsaid(offer: &mut Offer, known: &[Tool]) {
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

/// Returns true if an offer removes a tool. A tool of sessions alone stays if the server does not
/// state which tools it lists there.
pub(crate) fn is_gone(known: &Tool, offer: &Offer, new: &[Imported]) -> bool {
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
