//! Trusted pipelines: CI jobs that exchange their own JWT for a token of the workspace
//! (API-16 to API-22). For admins, in a browser. The exchange itself is an endpoint of OAuth.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    api_scope::ApiScope,
    id::{PipelineId, PipelineKind},
    member::{Action, Role},
    pipeline::{self, RefusalReason, SubjectPattern, is_claim_name, is_plain_text},
};
use portolan_site::{
    console_error::ConsoleError, pipeline_issuers, request_context::RequestContext,
    state::AuthState, target::ConsolePage,
};
use portolan_storage::{
    accounts::trusted_pipelines::{self as stored, Refusals, Trust},
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    listing::Listing,
    service_accounts::account_name,
    token_rights::{ScopeName, checked_scopes, may_give_role},
    workspace::Workspace,
    workspaces::RoleName,
};

/// Most trusted pipelines of a workspace.
const MOST: i64 = 20;

/// Longest life of a token, in minutes.
const MOST_MINUTES: i32 = 60;

/// Longest issuer, in bytes.
const LONGEST_ISSUER: usize = 2000;

/// A trusted pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrustedPipeline {
    #[schema(value_type = String, example = "pip_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: PipelineId,
    /// Display name, which is also the name of its tokens.
    name: String,
    /// `iss` of the JWT.
    issuer: String,
    /// `aud` of the JWT.
    audience: String,
    /// Pattern of `sub`.
    subject: String,
    /// Further claims that the JWT must have, with their values.
    claims: BTreeMap<String, String>,
    /// The role of a token.
    #[schema(value_type = RoleName)]
    role: Role,
    /// The permissions of a token.
    #[schema(value_type = Vec<ScopeName>)]
    scopes: Vec<ApiScope>,
    /// Minutes until a token expires.
    minutes: i32,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time of the last token.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
    /// Refused jobs since the last change, the newest first: one entry for each reason.
    refusals: Vec<PipelineRefusal>,
}

/// Refused jobs of a trusted pipeline, for one reason.
#[derive(Debug, Serialize, ToSchema)]
pub struct PipelineRefusal {
    #[schema(value_type = PipelineRefusalReason)]
    reason: RefusalReason,
    /// The reason as a sentence.
    message: &'static str,
    /// The claim of the last job that does not fit; absent if its signature was not verified.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    seen: String,
    /// Number of jobs.
    times: i64,
    #[serde(with = "time::serde::rfc3339")]
    last_at: OffsetDateTime,
}

/// Why jobs were refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::RefusalReason"
)]
pub(crate) enum PipelineRefusalReason {
    Issuer,
    Form,
    Key,
    Signature,
    Time,
    Audience,
    Subject,
    Claim,
    Replay,
}

impl From<Refusals> for PipelineRefusal {
    fn from(refusals: Refusals) -> Self {
        Self {
            reason: refusals.reason,
            message: refusals.reason.meaning(),
            seen: refusals.seen,
            times: refusals.times,
            last_at: refusals.last_at,
        }
    }
}

/// A trusted pipeline to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineTrust {
    /// Display name: 1 to 80 characters.
    name: String,
    /// `iss` of the JWT, as the issuer writes it, such as
    /// `https://token.actions.githubusercontent.com`. Its OpenID metadata and keys are fetched.
    issuer: String,
    /// `aud` of the JWT: 1 to 255 characters. Absent for the address of this installation.
    #[serde(default)]
    #[schema(nullable = false)]
    audience: Option<String>,
    /// Pattern of `sub`: 1 to 255 characters. `*` stands for any characters of one part between
    /// colons, at the end for all the rest. It does not begin with `*` and has at most five.
    subject: String,
    /// Further claims that the JWT must have, with their exact values: at most 10.
    #[serde(default)]
    claims: BTreeMap<String, String>,
    /// The role of a token: `admin` at most, and no stronger one than the person's own. `developer`
    /// if it is absent.
    #[serde(default = "developer")]
    #[schema(value_type = RoleName)]
    role: Role,
    /// The permissions of a token: at least one.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: Vec<ApiScope>,
    /// Minutes until a token expires: 1 to 60, and 15 if it is absent.
    #[serde(default = "quarter_of_an_hour")]
    #[schema(minimum = 1, maximum = 60)]
    minutes: i32,
}

const fn developer() -> Role {
    Role::Developer
}

const fn quarter_of_an_hour() -> i32 {
    15
}

