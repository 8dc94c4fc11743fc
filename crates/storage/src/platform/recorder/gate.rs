//! Limits on steps that strangers can repeat without end: some are recorded, the rest only counted
//! (AUTH-X2).
//!
//! A metadata request uses the budget of the workspace that it names, so that a flood at one
//! workspace displaces no step of another. Names that are not known to exist share one budget,
//! because strangers can invent them. A client's loop with a refused refresh token is one step,
//! with a count.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use portolan_model::Gcra;
use tokio::time::Instant;

use crate::platform::connect_events::{Loop, NewEvent, Repeat, Step, StepTenant};

/// Budget of metadata requests that name no workspace. Names that are not known to exist share
/// another of the same size.
const DISCOVERY: Gcra = Gcra::per(200, Duration::from_secs(100));
/// Metadata requests for one workspace.
const SLUG: Gcra = Gcra::per(60, Duration::from_secs(1_200));
/// Metadata requests for all workspaces together: it takes a flood at forty of them to use that up.
const SLUGS: Gcra = Gcra::per(1_000, Duration::from_secs(500));
/// All other steps together.
const FLOW: Gcra = Gcra::per(500, Duration::from_secs(25));
/// First requests, which need a token. One network of hosted clients sends them for many people.
const REQUESTS: Gcra = Gcra::per(500, Duration::from_secs(10));
/// One network block.
const BLOCK: Gcra = Gcra::per(120, Duration::from_secs(120));
/// Blocks, workspaces, looks and loops that are remembered, of each so many; after that all are
/// forgotten.
const REMEMBERED: usize = 20_000;
/// A step of discovery that is repeated within this time tells nothing new.
const SAME: Duration = Duration::from_secs(60);
/// A loop that has paused for so long is looked for among what was written when it goes on.
const PAUSE: Duration = Duration::from_secs(3600);

/// A bucket that is full at first. Its number counts microseconds from the first use of it.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    began: Instant,
    arrival: u64,
}

impl Bucket {
    const fn full(now: Instant) -> Self {
        Self {
            began: now,
            arrival: 0,
        }
    }

    fn take(&mut self, rate: Gcra, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.began).as_micros();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        match rate.take_one(Some(self.arrival), since) {
            Ok(arrival) => {
                self.arrival = arrival;
                true
            }
            Err(_) => false,
        }
    }
}

/// How often a loop came again since that was written.
#[derive(Debug)]
struct Turns {
    /// `None`: not since.
    more: Option<Repeat>,
    heard: Instant,
}

#[derive(Debug)]
pub(super) struct Gate {
    unnamed: Bucket,
    unknown: Bucket,
    known: Bucket,
    /// The workspaces with recorded steps or valid tokens.
    slugs: HashMap<String, Bucket>,
    flow: Bucket,
    requests: Bucket,
    blocks: HashMap<String, Bucket>,
    seen: HashMap<(Step, String, Option<String>, String), Instant>,
    loops: HashMap<Loop, Turns>,
}

/// Makes space for one more entry.
fn make_room<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= REMEMBERED {
        map.clear();
    }
}

