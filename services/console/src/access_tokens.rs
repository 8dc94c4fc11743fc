//! Tokens of the management API (API-1 to API-9): personal ones and those of a workspace. People
//! make and end them in a browser; a token can end itself.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{
    api_scope::ApiScope,
    audit::{Actor, Event, Outcome},
    id::{AccessTokenId, AccessTokenKind, TenantId, UserId},
    member::{Action, Role},
    slug::Slug,
};
use portolan_site::{
    console_error::ConsoleError,
    presented_token::PresentedToken,
    request_context::RequestContext,
    session::BrowserSession,
    state::AuthState,
    target::{AccountPage, ConsolePage, Target},
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::{
        access_tokens::{self, Holder, NewAccessToken, Owner},
        members,
    },
    oauth::service_accounts,
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    input::{JsonBody, PathId},
    listing::Listing,
    service_accounts::account_name,
    token_rights::{ScopeName, checked_scopes, may_give_role},
    workspace::{Workspace, require_recent},
    workspaces::RoleName,
};

/// Longest life of a token in days (API-1).
const MOST_DAYS: i64 = 365;

/// Most valid tokens of a person, and of a workspace.
const MOST_OF_ONE: usize = 50;

/// A token of the management API.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccessToken {
    #[schema(value_type = String, example = "tok_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    pub(crate) id: AccessTokenId,
    /// Display name.
    name: String,
    /// Its first characters.
    hint: String,
    /// Its permissions.
    #[schema(value_type = Vec<ScopeName>)]
    scopes: Vec<ApiScope>,
    /// The role of a workspace token; absent for a personal token, which has the role of its
    /// person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RoleName, required = false)]
    role: Option<Role>,
    /// Slug of the one workspace that it opens; absent if it opens all workspaces of its person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    workspace: Option<String>,
    /// Display name of its creator, if they still have an account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// Time of the last use, to five minutes.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
}

impl From<access_tokens::AccessToken> for AccessToken {
    fn from(token: access_tokens::AccessToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            hint: token.hint,
            scopes: token.scopes,
            role: match token.holder {
                Holder::Person(..) => None,
                Holder::Workspace(_, role) => Some(role),
            },
            workspace: token.slug,
            created_by: token.created_by,
            created_at: token.created_at,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
        }
    }
}

/// A token that was just created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedAccessToken {
    /// The token as lists show it.
    pub(crate) token: AccessToken,
    /// The secret, shown only once: send it as `Authorization: Bearer`.
    pub(crate) secret: String,
}

/// A new personal token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPersonalToken {
    /// Display name: 1 to 80 characters.
    name: String,
    /// Its permissions: at least one.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: Vec<ApiScope>,
    /// Days until it expires: 1 to 365.
    #[schema(minimum = 1, maximum = 365)]
    days: i64,
    /// Slug of the one workspace that it opens; absent for all workspaces of the person.
    #[serde(default)]
    workspace: Option<String>,
}

/// A new token of a workspace.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspaceToken {
    /// Display name: 1 to 80 characters.
    name: String,
    /// The role with which it acts: `admin` at most, and no stronger one than the person's own.
    #[schema(value_type = RoleName)]
    role: Role,
    /// Its permissions: at least one.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: Vec<ApiScope>,
    /// Days until it expires: 1 to 365.
    #[schema(minimum = 1, maximum = 365)]
    days: i64,
}

/// The checked members that all tokens have.
pub(crate) struct TokenMembers<'a> {
    name: &'a str,
    scopes: Vec<ApiScope>,
    days: i64,
}

impl<'a> TokenMembers<'a> {
    pub(crate) fn checked(
        name: &'a str,
        scopes: &[ApiScope],
        days: i64,
    ) -> Result<Self, ConsoleError> {
        let name = account_name(name)?;
        let scopes = checked_scopes(scopes)?;
        if !(1..=MOST_DAYS).contains(&days) {
            let message = format!("A token lives 1 to {MOST_DAYS} days.");
            return Err(ConsoleError::invalid("days_invalid", message).field("days"));
        }
        Ok(Self { name, scopes, days })
    }

    /// Writes the token in a transaction that holds the lock of its owner.
    async fn write(
        &self,
        tx: &mut SystemTx,
        (owner, holder): (Owner, Holder),
        maker: &BrowserSession,
        now: OffsetDateTime,
    ) -> Result<CreatedAccessToken, ConsoleError> {
        if access_tokens::list(tx, owner, now).await?.len() >= MOST_OF_ONE {
            let message =
                format!("There can be {MOST_OF_ONE} tokens. Revoke one that is not used.");
            return Err(ConsoleError::conflict("too_many_tokens", message));
        }
        let form = match holder {
            Holder::Person(..) => TokenForm::PersonalToken,
            Holder::Workspace(..) => TokenForm::WorkspaceToken,
        };
        let secret = SecretToken::generate(form)?;
        let new = NewAccessToken {
            id: AccessTokenId::generate(),
            holder,
            name: self.name,
            digest: &secret.digest(),
            hint: secret.hint(),
            scopes: &self.scopes,
            amr: &maker.amr,
            created_by: maker.user,
            session: maker.id,
            expires_at: now + Duration::days(self.days),
        };
        access_tokens::create(tx, &new, now).await?;
        Ok(CreatedAccessToken {
            token: found(tx, owner, new.id, now).await?,
            secret: secret.expose().to_owned(),
        })
    }

