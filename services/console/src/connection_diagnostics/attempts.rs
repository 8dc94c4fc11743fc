//! Combines steps into attempts. An attempt is one try of a client to connect, from its first
//! metadata request to its first MCP request.
//!
//! An authorization request, its later steps and its grant belong together with certainty. Earlier
//! steps are joined by client and by computer, if they came a short time before. The remaining
//! steps are attempts that ended before a page was shown.

use std::collections::BTreeMap;

use portolan_model::{
    Timestamp,
    id::{GrantId, RequestId},
};
use portolan_storage::platform::connect_events::{RecordedStep, Step, StepOutcome, TOGETHER};

use crate::connection_diagnostics::{
    known::{self, KnownFault},
    paging::AttemptPosition,
};

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    /// The client connected, and was not refused since.
    Connected,
    /// A person has to act: sign in, or decide.
    Waiting,
    /// A rule refused it, or the person did.
    Refused,
    /// This service failed.
    Failed,
    /// The client did not continue.
    Stopped,
}

impl AttemptState {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// One attempt of a client to connect.
#[derive(Debug, Clone)]
pub struct ClientAttempt {
    /// Its steps, in order; at least one.
    pub steps: Vec<RecordedStep>,
    /// Its state.
    pub state: AttemptState,
    /// The last step that it reached.
    pub reached: Step,
    /// Known faults of clients that match.
    pub known: Vec<&'static KnownFault>,
}

impl ClientAttempt {
    fn of(mut steps: Vec<RecordedStep>, now: Timestamp) -> Self {
        steps.sort_by_key(|event| (event.at, event.id));
        let last = decisive(&steps);
        let (mut state, reached) = last.map_or((AttemptState::Stopped, Step::Challenge), |event| {
            (state_of(event, now), event.step)
        });
        // A client that connected and continues is connected. A refused last step overrides earlier
        // successes.
        let got_in = steps
            .iter()
            .any(|event| event.step == Step::Request && event.outcome == StepOutcome::Ok);
        if got_in && !matches!(state, AttemptState::Refused | AttemptState::Failed) {
            state = AttemptState::Connected;
        }
        let mut attempt = Self {
            steps,
            state,
            reached,
            known: Vec::new(),
        };
        attempt.known = known::fitting(&attempt);
        attempt
    }

    /// Time of its first step.
    pub fn began(&self) -> Timestamp {
        self.steps
            .first()
            .map_or(Timestamp::UNIX_EPOCH, |event| event.at)
    }

    /// Time of its last step.
    pub fn ended(&self) -> Timestamp {
        self.steps
            .iter()
            .map(|event| event.last_at.unwrap_or(event.at))
            .max()
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Its position in the list, which begins with the newest.
    pub fn place(&self) -> AttemptPosition {
        AttemptPosition {
            began: self.began(),
            number: self.number(),
        }
    }

    /// The last value that `told` returns for a step.
    pub fn last<'a, T: ?Sized>(
        &'a self,
        told: impl Fn(&'a RecordedStep) -> Option<&'a T>,
    ) -> Option<&'a T> {
        self.steps.iter().rev().find_map(told)
    }

    /// Returns true if it has a step with this outcome.
    pub fn has(&self, step: Step, outcome: StepOutcome) -> bool {
        self.steps
            .iter()
            .any(|event| event.step == step && event.outcome == outcome)
    }

