//! Token exchange: a job of a CI system gets a token of the management API (RFC 8693; API-16 to
//! API-22).
//!
//! ```text
//! form ─► rate of the address ─► iss ─► trusts of that workspace with this issuer
//!     ─► keys of the issuer ─► signature, times ─► audience, subject, claims of each trust
//!     ─► rate of the workspace ─► one transaction: the JWT is used up, the token and its entry
//! ```
//!
//! Each refusal before the rate of the workspace has one text. The admins of the workspace see the
//! reason (API-20).

use portolan_keys::{JobClaims, SubjectToken, SubjectTokenError};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::{PipelineId, TenantId},
    pipeline::RefusalReason,
};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, StorageError,
    accounts::trusted_pipelines::{self, TrustedPipeline},
    platform::audit,
};
use serde_json::{Map, Value, json};
use time::Duration;

use crate::{
    error::OAuthError,
    parameters::Parameters,
    token::{
        form::Tokens,
        workspace_token::{self, NewToken, WantedToken},
    },
};

/// The grant type.
pub(crate) const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The type of the token in the answer (RFC 8693 §3).
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Accepted types of the subject token.
const SUBJECT_TYPES: [&str; 2] = [
    "urn:ietf:params:oauth:token-type:jwt",
    "urn:ietf:params:oauth:token-type:id_token",
];

/// The one text for every job that gets no token.
const NOT_ADMITTED: OAuthError =
    OAuthError::invalid_grant("no trusted pipeline of this workspace admits the subject token");

/// Claims of GitHub and GitLab that the audit entry has, if the job has them.
const NAMED: [&str; 16] = [
    "repository",
    "ref",
    "environment",
    "event_name",
    "workflow_ref",
    "job_workflow_ref",
    "sha",
    "run_id",
    "run_attempt",
    "actor",
    "project_path",
    "ref_type",
    "pipeline_id",
    "pipeline_source",
    "job_id",
    "user_login",
];

/// Longest claim in an audit entry or a refusal, in characters.
const LONGEST: usize = 255;

/// A request, read.
struct ExchangeRequest<'a> {
    jwt: &'a str,
    wanted: WantedToken,
}

/// Why a trust did not admit a job.
struct JobRefusal {
    pipeline: PipelineId,
    reason: RefusalReason,
    /// The claim that does not fit; empty before the signature is verified.
    seen: String,
}

/// Exchanges the JWT of a job.
pub(crate) async fn exchange(
    state: &AuthState,
    context: &RequestContext,
    form: &Parameters,
) -> Result<Tokens, OAuthError> {
    let asked = read(state, form)?;
    workspace_token::take_request(state, context).await?;
    let token = SubjectToken::read(asked.jwt).map_err(|_| NOT_ADMITTED)?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    let slug = asked.wanted.workspace.as_str();
    let found = trusted_pipelines::of_issuer(&mut tx, slug, token.issuer()).await?;
    drop(tx);
    let (tenant, trusts) = found.ok_or(NOT_ADMITTED)?;
    match judge(state, &token, &trusts).await {
        Ok((job, trust)) => issue(state, context, &asked.wanted, (tenant, trust), &job).await,
        Err(refusals) => Err(refuse(state, tenant, refusals).await?),
    }
}

fn read<'a>(state: &AuthState, form: &'a Parameters) -> Result<ExchangeRequest<'a>, OAuthError> {
    let jwt = form
        .first("subject_token")
        .ok_or(OAuthError::invalid_request("subject_token is missing"))?;
    let subject_type = form.first("subject_token_type");
    if !subject_type.is_some_and(|kind| SUBJECT_TYPES.contains(&kind)) {
        return Err(OAuthError::invalid_request(
            "subject_token_type must be urn:ietf:params:oauth:token-type:jwt or urn:ietf:params:oauth:token-type:id_token",
        ));
    }
    if form.first("actor_token").is_some() {
        return Err(OAuthError::invalid_request("actor_token is not supported"));
    }
    let wanted_type = form.first("requested_token_type");
    if wanted_type.is_some_and(|kind| kind != ACCESS_TOKEN) {
        return Err(OAuthError::invalid_request(
            "requested_token_type must be urn:ietf:params:oauth:token-type:access_token",
        ));
    }
    Ok(ExchangeRequest {
        jwt,
        wanted: WantedToken::read(state, form)?,
    })
}

/// The claims of a valid token, and the trust that admits them. Of several, the one with the
/// strongest role, then with the most scopes, then the oldest (API-18).
async fn judge<'a>(
    state: &AuthState,
    token: &SubjectToken<'_>,
    trusts: &'a [TrustedPipeline],
) -> Result<(JobClaims, &'a TrustedPipeline), Vec<JobRefusal>> {
    let unproved = |reason| {
        let refusal = |trust: &TrustedPipeline| JobRefusal {
            pipeline: trust.id,
            reason,
            seen: String::new(),
        };
        trusts.iter().map(refusal).collect::<Vec<_>>()
    };
    let job = verified(state, token).await.map_err(unproved)?;
    let refusals: Vec<_> = trusts.iter().map(|trust| misfit(trust, &job)).collect();
    let admitting = trusts
        .iter()
        .zip(&refusals)
        .filter(|(_, refusal)| refusal.is_none())
        .map(|(trust, _)| trust);
    // The last of equal ones counts.
    let best = admitting
        .rev()
        .max_by_key(|one| (one.trust.role, one.trust.scopes.len()));
    match best {
        Some(trust) => Ok((job, trust)),
        None => Err(refusals.into_iter().flatten().collect()),
    }
}

