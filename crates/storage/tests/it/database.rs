//! A database of the test's own, on the server that `DATABASE_URL` names.

use portolan_storage::{StorageConfig, Store, bootstrap, ensure_login, migrate};
use uuid::Uuid;

/// The role that the tests' stores log in as: no more than a node may have.
const LOGIN: &str = "portolan_test";

/// A fresh, migrated database. It stays behind: the server is thrown away after the tests.
pub(crate) struct Database {
    pub(crate) owner_url: String,
}

impl Database {
    pub(crate) async fn new() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test's only setting; the product reads its own elsewhere"
        )]
        let server = std::env::var("DATABASE_URL")
            .expect("DATABASE_URL names a server: scripts/with-postgres.sh starts one");
        let name = format!("test_{}", Uuid::now_v7().simple());
        bootstrap(&server, &name).await.expect("a new database");
        let database = Self {
            owner_url: with_database(&server, &name),
        };
        migrate(database.owner_url()).await.expect("migrations run");
        // Roles belong to the server: several tests may make it at once, and one is enough.
        for _ in 0..20 {
            if ensure_login(database.owner_url(), LOGIN, "portolan_app")
                .await
                .is_ok()
            {
                break;
            }
        }
        database
    }

    /// As the role that owns the tables: for what no node can do.
    pub(crate) fn owner_url(&self) -> &str {
        &self.owner_url
    }

    /// As the role that nodes log in as.
    pub(crate) fn login_url(&self) -> String {
        let (scheme, rest) = self.owner_url.split_once("://").expect("a URL");
        let (_, place) = rest.rsplit_once('@').expect("a URL with a user");
        format!("{scheme}://{LOGIN}@{place}")
    }

    /// Another pool, as another node would have.
    pub(crate) async fn store(&self, connections: u32) -> Store {
        let config = StorageConfig {
            url: self.login_url().into(),
            max_connections: connections,
            acquire_timeout_ms: 30_000,
        };
        Store::connect(&config)
            .await
            .expect("the login role can connect")
    }
}

fn with_database(server: &str, name: &str) -> String {
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    format!("{base}/{name}")
}