impl Gate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            unnamed: Bucket::full(now),
            unknown: Bucket::full(now),
            known: Bucket::full(now),
            slugs: HashMap::new(),
            flow: Bucket::full(now),
            requests: Bucket::full(now),
            blocks: HashMap::new(),
            seen: HashMap::new(),
            loops: HashMap::new(),
        }
    }

    /// `Some(false)`: too much. `None`: nothing new, or counted.
    pub(super) fn admit(&mut self, event: &NewEvent, now: Instant) -> Option<bool> {
        if event.step == Step::Request {
            return Some(self.requests.take(REQUESTS, now));
        }
        let in_a_loop = Loop::of(event);
        if let Some(turns) = in_a_loop
            .as_ref()
            .and_then(|which| self.loops.get_mut(which))
        {
            turns.heard = now;
            match &mut turns.more {
                Some(more) => more.add(1, event.at),
                none => *none = Repeat::of(event),
            }
            return None;
        }
        if event.step.is_discovery() && !self.is_news(event, now) {
            return None;
        }
        make_room(&mut self.blocks);
        let block = self
            .blocks
            .entry(event.ip_block.clone())
            .or_insert_with(|| Bucket::full(now));
        let is_admitted = block.take(BLOCK, now) && self.take(event, now);
        if let (true, Some(which)) = (is_admitted, in_a_loop) {
            make_room(&mut self.loops);
            let turns = Turns {
                more: None,
                heard: now,
            };
            self.loops.insert(which, turns);
        }
        Some(is_admitted)
    }

    fn is_news(&mut self, event: &NewEvent, now: Instant) -> bool {
        let key = (
            event.step,
            event.ip_block.clone(),
            event.agent.clone(),
            format!("{:?} {:?} {:?}", event.place, event.server, event.fault),
        );
        let last = self.seen.get(&key).copied();
        if last.is_some_and(|last| now.saturating_duration_since(last) < SAME) {
            return false;
        }
        make_room(&mut self.seen);
        self.seen.insert(key, now);
        true
    }

    fn take(&mut self, event: &NewEvent, now: Instant) -> bool {
        if !event.step.is_discovery() {
            return self.flow.take(FLOW, now);
        }
        match &event.place {
            StepTenant::Slug(slug) => match self.slugs.get_mut(slug) {
                Some(own) => own.take(SLUG, now) && self.known.take(SLUGS, now),
                None => self.unknown.take(DISCOVERY, now),
            },
            StepTenant::Unknown | StepTenant::Tenant(_) => self.unnamed.take(DISCOVERY, now),
        }
    }

    /// Registers that a workspace has this name.
    pub(super) fn knows(&mut self, slug: &str, now: Instant) {
        if !self.slugs.contains_key(slug) {
            make_room(&mut self.slugs);
            self.slugs.insert(slug.to_owned(), Bucket::full(now));
        }
    }

    /// Learns which names in these steps belong to a workspace.
    pub(super) fn learn(&mut self, events: &[NewEvent], somebodys: &HashSet<String>, now: Instant) {
        for event in events {
            let StepTenant::Slug(slug) = &event.place else {
                continue;
            };
            if somebodys.contains(slug) {
                self.knows(slug, now);
            } else {
                self.slugs.remove(slug);
            }
        }
    }

    /// What came again since this was asked last.
    pub(super) fn repeats(&mut self, now: Instant) -> Vec<Repeat> {
        self.loops.retain(|_, turns| {
            turns.more.is_some() || now.saturating_duration_since(turns.heard) < PAUSE
        });
        let turns = self.loops.values_mut();
        turns.filter_map(|turns| turns.more.take()).collect()
    }

    /// There is no step any more at which it could be counted: the next one is written.
    pub(super) fn forget(&mut self, which: &Loop) {
        self.loops.remove(which);
    }
}

#[cfg(test)]
mod tests {
    use portolan_model::{Timestamp, id::GrantId};

    use super::*;
    use crate::platform::{connect_events::StepOutcome, recorder::bare};

    fn event(step: Step, block: &str) -> NewEvent {
        bare(
            Timestamp::UNIX_EPOCH,
            step,
            "1",
            block.to_owned(),
            Some("x/1"),
        )
    }

    fn look(slug: &str, block: &str) -> NewEvent {
        let mut event = event(Step::Challenge, block);
        event.place = StepTenant::Slug(slug.to_owned());
        event
    }

    /// Of so many, each from a network of its own.
    fn admitted(gate: &mut Gate, many: u32, now: Instant, event: impl Fn(u32) -> NewEvent) -> u32 {
        let mut admitted = 0;
        for number in 0..many {
            let mut event = event(number);
            event.ip_block = format!("10.{}.{}.0/24", number / 250, number % 250);
            admitted += u32::from(gate.admit(&event, now) == Some(true));
        }
        admitted
    }

