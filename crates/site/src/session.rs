//! The session of a signed-in browser: the cookie `__Host-sid` (AUTH-S1 to AUTH-S4).

use axum::extract::FromRequestParts;
use axum_extra::extract::CookieJar;
use http::{HeaderMap, HeaderValue, request::Parts};
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{
    Digest, Timestamp,
    audit::{Actor, Event, Outcome},
    id::{SessionId, TenantId, UserId},
};
use portolan_net::layers::Arrival;
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::{
        browser_sessions::{self, EndReason, NewSession, SEEN_STEP, Session},
        single_sign_on, users,
    },
    platform::audit,
};

use crate::{
    console_error::ConsoleError, pages::fault::PageError, request_context::RequestContext,
    state::AuthState,
};

/// Name of the cookie without prefix.
const COOKIE: &str = "sid";

/// A signed-in browser. The extractor answers 401 in the console's form if there is none. Bearer
/// tokens of MCP are not accepted here (AUTH-S11).
#[derive(Debug, Clone)]
pub struct BrowserSession {
    /// The session.
    pub id: SessionId,
    /// Digest of the cookie that the request has.
    pub token: Digest,
    /// The person.
    pub user: UserId,
    /// The person's own display name.
    pub display_name: String,
    /// Primary address, as typed.
    pub email: String,
    /// Time of the last sign-in or confirmation.
    pub auth_time: Timestamp,
    /// The methods of that sign-in (RFC 8176 words).
    pub amr: Vec<String>,
    /// The one workspace that the session opens, if that workspace's provider vouched for the
    /// person (AUTH-F7).
    pub only_tenant: Option<TenantId>,
}

/// How long a sign-in counts as recent (AUTH-S2).
pub const RECENT: time::Duration = time::Duration::minutes(10);

impl BrowserSession {
    /// Returns true if the sign-in is recent, as sensitive changes require (AUTH-S2, CASE-157).
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now - self.auth_time < RECENT
    }

    /// Returns true if the session opens this tenant, as far as the person may.
    pub fn opens(&self, tenant: TenantId) -> bool {
        self.only_tenant.is_none_or(|only| only == tenant)
    }
}

impl From<Session> for BrowserSession {
    fn from(row: Session) -> Self {
        Self {
            id: row.id,
            token: row.token,
            user: row.user,
            display_name: row.display_name,
            email: row.email,
            auth_time: row.auth_time,
            amr: row.amr,
            only_tenant: row.only_tenant,
        }
    }
}

/// A person's own session, if there is one. For pages.
#[derive(Debug, Clone)]
pub struct MaybeSession(pub Option<BrowserSession>);

/// A session, if there is one, including sessions for a single workspace. For pages that check
/// [`BrowserSession::opens`]. All other pages ignore such a session, so that a workspace's provider
/// gets no other access to a person (CASE-107).
#[derive(Debug, Clone)]
pub struct MaybeAnySession(pub Option<BrowserSession>);

/// The same, where a session is required.
#[derive(Debug, Clone)]
pub struct AnySession(pub BrowserSession);

impl FromRequestParts<AuthState> for MaybeAnySession {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &AuthState) -> Result<Self, PageError> {
        Ok(Self(load(parts, state).await?))
    }
}

impl FromRequestParts<AuthState> for AnySession {
    type Rejection = ConsoleError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AuthState,
    ) -> Result<Self, ConsoleError> {
        load(parts, state)
            .await?
            .map(Self)
            .ok_or_else(ConsoleError::unauthenticated)
    }
}

impl FromRequestParts<AuthState> for MaybeSession {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &AuthState) -> Result<Self, PageError> {
        Ok(Self(own(load(parts, state).await?)))
    }
}

/// Keeps only a person's own session.
fn own(session: Option<BrowserSession>) -> Option<BrowserSession> {
    session.filter(|session| session.only_tenant.is_none())
}

impl FromRequestParts<AuthState> for BrowserSession {
    type Rejection = ConsoleError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AuthState,
    ) -> Result<Self, ConsoleError> {
        own(load(parts, state).await?).ok_or_else(ConsoleError::unauthenticated)
    }
}

