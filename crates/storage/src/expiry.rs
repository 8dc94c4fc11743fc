//! Purges expired rows in batches, so that no purge holds locks for long. The modules of
//! short-lived OAuth rows purge their own.

use portolan_model::Timestamp;
use time::Duration;

use crate::{
    StorageError, SystemTx, accounts::idempotent_requests, platform::connect_events,
    registry::trash,
};

/// Rows that one statement removes at most.
const BATCH: i64 = 1000;

/// One kind of thing that ends, and what to do about it. Retention is counted from the end of its
/// life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// Accounts whose address was never verified: 24 h.
    UnverifiedUsers,
    /// E-mail verifications: 7 d.
    Verifications,
    /// Links of mails: 7 d.
    AccountLinks,
    /// Unfinished changes of address: 1 d.
    EmailChanges,
    /// Invitations: 90 d.
    Invitations,
    /// Browser sessions that ended or expired: 30 d.
    BrowserSessions,
    /// Messages: 7 d.
    Mails,
    /// Refresh families that ended: 30 d.
    RefreshFamilies,
    /// Authorization codes: 1 d after they expire, and with the refresh family of their grant. Until
    /// then a second use is recognised (AUTH-T3).
    AuthorizationCodes,
    /// Authorization requests: 1 d after they expire, and not before their code.
    AuthorizationRequests,
    /// Grants that were revoked or expired: 180 d, and not before their code and refresh family.
    Grants,
    /// Revocations: 1 d after the last token that they concern expired.
    Revocations,
    /// Workspaces that clients wanted: 180 d after the last time.
    WorkspaceHints,
    /// Client assertions, at their expiry: from then on their own date refuses them.
    AssertionIds,
    /// API keys that ended or were revoked: 400 d.
    ApiKeys,
    /// Tokens of the management API that ended 400 days ago.
    AccessTokens,
    /// Tokens of trusted pipelines and service accounts, at their end (API-21, API-25).
    IssuedTokens,
    /// JWTs of trusted pipelines that were used: at their end their own date refuses them.
    PipelineJwts,
    /// Answers to requests with a key: 24 h.
    IdempotentRequests,
    /// What such answers took, by hour: 25 h.
    IdempotentBytes,
    /// Plans of configuration that were not applied within their time, and applied ones: 1 h.
    ConfigurationPlans,
    /// Clients that registered themselves and were never allowed anything: 180 d. One that ever was
    /// stays for good, whatever became of it: no client repairs an id that is gone (AUTH-C11).
    Clients,
    /// Sources that were deleted and not restored.
    Sources,
    /// Servers that were deleted and not restored; their addresses stay taken.
    Servers,
    /// Prompts that were deleted and not restored.
    Prompts,
    /// Resources that were deleted and not restored.
    Resources,
    /// Log of calls of earlier releases: 30 d. Later ones are partitions ([`crate::platform::usage`]).
    ToolCalls,
    /// What limits refused: 30 d.
    LimitRefusals,
    /// Unfinished sign-ins at upstream authorization servers: 1 d.
    UpstreamAttempts,
    /// Steps of connection diagnostics: 7 d.
    ConnectEvents,
    /// Fetches whose node died: 1 h.
    ClientFetches,
    /// Ways to providers of people's accounts: 1 d.
    LoginAttempts,
    /// Unclaimed identities: 1 d.
    IdentityOffers,
    /// What authenticators were asked to sign: at its end.
    PasskeyChallenges,
    /// Events with their deliveries and attempts: 30 d.
    Events,
    /// Alerts that ended: 30 d.
    Alerts,
}

impl Expired {
    /// All of them, in an order in which foreign keys are no obstacle.
    pub const ALL: &[Self] = &[
        Self::Verifications,
        Self::AccountLinks,
        Self::EmailChanges,
        Self::Invitations,
        Self::RefreshFamilies,
        Self::AuthorizationCodes,
        Self::AuthorizationRequests,
        Self::Grants,
        Self::Revocations,
        Self::WorkspaceHints,
        Self::AssertionIds,
        Self::ApiKeys,
        Self::AccessTokens,
        Self::IssuedTokens,
        Self::PipelineJwts,
        Self::IdempotentRequests,
        Self::IdempotentBytes,
        Self::ConfigurationPlans,
        Self::BrowserSessions,
        Self::UnverifiedUsers,
        Self::Mails,
        Self::Servers,
        Self::Prompts,
        Self::Resources,
        Self::Sources,
        Self::ToolCalls,
        Self::LimitRefusals,
        Self::UpstreamAttempts,
        Self::ConnectEvents,
        Self::ClientFetches,
        Self::LoginAttempts,
        Self::IdentityOffers,
        Self::PasskeyChallenges,
        Self::Clients,
        Self::Events,
        Self::Alerts,
    ];
}

