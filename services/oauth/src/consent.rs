//! The consent page (AUTH-1.8): the request, the client, the workspace; and the decision.
//!
//! Reading a request needs the cookie of the browser that began it (AUTH-A11): a link to another
//! person's request shows nothing. The decision is one guarded `update`, together with the grant
//! and the code. A second submission gets the same redirect.

pub(crate) mod journey;
mod remembered;
pub(crate) mod target;
pub(crate) mod view;

use axum::{
    Form,
    extract::{Path, State, rejection::FormRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode, header};
use portolan_keys::{Purpose, SecretToken, TokenForm};
use portolan_model::{
    Timestamp,
    admission::Admission,
    audit::{Actor, Event, Outcome},
    client::AuthMethod,
    id::{GrantId, RequestId},
    member::Action,
    redirect,
    resource::Resource,
    scope::ScopeSet,
    token_family::ABSOLUTE_LIFE,
};
use portolan_site::{
    access_policy,
    browser::Browser,
    forms,
    oauth_parts::CODE_SECS,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    session::{self, BrowserSession, MaybeAnySession},
    state::AuthState,
    target::{login_again_path, login_path},
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        single_sign_on,
        workspace_hints::{self, Choice},
    },
    oauth::{
        authorization_requests::{self, AuthorizationRequest, ConsentDecision, Status},
        client_admission,
        clients::{self, Client},
        grants::{self, Code, Grant, NewGrant},
    },
    platform::audit,
};
use serde::Deserialize;
use serde_json::json;
use time::Duration;

use crate::{
    admission::{self, Offered},
    answer::RedirectAnswer,
    authorize::needs_sign_in,
    consent::target::{GrantTarget, requested},
    error::ErrorCode,
};

/// A faster decision than this after the page was shown was not made by a person who read it
/// (AUTH-N6).
const MIN_LOOK: Duration = Duration::milliseconds(300);

/// How long a second submission gets the same answer (AUTH-N5).
const ANSWER_FOR: Duration = Duration::seconds(120);

/// Most grants of one client and person in a tenant. Beyond that the least used are revoked
/// (AUTH-M9).
const MAX_GRANTS: i64 = 50;

/// `GET /oauth/consent/{request}`
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    MaybeAnySession(session): MaybeAnySession,
    Path(request): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    let (request, client) = load(&mut tx, &browser, &request).await?;
    if request.status != Status::Pending {
        return done(&client);
    }
    if state.now() >= request.expires_at {
        return Err(PageError::StartAgain);
    }
    let session = match session {
        Some(session) if !needs_sign_in(&request, session.auth_time, state.now()) => session,
        other => {
            journey::sign_in(&state, &context, &request, &client);
            return pages::see_other(&match other {
                Some(_) => login_again_path(request.id),
                None => login_path(request.id),
            });
        }
    };
    if remembered::is_allowed(&state, &mut tx, &headers, &request, &client, &session).await? {
        let now = state.now();
        authorization_requests::note_shown(&mut tx, request.id, session.user, session.id, now)
            .await?;
        return approve(&state, tx, &context, &request, &client, &session, "").await;
    }
    shown(&state, tx, &context, &request, &client, &session, None).await
}

/// Fields that the page posts.
#[derive(Debug, Deserialize)]
pub(crate) struct DecisionForm {
    #[serde(default)]
    token: String,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    workspace: String,
}

