//! Claims of deliveries: which are taken, and how much is read for it (HOOK-11, HOOK-14).

use portolan_model::id::TenantId;
use portolan_storage::{Reason, Store, SystemTx, Tx as _, webhooks::deliveries};
use sqlx::{Connection, PgConnection};
use time::Duration;
use uuid::Uuid;

use crate::{
    database::Database,
    scene::{Scene, now},
};

/// Deliveries that wait for one endpoint, one due each second before the time of the scene.
async fn endpoint(owner: &mut PgConnection, tenant: TenantId, backlog: i32) -> Uuid {
    let (tenant, key, endpoint) = (tenant.uuid(), Uuid::new_v4(), Uuid::new_v4());
    for statement in [
        "insert into tenant_deks (tenant_id, id, wrapped, created_at) select $1, $2, 'wrapped', $4 where $3 is not null and $5 > 0",
        "insert into webhook_endpoints (tenant_id, id, kind, url, event_types, dek_id, sealed, created_at, updated_at)
         select $1, $3, 'standard', 'https://hooks.example', '{key.created}', $2, 'sealed', $4, $4 where $5 > 0",
        "with made as (
           insert into events (tenant_id, id, at, type, data, spread_at)
           select $1, gen_random_uuid(), $4 - make_interval(secs => n), 'key.created', '{}', $4 from generate_series(1, $5) n
           returning id, at)
         insert into webhook_deliveries (tenant_id, event_id, endpoint_id, next_at, created_at)
         select $1, id, $3, at, $4 from made where $2 is not null",
    ] {
        sqlx::query::<sqlx::Postgres>(statement)
            .bind(tenant)
            .bind(key)
            .bind(endpoint)
            .bind(now())
            .bind(backlog)
            .execute(&mut *owner)
            .await
            .unwrap();
    }
    endpoint
}

/// Rows of deliveries that this connection has read.
async fn read_rows(tx: &mut SystemTx) -> i64 {
    let read = "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables
                 where relname = 'webhook_deliveries'";
    sqlx::query_scalar(read).fetch_one(tx.raw()).await.unwrap()
}

/// The endpoints of a claim, and how many rows it read.
async fn claim(store: &Store, room: i64) -> (Vec<Uuid>, i64) {
    let mut tx = store.system(Reason::Webhooks).await.unwrap();
    let before = read_rows(&mut tx).await;
    let claimed = deliveries::claim(&mut tx, room, 4, now()).await.unwrap();
    let read = read_rows(&mut tx).await - before;
    tx.commit().await.unwrap();
    let age = |one: &deliveries::ClaimedDelivery| now() - one.event.at;
    assert!(
        claimed
            .iter()
            .all(|one| age(one) > Duration::seconds(14_900))
    );
    let mut endpoints: Vec<Uuid> = claimed.iter().map(|one| one.endpoint.uuid()).collect();
    endpoints.sort();
    (endpoints, read)
}

/// Rule: HOOK-14.
#[tokio::test]
async fn a_claim_reads_what_it_takes_and_no_backlog() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let tenant = Scene::new(&store).await.tenant;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let mut both = [
        endpoint(&mut owner, tenant, 15_000).await,
        endpoint(&mut owner, tenant, 15_000).await,
    ];
    both.sort();
    // As after some minutes of service.
    sqlx::raw_sql("analyze webhook_deliveries, webhook_endpoints, events")
        .execute(&mut owner)
        .await
        .unwrap();
    let four_each: Vec<Uuid> = both.iter().flat_map(|id| [*id; 4]).collect();
    let (endpoints, read) = claim(&store, 32).await;
    assert_eq!(endpoints, four_each, "HOOK-11");
    assert!(read <= 100, "{read} of 30,000 rows were read");
    let (endpoints, read) = claim(&store, 32).await;
    assert!(endpoints.is_empty(), "others hold four each: {endpoints:?}");
    assert!(read <= 100, "{read} of 30,000 rows were read");
}