impl PipelineTrust {
    /// The trust, if each of its parts may be. The issuer is not asked yet.
    fn checked(&self, state: &AuthState, workspace: &Workspace) -> Result<Trust, ConsoleError> {
        let name = account_name(&self.name)?.to_owned();
        let issuer = self.issuer.trim();
        if issuer.is_empty() || issuer.len() > LONGEST_ISSUER {
            let message =
                "Enter the issuer, such as `https://token.actions.githubusercontent.com`.";
            return Err(ConsoleError::invalid("issuer_missing", message).field("issuer"));
        }
        let audience = self.audience.as_deref().map(str::trim);
        let audience = audience.unwrap_or_else(|| state.site.issuer());
        if !is_plain_text(audience) {
            let message = "Enter an audience of 1 to 255 characters.";
            return Err(ConsoleError::invalid("audience_invalid", message).field("audience"));
        }
        let subject = SubjectPattern::parse(self.subject.trim()).map_err(|fault| {
            let message = format!("This is no pattern of a subject: {fault}.");
            ConsoleError::invalid("subject_invalid", message).field("subject")
        })?;
        checked_claims(&self.claims)?;
        if !pipeline::names_an_owner(issuer, &subject, &self.claims) {
            let message = "This issuer signs for the jobs of everyone. Name an owner: by the beginning of the subject, \
                           such as `repo:acme/`, or by a claim, such as `repository_id`.";
            return Err(ConsoleError::invalid("subject_too_wide", message).field("subject"));
        }
        may_give_role(workspace, self.role)?;
        let scopes = checked_scopes(&self.scopes)?;
        if !(1..=MOST_MINUTES).contains(&self.minutes) {
            let message = format!("A token of a pipeline lives 1 to {MOST_MINUTES} minutes.");
            return Err(ConsoleError::invalid("minutes_invalid", message).field("minutes"));
        }
        Ok(Trust {
            name,
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            subject,
            claims: self.claims.clone(),
            role: self.role,
            scopes,
            minutes: self.minutes,
        })
    }
}

fn checked_claims(claims: &BTreeMap<String, String>) -> Result<(), ConsoleError> {
    let refused =
        |message: String| ConsoleError::invalid("claims_invalid", message).field("claims");
    if claims.len() > pipeline::MAX_CLAIMS {
        let most = pipeline::MAX_CLAIMS;
        return Err(refused(format!("There can be {most} claims.")));
    }
    for (name, value) in claims {
        if !is_claim_name(name) {
            return Err(refused(format!(
                "`{name}` cannot be required as a further claim."
            )));
        }
        if !is_plain_text(value) {
            let message = format!("The claim `{name}` needs a value of 1 to 255 characters.");
            return Err(refused(message));
        }
    }
    Ok(())
}

fn detail(trust: &Trust) -> Value {
    json!({
        "name": trust.name, "issuer": trust.issuer, "audience": trust.audience, "subject": trust.subject.as_str(),
        "claims": trust.claims, "role": trust.role, "scopes": trust.scopes, "minutes": trust.minutes,
    })
}

/// Fetches metadata and keys of an issuer, so that a wrong address is not stored.
async fn reachable(
    state: &AuthState,
    workspace: &Workspace,
    issuer: &str,
) -> Result<(), ConsoleError> {
    let now = state.now();
    if state.throttle.look(workspace.id, now).await.is_err() {
        return Err(ConsoleError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_looks",
            "Issuers were asked often enough for now. Try again in a few minutes.",
        ));
    }
    let found = pipeline_issuers::look_at(&state.egress, issuer).await;
    found.map(|_| ()).map_err(|error| {
        let message = format!("This issuer cannot be used: {error}.");
        ConsoleError::invalid("issuer_unusable", message).field("issuer")
    })
}

async fn shown(
    state: &AuthState,
    workspace: &Workspace,
) -> Result<Vec<TrustedPipeline>, ConsoleError> {
    let mut tx = state.store.tenant(workspace.id).await?;
    let pipelines = stored::list(&mut tx).await?;
    let mut refusals = stored::refusals(&mut tx).await?;
    drop(tx);
    let views = pipelines.into_iter().map(|pipeline| {
        let own = refusals.extract_if(.., |one| one.pipeline == pipeline.id);
        let refusals = own.map(PipelineRefusal::from).collect();
        let trust = pipeline.trust;
        TrustedPipeline {
            id: pipeline.id,
            name: trust.name,
            issuer: trust.issuer,
            audience: trust.audience,
            subject: trust.subject.as_str().to_owned(),
            claims: trust.claims,
            role: trust.role,
            scopes: trust.scopes,
            minutes: trust.minutes,
            created_at: pipeline.created_at,
            last_used_at: pipeline.last_used_at,
            refusals,
        }
    });
    Ok(views.collect())
}