/// `POST /oauth/consent/{request}`
pub(crate) async fn decide(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    MaybeAnySession(session): MaybeAnySession,
    Path(request): Path<String>,
    headers: HeaderMap,
    form: Result<Form<DecisionForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    let (request, client) = load(&mut tx, &browser, &request).await?;
    let Some(session) = session else {
        return pages::see_other(&login_path(request.id));
    };
    let now = state.now();
    let is_pending = request.status == Status::Pending;
    if is_pending && now >= request.expires_at {
        return Err(PageError::StartAgain);
    }
    if is_pending && needs_sign_in(&request, session.auth_time, now) {
        return pages::see_other(&login_again_path(request.id));
    }
    // The person signed in with another account in another tab: the page showed another decision
    // (CASE-31).
    let notice = if is_pending && request.session != Some(session.id) {
        Some("You changed your account in another tab. Please look again before you decide.")
    } else {
        check_form(&state, &request, &session, &form.token)?;
        if !is_pending {
            return again(&state, &request, &client);
        }
        let is_hasty = request
            .shown_at
            .is_none_or(|shown_at| now < shown_at + MIN_LOOK);
        is_hasty.then_some("That was very quick. Please take a look, then decide.")
    };
    let notice = match (notice, form.decision.as_str()) {
        (Some(notice), _) => notice,
        (None, "approve") => {
            return approve(
                &state,
                tx,
                &context,
                &request,
                &client,
                &session,
                &form.workspace,
            )
            .await;
        }
        (None, "switch") => {
            drop(tx);
            return switch(&state, &headers, &context, &request).await;
        }
        (None, "deny") => return deny(&state, tx, &context, &request, &client, &session).await,
        (None, wish) => match wish.strip_prefix("ask ") {
            Some(workspace) => {
                return ask(&state, tx, &context, &request, &client, &session, workspace).await;
            }
            None => "Please choose one of the buttons.",
        },
    };
    shown(
        &state,
        tx,
        &context,
        &request,
        &client,
        &session,
        Some(notice),
    )
    .await
}

/// Loads the request if it belongs to this browser. Unknown, malformed and foreign ids get the same
/// error (CASE-30).
async fn load(
    tx: &mut SystemTx,
    browser: &Browser,
    id: &str,
) -> Result<(AuthorizationRequest, Client), PageError> {
    let id: RequestId = id.parse().map_err(|_| PageError::StartAgain)?;
    let request = authorization_requests::find(tx, id)
        .await?
        .ok_or(PageError::StartAgain)?;
    if browser.is_new() || !portolan_keys::digests_equal(&request.browser, browser.digest()) {
        return Err(PageError::StartAgain);
    }
    let client = clients::get(tx, request.client).await?;
    if request.status == Status::Pending && !is_still_good(&request, &client) {
        return Err(PageError::StartAgain);
    }
    Ok((request, client))
}

/// Returns true if the client is neither blocked nor deleted, and still has the redirect URI of the
/// request (AUTH-A2).
fn is_still_good(request: &AuthorizationRequest, client: &Client) -> bool {
    !client.is_blocked
        && client
            .redirect_uris
            .iter()
            .any(|registered| redirect::matches(registered, &request.redirect_uri))
}

/// The form's token. It is bound to this browser, this session and this request (CASE-27).
fn form_token(
    state: &AuthState,
    request: &AuthorizationRequest,
    session: &BrowserSession,
) -> String {
    forms::token(&state.keys, &binding(request, session))
}

/// Refuses a form of another browser, session or request.
fn check_form(
    state: &AuthState,
    request: &AuthorizationRequest,
    session: &BrowserSession,
    presented: &str,
) -> Result<(), PageError> {
    if forms::is_valid(&state.keys, &binding(request, session), presented) {
        Ok(())
    } else {
        Err(PageError::ForeignForm)
    }
}

/// The texts that bind the form to the browser, the session and the request.
fn binding<'a>(request: &'a AuthorizationRequest, session: &'a BrowserSession) -> [&'a [u8]; 3] {
    [
        request.browser.as_bytes(),
        session.id.uuid_bytes(),
        request.id.uuid_bytes(),
    ]
}