/// Reads the session once per request; extractors of the same request share the result.
async fn load(
    parts: &mut Parts,
    state: &AuthState,
) -> Result<Option<BrowserSession>, StorageError> {
    #[derive(Clone)]
    struct Loaded(Option<BrowserSession>);

    if let Some(Loaded(session)) = parts.extensions.get() {
        return Ok(session.clone());
    }
    let session = match cookie_digest(&parts.headers, state) {
        Some(digest) => find(state, &digest).await?,
        None => None,
    };
    if let (Some(_), Some(arrival)) = (&session, parts.extensions.get::<Arrival>()) {
        arrival.note_authorised();
    }
    parts.extensions.insert(Loaded(session.clone()));
    Ok(session)
}

async fn find(state: &AuthState, digest: &Digest) -> Result<Option<BrowserSession>, StorageError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    let Some(session) = browser_sessions::find_live(&mut tx, digest, now).await? else {
        return Ok(None);
    };
    if now - session.last_seen_at >= SEEN_STEP {
        browser_sessions::seen(&mut tx, &session, now).await?;
        tx.commit().await?;
    }
    Ok(Some(session.into()))
}

/// Digest of the session cookie, if the request has a well-formed one.
fn cookie_digest(headers: &HeaderMap, state: &AuthState) -> Option<Digest> {
    let jar = CookieJar::from_headers(headers);
    let cookie = jar.get(&state.site.cookie_name(COOKIE))?;
    SecretToken::parse(TokenForm::Session, cookie.value()).map(|token| token.digest())
}

/// Returns true if the request has a session cookie. Without a live session, that session has
/// ended.
pub fn has_cookie(headers: &HeaderMap, state: &AuthState) -> bool {
    cookie_digest(headers, state).is_some()
}

/// Starts a session for `user` in the caller's transaction and returns its id and cookie. The id is
/// new at every sign-in. The browser's former session ends, also another
/// person's (AUTH-S3, CASE-39).
pub async fn start(
    tx: &mut SystemTx,
    state: &AuthState,
    headers: &HeaderMap,
    context: &RequestContext,
    user: UserId,
    amr: &[&str],
) -> Result<(SessionId, HeaderValue), PageError> {
    let now = state.now();
    let old = match cookie_digest(headers, state) {
        Some(old) => browser_sessions::end(tx, &old, EndReason::Replaced, now).await?,
        None => None,
    };
    let token = SecretToken::generate(TokenForm::Session)?;
    let id = browser_sessions::start(
        tx,
        &NewSession {
            user,
            token: &token.digest(),
            amr: &amr.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(),
            ip_block: Some(&context.ip_block()),
            ua_label: context.ua_label.as_deref(),
        },
        now,
    )
    .await?;
    // Proofs of workspaces' providers about the same person stay valid (AUTH-F7).
    if let Some((old, owner)) = old
        && owner == user
    {
        single_sign_on::carry_steps(tx, old, id).await?;
    }
    users::signed_in(tx, user, now).await?;
    audit::record(
        tx,
        &event(user, "session.started", id),
        &context.origin(),
        now,
    )
    .await?;
    let cookie = state.site.set_cookie(
        COOKIE,
        token.expose(),
        Some(browser_sessions::ABSOLUTE_LIFE.whole_seconds()),
    );
    Ok((id, sensitive(cookie)?))
}

/// Ends the session of the request, if it has one, and returns the cookie that removes it
/// (AUTH-S4).
pub async fn end(
    state: &AuthState,
    headers: &HeaderMap,
    context: &RequestContext,
) -> Result<HeaderValue, PageError> {
    if let Some(digest) = cookie_digest(headers, state) {
        let now = state.now();
        let mut tx = state.store.system(Reason::SignIn).await?;
        if let Some((id, user)) =
            browser_sessions::end(&mut tx, &digest, EndReason::SignedOut, now).await?
        {
            audit::record(
                &mut tx,
                &event(user, "session.ended", id),
                &context.origin(),
                now,
            )
            .await?;
        }
        tx.commit().await?;
    }
    sensitive(state.site.set_cookie(COOKIE, "", Some(0)))
}

fn event(user: UserId, action: &'static str, session: SessionId) -> Event {
    Event {
        tenant: None,
        actor: Actor::User(user),
        action,
        target_kind: "session",
        target_id: session.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({}),
    }
}

/// Makes a `Set-Cookie` value that no log shows.
fn sensitive(cookie: String) -> Result<HeaderValue, PageError> {
    let mut value = HeaderValue::try_from(cookie).map_err(|_| PageError::Internal("cookie"))?;
    value.set_sensitive(true);
    Ok(value)
}
