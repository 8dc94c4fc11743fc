//! Places of live views and of streams of events: each asks the database again and again while it is
//! open, so that a process has a number of them, and no workspace or caller can take all (METER-21,
//! HOOK-29).

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portolan_model::id::TenantId;

/// Most open views of a process.
pub const MOST: usize = 64;

/// Most open views of a workspace in a process.
pub const MOST_OF_WORKSPACE: usize = 24;

/// Most open views of a person or token in a process.
pub const MOST_OF_CALLER: usize = 8;

/// The open views of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Watchers(Arc<Mutex<OpenViews>>);

#[derive(Debug, Default)]
struct OpenViews {
    all: usize,
    workspaces: HashMap<TenantId, usize>,
    callers: HashMap<String, usize>,
}

/// An open view, until it is dropped.
#[derive(Debug)]
pub struct Watching {
    watchers: Watchers,
    workspace: TenantId,
    caller: String,
}

impl Watchers {
    /// Takes a place. `caller` is the id of a person or of a token. `None`: as many views are open as
    /// may be.
    pub fn take(&self, workspace: TenantId, caller: &str) -> Option<Watching> {
        let mut open = self.open();
        let of_workspace = open.workspaces.get(&workspace).copied().unwrap_or(0);
        let of_caller = open.callers.get(caller).copied().unwrap_or(0);
        if open.all >= MOST || of_workspace >= MOST_OF_WORKSPACE || of_caller >= MOST_OF_CALLER {
            return None;
        }
        open.all += 1;
        open.workspaces.insert(workspace, of_workspace + 1);
        open.callers.insert(caller.to_owned(), of_caller + 1);
        Some(Watching {
            watchers: self.clone(),
            workspace,
            caller: caller.to_owned(),
        })
    }

    /// The number of open views.
    pub fn count(&self) -> usize {
        self.open().all
    }

    fn open(&self) -> MutexGuard<'_, OpenViews> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut open = self.watchers.open();
        open.all = open.all.saturating_sub(1);
        one_less(&mut open.workspaces, &self.workspace);
        one_less(&mut open.callers, &self.caller);
    }
}

/// Counts one less, and forgets what has none.
fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    let left = counts.get(key).map_or(0, |count| count.saturating_sub(1));
    if left == 0 {
        counts.remove(key);
    } else if let Some(count) = counts.get_mut(key) {
        *count = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: METER-21.
    #[test]
    fn views_are_bounded_by_caller_workspace_and_process() {
        let watchers = Watchers::default();
        let (acme, other) = (TenantId::generate(), TenantId::generate());
        let take = |workspace, caller: usize, count: usize| -> Vec<Watching> {
            let caller = caller.to_string();
            (0..count)
                .map_while(|_| watchers.take(workspace, &caller))
                .collect()
        };
        let ann = take(acme, 1, 100);
        assert_eq!(ann.len(), MOST_OF_CALLER);
        assert!(watchers.take(other, "1").is_none(), "of one person");
        let mut rest: Vec<_> = (2..9).flat_map(|caller| take(acme, caller, 5)).collect();
        assert_eq!(ann.len() + rest.len(), MOST_OF_WORKSPACE);
        for caller in 10..30 {
            rest.extend(take(TenantId::generate(), caller, 5));
        }
        assert_eq!(watchers.count(), MOST);
        assert!(watchers.take(other, "40").is_none(), "of the process");
        drop(ann);
        assert!(watchers.take(acme, "1").is_some());
        drop(rest);
        assert_eq!(watchers.count(), 0);
        let open = watchers.open();
        assert!(open.workspaces.is_empty() && open.callers.is_empty());
    }
}