/// Renders the page that fits the target, and records that the person saw it.
async fn shown(
    state: &AuthState,
    mut tx: SystemTx,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
    notice: Option<&str>,
) -> Result<Response, PageError> {
    let target = GrantTarget::find(state, &mut tx, request, client, session).await?;
    // AUTH-L14: the second factor that the workspace requires comes before its consent page.
    if let GrantTarget::Fixed { offered, .. } | GrantTarget::NoServer { offered, .. } = &target
        && let Some(path) = lacking(&mut tx, request, session, &offered.choice).await?
    {
        return pages::see_other(&path);
    }
    authorization_requests::note_shown(&mut tx, request.id, session.user, session.id, state.now())
        .await?;
    tx.commit().await?;
    if request.shown_at.is_none() {
        journey::shown(state, context, request, client, &target, session);
    }
    view::render(state, request, client, session, &target, notice)
}

/// The path to the factor that the workspace requires and this session has not proved (AUTH-L14).
/// It leads back to this request.
async fn lacking(
    tx: &mut SystemTx,
    request: &AuthorizationRequest,
    session: &BrowserSession,
    choice: &Choice,
) -> Result<Option<String>, PageError> {
    let target = portolan_site::target::Target::Request(request.id);
    let unmet = access_policy::unmet(tx, choice.tenant, choice.role, session).await?;
    Ok(unmet.map(|unmet| unmet.path(&choice.slug, &target)))
}

/// The response to a decided request: the same redirect for [`ANSWER_FOR`], then a page.
fn again(
    state: &AuthState,
    request: &AuthorizationRequest,
    client: &Client,
) -> Result<Response, PageError> {
    let location = request
        .outcome_sealed
        .as_deref()
        .and_then(|sealed| {
            state
                .keys
                .open(
                    Purpose::Outcome,
                    sealed,
                    request.id.uuid().as_bytes(),
                    state.now(),
                )
                .ok()
        })
        .and_then(|opened| String::from_utf8(opened.expose().clone()).ok());
    match location {
        Some(location) => RedirectAnswer::from_text(location).into_response(&client.name),
        None => done(client),
    }
}

fn done(client: &Client) -> Result<Response, PageError> {
    let text = format!(
        "This request of {} is decided. You can close this page and go back to the app.",
        client.name
    );
    let page = Message {
        status: None,
        title: "Done",
        text: &text,
        link: None,
        request_id: None,
    };
    pages::html(StatusCode::OK, &page)
}

async fn approve(
    state: &AuthState,
    mut tx: SystemTx,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
    workspace: &str,
) -> Result<Response, PageError> {
    let now = state.now();
    let target = GrantTarget::find(state, &mut tx, request, client, session).await?;
    let mut chosen = target
        .chosen(workspace)
        .filter(|choice| choice.role.may(Action::CallTools));
    if let Some(choice) = chosen {
        let is_good = is_admitted(&mut tx, request, client, session, choice).await?;
        chosen = chosen.filter(|_| is_good);
    }
    let Some(choice) = chosen else {
        journey::refused(state, context, request, client, &target, workspace);
        refuse(&mut tx, context, client, session, now).await?;
        tx.commit().await?;
        return Err(PageError::ForeignForm);
    };
    if let Some(path) = lacking(&mut tx, request, session, choice).await? {
        return pages::see_other(&path);
    }
    let resource = requested(state, request)?.unwrap_or_else(|| Resource::Workspace {
        tenant: choice.slug.clone(),
    });
    let code = SecretToken::generate(TokenForm::Code)?;
    let answer = RedirectAnswer::code(
        state.site.issuer(),
        &request.redirect_uri,
        request.state.as_deref(),
        code.expose(),
    );
    if !settle(
        state,
        &mut tx,
        request,
        session,
        ConsentDecision::Approved,
        &answer,
    )
    .await?
    {
        drop(tx);
        return settled_elsewhere(state, request, client).await;
    }
    let approval = Approval {
        context,
        request,
        client,
        session,
        choice,
        resource: state.oauth.resources.url(&resource),
        now,
    };
    let grant = approval.grant(&mut tx, &code).await?;
    tx.commit().await?;
    metrics::counter!("oauth_consent_total", "outcome" => "approved").increment(1);
    journey::approved(state, context, request, client, &grant);
    answer.into_response(&client.name)
}

