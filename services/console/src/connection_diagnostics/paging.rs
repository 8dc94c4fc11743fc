//! Pages of attempts. Steps are read in the order of time, and attempts overlap. Each attempt
//! appears on one page, with all of its steps.

use portolan_model::Timestamp;
use portolan_storage::platform::connect_events::{Read, TOGETHER};

use crate::connection_diagnostics::attempts::{ClientAttempt, assemble};

/// A position in the list of attempts: the time of the first step, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptPosition {
    /// The time.
    pub began: Timestamp,
    /// The number, which orders attempts of the same time.
    pub number: i64,
}

/// One page of the list.
#[derive(Debug)]
pub struct AttemptPage {
    /// The newest first.
    pub attempts: Vec<ClientAttempt>,
    /// The beginning of the next page; `None` after the last one.
    pub next: Option<AttemptPosition>,
}

/// The treatment of attempts whose first steps may not have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialAttempts {
    /// They are left to a later page.
    Left,
    /// They are shown as far as they were read.
    Accepted,
}

/// Returns at most `most` attempts before a position.
///
/// An attempt appears on the page of its beginning, with all of its steps. An attempt whose first
/// steps may not have been read is left to a later page. If that leaves none, the result is `None`:
/// read more steps, or accept partial ones.
pub fn page(
    read: Read,
    before: Option<AttemptPosition>,
    most: usize,
    partial: PartialAttempts,
    now: Timestamp,
) -> Option<AttemptPage> {
    let since = read.since;
    let mut attempts = assemble(read.events, now);
    attempts.retain(|attempt| before.is_none_or(|before| attempt.place() < before));
    let margin = match partial {
        PartialAttempts::Accepted => time::Duration::ZERO,
        PartialAttempts::Left => TOGETHER,
    };
    attempts.retain(|attempt| since.is_none_or(|since| attempt.began() > since + margin));
    let has_more = since.is_some() || attempts.len() > most;
    attempts.truncate(most);
    let next = match (attempts.last(), since) {
        (Some(last), _) => Some(last.place()),
        (None, Some(_)) if partial == PartialAttempts::Left => return None,
        // No attempt began since then: the next page has the earlier ones.
        (None, since) => since.map(|began| AttemptPosition {
            began,
            number: i64::MAX,
        }),
    };
    Some(AttemptPage {
        attempts,
        next: next.filter(|_| has_more),
    })
}

#[cfg(test)]
mod tests {
    use portolan_model::id::{GrantId, RequestId, TenantId};
    use portolan_storage::platform::connect_events::{RecordedStep, Step};
    use time::Duration;

    use super::*;
    use crate::connection_diagnostics::attempts::tests::{at, event, steps, way};

    /// Simulates [`portolan_storage::platform::connect_events::list`] over these events: the newest first,
    /// with the other steps of their attempts. It omits steps without a workspace.
    fn read(events: &[RecordedStep], before: Option<AttemptPosition>, limit: usize) -> Read {
        let mut by_then: Vec<&RecordedStep> = events
            .iter()
            .filter(|event| before.is_none_or(|before| event.at <= before.began))
            .collect();
        by_then.sort_by_key(|event| std::cmp::Reverse((event.at, event.id)));
        let since = by_then.get(limit).map(|event| event.at);
        by_then.truncate(limit);
        let soon = events.iter().filter(|event| {
            before.is_some_and(|before| {
                event.at > before.began && event.at <= before.began + Duration::HOUR
            })
        });
        let paged: Vec<&RecordedStep> = by_then.into_iter().chain(soon).collect();
        let mut flows: Vec<_> = paged.iter().filter_map(|one| one.authorization).collect();
        let mut grants: Vec<_> = paged.iter().filter_map(|one| one.grant).collect();
        let is_in = |event: &RecordedStep, flows: &[RequestId], grants: &[GrantId]| {
            event.authorization.is_some_and(|one| flows.contains(&one))
                || event.grant.is_some_and(|one| grants.contains(&one))
        };
        let known = (flows.clone(), grants.clone());
        for event in events {
            if is_in(event, &known.0, &known.1) {
                flows.extend(event.authorization);
                grants.extend(event.grant);
            }
        }
        let ids: Vec<i64> = paged.iter().map(|event| event.id).collect();
        let wanted = events
            .iter()
            .filter(|event| ids.contains(&event.id) || is_in(event, &flows, &grants));
        Read {
            events: wanted.cloned().collect(),
            since,
        }
    }

    /// Clients that arrive every 50 s and take two and a half minutes. Every seventh has a refresh
    /// that is refused a day later.
    fn busy(clients: i64) -> Vec<RecordedStep> {
        let tenant = TenantId::generate();
        let mut events = Vec::new();
        for client in 0..clients {
            let agent = format!("app-{client}/1");
            let mut steps = way(0, &format!("cli_{client}"), tenant);
            let grant = steps[6].grant;
            if client % 7 == 0 {
                let mut refused = event(0, Step::Refresh, "");
                (refused.grant, refused.tenant) = (grant, Some(tenant));
                steps.push(refused);
            }
            for (number, mut step) in (0..).zip(steps) {
                let late = if step.step == Step::Refresh {
                    86_400
                } else {
                    0
                };
                step.at = at(client * 50 + number * 20 + late);
                step.id = client * 100 + number;
                if step.step != Step::Authorize && step.step != Step::Consent {
                    step.agent = Some(agent.clone());
                }
                events.push(step);
            }
        }
        events.sort_by_key(|event| event.at);
        events
    }

    #[test]
    fn x2_an_attempt_stands_on_one_page_with_all_of_its_steps() {
        let events = busy(60);
        let (mut before, mut found, mut pages) = (None, Vec::new(), 0);
        loop {
            let page = page(
                read(&events, before, 150),
                before,
                7,
                PartialAttempts::Left,
                at(200_000),
            )
            .unwrap();
            pages += 1;
            found.extend(page.attempts);
            match page.next {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        assert!(pages > 8, "{pages}");
        let clients: Vec<_> = found
            .iter()
            .map(|one| one.last(|event| event.client_id.as_deref()).unwrap())
            .collect();
        let wanted: Vec<String> = (0..60)
            .rev()
            .map(|number| format!("cli_{number}"))
            .collect();
        assert_eq!(clients, wanted);
        for (client, attempt) in (0..60).rev().zip(&found) {
            let many = 8 + usize::from(client % 7 == 0);
            assert_eq!(attempt.steps.len(), many, "{client}: {:?}", steps(attempt));
        }
    }

    #[test]
    fn x2_what_is_too_long_to_be_read_whole_is_told_as_far_as_it_was_read() {
        let looks: Vec<RecordedStep> = (0..1_000)
            .map(|second| event(second, Step::Challenge, "loop/1"))
            .collect();
        let now = at(200_000);
        assert!(
            page(
                read(&looks, None, 100),
                None,
                50,
                PartialAttempts::Left,
                now
            )
            .is_none()
        );
        let cut = page(
            read(&looks, None, 100),
            None,
            50,
            PartialAttempts::Accepted,
            now,
        )
        .unwrap();
        assert_eq!(cut.attempts.len(), 1);
        let next = cut.next.unwrap();
        assert!(next.began > at(800), "{next:?}");
        let whole = page(
            read(&looks, None, 5_000),
            None,
            50,
            PartialAttempts::Left,
            now,
        )
        .unwrap();
        assert_eq!((whole.attempts[0].steps.len(), whole.next), (1_000, None));
    }
}
