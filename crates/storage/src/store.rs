//! The connection pool, and the transactions that it begins.

use std::{str::FromStr, time::Duration};

use portolan_config::SecretText;
use portolan_model::id::TenantId;
use sqlx::{
    AssertSqlSafe, Connection,
    postgres::{PgConnectOptions, PgPool, PgPoolOptions},
};

use crate::{
    EdgeTx, KeeperTx, StorageError, SystemTx, TenantTx,
    query_batcher::{BatchQuery, QueryBatchers},
};

/// A connection that was idle for this long is tested with a round trip before its next use. The
/// pool takes its connections in turn, so those of a busy process are rarely idle for as long. If
/// Postgres restarts faster, the first request on each connection fails as it does in an outage.
const TESTED_AFTER: Duration = Duration::from_secs(5);

portolan_config::config! {
    /// Postgres
    pub struct StorageConfig {
        /// Postgres (15 or newer) for the service: a login role that is a member of portolan_app
        /// and nothing else; for a process with MCP endpoints alone, of portolan_mcp.
        url: SecretText as "database_url";
        /// Most connections to Postgres held by one process. Two of them only listen for news.
        max_connections: u32 as "database_max_connections" = 16, in 4..=500;
        /// Longest wait for a free connection, in milliseconds, before a request is refused as
        /// unavailable.
        acquire_timeout_ms: u64 as "database_acquire_timeout_ms" = 5_000, in 50..=60_000;
    }
}

portolan_config::config! {
    /// Migration
    pub struct MigrationConfig {
        /// Postgres as the role that owns the tables. Only `portolan migrate` uses it.
        owner_url: SecretText as "database_owner_url";
    }
}

/// The database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
    batchers: QueryBatchers,
}

/// The transaction scopes that a process needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// All: the authorization service, alone or with MCP endpoints, and operators' commands. The
    /// login role is a member of `portolan_app`.
    AllScopes,
    /// MCP endpoints alone. A login in `portolan_mcp`.
    Nodes,
}

/// Why a transaction spans tenants. Logged, so that an odd one stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Sign-up, sign-in, sessions.
    SignIn,
    /// The OAuth endpoints: the request names the tenant.
    OAuth,
    /// Looking up which tenants a person belongs to, and creating one.
    Workspaces,
    /// Turning a slug of a URL into a tenant.
    Routing,
    /// Signing keys.
    KeyRotation,
    /// An API key, or the key of an attached server, that a node does not know.
    ApiKeys,
    /// Revocation feed.
    Revocations,
    /// Delivery of mail.
    Mail,
    /// Delivery of events to webhooks, and alerts.
    Webhooks,
    /// Purging expired rows.
    Janitor,
    /// The upstream servers that are due for a refresh.
    Upstreams,
    /// Connection diagnostics.
    Recorder,
    /// Counts and the log of calls.
    Metering,
    /// An operator's command.
    Operator,
}

impl Store {
    /// Opens the pool and tries one connection, so that a wrong URL is known at start.
    pub async fn connect(config: &StorageConfig) -> Result<Self, StorageError> {
        let store = Self::connect_later(config)?;
        store.pool.acquire().await?;
        Ok(store)
    }