/// Returns true if the client is admitted and may still get the answer, read again under the lock.
/// A block of the client at this moment either came first, or revokes the grant afterwards
/// (AUTH-M7).
async fn is_admitted(
    tx: &mut SystemTx,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
    choice: &Choice,
) -> Result<bool, PageError> {
    client_admission::hold_still(tx, choice.tenant).await?;
    let present = clients::get(tx, client.id).await?;
    let verdict = admission::present(tx, &present, choice.tenant, session.user).await?;
    Ok(verdict.is_admitted() && is_still_good(request, &present))
}

/// A request that a person approved.
struct Approval<'a> {
    context: &'a RequestContext,
    request: &'a AuthorizationRequest,
    client: &'a Client,
    session: &'a BrowserSession,
    choice: &'a Choice,
    /// Canonical resource of the grant.
    resource: String,
    now: Timestamp,
}

impl Approval<'_> {
    /// Writes the grant with its code and its audit entry.
    async fn grant(self, tx: &mut SystemTx, code: &SecretToken) -> Result<Grant, PageError> {
        let (client, session, now) = (self.client, self.session, self.now);
        let grant = Grant {
            id: GrantId::generate(),
            tenant: self.choice.tenant,
            user: session.user,
            client: client.id,
            scopes: ScopeSet::from_stored(&self.request.scopes_asked),
            resource: self.resource.clone(),
            auth_time: session.auth_time,
            expires_at: now + ABSOLUTE_LIFE,
            is_revoked: false,
            is_key_bound: client.auth_method == AuthMethod::PrivateKeyJwt,
        };
        let snapshot = json!({
            "client_id": client.client_id, "name": client.name, "redirect_uri": self.request.redirect_uri,
            "metadata_digest": hex(client.metadata_digest.as_bytes()), "auth_method": client.auth_method.as_str(),
        });
        let new = NewGrant {
            grant: &grant,
            client_snapshot: &snapshot,
            session: session.id,
            amr: &session.amr,
            ip_block: Some(&self.context.ip_block()),
            ua_label: self.context.ua_label.as_deref(),
        };
        grants::create(tx, &new, now).await?;
        single_sign_on::note_grant(tx, grant.id, session.id).await?;
        let stored = self.code(&grant);
        grants::create_code(tx, &code.digest(), self.request.id, &stored).await?;
        clients::note_granted(tx, client.id, now).await?;
        workspace_hints::remember(tx, client.id, session.user, grant.tenant, now).await?;
        let beyond = grants::beyond_cap(tx, grant.tenant, session.user, client.id, MAX_GRANTS);
        for old in beyond.await? {
            grants::revoke(tx, old, "cap", now).await?;
        }
        let event = Event {
            tenant: Some(grant.tenant),
            actor: Actor::User(session.user),
            action: "grant.created",
            target_kind: "grant",
            target_id: grant.id.to_string(),
            outcome: Outcome::Ok,
            detail: json!({"client": client.name, "client_id": client.client_id, "scope": grant.scopes.to_string()}),
        };
        audit::record(tx, &event, &self.context.origin(), now).await?;
        Ok(grant)
    }

    /// The code of the grant.
    fn code(&self, grant: &Grant) -> Code {
        Code {
            grant: grant.id,
            client: grant.client,
            tenant: grant.tenant,
            redirect_uri: self.request.redirect_uri.clone(),
            code_challenge: self.request.code_challenge.clone(),
            resource: self.resource.clone(),
            resource_given: self.request.resource_asked.is_some(),
            attempts: 0,
            expires_at: self.now + Duration::seconds(CODE_SECS),
            redeemed_at: None,
        }
    }
}