    /// A stable id while the attempt continues: the number of its first step.
    pub fn number(&self) -> i64 {
        self.steps.first().map_or(0, |event| event.id)
    }
}

/// The step that determines the state of an attempt: the last one that is no metadata request.
/// Later metadata requests do not hide a refusal.
fn decisive(steps: &[RecordedStep]) -> Option<&RecordedStep> {
    steps
        .iter()
        .rev()
        .find(|event| !event.step.is_discovery())
        .or_else(|| steps.last())
}

fn state_of(event: &RecordedStep, now: Timestamp) -> AttemptState {
    match (event.step, event.outcome) {
        (_, StepOutcome::Refused) => AttemptState::Refused,
        (_, StepOutcome::Failed) => AttemptState::Failed,
        (Step::Request, StepOutcome::Ok) => AttemptState::Connected,
        // A person may need the hour that a request lives; a program does not.
        (
            Step::Authorize | Step::SignIn | Step::Consent,
            StepOutcome::Ok | StepOutcome::Waiting,
        ) if event.at + time::Duration::HOUR > now => AttemptState::Waiting,
        (_, _) if event.at + time::Duration::MINUTE > now => AttemptState::Waiting,
        _ => AttemptState::Stopped,
    }
}

/// Combines these steps into attempts, the newest first.
pub fn assemble(events: Vec<RecordedStep>, now: Timestamp) -> Vec<ClientAttempt> {
    let (mut flows, mut loose) = flows(events);
    let begins: Begins = flows
        .iter()
        .map(|(request, steps)| (*request, begin(steps)))
        .collect();
    join_by_client(&mut flows, &begins, &mut loose);
    join_by_place(&mut flows, &begins, &mut loose);
    let mut attempts: Vec<ClientAttempt> = flows
        .into_values()
        .chain(by_computer(loose))
        .map(|steps| ClientAttempt::of(steps, now))
        .collect();
    attempts.sort_by_key(|attempt| std::cmp::Reverse((attempt.began(), attempt.number())));
    attempts
}

type Flows = BTreeMap<RequestId, Vec<RecordedStep>>;

/// The time of each authorization request.
type Begins = BTreeMap<RequestId, Timestamp>;

/// Splits steps into authorization requests with their later steps, and the rest.
fn flows(events: Vec<RecordedStep>) -> (Flows, Vec<RecordedStep>) {
    let by_grant: BTreeMap<GrantId, RequestId> = events
        .iter()
        .filter_map(|event| Some((event.grant?, event.authorization?)))
        .collect();
    let mut flows = Flows::new();
    let mut loose = Vec::new();
    for event in events {
        let of = event
            .authorization
            .or_else(|| event.grant.and_then(|grant| by_grant.get(&grant).copied()));
        match of {
            Some(request) => flows.entry(request).or_default().push(event),
            None => loose.push(event),
        }
    }
    (flows, loose)
}

fn begin(steps: &[RecordedStep]) -> Timestamp {
    steps
        .iter()
        .map(|event| event.at)
        .min()
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

fn same_computer(one: &RecordedStep, other: &RecordedStep) -> bool {
    one.ip_block.is_some() && one.ip_block == other.ip_block && one.agent == other.agent
}

/// Joins steps of a named client: those a short time before an authorization request of it, or a
/// refused exchange a short time after.
fn join_by_client(flows: &mut Flows, begins: &Begins, loose: &mut Vec<RecordedStep>) {
    let left = std::mem::take(loose);
    for event in left {
        let of = event.client_id.as_deref().and_then(|client| {
            flows
                .iter()
                .filter_map(|(request, steps)| {
                    let from = *begins.get(request)?;
                    let is_its = steps
                        .iter()
                        .any(|step| step.client_id.as_deref() == Some(client));
                    let is_near = if event.step == Step::Token {
                        (from..=from + TOGETHER).contains(&event.at)
                    } else {
                        (event.at..=event.at + TOGETHER).contains(&from)
                    };
                    (is_its && is_near).then(|| ((from - event.at).abs(), *request))
                })
                .min()
                .map(|(_, request)| request)
        });
        match of.and_then(|request| flows.get_mut(&request)) {
            Some(steps) => steps.push(event),
            None => loose.push(event),
        }
    }
}

/// Joins steps without a named client to an attempt. Either a step of the attempt came from the
/// same computer, a short time before its authorization request. Or no such step is known, and they
/// concern the same server right before it.
fn join_by_place(flows: &mut Flows, begins: &Begins, loose: &mut Vec<RecordedStep>) {
    const RIGHT_BEFORE: time::Duration = time::Duration::minutes(2);
    let left = std::mem::take(loose);
    for event in left {
        let of = flows
            .iter()
            .filter_map(|(request, steps)| {
                let from = *begins.get(request)?;
                let wait = from - event.at;
                if event.client_id.is_some() || wait.is_negative() || wait > TOGETHER {
                    return None;
                }
                let is_same = steps.iter().any(|step| same_computer(step, &event));
                let is_near = wait <= RIGHT_BEFORE
                    && event.tenant.is_some()
                    && steps
                        .iter()
                        .any(|step| step.tenant == event.tenant && step.server == event.server)
                    && !steps
                        .iter()
                        .any(|step| matches!(step.step, Step::Token | Step::Register));
                (is_same || is_near).then_some((wait, *request))
            })
            .min();
        match of.and_then(|(_, request)| flows.get_mut(&request)) {
            Some(steps) => steps.push(event),
            None => loose.push(event),
        }
    }
}

/// Groups the remaining steps by computer. A pause begins a new attempt.
fn by_computer(loose: Vec<RecordedStep>) -> Vec<Vec<RecordedStep>> {
    let mut attempts: Vec<Vec<RecordedStep>> = Vec::new();
    for event in loose {
        let before = attempts.iter_mut().rev().find(|steps| {
            steps
                .last()
                .is_some_and(|last| same_computer(last, &event) && event.at - last.at <= TOGETHER)
        });
        match before {
            Some(steps) => steps.push(event),
            None => attempts.push(vec![event]),
        }
    }
    attempts
}

#[cfg(test)]
pub(crate) mod tests {
    use portolan_model::id::TenantId;
    use serde_json::json;
    use time::Duration;

    use super::*;

    pub(crate) fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::days(20_000) + Duration::seconds(seconds)
    }

    pub(crate) fn event(seconds: i64, step: Step, agent: &str) -> RecordedStep {
        RecordedStep {
            id: seconds,
            at: at(seconds),
            tenant: None,
            step,
            outcome: StepOutcome::Ok,
            request_id: Some(seconds.to_string()),
            authorization: None,
            grant: None,
            user: None,
            user_name: None,
            client_id: None,
            client_name: None,
            server: None,
            ip_block: Some("192.0.2.0/24".to_owned()),
            agent: Some(agent.to_owned()),
            rule: None,
            fault: None,
            detail: json!({}),
            repeats: 0,
            last_at: None,
        }
    }

    fn of(mut event: RecordedStep, client: &str) -> RecordedStep {
        event.client_id = Some(client.to_owned());
        event
    }

    pub(crate) fn steps(attempt: &ClientAttempt) -> Vec<Step> {
        attempt.steps.iter().map(|event| event.step).collect()
    }

    /// All steps of a successful client, from `start` on.
    pub(crate) fn way(start: i64, client: &str, tenant: TenantId) -> Vec<RecordedStep> {
        let (request, grant) = (RequestId::generate(), GrantId::generate());
        let mut events = vec![
            event(start, Step::Challenge, "app/1"),
            event(start + 1, Step::ResourceMetadata, "app/1"),
            event(start + 2, Step::ServerMetadata, "app/1"),
            of(event(start + 3, Step::Register, "app/1"), client),
            of(event(start + 4, Step::Authorize, "browser"), client),
            of(event(start + 5, Step::Consent, "browser"), client),
            of(event(start + 6, Step::Token, "app/1"), client),
            event(start + 7, Step::Request, "app/1"),
        ];
        for event in &mut events {
            if matches!(event.step, Step::Authorize | Step::Consent) {
                event.authorization = Some(request);
            }
            if matches!(event.step, Step::Consent | Step::Token | Step::Request) {
                event.grant = Some(grant);
            }
            if !matches!(event.step, Step::ServerMetadata | Step::Register) {
                event.tenant = Some(tenant);
            }
        }
        events
    }

    #[test]
    fn x2_the_whole_way_is_one_attempt() {
        let tenant = TenantId::generate();
        let mut events = way(0, "cli_1", tenant);
        events.extend(way(300, "cli_1", tenant));
        let attempts = assemble(events, at(1000));
        assert_eq!(
            attempts.len(),
            2,
            "two tries of one client are two attempts"
        );
        for attempt in &attempts {
            assert_eq!(attempt.state, AttemptState::Connected);
            assert_eq!(
                steps(attempt),
                [
                    Step::Challenge,
                    Step::ResourceMetadata,
                    Step::ServerMetadata,
                    Step::Register,
                    Step::Authorize,
                    Step::Consent,
                    Step::Token,
                    Step::Request
                ]
            );
        }
    }

    #[test]
    fn x2_an_attempt_says_where_it_stopped() {
        let tenant = TenantId::generate();
        let mut events = way(0, "cli_1", tenant);
        events.truncate(7);
        events[6].outcome = StepOutcome::Refused;
        events[6].grant = None;
        let attempts = assemble(events.clone(), at(30));
        assert_eq!(
            attempts.len(),
            1,
            "a refused exchange is found by its client"
        );
        assert_eq!(attempts[0].state, AttemptState::Refused);
        assert_eq!(attempts[0].reached, Step::Token);

        events.truncate(4);
        let attempts = assemble(events.clone(), at(500));
        assert_eq!(attempts.len(), 1);
        assert_eq!(
            (attempts[0].state, attempts[0].reached),
            (AttemptState::Stopped, Step::Register)
        );
        assert_eq!(
            assemble(events, at(20))[0].state,
            AttemptState::Waiting,
            "it may go on"
        );
    }

    /// A blocked app is refused at its next refresh: its row must not show it as connected any
    /// more.
    #[test]
    fn bug_9_an_attempt_whose_last_step_was_refused_is_not_connected() {
        let refresh = |seconds, outcome, grant| {
            let mut event = of(event(seconds, Step::Refresh, "app/1"), "cli_1");
            (event.outcome, event.grant) = (outcome, grant);
            event
        };
        let mut events = way(0, "cli_1", TenantId::generate());
        let grant = events[7].grant;
        events.push(refresh(3600, StepOutcome::Ok, grant));
        let state = |events: &[RecordedStep]| assemble(events.to_vec(), at(9000))[0].state;
        assert_eq!(state(&events), AttemptState::Connected);
        events.push(refresh(7200, StepOutcome::Refused, grant));
        assert_eq!(state(&events), AttemptState::Refused);
        events.push(refresh(7300, StepOutcome::Ok, grant));
        assert_eq!(state(&events), AttemptState::Connected, "it came back");
    }

    #[test]
    fn x2_computers_and_pauses_keep_attempts_apart() {
        let events = vec![
            event(0, Step::Challenge, "one/1"),
            event(10, Step::Challenge, "two/1"),
            event(20, Step::ResourceMetadata, "one/1"),
            event(2000, Step::Challenge, "one/1"),
        ];
        let attempts = assemble(events, at(3000));
        let sizes: Vec<usize> = attempts.iter().map(|one| one.steps.len()).collect();
        assert_eq!(sizes, [1, 1, 2]);
    }
}
