//! Purges expired rows in batches, so that no purge holds locks for long. The modules of
//! short-lived OAuth rows purge their own.

use portolan_model::Timestamp;
use time::Duration;

use crate::{StorageError, SystemTx};

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
    /// Log of calls: 30 d.
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
    ];
}

/// Removes a batch; returns how many rows. Call again while it returns as many as a batch holds.
pub async fn purge(tx: &mut SystemTx, what: Expired, now: Timestamp) -> Result<u64, StorageError> {
    let connection = tx.connection();
    let done = match what {
        Expired::UnverifiedUsers => {
            sqlx::query!(
                "delete from users where id in (select id from users where verified_at is null and created_at < $1 limit $2 for update skip locked)",
                now - Duration::DAY,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Verifications => {
            sqlx::query!(
                "delete from verifications where id in (select id from verifications where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(7),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::AccountLinks => {
            sqlx::query!(
                "delete from account_links where id in (select id from account_links where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(7),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::EmailChanges => {
            sqlx::query!(
                "delete from email_changes where id in (select id from email_changes where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(1),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Invitations => {
            sqlx::query!(
                "delete from invitations where id in (select id from invitations where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(90),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::BrowserSessions => {
            sqlx::query!(
                "delete from browser_sessions where id in
                   (select id from browser_sessions where coalesce(ended_at, expires_at) < $1 limit $2 for update skip locked)",
                now - Duration::days(30),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Mails => {
            sqlx::query!("delete from mails where id in (select id from mails where created_at < $1 limit $2 for update skip locked)", now - Duration::days(7), BATCH)
                .execute(connection)
                .await?
        }
        Expired::RefreshFamilies => {
            sqlx::query!(
                "delete from refresh_families where id in
                   (select id from refresh_families where coalesce(revoked_at, least(idle_expires_at, expires_at)) < $1 limit $2 for update skip locked)",
                now - Duration::days(30),
                BATCH
            )
            .execute(connection)
            .await?
        }
        // A code that is gone is unknown, so its second use no longer ends the grant. The family
        // ends with the last refresh token, and its row stays for 30 days after that. A grant
        // without a family has an access token alone, which lives for hours.
        Expired::AuthorizationCodes => {
            sqlx::query!(
                "delete from authorization_codes where digest in
                   (select c.digest from authorization_codes c
                     where c.expires_at < $1 and not exists (select 1 from refresh_families f where f.grant_id = c.grant_id)
                     limit $2 for update of c skip locked)",
                now - Duration::DAY,
                BATCH
            )
            .execute(connection)
            .await?
        }
        // A request takes its code with it, so the code goes first.
        Expired::AuthorizationRequests => {
            sqlx::query!(
                "delete from authorization_requests where id in
                   (select r.id from authorization_requests r
                     where r.expires_at < $1 and not exists (select 1 from authorization_codes c where c.request_id = r.id)
                     limit $2 for update of r skip locked)",
                now - Duration::DAY,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Grants => {
            sqlx::query!(
                "delete from grants where id in
                   (select g.id from grants g
                     where least(g.revoked_at, g.expires_at) < $1
                       and not exists (select 1 from refresh_families f where f.grant_id = g.id)
                       and not exists (select 1 from authorization_codes c where c.grant_id = g.id)
                     limit $2 for update of g skip locked)",
                now - Duration::days(180),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Revocations => {
            sqlx::query!(
                "delete from revocations where seq in (select seq from revocations where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::DAY,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::WorkspaceHints => {
            sqlx::query!(
                "delete from workspace_hints where (client_ref, user_id) in
                   (select client_ref, user_id from workspace_hints where seen_at < $1 limit $2 for update skip locked)",
                now - Duration::days(180),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::AssertionIds => {
            sqlx::query!(
                "delete from assertion_ids where (client_ref, digest) in
                   (select client_ref, digest from assertion_ids where expires_at < $1 limit $2 for update skip locked)",
                now,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::ApiKeys => {
            sqlx::query!(
                "delete from api_keys where (tenant_id, id) in
                   (select tenant_id, id from api_keys where coalesce(revoked_at, expires_at) < $1 limit $2 for update skip locked)",
                now - Duration::days(400),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Clients => {
            sqlx::query!(
                "delete from oauth_clients where id in
                   (select id from oauth_clients
                     where kind = 'dynamic' and status = 'active' and not ever_granted and created_at < $1 and coalesce(last_used_at, created_at) < $1
                     limit $2 for update skip locked)",
                now - Duration::days(180),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Sources => {
            sqlx::query!(
                "delete from sources where (tenant_id, id) in
                   (select tenant_id, id from sources where deleted_at < $1 limit $2 for update skip locked)",
                now - crate::registry::trash::KEPT - crate::registry::trash::GRACE,
                BATCH
            )
            .execute(connection)
            .await?
        }
        // The row stays as a tombstone: an address that once named a server never names another
        // one, because a token for the old server would open the new one (AUTH-M3).
        Expired::Servers => {
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
                now - crate::registry::trash::KEPT - crate::registry::trash::GRACE,
                BATCH
            )
            .fetch_one(connection)
            .await?;
            return Ok(u64::try_from(emptied).unwrap_or(0));
        }
        Expired::Prompts => {
            sqlx::query!(
                "delete from prompts where (tenant_id, id) in
                   (select tenant_id, id from prompts where deleted_at < $1 limit $2 for update skip locked)",
                now - crate::registry::trash::KEPT - crate::registry::trash::GRACE,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::Resources => {
            sqlx::query!(
                "delete from resources where (tenant_id, id) in
                   (select tenant_id, id from resources where deleted_at < $1 limit $2 for update skip locked)",
                now - crate::registry::trash::KEPT - crate::registry::trash::GRACE,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::ToolCalls => {
            sqlx::query!(
                "delete from tool_calls where (tenant_id, id) in
                   (select tenant_id, id from tool_calls where at < $1 limit $2 for update skip locked)",
                now - Duration::days(30),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::LimitRefusals => {
            sqlx::query!(
                "delete from limit_refusals where (tenant_id, minute, name) in
                   (select tenant_id, minute, name from limit_refusals where minute < $1 limit $2 for update skip locked)",
                now - Duration::days(30),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::UpstreamAttempts => {
            sqlx::query!(
                "delete from upstream_attempts where state_digest in
                   (select state_digest from upstream_attempts where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(1),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::LoginAttempts => {
            sqlx::query!(
                "delete from login_attempts where state_digest in
                   (select state_digest from login_attempts where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(1),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::IdentityOffers => {
            sqlx::query!(
                "delete from identity_offers where id in (select id from identity_offers where expires_at < $1 limit $2 for update skip locked)",
                now - Duration::days(1),
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::PasskeyChallenges => {
            sqlx::query!(
                "delete from webauthn_challenges where digest in
                   (select digest from webauthn_challenges where expires_at < $1 limit $2 for update skip locked)",
                now,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::ConnectEvents => {
            sqlx::query!(
                "delete from connect_events where id in (select id from connect_events where at < $1 limit $2 for update skip locked)",
                now - crate::platform::connect_events::KEPT,
                BATCH
            )
            .execute(connection)
            .await?
        }
        Expired::ClientFetches => {
            sqlx::query!(
                "delete from client_fetches where url in (select url from client_fetches where deadline < $1 limit $2 for update skip locked)",
                now - Duration::HOUR,
                BATCH
            )
            .execute(connection)
            .await?
        }
    };
    Ok(done.rows_affected())
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
