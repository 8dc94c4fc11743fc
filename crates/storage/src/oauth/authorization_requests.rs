//! Pending authorization requests: made at `/oauth/authorize`, decided on the consent page
//! (AUTH-A11, AUTH-N5, AUTH-N6).

use portolan_model::{
    Digest, Timestamp,
    id::{ClientId, RequestId, SessionId, UserId},
};

use crate::{StorageError, SystemTx};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Waits for the person.
    Pending,
    /// Allowed.
    Approved,
    /// Refused.
    Denied,
}

/// A request as stored. Everything in it was validated before it was written.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest {
    /// Its id, which is in URLs and opens nothing without the browser's cookie.
    pub id: RequestId,
    /// The requesting client.
    pub client: ClientId,
    /// Where the answer goes, as the request spelled it.
    pub redirect_uri: String,
    /// PKCE S256 challenge (AUTH-A5).
    pub code_challenge: String,
    /// Returned byte for byte (AUTH-A6).
    pub state: Option<String>,
    /// Known scopes that were asked for.
    pub scopes_asked: Vec<String>,
    /// Canonical resource; `None` means the workspace picker.
    pub resource_asked: Option<String>,
    /// `login`, `consent`, `select_account`, separated by spaces.
    pub prompt: Option<String>,
    /// Seconds.
    pub max_age: Option<i32>,
    /// Prefills the login form.
    pub login_hint: Option<String>,
    /// The browser that began.
    pub browser: Digest,
    /// The person that the consent page was last shown to.
    pub user: Option<UserId>,
    /// In which session.
    pub session: Option<SessionId>,
    /// Where it stands.
    pub status: Status,
    /// When the page was shown last.
    pub shown_at: Option<Timestamp>,
    /// When it was decided.
    pub decided_at: Option<Timestamp>,
    /// The redirect that was answered, sealed.
    pub outcome_sealed: Option<Vec<u8>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Writes a new request.
pub async fn create(tx: &mut SystemTx, request: &AuthorizationRequest) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into authorization_requests (id, client_ref, redirect_uri, code_challenge, state, scopes_asked, resource_asked, prompt,
           max_age, login_hint, browser_digest, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        request.id.uuid(),
        request.client.uuid(),
        request.redirect_uri,
        request.code_challenge,
        request.state,
        &request.scopes_asked,
        request.resource_asked,
        request.prompt,
        request.max_age,
        request.login_hint,
        request.browser.as_bytes().as_slice(),
        request.created_at,
        request.expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The request with this id, whatever its status and age.
pub async fn find(
    tx: &mut SystemTx,
    id: RequestId,
) -> Result<Option<AuthorizationRequest>, StorageError> {
    let row = sqlx::query!(
        "select * from authorization_requests where id = $1",
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        let inconsistent = |column| StorageError::Inconsistent {
            table: "authorization_requests",
            column,
        };
        Ok(AuthorizationRequest {
            id,
            client: row.client_ref.into(),
            redirect_uri: row.redirect_uri,
            code_challenge: row.code_challenge,
            state: row.state,
            scopes_asked: row.scopes_asked,
            resource_asked: row.resource_asked,
            prompt: row.prompt,
            max_age: row.max_age,
            login_hint: row.login_hint,
            browser: Digest::from_slice(&row.browser_digest)
                .ok_or(inconsistent("browser_digest"))?,
            user: row.user_id.map(UserId::from_uuid),
            session: row.session_id.map(SessionId::from_uuid),
            status: match row.status.as_str() {
                "pending" | "expired" => Status::Pending,
                "approved" => Status::Approved,
                "denied" => Status::Denied,
                _ => return Err(inconsistent("status")),
            },
            shown_at: row.shown_at,
            decided_at: row.decided_at,
            outcome_sealed: row.outcome_sealed,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    })
    .transpose()
}

/// Notes to whom, and when, the consent page was shown.
pub async fn note_shown(
    tx: &mut SystemTx,
    id: RequestId,
    user: UserId,
    session: SessionId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update authorization_requests set user_id = $2, session_id = $3, shown_at = $4 where id = $1 and status = 'pending'",
        id.uuid(),
        user.uuid(),
        session.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentDecision {
    /// The client gets a code.
    Approved,
    /// The client gets an error.
    Denied,
}

/// Decides the request, once: false if it was decided before, has expired, or was last shown to
/// another session (AUTH-N5).
pub async fn decide(
    tx: &mut SystemTx,
    id: RequestId,
    session: SessionId,
    decision: ConsentDecision,
    outcome_sealed: &[u8],
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update authorization_requests set status = case when $3 then 'approved' else 'denied' end, decided_at = $4, outcome_sealed = $5
         where id = $1 and session_id = $2 and status = 'pending' and expires_at > $4",
        id.uuid(),
        session.uuid(),
        decision == ConsentDecision::Approved,
        now,
        outcome_sealed,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Requests that a browser has open: bounds rows (CASE-24).
pub async fn count_open(
    tx: &mut SystemTx,
    browser: &Digest,
    now: Timestamp,
) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from authorization_requests where browser_digest = $1 and status = 'pending' and expires_at > $2"#,
        browser.as_bytes().as_slice(),
        now,
    )
    .fetch_one(tx.connection())
    .await?)
}
