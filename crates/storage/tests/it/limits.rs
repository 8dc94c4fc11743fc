//! Limits of a tenant: what it has set, what was refused.

use portolan_model::limits::{LimitName, LimitSet};
use portolan_storage::{
    expiry::{self, Expired},
    platform::limits,
};
use time::Duration;

use crate::{
    database::Database,
    scene::{Scene, now, system},
};

#[tokio::test]
async fn what_a_tenant_sets_is_read_back_and_only_the_console_may_set_it() {
    let store = Database::new().await.store(2).await;
    let tenant = Scene::new(&store).await.tenant;
    let mut tx = store.tenant(tenant).await.unwrap();
    assert_eq!(limits::own(&mut tx).await.unwrap(), LimitSet::default());
    for value in [9, 4] {
        limits::set(&mut tx, LimitName::RunningCalls, Some(value), now())
            .await
            .unwrap();
    }
    limits::set(&mut tx, LimitName::ToolCalls, Some(7), now())
        .await
        .unwrap();
    limits::set(&mut tx, LimitName::ToolCalls, None, now())
        .await
        .unwrap();
    // Each name that there is may stand in the table.
    for name in LimitName::ALL {
        if name != LimitName::RunningCalls {
            limits::set(&mut tx, name, Some(7), now()).await.unwrap();
            limits::set(&mut tx, name, None, now()).await.unwrap();
        }
    }
    tx.commit().await.unwrap();
    let mut node = store.node(tenant).await.unwrap();
    let expected = LimitSet::default().with(LimitName::RunningCalls, 4);
    assert_eq!(limits::own(&mut node).await.unwrap(), expected);
    assert!(
        limits::set(&mut node, LimitName::RunningCalls, Some(1), now())
            .await
            .is_err(),
        "a node changes nobody's limits"
    );
}

#[tokio::test]
async fn refusals_of_all_nodes_add_up_by_the_minute_and_go_after_a_month() {
    let store = Database::new().await.store(2).await;
    let tenant = Scene::new(&store).await.tenant;
    let minute = now();
    for seconds in [1, 20, 61] {
        let mut tx = store.node(tenant).await.unwrap();
        let refused = [(LimitName::TenantCalls, 3), (LimitName::OpenStreams, 1)];
        limits::add_refusals(&mut tx, &refused, minute + Duration::seconds(seconds))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let mut tx = store.tenant(tenant).await.unwrap();
    let mut since = limits::refused_since(&mut tx, minute + Duration::minutes(1))
        .await
        .unwrap();
    since.sort_by_key(|(name, _)| *name as usize);
    assert_eq!(
        since,
        [(LimitName::TenantCalls, 3), (LimitName::OpenStreams, 1)]
    );
    let until = minute + Duration::minutes(10);
    let usage = limits::usage(&mut tx, minute, until).await.unwrap();
    let refused: Vec<_> = usage.iter().map(|bucket| bucket.refused).collect();
    assert_eq!(refused, [12, 0], "five minutes each");
    drop(tx);
    let mut tx = system(&store).await;
    let later = minute + Duration::days(30) + Duration::seconds(30);
    let gone = expiry::purge(&mut tx, Expired::LimitRefusals, later).await;
    assert_eq!(gone.unwrap(), 2, "of the first minute");
}
