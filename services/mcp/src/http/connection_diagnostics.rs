//! Connection diagnostics of new clients (AUTH-X2): the first steps of a connection.
//!
//! The steps are the challenge with the authorization server, the read of the metadata, and the
//! first request. Later requests only need a lookup in a set.

use http::{header, request::Parts};
use portolan_keys::digest;
use portolan_model::{Timestamp, id::GrantId, subject::Subject};
use portolan_net::{client_ip, layers::Arrival};
use portolan_storage::platform::{
    connect_events::{KEPT, NewEvent, Step, StepOutcome, StepTenant},
    recorder::{Recorder, bare, kept},
};
use quick_cache::sync::Cache;

use crate::{caller::Caller, error::McpError, target::Target};

/// Records the steps of new clients.
#[derive(Debug)]
pub(crate) struct ConnectionDiagnostics {
    recorder: Recorder,
    /// Grants whose first request is recorded, good and refused requests apart.
    known: Cache<(GrantId, bool), ()>,
}

fn step(step: Step, parts: &Parts, arrival: &Arrival, now: Timestamp) -> NewEvent {
    let agent = parts
        .headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let block = client_ip::block(arrival.client_ip()).to_string();
    bare(now, step, arrival.request_id(), block, agent)
}

fn at(mut event: NewEvent, target: &Target<'_>) -> NewEvent {
    event.place = target.tenant.map_or(StepTenant::Unknown, |slug| {
        StepTenant::Slug(slug.to_owned())
    });
    event.server = target.server.map(str::to_owned);
    event
}

impl ConnectionDiagnostics {
    /// The set has as many entries as the cache of tokens.
    pub(crate) fn new(recorder: Recorder, remembered: usize) -> Self {
        Self {
            recorder,
            known: Cache::new(remembered.max(1)),
        }
    }

    /// Records that a request without a token was sent to the metadata.
    ///
    /// Expired tokens are not recorded: their clients refresh them.
    pub(crate) fn challenged(
        &self,
        target: &Target<'_>,
        error: &McpError,
        parts: &Parts,
        arrival: &Arrival,
        now: Timestamp,
    ) {
        let is_bare = !parts.headers.contains_key(header::AUTHORIZATION);
        if is_bare && matches!(error, McpError::Unauthorized(_)) {
            self.recorder
                .record(at(step(Step::Challenge, parts, arrival, now), target));
        }
    }

    /// Records that a client read the metadata of a server.
    pub(crate) fn read_metadata(
        &self,
        target: &Target<'_>,
        parts: &Parts,
        arrival: &Arrival,
        now: Timestamp,
    ) {
        self.recorder.record(at(
            step(Step::ResourceMetadata, parts, arrival, now),
            target,
        ));
    }

    /// Records a request with a good token, whether it may use the target or not.
    pub(crate) fn came(
        &self,
        target: &Target<'_>,
        caller: &Caller,
        refused: Option<&McpError>,
        parts: &Parts,
        arrival: &Arrival,
        now: Timestamp,
    ) {
        let claims = &caller.claims;
        let Subject::User(user) = claims.sub else {
            return;
        };
        // Keys are not grants: they have no connection steps.
        if claims.client_id.starts_with("key_") {
            return;
        }
        // A grant older than the kept steps is not new, even if this node forgot it.
        if self.known.get(&(claims.gid, refused.is_some())).is_some() || is_older(claims.gid, now) {
            return;
        }
        let mut event = at(step(Step::Request, parts, arrival, now), target)
            .of_client(&claims.client_id, digest(claims.client_id.as_bytes()));
        event.place = StepTenant::Tenant(claims.tid);
        event.user = Some(user);
        event.grant = Some(claims.gid);
        if let Some(error) = refused {
            event.outcome = StepOutcome::Refused;
            event.rule = Some("4.5");
            event.fault = kept(match error {
                McpError::Unauthorized(challenge) => challenge.sentence(),
                _ => "the token does not open this address",
            });
        }
        if let (Some(slug), None) = (target.tenant, refused) {
            self.recorder.knows(slug);
        }
        // A step that the recorder did not take is recorded at the next request.
        if self.recorder.record(event) {
            self.known.insert((claims.gid, refused.is_some()), ());
        }
    }
}

/// Whether a grant is older than the oldest kept step, from the time in its id.
fn is_older(grant: GrantId, now: Timestamp) -> bool {
    grant.uuid().get_timestamp().is_some_and(|made| {
        let (seconds, _) = made.to_unix();
        let kept_since = (now - KEPT).unix_timestamp();
        i64::try_from(seconds).is_ok_and(|seconds| seconds < kept_since)
    })
}
