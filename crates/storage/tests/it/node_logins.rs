//! REVIEW-S-13: the login of MCP endpoints sees the registry of tenants, and cannot become the role
//! that sees everything.

use portolan_model::{Clock, Digest, id::TenantId};
use portolan_storage::{
    Needs, Reason, SchemaState, StorageConfig, Store, ensure_login,
    oauth::{api_keys, revocations, signing_keys},
    platform::{connect_events, recorder},
    schema_state,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::database::Database;

const LOGIN: &str = "portolan_test_mcp";

/// The URL of the login of MCP endpoints alone, which is made if it is not there.
async fn login_url(database: &Database) -> String {
    // Roles belong to the server: several tests may make it at once, and one is enough.
    for _ in 0..20 {
        let made = ensure_login(database.owner_url(), LOGIN, "portolan_mcp").await;
        if made.is_ok() {
            break;
        }
    }
    let (scheme, rest) = database.owner_url().split_once("://").unwrap();
    let (_, place) = rest.rsplit_once('@').unwrap();
    format!("{scheme}://{LOGIN}@{place}")
}

async fn node_store(database: &Database) -> Store {
    let config = StorageConfig {
        url: login_url(database).await.into(),
        max_connections: 2,
        acquire_timeout_ms: 30_000,
    };
    Store::connect(&config).await.unwrap()
}

/// The SQLSTATE with which a statement is refused; empty if it is not.
async fn refused(connection: &mut PgConnection, statement: &str) -> String {
    match sqlx::query(AssertSqlSafe(statement.to_owned()))
        .execute(connection)
        .await
    {
        Ok(_) => String::new(),
        Err(error) => {
            let error = error.into_database_error().unwrap();
            error.code().unwrap_or_default().into_owned()
        }
    }
}

#[tokio::test]
async fn s13_the_login_of_mcp_endpoints_cannot_become_core_nor_read_people_and_tokens() {
    let database = Database::new().await;
    let store = node_store(&database).await;
    assert!(!store.may_become_core().await.unwrap());
    assert_eq!(
        store.role_faults(Needs::Nodes).await.unwrap(),
        Vec::<&str>::new()
    );
    assert_eq!(store.role_faults(Needs::AllScopes).await.unwrap().len(), 1);
    assert!(store.system(Reason::Operator).await.is_err());
    assert!(store.tenant(TenantId::generate()).await.is_err());
    let every = database.store(1).await;
    assert!(every.may_become_core().await.unwrap());

    let mut login = PgConnection::connect(&login_url(&database).await)
        .await
        .unwrap();
    for role in ["portolan_core", "portolan_tenant", "portolan_app"] {
        let statement = format!("set role {role}");
        assert_eq!(
            refused(&mut login, &statement).await,
            "42501",
            "{statement}"
        );
    }
    for role in ["none", "portolan_mcp", "portolan_node", "portolan_edge"] {
        let statement = format!("set role {role}");
        assert_eq!(refused(&mut login, &statement).await, "", "{statement}");
        for secret in [
            "select display_name from users",
            "select 1 from user_emails",
            "select 1 from user_passwords",
            "select 1 from browser_sessions",
            "select 1 from refresh_families",
            "select 1 from refresh_tokens",
            "select 1 from authorization_codes",
            "select 1 from mails",
            "select 1 from oauth_clients",
            "select private_sealed from signing_keys",
            "select name from api_keys",
            "select ip_block from connect_events",
            "select client_snapshot from grants",
            "update users set status = 'locked'",
            "delete from revocations",
            "insert into revocations (kind, ref, expires_at, created_at) values ('kid', 'x', now(), now())",
        ] {
            assert_eq!(
                refused(&mut login, secret).await,
                "42501",
                "{secret} as {role}"
            );
        }
    }
}

/// A node's work needs no further rights.
#[tokio::test]
async fn s13_the_edge_hears_the_feed_opens_keys_and_writes_the_recorder() {
    let database = Database::new().await;
    let store = node_store(&database).await;
    assert_eq!(schema_state(&store).await.unwrap(), SchemaState::Current);
    let now = Clock::system().now();

    let mut tx = database
        .store(1)
        .await
        .system(Reason::Operator)
        .await
        .unwrap();
    let new = revocations::New {
        kind: revocations::RevocationKind::Kid,
        reference: "key",
        tenant: None,
        epoch: None,
        expires_at: now + time::Duration::HOUR,
    };
    revocations::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = store.edge(Reason::Revocations).await.unwrap();
    let live = revocations::live(&mut tx, None, now).await.unwrap();
    assert_eq!(live.entries.len(), 1);
    assert!(
        signing_keys::list_public(&mut tx, now)
            .await
            .unwrap()
            .is_empty()
    );
    let unknown = Digest::from_bytes([5; 32]);
    let whose = api_keys::tenant_of(&mut tx, &unknown).await.unwrap();
    assert_eq!(whose, None);
    let step = recorder::bare(
        now,
        connect_events::Step::Challenge,
        "request",
        "192.0.2.0/24".to_owned(),
        None,
    );
    connect_events::insert_many(&mut tx, &[step]).await.unwrap();
    tx.commit().await.unwrap();
}

/// The edge sees of API keys the one that is presented.
#[tokio::test]
async fn s13_a_key_that_is_not_presented_is_not_seen() {
    let database = Database::new().await;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let tenant = TenantId::generate();
    let (one, other) = ([1_u8; 32], [2_u8; 32]);
    for statement in [
        format!(
            "insert into tenants (id, name, created_at) values ('{}', 'acme', now())",
            tenant.uuid()
        ),
        "insert into users (id, display_name, status, created_at) values ('0190f2c8-5d7e-7f80-90a0-b0c0d0e0f000', 'Ann', 'active', now())".to_owned(),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut owner).await.unwrap();
    }
    for digest in [one, other] {
        sqlx::query(
            "insert into api_keys (tenant_id, id, user_id, name, digest, hint, created_at, expires_at)
             values ($1, gen_random_uuid(), '0190f2c8-5d7e-7f80-90a0-b0c0d0e0f000', 'k', $2, 'h', now(), now() + interval '1 day')",
        )
        .bind(tenant.uuid())
        .bind(digest.as_slice())
        .execute(&mut owner)
        .await
        .unwrap();
    }
    let store = node_store(&database).await;
    let mut tx = store.edge(Reason::ApiKeys).await.unwrap();
    let whose = api_keys::tenant_of(&mut tx, &Digest::from_bytes(one)).await;
    assert_eq!(whose.unwrap(), Some(tenant));
    drop(tx);
    let mut login = PgConnection::connect(&login_url(&database).await)
        .await
        .unwrap();
    assert_eq!(refused(&mut login, "set role portolan_edge").await, "");
    let count = "select count(*) from (select tenant_id from api_keys) k";
    let seen: i64 = sqlx::query_scalar(count)
        .fetch_one(&mut login)
        .await
        .unwrap();
    assert_eq!(seen, 0, "no digest is presented");
}
