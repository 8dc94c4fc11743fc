//! Accounts at upstream servers: there in their person's name only, renewed by one node at a time,
//! kept for one address.

use portolan_model::{
    email::EmailAddress,
    id::{SourceId, TenantId, UserId},
    registry::SourceKind,
};
use portolan_storage::{
    Reason, Store,
    accounts::users,
    registry::{
        credentials::{self, WrappedKey},
        sources,
        upstream_oauth::{self as stored, ConnectedAccount as Account, NewConnection, Refreshed},
    },
};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use time::Duration;
use uuid::Uuid;

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

const ADDRESS: &str = "https://mcp.example/mcp";

/// A source where each person has an account, and two persons.
struct House {
    store: Store,
    tenant: TenantId,
    source: SourceId,
    key: Uuid,
    ann: UserId,
    bob: UserId,
}

impl House {
    async fn new(database: &Database) -> Self {
        let store = database.store(4).await;
        let scene = Scene::new(&store).await;
        let mut tx = system(&store).await;
        let address = EmailAddress::parse("bob@acme.example").unwrap();
        let bob = users::create_unverified(&mut tx, "Bob", &address, "phc", now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let source = SourceId::generate();
        let new = sources::NewSource {
            id: source,
            kind: SourceKind::Mcp,
            name: "Theirs",
            base_url: ADDRESS,
            document: None,
            security: &json!([]),
        };
        let key = WrappedKey {
            id: Uuid::new_v4(),
            wrapped: vec![1],
        };
        let mut tx = store.tenant(scene.tenant).await.unwrap();
        sources::insert(&mut tx, &new, now()).await.unwrap();
        stored::set_sign_in(&mut tx, source, "person", "code", None, None, now())
            .await
            .unwrap();
        credentials::insert_data_key(&mut tx, &key, now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        Self {
            store,
            tenant: scene.tenant,
            source,
            key: key.id,
            ann: scene.user,
            bob,
        }
    }

    async fn connect(&self, owner: Option<UserId>, address: &str) -> bool {
        let new = NewConnection {
            id: Uuid::new_v4(),
            source: self.source,
            owner,
            connected_by: self.ann,
            issuer: "https://as.example",
            server: &json!({}),
            address,
            resource: None,
            scope: None,
            renewable: true,
            sealed: &[2],
            key: self.key,
            expires_at: now(),
        };
        let mut tx = self.store.tenant(self.tenant).await.unwrap();
        let kept = stored::connect(&mut tx, &new, now()).await.unwrap();
        tx.commit().await.unwrap();
        kept
    }

    async fn account(&self, owner: Option<UserId>) -> Option<Account> {
        let mut tx = self.store.node(self.tenant).await.unwrap();
        stored::connection(&mut tx, self.source, owner)
            .await
            .unwrap()
    }

    async fn begin(&self, of: &Account, seconds: i32) -> Option<time::OffsetDateTime> {
        let mut tx = self.store.node(self.tenant).await.unwrap();
        let lease = stored::begin_refresh(&mut tx, of, seconds).await.unwrap();
        tx.commit().await.unwrap();
        lease
    }

    async fn refreshed(&self, of: &Account) -> bool {
        let new = Refreshed {
            sealed: &[3],
            key: self.key,
            scope: None,
            expires_at: now(),
        };
        let mut tx = self.store.node(self.tenant).await.unwrap();
        let kept = stored::refreshed(&mut tx, of, &new, now()).await.unwrap();
        tx.commit().await.unwrap();
        kept
    }

    async fn needs_sign_in(&self, of: &Account, lease: Option<time::OffsetDateTime>) -> bool {
        let mut tx = self.store.node(self.tenant).await.unwrap();
        let noted = stored::needs_sign_in(&mut tx, of, "ended", lease)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        noted
    }
}

#[tokio::test]
async fn au_14_an_account_of_a_person_is_there_in_that_persons_name_only() {
    let database = Database::new().await;
    let house = House::new(&database).await;
    assert!(house.connect(None, ADDRESS).await);
    assert!(house.connect(Some(house.ann), ADDRESS).await);
    assert!(house.account(Some(house.bob)).await.is_none());
    let hers = house.account(Some(house.ann)).await.unwrap();
    for wrong in [None, Some(house.bob)] {
        let forged = Account {
            owner: wrong,
            ..hers.clone()
        };
        assert_eq!(house.begin(&forged, 30).await, None, "{wrong:?}");
        assert!(!house.refreshed(&forged).await, "{wrong:?}");
        assert!(!house.needs_sign_in(&forged, None).await, "{wrong:?}");
        let mut tx = house.store.tenant(house.tenant).await.unwrap();
        assert!(!stored::disconnect(&mut tx, &forged).await.unwrap());
        tx.commit().await.unwrap();
    }
    let still = house.account(Some(house.ann)).await.unwrap();
    assert_eq!((still.id, still.version), (hers.id, hers.version));

    // Below the functions of this crate: what a query without any condition would see.
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    for role in ["portolan_tenant", "portolan_node"] {
        for (person, seen) in [
            (String::new(), 1),
            (house.bob.uuid().to_string(), 1),
            (house.ann.uuid().to_string(), 2),
        ] {
            let mut tx = owner.begin().await.unwrap();
            sqlx::query(
                "select set_config('role', $1, true), set_config('app.tenant_id', $2, true), set_config('app.person', $3, true)",
            )
            .bind(role)
            .bind(house.tenant.uuid().to_string())
            .bind(&person)
            .execute(&mut *tx)
            .await
            .unwrap();
            let count: i64 = sqlx::query_scalar("select count(*) from upstream_connections")
                .fetch_one(&mut *tx)
                .await
                .unwrap();
            assert_eq!(count, seen, "{role} for {person:?}");
        }
    }

    let mut tx = house.store.system(Reason::Upstreams).await.unwrap();
    let all = stored::leaving(&mut tx, house.tenant, Some(house.source), None).await;
    assert_eq!(all.unwrap().len(), 2);
    let own = stored::leaving(&mut tx, house.tenant, None, Some(house.ann)).await;
    assert_eq!(own.unwrap().len(), 1);
}

#[tokio::test]
async fn case_167_the_right_to_renew_is_one_nodes_and_who_lost_it_changes_nothing() {
    let database = Database::new().await;
    let house = House::new(&database).await;
    assert!(house.connect(Some(house.ann), ADDRESS).await);
    let row = house.account(Some(house.ann)).await.unwrap();
    let over = house
        .begin(&row, 0)
        .await
        .expect("the clock is that of the database");
    let lease = house
        .begin(&row, 30)
        .await
        .expect("the other one's time is over");
    assert_eq!(house.begin(&row, 30).await, None);
    let mut tx = house.store.node(house.tenant).await.unwrap();
    stored::not_refreshed(&mut tx, &row, over).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        house.begin(&row, 30).await,
        None,
        "it was not theirs to give"
    );
    assert!(!house.needs_sign_in(&row, Some(over)).await);
    assert!(
        !house
            .needs_sign_in(&row, Some(lease - Duration::seconds(1)))
            .await
    );
    assert!(house.needs_sign_in(&row, Some(lease)).await);
    assert!(house.refreshed(&row).await, "new tokens are the last word");
    assert!(!house.refreshed(&row).await, "and are kept once");
    let renewed = house.account(Some(house.ann)).await.unwrap();
    assert_eq!(
        (renewed.status.as_str(), renewed.reason.as_deref()),
        ("ok", None)
    );
    assert_eq!(renewed.version, row.version + 1);
    let lease = house.begin(&renewed, 30).await.unwrap();
    let mut tx = house.store.node(house.tenant).await.unwrap();
    stored::not_refreshed(&mut tx, &renewed, lease)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(house.begin(&renewed, 30).await.is_some(), "given back");
}

#[tokio::test]
async fn au_8_tokens_for_an_address_where_the_source_is_not_any_more_are_not_kept() {
    let database = Database::new().await;
    let house = House::new(&database).await;
    assert!(!house.connect(None, "https://elsewhere.example/mcp").await);
    assert!(house.connect(None, ADDRESS).await);
    let before = house.account(None).await.unwrap();
    assert_eq!(before.address, ADDRESS);
    let moved = "https://mcp.example/other";
    let mut tx = house.store.tenant(house.tenant).await.unwrap();
    assert!(
        sources::update(&mut tx, house.source, None, Some(moved), None, now())
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert!(!house.connect(None, ADDRESS).await);
    let still = house.account(None).await.unwrap();
    assert_eq!(still.id, before.id, "nothing took its place");
    assert!(house.connect(None, moved).await);
}
