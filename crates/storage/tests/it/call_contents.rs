//! Contents of calls: written by nodes, seen by their tenant, gone in time (CAPTURE-5, CAPTURE-7).

use portolan_model::{
    Clock, Timestamp,
    id::{CallId, ServerId, TenantId},
};
use portolan_storage::{
    Reason, Store,
    platform::{
        call_contents::{self, NewContent, end_of},
        usage::folds,
    },
    registry::credentials::{self, WrappedKey},
};
use sqlx::{Connection, PgConnection};
use time::Duration;
use uuid::Uuid;

use crate::{database::Database, scene::Scene};

async fn key(store: &Store, tenant: TenantId, now: Timestamp) -> Uuid {
    let key = WrappedKey {
        id: Uuid::now_v7(),
        wrapped: b"wrapped".to_vec(),
    };
    let mut tx = store.tenant(tenant).await.unwrap();
    credentials::insert_data_key(&mut tx, &key, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    key.id
}

async fn write(store: &Store, contents: &[NewContent]) {
    let mut tx = store.edge(Reason::Metering).await.unwrap();
    call_contents::insert_many(&mut tx, contents).await.unwrap();
    tx.commit().await.unwrap();
}

async fn is_there(store: &Store, tenant: TenantId, call: CallId, now: Timestamp) -> bool {
    let mut tx = store.tenant(tenant).await.unwrap();
    let found = call_contents::find(&mut tx, call, now).await.unwrap();
    let ends_at = call_contents::ends_at(&mut tx, call, now).await.unwrap();
    assert_eq!(found.is_some(), ends_at.is_some());
    found.is_some()
}

/// Rule: CAPTURE-7. Each content ends at its own time, and its partition goes as a whole.
#[tokio::test]
async fn contents_end_in_time_and_partitions_are_dropped() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let (tenant, now) = (Scene::new(&store).await.tenant, Clock::system().now());
    assert!(folds::prepare(&store, now).await.unwrap());
    let key = key(&store, tenant, now).await;
    let days = [1, 7, 30];
    let contents = days.map(|days| NewContent {
        tenant,
        call: CallId::at(now),
        at: now,
        server: ServerId::generate(),
        ends_at: end_of(now, days),
        key,
        sealed: b"sealed".to_vec(),
    });
    write(&store, &contents).await;
    let config = portolan_metering::MeteringConfig::default();
    for (content, days) in contents.iter().zip(days) {
        let end = now + Duration::days(i64::from(days));
        let before = end - Duration::SECOND;
        folds::retire(&store, &config, before).await.unwrap();
        assert!(is_there(&store, tenant, content.call, before).await);
        assert!(!is_there(&store, tenant, content.call, end).await);
        folds::retire(&store, &config, end + Duration::days(1))
            .await
            .unwrap();
        assert!(
            !is_there(&store, tenant, content.call, now).await,
            "dropped"
        );
    }
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from call_log_contents")
        .fetch_one(&mut owner)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

/// Rule: CAPTURE-5. Nodes write and do not read; a tenant sees its own.
#[tokio::test]
async fn contents_are_seen_by_their_tenant_alone() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let (tenant, now) = (Scene::new(&store).await.tenant, Clock::system().now());
    let key = key(&store, tenant, now).await;
    let server = ServerId::generate();
    let content = NewContent {
        tenant,
        call: CallId::at(now),
        at: now,
        server,
        ends_at: end_of(now, 7),
        key,
        sealed: b"sealed".to_vec(),
    };
    write(&store, std::slice::from_ref(&content)).await;
    assert!(is_there(&store, tenant, content.call, now).await);
    assert!(!is_there(&store, TenantId::generate(), content.call, now).await);
    for select in ["call_log_contents", "partitions.call_log_contents_1"] {
        let mut tx = store.edge(Reason::Metering).await.unwrap();
        let read = sqlx::query(sqlx::AssertSqlSafe(format!("select 1 from {select}")))
            .execute(portolan_storage::Tx::raw(&mut tx))
            .await;
        assert!(read.is_err(), "{select}");
    }

    let mut other = store.tenant(TenantId::generate()).await.unwrap();
    let later = now + Duration::HOUR;
    let deleted = call_contents::delete_before(&mut other, server, later).await;
    assert_eq!(deleted.unwrap(), 0);
    other.commit().await.unwrap();
    let mut own = store.tenant(tenant).await.unwrap();
    let deleted = call_contents::delete_before(&mut own, server, later).await;
    assert_eq!(deleted.unwrap(), 1);
    own.commit().await.unwrap();
    assert!(!is_there(&store, tenant, content.call, now).await);
}