async fn verified(state: &AuthState, token: &SubjectToken<'_>) -> Result<JobClaims, RefusalReason> {
    let (issuers, now) = (&state.oauth.pipeline_issuers, state.now());
    let keys = issuers.keys(&state.egress, token.issuer(), now).await;
    let keys = keys.ok_or(RefusalReason::Issuer)?;
    let job = match token.verify(&keys.keys, &keys.algorithms, now) {
        // The issuer may just have rotated its keys.
        Err(SubjectTokenError::UnknownKey) => {
            let keys = issuers.newer_keys(&state.egress, token.issuer(), now).await;
            let keys = keys.ok_or(RefusalReason::Issuer)?;
            token.verify(&keys.keys, &keys.algorithms, now)
        }
        other => other,
    };
    job.map_err(|error| match error {
        SubjectTokenError::Malformed | SubjectTokenError::Header | SubjectTokenError::Claims => {
            RefusalReason::Form
        }
        SubjectTokenError::Time => RefusalReason::Time,
        SubjectTokenError::UnknownKey => RefusalReason::Key,
        SubjectTokenError::Signature => RefusalReason::Signature,
    })
}

/// The first condition of a trust that a job does not meet.
fn misfit(pipeline: &TrustedPipeline, job: &JobClaims) -> Option<JobRefusal> {
    let trust = &pipeline.trust;
    let refusal = |reason, seen: &str| JobRefusal {
        pipeline: pipeline.id,
        reason,
        seen: kept(seen),
    };
    if job.audience.as_ref() != Some(&trust.audience) {
        let seen = job.audience.as_deref().unwrap_or_default();
        return Some(refusal(RefusalReason::Audience, seen));
    }
    if !trust.subject.admits(&job.subject) {
        return Some(refusal(RefusalReason::Subject, &job.subject));
    }
    trust.claims.iter().find_map(|(name, value)| {
        let given = job.text(name);
        let seen = || match &given {
            Some(given) => format!("{name}: {given}"),
            None => name.clone(),
        };
        (given.as_ref() != Some(value)).then(|| refusal(RefusalReason::Claim, &seen()))
    })
}

/// A claim as it is stored. Postgres does not store every character, and an issuer may write any.
fn kept(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(LONGEST)
        .collect()
}

/// Counts the refusals, and returns the answer.
async fn refuse(
    state: &AuthState,
    tenant: TenantId,
    refusals: Vec<JobRefusal>,
) -> Result<OAuthError, StorageError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    for refusal in refusals {
        let reason = refusal.reason;
        tracing::info!(tenant.id = %tenant, pipeline.id = %refusal.pipeline, %reason, "a job got no token");
        let why = (reason, refusal.seen.as_str());
        trusted_pipelines::note_refusal(&mut tx, tenant, refusal.pipeline, why, now).await?;
    }
    tx.commit().await?;
    Ok(NOT_ADMITTED)
}

/// Makes the token. The JWT is used up in the same transaction: of two requests with one JWT, the
/// second waits and finds it used.
async fn issue(
    state: &AuthState,
    context: &RequestContext,
    wanted: &WantedToken,
    (tenant, pipeline): (TenantId, &TrustedPipeline),
    job: &JobClaims,
) -> Result<Tokens, OAuthError> {
    let trust = &pipeline.trust;
    let scopes = wanted.scopes_of(&trust.scopes)?;
    let life = Duration::minutes(trust.minutes.into());
    let token = NewToken::generate(state, tenant, scopes, life).await?;
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    if !trusted_pipelines::use_up(&mut tx, tenant, &job.digest, job.expires_at).await? {
        drop(tx);
        let refusal = JobRefusal {
            pipeline: pipeline.id,
            reason: RefusalReason::Replay,
            seen: kept(&job.subject),
        };
        return Err(refuse(state, tenant, vec![refusal]).await?);
    }
    if !trusted_pipelines::issue(&mut tx, tenant, pipeline, &token.stored(), now).await? {
        // The trust was changed or removed a moment ago.
        return Err(NOT_ADMITTED);
    }
    let event = entry(tenant, pipeline, &token, job);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(token.answer(Some(ACCESS_TOKEN)))
}

fn entry(tenant: TenantId, pipeline: &TrustedPipeline, token: &NewToken, job: &JobClaims) -> Event {
    let trust = &pipeline.trust;
    let claims: Map<String, Value> = NAMED
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), kept(&job.text(name)?).into())))
        .collect();
    Event {
        tenant: Some(tenant),
        // The job is none of the known actors: its claims stand in the entry.
        actor: Actor::Anonymous,
        action: "access_token.issued",
        target_kind: "access_token",
        target_id: token.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({
            "name": trust.name, "pipeline": pipeline.id, "issuer": trust.issuer, "sub": kept(&job.subject),
            "claims": claims, "role": trust.role, "scopes": token.scopes, "minutes": trust.minutes,
        }),
    }
}