    /// Creates a personal token, with its audit entry. `only` is the slug of the one workspace that it
    /// opens.
    pub(crate) async fn write_personal(
        &self,
        tx: &mut SystemTx,
        (session, only): (&BrowserSession, Option<&str>),
        context: &RequestContext,
        now: OffsetDateTime,
    ) -> Result<CreatedAccessToken, ConsoleError> {
        let me = session.user;
        let only = match only {
            None => None,
            Some(slug) => {
                let found = members::workspace_of(tx, me, slug).await?;
                let missing = || ConsoleError::not_found("this workspace").field("workspace");
                Some(found.ok_or_else(missing)?.tenant.id)
            }
        };
        access_tokens::take_turn(tx, me).await?;
        let subject = (Owner::Person(me), Holder::Person(me, only));
        let created = self.write(tx, subject, session, now).await?;
        let (id, detail) = (created.token.id, self.detail(None));
        let event = own_event(me, "access_token.created", id, detail);
        audit::record(tx, &event, &context.origin(), now).await?;
        Ok(created)
    }

    fn detail(&self, role: Option<Role>) -> serde_json::Value {
        let mut detail = json!({ "name": self.name, "scopes": self.scopes, "days": self.days });
        if let Some(role) = role {
            detail["role"] = json!(role);
        }
        detail
    }
}

/// A valid token of an owner, as lists show it.
pub(crate) async fn found(
    tx: &mut SystemTx,
    owner: Owner,
    id: AccessTokenId,
    now: OffsetDateTime,
) -> Result<AccessToken, ConsoleError> {
    let mut tokens = access_tokens::list(tx, owner, now).await?.into_iter();
    let shown = tokens.find(|token| token.id == id);
    let shown = shown.ok_or(StorageError::Inconsistent {
        table: "access_tokens",
        column: "id",
    })?;
    Ok(shown.into())
}

/// The personal tokens of the signed-in person, newest first.
#[utoipa::path(get, path = "/me/access-tokens", tag = "tokens",
    responses((status = 200, description = "The tokens.", body = Listing<AccessToken>)))]
pub(crate) async fn list_personal_tokens(
    State(state): State<AuthState>,
    session: BrowserSession,
) -> Result<Json<Listing<AccessToken>>, ConsoleError> {
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let owner = Owner::Person(session.user);
    listed(&mut tx, owner, state.now()).await
}

async fn listed(
    tx: &mut SystemTx,
    owner: Owner,
    now: OffsetDateTime,
) -> Result<Json<Listing<AccessToken>>, ConsoleError> {
    let tokens = access_tokens::list(tx, owner, now).await?;
    Ok(Json(Listing::whole(
        tokens.into_iter().map(AccessToken::from).collect(),
    )))
}

/// Creates a personal token. It acts as the person, with their role in each workspace, within its
/// scopes.
#[utoipa::path(post, path = "/me/access-tokens", tag = "tokens", request_body = NewPersonalToken,
    responses((status = 201, description = "Made. It is shown this once.", body = CreatedAccessToken)))]
pub(crate) async fn create_personal_token(
    State(state): State<AuthState>,
    session: BrowserSession,
    context: RequestContext,
    JsonBody(new): JsonBody<NewPersonalToken>,
) -> Result<(StatusCode, Json<CreatedAccessToken>), ConsoleError> {
    let wanted = TokenMembers::checked(&new.name, &new.scopes, new.days)?;
    let now = state.now();
    require_recent(&session, now, || Target::Account(AccountPage::AccessTokens))?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let subject = (&session, new.workspace.as_deref());
    let created = wanted
        .write_personal(&mut tx, subject, &context, now)
        .await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// An entry of the platform's log about a personal token.
fn own_event(
    user: UserId,
    action: &'static str,
    token: AccessTokenId,
    detail: serde_json::Value,
) -> Event {
    Event {
        tenant: None,
        actor: Actor::User(user),
        action,
        target_kind: "access_token",
        target_id: token.to_string(),
        outcome: Outcome::Ok,
        detail,
    }
}

/// Revokes a personal token. It is refused from the next request on.
#[utoipa::path(delete, path = "/me/access-tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "Token")),
    responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_personal_token(
    State(state): State<AuthState>,
    session: BrowserSession,
    context: RequestContext,
    PathId(id): PathId<AccessTokenKind>,
) -> Result<StatusCode, ConsoleError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let name = access_tokens::revoke(&mut tx, Owner::Person(session.user), id, now).await?;
    let name = name.ok_or_else(|| ConsoleError::not_found("this token"))?;
    let detail = json!({ "name": name });
    let event = own_event(session.user, "access_token.revoked", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The tokens of a workspace, newest first. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/access-tokens", tag = "tokens", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The tokens.", body = Listing<AccessToken>)))]