    #[test]
    fn x2_a_flood_of_strangers_writes_little() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        assert_eq!(admitted(&mut gate, 60_000, now, |_| look("acme", "")), 200);
        let flow = event(Step::Authorize, "192.0.2.0/24");
        assert_eq!(
            gate.admit(&flow, now),
            Some(true),
            "others have their own budget"
        );
        let of_one = (0..1000)
            .filter(|_| gate.admit(&flow, now) == Some(true))
            .count();
        assert_eq!(of_one, 119, "one network cannot use it up");
        let later = now + Duration::from_secs(10);
        let again = admitted(&mut gate, 100, later, |number| {
            look(&format!("nobodys-{number}"), "")
        });
        assert_eq!(again, 20);
    }

    #[test]
    fn x2_a_flood_at_one_workspace_or_at_invented_ones_pushes_out_no_other() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        let somebodys = HashSet::from(["acme".to_owned(), "beta".to_owned()]);
        let written = [look("acme", "a"), look("nobodys", "a"), look("beta", "a")];
        gate.learn(&written, &somebodys, now);
        assert_eq!(admitted(&mut gate, 10_000, now, |_| look("acme", "")), 60);
        let invented = admitted(&mut gate, 10_000, now, |number| {
            look(&format!("nobodys-{number}"), "")
        });
        assert_eq!(invented, 200);
        assert_eq!(
            gate.admit(&look("acme", "192.0.2.0/24"), now),
            Some(false),
            "this one is what it floods"
        );
        assert_eq!(gate.admit(&look("beta", "192.0.2.0/24"), now), Some(true));
        let unnamed = event(Step::ServerMetadata, "192.0.2.0/24");
        assert_eq!(gate.admit(&unnamed, now), Some(true));
        // A name that no workspace has any more counts as invented.
        gate.learn(&[look("beta", "a")], &HashSet::new(), now);
        assert_eq!(
            gate.admit(&look("beta", "198.51.100.0/24"), now),
            Some(false)
        );
    }

    #[test]
    fn x2_many_workspaces_together_write_so_much_and_no_more() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        for number in 0..100 {
            gate.knows(&format!("w{number}"), now);
        }
        let flood = admitted(&mut gate, 50_000, now, |number| {
            look(&format!("w{}", number % 100), "")
        });
        assert_eq!(flood, 1_000);
    }

    #[test]
    fn x2_first_requests_of_a_hosted_client_are_not_bounded_by_its_network() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        let request = event(Step::Request, "192.0.2.0/24");
        let admitted = (0..400)
            .filter(|_| gate.admit(&request, now) == Some(true))
            .count();
        assert_eq!(admitted, 400);
        let flow = event(Step::Authorize, "192.0.2.0/24");
        assert_eq!(gate.admit(&flow, now), Some(true), "nor do they use it up");
    }

    #[test]
    fn the_same_look_within_a_minute_is_nothing_new() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        let look = event(Step::ServerMetadata, "192.0.2.0/24");
        assert_eq!(gate.admit(&look, now), Some(true));
        assert_eq!(gate.admit(&look, now + SAME / 2), None);
        assert_eq!(gate.admit(&look, now + SAME), Some(true));
        let register = event(Step::Register, "192.0.2.0/24");
        assert_eq!(gate.admit(&register, now), Some(true));
        assert_eq!(gate.admit(&register, now), Some(true), "#19: twice is news");
    }

    #[test]
    fn x2_a_client_that_loops_is_counted_and_uses_up_nothing() {
        let now = Instant::now();
        let mut gate = Gate::new(now);
        let mut refused = event(Step::Refresh, "192.0.2.0/24");
        refused.outcome = StepOutcome::Refused;
        refused.grant = Some(GrantId::generate());
        refused.fault = Some("the refresh token was revoked".to_owned());
        assert_eq!(gate.admit(&refused, now), Some(true));
        for turn in 1..=5_000 {
            refused.at = Timestamp::UNIX_EPOCH + time::Duration::seconds(turn);
            assert_eq!(gate.admit(&refused, now), None);
        }
        let mut another = refused.clone();
        another.fault = Some("the person was locked".to_owned());
        assert_eq!(
            gate.admit(&another, now),
            Some(true),
            "another reason is news, and there is room for it"
        );
        let repeats = gate.repeats(now);
        assert_eq!(repeats.len(), 1);
        assert_eq!(
            (repeats[0].count, repeats[0].last_at),
            (5_000, refused.at),
            "{repeats:?}"
        );
        assert!(gate.repeats(now).is_empty(), "once");
        // It goes on, is forgotten, and is written anew.
        assert_eq!(gate.admit(&refused, now), None);
        assert_eq!(gate.repeats(now).len(), 1);
        gate.forget(&repeats[0].which);
        assert_eq!(gate.admit(&refused, now), Some(true));
        gate.repeats(now + PAUSE);
        assert_eq!(gate.admit(&refused, now + PAUSE), Some(true));
    }
}
