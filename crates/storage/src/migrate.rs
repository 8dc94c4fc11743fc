//! Migrations: embedded, forward only.

use std::str::FromStr;

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, migrate::Migrator, postgres::PgConnectOptions,
};

use crate::{Reason, StorageError, Store};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// A migration did not run.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database cannot be reached with this URL.
    #[error("cannot connect to the database as its owner")]
    Connect(#[source] sqlx::Error),
    /// A migration failed, or the database has one that this release does not know.
    #[error("the schema could not be brought up to date")]
    Migrate(#[source] sqlx::migrate::MigrateError),
}

/// Brings the schema up to date. `owner_url` connects as the role that owns the tables, which no
/// node may use. Safe to call from several processes at once: an advisory lock lets one work and
/// the others wait.
pub async fn migrate(owner_url: &str) -> Result<(), MigrateError> {
    let options = PgConnectOptions::from_str(owner_url).map_err(MigrateError::Connect)?;
    let mut connection = PgConnection::connect_with(&options)
        .await
        .map_err(MigrateError::Connect)?;
    MIGRATOR
        .run(&mut connection)
        .await
        .map_err(MigrateError::Migrate)
}

/// Creates an empty database on our own server, unless it exists. `server_url` connects to an
/// existing database as a superuser. `name` is a trusted identifier, never user input.
pub async fn bootstrap(server_url: &str, name: &str) -> Result<(), StorageError> {
    let mut connection = PgConnection::connect(server_url).await?;
    let there: bool =
        sqlx::query_scalar("select exists (select 1 from pg_database where datname = $1)")
            .bind(name)
            .fetch_one(&mut connection)
            .await?;
    if !there {
        let statement = AssertSqlSafe(format!("create database {}", quoted(name)));
        sqlx::query(statement).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

/// Makes a role that can log in and is a member of `group` (`portolan_app`, or `portolan_mcp`) and
/// nothing else, unless it is there. For servers of our own: in production the operator makes the
/// login roles.
pub async fn ensure_login(owner_url: &str, role: &str, group: &str) -> Result<(), StorageError> {
    let mut connection = PgConnection::connect(owner_url).await?;
    let there: bool =
        sqlx::query_scalar("select exists (select 1 from pg_roles where rolname = $1)")
            .bind(role)
            .fetch_one(&mut connection)
            .await?;
    if !there {
        let statement = AssertSqlSafe(format!(
            "create role {} login noinherit nobypassrls in role {}",
            quoted(role),
            quoted(group)
        ));
        sqlx::query(statement).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// How the database's schema relates to this release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// As this release expects.
    Current,
    /// This many migrations are missing: run `portolan migrate`.
    Behind(usize),
    /// A newer release has migrated it; migrations are legal for the previous release, so this one
    /// may go on.
    Ahead(usize),
}

/// Compares the migrations applied with those of this release.
pub async fn schema_state(store: &Store) -> Result<SchemaState, StorageError> {
    let applied = match applied(store).await {
        Ok(applied) => applied,
        // An empty database has neither the table nor the role that may read it.
        Err(StorageError::Database(sqlx::Error::Database(error)))
            if matches!(error.code().as_deref(), Some("42P01" | "22023" | "42704")) =>
        {
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let missing = MIGRATOR
        .iter()
        .filter(|migration| !applied.contains(&migration.version))
        .count();
    let unknown = applied
        .iter()
        .filter(|version| {
            !MIGRATOR
                .iter()
                .any(|migration| migration.version == **version)
        })
        .count();
    Ok(match (missing, unknown) {
        (0, 0) => SchemaState::Current,
        (0, unknown) => SchemaState::Ahead(unknown),
        (missing, _) => SchemaState::Behind(missing),
    })
}

async fn applied(store: &Store) -> Result<Vec<i64>, StorageError> {
    let mut tx = store.edge(Reason::Operator).await?;
    Ok(
        sqlx::query_scalar("select version from _sqlx_migrations where success")
            .fetch_all(tx.connection())
            .await?,
    )
}