/// Requests an administrator's approval of the client (AUTH-M7). The authorization request stays
/// pending. After the approval the same page allows the decision.
async fn ask(
    state: &AuthState,
    mut tx: SystemTx,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
    workspace: &str,
) -> Result<Response, PageError> {
    let target = GrantTarget::find(state, &mut tx, request, client, session).await?;
    let may_ask = |offered: &&Offered| {
        offered.choice.tenant.to_string() == workspace
            && offered.choice.role.may(Action::CallTools)
            && offered.verdict.admission == Admission::NeedsApproval
    };
    let Some(offered) = target.named(workspace).filter(may_ask) else {
        refuse(&mut tx, context, client, session, state.now()).await?;
        tx.commit().await?;
        return Err(PageError::ForeignForm);
    };
    let letters = admission::ask(state, &mut tx, context, client, session, &offered.choice).await?;
    tx.commit().await?;
    for letter in letters {
        state.mailer.deliver(&letter);
    }
    pages::see_other(&crate::authorize::consent_path(request.id))
}

/// Ends the session to decide with another account. The sign-in page leads back to this request.
async fn switch(
    state: &AuthState,
    headers: &HeaderMap,
    context: &RequestContext,
    request: &AuthorizationRequest,
) -> Result<Response, PageError> {
    let removal = session::end(state, headers, context).await?;
    let mut response = pages::see_other(&login_path(request.id))?;
    response.headers_mut().append(header::SET_COOKIE, removal);
    Ok(response)
}

async fn deny(
    state: &AuthState,
    mut tx: SystemTx,
    context: &RequestContext,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
) -> Result<Response, PageError> {
    let target = GrantTarget::find(state, &mut tx, request, client, session).await?;
    let (code, description) = match target {
        GrantTarget::NoServer { .. } => (ErrorCode::InvalidTarget, journey::NO_SERVER),
        _ => (ErrorCode::AccessDenied, "the user did not allow it"),
    };
    let answer = RedirectAnswer::error(
        state.site.issuer(),
        &request.redirect_uri,
        request.state.as_deref(),
        code,
        description,
    );
    if !settle(
        state,
        &mut tx,
        request,
        session,
        ConsentDecision::Denied,
        &answer,
    )
    .await?
    {
        drop(tx);
        return settled_elsewhere(state, request, client).await;
    }
    tx.commit().await?;
    metrics::counter!("oauth_consent_total", "outcome" => "denied").increment(1);
    journey::denied(state, context, request, client, &target);
    answer.into_response(&client.name)
}

/// Decides the request and stores the sealed answer with it. Returns false if another submission
/// was first.
async fn settle(
    state: &AuthState,
    tx: &mut SystemTx,
    request: &AuthorizationRequest,
    session: &BrowserSession,
    decision: ConsentDecision,
    answer: &RedirectAnswer,
) -> Result<bool, PageError> {
    let now = state.now();
    let sealed = state.keys.seal_until(
        Purpose::Outcome,
        answer.as_str().as_bytes(),
        request.id.uuid().as_bytes(),
        now + ANSWER_FOR,
    )?;
    Ok(authorization_requests::decide(tx, request.id, session.id, decision, &sealed, now).await?)
}

/// The response to a double click: the first decision is valid, and both submissions get its answer
/// (CASE-32, CASE-33).
async fn settled_elsewhere(
    state: &AuthState,
    request: &AuthorizationRequest,
    client: &Client,
) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    match authorization_requests::find(&mut tx, request.id).await? {
        Some(decided) if decided.status != Status::Pending => again(state, &decided, client),
        _ => Err(PageError::StartAgain),
    }
}

/// Records a posted workspace that the page did not offer (CASE-41).
async fn refuse(
    tx: &mut SystemTx,
    context: &RequestContext,
    client: &Client,
    session: &BrowserSession,
    now: Timestamp,
) -> Result<(), PageError> {
    let event = Event {
        tenant: None,
        actor: Actor::User(session.user),
        action: "grant.refused",
        target_kind: "client",
        target_id: client.client_id.clone(),
        outcome: Outcome::Refused,
        detail: json!({"reason": "workspace"}),
    };
    Ok(audit::record(tx, &event, &context.origin(), now).await?)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
