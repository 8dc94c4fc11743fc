//! `auth.md` M6: suspension and deletion of tenants.

use portolan_model::Timestamp;
use portolan_storage::{
    audit::{self, Origin},
    endings::{self, Ending, GRACE},
    grants, members, operators, revocations, tenants,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use time::Duration;

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

async fn apply(
    store: &portolan_storage::Store,
    scene: &Scene,
    ending: Ending<'_>,
    at: Timestamp,
) -> bool {
    let mut tx = system(store).await;
    let done = endings::apply(&mut tx, scene.tenant, ending, at)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    done
}

#[tokio::test]
async fn m6_a_suspended_tenant_is_nowhere_and_its_old_tokens_stay_dead_when_it_is_back() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let before = grants::standing(&mut system(&store).await, scene.tenant, scene.user)
        .await
        .unwrap()
        .unwrap();
    assert!(apply(&store, &scene, Ending::Suspend("unpaid"), now()).await);
    assert!(
        !apply(&store, &scene, Ending::Suspend("again"), now()).await,
        "only once"
    );
    let mut tx = system(&store).await;
    let standing = grants::standing(&mut tx, scene.tenant, scene.user)
        .await
        .unwrap()
        .unwrap();
    assert!(!standing.is_active, "K16");
    assert!(tenants::by_slug(&mut tx, "acme").await.unwrap().is_none());
    assert!(
        members::workspaces_of(&mut tx, scene.user)
            .await
            .unwrap()
            .is_empty()
    );
    let told = revocations::live(&mut tx, None, now()).await.unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].epoch, Some(before.tenant_epoch + 1));
    let listed = operators::tenants(&mut tx, Some(scene.tenant), None, None, 1)
        .await
        .unwrap();
    assert_eq!(listed[0].status, "suspended");
    assert_eq!(listed[0].suspend_reason.as_deref(), Some("unpaid"));
    drop(tx);

    assert!(apply(&store, &scene, Ending::Resume, now()).await);
    let after = grants::standing(&mut system(&store).await, scene.tenant, scene.user)
        .await
        .unwrap()
        .unwrap();
    assert!(after.is_active);
    assert!(after.tenant_epoch > before.tenant_epoch + 1);
}

#[tokio::test]
async fn m6_a_deleted_tenant_can_be_restored_for_a_month_and_then_leaves_a_tombstone() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let scene = Scene::new(&store).await;
    let mut tx = system(&store).await;
    scene.grant(&mut tx).await;
    scene.code(&mut tx).await;
    let event = portolan_model::audit::Event {
        tenant: Some(scene.tenant),
        actor: portolan_model::audit::Actor::System,
        action: "thing.done",
        target_kind: "thing",
        target_id: "1".to_owned(),
        outcome: portolan_model::audit::Outcome::Ok,
        detail: serde_json::json!({}),
    };
    audit::record(&mut tx, &event, &Origin::default(), now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    let later = now() + GRACE;
    assert!(
        endings::overdue(&mut system(&store).await, later - Duration::SECOND)
            .await
            .unwrap()
            .is_none()
    );
    assert!(apply(&store, &scene, Ending::Restore, later - Duration::SECOND).await);
    assert!(apply(&store, &scene, Ending::Delete, now()).await);
    assert!(
        !apply(&store, &scene, Ending::Restore, later).await,
        "too late"
    );

    let mut tx = system(&store).await;
    assert_eq!(
        endings::overdue(&mut tx, later).await.unwrap(),
        Some(scene.tenant)
    );
    endings::purge(&mut tx, scene.tenant).await.unwrap();
    tx.commit().await.unwrap();

    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let tables: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
          where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace order by 1",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    for table in tables {
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!(
            "select count(*) from {table} where tenant_id = '{}'",
            scene.tenant.uuid()
        )))
        .fetch_one(&mut owner)
        .await
        .unwrap();
        let stays = ["audit_chain", "audit_events", "revocations", "tenant_slugs"];
        assert_eq!(rows > 0, stays.contains(&table.as_str()), "{table}: {rows}");
        // Tables that come later must be purged, too: the role needs the right to.
        let may: bool =
            sqlx::query_scalar("select has_table_privilege('portolan_core', $1, 'delete')")
                .bind(&table)
                .fetch_one(&mut owner)
                .await
                .unwrap();
        assert!(
            may || stays.contains(&table.as_str()),
            "portolan_core may not delete from {table}"
        );
    }
    let mut tx = system(&store).await;
    let taken = tenants::create(
        &mut tx,
        "Thief",
        &"acme".parse().unwrap(),
        scene.user,
        now(),
    )
    .await;
    assert!(
        taken.unwrap_err().is_conflict_on(tenants::SLUG_TAKEN),
        "M3: the slug is never given away"
    );
}