    /// Opens the pool without a connection: until the database answers, everything is
    /// [`StorageError::Unavailable`].
    pub fn connect_later(config: &StorageConfig) -> Result<Self, StorageError> {
        let options = PgConnectOptions::from_str(config.url.reveal())?
            .application_name("portolan")
            .options([
                ("statement_timeout", "5000"),
                ("lock_timeout", "3000"),
                ("idle_in_transaction_session_timeout", "15000"),
            ]);
        let pool = PgPoolOptions::new()
            .test_before_acquire(false)
            .before_acquire(|connection, about| {
                Box::pin(async move {
                    if about.idle_for >= TESTED_AFTER {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .max_connections(config.max_connections)
            .acquire_timeout(Duration::from_millis(config.acquire_timeout_ms))
            .connect_lazy_with(options);
        Ok(Self {
            batchers: QueryBatchers::new(pool.clone()),
            pool,
        })
    }

    /// Begins a transaction that sees one tenant, as the console's role.
    pub async fn tenant(&self, tenant: TenantId) -> Result<TenantTx, StorageError> {
        self.begin_for("portolan_tenant", tenant).await
    }

    /// Begins a transaction that sees one tenant's registry, as an MCP node's role.
    pub async fn node(&self, tenant: TenantId) -> Result<TenantTx, StorageError> {
        self.begin_for("portolan_node", tenant).await
    }

    async fn begin_for(
        &self,
        role: &'static str,
        tenant: TenantId,
    ) -> Result<TenantTx, StorageError> {
        // The statement holds a constant name and a UUID as digits, so injection is impossible.
        // Settings before `begin` in the same message are part of the transaction. Both are
        // therefore local to it, which is safe behind a pooler in transaction mode. If a setting
        // fails, no transaction was begun.
        let begin = format!(
            "set local role {role}; set local app.tenant_id to '{}'; begin",
            tenant.uuid()
        );
        let tx = self.pool.begin_with(AssertSqlSafe(begin)).await?;
        Ok(TenantTx { tx, tenant })
    }

    /// Begins a transaction that spans tenants.
    pub async fn system(&self, reason: Reason) -> Result<SystemTx, StorageError> {
        // One round trip, as above.
        let begin = "set local role portolan_core; begin";
        let tx = self.pool.begin_with(begin).await?;
        tracing::debug!(?reason, "system transaction");
        Ok(SystemTx { tx })
    }

    /// Begins a transaction that spans tenants, for what a node needs before it knows one.
    pub async fn edge(&self, reason: Reason) -> Result<EdgeTx, StorageError> {
        let begin = "set local role portolan_edge; begin";
        let tx = self.pool.begin_with(begin).await?;
        tracing::debug!(?reason, "edge transaction");
        Ok(EdgeTx { tx })
    }

    /// Begins a transaction that folds counts, and makes and drops partitions.
    pub(crate) async fn keeper(&self) -> Result<KeeperTx, StorageError> {
        let begin = "set local role portolan_keeper; begin";
        let tx = self.pool.begin_with(begin).await?;
        Ok(KeeperTx { tx })
    }

    /// True if the database answers.
    pub async fn is_healthy(&self) -> bool {
        sqlx::query("select 1").execute(&self.pool).await.is_ok()
    }

    /// Whether the login role may open [`Store::system`]: then row-level security is no second line
    /// against SQL that is not ours (REVIEW-S-13).
    pub async fn may_become_core(&self) -> Result<bool, StorageError> {
        Ok(sqlx::query_scalar!(
            r#"select pg_has_role(session_user, 'portolan_core', 'member') as "may!""#
        )
        .fetch_one(&self.pool)
        .await?)
    }

    /// Lists the faults of the login role. It must not be a superuser, bypass row-level security or
    /// own tables. It must be able to become each role that it needs. Empty if there is no fault.
    pub async fn role_faults(&self, needs: Needs) -> Result<Vec<&'static str>, StorageError> {
        let roles: &[&str] = match needs {
            Needs::AllScopes => &[
                "portolan_core",
                "portolan_tenant",
                "portolan_node",
                "portolan_edge",
                "portolan_keeper",
            ],
            Needs::Nodes => &["portolan_node", "portolan_edge"],
        };
        let roles: Vec<String> = roles.iter().map(|&role| role.to_owned()).collect();
        let row = sqlx::query!(
            r#"select r.rolsuper as "superuser!", r.rolbypassrls as "bypasses!",
                 exists (select 1 from pg_class c where c.relowner = r.oid and c.relnamespace = 'public'::regnamespace) as "owns!",
                 (select bool_and(pg_has_role(r.oid, g.oid, 'member')) from pg_roles g where g.rolname = any($1)) as "member!"
               from pg_roles r where r.rolname = session_user"#,
            &roles,
        )
        .fetch_one(&self.pool)
        .await?;
        let mut faults = Vec::new();
        if row.superuser {
            faults.push("the login role is a superuser, for whom row-level security does not hold");
        }
        if row.bypasses {
            faults.push("the login role has BYPASSRLS");
        }
        if row.owns {
            faults.push(
                "the login role owns tables: connect as another role than the one that migrates",
            );
        }
        if !row.member {
            faults.push(match needs {
                Needs::AllScopes => "the login role is not a member of portolan_app",
                Needs::Nodes => "the login role is not a member of portolan_mcp",
            });
        }
        Ok(faults)
    }

    /// Difference between the database's clock and `now`, in seconds (AUTH-4.7: refuse to be ready
    /// above 5 s).
    pub async fn clock_skew_seconds(
        &self,
        now: portolan_model::Timestamp,
    ) -> Result<f64, StorageError> {
        let theirs: time::OffsetDateTime = sqlx::query_scalar("select now()")
            .fetch_one(&self.pool)
            .await?;
        Ok((theirs - now).as_seconds_f64())
    }

    /// Waits until running transactions have returned their connections, then closes them.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Sends a query together with concurrent queries of its kind.
    pub(crate) async fn batched<Q: BatchQuery>(&self, query: Q) -> Result<Q::Answer, StorageError> {
        self.batchers.of_kind().send(query).await
    }

    /// The pool, for this crate's own connections (listening for news).
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }
}
