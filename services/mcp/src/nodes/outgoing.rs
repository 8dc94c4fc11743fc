//! The queue of messages to the other nodes: ordered and bounded.
//!
//! The bounds are such that a tenant with many notifications uses neither memory nor the messages
//! of others.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use portolan_model::id::TenantId;

use crate::{instruments, nodes::message::NodeMessage};

/// Most messages that wait.
const MOST: usize = 1_024;

/// Most notifications of tasks of one tenant among them.
const MOST_NOTICES: usize = 64;

/// The waiting messages.
#[derive(Debug, Default)]
pub(crate) struct Outgoing(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(TenantId, NodeMessage)>,
    /// A sender is running.
    is_sent: bool,
}

impl Queue {
    fn drop_first(&mut self, which: impl Fn(TenantId, &NodeMessage) -> bool) -> bool {
        let mut waiting = self.waiting.iter();
        let at = waiting.position(|(tenant, message)| which(*tenant, message));
        let found = at.is_some_and(|at| self.waiting.remove(at).is_some());
        if found {
            instruments::bell_dropped("full");
        }
        found
    }
}

fn is_notice(message: &NodeMessage) -> bool {
    matches!(message, NodeMessage::ChannelMessage { .. })
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. True if no sender is running: the caller starts one.
    pub(crate) fn push(&self, tenant: TenantId, message: NodeMessage) -> bool {
        let mut queue = self.lock();
        match &message {
            // A node that learns of a change reads the task, whose state is newer than both
            // messages.
            NodeMessage::Task { item, .. } => {
                let mut waiting = queue.waiting.iter();
                if waiting.any(
                    |(_, known)| matches!(known, NodeMessage::Task { item: known, .. } if known == item),
                ) {
                    return false;
                }
            }
            _ => {
                let of_tenant =
                    |of: TenantId, known: &NodeMessage| of == tenant && is_notice(known);
                let mut waiting = queue.waiting.iter();
                let notices = waiting.by_ref().filter(|(of, known)| of_tenant(*of, known));
                if notices.count() >= MOST_NOTICES {
                    queue.drop_first(of_tenant);
                }
            }
        }
        if queue.waiting.len() >= MOST && !queue.drop_first(|_, known| is_notice(known)) {
            queue.drop_first(|_, _| true);
        }
        queue.waiting.push_back((tenant, message));
        !mem::replace(&mut queue.is_sent, true)
    }

    /// The next message. `None`: the queue is empty, and the next `push` starts a sender again.
    pub(crate) fn next(&self) -> Option<(TenantId, NodeMessage)> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        queue.is_sent = next.is_some();
        next
    }

    pub(crate) fn clear(&self) {
        self.lock().waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use portolan_cluster::{
        SessionKey,
        store::{Nonce, StreamKey},
    };
    use portolan_model::Id;

    use super::*;
    use crate::nodes::message::MessageKind;

    fn item(number: u64) -> StreamKey {
        StreamKey {
            session: SessionKey([7; 16]),
            nonce: Nonce(number.to_be_bytes()),
        }
    }

    fn task(number: u64) -> NodeMessage {
        NodeMessage::Task {
            item: item(number),
            session: None,
        }
    }

    fn notice_of(number: u64) -> NodeMessage {
        NodeMessage::ChannelMessage {
            session: SessionKey([3; 16]),
            item: item(number),
            what: MessageKind::Other,
            notice: Bytes::new(),
        }
    }

    #[test]
    fn bells_go_in_order_and_one_sender_takes_them_out() {
        let (outgoing, tenant) = (Outgoing::default(), Id::generate());
        assert!(outgoing.push(tenant, notice_of(1)), "somebody has to begin");
        assert!(!outgoing.push(tenant, task(2)));
        assert!(!outgoing.push(tenant, task(2)), "told already");
        assert!(!outgoing.push(tenant, notice_of(3)));
        for message in [notice_of(1), task(2), notice_of(3)] {
            assert_eq!(outgoing.next(), Some((tenant, message)));
        }
        assert_eq!(outgoing.next(), None);
        assert!(
            outgoing.push(tenant, task(2)),
            "somebody has to begin again"
        );
    }

    #[test]
    fn a_tenant_that_talks_much_loses_its_own_oldest_words_and_nobody_elses_bells() {
        let outgoing = Outgoing::default();
        let (loud, quiet) = (Id::generate(), Id::generate());
        outgoing.push(quiet, notice_of(0));
        outgoing.push(quiet, task(1));
        for number in 0..1_000 {
            outgoing.push(loud, notice_of(number));
        }
        assert_eq!(outgoing.next(), Some((quiet, notice_of(0))));
        assert_eq!(outgoing.next(), Some((quiet, task(1))));
        let left: Vec<NodeMessage> = std::iter::from_fn(|| outgoing.next())
            .map(|(_, message)| message)
            .collect();
        assert_eq!(left.len(), MOST_NOTICES);
        assert_eq!(left.first(), Some(&notice_of(1_000 - MOST_NOTICES as u64)));
        assert_eq!(left.last(), Some(&notice_of(999)));
        outgoing.push(quiet, notice_of(0));
        for number in 0..2 * MOST as u64 {
            outgoing.push(loud, task(number));
        }
        let left: Vec<NodeMessage> = std::iter::from_fn(|| outgoing.next())
            .map(|(_, message)| message)
            .collect();
        assert_eq!((left.len(), &left[0]), (MOST, &task(MOST as u64)));
    }
}