async fn one(
    state: &AuthState,
    workspace: &Workspace,
    id: PipelineId,
) -> Result<Json<TrustedPipeline>, ConsoleError> {
    let all = shown(state, workspace).await?;
    let found = all.into_iter().find(|pipeline| pipeline.id == id);
    found.map(Json).ok_or_else(unknown)
}

fn unknown() -> ConsoleError {
    ConsoleError::not_found("this trusted pipeline")
}

/// The trusted pipelines of a workspace, the oldest first. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/trusted-pipelines", tag = "tokens", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The trusted pipelines.", body = Listing<TrustedPipeline>)))]
pub(crate) async fn list_trusted_pipelines(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<TrustedPipeline>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    Ok(Json(Listing::whole(shown(&state, &workspace).await?)))
}

/// Trusts a pipeline: a job whose JWT meets the conditions gets a token of the workspace from the
/// token endpoint. The issuer's metadata and keys are fetched first.
#[utoipa::path(post, path = "/workspaces/{ws}/trusted-pipelines", tag = "tokens", params(("ws" = String, Path, description = "Slug")),
    request_body = PipelineTrust, responses((status = 201, description = "Trusted.", body = TrustedPipeline)))]
pub(crate) async fn create_trusted_pipeline(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<PipelineTrust>,
) -> Result<(StatusCode, Json<TrustedPipeline>), ConsoleError> {
    workspace.require(Action::Administer)?;
    let trust = body.checked(&state, &workspace)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Keys)?;
    reachable(&state, &workspace, &trust.issuer).await?;
    let id = PipelineId::generate();
    let mut tx = state.store.tenant(workspace.id).await?;
    if stored::count_alone(&mut tx).await? >= MOST {
        let message =
            format!("There can be {MOST} trusted pipelines. Delete one that is not used.");
        return Err(ConsoleError::conflict("too_many_pipelines", message));
    }
    stored::insert(&mut tx, id, &trust, now, now).await?;
    let event = workspace.event(
        "trusted_pipeline.created",
        "trusted_pipeline",
        id,
        detail(&trust),
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, one(&state, &workspace, id).await?))
}

/// Replaces the conditions and rights of a trusted pipeline. Tokens that its jobs have are refused
/// from their next request on. Another issuer is asked first.
#[utoipa::path(put, path = "/workspaces/{ws}/trusted-pipelines/{id}", tag = "tokens",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Trusted pipeline")),
    request_body = PipelineTrust, responses((status = 200, description = "Changed.", body = TrustedPipeline)))]
pub(crate) async fn change_trusted_pipeline(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<PipelineKind>,
    context: RequestContext,
    JsonBody(body): JsonBody<PipelineTrust>,
) -> Result<Json<TrustedPipeline>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let trust = body.checked(&state, &workspace)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Keys)?;
    let before = one(&state, &workspace, id).await?;
    if before.issuer != trust.issuer {
        reachable(&state, &workspace, &trust.issuer).await?;
    }
    let mut tx = state.store.tenant(workspace.id).await?;
    let removed = stored::remove(&mut tx, id).await?;
    let (_, created_at) = removed.ok_or_else(unknown)?;
    stored::insert(&mut tx, id, &trust, created_at, now).await?;
    let event = workspace.event(
        "trusted_pipeline.changed",
        "trusted_pipeline",
        id,
        detail(&trust),
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    one(&state, &workspace, id).await
}

/// Deletes a trusted pipeline. Its jobs get no more tokens, and those that they have are refused
/// from their next request on.
#[utoipa::path(delete, path = "/workspaces/{ws}/trusted-pipelines/{id}", tag = "tokens",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Trusted pipeline")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_trusted_pipeline(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<PipelineKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let (name, _) = stored::remove(&mut tx, id).await?.ok_or_else(unknown)?;
    let event = workspace.event(
        "trusted_pipeline.deleted",
        "trusted_pipeline",
        id,
        json!({ "name": name }),
    );
    audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