/// Removes a batch; returns how many rows. Call again while it returns as many as a batch holds.
#[expect(
    clippy::too_many_lines,
    reason = "a table of each kind of row: its table, its key, its condition and its age"
)]
pub async fn purge(tx: &mut SystemTx, what: Expired, now: Timestamp) -> Result<u64, StorageError> {
    // The rows of a table whose condition holds for `$1`, a time that long ago.
    macro_rules! rows {
        ($table:literal, $key:literal, $condition:literal, $age:expr) => {
            sqlx::query!(
                "delete from "
                    + $table
                    + " where ("
                    + $key
                    + ") in
                   (select "
                    + $key
                    + " from "
                    + $table
                    + " where "
                    + $condition
                    + " limit $2 for update of "
                    + $table
                    + " skip locked)",
                now - $age,
                BATCH
            )
        };
    }
    let trash = trash::KEPT + trash::GRACE;
    let days = Duration::days;
    let statement = match what {
        Expired::UnverifiedUsers => {
            rows!("users", "id", "verified_at is null and created_at < $1", days(1))
        }
        Expired::Verifications => rows!("verifications", "id", "expires_at < $1", days(7)),
        Expired::AccountLinks => rows!("account_links", "id", "expires_at < $1", days(7)),
        Expired::EmailChanges => rows!("email_changes", "id", "expires_at < $1", days(1)),
        Expired::Invitations => rows!("invitations", "id", "expires_at < $1", days(90)),
        Expired::BrowserSessions => rows!(
            "browser_sessions",
            "id",
            "coalesce(ended_at, expires_at) < $1",
            days(30)
        ),
        Expired::Mails => rows!("mails", "id", "created_at < $1", days(7)),
        Expired::RefreshFamilies => rows!(
            "refresh_families",
            "id",
            "coalesce(revoked_at, least(idle_expires_at, expires_at)) < $1",
            days(30)
        ),
        // A code that is gone is unknown, so its second use no longer ends the grant. The family
        // ends with the last refresh token, and its row stays for 30 days after that. A grant
        // without a family has an access token alone, which lives for hours.
        Expired::AuthorizationCodes => rows!(
            "authorization_codes",
            "digest",
            "expires_at < $1 and not exists
               (select 1 from refresh_families f where f.grant_id = authorization_codes.grant_id)",
            days(1)
        ),
        // A request takes its code with it, so the code goes first.
        Expired::AuthorizationRequests => rows!(
            "authorization_requests",
            "id",
            "expires_at < $1 and not exists
               (select 1 from authorization_codes c where c.request_id = authorization_requests.id)",
            days(1)
        ),
        Expired::Grants => rows!(
            "grants",
            "id",
            "least(revoked_at, expires_at) < $1
               and not exists (select 1 from refresh_families f where f.grant_id = grants.id)
               and not exists (select 1 from authorization_codes c where c.grant_id = grants.id)",
            days(180)
        ),
        Expired::Revocations => rows!("revocations", "seq", "expires_at < $1", days(1)),
        Expired::WorkspaceHints => rows!(
            "workspace_hints",
            "client_ref, user_id",
            "seen_at < $1",
            days(180)
        ),
        Expired::AssertionIds => rows!(
            "assertion_ids",
            "client_ref, digest",
            "expires_at < $1",
            Duration::ZERO
        ),
        Expired::ApiKeys => rows!(
            "api_keys",
            "tenant_id, id",
            "coalesce(revoked_at, expires_at) < $1",
            days(400)
        ),
        Expired::AccessTokens => rows!(
            "access_tokens",
            "id",
            "coalesce(revoked_at, expires_at) < $1",
            days(400)
        ),
        Expired::IssuedTokens => rows!(
            "access_tokens",
            "id",
            "(pipeline_id is not null or account_id is not null) and coalesce(revoked_at, expires_at) < $1",
            Duration::ZERO
        ),
        Expired::PipelineJwts => rows!(
            "pipeline_jwts",
            "tenant_id, digest",
            "expires_at < $1",
            Duration::ZERO
        ),
        Expired::IdempotentRequests => rows!(
            "idempotent_requests",
            "token_id, key_digest",
            "started_at < $1",
            idempotent_requests::KEPT
        ),
        Expired::IdempotentBytes => rows!(
            "idempotent_bytes",
            "token_id, hour",
            "hour < $1",
            idempotent_requests::KEPT + Duration::HOUR
        ),
        Expired::Clients => rows!(
            "oauth_clients",
            "id",
            "kind = 'dynamic' and status = 'active' and not ever_granted and created_at < $1
               and coalesce(last_used_at, created_at) < $1",
            days(180)
        ),
        Expired::ConfigurationPlans => {
            rows!(
                "configuration_plans",
                "tenant_id, id",
                "expires_at < $1",
                Duration::hours(1)
            )
        }
        Expired::Sources => rows!("sources", "tenant_id, id", "deleted_at < $1", trash),
        Expired::Servers => return empty_servers(tx, now).await,
        Expired::Prompts => rows!("prompts", "tenant_id, id", "deleted_at < $1", trash),
        Expired::Resources => rows!("resources", "tenant_id, id", "deleted_at < $1", trash),
        Expired::ToolCalls => rows!("tool_calls", "tenant_id, id", "at < $1", days(30)),
        Expired::LimitRefusals => rows!(
            "limit_refusals",
            "tenant_id, minute, name",
            "minute < $1",
            days(30)
        ),
        Expired::UpstreamAttempts => {
            rows!("upstream_attempts", "state_digest", "expires_at < $1", days(1))
        }
        Expired::LoginAttempts => {
            rows!("login_attempts", "state_digest", "expires_at < $1", days(1))
        }
        Expired::IdentityOffers => rows!("identity_offers", "id", "expires_at < $1", days(1)),
        Expired::PasskeyChallenges => rows!(
            "webauthn_challenges",
            "digest",
            "expires_at < $1",
            Duration::ZERO
        ),
        Expired::ConnectEvents => {
            rows!("connect_events", "id", "at < $1", connect_events::KEPT)
        }
        Expired::Events => rows!("events", "tenant_id, id", "at < $1", days(30)),
        Expired::Alerts => rows!("alerts", "tenant_id, id", "resolved_at < $1", days(30)),
        Expired::ClientFetches => rows!("client_fetches", "url", "deadline < $1", Duration::HOUR),
    };
    Ok(statement.execute(tx.connection()).await?.rows_affected())
}

/// Empties deleted servers. The row stays as a tombstone: an address that once named a server never
/// names another one, because a token for the old server would open the new one (AUTH-M3).
async fn empty_servers(tx: &mut SystemTx, now: Timestamp) -> Result<u64, StorageError> {
    let emptied = sqlx::query_scalar!(
        r#"with over as (
             update servers set name = '', description = null, instructions = null where (tenant_id, id) in
               (select tenant_id, id from servers where deleted_at < $1 and name <> '' limit $2 for update skip locked)
             returning tenant_id, id),
           emptied as (
             delete from server_tools using over where server_tools.tenant_id = over.tenant_id and server_tools.server_id = over.id),
           without_prompts as (
             delete from server_prompts using over
              where server_prompts.tenant_id = over.tenant_id and server_prompts.server_id = over.id),
           without_resources as (
             delete from server_resources using over
              where server_resources.tenant_id = over.tenant_id and server_resources.server_id = over.id)
           select count(*) as "count!" from over"#,
        now - trash::KEPT - trash::GRACE,
        BATCH
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(u64::try_from(emptied).unwrap_or(0))
}

/// Takes the lock of the only purger in the whole installation until the transaction ends. False if
/// another one holds it.
pub async fn try_lock(tx: &mut SystemTx) -> Result<bool, StorageError> {
    /// Any number that nothing else uses.
    const LOCK: i64 = 0x706f_7274_6578_7079;
    Ok(
        sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock($1) as "locked!""#, LOCK)
            .fetch_one(tx.connection())
            .await?,
    )
}