pub(crate) async fn list_workspace_tokens(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<AccessToken>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    listed(&mut tx, Owner::Workspace(workspace.id), state.now()).await
}

/// Creates a token of the workspace. It acts with its role, within its scopes, and stays when its
/// creator leaves.
#[utoipa::path(post, path = "/workspaces/{ws}/access-tokens", tag = "tokens", params(("ws" = String, Path, description = "Slug")),
    request_body = NewWorkspaceToken, responses((status = 201, description = "Made. It is shown this once.", body = CreatedAccessToken)))]
pub(crate) async fn create_workspace_token(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(new): JsonBody<NewWorkspaceToken>,
) -> Result<(StatusCode, Json<CreatedAccessToken>), ConsoleError> {
    workspace.require(Action::Administer)?;
    let session = workspace.caller.browser()?;
    let wanted = TokenMembers::checked(&new.name, &new.scopes, new.days)?;
    may_give_role(&workspace, new.role)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Keys)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    service_accounts::take_turn(&mut tx, workspace.id).await?;
    let subject = (
        Owner::Workspace(workspace.id),
        Holder::Workspace(workspace.id, new.role),
    );
    let created = wanted.write(&mut tx, subject, session, now).await?;
    let (id, detail) = (created.token.id, wanted.detail(Some(new.role)));
    let event = workspace.event("access_token.created", "access_token", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Revokes a token of the workspace. It is refused from the next request on.
#[utoipa::path(delete, path = "/workspaces/{ws}/access-tokens/{id}", tag = "tokens",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Token")),
    responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_workspace_token(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<AccessTokenKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let name = access_tokens::revoke(&mut tx, Owner::Workspace(workspace.id), id, now).await?;
    let name = name.ok_or_else(|| ConsoleError::not_found("this token"))?;
    let detail = json!({ "name": name });
    let event = workspace.event("access_token.revoked", "access_token", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The token of this request.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenView {
    #[schema(value_type = String, example = "tok_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: AccessTokenId,
    /// Display name.
    name: String,
    /// Its first characters.
    hint: String,
    /// Its permissions.
    #[schema(value_type = Vec<ScopeName>)]
    scopes: Vec<ApiScope>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// The person of a personal token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    person: Option<TokenPerson>,
    /// The workspaces that it opens, by name.
    workspaces: Vec<TokenWorkspace>,
}

/// The person of a personal token.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenPerson {
    #[schema(value_type = String, example = "usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: UserId,
    email: String,
    display_name: String,
}

/// A workspace that a token opens.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenWorkspace {
    #[schema(value_type = String, example = "ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: TenantId,
    #[schema(value_type = String, example = "acme")]
    slug: Slug,
    name: String,
    /// The role with which the token acts there.
    #[schema(value_type = RoleName)]
    role: Role,
}

fn token_of(caller: Caller) -> Result<PresentedToken, ConsoleError> {
    match caller {
        Caller::Token(token) => Ok(token),
        Caller::Browser(_) => Err(ConsoleError::not_found("this token")),
    }
}

/// The token of this request, and what it opens.
#[utoipa::path(get, path = "/token", tag = "tokens", responses((status = 200, description = "The token.", body = TokenView)))]
pub(crate) async fn show_token(
    State(state): State<AuthState>,
    caller: Caller,
) -> Result<Json<TokenView>, ConsoleError> {
    let token = token_of(caller)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let workspaces = access_tokens::workspaces_of(&mut tx, &token, None).await?;
    let person = token.user().zip(token.person.clone());
    Ok(Json(TokenView {
        id: token.id,
        name: token.name.clone(),
        hint: token.hint.clone(),
        scopes: token.scopes.clone(),
        created_at: token.created_at,
        expires_at: token.expires_at,
        person: person.map(|(id, (display_name, email))| TokenPerson {
            id,
            email,
            display_name,
        }),
        workspaces: workspaces
            .into_iter()
            .map(|workspace| TokenWorkspace {
                id: workspace.tenant.id,
                slug: workspace.tenant.slug,
                name: workspace.tenant.name,
                role: workspace.role,
            })
            .collect(),
    }))
}

/// Revokes the token of this request. Its bearer needs no scope, so that a finder can end a leaked
/// token.
#[utoipa::path(delete, path = "/token", tag = "tokens", responses((status = 204, description = "Revoked.")))]
pub(crate) async fn revoke_token(
    State(state): State<AuthState>,
    context: RequestContext,
    caller: Caller,
) -> Result<StatusCode, ConsoleError> {
    let token = token_of(caller)?;
    let now = state.now();
    let (owner, tenant) = match token.holder {
        Holder::Person(user, _) => (Owner::Person(user), None),
        Holder::Workspace(tenant, _) => (Owner::Workspace(tenant), Some(tenant)),
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    access_tokens::revoke(&mut tx, owner, token.id, now)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this token"))?;
    let event = Event {
        tenant,
        actor: token.actor(),
        action: "access_token.revoked",
        target_kind: "access_token",
        target_id: token.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "name": token.name, "by_itself": true }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
